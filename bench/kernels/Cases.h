// The kernels that the bench measures, at extents of 64 MB and more unless a case says otherwise,
// by name.
#pragma once

#include "kernel/Configuration.h"
#include "passes/configure/Families.h"

#include <map>
#include <string>
#include <vector>

namespace weft::bench {

struct Case {
  std::string name;   ///< "softmax_4096", "transpose_abcd_dcba"
  std::string group;  ///< cases whose median is one figure: "softmax", "transpose"
  Kernel kernel;
  LayoutConstraints layouts;           ///< all fixed
  std::map<int, int64_t> limits = {};  ///< i32 inputs (value index): values are in [0, limit)
  double sumTolerance =
      2e-5;  ///< absolute, of outputs that lost the reduced axes: long sums of products cancel
  double rowTolerance = 2e-5;  ///< absolute, of all others
};

/// All operands and results row-major.
Case rowMajorCase(const std::string &name, const std::string &group, Kernel kernel);
/// A sum as a body op: over kernel axes, which are these dimensions of the operand.
BodyOp sumOver(int operand, std::vector<AxisId> reducedAxes, std::vector<int64_t> dimensions);

/// Softmax, norms, element-wise chains, reductions, gathers: all row-major.
std::vector<Case> loopCases();
/// The backward loop kernels of Table A.1 of "Data Movement Is All You Need" at B=96, L=128, made
/// of the ops that differentiation makes: BSB, BLNRD, BDRB, EBSB, BS, BAIB, BEI. A part of
/// loopCases().
std::vector<Case> backwardCases();

/// Copies between dense layouts of one f16 tensor of four axes; every `step`-th of all ordered
/// pairs of different layouts.
std::vector<Case> transposeCases(const std::vector<int64_t> &extents, size_t step);

}  // namespace weft::bench
