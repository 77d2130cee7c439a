// Tensor-core contractions of sm_90a: one einsum of two operands of f16 or bf16 as one batched
// strided matrix product, in any orientation, or of 8-bit floats or tf32 that are contiguous along
// k, with the element-wise ops that follow it and sums of their results, or a local softmax. Tiles
// that would take far longer than the best one by their number and their waste are left out. Beside
// them narrow tiles of halves, where one side is short or tiles are few. Layouts with several
// strides along a group of axes are a space of their own, with fewer tiles.
#include "kernel/ContractionRegion.h"
#include "kernel/Error.h"
#include "kernel/HopperSums.h"
#include "passes/configure/EpilogueLimits.h"
#include "passes/configure/Family.h"
#include "passes/configure/HopperCost.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>

namespace weft {
namespace {

using enum HopperSchedule;

/// Schedule, tile and the stages that shared memory has room for. Of 23 shapes x 4 orientations on
/// an H200 each was the fastest of all for some, or within 1% of it.
constexpr HopperContractionKnobs tiles[] = {
    {.schedule = pingPong, .tileM = 128, .tileN = 128, .stages = 6, .staging = 2},
    {.schedule = pingPong, .tileM = 128, .tileN = 192, .stages = 4, .staging = 4},
    {.schedule = cooperative, .tileM = 128, .tileN = 256, .stages = 4, .staging = 2},
    {.schedule = cooperative, .tileM = 256, .tileN = 128, .stages = 4, .staging = 2},
    {.schedule = pingPong, .tileM = 64, .tileN = 256, .stages = 4, .staging = 4},
    {.schedule = pingPong, .tileM = 64, .tileN = 192, .stages = 6, .staging = 2},
    {.schedule = pingPong, .tileM = 64, .tileN = 128, .stages = 8, .staging = 2},
    {.schedule = pingPong, .tileM = 128, .tileN = 64, .stages = 8, .staging = 2},
    {.schedule = cooperative, .tileM = 128, .tileN = 64, .stages = 8, .staging = 2},
    {.schedule = pingPong, .tileM = 64, .tileN = 64, .stages = 12, .staging = 1},
};
constexpr double worthwhile = 1.5;  ///< modelled time of a tile against the best one's
constexpr size_t fewestTiles = 3, mostTiles = 6;  ///< for one orientation of the result

/// Operands of the product and the first output have one type, or operands are 8-bit floats and the
/// first output is wider, or they are f32 that is read as tf32; what else an epilogue reads and
/// stores may be f32, too.
std::string typeRefusal(const Kernel &kernel, const ContractionRegion &region) {
  const ProductTypes types = productTypes(kernel);
  const DType type = types.c;
  if (std::string reason = epilogueTypesRefusal(kernel, region); !reason.empty()) return reason;
  if (types.areFloat8()) return "";
  if (types.areTf32())
    return isHalf(type) || type == DType::f32
               ? ""
               : fmt::format("a result of {}; f32, f16 and bf16 are taken of tf32", nameOf(type));
  for (const int value : kernel.body[region.contraction].operands)
    if (kernel.values[size_t(value)].dtype != type)
      return fmt::format(
          "'{}' is {}, the result {}; a product of a warpgroup has one element type here",
          kernel.values[size_t(value)].name, nameOf(kernel.values[size_t(value)].dtype),
          nameOf(type));
  if (!isHalf(type))
    return fmt::format(
        "element type {}; f16, bf16, f32 at precision tf32, and products of f8e4m3 and f8e5m2 are "
        "taken",
        nameOf(type));
  return "";
}

/// As many blocks of a cluster as keep all tiles in one wave: 2, 4 and 8 share k of a tile where
/// tiles are few and k is long. Multiprocessors that can form one cluster come in groups of 16 and
/// some more: 128 of 132 serve clusters of 4 and 8.
std::vector<int> splitsOf(const HopperProduct &product, const HopperContractionKnobs &tile,
                          const Device &device) {
  constexpr int64_t fewestSlices = 2, group = 16;
  std::vector<int> splits = {1};
  for (const int count : {2, 4, 8}) {
    const int64_t usable =
        count == 2 ? device.multiprocessors : device.multiprocessors / group * group;
    if (hopperTiles(product, tile) * count <= usable &&
        hopperSlices(product) >= fewestSlices * count)
      splits.push_back(count);
  }
  return splits;
}

/// With staged panels for all of a consumer's, up to four, where the epilogue reads or makes a
/// tensor of the result's shape besides the result: what it reads then arrives while the tile is
/// multiplied, and not a panel after the other; what it makes has panels of its own.
HopperContractionKnobs withPanels(HopperContractionKnobs tile, int tensors) {
  constexpr int mostStaged = 4;
  const int rowBlocks = tile.tileM / 64 / (tile.schedule == pingPong ? 1 : 2);
  tile.staging =
      std::max(tile.staging, std::min(mostStaged, rowBlocks * tile.tileN / 64 * tensors));
  return tile;
}

/// With as few stages less as make room for panels and for the sums of other blocks, beside which
/// two panels have to do.
std::optional<HopperContractionKnobs> fitted(HopperContractionKnobs tile, int splits, bool isMade,
                                             const Device &device) {
  constexpr int fewestStages = 3;
  tile.splits = splits;
  if (splits > 1) tile.staging = std::min(tile.staging, 2);
  for (; tile.stages >= fewestStages; --tile.stages)
    if (hopperKnobsRefusal(tile, device.sharedMemoryPerBlock).empty() &&
        hopperSharedBytes(tile, isMade) <= device.sharedMemoryPerBlock)
      return tile;
  return std::nullopt;
}

/// The same tile for two blocks that load slices of B for each other, where that may pay: rows of
/// an operand arrive slowly.
HopperContractionKnobs withSharers(HopperContractionKnobs tile) {
  tile.sharers = 2;
  tile.blocks = tile.blocks / tile.sharers * tile.sharers;
  return tile;
}

/// The tiles worth trying for a result of m x n, best first by the model. The raster only orders
/// many tiles. stored: tensors that leave in panels. isAnyStraddling: rows of an operand arrive
/// slowly in some layout. Returns why the last tile that was left out does not sum what the
/// epilogue computes, if for that.
std::string addKnobs(const HopperProduct &product, const ContractionRegion &region,
                     int epilogueRegisters, bool readsPanels, int stored, bool isAnyStraddling,
                     size_t most, const Device &device, std::set<Knobs> &knobs) {
  std::vector<std::pair<double, HopperContractionKnobs>> priced;
  std::string refusal;
  for (HopperContractionKnobs one : tiles) {
    one.blocks = device.multiprocessors;
    if (readsPanels || stored > 1) one = withPanels(one, stored);
    const auto offer = [&](const HopperContractionKnobs &tile, int splits) {
      const auto candidate = fitted(tile, splits, product.isAnyMade(), device);
      if (!candidate || !hopperTileRefusal(product, *candidate, epilogueRegisters).empty()) return;
      if (std::string reason = hopperSumsRefusal(region, product, *candidate); !reason.empty())
        refusal = std::move(reason);
      else priced.emplace_back(hopperTensorSeconds(product, *candidate, device), *candidate);
    };
    const bool takesWholeTiles = !region.sums.empty() || region.prologue || region.softmax;
    for (const int splits : takesWholeTiles ? std::vector{1} : splitsOf(product, one, device))
      offer(one, splits);
    if (isAnyStraddling) offer(withSharers(one), 1);
  }
  std::sort(priced.begin(), priced.end());
  // Those that share slices are for some layouts alone, so they stand beside as many others as
  // there are without them.
  constexpr size_t mostSharing = 2;
  struct Taken {
    size_t count = 0;
    double best = 0;
  } plain, sharing;
  for (size_t i = 0; i < priced.size(); ++i) {
    const bool isSharing = priced[i].second.sharers > 1;
    Taken &taken = isSharing ? sharing : plain;
    if (taken.count == 0) taken.best = priced[i].first;
    if (taken.count == (isSharing ? mostSharing : most) ||
        (taken.count >= fewestTiles && priced[i].first > worthwhile * taken.best))
      continue;
    knobs.insert(priced[i].second);
    if (taken.count++ > 0 || hopperTiles(product, priced[i].second) <= 2 * device.multiprocessors)
      continue;
    // Where stores take most of the time, tiles that run together write whole rows.
    priced[i].second.rasterM =
        std::max(priced[i].second.sharers, hopperSlices(product) <= 2 ? 1 : 4);
    knobs.insert(priced[i].second);
  }
  return refusal;
}

/// The narrow tile for a product one of whose sides (`columns`) is at most 48, past which the other
/// operand streams; `rows` of it a block. Blocks that fit beside each other on a multiprocessor
/// share its memory.
std::optional<HopperContractionKnobs> narrowTile(const HopperProduct &product, bool isAlongM,
                                                 int rows, int columns, const Device &device) {
  constexpr int64_t fewestSlices = 4, group = 16, mostResident = 4, reserved = 1024;
  constexpr int fewestStages = 4;
  HopperContractionKnobs tile{.schedule = narrow,
                              .tileM = isAlongM ? rows : columns,
                              .tileN = isAlongM ? columns : rows,
                              .blocks = device.multiprocessors};
  if (narrowSides(tile) != NarrowSides{.rows = rows, .columns = columns, .isAlongM = isAlongM})
    return std::nullopt;
  const int64_t tiles = hopperTiles(product, tile), slices = hopperSlices(product);
  for (const int count : {2, 4, 8}) {
    const int64_t usable =
        count == 2 ? device.multiprocessors : device.multiprocessors / group * group;
    if (tiles * count <= usable && slices >= fewestSlices * count) tile.splits = count;
  }
  const int64_t resident = std::clamp<int64_t>(
      (tiles * tile.splits + device.multiprocessors - 1) / device.multiprocessors, 1, mostResident);
  const int64_t room = (device.sharedMemoryPerBlock + reserved) / resident - reserved;
  tile.stages = int(std::max<int64_t>(fewestStages, (slices + tile.splits - 1) / tile.splits));
  while (tile.stages > fewestStages && hopperSharedBytes(tile) > room) --tile.stages;
  return hopperKnobsRefusal(tile, room).empty() ? std::optional(tile) : std::nullopt;
}

/// Narrow tiles along one side: for few columns past which the other operand streams from memory,
/// with as many rows as fill all multiprocessors; or where all tiles fit into one wave and k is
/// short, so that a launch is most of the time.
void addNarrow(const HopperProduct &product, bool isAlongM, const Device &device,
               std::vector<HopperContractionKnobs> &tiles) {
  constexpr int64_t mostColumns = 48, step = 8, fewestRows = 4, mostSlices = 16;
  const int64_t rows = isAlongM ? product.m : product.n, columns = isAlongM ? product.n : product.m;
  const auto add = [&](int side, int64_t width) {
    if (const auto tile = narrowTile(product, isAlongM, side, int(width), device))
      tiles.push_back(*tile);
  };
  if (columns <= mostColumns && rows >= fewestRows * columns) {
    const int64_t width = (columns + step - 1) / step * step;
    for (const int side : {32, 64}) add(side, width);
    return;
  }
  if (hopperSlices(product) > mostSlices) return;
  for (int64_t width = 2 * step; width <= mostColumns; width += step) {
    if (product.batch * ((rows + 63) / 64) * ((columns + width - 1) / width) >
        device.multiprocessors)
      continue;
    return add(64, width);
  }
}

/// Those of them that some layout of the product takes.
void addNarrowKnobs(const std::vector<HopperProduct> &products, const HopperProduct &shape,
                    const Device &device, std::set<Knobs> &knobs) {
  std::vector<HopperContractionKnobs> tiles;
  for (const bool isAlongM : {true, false}) addNarrow(shape, isAlongM, device, tiles);
  for (const HopperContractionKnobs &tile : tiles) {
    const auto takes = [&](const HopperProduct &one) {
      return one.m == shape.m && one.n == shape.n && hopperTileRefusal(one, tile, 0).empty();
    };
    if (std::ranges::any_of(products, takes)) knobs.insert(tile);
  }
}

/// Why the family does not take the kernel, whatever its layouts.
std::string kernelRefusal(const Kernel &kernel, const ContractionRegionAnswer &recognised,
                          const Device &device) {
  if (!recognised.region) return recognised.refusal;
  if (std::string reason = typeRefusal(kernel, *recognised.region); !reason.empty()) return reason;
  if (std::string reason = epilogueTensorsRefusal(kernel, *recognised.region); !reason.empty())
    return reason;
  if (const DType operands = productTypes(kernel).a; !device.tensorFlops.contains(operands))
    return fmt::format("{} names no flop rate of products of {}", device.name, nameOf(operands));
  return "";
}

/// The layouts of a space and their products, or why the last one is none.
struct Legal {
  std::vector<LayoutTuple> tuples = {};
  std::vector<HopperProduct> products = {};
  std::map<std::tuple<int64_t, int64_t, bool>, HopperProduct> shapes =
      {};  ///< one for each extent of m and n, and whether sums are scaled
  std::string refusal = {};

