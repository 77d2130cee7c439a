// Boxes grow from both ends: first what makes runs of one tile side, then longer runs while the box
// is small.
#include "codegen/families/transpose/TransposeTile.h"

#include "codegen/families/transpose/TransposeKnobs.h"
#include "kernel/Error.h"

#include <algorithm>

namespace weft::codegen {
namespace {

constexpr int64_t accessBytes = 16;
constexpr int64_t copiedRowBytes =
    128;  ///< rows of so many bytes are read and written whole without a tile

int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// One dimension an axis of extent above 1, slowest first in the operand, before merging.
std::vector<MergedDimension> separateDimensions(const Kernel &kernel,
                                                const Configuration &configuration) {
  const Value &from = kernel.values[kernel.inputs[0]], &to = kernel.values[kernel.outputs[0]];
  std::vector<int64_t> fromExtents, toExtents;
  for (AxisId axis : from.axes) fromExtents.push_back(kernel.axes[axis].extent);
  for (AxisId axis : to.axes) toExtents.push_back(kernel.axes[axis].extent);
  const std::vector<int64_t> fromStrides = stridesOf(configuration.inputs[0], fromExtents);
  const std::vector<int64_t> toStrides = stridesOf(configuration.outputs[0], toExtents);
  std::vector<MergedDimension> dimensions;
  for (size_t d = 0; d < from.axes.size(); ++d) {
    const auto position = std::find(to.axes.begin(), to.axes.end(), from.axes[d]);
    if (position == to.axes.end())
      throw Error::checkFailed("kernel '{}': the result lacks the axis '{}'", kernel.name,
                               kernel.axes[from.axes[d]].name);
    if (fromExtents[d] > 1)
      dimensions.push_back({.axes = {from.axes[d]},
                            .extent = fromExtents[d],
                            .from = fromStrides[d],
                            .to = toStrides[static_cast<size_t>(position - to.axes.begin())]});
  }
  std::stable_sort(dimensions.begin(), dimensions.end(),
                   [](const auto &a, const auto &b) { return a.from > b.from; });
  return dimensions;
}

std::vector<MergedDimension> merged(const std::vector<MergedDimension> &separate) {
  std::vector<MergedDimension> dimensions;
  for (const MergedDimension &next : separate) {
    MergedDimension *last = dimensions.empty() ? nullptr : &dimensions.back();
    if (!last || last->from != next.from * next.extent || last->to != next.to * next.extent) {
      dimensions.push_back(next);
      continue;
    }
    last->axes.insert(last->axes.end(), next.axes.begin(), next.axes.end());
    last->extent *= next.extent;
    last->from = next.from;
    last->to = next.to;
  }
  return dimensions;
}

/// The widest access of at most `wish` elements along `dimension` that every address allows.
int widthAlong(const TransposeTile &tile, int dimension, int64_t MergedDimension::*stride,
               int64_t alignment, int wish) {
  int64_t width = std::min<int64_t>(wish, accessBytes / tile.elementBytes);
  const auto allows = [&] {
    bool aligned = tile.dimensions[dimension].extent % width == 0 &&
                   alignment % (width * tile.elementBytes) == 0;
    for (size_t d = 0; d < tile.dimensions.size(); ++d)
      aligned &= static_cast<int>(d) == dimension || tile.dimensions[d].*stride % width == 0;
    return aligned;
  };
  while (width > 1 && !allows()) width /= 2;
  return static_cast<int>(std::max<int64_t>(width, 1));
}

/// Grows the tile along the innermost dimensions of one side until neighbours make runs of `target`
/// elements.
void growRun(TransposeTile &tile, int64_t MergedDimension::*stride, int64_t target) {
  std::vector<int> order(tile.dimensions.size());
  for (size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int>(d);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return tile.dimensions[a].*stride < tile.dimensions[b].*stride;
  });
  int64_t run = 1;
  for (int d : order) {
    MergedDimension &dimension = tile.dimensions[d];
    if (dimension.*stride != run || run >= target) return;
    const int64_t unit =
        std::max(d == tile.read ? tile.readWidth : 1, d == tile.write ? tile.writeWidth : 1);
    const int64_t pieces = ceilDivide(dimension.extent, ceilDivide(target, run));
    const int64_t share =
        std::min(dimension.extent, ceilDivide(ceilDivide(dimension.extent, pieces), unit) * unit);
    dimension.tile = std::max(dimension.tile, share);
    if (dimension.tile < dimension.extent) return;
    run *= dimension.extent;
  }
}

}  // namespace

