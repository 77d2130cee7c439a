// Element types of tensors, everywhere outside MLIR.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft {

enum class DType : uint8_t { f32, f16, bf16, f64, i32, i1 };

/// Bytes of one stored element (i1 is stored as one byte).
int64_t sizeOf(DType type);
/// "f32", "f16", "bf16", "f64", "i32", "i1".
std::string_view nameOf(DType type);
std::optional<DType> parseDType(std::string_view name);
/// The CUDA spelling in emitted text: "float", "weft::half", "weft::bfloat16", "double", "int", "unsigned char".
std::string_view cudaNameOf(DType type);

}  // namespace weft
