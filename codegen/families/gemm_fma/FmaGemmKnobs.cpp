// The fields of plain contractions, what is said of a kernel, and the family itself.
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"

#include "codegen/families/gemm_fma/FmaGemm.h"
#include "passes/configure/FamilyConfigurations.h"

#include <algorithm>

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
                                           .shown = Shown::text}),
    scheduleField<&FmaGemmKnobs::stages>({.name = "stages",
                                          .rowName = "stages",
                                          .meaning = "k-tiles in shared memory",
                                          .least = 2,
                                          .most = 8,
                                          .isOptional = true,
                                          .shown = Shown::text}),
    scheduleField<&FmaGemmKnobs::kGroups>({.name = "kGroups",
                                           .rowName = "kGroups",
                                           .meaning = "groups of threads that share a k-tile",
                                           .least = 1,
                                           .most = 16,
                                           .isOptional = true,
                                           .shown = Shown::text})};

constexpr int64_t mostSharedBytes = 99 * 1024;  // dynamic, of every target from sm_80 on

std::string describeKnobs(const Kernel &kernel, const Knobs &any) {
  const auto &knobs = any.get<FmaGemmKnobs>();
  return fmt::format("plain FMA, tile {} x {} x {}, {} x {} a thread, {} stages{}", knobs.tileM,
                     knobs.tileN, knobs.tileK, knobs.threadM, knobs.threadN, knobs.stages,
                     knobs.kGroups > 1 ? fmt::format(", {} groups along k", knobs.kGroups) : "");
}

BlockTile blockTile(const Knobs &any) {
  const auto &knobs = any.get<FmaGemmKnobs>();
  return {.rows = knobs.tileM, .columns = knobs.tileN};
}

codegen::Program lower(const Kernel &kernel, const Configuration &configuration) {
  return codegen::lowerFmaGemm(kernel, configuration, configuration.knobs.get<FmaGemmKnobs>());
}

}  // namespace

int64_t fmaThreads(const FmaGemmKnobs &knobs) {
  const bool divides = knobs.threadM > 0 && knobs.threadN > 0 && knobs.tileM % knobs.threadM == 0 &&
                       knobs.tileN % knobs.threadN == 0;
  return divides ? int64_t{1} * (knobs.tileM / knobs.threadM) * (knobs.tileN / knobs.threadN) *
                       knobs.kGroups
                 : 0;
}

int64_t fmaSharedBytes(const FmaGemmKnobs &knobs) {
  const int64_t kTiles = int64_t{4} * knobs.stages * knobs.tileK * (knobs.tileM + knobs.tileN);
  const int64_t partials = int64_t{4} * knobs.kGroups * knobs.tileM * knobs.tileN;
  return knobs.kGroups > 1 ? std::max(kTiles, partials) : kTiles;
}

std::string fmaKnobsRejection(const FmaGemmKnobs &knobs) {
  if (const int64_t threads = fmaThreads(knobs); threads < 1 || threads > 1024)
    return fmt::format(
        "a tile of {} x {} with {} x {} a thread and {} groups takes no whole block of at most "
        "1024 threads",
        knobs.tileM, knobs.tileN, knobs.threadM, knobs.threadN, knobs.kGroups);
  if (knobs.tileM % 4 != 0 || knobs.tileN % 4 != 0)
    return fmt::format("a tile of {} x {}; threads copy multiples of 4 rows and columns",
                       knobs.tileM, knobs.tileN);
  if (knobs.tileK < 4 || (knobs.tileK & (knobs.tileK - 1)) != 0)
    return fmt::format("k-tiles of {}; threads read powers of two from 4 on", knobs.tileK);
  if (knobs.tileK % (4 * knobs.kGroups) != 0)
    return fmt::format("k-tiles of {} for {} groups of threads, which take multiples of 4",
                       knobs.tileK, knobs.kGroups);
  if (knobs.kGroups > 1 && (knobs.threadM % 4 != 0 || knobs.threadN % 4 != 0))
    return fmt::format(
        "{} x {} elements a thread; where groups of threads share k these are multiples of 4",
        knobs.threadM, knobs.threadN);
  if (const int64_t bytes = fmaSharedBytes(knobs); bytes > mostSharedBytes)
    return fmt::format("a block takes {} bytes of shared memory; the limit is {}", bytes,
                       mostSharedBytes);
  return "";
}

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
