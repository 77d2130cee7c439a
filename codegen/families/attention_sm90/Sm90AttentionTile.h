// What follows from a tile of a fused attention on sm_90a, in bytes, registers and blocks: the same
// arithmetic as AttentionConfig (sm90_attention_tiles.cuh), which emitted text asserts.
#pragma once

#include "codegen/families/attention/AttentionProblem.h"
#include "codegen/families/attention/HeadDimensions.h"
#include "codegen/families/attention/TileOrder.h"
#include "codegen/families/attention_sm90/Sm90AttentionKnobs.h"

#include <optional>
#include <string>
#include <vector>

namespace weft {

int sm90AttentionThreads(const Sm90AttentionKnobs &knobs);
/// Blocks that share a multiprocessor: as `residents` says.
int sm90AttentionResidentBlocks(const AttentionProblem &problem, const Sm90AttentionKnobs &knobs);
/// Whether the output leaves through the place of the queries, since there is none beside it.
bool sm90AttentionStaysInQ(const AttentionProblem &problem, const Sm90AttentionKnobs &knobs);
int64_t sm90AttentionSharedBytes(const AttentionProblem &problem, const Sm90AttentionKnobs &knobs);
/// Heads whose queries are rows of one tile; and queries of each that a tile has: whole ones of all
/// these heads in 64 rows, so that some rows are of none where 64 is no multiple.
int64_t sm90PackedHeads(const AttentionProblem &problem, const Sm90AttentionKnobs &knobs);
int64_t sm90QueriesOfTile(const AttentionProblem &problem, const Sm90AttentionKnobs &knobs);
/// One for every split.
int64_t sm90AttentionTiles(const AttentionProblem &problem, const Sm90AttentionKnobs &knobs);
/// Bytes of the workspace in which splits leave partials for the last one; 0 without splits.
int64_t sm90AttentionPartialBytes(const AttentionProblem &problem, const Sm90AttentionKnobs &knobs);
int64_t sm90AttentionBlocks(const AttentionProblem &problem, const Sm90AttentionKnobs &knobs);

/// In which order blocks take the tiles of queries of a head, by the tables of block masks; without
/// any, the last rows first.
TileOrder sm90AttentionTileOrder(const Kernel &kernel, const AttentionRegion &region,
                                 const AttentionProblem &problem, const Sm90AttentionKnobs &knobs);

/// What score ops ask of a tile.
struct ScoreNeeds {
  bool hasMasks = false, hasValueOps = false;
  bool readsInputs = false;       ///< any of them reads a tensor
  bool readsTwice = false;        ///< one of them at two places, as a document mask reads segments
  bool shareInputs = false;       ///< two of them read one
  bool gathersRows = false;       ///< from a row for each query or key (gatheredTables)
  bool hasBounds = false;         ///< a document mask has bounds of its segments
  bool hasDropout = false;        ///< of the exponentials
  bool rotatesQueries = false;    ///< by a rotary embedding
  bool hasTables = false;         ///< any mask is a block mask
  bool hasTablesOfHeads = false;  ///< and has a table for each head
  int maskConditions = 0;         ///< comparisons that masks make of a score
  /// Where all masks are block masks, the side of the scores' tiles that they leave whole or not at
  /// all; else 0.
  int64_t wholeTile = 0;
  /// Whether masks decide no score of a tile one by one.
  bool leavesWholeTiles(const AttentionProblem &problem, const Sm90AttentionKnobs &knobs) const;
};
ScoreNeeds scoreNeeds(const Kernel &kernel, const AttentionRegion &region,
                      const AttentionProblem &problem);

/// Why consumers do not rotate queries (AttentionRegion::turned); empty if they do, or if nothing
/// is turned.
std::string sm90RotatedQueriesRejection(const Kernel &kernel, const AttentionRegion &region);

/// Why a tile cannot have such knobs: registers, shared memory, ranges. Empty if it can. ptxas
/// waits behind every WGMMA where scores, exponentials and output of a thread do not fit its
/// registers.
std::string sm90AttentionTileRejection(const AttentionProblem &problem,
                                       const Sm90AttentionKnobs &knobs, const ScoreNeeds &needs);
/// Why layouts are none that TMA loads and stores: columns that are no neighbours, rows that do not
/// start at multiples of 16 bytes, more strides than a tensor map has. Empty if they are.
std::string sm90AttentionLayoutRejection(const AttentionProblem &problem);

/// Why the heads of a group cannot be rows of one box of TMA: queries or outputs of these lie at
/// several strides, or a tensor map has too few dimensions beside. Empty if they can.
std::string sm90PackedLayoutRejection(const AttentionProblem &problem);

/// The tiles worth trying for these head dimensions.
std::vector<Sm90AttentionKnobs> sm90AttentionTileChoices(const AttentionProblem &problem,
                                                         const ScoreNeeds &needs,
                                                         int multiprocessors);

}  // namespace weft
