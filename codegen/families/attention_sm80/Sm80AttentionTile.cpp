// Limits of the tiles of attention-sm80; see Sm80AttentionTile.h.
#include "codegen/families/attention_sm80/Sm80AttentionTile.h"

#include "codegen/families/attention/ScoreMasks.h"
#include "codegen/families/attention/VisibleScores.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft {
namespace {

constexpr int warpSize = 32, queriesOfWarp = 16;
constexpr int64_t mostSharedBytes = 99 * 1024;  // dynamic, of every target from sm_80 on
constexpr int64_t widest = 256, chunk = 8, chunkBytes = 16;
/// Registers of a thread, those that are no scores, outputs or queries, and what value ops and
/// draws of dropout add (tests/nvrtc).
constexpr int64_t mostRegisters = 255, ownRegisters = 48, valueOpRegisters = 16,
                  dropoutRegisters = 16;
constexpr int64_t registersOfMultiprocessor = 65536;
/// Of a kernel's own device memory.
constexpr int64_t mostPartialBytes = 64 << 20;
constexpr int64_t mostRows = 1 << 30;  // of packed heads: an int with a tile to spare
/// Keys of a warp's scores where these gather from two tables and more (tests/nvrtc: 64 spill).
constexpr int mostKeysOfGathers = 32;
constexpr int rowsOfLoneWarps = 64;  // from here on a warp has the rows of a tile to itself

int64_t roundedUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

bool isTf32(const AttentionProblem &problem) { return problem.operandType == DType::tf32; }

/// Columns of a row in elements of 16 bits, as which f32 is copied, too.
int64_t halves(const AttentionProblem &problem, int64_t columns) {
  return columns * sizeOf(problem.operandType) / 2;
}

/// Of a position in shared memory: whole blocks of 16 elements of 16 bits; an odd number of chunks
/// where these are not permuted.
int64_t pitchBytes(const AttentionProblem &problem, int64_t columns) {
  const int64_t chunks = roundedUp(halves(problem, columns), 16) / chunk;
  const bool isPermuted = chunks % 8 == 0 || chunks == 2 || chunks == 4;
  return (isPermuted ? chunks : chunks + 1) * chunkBytes;
}

int keyWarps(const Sm80AttentionKnobs &knobs) {
  if (knobs.tileQueries >= rowsOfLoneWarps) return 1;
  return std::min(rowsOfLoneWarps / knobs.tileQueries, knobs.tileKeys / 16);
}

int64_t rows(const AttentionProblem &problem, const Sm80AttentionKnobs &knobs) {
  return problem.queries * sm80PackedHeads(problem, knobs);
}

/// Whether a warp has its queries in registers throughout.
bool keepsQueries(const AttentionProblem &problem) {
  return halves(problem, problem.headDim) <= 128;
}

int64_t registers(const AttentionProblem &problem, const Sm80AttentionKnobs &knobs) {
  const int64_t outputs = roundedUp(problem.valueDim, 16) / 2,
                scores = knobs.tileKeys / keyWarps(knobs) / 2;
  const int64_t head = halves(problem, problem.headDim),
                queries = keepsQueries(problem) ? roundedUp(head, 16) / 4 : 4;
  return outputs + scores + queries + ownRegisters;
}

}  // namespace

int sm80AttentionThreads(const Sm80AttentionKnobs &knobs) {
  return warpSize * knobs.tileQueries / queriesOfWarp * keyWarps(knobs);
}

bool sm80AttentionJoins(const Sm80AttentionKnobs &knobs) {
  return keyWarps(knobs) > 1 || knobs.packed != 0 || knobs.splits > 1;
}

int64_t sm80AttentionSharedBytes(const AttentionProblem &problem, const Sm80AttentionKnobs &knobs) {
  const int64_t head = pitchBytes(problem, problem.headDim),
                value = pitchBytes(problem, problem.valueDim),
                stage = knobs.tileKeys * (head + value), queries = knobs.tileQueries * head;
  // An output of f32 goes from registers to memory.
  if (!sm80AttentionJoins(knobs))
    return std::max(queries + knobs.stages * stage,
                    isTf32(problem) ? 0 : knobs.tileQueries * value);
  const bool areQueriesInStages = keepsQueries(problem) && queries <= stage;
  const int64_t joined =
      keyWarps(knobs) * knobs.tileQueries * (roundedUp(problem.valueDim, 16) + 8) * 4;
  return std::max(knobs.stages * stage + (areQueriesInStages ? 0 : queries), joined);
}