  /// By the engine alone: what threads copy has one stride a group.
  Legal(const Kernel &kernel, const ContractionRegion &region, std::vector<LayoutTuple> all,
        bool isByEngineAlone) {
    for (LayoutTuple &tuple : all) {
      HopperProductAnswer answer =
          hopperProduct(kernel, toConfiguration(kernel, tuple, HopperContractionKnobs{}));
      if (!answer.product) {
        refusal = std::move(answer.refusal);
        continue;
      }
      if (isByEngineAlone && !(answer.product->a.isByEngine && answer.product->b.isByEngine))
        continue;
      if (region.prologue) {
        refusal = prologueLayoutRefusal(
            kernel, toConfiguration(kernel, tuple, HopperContractionKnobs{}), *region.prologue);
        if (!refusal.empty()) continue;
      }
      if (std::string reason =
              softmaxRefusal(kernel, toConfiguration(kernel, tuple, HopperContractionKnobs{}),
                             region, !answer.product->isSwapped);
          !reason.empty()) {
        refusal = std::move(reason);
        continue;
      }
      shapes.emplace(std::tuple(answer.product->m, answer.product->n, answer.product->isScaled()),
                     *answer.product);
      products.push_back(*std::move(answer.product));
      tuples.push_back(std::move(tuple));
    }
  }
  bool isAnyStraddling() const {
    return std::ranges::any_of(products, [](const HopperProduct &product) {
      const int64_t bytes = sizeOf(product.operandType);
      return product.a.straddlesSectors(bytes) || product.b.straddlesSectors(bytes);
    });
  }
  bool areAllByEngine() const {
    return std::ranges::all_of(products, [](const HopperProduct &product) {
      return product.a.isByEngine && product.b.isByEngine;
    });
  }
};

/// Tiles for all shapes, `most` for each. Returns as addKnobs.
std::string addTiles(const Kernel &kernel, const ContractionRegion &region, const Legal &legal,
                     size_t most, const Device &device, std::set<Knobs> &knobs) {
  const int registers = epilogueRegisters(kernel, region);
  const ProductTypes types = productTypes(kernel);
  const bool hasPanels = !types.areTf32() || isHalf(types.c);  // threads load and store f32
  const bool readsPanels =
      hasPanels && std::ranges::any_of(region.inputs, [](const EpilogueInput &input) {
        return input.role == EpilogueRole::result;
      });
  const int stored = hasPanels && region.wholeOutputs(kernel) > 1 ? 2 : 1;
  const bool areAllByEngine =
      legal.areAllByEngine();  // threads that copy leave fewer registers to the others
  std::string refusal;
  for (auto [extents, product] : legal.shapes) {
    if (!product.isScaled()) product.a.isByEngine = product.b.isByEngine = areAllByEngine;
    refusal = addKnobs(product, region, registers, readsPanels, stored, legal.isAnyStraddling(),
                       most, device, knobs);
  }
  return refusal;
}

}  // namespace

FamilyAnswer hopperContractionSpace(const Kernel &kernel, const Device &device) {
  if (!hasWarpgroupProducts(device.architecture))
    return {.reason = fmt::format("{} has no WGMMA; sm_90a has", device.architecture)};
  const ContractionRegionAnswer recognised = contractionRegion(kernel);
  if (std::string reason = kernelRefusal(kernel, recognised, device); !reason.empty())
    return {.reason = std::move(reason)};
  Legal legal(kernel, *recognised.region, contractionTuples(kernel), false);
  if (legal.tuples.empty()) return {.reason = std::move(legal.refusal)};
  std::set<Knobs> knobs;
  std::string refusal = addTiles(kernel, *recognised.region, legal, mostTiles, device, knobs);
  if (narrowEpilogueRefusal(kernel, *recognised.region).empty())
    for (const auto &[extents, product] : legal.shapes)
      addNarrowKnobs(legal.products, product, device, knobs);
  if (knobs.empty() && !refusal.empty()) return {.reason = std::move(refusal)};
  if (knobs.empty())
    return {.reason = fmt::format("the epilogue needs {} registers; no tile leaves as many",
                                  epilogueRegisters(kernel, *recognised.region))};
  return {.space = ConfigurationSpace{.family = std::string(familyOf(HopperContractionKnobs{})),
                                      .tuples = std::move(legal.tuples),
                                      .knobs = {knobs.begin(), knobs.end()}}};
}

namespace {

std::optional<ConfigurationSpace> spaceOf(
    const Kernel &kernel, const Device &device,
    const std::function<std::vector<LayoutTuple>()> &layouts) {
  if (!hasWarpgroupProducts(device.architecture)) return std::nullopt;
  const ContractionRegionAnswer recognised = contractionRegion(kernel);
  if (!kernelRefusal(kernel, recognised, device).empty() || recognised.region->prologue ||
      !isHalf(productTypes(kernel).a))
    return std::nullopt;
  Legal legal(kernel, *recognised.region, layouts(), true);
  if (legal.tuples.empty()) return std::nullopt;
  std::set<Knobs> knobs;
  addTiles(kernel, *recognised.region, legal, fewestTiles, device, knobs);
  if (knobs.empty()) return std::nullopt;
  return ConfigurationSpace{.family = std::string(familyOf(HopperContractionKnobs{})),
                            .tuples = std::move(legal.tuples),
                            .knobs = {knobs.begin(), knobs.end()},
                            .hasSeveralStrides = true};
}

}  // namespace

std::optional<ConfigurationSpace> severalStridesSpace(const Kernel &kernel, const Device &device) {
  return spaceOf(kernel, device, [&] { return severalStridesTuples(kernel); });
}

std::optional<ConfigurationSpace> severalStridesSpace(const Kernel &kernel, const Device &device,
                                                      const FixedLayouts &fixed) {
  return spaceOf(kernel, device, [&] {
    std::vector<LayoutTuple> tuples = severalStridesTuples(kernel);
    std::erase_if(tuples, [&](const LayoutTuple &tuple) {
      for (size_t i = 0; i < tuple.size(); ++i)
        if (fixed[i] && *fixed[i] != tuple[i]) return true;
      return false;
    });
    for (LayoutTuple &tuple : stridedResultTuples(kernel, fixed))
      if (std::ranges::find(tuples, tuple) == tuples.end()) tuples.push_back(std::move(tuple));
    return tuples;
  });
}

std::vector<HopperContractionKnobs> streamedTiles(const Kernel &kernel, const LayoutTuple &layouts,
                                                  const Device &device) {
  const HopperProductAnswer answer =
      hopperProduct(kernel, toConfiguration(kernel, layouts, HopperContractionKnobs{}));
  std::vector<std::pair<double, HopperContractionKnobs>> priced;
  for (HopperContractionKnobs one : tiles) {
    one.schedule = cooperative, one.streams = 1, one.blocks = device.multiprocessors;
    const auto tile = fitted(one, 1, false, device);
    if (!answer.product || !tile ||
        !hopperTileRefusal(*answer.product, *tile,
                           epilogueRegisters(kernel, contractionRegion(kernel).region.value()))
             .empty())
      continue;
    priced.emplace_back(hopperTensorSeconds(*answer.product, *tile, device), *tile);
  }
  std::ranges::sort(priced);
  std::vector<HopperContractionKnobs> result;
  for (const auto &[seconds, tile] : priced)
    if (std::ranges::find(result, tile) == result.end()) result.push_back(tile);
  return result;
}

}  // namespace weft
