// The analytic cost model: a roofline that knows sectors, reads in flight, tiles and launches.
//
//   loop kernels        t = launch + max( sum over operands of traffic / share, instructions )
//                           + 0.1 x the lesser
//   plain contractions  t = launch + max( traffic / share, padded flop / (FMA peak x efficiency) )
//   tensor cores        t = launch + max( traffic, padded flop / tensor peak )
//                           + exposed part of the lesser (Sm90Cost.h, Sm80Cost.h)
//   library GEMMs    LibraryCost.h
//
// Traffic. A warp's access to one operand touches some number of distinct 32-byte sectors, which
// follows from the strides of the operand along the lane and vector axes. DRAM moves each byte once
// (neighbours in a sector are re-used out of L2 while they are there); L2 moves whole sectors at
// l2Speedup times the speed of DRAM; L1 serves every load instruction in sectors, at 128 bytes a
// clock and multiprocessor, which is one byte for each FMA lane. The slowest of the three counts.
// So a scattered f16 operand costs 16 sectors for one: 8 times the coalesced time.
//
// Share. Bandwidth needs bytes in flight (Little's law): share = 1 - exp(-inFlight / scale), with
// inFlight = resident threads x bytes that a thread loads before it first waits. Narrow loads and
// small tensors both lose here, and nowhere else: a kernel of few threads reaches a share in
// proportion to them.
//
// Instructions. Index arithmetic is paid once a thread, loads and flop once an element or vector.
//
// Contraction. Blocks of a tile each run in waves; a last wave that is not full costs a whole one;
// edges are padded to whole tiles. An inner GEMM of threadM x threadN accumulators needs threadM
// + threadN loads from shared memory for threadM x threadN FMA. This family uses no tensor cores,
// and is priced as such.
//
// Every constant stands in AnalyticConstants.h with its source. Checked against H200 figures in
// tests/unit/configure/cost_test.cpp.
#include "passes/configure/AnalyticConstants.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/Families.h"
#include "passes/configure/Family.h"
#include "passes/configure/LibraryCost.h"
#include "passes/configure/LoopCost.h"
#include "passes/configure/Sm80Cost.h"
#include "passes/configure/Sm90Cost.h"

#include "kernel/Error.h"

#include <algorithm>
#include <cmath>

namespace weft {

std::string_view nameOf(Bound bound) {
  switch (bound) {
    case Bound::memory: return "memory";
    case Bound::tensor: return "tensor";
    case Bound::fma: return "fma";
    case Bound::launch: return "launch";
  }
  return "";
}

double memoryUsageEfficiency(const Cost &cost, const Device &device) {
  if (!(cost.seconds > 0) || cost.bytesMoved <= 0) return 0;
  const auto moved = static_cast<double>(cost.bytesMoved);
  return static_cast<double>(cost.bytesNecessary) / moved * (moved / cost.seconds) /
         device.peakBandwidth * 100;
}

namespace {

/// Of the contraction's operands, as it reads them; scales of 8-bit floats are wider.
DType operandType(const Kernel &kernel) {
  return contractionValues(kernel) ? gemmTypes(kernel).a
                                   : kernel.values[size_t(kernel.inputs.front())].dtype;
}

bool usesTensorCores(const Kernel &kernel, const Device &device) {
  if (kernel.operatorClass() != OperatorClass::contraction || kernel.inputs.empty()) return false;
  return device.tensorFlops.contains(operandType(kernel));
}

}  // namespace

double peakFlops(const Kernel &kernel, const Device &device) {
  return usesTensorCores(kernel, device) ? device.tensorFlops.at(operandType(kernel))
                                         : device.fmaFlops;
}

double percentOfPeak(const Cost &cost, const Kernel &kernel, const Device &device) {
  return cost.seconds > 0 ? 100 * cost.flop / cost.seconds / peakFlops(kernel, device) : 0;
}

Bound boundOf(const Cost &cost, const Kernel &kernel, const Device &device) {
  if (memoryUsageEfficiency(cost, device) > percentOfPeak(cost, kernel, device))
    return Bound::memory;
  return usesTensorCores(kernel, device) ? Bound::tensor : Bound::fma;
}

namespace {

double share(double bytesInFlight, double scale, const Device &device) {
  return 1 - std::exp(-bytesInFlight * analytic::referenceBandwidth(device) / scale);
}

double ceilDivide(double a, double b) { return std::ceil(a / b); }

Bound boundOf(double memorySeconds, double issueSeconds, double launchSeconds) {
  if (launchSeconds > std::max(memorySeconds, issueSeconds)) return Bound::launch;
  return memorySeconds >= issueSeconds ? Bound::memory : Bound::fma;
}

class AnalyticCostModel : public CostModel {
public:
  explicit AnalyticCostModel(const Device &device) : target(device) {}

  Cost cost(const Kernel &kernel, const Configuration &configuration) const override {
    Cost result = std::visit([&](const auto &knobs) { return price(kernel, configuration, knobs); },
                             configuration.knobs);
    result.bytesNecessary = kernel.necessaryBytes();
    result.flop = kernel.flop();
    return result;
  }
  const Device &device() const override { return target; }
  std::string description() const override { return "analytic model of " + target.name; }
  bool isSeparable(const Kernel &) const override { return true; }

private:
  Cost price(const Kernel &kernel, const Configuration &configuration,
             const LoopKnobs &knobs) const {
    const LoopPricer pricer(kernel, target);
    const KnobPrice knobPrice = pricer.price(knobs);
    double operandSeconds = 0, bytes = 0;
    for (size_t i = 0; i < kernel.inputs.size() + kernel.outputs.size(); ++i) {
      const bool isInput = i < kernel.inputs.size();
      const Layout &layout =
          isInput ? configuration.inputs[i] : configuration.outputs[i - kernel.inputs.size()];
      const OperandPrice operand = pricer.price(pricer.place(i, layout), knobs);
      operandSeconds += operand.seconds * (isInput ? knobPrice.rereads : 1);
      bytes += operand.bytes * (isInput ? knobPrice.rereads : 1);
    }
    Cost cost;
    cost.seconds = pricer.seconds(knobPrice, operandSeconds);
    cost.bytesMoved = static_cast<int64_t>(bytes);
    cost.bound =
        boundOf(operandSeconds / knobPrice.share, knobPrice.issueSeconds, target.launchSeconds);
    return cost;
  }

