// Instructions per element; see PrologueCost.h.
#include "passes/configure/PrologueCost.h"

#include "kernel/MatrixProduct.h"
#include "passes/configure/AnalyticConstants.h"

namespace weft {

double makingSeconds(const Kernel &kernel, const HopperProduct &product, double m, double n,
                     double depth, double share, const Device &device) {
  if (!product.isAnyMade()) return 0;
  double flop = 0;
  for (size_t op = 0; op < contractionIndex(kernel).value(); ++op) flop += kernel.body[op].flop;
  const double perElement =
      flop / double(product.batch * (product.a.isMade ? product.m : product.n) * product.k);
  const bool isInPlace = product.a.isMade ? product.a.isByEngine : product.b.isByEngine;
  const double moving = isInPlace ? analytic::makingInstructions : analytic::copyingInstructions;
  const double instructions =
      (product.a.isMade ? m : n) * depth * (moving + analytic::instructionsPerFlop * perElement);
  return instructions / (device.fmaFlops / 2 / device.multiprocessors * share);
}

double unmeasuredPrologue(const HopperProduct &product) {
  return product.isAnyMade()  ? analytic::prologueUnmeasured
         : product.isScaled() ? analytic::scaledUnmeasured
                              : 1;
}

}  // namespace weft
