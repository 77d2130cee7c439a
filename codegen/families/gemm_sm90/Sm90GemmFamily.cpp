// Tensor-core contractions of sm_90a: one einsum of two operands of f16 or bf16 as one batched
// strided GEMM, in any orientation, or of 8-bit floats or tf32 that are contiguous along
// k, with the element-wise ops that follow it and sums of their results, or a local softmax. Tiles
// that would take far longer than the best one by their number and their waste are left out. Beside
// them single-consumer tiles of halves, where one side is short or tiles are few. Layouts with
// several strides along a group of axes are a separate space, with fewer tiles.
#include "codegen/families/contraction/ContractionLayouts.h"
#include "codegen/families/contraction/EpilogueLimits.h"
#include "codegen/families/gemm_sm90/Sm90Cost.h"
#include "codegen/families/gemm_sm90/Sm90CostConstants.h"
#include "codegen/families/gemm_sm90/Sm90EpilogueReduction.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/gemm_sm90/Sm90Tile.h"
#include "codegen/targets/Targets.h"
#include "kernel/ContractionRegion.h"
#include "kernel/Error.h"
#include "kernel/UnusedTokens.h"
#include "passes/configure/AnalyticConstants.h"
#include "passes/configure/Family.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <tuple>

namespace weft {
namespace {

using enum Sm90Schedule;

/// Schedule, tile and the stages that shared memory has room for. Of 23 shapes x 4 orientations on
/// an H200 each was the fastest of all for some, or within 1% of it.
constexpr Sm90GemmKnobs tiles[] = {
    {.schedule = pingPong, .tileM = 128, .tileN = 128, .stages = 6, .epilogueStages = 2},
    {.schedule = pingPong, .tileM = 128, .tileN = 192, .stages = 4, .epilogueStages = 4},
    {.schedule = cooperative, .tileM = 128, .tileN = 256, .stages = 4, .epilogueStages = 2},
    {.schedule = cooperative, .tileM = 256, .tileN = 128, .stages = 4, .epilogueStages = 2},
    {.schedule = pingPong, .tileM = 64, .tileN = 256, .stages = 4, .epilogueStages = 4},
    {.schedule = pingPong, .tileM = 64, .tileN = 192, .stages = 6, .epilogueStages = 2},
    {.schedule = pingPong, .tileM = 64, .tileN = 128, .stages = 8, .epilogueStages = 2},
    {.schedule = pingPong, .tileM = 128, .tileN = 64, .stages = 8, .epilogueStages = 2},
    {.schedule = cooperative, .tileM = 128, .tileN = 64, .stages = 8, .epilogueStages = 2},
    {.schedule = pingPong, .tileM = 64, .tileN = 64, .stages = 12, .epilogueStages = 1},
};
constexpr double worthwhile = 1.5;  ///< modelled time of a tile against the best one's
constexpr size_t fewestTiles = 3, mostTiles = 6;  ///< for one orientation of the result

/// Operands of the GEMM and the first output have one type, or operands are 8-bit floats and the
/// first output is wider, or they are f32 that is read as tf32; what else an epilogue reads and
/// stores may be f32, too.
std::string typeRejection(const Kernel &kernel, const ContractionRegion &region) {
  const GemmTypes types = gemmTypes(kernel);
  const DType type = types.c;
  if (std::string reason = epilogueTypesRejection(kernel, region); !reason.empty()) return reason;
  if (types.areFloat8()) return "";
  if (types.areTf32())
    return isHalf(type) || type == DType::f32
               ? ""
               : fmt::format("a result of {}; f32, f16 and bf16 are taken of tf32", nameOf(type));
  for (const ValueId value : std::span(kernel.body[region.contraction].operands).first(2))
    if (kernel.values[size_t(value)].dtype != type)
      return fmt::format(
          "'{}' is {}, the result {}; a GEMM of a warpgroup has one element type here",
          kernel.values[size_t(value)].name, nameOf(kernel.values[size_t(value)].dtype),
          nameOf(type));
  if (!isHalf(type))
    return fmt::format(
        "element type {}; f16, bf16, f32 at precision tf32, and GEMMs of f8e4m3 and f8e5m2 are "
        "taken",
        nameOf(type));
  return "";
}

/// As many blocks of a cluster as keep all tiles in one wave: 2, 4 and 8 share k of a tile where
/// tiles are few and k is long. Multiprocessors that can form one cluster come in groups of 16 and
/// some more: 128 of 132 serve clusters of 4 and 8.
std::vector<int> splitKOf(const GemmProblem &gemm, const Sm90GemmKnobs &tile,
                          const Device &device) {
  constexpr int64_t fewestKTiles = 2, group = 16;
  std::vector<int> splitK = {1};
  for (const int count : {2, 4, 8}) {
    const int64_t usable =
        count == 2 ? device.multiprocessors : device.multiprocessors / group * group;
    if (sm90Tiles(gemm, tile) * count <= usable && sm90KTiles(gemm) >= fewestKTiles * count)
      splitK.push_back(count);
  }
  return splitK;
}

/// With epilogue stages for all of a consumer's, up to four, where the epilogue reads or makes a
/// tensor of the result's shape besides the result: what it reads then arrives while the tile is
/// multiplied, and not a subtile after the other; what it makes has separate subtiles.
Sm90GemmKnobs withSubtiles(Sm90GemmKnobs tile, int tensors) {
  constexpr int mostEpilogueStages = 4;
  const int rowBlocks = tile.tileM / 64 / (tile.schedule == pingPong ? 1 : 2);
  tile.epilogueStages = std::max(
      tile.epilogueStages, std::min(mostEpilogueStages, rowBlocks * tile.tileN / 64 * tensors));
  return tile;
}

/// The tile with as many stages as leave room for subtiles and for split-K partials, with which
/// there are at most two epilogue stages.
std::optional<Sm90GemmKnobs> fitted(Sm90GemmKnobs tile, int splitK, bool isTransformed,
                                    const Device &device) {
  constexpr int fewestStages = 3;
  tile.splitK = splitK;
  if (splitK > 1) tile.epilogueStages = std::min(tile.epilogueStages, 2);
  for (; tile.stages >= fewestStages; --tile.stages)
    if (sm90KnobsRejection(tile, device.sharedMemoryPerBlock).empty() &&
        sm90SharedBytes(tile, isTransformed) <= device.sharedMemoryPerBlock)
      return tile;
  return std::nullopt;
}

/// The same tile for two blocks that load k-tiles of B for each other, where that may pay: rows of
/// an operand arrive slowly.
Sm90GemmKnobs withMulticast(Sm90GemmKnobs tile) {
  tile.multicastB = 2;
  tile.blocks = tile.blocks / tile.multicastB * tile.multicastB;
  return tile;
}

/// The tiles worth trying for a result of m x n, best first by the model. The group-M swizzle
/// matters for many tiles only. stored: tensors that are stored in subtiles. isAnyStraddling: rows
/// of an operand straddle lines in some layout. takesWholeK: tiles whose k blocks share are left
/// out. whole: the problem whose tiles they must be, of which `gemm` may be a part. Returns why the
/// last rejected tile does not support the epilogue reductions, if that was the reason.
std::string addKnobs(const GemmProblem &gemm, const GemmProblem &whole,
                     const ContractionRegion &region, double elementSeconds, int epilogueRegisters,
                     bool readsSubtiles, int stored, bool isAnyStraddling, bool takesWholeK,
                     size_t most, const Device &device, std::set<Knobs> &knobs) {
  std::vector<std::pair<double, Sm90GemmKnobs>> priced;
  std::string rejection;
  for (Sm90GemmKnobs one : tiles) {
    one.blocks = device.multiprocessors;
    if (readsSubtiles || stored > 1) one = withSubtiles(one, stored);
    const auto offer = [&](const Sm90GemmKnobs &tile, int splitK) {
      const auto candidate = fitted(tile, splitK, gemm.isAnyTransformed(), device);
      if (!candidate || !sm90TileRejection(whole, *candidate, epilogueRegisters).empty()) return;
      if (std::string reason = sm90ReductionRejection(region, whole, *candidate); !reason.empty())
        rejection = std::move(reason);
      else if (reason = sm90RotaryTileRejection(region, *candidate); !reason.empty())
        rejection = std::move(reason);
      else
        priced.emplace_back(sm90TensorSeconds(gemm, *candidate, elementSeconds, device),
                            *candidate);
    };
    for (const int splitK : takesWholeK ? std::vector{1} : splitKOf(gemm, one, device))
      offer(one, splitK);
    if (isAnyStraddling) offer(withMulticast(one), 1);
  }
  std::sort(priced.begin(), priced.end());
  // Multicast is for some layouts alone, so these tiles do not count against the number of others.
  constexpr size_t mostSharing = 2;
  struct Taken {
    size_t count = 0;
    double best = 0;
  } plain, sharing;
  for (size_t i = 0; i < priced.size(); ++i) {
    const bool isSharing = priced[i].second.multicastB > 1;
    Taken &taken = isSharing ? sharing : plain;
    if (taken.count == 0) taken.best = priced[i].first;
    if (taken.count == (isSharing ? mostSharing : most) ||
        (taken.count >= fewestTiles && priced[i].first > worthwhile * taken.best))
      continue;
    knobs.insert(priced[i].second);
    if (taken.count++ > 0 || sm90Tiles(gemm, priced[i].second) <= 2 * device.multiprocessors)
      continue;
    // Where stores take most of the time, concurrent tiles should write whole rows.
    priced[i].second.groupM = std::max(priced[i].second.multicastB, sm90KTiles(gemm) <= 2 ? 1 : 4);
    knobs.insert(priced[i].second);
  }
  return rejection;
}

/// The single-consumer tile for a GEMM one of whose sides (`columns`) is at most 48; the other
/// operand is read once, `rows` of it a block. Blocks that fit on one multiprocessor together share
/// its memory.
std::optional<Sm90GemmKnobs> singleConsumerTile(const GemmProblem &gemm, bool isAlongM, int rows,
                                                int columns, const Device &device) {
  constexpr int64_t fewestKTiles = 4, group = 16, mostResident = 4, reserved = 1024;
  constexpr int fewestStages = 4;
  Sm90GemmKnobs tile{.schedule = singleConsumer,
                     .tileM = isAlongM ? rows : columns,
                     .tileN = isAlongM ? columns : rows,
                     .blocks = device.multiprocessors};
  if (singleConsumerSides(tile) !=
      SingleConsumerSides{.rows = rows, .columns = columns, .isAlongM = isAlongM})
    return std::nullopt;
  const int64_t tiles = sm90Tiles(gemm, tile), kTiles = sm90KTiles(gemm);
  for (const int count : {2, 4, 8}) {
    const int64_t usable =
        count == 2 ? device.multiprocessors : device.multiprocessors / group * group;
    if (tiles * count <= usable && kTiles >= fewestKTiles * count) tile.splitK = count;
  }
  const int64_t resident = std::clamp<int64_t>(
      (tiles * tile.splitK + device.multiprocessors - 1) / device.multiprocessors, 1, mostResident);
  const int64_t room = (device.sharedMemoryPerBlock + reserved) / resident - reserved;
  tile.stages = int(std::max<int64_t>(fewestStages, (kTiles + tile.splitK - 1) / tile.splitK));
  while (tile.stages > fewestStages && sm90SharedBytes(tile) > room) --tile.stages;
  return sm90KnobsRejection(tile, room).empty() ? std::optional(tile) : std::nullopt;
}

/// Single-consumer tiles along one side: for few columns, where the other operand is read once from
/// memory, with as many rows as fill all multiprocessors; or where all tiles fit into one wave and
/// k is short, so that most of the time is the launch.
void addSingleConsumer(const GemmProblem &gemm, bool isAlongM, const Device &device,
                       std::vector<Sm90GemmKnobs> &tiles) {
  constexpr int64_t mostColumns = 48, step = 8, fewestRows = 4, mostKTiles = 16;
  const int64_t rows = isAlongM ? gemm.m : gemm.n, columns = isAlongM ? gemm.n : gemm.m;
  const auto add = [&](int side, int64_t width) {
    if (const auto tile = singleConsumerTile(gemm, isAlongM, side, int(width), device))
      tiles.push_back(*tile);
  };
  if (columns <= mostColumns && rows >= fewestRows * columns) {
    const int64_t width = (columns + step - 1) / step * step;
    for (const int side : {32, 64}) add(side, width);
    return;
  }
  if (sm90KTiles(gemm) > mostKTiles) return;
  for (int64_t width = 2 * step; width <= mostColumns; width += step) {
    if (gemm.batch * ((rows + 63) / 64) * ((columns + width - 1) / width) > device.multiprocessors)
      continue;
    return add(64, width);
  }
}

/// Adds those of these tiles that some layout of the GEMM supports.
void addSingleConsumerKnobs(const std::vector<GemmProblem> &problems, const GemmProblem &shape,
                            const Device &device, std::set<Knobs> &knobs) {
  std::vector<Sm90GemmKnobs> tiles;
  for (const bool isAlongM : {true, false}) addSingleConsumer(shape, isAlongM, device, tiles);
  for (const Sm90GemmKnobs &tile : tiles) {
    const auto takes = [&](const GemmProblem &one) {
      return one.m == shape.m && one.n == shape.n && sm90TileRejection(one, tile, 0).empty();
    };
    if (std::ranges::any_of(problems, takes)) knobs.insert(tile);
  }
}

/// Why the family does not take the kernel, whatever its layouts.
std::string kernelRejection(const Kernel &kernel,
                            const Expected<ContractionRegion, Reason> &recognised,
                            const Device &device) {
  if (!recognised) return recognised.error().text;
  if (std::string reason = typeRejection(kernel, *recognised); !reason.empty()) return reason;
  if (std::string reason = epilogueTensorsRejection(kernel, *recognised); !reason.empty())
    return reason;
  if (const DType operands = gemmTypes(kernel).a; !device.tensorFlops.contains(operands))
    return fmt::format("{} names no flop rate of GEMMs of {}", device.name, nameOf(operands));
  return "";
}

/// The layouts of a space and their GEMMs, or why the last one is none.
struct Legal {
  std::vector<LayoutTuple> tuples = {};
  std::vector<GemmProblem> problems = {};
  std::map<std::tuple<int64_t, int64_t, bool>, GemmProblem> shapes =
      {};  ///< one for each extent of m and n, and whether accumulators are scaled
  std::string rejection = {};

