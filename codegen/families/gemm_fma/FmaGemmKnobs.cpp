// The fields of plain contractions, what is said of a kernel, and the family itself.
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"

#include "codegen/families/gemm_fma/FmaGemm.h"
#include "passes/configure/FamilyConfigurations.h"

namespace weft {
namespace {

using Kind = ScheduleField::Kind;
using Shown = ScheduleField::Shown;

const ScheduleField fmaGemmFields[] = {
    scheduleField<&FmaGemmKnobs::tileM>({.name = "tileM",
                                         .rowName = "tileM",
                                         .meaning = "rows of C of a block",
                                         .least = 1,
                                         .most = 1024,
                                         .shown = Shown::text}),
    scheduleField<&FmaGemmKnobs::tileN>({.name = "tileN",
                                         .rowName = "tileN",
                                         .meaning = "columns of C of a block",
                                         .least = 1,
                                         .most = 1024,
                                         .shown = Shown::text}),
    scheduleField<&FmaGemmKnobs::tileK>({.name = "tileK",
                                         .rowName = "tileK",
                                         .meaning = "elements of k of a k-tile",
                                         .least = 1,
                                         .most = 1024,
                                         .shown = Shown::text}),
    scheduleField<&FmaGemmKnobs::threadM>({.name = "threadM",
                                           .rowName = "threadM",
                                           .meaning = "rows of C of a thread",
                                           .least = 1,
                                           .most = 64,
                                           .shown = Shown::text}),
    scheduleField<&FmaGemmKnobs::threadN>({.name = "threadN",
                                           .rowName = "threadN",
                                           .meaning = "columns of C of a thread",
                                           .least = 1,
                                           .most = 64,
                                           .shown = Shown::text})};

std::string describeKnobs(const Kernel &kernel, const Knobs &any) {
  const auto &knobs = any.get<FmaGemmKnobs>();
  return fmt::format("plain FMA, tile {} x {} x {}, {} x {} a thread", knobs.tileM, knobs.tileN,
                     knobs.tileK, knobs.threadM, knobs.threadN);
}

BlockTile blockTile(const Knobs &any) {
  const auto &knobs = any.get<FmaGemmKnobs>();
  return {.rows = knobs.tileM, .columns = knobs.tileN};
}

codegen::Program lower(const Kernel &kernel, const Configuration &configuration) {
  return codegen::lowerFmaGemm(kernel, configuration, configuration.knobs.get<FmaGemmKnobs>());
}

}  // namespace

const Family fmaGemmFamily = {
    .name = "gemm-fma",
    .isGemm = true,
    .isPlaceholder = true,
    .schedule = fmaGemmFields,
    .defaults = defaultKnobs<FmaGemmKnobs>,
    .compare = compareKnobs<FmaGemmKnobs>,
    .describe = describeKnobs,
    .space = fmaGemmSpace,
    .takesUnlisted = hasConfigurationLike,
    .price = fmaGemmCost,
    .blockTile = blockTile,
    .lower = lower,
};

}  // namespace weft
