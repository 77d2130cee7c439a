// Instructions per element; see PrologueCost.h.
#include "passes/configure/PrologueCost.h"

#include "kernel/MatrixProduct.h"
#include "passes/configure/AnalyticConstants.h"

namespace weft {

double makingSeconds(const Kernel &kernel, const HopperProduct &product, double m, double n, double depth, double share, const Device &device) {
  if (!product.isAnyMade()) return 0;
  const auto ops = double(contractionIndex(kernel).value());
  const double instructions = (product.a.isMade ? m : n) * depth * (analytic::makingInstructions + analytic::makingInstructionsPerOp * ops);
  return instructions / (device.fmaFlops / 2 / device.multiprocessors * share);
}

double unmeasuredPrologue(const HopperProduct &product) { return product.isAnyMade() ? analytic::prologueUnmeasured : 1; }

}  // namespace weft
