// What follows from a tile of a fused attention by mma.sync: threads, shared memory, registers, as
// AttentionConfig has them (sm80_attention_tiles.cuh), which emitted text asserts; and which tiles
// and layouts are legal.
#pragma once

#include "codegen/families/attention/AttentionProblem.h"
#include "codegen/families/attention/TileOrder.h"
#include "codegen/families/attention_sm80/Sm80AttentionKnobs.h"

#include <string>
#include <vector>

namespace weft {

int sm80AttentionThreads(const Sm80AttentionKnobs &knobs);
int64_t sm80AttentionSharedBytes(const AttentionProblem &problem, const Sm80AttentionKnobs &knobs);
/// Heads whose queries are rows of one matrix.
int64_t sm80PackedHeads(const AttentionProblem &problem, const Sm80AttentionKnobs &knobs);
/// Tiles of rows of all heads; and blocks, one for every split of a tile.
int64_t sm80AttentionRowTiles(const AttentionProblem &problem, const Sm80AttentionKnobs &knobs);
int64_t sm80AttentionBlocks(const AttentionProblem &problem, const Sm80AttentionKnobs &knobs);
/// Whether rows are joined behind the loop: over warps, splits or heads of a group.
bool sm80AttentionJoins(const Sm80AttentionKnobs &knobs);
/// Bytes of the workspace in which splits leave partials for the last one; 0 without splits.
int64_t sm80AttentionPartialBytes(const AttentionProblem &problem, const Sm80AttentionKnobs &knobs);
/// Blocks that a multiprocessor of so much shared memory has at once, by it and by registers.
int sm80AttentionResidentBlocks(const AttentionProblem &problem, const Sm80AttentionKnobs &knobs,
                                int64_t sharedBytesOfMultiprocessor);

/// In which order blocks begin with tiles of rows, by the tables of block masks; empty without any,
/// and where a tile of packed heads ends within those of a query.
TileOrder sm80AttentionTileOrder(const Kernel &kernel, const AttentionRegion &region,
                                 const AttentionProblem &problem, const Sm80AttentionKnobs &knobs);

/// What score ops ask of a tile.
struct Sm80ScoreNeeds {
  bool hasValueOps = false;  ///< any of them is no mask
  int gatheredTables = 0;    ///< VisibleScores.h
  bool hasDropout = false;   ///< of the exponentials
};
Sm80ScoreNeeds sm80ScoreNeeds(const Kernel &kernel, const AttentionRegion &region,
                              const AttentionProblem &problem);

/// Why there is no such tile: its sides, registers of a thread, shared memory, of which every
/// target from sm_80 on has 99 KB. Empty if there is.
std::string sm80AttentionTileRejection(const AttentionProblem &problem,
                                       const Sm80AttentionKnobs &knobs,
                                       const Sm80ScoreNeeds &needs);
/// Why copies of 16 bytes do not load operands so: columns that are no neighbours or no multiple of
/// 8, rows that start elsewhere than at multiples of 16 bytes. The output may start anywhere, its
/// columns are neighbours. Empty if they do.
std::string sm80AttentionLayoutRejection(const AttentionProblem &problem);

/// The tile without packed heads or splits that asks for the least: if it is not legal, none is.
Sm80AttentionKnobs sm80SmallestTile(const AttentionProblem &problem);
/// All legal tiles without packed heads or splits.
std::vector<Sm80AttentionKnobs> sm80AttentionTileChoices(const AttentionProblem &problem,
                                                         const Sm80ScoreNeeds &needs);

}  // namespace weft
