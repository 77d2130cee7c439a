// The model of Sm80AttentionCost.h.
#include "codegen/families/attention_sm80/Sm80AttentionCost.h"

#include "codegen/Targets.h"
#include "codegen/families/attention/VisibleScores.h"
#include "codegen/families/attention_sm80/Sm80AttentionTile.h"
#include "kernel/Error.h"
#include "passes/configure/AnalyticConstants.h"

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

/// Instructions of a score, as a share of the FMA units' rate, that an exponential and the maxima
/// and sums cost; what a value op and a mask add (estimates).
constexpr double scoreInstructions = 8, valueOpInstructions = 6, maskInstructions = 4;
/// Share of the lesser of tensor and score time that the greater does not hide, with one block a
/// multiprocessor and with several (estimates).
constexpr double exposedAlone = 0.9, exposedShared = 0.5;
/// Loading queries and the first keys, and storing a block (estimate).
constexpr double blockSeconds = 1.5e-6;
constexpr double sharedBytesOfMultiprocessor = 164 * 1024;
constexpr double threadsOfMultiprocessor = 512;  // at 128 registers

}  // namespace

Cost sm80AttentionCost(const Kernel &kernel, const Configuration &configuration,
                       const Sm80AttentionKnobs &knobs, const Device &device) {
  const AttentionRegionOrRejection recognised = attentionRegion(kernel);
  if (!recognised.region)
    throw Error::unsupported("kernel '{}': {}", kernel.name, recognised.rejection);
  const Expected<AttentionProblem> answer =
      attentionProblem(kernel, *recognised.region, configuration);
  if (!answer) throw Error::unsupported("kernel '{}': {}", kernel.name, answer.error().what());
  const AttentionProblem &problem = *answer;
  const VisibleScores visible = visibleScores(kernel, *recognised.region, problem);

  const double share =
      codegen::hasWgmma(device.architecture) ? analytic::sm80ShareOfWgmma : analytic::sm80Share;
  const double tensorRate =
      share * device.tensorFlops.at(problem.operandType) / device.multiprocessors;
  const double instructionRate = device.fmaFlops / 2 / device.multiprocessors;
  const auto padded = [](int64_t columns) { return double((columns + 15) / 16 * 16); };
  const double scores = double(knobs.tileQueries) * knobs.tileKeys;
  const double tensorSeconds =
      2 * scores * (padded(problem.headDim) + padded(problem.valueDim)) / tensorRate;
  const double scoreSeconds =
      scores * (scoreInstructions + valueOpInstructions * visible.valueOps) / instructionRate;
  const double resident =
      std::max(1.0, std::min(std::floor(sharedBytesOfMultiprocessor /
                                        double(sm80AttentionSharedBytes(problem, knobs))),
                             std::floor(threadsOfMultiprocessor / sm80AttentionThreads(knobs))));
  const double exposed = resident > 1 ? exposedShared : exposedAlone;
  const double tileSeconds =
      std::max(tensorSeconds, scoreSeconds) + exposed * std::min(tensorSeconds, scoreSeconds);

  const double keyTiles = std::ceil(double(problem.keys) / knobs.tileKeys);
  const double seen = std::min(keyTiles, visible.share * keyTiles + (visible.hasMasks ? 1.0 : 0.0));
  const double mixed = visible.hasMasks ? std::min(2.0, keyTiles) : 0;
  const double ofBlock = seen * tileSeconds + mixed * scores * maskInstructions / instructionRate +
                         blockSeconds / resident;
  const double blocks = double(sm80AttentionBlocks(problem, knobs));
  // Blocks that see few keys fill the gaps that others leave.
  const double waves = visible.share < 0.9 ? std::max(1.0, blocks / device.multiprocessors + 0.5)
                                           : std::ceil(blocks / device.multiprocessors);
  const double bytes = double(kernel.necessaryBytes());
  const double memorySeconds = bytes / device.copyBandwidth, computeSeconds = waves * ofBlock;
  const double busySeconds = std::max(memorySeconds, computeSeconds);
  return {.seconds = device.launchSeconds + analytic::sm80StartSeconds + busySeconds,
          .bytesMoved = int64_t(bytes),
          .bound = device.launchSeconds > busySeconds ? Bound::launch
                   : memorySeconds > computeSeconds   ? Bound::memory
                                                      : Bound::tensor};
}

}  // namespace weft
