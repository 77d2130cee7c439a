// The fields of the loop family, what it says of a kernel, and the family itself.
#include "codegen/families/loop/LoopKnobs.h"

#include "codegen/families/loop/InPlace.h"
#include "codegen/families/loop/Loop.h"
#include "codegen/families/loop/LoopFamily.h"
#include "codegen/families/loop/LoopTable.h"
#include "codegen/targets/Targets.h"
#include "kernel/Device.h"
#include "kernel/Error.h"
#include "passes/configure/Family.h"
#include "passes/configure/FamilyConfigurations.h"

#include <bit>

namespace weft {

std::string_view nameOf(ReductionMapping mapping) {
  switch (mapping) {
    case ReductionMapping::none: return "none";
    case ReductionMapping::sequential: return "sequential";
    case ReductionMapping::warp: return "warp";
    case ReductionMapping::block: return "block";
    case ReductionMapping::warpColumns: return "warp-columns";
    case ReductionMapping::blockColumns: return "block-columns";
    case ReductionMapping::clusterColumns: return "cluster-columns";
    case ReductionMapping::gridColumns: return "grid-columns";
  }
  return "";
}

bool isRowMapping(ReductionMapping mapping) {
  return mapping == ReductionMapping::warp || mapping == ReductionMapping::block;
}

bool isColumnMapping(ReductionMapping mapping) {
  return mapping == ReductionMapping::warpColumns || mapping == ReductionMapping::blockColumns ||
         mapping == ReductionMapping::clusterColumns || mapping == ReductionMapping::gridColumns;
}

namespace {

using Kind = ScheduleField::Kind;
using Shown = ScheduleField::Shown;

const auto reductionNames = choiceNames(reductionMappings);
const auto combineNames = choiceNames(blockCombines);

const ScheduleField loopFields[] = {
    scheduleField<&LoopKnobs::vectorAxis>(
        {.name = "vectorAxis",
         .rowName = "vector",
         .meaning = "axis along which a thread takes vectorWidth neighbours",
         .kind = Kind::axis,
         .shown = Shown::text}),
    scheduleField<&LoopKnobs::vectorWidth>(
        {.name = "vectorWidth",
         .rowName = "width",
         .meaning = "elements of a thread along vectorAxis: 1, 2, 4, 8, of 16 bytes at most",
         .least = 1,
         .most = 16,
         .shown = Shown::text}),
    scheduleField<&LoopKnobs::laneAxis>({.name = "laneAxis",
                                         .rowName = "lanes",
                                         .meaning = "axis along which neighbouring threads lie",
                                         .kind = Kind::axis,
                                         .shown = Shown::text}),
    scheduleField<&LoopKnobs::reduction>(
        {.name = "reduction",
         .rowName = "reduction",
         .meaning = "how the reduced axes are spread over threads and blocks",
         .kind = Kind::choice,
         .choices = reductionNames,
         .noun = "mapping",
         .shown = Shown::text}),
    scheduleField<&LoopKnobs::threads>({.name = "threads",
                                        .rowName = "threads",
                                        .meaning = "threads of a block",
                                        .least = 1,
                                        .most = 1024,
                                        .shown = Shown::text}),
    scheduleField<&LoopKnobs::threadsPerRow>(
        {.name = "threadsPerRow",
         .rowName = "perRow",
         .meaning = "threads of a block that share a row or column",
         .least = 1,
         .most = 1024,
         .shown = Shown::text}),
    scheduleField<&LoopKnobs::combine>(
        {.name = "combine",
         .rowName = "combine",
         .meaning = "how the threads of a block combine partial results",
         .kind = Kind::choice,
         .choices = combineNames,
         .noun = "combination",
         .isOptional = true,
         .shown = Shown::text}),
    scheduleField<&LoopKnobs::blocksPerRow>({.name = "blocksPerRow",
                                             .rowName = "blocks",
                                             .meaning =
                                                 "blocks that share a column of cluster-columns or "
                                                 "grid-columns",
                                             .least = 1,
                                             .isOptional = true,
                                             .shown = Shown::text})};

std::string counted(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string describeReduction(const LoopKnobs &knobs) {
  const std::string rows =
      fmt::format("{} a block", counted(knobs.threads / std::max(1, knobs.threadsPerRow), "row"));
  switch (knobs.reduction) {
    case ReductionMapping::none: return fmt::format("{} threads a block", knobs.threads);
    case ReductionMapping::sequential:
      return fmt::format("one thread a row, {} threads a block", knobs.threads);
    case ReductionMapping::warp:
      if (knobs.threadsPerRow == 32) return fmt::format("one warp a row, {}", rows);
      return fmt::format("{} of a warp a row, {}", counted(knobs.threadsPerRow, "lane"), rows);
    case ReductionMapping::block: {
      const std::string combined = knobs.combine == BlockCombine::shuffle
                                       ? ""
                                       : fmt::format(", {} combine", nameOf(knobs.combine));
      if (knobs.threadsPerRow == knobs.threads)
        return fmt::format("one block of {} threads a row{}", knobs.threads, combined);
      return fmt::format("{} threads a row, {}{}", knobs.threadsPerRow, rows, combined);
    }
    case ReductionMapping::warpColumns:
      return fmt::format("{} a column, {} a block", counted(knobs.threadsPerRow, "lane"),
                         counted(knobs.threads / knobs.threadsPerRow, "column"));
    case ReductionMapping::blockColumns:
    case ReductionMapping::clusterColumns:
    case ReductionMapping::gridColumns: {
      std::string shared;
      if (knobs.reduction == ReductionMapping::clusterColumns)
        shared = fmt::format(", clusters of {}", counted(knobs.blocksPerRow, "block"));
      if (knobs.reduction == ReductionMapping::gridColumns)
        shared = fmt::format(", {} of the grid a column", counted(knobs.blocksPerRow, "block"));
      return fmt::format("{} a column, {} a block{}", counted(knobs.threadsPerRow, "thread"),
                         counted(knobs.threads / knobs.threadsPerRow, "column"), shared);
    }
  }
  return "";
}

std::string describeKnobs(const Kernel &kernel, const Knobs &any) {
  const auto nameOfAxis = [&](AxisId axis) { return kernel.axes[size_t(axis)].name; };
  const auto &knobs = any.get<LoopKnobs>();
  std::string text = "scalar";
  if (knobs.vectorAxis >= 0 && knobs.vectorWidth > 1)
    text = fmt::format("vector {} x {} along {}", knobs.vectorWidth,
                       nameOf(kernel.values[kernel.outputs.front()].dtype),
                       nameOfAxis(knobs.vectorAxis));
  else if (knobs.vectorAxis >= 0)
    text = fmt::format("one element a thread along {}", nameOfAxis(knobs.vectorAxis));
  if (knobs.laneAxis >= 0 && knobs.laneAxis != knobs.vectorAxis)
    text += fmt::format(", lanes along {}", nameOfAxis(knobs.laneAxis));
  return text + ", " + describeReduction(knobs);
}

/// A vector that no operand can use is the scalar kernel in disguise.
bool isUsefulVector(const Kernel &kernel, const LayoutTuple &layouts, const Knobs &any) {
  const auto &knobs = any.get<LoopKnobs>();
  if (knobs.vectorWidth == 1) return true;
  const std::vector<ValueId> values = operandValues(kernel);
  for (size_t i = 0; i < values.size(); ++i)
    if (isVectorAccessed(kernel, values[i], layouts[i], knobs.vectorAxis, knobs.vectorWidth))
      return true;
  return false;
}

std::pair<int, int> vectorAccess(const Knobs &any) {
  const auto &knobs = any.get<LoopKnobs>();
  return {knobs.vectorAxis, knobs.vectorWidth};
}

std::optional<BlockCombine> blockCombine(const Knobs &any) {
  const auto &knobs = any.get<LoopKnobs>();
  if (knobs.reduction != ReductionMapping::block) return std::nullopt;
  return knobs.combine;
}

KnobStructure structure(const Knobs &any) {
  const auto &knobs = any.get<LoopKnobs>();
  const bool isShared = isRowMapping(knobs.reduction) || isColumnMapping(knobs.reduction);
  return {.fields = {knobs.vectorAxis, knobs.vectorWidth, knobs.laneAxis, int(knobs.reduction),
                     int(knobs.combine),
                     isShared ? knobs.threadsPerRow * 65536 + knobs.blocksPerRow - 1 : 0},
          .vectorWidth = knobs.vectorWidth,
          .reducesRows = knobs.reduction != ReductionMapping::none};
}

/// Whether the space lists them but for the threads of a block that reduces a row: a block takes up
/// to 1,024, more than selection tries. Halving steps take powers of two.
bool takesOtherBlock(const Kernel &kernel, const Configuration &configuration,
                     const Device &device) {
  constexpr int least = 32, most = 1024;
  const Knobs &asked = configuration.knobs;
  const int threads = asked.get<LoopKnobs>().threads;
  if (threads < least || threads > most || !std::has_single_bit(unsigned(threads))) return false;
  bool isTaken = false;
  forEachConfigurationLike(kernel, configuration, device, [&](const Configuration &listed) {
    LoopKnobs knobs = listed.knobs.get<LoopKnobs>();
    if (knobs.reduction == ReductionMapping::block && knobs.threadsPerRow == knobs.threads)
      knobs.threads = knobs.threadsPerRow = threads;
    isTaken = asked == Knobs(knobs);
    return !isTaken;
  });
  return isTaken;
}

codegen::Program lower(const Kernel &kernel, const Configuration &configuration) {
  return codegen::lowerLoop(kernel, configuration, configuration.knobs.get<LoopKnobs>());
}

codegen::Program lowerCopy(const Kernel &kernel, const Configuration &configuration, AxisId along,
                           int width, int threads) {
  return codegen::lowerLoop(
      kernel, configuration,
      {.vectorAxis = along, .vectorWidth = width, .laneAxis = along, .threads = threads});
}

std::string targetRejection(const Kernel &, const Knobs &knobs, std::string_view target) {
  if (knobs.get<LoopKnobs>().reduction != ReductionMapping::clusterColumns ||
      codegen::hasClusters(target))
    return "";
  return "has no clusters of blocks; take grid-columns";
}

}  // namespace

const Family loopFamily = {
    .name = "loop",
    .listsEveryKnob = true,
    .schedule = loopFields,
    .defaults = defaultKnobs<LoopKnobs>,
    .compare = compareKnobs<LoopKnobs>,
    .describe = describeKnobs,
    .space = loopSpace,
    .isUseful = isUsefulVector,
    .vectorAccess = vectorAccess,
    .takesUnlisted = takesOtherBlock,
    .price = loopCost,
    .operandSums = loopSums,
    .blockCombine = blockCombine,
    .structure = structure,
    .lowerCopy = lowerCopy,
    .lower = lower,
    .targetRejection = targetRejection,
    .overwritableInputs = loopOverwritableInputs,
};

}  // namespace weft
