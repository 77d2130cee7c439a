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
//    segment of a document mask       the least and the greatest of the tiles of 32 positions that
//                                     the range meets, where the mask has bounds
//                                     (kernel/TileBounds.h)
//    + - negation, * / % by literals  bounds from those of the operands
//
// A boolean node becomes two conditions: that it may hold somewhere in the tile, and that it holds
// everywhere. Comparisons of intervals give both; && and || join them; the table of a block mask
// answers for the tiles that the intervals of queries and keys meet, by words of its bits. What
// cannot be bounded, such as another element that is read at computed coordinates, may hold, and
// does not hold everywhere.
#pragma once

#include "codegen/families/attention/ScoreMasks.h"
#include "codegen/families/attention/ScoreOps.h"

#include <string>
#include <vector>

namespace weft::codegen {

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

/// Why score ops are not emitted: an op without an expression, an input of another element type, a
/// coordinate that is itself read. Empty if they are.
std::string scoreRejection(const Kernel &kernel, const AttentionRegion &region);

/// scoreRejection() is empty.
AttentionScore attentionScore(const ScoreContext &context);

/// The function `coverage` of the score ops that are masks, of which there is one; `head`: the name
/// of its first parameter. `ops` are those of the kernel's other functions.
Statement coverageFunction(const ScoreContext &context, ScoreOps &ops,
                           const std::vector<bool> &masks, const Code &head);

}  // namespace weft::codegen
