// A rotary embedding of a fused attention's queries (AttentionRegion::turned) as emitted text,
// whatever the family: functions of the factor of the angles and of their frequencies, as the op's
// expression has them, and a weft::RotatedColumns (rotated_chunks.cuh).
//
// Invariant: the kernel's queries are then what a kernel of the rotary op alone would have stored,
// but for the last bit: the same functions of angles, in fp32, rounded once to the element type.
#pragma once

#include "codegen/families/attention/ScoreOps.h"
#include "kernel/Device.h"
#include "passes/configure/CostModel.h"

#include <set>
#include <string>
#include <vector>

namespace weft {

/// Why no kernel template turns them; empty if one does, or if nothing is turned: elements of 16
/// bits, pairs that fill whole chunks of eight.
std::string rotatedQueriesRejection(const Kernel &kernel, const AttentionRegion &region);

/// Seconds of a multiprocessor to turn one query; 0 where nothing is turned.
double rotatedQuerySeconds(const AttentionRegion &region, const Device &device);
/// The price of the kernel, with a margin if it rotates queries.
Cost withRotationMargin(const AttentionRegion &region, const Cost &cost);

}  // namespace weft

namespace weft::codegen {

struct RotatedQueryTexts {
  std::set<std::string> headers = {};
  std::vector<ConstantLine> constants = {};
  Block functions = {};  ///< statements that define what the next two name
  /// `int (int head, int query)` and `float (int column)`: the frequency of the pair whose first
  /// element is there.
  std::string position, frequency;
  std::string columns;  ///< the name of a constant
};

/// region.turned is there, and rotatedQueriesRejection() is empty. `sequences`: the name of a
/// weft::PackedSequences, where tokens are packed.
RotatedQueryTexts rotatedQueries(const ScoreContext &context, const std::string &sequences);

}  // namespace weft::codegen
