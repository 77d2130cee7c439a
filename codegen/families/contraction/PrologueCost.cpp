// Instructions per element; see PrologueCost.h.
#include "codegen/families/contraction/PrologueCost.h"

#include "codegen/families/contraction/ContractionCostConstants.h"
#include "codegen/targets/Targets.h"
#include "kernel/StridedBatchedGemm.h"
#include "passes/configure/AnalyticConstants.h"

#include <algorithm>
#include <array>

namespace weft {
namespace {

/// Instructions of threads a second. Four schedulers of a multiprocessor issue one warp each in a
/// cycle, 128 threads. From sm_86 on its FMA units take as many; before, half as many (CUDA C++
/// programming guide, throughput of arithmetic instructions), and accesses to shared memory,
/// conversions and integers go elsewhere meanwhile.
double issueRate(const Device &device) {
  constexpr std::array<std::string_view, 3> halfAsMany = {"sm_70", "sm_75", "sm_80"};
  const bool isHalf = std::ranges::find(halfAsMany, device.architecture) != halfAsMany.end();
  return device.fmaFlops / 2 * (isHalf ? 2 : 1);
}

/// Instructions that move an element from the tensor in memory to the operand, its arithmetic
/// aside.
double movingInstructions(const GemmProblem &gemm, const Device &device) {
  const bool isInPlace = gemm.a.isTransformed ? gemm.a.usesTma : gemm.b.usesTma;
  if (!isInPlace) return analytic::copyingInstructions;
  return codegen::hasWgmma(device.architecture) ? analytic::transformInstructions
                                                : analytic::mmaSyncTransformInstructions;
}

}  // namespace

double transformSeconds(const Kernel &kernel, const GemmProblem &gemm, double m, double n,
                        double depth, double share, const Device &device) {
  if (!gemm.isAnyTransformed()) return 0;
  double flop = 0;
  for (int op = 0; op < contractionIndex(kernel).value(); ++op) flop += kernel.body[op].flop;
  const double perElement =
      flop / double(gemm.batch * (gemm.a.isTransformed ? gemm.m : gemm.n) * gemm.k);
  const double instructions =
      (gemm.a.isTransformed ? m : n) * depth *
      (movingInstructions(gemm, device) + analytic::prologueInstructionsPerFlop * perElement);
  return instructions / (issueRate(device) / device.multiprocessors * share);
}

double prologueFactor(const GemmProblem &gemm) {
  return gemm.isAnyTransformed() ? analytic::prologueFactor
         : gemm.isScaled()       ? analytic::scaledFactor
                                 : 1;
}

}  // namespace weft
