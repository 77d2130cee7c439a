// The fields of backward attention by mma.sync, what is said of a kernel, its space, and the
// family.
#include "codegen/families/attention_backward_sm80/Sm80AttentionBackwardKnobs.h"

#include "codegen/families/attention_backward/AttentionBackwardLayouts.h"
#include "codegen/families/attention_backward/AttentionGradients.h"
#include "codegen/families/attention_backward_sm80/Sm80AttentionBackward.h"
#include "codegen/families/attention_backward_sm80/Sm80AttentionBackwardCost.h"
#include "codegen/families/attention_backward_sm80/Sm80AttentionBackwardTile.h"
#include "codegen/targets/Targets.h"
#include "passes/configure/Family.h"
#include "passes/configure/Margins.h"

#include <algorithm>

namespace weft {
namespace {

using Shown = ScheduleField::Shown;

const ScheduleField sm80AttentionBackwardFields[] = {
    scheduleField<&Sm80AttentionBackwardKnobs::tileRows>(
        {.name = "tileRows",
         .rowName = "tileRows",
         .meaning = "keys or queries of a block: 32, 64 or 128",
         .least = 32,
         .most = 128,
         .shown = Shown::text}),
    scheduleField<&Sm80AttentionBackwardKnobs::tileColumns>(
        {.name = "tileColumns",
         .rowName = "tileColumns",
         .meaning = "queries or keys of a step: 16, 32 or 64",
         .least = 16,
         .most = 64,
         .shown = Shown::text}),
    scheduleField<&Sm80AttentionBackwardKnobs::stages>({.name = "stages",
                                                        .rowName = "stages",
                                                        .meaning = "steps in shared memory",
                                                        .least = 2,
                                                        .most = 4,
                                                        .shown = Shown::text})};

std::string describeKnobs(const Kernel &, const Knobs &any) {
  const auto &knobs = any.get<Sm80AttentionBackwardKnobs>();
  return fmt::format("backward attention by mma.sync, {} rows x {} columns, {} stages",
                     knobs.tileRows, knobs.tileColumns, knobs.stages);
}

Expected<ConfigurationSpace, Reason> spaceOf(const Kernel &kernel, const Device &device) {
  if (!device.offers(sm80AttentionBackwardFamily)) return rejected("it is switched off");
  if (!codegen::hasMmaSync(device.architecture))
    return rejected(
        fmt::format("{} has no asynchronous copies and mma.sync as this family "
                    "takes; sm_80 and later have",
                    device.architecture));
  const Expected<AttentionBackwardRegion, Reason> &recognised = attentionBackwardRegion(kernel);
  if (!recognised) return rejected(recognised.error().text);
  const AttentionBackwardRegion &region = *recognised;
  if (std::string reason = attentionBackwardTypeRejection(kernel, region, device, true);
      !reason.empty())
    return rejected(std::move(reason));
  const int rowFloats = codegen::rowFloatsOf(kernel, region);
  ConfigurationSpace space{.family = &sm80AttentionBackwardFamily};
  std::string rejection;
  for (LayoutTuple &tuple : attentionBackwardTuples(kernel, region)) {
    const Expected<AttentionBackwardProblem> problem = attentionBackwardProblem(
        kernel, region, toConfiguration(kernel, tuple, Sm80AttentionBackwardKnobs{}));
    if (!problem) return rejected(problem.error().what());
    if (std::string reason = sm80AttentionBackwardLayoutRejection(*problem); !reason.empty()) {
      rejection = std::move(reason);
      continue;
    }
    if (space.knobs.empty()) {
      if (std::string reason = codegen::gradientRejection(kernel, region, *problem);
          !reason.empty())
        return rejected(std::move(reason));
      const auto tiles = sm80AttentionBackwardTileChoices(*problem, rowFloats);
      if (tiles.empty())
        return rejected(sm80AttentionBackwardTileRejection(
            *problem, sm80SmallestBackwardTile(*problem), rowFloats));
      space.knobs.assign(tiles.begin(), tiles.end());
    }
    space.tuples.push_back(std::move(tuple));
  }
  if (space.tuples.empty()) return rejected(std::move(rejection));
  return space;
}

std::string rejection(const Kernel &kernel, const Configuration &configuration, const Device &) {
  const Expected<AttentionBackwardRegion, Reason> &recognised = attentionBackwardRegion(kernel);
  if (!recognised) return recognised.error().text;
  const AttentionBackwardRegion &region = *recognised;
  const Expected<AttentionBackwardProblem> problem =
      attentionBackwardProblem(kernel, region, configuration);
  if (!problem) return problem.error().what();
  if (std::string reason = codegen::gradientRejection(kernel, region, *problem); !reason.empty())
    return reason;
  if (std::string reason = sm80AttentionBackwardLayoutRejection(*problem); !reason.empty())
    return reason;
  return sm80AttentionBackwardTileRejection(*problem,
                                            configuration.knobs.get<Sm80AttentionBackwardKnobs>(),
                                            codegen::rowFloatsOf(kernel, region));
}

Cost price(const Kernel &kernel, const Configuration &configuration, const Device &device) {
  return sm80AttentionBackwardCost(kernel, configuration,
                                   configuration.knobs.get<Sm80AttentionBackwardKnobs>(), device);
}

codegen::Program lower(const Kernel &kernel, const Configuration &configuration) {
  return codegen::lowerSm80AttentionBackward(kernel, configuration,
                                             configuration.knobs.get<Sm80AttentionBackwardKnobs>());
}

std::string targetRejection(const Kernel &, const Knobs &, std::string_view target) {
  if (codegen::hasMmaSync(target)) return "";
  return "has no mma.sync with fp32 accumulators; sm_80 and later have";
}

}  // namespace

const Family sm80AttentionBackwardFamily = {
    .name = "attention-backward-sm80",
    .takesAttentionBackward = true,
    .marginOfOtherLayouts = margins::besideMeasurements,
    .schedule = sm80AttentionBackwardFields,
    .defaults = defaultKnobs<Sm80AttentionBackwardKnobs>,
    .compare = compareKnobs<Sm80AttentionBackwardKnobs>,
    .describe = describeKnobs,
    .space = spaceOf,
    .rejection = rejection,
    .price = price,
    .lower = lower,
    .targetRejection = targetRejection,
};

}  // namespace weft
