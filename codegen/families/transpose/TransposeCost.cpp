// The price of a transpose; see AnalyticCost.cpp for the essay.
#include "codegen/families/transpose/TransposeCostConstants.h"
#include "codegen/families/transpose/TransposeFamily.h"
#include "codegen/families/transpose/TransposeTile.h"
#include "passes/configure/AnalyticParts.h"
#include "passes/configure/Family.h"

namespace weft {

Cost transposeCost(const Kernel &kernel, const Configuration &configuration, const Device &device) {
  const auto &knobs = configuration.knobs.get<TransposeKnobs>();
  const ValueId value = kernel.inputs[0];
  const auto elementBytes = static_cast<double>(sizeOf(kernel.values[value].dtype));
  const auto bytes = static_cast<double>(kernel.bytes(value));
  const std::vector<int64_t> extents = extentsOf(kernel, value);
  double moved = 0;
  for (const Layout *layout : {&configuration.inputs[0], &configuration.outputs[0]}) {
    const double row =
        std::min<double>(knobs.tile,
                         static_cast<double>(extents[static_cast<size_t>(layout->order.back())])) *
        elementBytes;
    moved += bytes * analytic::ceilDivide(row, analytic::sectorBytes) * analytic::sectorBytes / row;
  }
  const double tileElements = static_cast<double>(knobs.tile) * knobs.tile;
  const double blocks = std::max(1.0, bytes / elementBytes / tileElements);
  const double tileBytes = tileElements * elementBytes;
  const double resident =
      std::min({analytic::threadsPerMultiprocessor / knobs.threads, blocks / device.multiprocessors,
                static_cast<double>(device.sharedMemoryPerBlock) / tileBytes});
  const double memorySeconds =
      moved / (device.copyBandwidth *
               analytic::share(resident * tileBytes, analytic::rowBytesInFlight, device));
  const double accesses = 2 * bytes / elementBytes / knobs.vectorWidth;
  const bool isRowCopy =
      knobs.vectorWidth == 1 && codegen::transposeTile(kernel, configuration, knobs).isCopy();
  const double issueSeconds = std::max(
      accesses * analytic::indexInstructions / 2 / (device.fmaFlops / 2),
      accesses * (isRowCopy ? analytic::rowCopyAccessSeconds : analytic::transposeAccessSeconds) /
          device.multiprocessors);
  return {.seconds = device.launchSeconds + std::max(memorySeconds, issueSeconds),
          .bytesMoved = static_cast<int64_t>(moved),
          .bound = analytic::boundOf(memorySeconds, issueSeconds, device.launchSeconds)};
}

}  // namespace weft
