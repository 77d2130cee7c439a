// The fields of the transpose family, what it says of a kernel, and the family itself.
#include "codegen/families/transpose/TransposeKnobs.h"

#include "codegen/families/transpose/Transpose.h"
#include "codegen/families/transpose/TransposeFamily.h"
#include "passes/configure/Family.h"

namespace weft {
namespace {

using Kind = ScheduleField::Kind;
using Shown = ScheduleField::Shown;

const ScheduleField transposeFields[] = {
    scheduleField<&TransposeKnobs::tile>(
        {.name = "tile",
         .rowName = "tile",
         .meaning = "elements of each side of the tile in shared memory",
         .least = 1,
         .most = 256,
         .shown = Shown::text}),
    scheduleField<&TransposeKnobs::vectorWidth>({.name = "vectorWidth",
                                                 .rowName = "width",
                                                 .meaning = "elements of an access",
                                                 .least = 1,
                                                 .most = 16,
                                                 .shown = Shown::text}),
    scheduleField<&TransposeKnobs::threads>({.name = "threads",
                                             .rowName = "threads",
                                             .meaning = "threads of a block",
                                             .least = 1,
                                             .most = 1024,
                                             .shown = Shown::text})};

std::string describeKnobs(const Kernel &kernel, const Knobs &any) {
  const auto &knobs = any.get<TransposeKnobs>();
  return fmt::format("tile {0} x {0}, vector {1}, {2} threads a block", knobs.tile,
                     knobs.vectorWidth, knobs.threads);
}

bool isUsefulTranspose(const Kernel &kernel, const LayoutTuple &layouts, const Knobs &any) {
  const auto &knobs = any.get<TransposeKnobs>();
  if (knobs.vectorWidth == 1) return true;
  const std::vector<ValueId> values = operandValues(kernel);
  for (size_t i = 0; i < values.size(); ++i) {
    const AxisId fastest =
        kernel.values[values[i]].axes[static_cast<size_t>(layouts[i].order.back())];
    if (!isVectorAccessed(kernel, values[i], layouts[i], fastest, knobs.vectorWidth)) return false;
    if (kernel.axes[fastest].extent % knobs.vectorWidth != 0) return false;
  }
  return true;
}

codegen::Program lower(const Kernel &kernel, const Configuration &configuration) {
  return codegen::lowerTranspose(kernel, configuration, configuration.knobs.get<TransposeKnobs>());
}

}  // namespace

const Family transposeFamily = {
    .name = "transpose",
    .isTranspose = true,
    .schedule = transposeFields,
    .defaults = defaultKnobs<TransposeKnobs>,
    .compare = compareKnobs<TransposeKnobs>,
    .describe = describeKnobs,
    .space = transposeSpace,
    .isUseful = isUsefulTranspose,
    .price = transposeCost,
    .lower = lower,
};

}  // namespace weft