int64_t sm80PackedHeads(const AttentionProblem &problem, const Sm80AttentionKnobs &knobs) {
  return knobs.packed != 0 ? problem.headsOfGroup : 1;
}

int64_t sm80AttentionRowTiles(const AttentionProblem &problem, const Sm80AttentionKnobs &knobs) {
  return problem.heads / sm80PackedHeads(problem, knobs) *
         ((rows(problem, knobs) + knobs.tileQueries - 1) / knobs.tileQueries);
}

int64_t sm80AttentionBlocks(const AttentionProblem &problem, const Sm80AttentionKnobs &knobs) {
  return sm80AttentionRowTiles(problem, knobs) * knobs.splits;
}

int64_t sm80AttentionPartialBytes(const AttentionProblem &problem,
                                  const Sm80AttentionKnobs &knobs) {
  if (knobs.splits == 1) return 0;
  return 4 * sm80AttentionBlocks(problem, knobs) *
         std::min<int64_t>(knobs.tileQueries, rows(problem, knobs)) * (problem.valueDim + 4);
}

int sm80AttentionResidentBlocks(const AttentionProblem &problem, const Sm80AttentionKnobs &knobs,
                                int64_t sharedBytesOfMultiprocessor) {
  constexpr int64_t reservedBytes = 1024, threadRegisters = 8;  // of a block; a unit
  const int64_t ofThread = std::min(
      mostRegisters, roundedUp(registers(problem, knobs) + valueOpRegisters, threadRegisters));
  return int(std::max<int64_t>(
      1, std::min(sharedBytesOfMultiprocessor /
                      (sm80AttentionSharedBytes(problem, knobs) + reservedBytes),
                  registersOfMultiprocessor / (ofThread * sm80AttentionThreads(knobs)))));
}

TileOrder sm80AttentionTileOrder(const Kernel &kernel, const AttentionRegion &region,
                                 const AttentionProblem &problem, const Sm80AttentionKnobs &knobs) {
  const int64_t heads = sm80PackedHeads(problem, knobs);
  if (knobs.tileQueries % heads != 0) return {};
  return longestTilesFirst(
      seenByTiles(kernel, region, problem, knobs.tileQueries / heads, knobs.tileKeys), true);
}

Sm80ScoreNeeds sm80ScoreNeeds(const Kernel &kernel, const AttentionRegion &region,
                              const AttentionProblem &problem) {
  const std::vector<bool> isMask = codegen::scoreMasks(kernel, region, problem);
  return {.hasValueOps = std::ranges::find(isMask, false) != isMask.end(),
          .gatheredTables = gatheredTables(kernel, region, problem),
          .hasDropout = region.hasDropout};
}

