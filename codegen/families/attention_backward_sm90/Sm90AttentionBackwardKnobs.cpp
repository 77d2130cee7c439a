// The fields of fused attention backward on sm_90a, what is said of a kernel, its space, and the
// family.
#include "codegen/families/attention_backward_sm90/Sm90AttentionBackwardKnobs.h"

#include "codegen/families/attention/VisibleScores.h"
#include "codegen/families/attention_backward/AttentionBackwardLayouts.h"
#include "codegen/families/attention_backward/AttentionGradients.h"
#include "codegen/families/attention_backward_sm90/Sm90AttentionBackward.h"
#include "codegen/families/attention_backward_sm90/Sm90AttentionBackwardCost.h"
#include "codegen/families/attention_backward_sm90/Sm90AttentionBackwardTile.h"
#include "codegen/targets/Targets.h"
#include "passes/configure/Family.h"
#include "passes/configure/Margins.h"

#include <algorithm>

namespace weft {

std::string_view nameOf(BackwardGradients gradients) {
  switch (gradients) {
    case BackwardGradients::together: return "together";
    case BackwardGradients::apart: return "apart";
    case BackwardGradients::single: return "single";
  }
  return "";
}

std::string_view nameOf(GradientSums sums) {
  switch (sums) {
    case GradientSums::ordered: return "ordered";
    case GradientSums::unordered: return "unordered";
  }
  return "";
}

namespace {

using Shown = ScheduleField::Shown;

const auto gradientNames = choiceNames(backwardGradients);

const auto sumNames = choiceNames(gradientSums);

const ScheduleField sm90AttentionBackwardFields[] = {
    scheduleField<&Sm90AttentionBackwardKnobs::gradients>(
        {.name = "gradients",
         .rowName = "gradients",
         .meaning = "tiles of keys add to the gradient of queries, or tiles of queries sum it; "
                    "single: those of keys and of values have tiles each, too",
         .kind = ScheduleField::Kind::choice,
         .choices = gradientNames,
         .noun = "way to gradients",
         .isOptional = true,
         .shown = Shown::text}),
    scheduleField<&Sm90AttentionBackwardKnobs::sums>(
        {.name = "sums",
         .rowName = "sums",
         .meaning = "tiles of keys add to the gradient of queries in the order of keys, or in any",
         .kind = ScheduleField::Kind::choice,
         .choices = sumNames,
         .noun = "order of sums",
         .nondeterministic = int(GradientSums::unordered),
         .isOptional = true,
         .shown = Shown::text}),
    scheduleField<&Sm90AttentionBackwardKnobs::tileQueries>(
        {.name = "tileQueries",
         .rowName = "tileQueries",
         .meaning = "queries of a block; apart, keys of one too",
         .least = 32,
         .most = 128,
         .shown = Shown::text}),
    scheduleField<&Sm90AttentionBackwardKnobs::tileKeys>(
        {.name = "tileKeys",
         .rowName = "tileKeys",
         .meaning = "keys of a tile, 64 a consumer warpgroup; apart, queries of one too",
         .least = 64,
         .most = 192,
         .shown = Shown::text}),
    scheduleField<&Sm90AttentionBackwardKnobs::headGroup>(
        {.name = "headGroup",
         .rowName = "headGroup",
         .meaning = "heads of tiles that are taken together, first keys first",
         .least = 1,
         .shown = Shown::text}),
    scheduleField<&Sm90AttentionBackwardKnobs::headsOfTile>(
        {.name = "headsOfTile",
         .rowName = "headsOfTile",
         .meaning = "heads of queries that share a tile's keys, 0 for all of a group",
         .least = 0,
         .isOptional = true,
         .shown = Shown::text}),
    scheduleField<&Sm90AttentionBackwardKnobs::blocks>(
        {.name = "blocks",
         .rowName = "blocks",
         .meaning = "blocks of the persistent grid, at most",
         .least = 1,
         .changesText = false,
         .shown = Shown::nowhere})};

std::string describeKnobs(const Kernel &, const Knobs &any) {
  const auto &knobs = any.get<Sm90AttentionBackwardKnobs>();
  if (knobs.gradients == BackwardGradients::single)
    return fmt::format(
        "fused attention backward by wgmma, tiles of {} keys, values or queries x {}, of {} heads "
        "together",
        knobs.tileKeys, knobs.tileQueries, knobs.headGroup);
  if (knobs.gradients == BackwardGradients::apart)
    return fmt::format(
        "fused attention backward by wgmma, tiles of {} keys or queries x {}, of {} heads "
        "together{}",
        knobs.tileKeys, knobs.tileQueries, knobs.headGroup,
        knobs.headsOfTile > 0
            ? fmt::format(", those of keys each of {} of the heads that share them",
                          knobs.headsOfTile)
            : "");
  std::string text = fmt::format(
      "fused attention backward by wgmma, {} keys x {} queries, tiles of {} heads together, first "
      "keys first",
      knobs.tileKeys, knobs.tileQueries, knobs.headGroup);
  if (knobs.headsOfTile > 0)
    text += fmt::format(", each of {} of the heads that share keys", knobs.headsOfTile);
  if (knobs.sums == GradientSums::unordered) text += ", sums of queries in any order";
  return text;
}

Expected<ConfigurationSpace, Reason> spaceOf(const Kernel &kernel, const Device &device) {
  if (!device.offers(sm90AttentionBackwardFamily)) return rejected("it is switched off");
  if (!codegen::hasWgmma(device.architecture))
    return rejected(fmt::format("{} has no WGMMA", device.architecture));
  const Expected<AttentionBackwardRegion, Reason> &recognised = attentionBackwardRegion(kernel);
  if (!recognised) return rejected(recognised.error().text);
  const AttentionBackwardRegion &region = *recognised;
  if (std::string reason = attentionBackwardTypeRejection(kernel, region, device); !reason.empty())
    return rejected(std::move(reason));
  const int rowFloats = mostRowFloats(kernel, region);
  const bool readsScores =
      region.storedScores >= 0 || std::ranges::any_of(region.inputs, [&](const ScoreInput &input) {
        const std::vector<AxisId> &axes = kernel.values[size_t(input.value)].axes;
        return std::ranges::find(axes, region.keyAxis) != axes.end();
      });
  ConfigurationSpace space{.family = &sm90AttentionBackwardFamily};
  std::string rejection;
  for (LayoutTuple &tuple : attentionBackwardTuples(kernel, region)) {
    const Expected<AttentionBackwardProblem> problem = attentionBackwardProblem(
        kernel, region, toConfiguration(kernel, tuple, Sm90AttentionBackwardKnobs{}));
    if (!problem) return rejected(problem.error().what());
    if (std::string reason = codegen::gradientRejection(kernel, region, *problem); !reason.empty())
      return rejected(std::move(reason));
    if (std::string reason = sm90AttentionBackwardLayoutRejection(*problem); !reason.empty()) {
      rejection = std::move(reason);
      continue;
    }
    if (space.knobs.empty()) {
      // Beside a table, ptxas spills registers of tiles of one head of several, together.
      const bool hasTables =
          visibleScores(kernel, attentionOf(kernel, region), problem->attention).hasTables;
      for (const Sm90AttentionBackwardKnobs &one :
           sm90AttentionBackwardTileChoices(*problem, rowFloats, readsScores, region.hasDropout,
                                            hasTables, device.multiprocessors))
        for (const GradientSums sums : gradientSums) {
          Sm90AttentionBackwardKnobs knobs = one;
          knobs.sums = sums;
          const bool isOffered =
              sums == GradientSums::ordered ||
              (device.mayBeNondeterministic &&
               sm90AttentionBackwardTileRejection(*problem, knobs, rowFloats, region.hasDropout)
                   .empty());
          const bool spills =
              one.gradients == BackwardGradients::together && one.headsOfTile == 1 && hasTables;
          if (isOffered && !spills) space.knobs.push_back(knobs);
        }
      if (space.knobs.empty()) {
        const AttentionProblem &attention = problem->attention;
        const bool isWide = std::max(attention.headDim, attention.valueDim) > 128;
        return rejected(sm90AttentionBackwardTileRejection(
            *problem,
            {.gradients = isWide ? BackwardGradients::single : BackwardGradients::together,
             .tileQueries = isWide ? 32 : 64},
            rowFloats, region.hasDropout));
      }
    }
    space.tuples.push_back(std::move(tuple));
  }
  if (space.tuples.empty()) return rejected(std::move(rejection));
  return space;
}

std::string rejection(const Kernel &kernel, const Configuration &configuration, const Device &) {
  const Expected<AttentionBackwardRegion, Reason> &recognised = attentionBackwardRegion(kernel);
  if (!recognised) return recognised.error().text;
  const Expected<AttentionBackwardProblem> problem =
      attentionBackwardProblem(kernel, *recognised, configuration);
  if (!problem) return problem.error().what();
  if (std::string reason = sm90AttentionBackwardLayoutRejection(*problem); !reason.empty())
    return reason;
  return sm90AttentionBackwardTileRejection(
      *problem, configuration.knobs.get<Sm90AttentionBackwardKnobs>(),
      mostRowFloats(kernel, *recognised), recognised->hasDropout);
}

Cost price(const Kernel &kernel, const Configuration &configuration, const Device &device) {
  return sm90AttentionBackwardCost(kernel, configuration,
                                   configuration.knobs.get<Sm90AttentionBackwardKnobs>(), device);
}

int64_t workspaceBytes(const Kernel &kernel, const Configuration &configuration) {
  const Expected<AttentionBackwardRegion, Reason> &recognised = attentionBackwardRegion(kernel);
  if (!recognised) return 0;
  const Expected<AttentionBackwardProblem> problem =
      attentionBackwardProblem(kernel, *recognised, configuration);
  return problem ? sm90AttentionBackwardWorkspaceBytes(
                       *problem, configuration.knobs.get<Sm90AttentionBackwardKnobs>())
                 : 0;
}

codegen::Program lower(const Kernel &kernel, const Configuration &configuration) {
  return codegen::lowerSm90AttentionBackward(kernel, configuration,
                                             configuration.knobs.get<Sm90AttentionBackwardKnobs>());
}

std::string targetRejection(const Kernel &, const Knobs &, std::string_view target) {
  if (codegen::hasWgmma(target)) return "";
  return "has no WGMMA; take attention-backward-sm80, or let weft select for it";
}

}  // namespace

const Family sm90AttentionBackwardFamily = {
    .name = "attention-backward-sm90",
    .takesAttentionBackward = true,
    .marginOfOtherLayouts = margins::attentionBackwardLayouts,
    .schedule = sm90AttentionBackwardFields,
    .defaults = defaultKnobs<Sm90AttentionBackwardKnobs>,
    .compare = compareKnobs<Sm90AttentionBackwardKnobs>,
    .describe = describeKnobs,
    .space = spaceOf,
    .rejection = rejection,
    .price = price,
    .lower = lower,
    .targetRejection = targetRejection,
    .workspaceBytes = workspaceBytes,
};

}  // namespace weft
