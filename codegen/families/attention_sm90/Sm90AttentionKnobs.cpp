// The fields of fused attention on sm_90a, what is said of a kernel, its space, and the family.
#include "codegen/families/attention_sm90/Sm90AttentionKnobs.h"

#include "codegen/families/attention/AttentionDropout.h"
#include "codegen/families/attention/AttentionLayouts.h"
#include "codegen/families/attention/AttentionScore.h"
#include "codegen/families/attention/PackedMasks.h"
#include "codegen/families/attention_sm90/Sm90Attention.h"
#include "codegen/families/attention_sm90/Sm90AttentionCost.h"
#include "codegen/families/attention_sm90/Sm90AttentionTile.h"
#include "codegen/families/contraction/EpilogueLimits.h"
#include "codegen/targets/Targets.h"
#include "passes/configure/Family.h"
#include "passes/configure/Margins.h"

#include <algorithm>
#include <set>

namespace weft {
namespace {

using Shown = ScheduleField::Shown;

const ScheduleField sm90AttentionFields[] = {
    scheduleField<&Sm90AttentionKnobs::tileQueries>(
        {.name = "tileQueries",
         .rowName = "tileQueries",
         .meaning = "query rows of a tile, 64 a consumer warpgroup",
         .least = 64,
         .most = 192,
         .shown = Shown::text}),
    scheduleField<&Sm90AttentionKnobs::tileKeys>({.name = "tileKeys",
                                                  .rowName = "tileKeys",
                                                  .meaning = "keys of a block",
                                                  .least = 16,
                                                  .most = 256,
                                                  .shown = Shown::text}),
    scheduleField<&Sm90AttentionKnobs::stages>(
        {.name = "stages",
         .rowName = "stages",
         .meaning = "blocks of keys and of values in shared memory, each",
         .least = 2,
         .most = 8,
         .shown = Shown::text}),
    scheduleField<&Sm90AttentionKnobs::queryStages>({.name = "queryStages",
                                                     .rowName = "queryStages",
                                                     .meaning = "tiles of queries in shared memory",
                                                     .least = 1,
                                                     .most = 2,
                                                     .shown = Shown::text}),
    scheduleField<&Sm90AttentionKnobs::ordered>(
        {.name = "ordered",
         .rowName = "ordered",
         .meaning = "1: consumers issue their GEMMs one after another",
         .least = 0,
         .most = 1,
         .shown = Shown::text}),
    scheduleField<&Sm90AttentionKnobs::headGroup>(
        {.name = "headGroup",
         .rowName = "headGroup",
         .meaning = "heads whose tiles are taken together, longest first; 0: head by head",
         .least = 0,
         .isOptional = true,
         .shown = Shown::text}),
    scheduleField<&Sm90AttentionKnobs::residents>(
        {.name = "residents",
         .rowName = "residents",
         .meaning = "blocks that share a multiprocessor: 3; 0: two of one consumer where shared "
                    "memory allows, else one",
         .least = 0,
         .most = 3,
         .isOptional = true,
         .shown = Shown::text}),
    scheduleField<&Sm90AttentionKnobs::keyConsumers>(
        {.name = "keyConsumers",
         .rowName = "keyConsumers",
         .meaning =
             "consumers that share 64 query rows and take blocks of keys in turn: 2 or 3; 0: "
             "none do",
         .least = 0,
         .most = 3,
         .isOptional = true,
         .shown = Shown::text}),
    scheduleField<&Sm90AttentionKnobs::packed>(
        {.name = "packed",
         .rowName = "packed",
         .meaning = "1: rows are the queries of all heads that share keys and values",
         .least = 0,
         .most = 1,
         .isOptional = true,
         .shown = Shown::text}),
    scheduleField<&Sm90AttentionKnobs::splits>(
        {.name = "splits",
         .rowName = "splits",
         .meaning = "blocks that share the keys of a tile of queries",
         .least = 1,
         .most = 4096,
         .isOptional = true,
         .shown = Shown::text}),
    scheduleField<&Sm90AttentionKnobs::blocks>({.name = "blocks",
                                                .rowName = "blocks",
                                                .meaning = "blocks of the persistent grid, at most",
                                                .least = 1,
                                                .changesText = false,
                                                .shown = Shown::nowhere})};

std::string describeKnobs(const Kernel &, const Knobs &any) {
  const auto &knobs = any.get<Sm90AttentionKnobs>();
  return fmt::format(
      "fused attention by wgmma, {} {} x {} keys, {} stages, {} of queries{}{}{}{}{}",
      knobs.tileQueries, knobs.packed != 0 ? "rows of packed heads" : "query rows", knobs.tileKeys,
      knobs.stages, knobs.queryStages, knobs.ordered == 1 ? ", ordered consumers" : "",
      knobs.residents == 3 ? ", three blocks a multiprocessor" : "",
      knobs.keyConsumers == 0
          ? ""
          : fmt::format(", blocks of keys by {} consumers in turn", knobs.keyConsumers),
      knobs.headGroup == 0
          ? ""
          : fmt::format(", tiles of {} heads together, longest first", knobs.headGroup),
      knobs.splits == 1 ? "" : fmt::format(", {} splits of keys", knobs.splits));
}

/// Why the family does not take the kernel, whatever its layouts.
std::string kernelRejection(const Kernel &kernel, const AttentionRegion &region,
                            const Device &device) {
  if (std::string reason = attentionTypeRejection(kernel, region, device); !reason.empty())
    return reason;
  if (std::string reason = sm90RotatedQueriesRejection(kernel, region); !reason.empty())
    return reason;
  return codegen::scoreRejection(kernel, region);
}

Expected<ConfigurationSpace, Reason> spaceOf(const Kernel &asked, const Device &device) {
  if (!device.offers(sm90AttentionFamily)) return rejected("it is switched off");
  if (!codegen::hasWgmma(device.architecture))
    return rejected(fmt::format("{} has no WGMMA", device.architecture));
  const auto ended = withoutMasksOfPacked(asked);
  const Kernel &kernel = ended ? ended->kernel : asked;
  const Expected<AttentionRegion, Reason> &recognised = attentionRegion(kernel);
  if (!recognised) return rejected(recognised.error().text);
  const AttentionRegion &region = *recognised;
  if (std::string reason = kernelRejection(kernel, region, device); !reason.empty())
    return rejected(std::move(reason));
  ConfigurationSpace space{.family = &sm90AttentionFamily};
  std::set<Knobs> knobs;
  std::string rejection;
  for (LayoutTuple &tuple : attentionTuples(kernel, region)) {
    const Expected<AttentionProblem> problem =
        attentionProblem(kernel, region, toConfiguration(kernel, tuple, Sm90AttentionKnobs{}));
    if (!problem) return rejected(problem.error().what());
    if (std::string reason = attentionDropoutRejection(kernel, region, *problem); !reason.empty())
      return rejected(std::move(reason));
    if (std::string reason = sm90AttentionLayoutRejection(*problem); !reason.empty()) {
      rejection = std::move(reason);
      continue;
    }
    if (knobs.empty()) {
      const ScoreNeeds needs = scoreNeeds(kernel, region, *problem);
      for (const Sm90AttentionKnobs &one :
           sm90AttentionTileChoices(*problem, needs, device.multiprocessors))
        knobs.insert(one);
      if (knobs.empty())
        return rejected(sm90AttentionTileRejection(
            *problem, Sm90AttentionKnobs{.tileQueries = 64, .tileKeys = 32}, needs));
    }
    space.tuples.push_back(std::move(tuple));
  }
  if (space.tuples.empty()) return rejected(std::move(rejection));
  space.knobs.assign(knobs.begin(), knobs.end());
  return space;
}

std::string rejection(const Kernel &asked, const Configuration &configuration, const Device &) {
  const auto ended = withoutMasksOfPacked(asked);
  const Kernel &kernel = ended ? ended->kernel : asked;
  const Expected<AttentionRegion, Reason> &recognised = attentionRegion(kernel);
  if (!recognised) return recognised.error().text;
  const Expected<AttentionProblem> problem = attentionProblem(kernel, *recognised, configuration);
  if (!problem) return problem.error().what();
  if (std::string reason = sm90RotatedQueriesRejection(kernel, *recognised); !reason.empty())
    return reason;
  if (std::string reason = sm90AttentionLayoutRejection(*problem); !reason.empty()) return reason;
  const auto &knobs = configuration.knobs.get<Sm90AttentionKnobs>();
  if (std::string reason =
          sm90AttentionTileRejection(*problem, knobs, scoreNeeds(kernel, *recognised, *problem));
      !reason.empty())
    return reason;
  return knobs.packed != 0 ? sm90PackedLayoutRejection(*problem) : "";
}

bool claims(const Kernel &kernel, const LayoutTuple &layouts, const Device &device) {
  if (!codegen::hasWgmma(device.architecture) || !device.offers(sm90AttentionFamily)) return false;
  const Expected<AttentionRegion, Reason> &recognised = attentionRegion(kernel);
  if (!recognised) return false;
  const Expected<AttentionProblem> problem =
      attentionProblem(kernel, *recognised, toConfiguration(kernel, layouts, Sm90AttentionKnobs{}));
  return problem && sm90AttentionLayoutRejection(*problem).empty() &&
         !sm90AttentionTileChoices(*problem, scoreNeeds(kernel, *recognised, *problem),
                                   device.multiprocessors)
              .empty();
}

/// Heads of a group are rows of one box where they lie at one stride.
bool fitsLayouts(const Kernel &kernel, const LayoutTuple &layouts, const Knobs &knobs) {
  if (knobs.get<Sm90AttentionKnobs>().packed == 0) return true;
  const Expected<AttentionRegion, Reason> &recognised = attentionRegion(kernel);
  if (!recognised) return false;
  const Expected<AttentionProblem> &problem =
      keptAttentionProblem(kernel, *recognised, toConfiguration(kernel, layouts, knobs));
  return problem && sm90PackedLayoutRejection(*problem).empty();
}

BlockTile blockTile(const Knobs &any) {
  const auto &knobs = any.get<Sm90AttentionKnobs>();
  return {.rows = knobs.tileQueries, .columns = knobs.tileKeys};
}

Cost price(const Kernel &kernel, const Configuration &configuration, const Device &device) {
  return sm90AttentionCost(kernel, configuration, configuration.knobs.get<Sm90AttentionKnobs>(),
                           device);
}

int64_t workspaceBytes(const Kernel &kernel, const Configuration &configuration) {
  const auto &knobs = configuration.knobs.get<Sm90AttentionKnobs>();
  if (knobs.splits == 1) return 0;
  const Expected<AttentionRegion, Reason> &recognised = attentionRegion(kernel);
  if (!recognised) return 0;
  const Expected<AttentionProblem> problem = attentionProblem(kernel, *recognised, configuration);
  return problem ? sm90AttentionPartialBytes(*problem, knobs) : 0;
}

codegen::Program lower(const Kernel &kernel, const Configuration &configuration) {
  return codegen::lowerSm90Attention(kernel, configuration,
                                     configuration.knobs.get<Sm90AttentionKnobs>());
}

std::string targetRejection(const Kernel &, const Knobs &, std::string_view target) {
  if (codegen::hasWgmma(target)) return "";
  return "has no WGMMA; take attention-sm80, or let weft select for it";
}

}  // namespace

const Family sm90AttentionFamily = {
    .name = "attention-sm90",
    .takesAttention = true,
    .marginOfOtherLayouts = margins::attentionLayouts,
    .schedule = sm90AttentionFields,
    .defaults = defaultKnobs<Sm90AttentionKnobs>,
    .compare = compareKnobs<Sm90AttentionKnobs>,
    .describe = describeKnobs,
    .space = spaceOf,
    .isUseful = fitsLayouts,
    .claims = claims,
    .rejection = rejection,
    .price = price,
    .blockTile = blockTile,
    .lower = lower,
    .targetRejection = targetRejection,
    .workspaceBytes = workspaceBytes,
};

}  // namespace weft
