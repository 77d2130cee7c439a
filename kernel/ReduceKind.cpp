// The words of the attribute `kind`, in one table.
#include "kernel/ReduceKind.h"

#include "kernel/Attributes.h"
#include "kernel/WordTable.h"

namespace weft {
namespace {

constexpr WordTable<ReduceKind, 2> words = {
    {{ReduceKind::sum, "sum"}, {ReduceKind::maximum, "max"}}};

}  // namespace

std::string_view nameOf(ReduceKind kind) { return wordOf(words, kind); }

std::optional<ReduceKind> reduceKindNamed(std::string_view name) { return valueNamed(words, name); }

std::optional<ReduceKind> reduceKind(OpKind op,
                                     const std::map<std::string, Attribute> &attributes) {
  const std::string *word =
      op == OpKind::reduce ? findAttribute(attributes, attribute::kind) : nullptr;
  return word ? reduceKindNamed(*word) : std::nullopt;
}

}  // namespace weft
