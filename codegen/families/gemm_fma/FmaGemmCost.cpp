// The price of a plain contraction; see AnalyticCost.cpp for the essay.
#include "codegen/families/gemm_fma/FmaCostConstants.h"
#include "codegen/families/gemm_fma/FmaGemm.h"
#include "kernel/Error.h"
#include "kernel/StridedBatchedGemm.h"
#include "passes/configure/AnalyticParts.h"

namespace weft {
namespace {

/// Estimate: barriers, address arithmetic and global loads of a single-buffered kernel take the
/// rest.
constexpr double contractionIssueShare = 0.7;

}  // namespace

Cost fmaGemmCost(const Kernel &kernel, const Configuration &configuration, const Device &device) {
  const auto &knobs = configuration.knobs.get<FmaGemmKnobs>();
  const auto gemm = stridedBatchedGemm(kernel, configuration);
  if (!gemm)
    throw Error::checkFailed("kernel '{}': these layouts are not one strided GEMM", kernel.name);
  const double tilesM = analytic::ceilDivide(static_cast<double>(gemm->m), knobs.tileM),
               tilesN = analytic::ceilDivide(static_cast<double>(gemm->n), knobs.tileN);
  const double depth =
      analytic::ceilDivide(static_cast<double>(gemm->k), knobs.tileK) * knobs.tileK;
  const double blocks = static_cast<double>(gemm->batch) * tilesM * tilesN;
  const double threads =
      static_cast<double>(knobs.tileM / knobs.threadM) * (knobs.tileN / knobs.threadN);
  const double perThread = static_cast<double>(knobs.threadM) * knobs.threadN;
  const double registers = analytic::rowRegisters + perThread + knobs.threadM + knobs.threadN;
  const double resident =
      std::max(1.0, std::floor(std::min(analytic::threadsPerMultiprocessor,
                                        analytic::registersPerMultiprocessor / registers) /
                               threads));

  // FMA: waves of whole blocks. A multiprocessor that holds few threads does not fill its
  // schedulers.
  const double waves = analytic::ceilDivide(blocks, device.multiprocessors);
  const double held = std::min(resident, waves);
  const double filled = std::min(1.0, held * threads / analytic::threadsToFillIssue);
  const double inner =
      perThread / (perThread + knobs.threadM + knobs.threadN) * contractionIssueShare;
  const double flopPerBlock = 2.0 * knobs.tileM * knobs.tileN * depth;
  const double fmaSeconds =
      waves * flopPerBlock / (device.fmaFlops / device.multiprocessors * inner * filled);

  // Memory: every operand once from DRAM, tiles of A and B again for every block, out of L2.
  const auto necessary = static_cast<double>(kernel.necessaryBytes());
  const auto elementBytes = static_cast<double>(sizeOf(kernel.values[kernel.inputs[0]].dtype));
  const double tileBytes = blocks * depth * (knobs.tileM + knobs.tileN) * elementBytes;
  const double inFlight = held * (knobs.tileM + knobs.tileN) * knobs.tileK * elementBytes;
  const double memorySeconds = std::max(necessary, tileBytes / analytic::l2Speedup) /
                               device.copyBandwidth /
                               analytic::share(inFlight, analytic::mapBytesInFlight, device);
  return {.seconds = device.launchSeconds + analytic::fmaStartSeconds +
                     std::max(memorySeconds, fmaSeconds),
          .bytesMoved = static_cast<int64_t>(necessary),
          .bound = analytic::boundOf(memorySeconds, fmaSeconds, device.launchSeconds)};
}

}  // namespace weft
