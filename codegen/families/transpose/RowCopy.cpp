// Copies of rows that no access wider than an element fits, as those of an odd pitch: a thread
// takes several elements of the result, a block's threads neighbours, and all loads come before the
// first store, so that enough bytes are in flight.
#include "codegen/families/transpose/RowCopy.h"

#include "codegen/EntryName.h"
#include "codegen/Names.h"
#include "kernel/Error.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace weft::codegen {
namespace {

constexpr int64_t mostIndex = std::numeric_limits<int32_t>::max();

class RowCopy {
public:
  RowCopy(const Kernel &kernel, const TransposeTile &tile, const TransposeKnobs &knobs)
      : kernel(kernel),
        dimensions(tile.dimensions),
        threads(knobs.threads),
        perThread(copiedPerThread(knobs)) {
    // Fastest in the result last: neighbouring threads store neighbours.
    std::stable_sort(dimensions.begin(), dimensions.end(),
                     [](const auto &a, const auto &b) { return a.to > b.to; });
    for (const MergedDimension &dimension : dimensions) points *= dimension.extent;
    isWide = points > mostIndex - int64_t(threads) * perThread;
  }

  Program run() {
    program.entry = names.reserve(entryName(kernel, "copy"));
    program.headers = {"weft/types.cuh", "weft/vector.cuh"};
    const std::string type(cudaNameOf(kernel.values[kernel.inputs[0]].dtype));
    from = names.reserve(kernel.values[kernel.inputs[0]].name);
    to = names.reserve(kernel.values[kernel.outputs[0]].name);
    program.parameters = {{Parameter::Kind::input, 0, from, type},
                          {Parameter::Kind::output, 0, to, type}};
    for (const MergedDimension &dimension : dimensions) {
      std::vector<std::string> axes;
      for (AxisId axis : dimension.axes) axes.push_back(kernel.axes[axis].name);
      extents.push_back(names.reserve(fmt::format("{}", fmt::join(axes, "_"))));
      at.push_back(names.reserve("at_" + extents.back()));
    }
    for (std::string *word : {&threadsName, &perThreadName, &element, &point, &held})
      *word = names.reserve(*word);
    constants();
    body(type);
    program.launchBounds = threadsName;
    program.mapping = fmt::format("{} elements a thread, {} threads a block", perThread, threads);
    pruneUnused(program);
    return std::move(program);
  }

private:
  void constants() {
    ConstantLine line{
        .type = "int", .note = "extents", .subject = {ConstantSubject::Kind::extents}};
    for (size_t d = 0; d < dimensions.size(); ++d) {
      std::vector<ConstantValue> axes;
      for (AxisId axis : dimensions[d].axes) axes.push_back(kernel.axes[axis].extent);
      line.entries.emplace_back(extents[d], ConstantValue::product(axes));
    }
    program.constants = {line,
                         {"int", {{threadsName, threads}}, "a block"},
                         {"int", {{perThreadName, perThread}}, "elements a thread"}};
    addStrides(from, &MergedDimension::from);
    addStrides(to, &MergedDimension::to);
  }

  void addStrides(const std::string &tensor, int64_t MergedDimension::*stride) {
    int64_t last = 0;
    for (const MergedDimension &dimension : dimensions)
      last += (dimension.extent - 1) * (dimension.*stride);
    isWide |= last > mostIndex;
    ConstantLine line{.type = last > mostIndex ? "weft::Offset" : "int",
                      .note = fmt::format("strides of {}", tensor),
                      .subject = {ConstantSubject::Kind::strides, tensor}};
    for (size_t d = 0; d < dimensions.size(); ++d) {
      if (dimensions[d].*stride == 1) continue;
      strides[{tensor, d}] = names.reserve(fmt::format("{}_{}", tensor, extents[d]));
      line.entries.emplace_back(strides[{tensor, d}], dimensions[d].*stride);
    }
    program.constants.push_back(line);
  }

  std::string address(const std::string &tensor) const {
    std::string text = tensor;
    for (size_t d = 0; d < dimensions.size(); ++d) {
      const auto stride = strides.find({tensor, d});
      text += stride == strides.end() ? " + " + at[d]
                                      : fmt::format(" + {} * {}", at[d], stride->second);
    }
    return text;
  }

  /// The elements of a thread one after the other: `move` of each that exists.
  Statement forEach(Statement move) const {
    const std::string index = isWide ? "weft::Offset" : "int";
    Block inside = {declareConstant(
        index, point,
        fmt::format("({}blockIdx.x * {} + {}) * {} + threadIdx.x",
                    isWide ? "weft::Offset(1) * " : "", perThreadName, element, threadsName))};
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
    return fmt::format("{}{}", isWide ? "weft::Offset(1) * " : "", fmt::join(extents, " * "));
  }

  void body(const std::string &type) {
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

  const Kernel &kernel;
  std::vector<MergedDimension> dimensions;
  const int threads, perThread;
  int64_t points = 1;
  bool isWide = false;
  Names names;
  Program program;
  std::vector<std::string> extents, at;
  std::map<std::pair<std::string, size_t>, std::string> strides;
  std::string from, to, threadsName = "threads", perThreadName = "perThread", element = "e",
                        point = "point", held = "held";
};

}  // namespace

int copiedPerThread(const TransposeKnobs &knobs) {
  return std::max(1, knobs.tile * knobs.tile / knobs.threads);
}

Program lowerRowCopy(const Kernel &kernel, const TransposeTile &tile, const TransposeKnobs &knobs) {
  return RowCopy(kernel, tile, knobs).run();
}

}  // namespace weft::codegen
