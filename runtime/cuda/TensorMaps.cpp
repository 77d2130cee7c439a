// Encoding of tensor maps; names and numbers are those of the driver's stable interface.
#include "runtime/cuda/TensorMaps.h"

#include "runtime/cuda/CudaDriver.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft::runtime::cuda {
namespace {

// CUtensorMapDataType, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
// CUtensorMapFloatOOBfill.
constexpr int unsigned8 = 0, float16 = 6, float32 = 7, bfloat16 = 9, tensorFloat32 = 11;
constexpr int noInterleave = 0, promoteTo256Bytes = 3, fillWithZeros = 0;

int dataTypeOf(DType dtype) {
  switch (dtype) {
    case DType::f16: return float16;
    case DType::bf16: return bfloat16;
    case DType::f32: return float32;
    case DType::tf32:
      return tensorFloat32;  // of elements of 32 bits, which it rounds on the way to shared
                             // memory
    case DType::f8e4m3:
    case DType::f8e5m2: return unsigned8;  // it has no name for them, and moves bits
    default: throw Error::unsupported("no map of a tensor of {}", nameOf(dtype));
  }
}

int swizzleOf(int bytes) {
  switch (bytes) {
    case 0: return 0;
    case 32: return 1;
    case 64: return 2;
    case 128: return 3;
    default:
      throw Error::unsupported("a swizzle over {} bytes; 0, 32, 64 and 128 are taken", bytes);
  }
}

}  // namespace

EncodedTensorMap encode(const TensorMap &map, DevicePointer tensor) {
  const DevicePointer address = tensor - uint64_t(map.shift * sizeOf(map.dtype));
  if (address % uint64_t(tensorMapAlignment) != 0)
    throw Error::badInput(
        "a tensor at address {:#x}; its kernel was built for multiples of {} bytes", address,
        tensorMapAlignment);
  std::vector<uint64_t> extents(map.extents.begin(), map.extents.end()), strides;
  for (const int64_t stride : map.strides) strides.push_back(uint64_t(stride * sizeOf(map.dtype)));
  const std::vector<uint32_t> box(map.box.begin(), map.box.end()), steps(map.box.size(), 1);
  EncodedTensorMap encoded;
  check(driver().encodeTensorMap(encoded.bytes.data(), dataTypeOf(map.dtype),
                                 uint32_t(extents.size()), reinterpret_cast<void *>(address),
                                 extents.data(), strides.data(), box.data(), steps.data(),
                                 noInterleave, swizzleOf(map.swizzleBytes), promoteTo256Bytes,
                                 fillWithZeros),
        fmt::format("encode the map of a tensor of {} with strides {} and boxes of {}",
                    fmt::join(extents, " x "), fmt::join(strides, ", "), fmt::join(box, " x ")));
  return encoded;
}

}  // namespace weft::runtime::cuda
