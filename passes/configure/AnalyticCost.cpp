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
  if (contractionValues(kernel)) return gemmTypes(kernel).a;
  const DType type = kernel.values[size_t(kernel.inputs.front())].dtype;
  const bool readsTf32 = std::ranges::any_of(kernel.body, [](const BodyOp &op) {
    return op.operatorClass == OperatorClass::contraction && isTf32(op);
  });
  return readsTf32 && type == DType::f32 ? DType::tf32 : type;
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

/// A family's constants change with its version.
std::string versionsOfFamilies() {
  std::string text;
  for (const Family *family : families())
    text += fmt::format("{} {};", family->name, family->version);
  return text;
}

class AnalyticCostModel : public CostModel {
public:
  explicit AnalyticCostModel(const Device &device) : target(device) {}

  Cost cost(const Kernel &kernel, const Configuration &configuration) const override {
    Cost result = configuration.knobs.family().price(kernel, configuration, target);
    result.bytesNecessary = kernel.necessaryBytes();
    result.flop = kernel.flop();
    return result;
  }
  const Device &device() const override { return target; }
  PriceSource source() const override { return {.name = "analytic model of " + target.name}; }
  std::string identity() const override {
    return profileHash(fmt::format("analytic {} {}", figuresText(target), versionsOfFamilies()));
  }
  bool isSeparable(const Kernel &) const override { return true; }

private:
  const Device target;
};

}  // namespace

std::unique_ptr<CostModel> analyticCostModel(const Device &device) {
  return std::make_unique<AnalyticCostModel>(device);
}

}  // namespace weft
