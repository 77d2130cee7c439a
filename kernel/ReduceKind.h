// What a reduce op does with the elements along its axes.
#pragma once

#include "kernel/Kernel.h"

#include <optional>
#include <string_view>

namespace weft {

enum class ReduceKind : uint8_t { sum, maximum };
/// As the dialect writes it: "sum", "max".
std::string_view nameOf(ReduceKind kind);
std::optional<ReduceKind> reduceKindNamed(std::string_view name);

/// That of a reduce op with these attributes; nothing for every other op, and for a word that names
/// none.
std::optional<ReduceKind> reduceKind(OpKind op, const std::map<std::string, Attribute> &attributes);
inline std::optional<ReduceKind> reduceKind(const BodyOp &op) {
  return reduceKind(op.kind, op.attributes);
}

}  // namespace weft
