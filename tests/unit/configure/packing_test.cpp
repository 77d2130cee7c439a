// Parameters packed at load: every element of an operand has the address of the result's element
// that it becomes.
#include "passes/configure/Packing.h"
#include "passes/configure/Family.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleKernels.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <set>

using namespace weft;
using samples::KernelBuilder;
using weft::test::nonEmpty;

namespace {

using Index = std::vector<int64_t>;

int64_t address(const Layout &layout, const std::vector<int64_t> &extents, const Index &index) {
  const std::vector<int64_t> strides = stridesOf(layout, extents);
  int64_t at = layout.offset;
  for (size_t i = 0; i < index.size(); ++i) at += index[i] * strides[i];
  return at;
}

void forEachIndex(const std::vector<int64_t> &extents,
                  const std::function<void(const Index &)> &visit) {
  Index index(extents.size(), 0);
  for (;;) {
    visit(index);
    size_t dimension = extents.size();
    while (dimension-- > 0 && ++index[dimension] == extents[dimension]) index[dimension] = 0;
    if (dimension == static_cast<size_t>(-1)) return;
  }
}

/// Where element `index` of operand `operand` stands in the result.
using Meaning = std::function<Index(size_t operand, const Index &index)>;

/// In every layout of the result, all operands together cover it once, each element where it
/// belongs.
void requirePacked(const Kernel &kernel, const Meaning &meaning) {
  REQUIRE(isPackedAtLoad(kernel));
  const std::vector<int64_t> extents = extentsOf(kernel, kernel.outputs[0]);
  for (const Layout &layout : nonEmpty(allDenseLayouts(extents.size()))) {
    const std::vector<Layout> operands = packedOperands(kernel, layout);
    REQUIRE(operands.size() == kernel.inputs.size());
    std::set<int64_t> covered;
    bool inPlace = true;
    for (size_t operand = 0; operand < operands.size(); ++operand) {
      const std::vector<int64_t> own = extentsOf(kernel, kernel.inputs[operand]);
      std::vector<int> order = operands[operand].order;
      std::sort(order.begin(), order.end());
      CHECK(order == rowMajor(own.size()).order);
      forEachIndex(own, [&](const Index &index) {
        const int64_t at = address(operands[operand], own, index);
        inPlace = inPlace && covered.insert(at).second &&
                  at == address(layout, extents, meaning(operand, index));
      });
    }
    CHECK(inPlace);
    CHECK(static_cast<int64_t>(covered.size()) == kernel.elements(kernel.outputs[0]));
  }
}

/// The inputs and the result are given by axis letters; extents too.
Kernel movement(const std::string &op, const std::map<char, int64_t> &extents,
                const std::vector<std::string> &inputs, const std::string &result,
                std::map<std::string, Attribute> attributes) {
  KernelBuilder builder(op, extents);
  std::vector<ValueId> operands;
  for (const std::string &letters : inputs)
    operands.push_back(builder.input("in" + std::to_string(operands.size()), letters));
  const int output = builder.op(op, OperatorClass::movement, operands, "out", result);
  builder.last().attributes = std::move(attributes);
  return builder.build({output});
}

}  // namespace

TEST_CASE("joined parameters lie one after the other") {
  const Kernel kernel = movement("concat", {{'p', 3}, {'q', 2}, {'r', 4}, {'h', 6}, {'i', 5}},
                                 {"pqi", "pri"}, "phi", {{"axis", int64_t(1)}});
  requirePacked(kernel, [](size_t operand, const Index &at) {
    return Index{at[0], at[1] + (operand == 1 ? 2 : 0), at[2]};
  });
}

TEST_CASE("merged axes are neighbours in every layout of the merged one") {
  const Kernel middle = movement("merge_axes", {{'p', 3}, {'g', 2}, {'r', 4}, {'h', 8}, {'i', 5}},
                                 {"pgri"}, "phi", {{"axis", int64_t(1)}, {"count", int64_t(2)}});
  requirePacked(middle, [](size_t, const Index &at) {
    return Index{at[0], at[1] * 4 + at[2], at[3]};
  });
  const Kernel three = movement("merge_axes", {{'p', 3}, {'g', 2}, {'r', 4}, {'h', 24}, {'i', 5}},
                                {"pgri"}, "hi", {{"axis", int64_t(0)}, {"count", int64_t(3)}});
  requirePacked(three, [](size_t, const Index &at) {
    return Index{(at[0] * 2 + at[1]) * 4 + at[2], at[3]};
  });
}

TEST_CASE("a transposed parameter is itself under permuted strides") {
  const Kernel kernel = movement("transpose", {{'a', 2}, {'b', 3}, {'c', 4}}, {"abc"}, "cab",
                                 {{"permutation", std::vector<int64_t>{2, 0, 1}}});
  requirePacked(kernel, [](size_t, const Index &at) { return Index{at[2], at[0], at[1]}; });
}

TEST_CASE("a packed parameter inside another keeps its place") {
  const Kernel merge = movement("merge_axes", {{'g', 2}, {'r', 3}, {'h', 6}}, {"gr"}, "h",
                                {{"axis", int64_t(0)}, {"count", int64_t(2)}});
  const std::vector<Layout> operands =
      packedOperands(merge, {.order = {0}, .strides = {7}, .offset = 11});
  CHECK(operands.front() == Layout{.order = {0, 1}, .strides = {21, 7}, .offset = 11});
}

TEST_CASE("what does not cover its operands is not packed") {
  CHECK_FALSE(isPackedAtLoad(movement("slice", {{'a', 4}, {'b', 2}}, {"a"}, "b", {})));
  CHECK_FALSE(
      isPackedAtLoad(movement("split_axis", {{'a', 4}, {'b', 2}, {'c', 2}}, {"a"}, "bc", {})));
}
