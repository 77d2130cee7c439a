// Cases of the backward pass of fused attention for the GPU that its families draw alike. Groups:
//   attention-backward         every head width, mask and score op, at odd lengths
//   attention-backward-packed  over packed tokens
//   attention-backward-hard    gradients of adversarial scores, with rows that masks hide whole
//   attention-backward-unread  NaN and infinity behind counts, in tokens of no sequence, and in
//                              what backward reads beside
//   attention-backward-drawn   shapes, masks, score ops, dropout and configurations drawn
#pragma once

#include "codegen/families/attention/tests/AttentionCases.h"
#include "tests/unit/samples/SampleAttentionBackwards.h"

#include <vector>

namespace weft::gputest {

using KnobTest = bool (*)(const Knobs &);

/// Of queries and keys.
inline constexpr AttentionExtents backwardLengths[] = {{.b = 2, .h = 3, .j = 1, .k = 1},
                                                       {.b = 1, .h = 2, .j = 63, .k = 65},
                                                       {.b = 2, .h = 2, .g = 2, .j = 65, .k = 257},
                                                       {.b = 1, .h = 3, .g = 3, .j = 333, .k = 129},
                                                       {.b = 1, .h = 2, .j = 512, .k = 512}};

/// Every mask and score op, with dropout and without. Block masks are empty at some short extents,
/// document masks of at least as many keys as queries.
std::vector<Kernel> backwardsOf(const AttentionExtents &extents, DType type, bool hasBlocks = true);

/// Those of one family and of the knobs that `isWanted` takes, a group each.
void addAttentionBackwards(Collector &collect, const DrawnFamily &family,
                           KnobTest isWanted = Collector::isAny);
void addHardAttentionBackwards(Collector &collect, const DrawnFamily &family,
                               KnobTest isWanted = Collector::isAny);
void addPackedBackwards(Collector &collect, const DrawnFamily &family);
void addUnreadAttentionBackwards(Collector &collect, const DrawnFamily &family);
/// Heads of up to so many columns.
void addDrawnAttentionBackwards(Collector &collect, const DrawnFamily &family, int64_t mostWidth);

}  // namespace weft::gputest
