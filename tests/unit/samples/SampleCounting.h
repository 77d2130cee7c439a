// Kernels of one op that counts coordinates: masks, slopes, a rotation.
#pragma once

#include "kernel/CoordinateExpressions.h"
#include "tests/unit/samples/SampleKernels.h"

#include <map>
#include <string>
#include <vector>

namespace weft::samples {

struct Counted {
  std::string name;
  Kernel whole;
};

/// An op that counts coordinates, of x of axes bhjk; others also read a table, or starts.
inline std::vector<Counted> countingKernels(const std::map<char, int64_t> &extents) {
  std::vector<Counted> kernels;
  std::map<char, int64_t> own;
  for (const char letter : {'b', 'h', 'j', 'k'}) own[letter] = extents.at(letter);
  const auto add = [&](const std::string &name, const std::string &op, const Expression &expression,
                       std::map<std::string, Attribute> attributes,
                       const std::string &lettersOfOther = "", DType dtype = DType::i32) {
    KernelBuilder builder(name, own);
    std::vector<ValueId> operands = {builder.input("x", "bhjk")};
    if (!lettersOfOther.empty()) operands.push_back(builder.input("other", lettersOfOther, dtype));
    const int y = builder.op(op, OperatorClass::elementwise, operands, "y", "bhjk");
    builder.last().attributes = std::move(attributes);
    builder.compute(expression);
    kernels.push_back({.name = name, .whole = builder.build({y})});
  };
  const int64_t query = 2, key = 3;
  const int64_t shift = extents.at('k') - extents.at('j');
  MaskShape mask{.kind = MaskShape::Kind::causal, .key = 3, .query = 2, .shift = shift};
  const auto addMask = [&](std::map<std::string, Attribute> attributes,
                           const std::string &lettersOfOther = "") {
    const std::string kind(nameOf(mask.kind));
    attributes.merge(
        std::map<std::string, Attribute>{{"kind", kind}, {"query", query}, {"key", key}});
    add(kind, "mask", maskExpression(mask), std::move(attributes), lettersOfOther);
  };
  addMask({});
  mask.kind = MaskShape::Kind::window, mask.left = 5, mask.right = 2, mask.global = 3;
  addMask({{"left", mask.left}, {"right", mask.right}, {"global", mask.global}});
  mask.kind = MaskShape::Kind::document, mask.batch = 0;
  addMask({{"along", std::vector<int64_t>{0}}}, "bk");
  add("alibi", "alibi",
      alibiExpression(
          {.heads = {1}, .extents = {extents.at('h')}, .query = 2, .key = 3, .shift = shift}),
      {{"query", query}, {"key", key}, {"heads", std::vector<int64_t>{1}}});
  add("rotary", "rotary",
      rotaryExpression({.dimension = 3,
                        .position = 2,
                        .rank = 4,
                        .extent = extents.at('k'),
                        .turned = extents.at('k')}),
      {{"dim", key}, {"position", query}, {"style", std::string("halved")}});
  return kernels;
}

}  // namespace weft::samples
