// Element types of tensors, everywhere outside MLIR.
#pragma once
#ifndef WEFT_KERNEL_DTYPE_H  // beside a precompiled header of a compiler cache
#define WEFT_KERNEL_DTYPE_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft {

/// f8e4m3 and f8e5m2 are the two 8-bit formats of the Open Compute Project (OFP8): E4M3 without
/// infinities and with one NaN, up to 448; E5M2 as IEEE would have it, up to 57344.
///
/// tf32 is no type of a tensor: it is what a GEMM of precision "tf32" reads of an f32, the upper
/// 19 of its bits (10 of fraction).
enum class DType : uint8_t { f32, f16, bf16, f64, i32, i1, f8e4m3, f8e5m2, tf32 };

/// Bytes of one stored element (i1 is stored as one byte).
int64_t sizeOf(DType type);
/// "f32", "f16", "bf16", "f64", "i32", "i1", "f8e4m3", "f8e5m2", "tf32".
std::string_view nameOf(DType type);
std::optional<DType> parseDType(std::string_view name);
/// The CUDA spelling in emitted text: "float", "weft::half", "weft::bfloat16", "double", "int",
/// "unsigned char", "weft::float8e4m3", "weft::float8e5m2", "weft::tfloat32".
std::string_view cudaNameOf(DType type);

/// Whether it is one of the 8-bit formats.
constexpr bool isFloat8(DType type) { return type == DType::f8e4m3 || type == DType::f8e5m2; }
/// The type of a tensor whose elements are read as `type`.
constexpr DType storedAs(DType type) { return type == DType::tf32 ? DType::f32 : type; }

}  // namespace weft

#endif  // WEFT_KERNEL_DTYPE_H
