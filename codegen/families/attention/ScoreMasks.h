// Which score ops are masks, by the form of their expressions: what AttentionScore.h says of them,
// for what emits score ops or prices them.
#pragma once

#include "codegen/families/attention/AttentionProblem.h"

#include <optional>
#include <vector>

namespace weft::codegen {

/// `condition ? x : -inf`, or the other way around. Nodes of the op's expression.
struct MaskForm {
  int condition, kept;
  bool keepsWhereTrue;
};
std::optional<MaskForm> maskForm(const BodyOp &op);
/// The same with another number in the place of -inf.
std::optional<MaskForm> maskForm(const BodyOp &op, double fill);
/// Whether a mask gives its operand unchanged where it keeps it.
bool keepsOperand(const BodyOp &op, const MaskForm &form);

/// Whether a mask compares positions with an integer that is known at run time alone: the length of
/// a sequence, or where queries start behind a cache.
bool comparesWithCount(const BodyOp &op);

/// An input of the score ops is what no op of the body computes.
std::optional<size_t> inputOf(const AttentionRegion &region, ValueId value);
/// Whether an element is one integer in a tile.
bool isOneInTile(const Kernel &kernel, const AttentionProblem &problem, ValueId value);

/// The tensor that bounds an element which an op reads at computed coordinates, by every 32
/// neighbouring positions of its last axis: of the segments of a document mask that has bounds.
std::optional<ValueId> boundsOfElement(const BodyOp &op, const ExpressionNode &element);

/// Whether the last value of the score ops is -inf wherever the result of one of them is.
bool reachesFold(const Kernel &kernel, const AttentionRegion &region, size_t scoreOp);

/// Which of the region's score ops are masks. One for each of AttentionRegion::scoreOps.
std::vector<bool> scoreMasks(const Kernel &kernel, const AttentionRegion &region,
                             const AttentionProblem &problem);
/// Whether a mask's condition may differ among the heads of a group: it reads their coordinate, or
/// a tensor that has their axis.
bool masksDifferInGroup(const Kernel &kernel, const AttentionRegion &region,
                        const AttentionProblem &problem);

}  // namespace weft::codegen
