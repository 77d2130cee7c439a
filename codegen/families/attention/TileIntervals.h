// Conditions of masks over a tile of scores, by interval arithmetic on their expressions
// (AttentionScore.h). Free of kernels: whoever asks says what leaves are.
#pragma once

#include "codegen/Code.h"
#include "kernel/Expression.h"

#include <functional>
#include <optional>

namespace weft::codegen {

/// Bounds of an integer node in a tile, as C expressions; equal texts are one number.
struct Interval {
  Code low, high;
  bool isNonNegative = false;  ///< whatever the tile
  bool isExact() const { return low == high; }
};

/// A boolean node in a tile, as C conditions.
struct TileCondition {
  std::optional<Code> mayHold = {};  ///< somewhere in it; nothing: unknown
  std::optional<Code> holds = {};    ///< everywhere in it; nothing: unknown
  bool isBounded() const { return mayHold || holds; }
};

/// The interval of a coordinate, of an operand without coordinates or of an element at computed
/// ones (a node with children); nothing where there is none, as of an operand that is no integer. A
/// parsed expression has f32 for every operand, whatever is stored.
using LeafInterval = std::function<std::optional<Interval>(const ExpressionNode &leaf)>;

/// Of an integer node; nothing where it cannot be bounded.
std::optional<Interval> intervalOf(const Expression &expression, int node,
                                   const LeafInterval &leaf);
/// The name of a weft::TileCoverage: that of a table of tiles, which a call of weft::hasBlock
/// reads, over the ranges of a tile of scores of one head.
using BlockCoverage =
    std::function<Code(const Code &head, const Interval &query, const Interval &key)>;
/// Of a boolean node.
TileCondition conditionOf(const Expression &expression, int node, const LeafInterval &leaf,
                          const BlockCoverage &coverage);

}  // namespace weft::codegen
