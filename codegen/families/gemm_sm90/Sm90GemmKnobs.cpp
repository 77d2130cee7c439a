// The fields of tensor-core contractions on sm_90a, what is said of a kernel, and the family.
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"

#include "codegen/families/contraction/TokenTiles.h"
#include "codegen/families/gemm_sm90/Sm90Cost.h"
#include "codegen/families/gemm_sm90/Sm90Gemm.h"
#include "codegen/families/gemm_sm90/Sm90GemmFamily.h"
#include "codegen/families/gemm_sm90/Sm90Tile.h"
#include "codegen/targets/Targets.h"
#include "passes/configure/Family.h"
#include "passes/configure/FamilyConfigurations.h"

namespace weft {

std::string_view nameOf(Sm90Schedule schedule) {
  switch (schedule) {
    case Sm90Schedule::cooperative: return "cooperative";
    case Sm90Schedule::pingPong: return "ping-pong";
    case Sm90Schedule::singleConsumer: return "single-consumer";
  }
  return "";
}

namespace {

using Kind = ScheduleField::Kind;
using Shown = ScheduleField::Shown;

const auto sm90ScheduleNames = choiceNames(sm90Schedules);

const ScheduleField sm90GemmFields[] = {
    scheduleField<&Sm90GemmKnobs::schedule>(
        {.name = "schedule",
         .rowName = "schedule",
         .meaning = "consumers share a tile, alternate with tiles of each, or are one",
         .kind = Kind::choice,
         .choices = sm90ScheduleNames,
         .noun = "schedule",
         .waitsItself = int(Sm90Schedule::singleConsumer),
         .shown = Shown::text}),
    scheduleField<&Sm90GemmKnobs::tileM>({.name = "tileM",
                                          .rowName = "tileM",
                                          .meaning = "rows of C of a tile",
                                          .least = 8,
                                          .most = 256,
                                          .shown = Shown::text}),
    scheduleField<&Sm90GemmKnobs::tileN>({.name = "tileN",
                                          .rowName = "tileN",
                                          .meaning = "columns of C of a tile",
                                          .least = 8,
                                          .most = 256,
                                          .shown = Shown::text}),
    scheduleField<&Sm90GemmKnobs::stages>({.name = "stages",
                                           .rowName = "stages",
                                           .meaning =
                                               "k-tiles of A and B, 128 bytes of k each, in shared "
                                               "memory",
                                           .least = 2,
                                           .most = 32,
                                           .shown = Shown::text}),
    scheduleField<&Sm90GemmKnobs::epilogueStages>(
        {.name = "epilogueStages",
         .rowName = "epilogueStages",
         .meaning = "epilogue subtiles of 64 x 64 in flight, a consumer",
         .least = 1,
         .most = 32,
         .shown = Shown::text}),
    scheduleField<&Sm90GemmKnobs::groupM>(
        {.name = "groupM",
         .rowName = "groupM",
         .meaning = "tiles along m that are taken before the next along n",
         .least = 1,
         .most = 4096,
         .shown = Shown::text}),
    scheduleField<&Sm90GemmKnobs::blocks>({.name = "blocks",
                                           .rowName = "blocks",
                                           .meaning = "blocks of the persistent grid, at most",
                                           .least = 1,
                                           .changesText = false,
                                           .shown = Shown::nowhere}),
    scheduleField<&Sm90GemmKnobs::splitK>(
        {.name = "splitK",
         .rowName = "splitK",
         .meaning = "blocks of a cluster that share the k of one tile",
         .least = 1,
         .most = 8,
         .isOptional = true,
         .shown = Shown::text}),
    scheduleField<&Sm90GemmKnobs::multicastB>(
        {.name = "multicastB",
         .rowName = "multicastB",
         .meaning = "blocks of a cluster that load k-tiles of B for each other",
         .least = 1,
         .most = 2,
         .isOptional = true,
         .shown = Shown::text}),
    scheduleField<&Sm90GemmKnobs::streamK>(
        {.name = "streamK",
         .rowName = "streamK",
         .meaning = "1: stream-K: every block takes as many k-tiles of all tiles",
         .least = 0,
         .most = 1,
         .isOptional = true,
         .shown = Shown::text})};

std::string describeKnobs(const Kernel &kernel, const Knobs &any) {
  const auto &knobs = any.get<Sm90GemmKnobs>();
  const std::string subtiles =
      knobs.schedule == Sm90Schedule::singleConsumer
          ? ""
          : fmt::format(", {} epilogue stages, group-M {}", knobs.epilogueStages, knobs.groupM);
  return fmt::format(
      "wgmma, {} tiles of {} x {}, {} stages{}{}{}{}", nameOf(knobs.schedule), knobs.tileM,
      knobs.tileN, knobs.stages, subtiles,
      knobs.splitK == 1 ? "" : fmt::format(", k over {} blocks", knobs.splitK),
      knobs.multicastB == 1 ? "" : fmt::format(", k-tiles of B for {} blocks", knobs.multicastB),
      knobs.streamK == 0 ? ""
                         : fmt::format(", stream-K runs of k-tiles for {} blocks", knobs.blocks));
}

bool takesStrides(const Kernel &kernel, const LayoutTuple &layouts) {
  return wgmmaProblem(kernel, toConfiguration(kernel, layouts, Sm90GemmKnobs{})).has_value();
}

bool claims(const Kernel &kernel, const LayoutTuple &layouts, const Device &device) {
  return codegen::hasWgmma(device.architecture) && takesStrides(kernel, layouts);
}

std::string rejection(const Kernel &kernel, const Configuration &configuration,
                      const Device &device) {
  return sm90Rejection(kernel, configuration, configuration.knobs.get<Sm90GemmKnobs>(),
                       device.sharedMemoryPerBlock);
}

/// The kernel template accepts any strides that make a GEMM and any tile within the limits: more
/// than enumeration offers, views too.
bool takesUnlisted(const Kernel &kernel, const Configuration &configuration, const Device &device) {
  if (!rejection(kernel, configuration, device).empty()) return false;
  bool isTaken = false;
  const LayoutConstraints any{.inputs = std::vector<std::optional<Layout>>(kernel.inputs.size()),
                              .outputs = std::vector<std::optional<Layout>>(kernel.outputs.size())};
  forEachConfigurationOf(sm90GemmFamily, kernel, device, any, [&](const Configuration &) {
    isTaken = true;
    return false;
  });
  return isTaken;
}

std::vector<Knobs> unlistedKnobs(const Kernel &kernel, const LayoutTuple &layouts,
                                 const Device &device) {
  const std::vector<Sm90GemmKnobs> tiles = streamKTiles(kernel, layouts, device);
  return {tiles.begin(), tiles.end()};
}

/// Single-consumer tiles may start before their operands are there, and the number of tokens is
/// one.
bool endsSums(const Kernel &kernel, const Knobs &knobs) {
  return knobs.get<Sm90GemmKnobs>().schedule != Sm90Schedule::singleConsumer &&
         hasEndingSum(kernel);
}

BlockTile blockTile(const Knobs &any) {
  const auto &knobs = any.get<Sm90GemmKnobs>();
  return {.rows = knobs.tileM, .columns = knobs.tileN, .multicast = knobs.multicastB};
}

Cost price(const Kernel &kernel, const Configuration &configuration, const Device &device) {
  return sm90Cost(kernel, configuration, configuration.knobs.get<Sm90GemmKnobs>(), device);
}

codegen::Program lower(const Kernel &kernel, const Configuration &configuration) {
  return codegen::lowerSm90Gemm(kernel, configuration, configuration.knobs.get<Sm90GemmKnobs>());
}

std::string targetRejection(const Kernel &, const Knobs &, std::string_view target) {
  if (codegen::hasWgmma(target)) return "";
  return "has no WGMMA; take gemm-sm80, or let weft select for it";
}

}  // namespace

const Family sm90GemmFamily = {
    .name = "gemm-sm90",
    .isGemm = true,
    .takesEpilogues = true,
    .takesPrologues = true,
    .rotatesPairs = true,
    .schedule = sm90GemmFields,
    .defaults = defaultKnobs<Sm90GemmKnobs>,
    .compare = compareKnobs<Sm90GemmKnobs>,
    .describe = describeKnobs,
    .space = sm90GemmSpace,
    .severalStrides = sm90SeveralStridesSpace,
    .isUseful = isUsefulSm90Tile,
    .takesStrides = takesStrides,
    .claims = claims,
    .rejection = rejection,
    .takesUnlisted = takesUnlisted,
    .unlistedKnobs = unlistedKnobs,
    .price = price,
    .endsSums = endsSums,
    .blockTile = blockTile,
    .lower = lower,
    .targetRejection = targetRejection,
};

}  // namespace weft
