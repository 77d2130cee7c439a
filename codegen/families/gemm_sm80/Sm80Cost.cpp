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

#include <algorithm>
#include <cmath>

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
  const Configuration gemm{
      .inputs = {configuration.inputs[inputs.a], configuration.inputs[inputs.b]},
      .outputs = {configuration.outputs[0]},
      .knobs = library.defaults()};
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
