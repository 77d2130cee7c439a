// Instructions per element; see PrologueCost.h.
#include "codegen/families/contraction/PrologueCost.h"

#include "kernel/StridedBatchedGemm.h"
#include "passes/configure/AnalyticConstants.h"

namespace weft {

double transformSeconds(const Kernel &kernel, const GemmProblem &gemm, double m, double n,
                        double depth, double share, const Device &device) {
  if (!gemm.isAnyTransformed()) return 0;
  double flop = 0;
  for (size_t op = 0; op < contractionIndex(kernel).value(); ++op) flop += kernel.body[op].flop;
  const double perElement =
      flop / double(gemm.batch * (gemm.a.isTransformed ? gemm.m : gemm.n) * gemm.k);
  const bool isInPlace = gemm.a.isTransformed ? gemm.a.usesTma : gemm.b.usesTma;
  const double moving = isInPlace ? analytic::transformInstructions : analytic::copyingInstructions;
  const double instructions = (gemm.a.isTransformed ? m : n) * depth *
                              (moving + analytic::prologueInstructionsPerFlop * perElement);
  return instructions / (device.fmaFlops / 2 / device.multiprocessors * share);
}

double prologueFactor(const GemmProblem &gemm) {
  return gemm.isAnyTransformed() ? analytic::prologueFactor
         : gemm.isScaled()       ? analytic::scaledFactor
                                 : 1;
}

}  // namespace weft
