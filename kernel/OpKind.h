// The ops of the dialect as an enumeration, for what works on kernels without MLIR.
//
// Generated from the records of ir/WeftOps.td (cmake/OpKinds.cmake), so that one record stays one
// op: softmax is OpKind::softmax, layer_norm is OpKind::layerNorm.
#pragma once
#ifndef WEFT_KERNEL_OP_KIND_H  // beside a precompiled header of a compiler cache
#define WEFT_KERNEL_OP_KIND_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft {

enum class OpKind : uint8_t {
#define WEFT_OP(kind, name) kind,
#include "kernel/OpKinds.inc"
#undef WEFT_OP
};

/// Without the dialect's prefix: "layer_norm".
std::string_view nameOf(OpKind kind);
/// Nothing where the dialect has no op of this name.
std::optional<OpKind> opKindNamed(std::string_view name);

}  // namespace weft

#endif  // WEFT_KERNEL_OP_KIND_H
