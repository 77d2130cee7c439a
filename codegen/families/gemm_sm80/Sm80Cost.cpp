// Tiles and waves of gemm-sm80; see Sm80Cost.h.
#include "codegen/families/gemm_sm80/Sm80Cost.h"

#include "codegen/families/contraction/ContractionCostConstants.h"
#include "codegen/families/contraction/MaskedTiles.h"
#include "codegen/families/contraction/MmaSyncCostConstants.h"
#include "codegen/families/contraction/PrologueCost.h"
#include "codegen/families/gemm_sm80/Sm80CostConstants.h"
#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"
#include "codegen/targets/Targets.h"
#include "kernel/Error.h"
#include "passes/configure/AnalyticConstants.h"
#include "passes/configure/Family.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace weft {

double sm80TensorSeconds(const GemmProblem &gemm, const Sm80GemmKnobs &knobs, DType dtype,
                         const Device &device) {
  const double m = knobs.tileM, n = knobs.tileN;
  const double waves = std::ceil(double(sm80Tiles(gemm, knobs)) / device.multiprocessors);
  const double depth = std::ceil(double(gemm.k) / knobs.tileK) * knobs.tileK;
  double efficiency = codegen::hasWgmma(device.architecture) ? analytic::mmaSyncShareOfWgmma
                                                             : analytic::mmaSyncShare;
  efficiency *= std::min(
      1.0, analytic::sm80LeastEfficiency + m * n / (m + n) * analytic::sm80EfficiencyPerIntensity);
  if (!gemm.a.usesTma || !gemm.b.usesTma) efficiency *= analytic::sm80GuardedShare;
  return waves * 2 * m * n * depth /
         (device.tensorFlops.at(dtype) / device.multiprocessors * efficiency);
}

namespace {

/// The axis along which the rows of a value lie; none of a single element.
std::optional<AxisId> rowAxis(const Kernel &kernel, ValueId value, const Layout &layout) {
  const std::vector<AxisId> &axes = kernel.values[size_t(value)].axes;
  for (auto dimension = layout.order.rbegin(); dimension != layout.order.rend(); ++dimension)
    if (const AxisId axis = axes[size_t(*dimension)]; kernel.axes[size_t(axis)].extent > 1)
      return axis;
  return std::nullopt;
}

/// Padded rows as whole vectors, where all rows are: these warps load whole vectors of them, for
/// which the library is fast where the extents, too, are multiples of vectors.
void roundUpPaddedRows(Kernel &kernel, Configuration &gemm) {
  std::vector<Axis> axes = kernel.axes;
  Configuration dense = gemm;
  const auto isWhole = [&](ValueId value, Layout &layout) {
    const std::optional<AxisId> row = rowAxis(kernel, value, layout);
    if (!row) return true;
    const int64_t vector = maximumAccessBytes / sizeOf(kernel.values[size_t(value)].dtype);
    int64_t &extent = axes[size_t(*row)].extent;
    if (std::exchange(layout.pitchUnit, 1) > 1) extent = (extent + vector - 1) / vector * vector;
    else if (kernel.axes[size_t(*row)].extent % vector != 0) return false;
    return true;
  };
  for (size_t n = 0; n < kernel.inputs.size(); ++n)
    if (!isWhole(kernel.inputs[n], dense.inputs[n])) return;
  if (!isWhole(kernel.outputs[0], dense.outputs[0])) return;
  kernel.axes = std::move(axes);
  gemm = std::move(dense);
}

/// The contraction alone, of operands as it reads them and a result stored as the first output is.
Cost costOfGemm(const Family &library, Kernel kernel, const Configuration &configuration,
                const Device &device) {
  const std::array<ValueId, 3> values = contractionValues(kernel).value();
  const GemmTypes types = gemmTypes(kernel);
  const GemmInputs inputs = gemmInputs(kernel);
  kernel.body = {kernel.body[*contractionIndex(kernel)]};
  kernel.body[0].operands = {values[0], values[1]};
  kernel.inputs = {values[0], values[1]};
  kernel.body[0].results = {kernel.outputs[0]};  // has the layout of C
  kernel.outputs.resize(1);
  kernel.values[size_t(values[0])].dtype = storedAs(types.a);
  kernel.values[size_t(values[1])].dtype = storedAs(types.b);
  Configuration gemm{.inputs = {configuration.inputs[inputs.a], configuration.inputs[inputs.b]},
                     .outputs = {configuration.outputs[0]},
                     .knobs = library.defaults()};
  roundUpPaddedRows(kernel, gemm);
  return library.price(kernel, gemm, device);
}

}  // namespace

Cost sm80Cost(const Kernel &kernel, const Configuration &configuration, const Sm80GemmKnobs &knobs,
              const Device &device) {
  const Expected<GemmProblem, Reason> answer = mmaSyncProblem(kernel, configuration);
  if (!answer) throw Error::unsupported("kernel '{}': {}", kernel.name, answer.error().text);
  // The warps that multiply make the operand between two kTiles.
  const double waves = std::ceil(double(sm80Tiles(*answer, knobs)) / device.multiprocessors);
  const double depth = std::ceil(double(answer->k) / knobs.tileK) * knobs.tileK;
  // Tiles that a block mask leaves nothing of have an epilogue alone.
  const auto masked =
      answer->operandType == DType::tf32
          ? std::nullopt
          : maskedTiles(kernel, contractionRegion(kernel).value(), answer->isSwapped);
  const double tensorSeconds =
      (masked ? masked->seenShare(knobs.tileM, knobs.tileN) : 1.0) *
          sm80TensorSeconds(*answer, knobs, gemmTypes(kernel).a, device) +
      waves * transformSeconds(kernel, *answer, knobs.tileM, knobs.tileN, depth,
                               analytic::sm80TransformShare, device);
  const auto necessary = double(kernel.necessaryBytes());
  const double memorySeconds = necessary / device.copyBandwidth;
  const double exposed = std::min(1.0, analytic::libraryDepthStep / double(answer->k));
  const double busySeconds =
      std::max(memorySeconds, tensorSeconds) + exposed * std::min(memorySeconds, tensorSeconds);
  Cost cost{.seconds = device.launchSeconds + analytic::mmaSyncStartSeconds + busySeconds,
            .bytesMoved = int64_t(necessary),
            .bound = memorySeconds > tensorSeconds ? Bound::memory : Bound::tensor};
  if (device.launchSeconds > busySeconds) cost.bound = Bound::launch;
  if (const Family &gemms = familyWith(&Family::isLibrary); device.offers(gemms)) {
    // While unmeasured, nothing hides what an epilogue reads and stores.
    const Cost library = costOfGemm(gemms, kernel, configuration, device);
    const bool isLast = *contractionIndex(kernel) + 1 == std::ssize(kernel.body);
    const double others =
        isLast ? 0 : std::max(0.0, necessary - double(library.bytesMoved)) / device.copyBandwidth;
    cost.seconds = std::max(cost.seconds, analytic::mmaSyncUnmeasured * library.seconds + others);
  }
  cost.seconds *= prologueFactor(*answer);
  return cost;
}

}  // namespace weft
