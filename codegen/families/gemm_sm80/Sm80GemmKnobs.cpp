// The fields of tensor-core contractions from sm_80 on, what is said of a kernel, and the family.
#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"

#include "codegen/families/contraction/TokenTiles.h"
#include "codegen/families/gemm_sm80/Sm80Cost.h"
#include "codegen/families/gemm_sm80/Sm80Gemm.h"
#include "codegen/families/gemm_sm80/Sm80GemmFamily.h"

namespace weft {
namespace {

using Kind = ScheduleField::Kind;
using Shown = ScheduleField::Shown;

const ScheduleField sm80GemmFields[] = {
    scheduleField<&Sm80GemmKnobs::tileM>({.name = "tileM",
                                          .rowName = "tileM",
                                          .meaning = "rows of C of a block",
                                          .least = 32,
                                          .most = 256,
                                          .shown = Shown::text}),
    scheduleField<&Sm80GemmKnobs::tileN>({.name = "tileN",
                                          .rowName = "tileN",
                                          .meaning = "columns of C of a block",
                                          .least = 32,
                                          .most = 256,
                                          .shown = Shown::text}),
    scheduleField<&Sm80GemmKnobs::tileK>({.name = "tileK",
                                          .rowName = "tileK",
                                          .meaning = "elements of k of a k-tile: 32 or 64",
                                          .least = 32,
                                          .most = 64,
                                          .shown = Shown::text}),
    scheduleField<&Sm80GemmKnobs::stages>({.name = "stages",
                                           .rowName = "stages",
                                           .meaning = "k-tiles in shared memory",
                                           .least = 2,
                                           .most = 32,
                                           .shown = Shown::text}),
    scheduleField<&Sm80GemmKnobs::warpsM>({.name = "warpsM",
                                           .rowName = "warpsM",
                                           .meaning = "warps of a block along m",
                                           .least = 1,
                                           .most = 16,
                                           .shown = Shown::text}),
    scheduleField<&Sm80GemmKnobs::warpsN>({.name = "warpsN",
                                           .rowName = "warpsN",
                                           .meaning = "warps of a block along n",
                                           .least = 1,
                                           .most = 16,
                                           .shown = Shown::text}),
    scheduleField<&Sm80GemmKnobs::groupM>(
        {.name = "groupM",
         .rowName = "groupM",
         .meaning = "tiles along m that are taken before the next along n",
         .least = 1,
         .most = 4096,
         .shown = Shown::text})};

std::string describeKnobs(const Kernel &kernel, const Knobs &any) {
  const auto &knobs = any.get<Sm80GemmKnobs>();
  return fmt::format("mma.sync, tile {} x {} x {}, {} stages, {} x {} warps, group-M {}",
                     knobs.tileM, knobs.tileN, knobs.tileK, knobs.stages, knobs.warpsM,
                     knobs.warpsN, knobs.groupM);
}

std::string rejection(const Kernel &kernel, const Configuration &configuration,
                      const Device &device) {
  return sm80Rejection(kernel, configuration, device);
}

Cost price(const Kernel &kernel, const Configuration &configuration, const Device &device) {
  return sm80Cost(kernel, configuration, configuration.knobs.get<Sm80GemmKnobs>(), device);
}

bool endsSums(const Kernel &kernel, const Knobs &) {
  return hasEndingSum(kernel) && !gemmTypes(kernel).areTf32();
}

BlockTile blockTile(const Knobs &any) {
  const auto &knobs = any.get<Sm80GemmKnobs>();
  return {.rows = knobs.tileM, .columns = knobs.tileN};
}

codegen::Program lower(const Kernel &kernel, const Configuration &configuration) {
  return codegen::lowerSm80Gemm(kernel, configuration, configuration.knobs.get<Sm80GemmKnobs>());
}

}  // namespace

const Family sm80GemmFamily = {
    .name = "gemm-sm80",
    .isGemm = true,
    .takesEpilogues = true,
    .takesPrologues = true,
    .schedule = sm80GemmFields,
    .defaults = defaultKnobs<Sm80GemmKnobs>,
    .compare = compareKnobs<Sm80GemmKnobs>,
    .describe = describeKnobs,
    .space = sm80GemmSpace,
    .rejection = rejection,
    .price = price,
    .endsSums = endsSums,
    .blockTile = blockTile,
    .lower = lower,
};

}  // namespace weft
