// The attributes of ops by names that know their types. The dialect's come from its records
// (cmake/AttributeNames.cmake), those that only kernels have are listed here.
//
// Invariant: what reads or sets an attribute of a kernel names it by one of these; its word is
// written for files and for people alone. Words of enumerations have their tables beside their
// types: ReduceKind, MaskShape::Kind, BucketKind, RotaryStyle, DType.
#pragma once

#include "kernel/Error.h"
#include "kernel/Kernel.h"

namespace weft {

template <typename Value>
struct AttributeName {
  const char *word;
};

namespace attribute {

#define WEFT_ATTRIBUTE(name, word, Value) inline constexpr AttributeName<Value> name{word};
#include "kernel/AttributeNames.inc"
/// Of a kernel on a chunk (plan/PlanChunks.h, kernel/ChunkOrigins.h): the elements of outer axes
/// before it, where it begins along each dimension, and the extents of the whole.
WEFT_ATTRIBUTE(outer, "outer", int64_t)
WEFT_ATTRIBUTE(origins, "origins", std::vector<int64_t>)
WEFT_ATTRIBUTE(wholes, "wholes", std::vector<int64_t>)
#undef WEFT_ATTRIBUTE

}  // namespace attribute

/// Null where there is none. Throws Error(checkFailed) where it is of another type.
template <typename Value>
const Value *findAttribute(const std::map<std::string, Attribute> &attributes,
                           AttributeName<Value> name) {
  const auto found = attributes.find(name.word);
  if (found == attributes.end()) return nullptr;
  if constexpr (std::is_same_v<Value, Attribute>) return &found->second;
  else {
    if (const Value *value = std::get_if<Value>(&found->second)) return value;
    throw Error::checkFailed("attribute '{}' is of another type", name.word);
  }
}

/// An op of a kernel or of a dataflow.
template <typename Op, typename Value>
const Value *findAttribute(const Op &op, AttributeName<Value> name) {
  return findAttribute(op.attributes, name);
}

template <typename Op, typename Value>
bool hasAttribute(const Op &op, AttributeName<Value> name) {
  return op.attributes.contains(name.word);
}

/// Throws Error(checkFailed) where the op has none, too.
template <typename Op, typename Value>
const Value &attributeOf(const Op &op, AttributeName<Value> name) {
  if (const Value *value = findAttribute(op, name)) return *value;
  throw Error::checkFailed("op '{}' lacks the attribute '{}'", nameOf(op.kind), name.word);
}

template <typename Op, typename Value>
Value attributeOr(const Op &op, AttributeName<Value> name, std::type_identity_t<Value> absent) {
  const Value *value = findAttribute(op, name);
  return value ? *value : absent;
}

/// Of what an expression names, where integers serve as numbers, too. Throws Error(checkFailed)
/// where the op has no number of this name.
template <typename Op>
double numberNamed(const Op &op, const std::string &word) {
  const auto found = op.attributes.find(word);
  if (found != op.attributes.end()) {
    if (const auto *number = std::get_if<double>(&found->second)) return *number;
    if (const auto *integer = std::get_if<int64_t>(&found->second)) return double(*integer);
  }
  throw Error::checkFailed("op '{}' lacks the number attribute '{}'", nameOf(op.kind), word);
}

template <typename Op, typename Value>
void setAttribute(Op &op, AttributeName<Value> name, std::type_identity_t<Value> value) {
  op.attributes[name.word] = std::move(value);
}

}  // namespace weft
