// The price of a plain contraction; see AnalyticCost.cpp for the essay.
//
//     launch + rounds (first k-tile + sum of the groups) + max(multiply-adds, bytes) + last store
//
// A round is as many blocks as the device holds at one time. Multiply-adds go by waves of one block
// a multiprocessor: blocks that share one share its rate. Bytes are those of every operand once
// from DRAM, or of all tiles out of L2, at what the k-tiles in flight reach. The last round's store
// of C has no products beside it that hide it.
#include "codegen/families/gemm_fma/FmaCostConstants.h"
#include "codegen/families/gemm_fma/FmaGemm.h"
#include "kernel/Error.h"
#include "kernel/StridedBatchedGemm.h"
#include "passes/configure/AnalyticParts.h"

namespace weft {
Cost fmaGemmCost(const Kernel &kernel, const Configuration &configuration, const Device &device) {
  const auto &knobs = configuration.knobs.get<FmaGemmKnobs>();
  const auto gemm = stridedBatchedGemm(kernel, configuration);
  if (!gemm)
    throw Error::checkFailed("kernel '{}': these layouts are not one strided GEMM", kernel.name);
  const double tilesM = analytic::ceilDivide(static_cast<double>(gemm->m), knobs.tileM),
               tilesN = analytic::ceilDivide(static_cast<double>(gemm->n), knobs.tileN);
  const double kTiles = analytic::ceilDivide(static_cast<double>(gemm->k), knobs.tileK);
  const double blocks = static_cast<double>(gemm->batch) * tilesM * tilesN;
  const auto threads = static_cast<double>(fmaThreads(knobs));
  const double perThread = static_cast<double>(knobs.threadM) * knobs.threadN;
  const FmaAlignment aligned = fmaAlignment(kernel, configuration, *gemm);
  const auto [inputA, inputB] = gemmInputs(kernel);
  const auto bytesOf = [&](ValueId value) {
    return static_cast<double>(sizeOf(kernel.values[value].dtype));
  };
  const double bytesA = bytesOf(kernel.inputs[inputA]), bytesB = bytesOf(kernel.inputs[inputB]),
               bytesC = bytesOf(kernel.outputs[0]);

  // Blocks of one multiprocessor: by registers and shared memory.
  const double resident =
      std::max(1.0, std::min(static_cast<double>(fmaBlocksByRegisters(knobs, kernel, aligned)),
                             std::floor(static_cast<double>(device.sharedMemoryPerBlock) /
                                        static_cast<double>(fmaSharedBytes(knobs)))));
  const double waves = analytic::ceilDivide(blocks, device.multiprocessors);
  const double rounds = analytic::ceilDivide(waves, resident), held = std::min(resident, waves);

  // Instructions of a thread for a k-tile.
  const double ofKTile = knobs.tileK / static_cast<double>(knobs.kGroups);
  const double multiplyAdds = perThread * ofKTile;
  const double copies =
      (knobs.tileM / (aligned.a ? 4.0 : 1.0) + knobs.tileN / (aligned.b ? 4.0 : 1.0)) *
      knobs.tileK / threads;
  const double others =
      (knobs.threadM + knobs.threadN + analytic::fmaStepInstructions) * ofKTile / 4 +
      copies * analytic::fmaCopyInstructions + analytic::fmaKTileInstructions;
  const double share = multiplyAdds / (multiplyAdds + others) * analytic::fmaIssueShare *
                       (1 - std::exp(-held * threads / analytic::fmaThreadsOfShare));
  const double flopOfBlock = 2.0 * knobs.tileM * knobs.tileN * knobs.tileK * kTiles;
  const double fmaSeconds =
      waves * flopOfBlock / (device.fmaFlops / device.multiprocessors * share);

  const auto necessary = static_cast<double>(kernel.necessaryBytes());
  const double kTileBytes = (knobs.tileM * bytesA + knobs.tileN * bytesB) * knobs.tileK;
  const double l2Bandwidth = device.copyBandwidth * analytic::l2Speedup;
  const double active =
      std::min(1.0, blocks / device.multiprocessors * analytic::loneMultiprocessorGain);
  const double memorySeconds =
      std::max(necessary / device.copyBandwidth,
               blocks * kTiles * kTileBytes / (l2Bandwidth * active)) /
      analytic::share(held * (knobs.stages - 1) * kTileBytes, analytic::mapBytesInFlight, device);

  const double tileElements = static_cast<double>(knobs.tileM) * knobs.tileN;
  const double sumSeconds =
      knobs.kGroups > 1 ? 2 * 4 * knobs.kGroups * tileElements / analytic::fmaSharedBandwidth : 0;
  const double storeSeconds = std::min(blocks, static_cast<double>(device.multiprocessors)) *
                              tileElements * bytesC / l2Bandwidth;
  return {.seconds = device.launchSeconds + rounds * (analytic::fmaStartSeconds + sumSeconds) +
                     std::max(memorySeconds, fmaSeconds) + storeSeconds,
          .bytesMoved = static_cast<int64_t>(necessary),
          .bound = analytic::boundOf(memorySeconds, fmaSeconds, device.launchSeconds)};
}

}  // namespace weft