  /// Both sides move whole tile rows; a tile row shorter than a sector wastes the rest of it.
  Cost price(const Kernel &kernel, const Configuration &configuration,
             const TransposeKnobs &knobs) const {
    const int value = kernel.inputs[0];
    const auto elementBytes = static_cast<double>(sizeOf(kernel.values[value].dtype));
    const auto bytes = static_cast<double>(kernel.bytes(value));
    const std::vector<int64_t> extents = extentsOf(kernel, value);
    double moved = 0;
    for (const Layout *layout : {&configuration.inputs[0], &configuration.outputs[0]}) {
      const double row =
          std::min<double>(
              knobs.tile, static_cast<double>(extents[static_cast<size_t>(layout->order.back())])) *
          elementBytes;
      moved += bytes * ceilDivide(row, analytic::sectorBytes) * analytic::sectorBytes / row;
    }
    const double tileElements = static_cast<double>(knobs.tile) * knobs.tile;
    const double blocks = std::max(1.0, bytes / elementBytes / tileElements);
    const double tileBytes = tileElements * elementBytes;
    const double resident = std::min(
        {analytic::threadsPerMultiprocessor / knobs.threads, blocks / target.multiprocessors,
         static_cast<double>(target.sharedMemoryPerBlock) / tileBytes});
    const double memorySeconds =
        moved /
        (target.copyBandwidth * share(resident * tileBytes, analytic::rowBytesInFlight, target));
    const double accesses = 2 * bytes / elementBytes / knobs.vectorWidth;
    const double issueSeconds = accesses * analytic::indexInstructions / 2 / (target.fmaFlops / 2);
    return {.seconds = target.launchSeconds + std::max(memorySeconds, issueSeconds),
            .bytesMoved = static_cast<int64_t>(moved),
            .bound = boundOf(memorySeconds, issueSeconds, target.launchSeconds)};
  }

  Cost price(const Kernel &kernel, const Configuration &configuration,
             const FmaGemmKnobs &knobs) const {
    const auto gemm = stridedBatchedGemm(kernel, configuration);
    if (!gemm)
      throw Error::checkFailed("kernel '{}': these layouts are not one strided GEMM", kernel.name);
    const double tilesM = ceilDivide(static_cast<double>(gemm->m), knobs.tileM),
                 tilesN = ceilDivide(static_cast<double>(gemm->n), knobs.tileN);
    const double depth = ceilDivide(static_cast<double>(gemm->k), knobs.tileK) * knobs.tileK;
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
    const double waves = ceilDivide(blocks, target.multiprocessors);
    const double held = std::min(resident, waves);
    const double filled = std::min(1.0, held * threads / analytic::threadsToFillIssue);
    const double inner =
        perThread / (perThread + knobs.threadM + knobs.threadN) * contractionIssueShare;
    const double flopPerBlock = 2.0 * knobs.tileM * knobs.tileN * depth;
    const double fmaSeconds =
        waves * flopPerBlock / (target.fmaFlops / target.multiprocessors * inner * filled);

    // Memory: every operand once from DRAM, tiles of A and B again for every block, out of L2.
    const auto necessary = static_cast<double>(kernel.necessaryBytes());
    const auto elementBytes = static_cast<double>(sizeOf(kernel.values[kernel.inputs[0]].dtype));
    const double tileBytes = blocks * depth * (knobs.tileM + knobs.tileN) * elementBytes;
    const double inFlight = held * (knobs.tileM + knobs.tileN) * knobs.tileK * elementBytes;
    const double memorySeconds = std::max(necessary, tileBytes / analytic::l2Speedup) /
                                 target.copyBandwidth /
                                 share(inFlight, analytic::mapBytesInFlight, target);
    return {.seconds = target.launchSeconds + std::max(memorySeconds, fmaSeconds),
            .bytesMoved = static_cast<int64_t>(necessary),
            .bound = boundOf(memorySeconds, fmaSeconds, target.launchSeconds)};
  }

  Cost price(const Kernel &, const Configuration &, const ViewKnobs &) const { return {}; }
  Cost price(const Kernel &kernel, const Configuration &configuration,
             const LibraryKnobs &knobs) const {
    return libraryCost(kernel, configuration, knobs, target);
  }

  Cost price(const Kernel &kernel, const Configuration &configuration,
             const Sm90GemmKnobs &knobs) const {
    return sm90Cost(kernel, configuration, knobs, target);
  }

  Cost price(const Kernel &kernel, const Configuration &configuration,
             const Sm80GemmKnobs &knobs) const {
    return sm80Cost(kernel, configuration, knobs, target);
  }

  /// Estimate: barriers, address arithmetic and global loads of a single-buffered kernel take the
  /// rest.
  static constexpr double contractionIssueShare = 0.7;

  const Device target;
};

}  // namespace

std::unique_ptr<CostModel> analyticCostModel(const Device &device) {
  return std::make_unique<AnalyticCostModel>(device);
}

}  // namespace weft