  /// With several strides TMA alone: a tensor that threads copy has one stride a group.
  Legal(const Kernel &kernel, const ContractionRegion &region, std::vector<LayoutTuple> all,
        bool usesTmaOnly) {
    for (LayoutTuple &tuple : all) {
      Expected<GemmProblem, Reason> answer =
          wgmmaProblem(kernel, toConfiguration(kernel, tuple, Sm90GemmKnobs{}));
      if (!answer) {
        rejection = std::move(answer.error().text);
        continue;
      }
      if (usesTmaOnly && !(answer->a.usesTma && answer->b.usesTma)) continue;
      if (region.prologue) {
        rejection = prologueLayoutRejection(kernel, toConfiguration(kernel, tuple, Sm90GemmKnobs{}),
                                            *region.prologue);
        if (!rejection.empty()) continue;
      }
      if (std::string reason = softmaxRejection(
              kernel, toConfiguration(kernel, tuple, Sm90GemmKnobs{}), region, !answer->isSwapped);
          !reason.empty()) {
        rejection = std::move(reason);
        continue;
      }
      if (std::string reason = sm90RotaryRejection(
              kernel, toConfiguration(kernel, tuple, Sm90GemmKnobs{}), region, answer->isSwapped);
          !reason.empty()) {
        rejection = std::move(reason);
        continue;
      }
      shapes.emplace(std::tuple(answer->m, answer->n, answer->isScaled()), *answer);
      problems.push_back(*std::move(answer));
      tuples.push_back(std::move(tuple));
    }
  }
  bool isAnyStraddling() const {
    return std::ranges::any_of(problems, [](const GemmProblem &gemm) {
      const int64_t bytes = sizeOf(gemm.operandType);
      return gemm.a.straddlesLines(bytes) || gemm.b.straddlesLines(bytes);
    });
  }
  /// Whether in some layout TMA copies both operands, or in some threads copy one.
  bool isAnyCopied(bool byTma) const {
    return std::ranges::any_of(problems, [&](const GemmProblem &gemm) {
      return (gemm.a.usesTma && gemm.b.usesTma) == byTma;
    });
  }
};

/// Tiles for all shapes, `most` for each. Returns as addKnobs.
std::string addTiles(const Kernel &kernel, const ContractionRegion &region, const Legal &legal,
                     size_t most, const Device &device, std::set<Knobs> &knobs) {
  const int registers = epilogueRegisters(kernel, region);
  const GemmTypes types = gemmTypes(kernel);
  const bool hasSubtiles = !types.areTf32() || isHalf(types.c);  // threads load and store f32
  const bool readsSubtiles =
      hasSubtiles && std::ranges::any_of(region.inputs, [](const EpilogueInput &input) {
        return input.role == EpilogueRole::result;
      });
  const int stored = hasSubtiles && region.wholeOutputs(kernel) > 1 ? 2 : 1;
  const bool takesWholeK = !region.reductions.empty() || region.prologue || region.softmax;
  const std::optional<UnusedTokens> unused = unusedTokens(kernel);
  const int64_t tokens = unused ? kernel.axes[size_t(unused->axis)].extent : 0;
  std::string rejection;
  // At odd widths some tiles with reductions spill beside k-tiles for two blocks.
  const bool mayShare =
      legal.isAnyStraddling() && (region.reductions.empty() || !legal.isAnyCopied(false));
  // Threads that copy leave fewer registers to the others: each kind of layout has its tiles.
  for (const bool byTma : {true, false}) {
    if (!legal.isAnyCopied(byTma)) continue;
    for (auto [extents, gemm] : legal.shapes) {
      if (!gemm.isScaled()) gemm.a.usesTma = gemm.b.usesTma = byTma;
      const double seconds = sm90ElementSeconds(kernel, region);
      rejection = addKnobs(gemm, gemm, region, seconds, registers, readsSubtiles, stored, mayShare,
                           takesWholeK, most, device, knobs);
      // Of packed tokens fewer may come than fit: which tiles are best depends on their number.
      // Blocks that share k are launched for all that fit.
      for (const double share : {0.75, 0.5, 0.25}) {
        if (!unused || (gemm.m != tokens && gemm.n != tokens)) break;
        GemmProblem fewer = gemm;
        for (int64_t *const rows : {&fewer.m, &fewer.n})
          if (*rows == tokens) *rows = std::max<int64_t>(1, int64_t(double(tokens) * share));
        addKnobs(fewer, gemm, region, seconds, registers, readsSubtiles, stored, mayShare, true,
                 fewestTiles, device, knobs);
      }
    }
  }
  return rejection;
}

/// Which multiply k-tiles with tokens alone. Tiles along n follow one another: groups of eight
/// along m take up to half as long again (docs/experiments/gemms.md).
void addStreamKKnobs(const GemmProblem &gemm, const Device &device, std::set<Knobs> &knobs) {
  for (Sm90GemmKnobs one : tiles) {
    one.schedule = cooperative, one.streamK = 1, one.blocks = device.multiprocessors;
    if (const auto tile = fitted(one, 1, false, device);
        tile && sm90TileRejection(gemm, *tile, 0).empty()) {
      Sm90GemmKnobs streamed = *tile;
      streamed.groupM = 1;
      knobs.insert(streamed);
    }
  }
}

}  // namespace

Expected<ConfigurationSpace, Reason> sm90GemmSpace(const Kernel &kernel, const Device &device) {
  if (!codegen::hasWgmma(device.architecture))
    return rejected(fmt::format("{} has no WGMMA; sm_90a has", device.architecture));
  const Expected<ContractionRegion, Reason> &recognised = contractionRegion(kernel);
  if (std::string reason = kernelRejection(kernel, recognised, device); !reason.empty())
    return rejected(std::move(reason));
  Legal legal(kernel, *recognised, contractionTuples(kernel), false);
  if (legal.tuples.empty()) return rejected(std::move(legal.rejection));
  std::set<Knobs> knobs;
  std::string rejection = addTiles(kernel, *recognised, legal, mostTiles, device, knobs);
  if (singleConsumerEpilogueRejection(kernel, *recognised).empty())
    for (const auto &[extents, gemm] : legal.shapes)
      addSingleConsumerKnobs(legal.problems, gemm, device, knobs);
  if (summedTokens(kernel) && recognised->isPlain() && !recognised->prologue)
    for (const auto &[extents, gemm] : legal.shapes) addStreamKKnobs(gemm, device, knobs);
  if (knobs.empty() && !rejection.empty()) return rejected(std::move(rejection));
  if (knobs.empty())
    return rejected(fmt::format("the epilogue needs {} registers; no tile leaves as many",
                                epilogueRegisters(kernel, *recognised)));
  return ConfigurationSpace{.family = &sm90GemmFamily,
                            .tuples = std::move(legal.tuples),
                            .knobs = {knobs.begin(), knobs.end()}};
}

namespace {

std::optional<ConfigurationSpace> spaceOf(
    const Kernel &kernel, const Device &device,
    const std::function<std::vector<LayoutTuple>()> &layouts) {
  if (!codegen::hasWgmma(device.architecture)) return std::nullopt;
  const Expected<ContractionRegion, Reason> &recognised = contractionRegion(kernel);
  if (!kernelRejection(kernel, recognised, device).empty() || recognised->prologue ||
      !isHalf(gemmTypes(kernel).a))
    return std::nullopt;
  Legal legal(kernel, *recognised, layouts(), true);
  if (legal.tuples.empty()) return std::nullopt;
  std::set<Knobs> knobs;
  addTiles(kernel, *recognised, legal, fewestTiles, device, knobs);
  if (knobs.empty()) return std::nullopt;
  return ConfigurationSpace{.family = &sm90GemmFamily,
                            .tuples = std::move(legal.tuples),
                            .knobs = {knobs.begin(), knobs.end()},
                            .hasSeveralStrides = true};
}

}  // namespace

std::optional<ConfigurationSpace> sm90SeveralStridesSpace(const Kernel &kernel,
                                                          const Device &device,
                                                          const FixedLayouts *fixed) {
  return spaceOf(kernel, device, [&] {
    std::vector<LayoutTuple> tuples = severalStridesTuples(kernel);
    if (!fixed) return tuples;
    std::erase_if(tuples, [&](const LayoutTuple &tuple) {
      for (size_t i = 0; i < tuple.size(); ++i)
        if ((*fixed)[i] && *(*fixed)[i] != tuple[i]) return true;
      return false;
    });
    for (LayoutTuple &tuple : stridedResultTuples(kernel, *fixed))
      if (std::ranges::find(tuples, tuple) == tuples.end()) tuples.push_back(std::move(tuple));
    return tuples;
  });
}

std::vector<Sm90GemmKnobs> streamKTiles(const Kernel &kernel, const LayoutTuple &layouts,
                                        const Device &device) {
  const Expected<GemmProblem, Reason> answer =
      wgmmaProblem(kernel, toConfiguration(kernel, layouts, Sm90GemmKnobs{}));
  std::vector<std::pair<double, Sm90GemmKnobs>> priced;
  for (Sm90GemmKnobs one : tiles) {
    one.schedule = cooperative, one.streamK = 1, one.blocks = device.multiprocessors;
    const auto tile = fitted(one, 1, false, device);
    if (!answer || !tile ||
        !sm90TileRejection(*answer, *tile,
                           epilogueRegisters(kernel, contractionRegion(kernel).value()))
             .empty())
      continue;
    priced.emplace_back(sm90TensorSeconds(*answer, *tile, analytic::epilogueSeconds, device),
                        *tile);
  }
  std::ranges::sort(priced);
  std::vector<Sm90GemmKnobs> result;
  for (const auto &[seconds, tile] : priced)
    if (std::ranges::find(result, tile) == result.end()) result.push_back(tile);
  return result;
}

bool isUsefulSm90Tile(const Kernel &kernel, const LayoutTuple &layouts, const Knobs &knobs) {
  const auto &tile = knobs.get<Sm90GemmKnobs>();
  const bool isSingleConsumer = tile.schedule == Sm90Schedule::singleConsumer;
  const bool isBehindOps = contractionIndex(kernel).value_or(0) > 0;
  // Rows of whole chunks of 16 bytes are copied by TMA, whatever the layout; other rows by threads
  // in some, which leave fewer registers to the tile.
  const bool mayBeCopied = std::ranges::any_of(kernel.axes, [](const Axis &axis) {
    constexpr int64_t chunk = 8;
    return axis.extent > 1 && axis.extent % chunk != 0;
  });
  if (!isSingleConsumer && tile.multicastB == 1 && !isBehindOps && !mayBeCopied) return true;
  const Expected<GemmProblem, Reason> answer =
      wgmmaProblem(kernel, toConfiguration(kernel, layouts, knobs));
  if (!answer) return false;
  // A kernel has knobs of several layouts: those of operands along k are not for the others.
  if (isSingleConsumer) return sm90TileRejection(*answer, tile, 0).empty();
  if (tile.multicastB > 1) {
    // Only for k-tiles that arrive slowly, and for an even number of tiles: both depend on the
    // layouts.
    if (!sm90TileRejection(*answer, tile, 0).empty()) return false;
    const int64_t bytes = sizeOf(answer->operandType);
    return answer->a.straddlesLines(bytes) || answer->b.straddlesLines(bytes);
  }
  // Whether accumulators are scaled, and an operand is transformed on load or copied by threads,
  // depends on the layouts; which tiles fit into registers depends on that.
  const Expected<ContractionRegion, Reason> &recognised = contractionRegion(kernel);
  return recognised &&
         sm90TileRejection(*answer, tile, epilogueRegisters(kernel, *recognised)).empty();
}

}  // namespace weft
