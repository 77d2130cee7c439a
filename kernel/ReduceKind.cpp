// The words of the attribute `kind`, in one table.
#include "kernel/ReduceKind.h"

#include <algorithm>
#include <array>

namespace weft {
namespace {

constexpr std::array<std::pair<ReduceKind, std::string_view>, 2> words = {
    {{ReduceKind::sum, "sum"}, {ReduceKind::maximum, "max"}}};

}  // namespace

std::string_view nameOf(ReduceKind kind) {
  return std::ranges::find(words, kind, [](const auto &word) { return word.first; })->second;
}

std::optional<ReduceKind> reduceKindNamed(std::string_view name) {
  const auto found = std::ranges::find(words, name, [](const auto &word) { return word.second; });
  return found == words.end() ? std::nullopt : std::optional(found->first);
}

std::optional<ReduceKind> reduceKind(OpKind op,
                                     const std::map<std::string, Attribute> &attributes) {
  const auto kind = attributes.find("kind");
  if (op != OpKind::reduce || kind == attributes.end()) return std::nullopt;
  const auto *word = std::get_if<std::string>(&kind->second);
  return word ? reduceKindNamed(*word) : std::nullopt;
}

}  // namespace weft
