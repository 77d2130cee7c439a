// The 8-bit formats of OFP8 as storage types. A separate header, so that the text of kernels
// without them does not depend on it.
#pragma once

#include "weft/float8_conversion.cuh"
#include "weft/types.cuh"

namespace weft {

/// Storage only. Values beyond the largest one (448, 57344) are stored as that one; E4M3 has no
/// infinities, those of E5M2 stay.
struct float8e4m3 {
  unsigned char bits;
};
struct float8e5m2 {
  unsigned char bits;
};

__device__ __forceinline__ float widen(float8e4m3 value) { return ptx::e4m3ToFloat(value.bits); }
__device__ __forceinline__ float widen(float8e5m2 value) {
  return ptx::halfToFloat((unsigned short)(value.bits << 8));
}
template <>
__device__ __forceinline__ float8e4m3 narrow<float8e4m3>(float value) {
  return {ptx::floatToE4m3(value)};
}
template <>
__device__ __forceinline__ float8e5m2 narrow<float8e5m2>(float value) {
  return {ptx::floatToE5m2(value)};
}

}  // namespace weft
