// The fields of fused attention by mma.sync, what is said of a kernel, its space, and the family.
#include "codegen/families/attention_sm80/Sm80AttentionKnobs.h"

#include "codegen/families/attention/AttentionDropout.h"
#include "codegen/families/attention/AttentionLayouts.h"
#include "codegen/families/attention/AttentionScore.h"
#include "codegen/families/attention/RotatedQueries.h"
#include "codegen/families/attention_sm80/Sm80Attention.h"
#include "codegen/families/attention_sm80/Sm80AttentionCost.h"
#include "codegen/families/attention_sm80/Sm80AttentionTile.h"
#include "codegen/families/contraction/EpilogueLimits.h"
#include "codegen/targets/Targets.h"
#include "passes/configure/Family.h"
#include "passes/configure/FamilyConfigurations.h"
#include "passes/configure/Margins.h"

#include <algorithm>

namespace weft {
namespace {

using Shown = ScheduleField::Shown;

const ScheduleField sm80AttentionFields[] = {
    scheduleField<&Sm80AttentionKnobs::tileQueries>(
        {.name = "tileQueries",
         .rowName = "tileQueries",
         .meaning = "rows of a block: 16, 32, 64 or 128",
         .least = 16,
         .most = 128,
         .shown = Shown::text}),
    scheduleField<&Sm80AttentionKnobs::tileKeys>({.name = "tileKeys",
                                                  .rowName = "tileKeys",
                                                  .meaning = "keys of a tile: 32, 64 or 128; of "
                                                             "f32 also 16",
                                                  .least = 16,
                                                  .most = 128,
                                                  .shown = Shown::text}),
    scheduleField<&Sm80AttentionKnobs::stages>(
        {.name = "stages",
         .rowName = "stages",
         .meaning = "tiles of keys and values in shared memory",
         .least = 2,
         .most = 4,
         .shown = Shown::text}),
    scheduleField<&Sm80AttentionKnobs::packed>(
        {.name = "packed",
         .rowName = "packed",
         .meaning = "1: rows are the queries of all heads that share keys and values",
         .least = 0,
         .most = 1,
         .isOptional = true,
         .shown = Shown::text}),
    scheduleField<&Sm80AttentionKnobs::splits>(
        {.name = "splits",
         .rowName = "splits",
         .meaning = "blocks that share the keys of a tile of rows",
         .least = 1,
         .most = 4096,
         .isOptional = true,
         .shown = Shown::text})};

std::string describeKnobs(const Kernel &, const Knobs &any) {
  const auto &knobs = any.get<Sm80AttentionKnobs>();
  return fmt::format("fused attention by mma.sync, {} {} x {} keys, {} stages{}", knobs.tileQueries,
                     knobs.packed != 0 ? "rows of packed heads" : "queries", knobs.tileKeys,
                     knobs.stages,
                     knobs.splits > 1 ? fmt::format(", {} splits of keys", knobs.splits) : "");
}

/// Why the family does not take the kernel, whatever its layouts.
std::string kernelRejection(const Kernel &kernel, const AttentionRegion &region,
                            const Device &device) {
  if (std::string reason = attentionTypeRejection(kernel, region, device, true); !reason.empty())
    return reason;
  if (std::string reason = rotatedQueriesRejection(kernel, region); !reason.empty()) return reason;
  return codegen::scoreRejection(kernel, region);
}

Expected<ConfigurationSpace, Reason> spaceOf(const Kernel &kernel, const Device &device) {
  if (!device.offers(sm80AttentionFamily)) return rejected("it is switched off");
  if (!codegen::hasMmaSync(device.architecture))
    return rejected(
        fmt::format("{} has no asynchronous copies and mma.sync as this family "
                    "takes; sm_80 and later have",
                    device.architecture));
  const Expected<AttentionRegion, Reason> &recognised = attentionRegion(kernel);
  if (!recognised) return rejected(recognised.error().text);
  const AttentionRegion &region = *recognised;
  if (std::string reason = kernelRejection(kernel, region, device); !reason.empty())
    return rejected(std::move(reason));
  ConfigurationSpace space{.family = &sm80AttentionFamily};
  std::string rejection;
  std::vector<Sm80AttentionKnobs> tiles, decoding;
  bool isAsked = false, hasOther = false;
  for (LayoutTuple &tuple : attentionTuples(kernel, region)) {
    const Expected<AttentionProblem> problem =
        attentionProblem(kernel, region, toConfiguration(kernel, tuple, Sm80AttentionKnobs{}));
    if (!problem) return rejected(problem.error().what());
    if (std::string reason = attentionDropoutRejection(kernel, region, *problem); !reason.empty())
      return rejected(std::move(reason));
    if (std::string reason = sm80AttentionLayoutRejection(*problem); !reason.empty()) {
      rejection = std::move(reason);
      continue;
    }
    if (!isAsked) {
      isAsked = true;
      decoding = sm80DecodingChoices(kernel, region, *problem, device);
    }
    // On sm_90a the other family has all but few queries and many keys, and scores that gather,
    // where price decides.
    const Sm80ScoreNeeds needs = sm80ScoreNeeds(kernel, region, *problem);
    const bool mayBeOther = !region.readsTf32 && !region.turned && needs.gatheredTables == 0;
    const Family *const other =
        mayBeOther ? claimantOf(&Family::takesAttention, kernel, tuple, device) : nullptr;
    if (other && decoding.empty()) {
      rejection = fmt::format("{} takes heads whose rows start at multiples of 16 bytes", *other);
      continue;
    }
    hasOther = hasOther || other;
    if (tiles.empty()) {
      tiles = sm80AttentionTileChoices(*problem, needs);
      if (tiles.empty())
        return rejected(sm80AttentionTileRejection(*problem, sm80SmallestTile(*problem), needs));
    }
    space.tuples.push_back(std::move(tuple));
  }
  if (space.tuples.empty()) return rejected(std::move(rejection));
  if (!hasOther) space.knobs.assign(tiles.begin(), tiles.end());
  for (const Sm80AttentionKnobs &knobs : decoding)
    if (std::ranges::find(space.knobs, Knobs(knobs)) == space.knobs.end())
      space.knobs.emplace_back(knobs);
  return space;
}

std::string rejection(const Kernel &kernel, const Configuration &configuration, const Device &) {
  const Expected<AttentionRegion, Reason> &recognised = attentionRegion(kernel);
  if (!recognised) return recognised.error().text;
  const Expected<AttentionProblem> problem = attentionProblem(kernel, *recognised, configuration);
  if (!problem) return problem.error().what();
  if (std::string reason = rotatedQueriesRejection(kernel, *recognised); !reason.empty())
    return reason;
  if (std::string reason = attentionDropoutRejection(kernel, *recognised, *problem);
      !reason.empty())
    return reason;
  if (std::string reason = sm80AttentionLayoutRejection(*problem); !reason.empty()) return reason;
  return sm80AttentionTileRejection(*problem, configuration.knobs.get<Sm80AttentionKnobs>(),
                                    sm80ScoreNeeds(kernel, *recognised, *problem));
}

/// Any tile and split within the limits, under layouts that the space has.
bool takesUnlisted(const Kernel &kernel, const Configuration &configuration, const Device &device) {
  return rejection(kernel, configuration, device).empty() &&
         hasConfigurationLike(kernel, configuration, device);
}

BlockTile blockTile(const Knobs &any) {
  const auto &knobs = any.get<Sm80AttentionKnobs>();
  return {.rows = knobs.tileQueries, .columns = knobs.tileKeys};
}

Cost price(const Kernel &kernel, const Configuration &configuration, const Device &device) {
  return sm80AttentionCost(kernel, configuration, configuration.knobs.get<Sm80AttentionKnobs>(),
                           device);
}

int64_t workspaceBytes(const Kernel &kernel, const Configuration &configuration) {
  const auto &knobs = configuration.knobs.get<Sm80AttentionKnobs>();
  if (knobs.splits == 1) return 0;
  const Expected<AttentionRegion, Reason> &recognised = attentionRegion(kernel);
  if (!recognised) return 0;
  const Expected<AttentionProblem> problem = attentionProblem(kernel, *recognised, configuration);
  return problem ? sm80AttentionPartialBytes(*problem, knobs) : 0;
}

codegen::Program lower(const Kernel &kernel, const Configuration &configuration) {
  return codegen::lowerSm80Attention(kernel, configuration,
                                     configuration.knobs.get<Sm80AttentionKnobs>());
}

std::string targetRejection(const Kernel &, const Knobs &, std::string_view target) {
  if (codegen::hasMmaSync(target)) return "";
  return "has no mma.sync with fp32 accumulators; sm_80 and later have";
}

}  // namespace

const Family sm80AttentionFamily = {
    .name = "attention-sm80",
    .takesAttention = true,
    .marginOfOtherLayouts = margins::besideMeasurements,
    .schedule = sm80AttentionFields,
    .defaults = defaultKnobs<Sm80AttentionKnobs>,
    .compare = compareKnobs<Sm80AttentionKnobs>,
    .describe = describeKnobs,
    .space = spaceOf,
    .rejection = rejection,
    .takesUnlisted = takesUnlisted,
    .price = price,
    .blockTile = blockTile,
    .lower = lower,
    .targetRejection = targetRejection,
    .workspaceBytes = workspaceBytes,
};

}  // namespace weft