std::string sm80AttentionTileRejection(const AttentionProblem &problem,
                                       const Sm80AttentionKnobs &knobs,
                                       const Sm80ScoreNeeds &needs) {
  if (knobs.tileQueries != 16 && knobs.tileQueries != 32 && knobs.tileQueries != 64 &&
      knobs.tileQueries != 128)
    return fmt::format("{} rows a block; 16, 32, 64 and 128 are taken", knobs.tileQueries);
  if (knobs.tileKeys != 32 && knobs.tileKeys != 64 && knobs.tileKeys != 128 &&
      !(isTf32(problem) && knobs.tileKeys == 16))
    return fmt::format("{} keys a tile; {}32, 64 and 128 are taken", knobs.tileKeys,
                       isTf32(problem) ? "16, " : "");
  if (knobs.stages < 2 || knobs.stages > 4)
    return fmt::format("{} stages; 2 to 4 are taken", knobs.stages);
  if (knobs.packed != 0 && problem.headsOfGroup == 1)
    return "no heads share keys and values: there is nothing to pack";
  if (knobs.packed != 0 && needs.hasDropout)
    return "rows of packed heads, whose probabilities are not drawn a fragment at a time";
  if (const int64_t packed = rows(problem, knobs); packed > mostRows)
    return fmt::format("{} rows of packed heads; at most {} are taken", packed, mostRows);
  if (const int64_t tiles = (problem.keys + knobs.tileKeys - 1) / knobs.tileKeys;
      knobs.splits < 1 || knobs.splits > tiles)
    return fmt::format("{} splits of {} tiles of keys", knobs.splits, tiles);
  if (const int64_t bytes = sm80AttentionPartialBytes(problem, knobs); bytes > mostPartialBytes)
    return fmt::format("{} bytes of workspace for the splits; the limit is {}: take fewer", bytes,
                       mostPartialBytes);
  if (problem.headDim > widest || problem.valueDim > widest)
    return fmt::format("heads of {} and {} elements; at most {} fit the registers", problem.headDim,
                       problem.valueDim, widest);
  if (const int keys = knobs.tileKeys / keyWarps(knobs);
      needs.gatheredTables > 1 && keys > mostKeysOfGathers)
    return fmt::format(
        "{} keys of a warp, whose scores gather from {} tables; at most {} fit the "
        "registers",
        keys, needs.gatheredTables, mostKeysOfGathers);
  const int64_t most = mostRegisters - (needs.hasValueOps ? valueOpRegisters : 0) -
                       (needs.hasDropout ? dropoutRegisters : 0);
  if (const int64_t needed = registers(problem, knobs); needed > most)
    return fmt::format("{} registers a thread for {} keys a tile; {} are free: take fewer keys",
                       needed, knobs.tileKeys, most);
  if (const int64_t bytes = sm80AttentionSharedBytes(problem, knobs); bytes > mostSharedBytes)
    return fmt::format(
        "{} bytes of shared memory; the limit is {}: take fewer queries, keys or stages", bytes,
        mostSharedBytes);
  return "";
}

std::string sm80AttentionLayoutRejection(const AttentionProblem &problem) {
  if (problem.headDim % chunk != 0 || problem.valueDim % chunk != 0)
    return fmt::format("heads of {} and {} elements; multiples of {} are copied asynchronously",
                       problem.headDim, problem.valueDim, chunk);
  for (const auto &[tensor, what] :
       {std::pair{&problem.q, "queries"}, {&problem.k, "keys"}, {&problem.v, "values"}})
    if (!tensor->hasAlignedRows(sizeOf(problem.operandType), chunkBytes))
      return fmt::format(
          "rows of {} are no neighbours that start at multiples of {} bytes, which asynchronous "
          "copies ask for",
          what, chunkBytes);
  if (problem.paged)
    for (const int64_t stride : {problem.paged->kStride, problem.paged->vStride})
      if (stride * sizeOf(problem.operandType) % chunkBytes != 0)
        return fmt::format("pages start elsewhere than at multiples of {} bytes", chunkBytes);
  if (problem.output.columnStride != 1) return "elements of an output row are no neighbours";
  return "";
}

Sm80AttentionKnobs sm80SmallestTile(const AttentionProblem &problem) {
  if (isTf32(problem)) return {.tileQueries = 32, .tileKeys = 16};
  return {.tileQueries = 64, .tileKeys = 32};
}

std::vector<Sm80AttentionKnobs> sm80AttentionTileChoices(const AttentionProblem &problem,
                                                         const Sm80ScoreNeeds &needs) {
  std::vector<Sm80AttentionKnobs> choices;
  for (const int tileQueries : {64, 128})
    for (const int tileKeys : {32, 64})
      for (const int stages : {2, 3}) {
        const Sm80AttentionKnobs knobs{tileQueries, tileKeys, stages};
        if (sm80AttentionTileRejection(problem, knobs, needs).empty()) choices.push_back(knobs);
      }
  // Wide rows of f32 leave shared memory for few keys.
  if (choices.empty() && isTf32(problem))
    for (const int tileQueries : {64, 32})
      if (const Sm80AttentionKnobs knobs{tileQueries, 16, 2};
          sm80AttentionTileRejection(problem, knobs, needs).empty())
        choices.push_back(knobs);
  return choices;
}

}  // namespace weft
