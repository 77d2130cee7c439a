// What follows from a tile of backward attention by mma.sync: threads, shared memory, registers, as
// BackwardConfig has them (sm80_attention_backward_tiles.cuh), which emitted text asserts; and
// which tiles and layouts are legal.
#pragma once

#include "codegen/families/attention_backward/AttentionBackwardProblem.h"
#include "codegen/families/attention_backward_sm80/Sm80AttentionBackwardKnobs.h"

#include <string>
#include <vector>

namespace weft {

int sm80AttentionBackwardThreads(const Sm80AttentionBackwardKnobs &knobs);
/// rowFloats: numbers that scores read of their row (AttentionGradients.h).
int64_t sm80AttentionBackwardSharedBytes(const AttentionBackwardProblem &problem,
                                         const Sm80AttentionBackwardKnobs &knobs, int rowFloats);
/// Whether a block with keys sums one gradient of these, as registers do not hold both: of wide
/// heads (sm80_wide_attention_backward.cuh).
bool sm80AttentionBackwardIsWide(const AttentionBackwardProblem &problem);
/// Blocks with keys, of wide heads twice as many; then blocks with queries.
int64_t sm80AttentionBackwardKeyBlocks(const AttentionBackwardProblem &problem,
                                       const Sm80AttentionBackwardKnobs &knobs);
int64_t sm80AttentionBackwardBlocks(const AttentionBackwardProblem &problem,
                                    const Sm80AttentionBackwardKnobs &knobs);

/// Why there is no such tile: its sides, registers of a thread, shared memory, of which every
/// target from sm_80 on has 99 KB. Empty if there is.
std::string sm80AttentionBackwardTileRejection(const AttentionBackwardProblem &problem,
                                               const Sm80AttentionBackwardKnobs &knobs,
                                               int rowFloats);
/// Why copies of 16 bytes do not load operands so: columns that are no neighbours or no multiple of
/// 8, rows that start elsewhere than at multiples of 16 bytes. Gradients may start anywhere, their
/// columns are neighbours. Empty if they do.
std::string sm80AttentionBackwardLayoutRejection(const AttentionBackwardProblem &problem);

/// The tile that asks for the least of those that are offered: if it is not legal, none is.
Sm80AttentionBackwardKnobs sm80SmallestBackwardTile(const AttentionBackwardProblem &problem);
/// All legal tiles.
std::vector<Sm80AttentionBackwardKnobs> sm80AttentionBackwardTileChoices(
    const AttentionBackwardProblem &problem, int rowFloats);

}  // namespace weft
