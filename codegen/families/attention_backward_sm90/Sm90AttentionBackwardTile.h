// What follows from a tile of a fused attention backward on sm_90a, in bytes and blocks: the same
// arithmetic as AttentionBackwardConfig (sm90_attention_backward_tiles.cuh), which emitted text
// asserts.
#pragma once

#include "codegen/families/attention_backward/AttentionBackwardProblem.h"
#include "codegen/families/attention_backward_sm90/Sm90AttentionBackwardKnobs.h"

#include <string>
#include <vector>

namespace weft {

/// Scores, what they become and the sums of a thread, in registers.
int64_t sm90AttentionBackwardRegisters(const AttentionBackwardProblem &problem,
                                       const Sm90AttentionBackwardKnobs &knobs);
/// Whether what score ops read is loaded under a condition of each score: of packed tokens, whose
/// sequences end anywhere, and where stored gradients leave no register for loads in front.
bool sm90AttentionBackwardLoadsUnderConditions(const AttentionBackwardProblem &problem,
                                               const Sm90AttentionBackwardKnobs &knobs);
/// Blocks that share a multiprocessor.
int sm90AttentionBackwardResidents(const Sm90AttentionBackwardKnobs &knobs);
int sm90AttentionBackwardThreads(const Sm90AttentionBackwardKnobs &knobs);
/// rowFloats: what element-wise ops read of a query.
int64_t sm90AttentionBackwardSharedBytes(const AttentionBackwardProblem &problem,
                                         const Sm90AttentionBackwardKnobs &knobs, int rowFloats);
/// Of gradients apart: blocks of a tile in shared memory, and tiles, as far as it holds more. Of
/// single ones: places of operands, of which a block has two, and one tile.
struct SplitBackwardStages {
  int blocks = 2, tiles = 1;
};
SplitBackwardStages splitBackwardStages(const AttentionBackwardProblem &problem,
                                        const Sm90AttentionBackwardKnobs &knobs, int rowFloats);
/// Of gradients apart: the rows of a box that TMA loads.
int splitBackwardBoxRows(const Sm90AttentionBackwardKnobs &knobs);

/// Tiles with the same keys, each of some of the heads that share these.
int64_t sm90AttentionBackwardGroupParts(const AttentionBackwardProblem &problem,
                                        const Sm90AttentionBackwardKnobs &knobs);
/// Heads of queries that blocks of the grid work on at a time, at most.
int64_t sm90AttentionBackwardHeadsInFlight(const AttentionBackwardProblem &problem,
                                           const Sm90AttentionBackwardKnobs &knobs);
int64_t sm90AttentionBackwardTiles(const AttentionBackwardProblem &problem,
                                   const Sm90AttentionBackwardKnobs &knobs);
int64_t sm90AttentionBackwardBlocks(const AttentionBackwardProblem &problem,
                                    const Sm90AttentionBackwardKnobs &knobs);
/// Blocks of queries of all heads: so many counters order the sums of their gradients, where these
/// are not apart.
int64_t sm90AttentionBackwardSemaphores(const AttentionBackwardProblem &problem,
                                        const Sm90AttentionBackwardKnobs &knobs);
/// Counters of such tiles, of every consumer warpgroup; none where keys have one tile each.
int64_t sm90AttentionBackwardPartSemaphores(const AttentionBackwardProblem &problem,
                                            const Sm90AttentionBackwardKnobs &knobs);
/// Of device memory, for sums of the gradients of queries, unless gradients are apart, and, where
/// several tiles have the same keys, for parts of the gradients of these.
int64_t sm90AttentionBackwardWorkspaceBytes(const AttentionBackwardProblem &problem,
                                            const Sm90AttentionBackwardKnobs &knobs);

/// What element-wise ops read of a query, at most: every f32 input that runs along no keys.
int mostRowFloats(const Kernel &kernel, const AttentionBackwardRegion &region);

/// Why a tile cannot have such knobs: registers, shared memory, ranges. Empty if it can.
std::string sm90AttentionBackwardTileRejection(const AttentionBackwardProblem &problem,
                                               const Sm90AttentionBackwardKnobs &knobs,
                                               int rowFloats, bool hasDropout);
/// Why layouts are none that TMA loads and stores: columns that are no neighbours, rows that do not
/// start at multiples of 16 bytes, more strides than a tensor map has. Empty if they are.
std::string sm90AttentionBackwardLayoutRejection(const AttentionBackwardProblem &problem);

/// The tiles worth trying for these head dimensions. readsScores: element-wise ops read a tensor
/// along keys, as a bias, or gradients of scores are stored; 128 queries together have no registers
/// for its addresses. hasTables: block masks say what is seen.
std::vector<Sm90AttentionBackwardKnobs> sm90AttentionBackwardTileChoices(
    const AttentionBackwardProblem &problem, int rowFloats, bool readsScores, bool hasDropout,
    bool hasTables, int multiprocessors);

}  // namespace weft
