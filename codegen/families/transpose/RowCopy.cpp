// Copies of rows that no access wider than an element fits, as those of an odd pitch: a thread
// takes several elements of the result, a block's threads neighbours, and all loads come before the
// first store, so that enough bytes are in flight.
#include "codegen/families/transpose/RowCopy.h"

#include "codegen/families/transpose/DimensionProgram.h"
#include "kernel/Error.h"

#include <algorithm>
#include <functional>

namespace weft::codegen {
namespace {

/// Fastest in the result last: neighbouring threads store neighbours.
std::vector<MergedDimension> asStored(std::vector<MergedDimension> dimensions) {
  std::ranges::stable_sort(dimensions, std::ranges::greater(), &MergedDimension::to);
  return dimensions;
}

class RowCopy : DimensionProgram {
public:
  RowCopy(const Kernel &kernel, const TransposeTile &tile, const TransposeKnobs &knobs)
      : DimensionProgram(kernel, asStored(tile.dimensions), "copy"),
        threads(knobs.threads),
        perThread(copiedPerThread(knobs)) {
    for (const MergedDimension &dimension : dimensions) points *= dimension.extent;
  }

  Program run() {
    for (std::string *word : {&threadsName, &perThreadName, &element, &point, &held})
      *word = names.reserve(*word);
    program.constants = {extentLine(),
                         {"int", {{threadsName, threads}}, "a block"},
                         {"int", {{perThreadName, perThread}}, "elements a thread"}};
    addStrides();
    wide |= points > mostIndex - int64_t(threads) * perThread;  // the last block is a whole one
    body();
    program.launchBounds = threadsName;
    program.mapping = fmt::format("{} elements a thread, {} threads a block", perThread, threads);
    pruneUnused(program);
    return std::move(program);
  }

private:
  std::string address(const std::string &tensor) const {
    std::string text = tensor;
    for (size_t d = 0; d < dimensions.size(); ++d) text += " + " + along(tensor, d, at[d]);
    return text;
  }

  /// The elements of a thread one after the other: `move` of each that exists.
  Statement forEach(Statement move) const {
    const std::string index = wide ? "weft::Offset" : "int";
    Block inside = {declareConstant(
        index, point,
        fmt::format("({}blockIdx.x * {} + {}) * {} + threadIdx.x", wide ? "weft::Offset(1) * " : "",
                    perThreadName, element, threadsName))};
    Block own;
    std::string divisor;
    for (size_t d = dimensions.size(); d-- > 0;) {
      std::string text = divisor.empty() ? point : fmt::format("{} / {}", point, divisor);
      if (d > 0) text += " % " + extents[d];
      own.push_back(declareConstant(index, at[d], text));
      divisor = divisor.empty() ? extents[d] : fmt::format("{} / {}", divisor, extents[d]);
    }
    own.push_back(std::move(move));
    if (points % (int64_t(threads) * perThread) == 0)
      inside.insert(inside.end(), own.begin(), own.end());
    else inside.push_back(guard(fmt::format("{} < {}", point, pointsText()), std::move(own)));
    return loop(element, perThreadName, 0, std::move(inside));
  }
  std::string pointsText() const {
    return fmt::format("{}{}", wide ? "weft::Offset(1) * " : "", fmt::join(extents, " * "));
  }

  void body() {
    const int64_t share = int64_t(threads) * perThread, blocks = (points + share - 1) / share;
    if (blocks > mostIndex)
      throw Error::unsupported("kernel '{}': {} blocks; the limit is {}", kernel.name, blocks,
                               mostIndex);
    program.launch = {.grid = {blocks, 1, 1}, .block = {threads, 1, 1}};
    std::vector<Code> shape;
    for (size_t d = 0; d < dimensions.size(); ++d)
      shape.push_back(fmt::format("{} == {}", extents[d], dimensions[d].extent));
    program.body = {
        launchCheckOf(shape, "these extents"),
        launchCheckOf({fmt::format("({0} + {1} * {2} - 1) / ({1} * {2}) == {3}", points,
                                   threadsName, perThreadName, blocks)},
                      fmt::format("{} blocks", blocks)),
        launchCheckOf({fmt::format("{} == {}", threadsName, threads)},
                      fmt::format("{} threads a block", threads)),
        declare(type, fmt::format("{}[{}]", held, perThreadName)),
        forEach(assign(fmt::format("{}[{}]", held, element), "*(" + address(from) + ")")),
        forEach(assign("*(" + address(to) + ")", fmt::format("{}[{}]", held, element)))};
  }

  const int threads, perThread;
  int64_t points = 1;
  std::string threadsName = "threads", perThreadName = "perThread", element = "e", point = "point",
              held = "held";
};

}  // namespace

int copiedPerThread(const TransposeKnobs &knobs) {
  return std::max(1, knobs.tile * knobs.tile / knobs.threads);
}

Program lowerRowCopy(const Kernel &kernel, const TransposeTile &tile, const TransposeKnobs &knobs) {
  return RowCopy(kernel, tile, knobs).run();
}

}  // namespace weft::codegen
