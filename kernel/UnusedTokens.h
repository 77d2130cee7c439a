// Rows of packed tokens that a kernel need not compute, as the kernel itself says it: every result
// is masked from the number of tokens on (weft.mask tokens), so that whatever leads to these rows
// has no effect.
//
//   gelu_unmasked = gelu(biased);  y = t < offsets[8] ? gelu_unmasked : 0     ->   rows of t from
//                                                                                offsets[8] on
//
// Found by the form of expressions: a comparison of a coordinate with one element of a tensor of
// integers.
#pragma once

#include "kernel/Kernel.h"

#include <optional>

namespace weft {

/// Where along an axis nothing has to be computed any more: from the value of one element of an
/// operand of one dimension on, which is known at run time alone.
struct UnusedTokens {
  AxisId axis = -1;
  ValueId offsets = -1;  ///< an input of the kernel
  int64_t element = 0;   ///< of it
  bool operator==(const UnusedTokens &) const = default;
};

/// What an op leaves of its first operand, and zero elsewhere; nothing of any other op.
std::optional<UnusedTokens> maskedTokens(const Kernel &kernel, const BodyOp &op);

/// What all results of a kernel share: each is a mask's, or what packs tokens gives, or a sum along
/// the axis whose terms are such, or have such a factor beside finite ones (gradients of norms'
/// weights). Nothing where a result lacks the mask.
std::optional<UnusedTokens> unusedTokens(const Kernel &kernel);

/// Of a kernel that opens with a contraction over packed tokens: from where on along the contracted
/// axis both operands are zero, so that the sum may end there. Nothing of any other kernel.
std::optional<UnusedTokens> summedTokens(const Kernel &kernel);

/// Whether an op packs tokens, and nothing reads the rows behind them.
bool isUnreadPack(const BodyOp &op);
/// Whether such a kernel need not even store these rows: nothing reads them (MaskShape::unread).
bool areUnusedUnread(const Kernel &kernel);

/// Which rows of a value of the kernel are not specified: those that an unread mask or pack leaves,
/// or what ops make of them. Nothing where a mask gives zeros, and of inputs.
std::optional<UnusedTokens> unspecifiedRows(const Kernel &kernel, ValueId value);

/// Whether the expression of an op compares with one element of an operand alone, which stands for
/// all of its results: what a kernel loads once.
bool isTokenMask(const BodyOp &op);
/// The expression of such an op with the element as an operand of no dimension; the first operand
/// where what follows tokens is unread.
Expression maskByCount(const BodyOp &op);

}  // namespace weft
