// Tiles and waves of the skeleton kernel; see AmpereCost.h.
#include "passes/configure/AmpereCost.h"

#include "kernel/Error.h"
#include "passes/configure/AnalyticConstants.h"
#include "passes/configure/LibraryCost.h"
#include "passes/configure/PrologueCost.h"

#include <algorithm>
#include <cmath>

namespace weft {

double ampereTensorSeconds(const HopperProduct &product, const AmpereContractionKnobs &knobs,
                           DType dtype, const Device &device) {
  const double m = knobs.tileM, n = knobs.tileN;
  const double waves = std::ceil(double(ampereTiles(product, knobs)) / device.multiprocessors);
  const double depth = std::ceil(double(product.k) / knobs.tileK) * knobs.tileK;
  double efficiency = hasWarpgroupProducts(device.architecture) ? analytic::ampereShareOfWarpgroups
                                                                : analytic::ampereShare;
  efficiency *= std::min(1.0, analytic::ampereLeastEfficiency +
                                  m * n / (m + n) * analytic::ampereEfficiencyPerIntensity);
  if (!product.a.isByEngine || !product.b.isByEngine) efficiency *= analytic::ampereGuardedShare;
  return waves * 2 * m * n * depth /
         (device.tensorFlops.at(dtype) / device.multiprocessors * efficiency);
}

namespace {

/// The contraction alone, of operands as it reads them and a result stored as the first output is.
Cost libraryCostOfProduct(Kernel kernel, const Configuration &configuration, const Device &device) {
  const std::array<int, 3> values = contractionValues(kernel).value();
  const ProductTypes types = productTypes(kernel);
  const ProductInputs inputs = productInputs(kernel);
  kernel.body = {kernel.body[*contractionIndex(kernel)]};
  kernel.body[0].operands = {values[0], values[1]};
  kernel.inputs = {values[0], values[1]};
  kernel.body[0].results = {kernel.outputs[0]};  // the ops behind leave it as C would lie
  kernel.outputs.resize(1);
  kernel.values[size_t(values[0])].dtype = storedAs(types.a);
  kernel.values[size_t(values[1])].dtype = storedAs(types.b);
  const Configuration product{
      .inputs = {configuration.inputs[inputs.a], configuration.inputs[inputs.b]},
      .outputs = {configuration.outputs[0]},
      .knobs = LibraryKnobs{}};
  return libraryCost(kernel, product, LibraryKnobs{}, device);
}

}  // namespace

Cost ampereCost(const Kernel &kernel, const Configuration &configuration,
                const AmpereContractionKnobs &knobs, const Device &device) {
  const HopperProductAnswer answer = warpProduct(kernel, configuration);
  if (!answer.product) throw Error::unsupported("kernel '{}': {}", kernel.name, answer.refusal);
  // The warps that multiply make the operand between two slices.
  const double waves =
      std::ceil(double(ampereTiles(*answer.product, knobs)) / device.multiprocessors);
  const double depth = std::ceil(double(answer.product->k) / knobs.tileK) * knobs.tileK;
  const double tensorSeconds =
      ampereTensorSeconds(*answer.product, knobs, productTypes(kernel).a, device) +
      waves * makingSeconds(kernel, *answer.product, knobs.tileM, knobs.tileN, depth,
                            analytic::ampereMakingShare, device);
  const auto necessary = double(kernel.necessaryBytes());
  const double memorySeconds = necessary / device.copyBandwidth;
  const double exposed = std::min(1.0, analytic::libraryDepthStep / double(answer.product->k));
  const double busySeconds =
      std::max(memorySeconds, tensorSeconds) + exposed * std::min(memorySeconds, tensorSeconds);
  Cost cost{.seconds = device.launchSeconds + analytic::ampereStartSeconds + busySeconds,
            .bytesMoved = int64_t(necessary),
            .bound = memorySeconds > tensorSeconds ? Bound::memory : Bound::tensor};
  if (device.launchSeconds > busySeconds) cost.bound = Bound::launch;
  if (device.libraryProducts) {
    // Unmeasured, what an epilogue reads and stores besides is hidden behind nothing.
    const Cost library = libraryCostOfProduct(kernel, configuration, device);
    const bool isLast = *contractionIndex(kernel) + 1 == kernel.body.size();
    const double others =
        isLast ? 0 : std::max(0.0, necessary - double(library.bytesMoved)) / device.copyBandwidth;
    cost.seconds = std::max(cost.seconds, analytic::ampereUnmeasured * library.seconds + others);
  }
  cost.seconds *= unmeasuredPrologue(*answer.product);
  return cost;
}

}  // namespace weft
