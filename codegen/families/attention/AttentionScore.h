// The element-wise ops between scores and fold of a fused attention as functions that its kernel
// template calls, whatever the family:
//
//    score(s, head, query, key)               all score ops in order, in fp32
//    scoreWithoutMasks(s, head, query, key)   the same where every mask is known to keep the score
//    coverage(head, firstQuery, lastQuery, firstKey, lastKey)   how much of a tile masks leave
//
// **Masks.** A score op is a mask if its expression is `condition ? x : -inf` (or the other way
// around), whatever its name, where interval arithmetic bounds the condition over a tile, and no
// later op makes a finite number of -inf. Every other op is a value op, which is computed for every
// score; so is a mask with a finite fill.
//
// **Coverage** evaluates the conditions over a tile by interval arithmetic on their trees. A node
// of integers becomes [low, high]:
//
//    coordinate of keys or queries    the tile's range
//    other coordinate, literal        itself
//    i32 operand without these axes   the element, as the length of a padding mask
//    + - negation, * / % by literals  bounds from those of the operands
//
// A boolean node becomes two conditions: that it may hold somewhere in the tile, and that it holds
// everywhere. Comparisons of intervals give both; && and || join them. What cannot be bounded, such
// as an element that is read at computed coordinates, may hold, and does not hold everywhere.
#pragma once

#include "codegen/Names.h"
#include "codegen/Program.h"
#include "codegen/families/attention/AttentionProblem.h"

#include <string>
#include <vector>

namespace weft::codegen {

/// What the family has decided and named.
struct ScoreContext {
  const Kernel &kernel;
  const Configuration &configuration;
  const AttentionRegion &region;
  const AttentionProblem &problem;
  Names &names;
  std::vector<std::string> axes;    ///< constants of type int with the extents of the kernel's axes
  std::vector<std::string> inputs;  ///< pointers, one per Kernel::inputs
};

struct AttentionScore {
  std::vector<std::string> headers = {};
  std::vector<ConstantLine> constants = {};
  Block functions = {};  ///< statements that define what the next three name
  /// `float (float s, int head, int query, int key)`: s is the scaled dot product. A name of
  /// `functions`, or "weft::UnchangedScore{}". Scores outside the tensor, query >= queries or
  /// key >= keys, read nothing and give any number.
  std::string score, scoreWithoutMasks;
  /// `weft::TileCoverage (int head, int firstQuery, int lastQuery, int firstKey, int lastKey)` of
  /// inclusive ranges inside the tensor. A name of `functions`, or "weft::FullCoverage{}".
  std::string coverage;
  bool hasMasks = false;     ///< coverage says more than full
  bool hasValueOps = false;  ///< scoreWithoutMasks is not UnchangedScore
  /// Whether `score` may have the dot product without its scale, which is then part of the
  /// exponential: there are masks alone, and the scale is positive.
  bool mayScaleLast = true;
};

/// The coordinate along an axis of heads: a digit of the number of a head. `axes`: as ScoreContext
/// has them.
Code headCoordinate(const AttentionProblem &problem, const std::vector<std::string> &axes,
                    const Code &head, int axis);

/// Why score ops are not emitted: an op without an expression, an input of another element type, a
/// coordinate that is itself read. Empty if they are.
std::string scoreRejection(const Kernel &kernel, const AttentionRegion &region);

/// scoreRejection() is empty.
AttentionScore attentionScore(const ScoreContext &context);

/// Which of the region's score ops are masks, for prices. One for each of
/// AttentionRegion::scoreOps.
std::vector<bool> scoreMasks(const Kernel &kernel, const AttentionRegion &region,
                             const AttentionProblem &problem);
/// Whether a mask's condition may differ among the heads of a group: it reads their coordinate, or
/// a tensor that has their axis.
bool masksDifferInGroup(const Kernel &kernel, const AttentionRegion &region,
                        const AttentionProblem &problem);

}  // namespace weft::codegen
