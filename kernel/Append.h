// Kernels that append tokens to a cache of keys or values (`weft.append`, ir/SPEC.md): what they
// walk and move is the tokens, whose places in the cache follow from the starts of sequences, and
// of a cache of pages (kernel/Pages.h) from their table.
//
// Invariant: an append is the last op of its kernel, and its result the only output, which lies in
// the memory of its first operand, an input.
#pragma once

#include "kernel/Kernel.h"

namespace weft {

/// Operands of the op.
constexpr size_t appendedCache = 0, appendedTokens = 1, appendStarts = 2, appendTable = 3;

/// The append that ends the kernel; null where none does.
const BodyOp *appendOf(const Kernel &kernel);
/// Dimension of positions, of cache and tokens; of `gather_pages`, whose attributes are the same,
/// that of positions in a page.
size_t appendAxis(const BodyOp &append);
/// Dimension of sequences, of tokens and a cache without pages; of a cache of pages that of these.
size_t appendAlong(const BodyOp &append);
/// Whether the cache lies in pages.
inline bool isPaged(const BodyOp &append) { return append.operands.size() > appendTable; }
/// The longest start that leaves the new tokens a place: positions of a sequence less tokens.
int64_t mostCached(const Kernel &kernel, const BodyOp &append);
/// Why kernels do not have the append so; empty if they do.
std::string appendRejection(const Kernel &kernel);

/// The axes that a kernel walks to store a value: its own; of an append's result those of the
/// tokens.
const std::vector<AxisId> &walkedAxes(const Kernel &kernel, ValueId value);
/// Elements that a kernel reads or writes of an input or output: all; of a cache that it appends to
/// none, and of the result as many as there are tokens; of pages that it gathers as many as are
/// gathered; of a table that it gathers rows of, and of what it slices, no more than that gives.
int64_t movedElements(const Kernel &kernel, ValueId value);

}  // namespace weft