int64_t TransposeTile::elements() const {
  int64_t count = 1;
  for (const MergedDimension &dimension : dimensions) count *= dimension.tile;
  return count;
}

std::vector<int> TransposeTile::byOperand() const {
  std::vector<int> order;
  for (int d = static_cast<int>(dimensions.size()); d-- > 0;)
    if (dimensions[d].tile > 1) order.push_back(d);
  return order;
}

std::vector<int> TransposeTile::byResult() const {
  std::vector<int> order = byOperand();
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return dimensions[a].to < dimensions[b].to; });
  return order;
}

int64_t TransposeTile::strideInTile(int dimension) const {
  int64_t stride = 1;
  for (size_t d = static_cast<size_t>(dimension) + 1; d < dimensions.size(); ++d)
    stride *= dimensions[d].tile;
  return stride;
}

bool TransposeTile::isCopy() const {
  if (read < 0 || write < 0 || dimensions.size() < 2) return true;
  return read == write &&
         (dimensions[read].extent * elementBytes >= copiedRowBytes || dimensions.size() < 3);
}

TransposeTile transposeTile(const Kernel &kernel, const Configuration &configuration,
                            const TransposeKnobs &knobs) {
  const bool one = kernel.body.size() == 1 && (kernel.body[0].kind == OpKind::identity ||
                                               kernel.body[0].kind == OpKind::transpose);
  if (!one)
    throw Error::unsupported("kernel '{}': the transpose family takes one identity or transpose",
                             kernel.name);
  if (knobs.tile < 1 || knobs.tile > 64 || knobs.threads < 1 || knobs.threads > 1024)
    throw Error::unsupported(
        "kernel '{}': a tile of {} elements and {} threads; the limits are 64 and 1024",
        kernel.name, knobs.tile, knobs.threads);
  TransposeTile tile{.dimensions = merged(separateDimensions(kernel, configuration)),
                     .elementBytes = sizeOf(kernel.values[kernel.inputs[0]].dtype)};
  for (size_t d = 0; d < tile.dimensions.size(); ++d) {
    if (tile.dimensions[d].from == 1) tile.read = static_cast<int>(d);
    if (tile.dimensions[d].to == 1) tile.write = static_cast<int>(d);
  }
  if (tile.isCopy()) return tile;
  tile.readWidth = widthAlong(tile, tile.read, &MergedDimension::from,
                              configuration.inputs[0].alignment, knobs.vectorWidth);
  tile.writeWidth = widthAlong(tile, tile.write, &MergedDimension::to,
                               configuration.outputs[0].alignment, knobs.vectorWidth);
  if (tile.read == tile.write)
    tile.readWidth = tile.writeWidth = std::min(tile.readWidth, tile.writeWidth);
  // Small innermost extents make small boxes: longer runs, until a block has something to do.
  const int64_t wanted = static_cast<int64_t>(knobs.tile) * knobs.tile;
  for (int64_t target = knobs.tile; target <= wanted && tile.elements() * 2 <= wanted;
       target *= 2) {
    TransposeTile grown = tile;
    growRun(grown, &MergedDimension::from, target);
    growRun(grown, &MergedDimension::to, target);
    if (grown.elements() > 2 * wanted) break;
    tile = grown;
  }
  return tile;
}

}  // namespace weft::codegen
