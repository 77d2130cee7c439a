// Limits of the tiles of attention-sm80; see Sm80AttentionTile.h.
#include "codegen/families/attention_sm80/Sm80AttentionTile.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft {
namespace {

constexpr int warpSize = 32, queriesOfWarp = 16;
constexpr int64_t mostSharedBytes = 99 * 1024;  // dynamic, of every target from sm_80 on
constexpr int64_t widest = 256, chunk = 8, chunkBytes = 16;
/// Registers of a thread, and those that are no scores, outputs or queries (tests/nvrtc).
constexpr int64_t mostRegisters = 255, ownRegisters = 48, valueOpRegisters = 16;

int64_t roundedUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

/// Of a position in shared memory: whole blocks of 16 elements; an odd number of chunks where these
/// are not permuted.
int64_t pitchBytes(int64_t columns) {
  const int64_t chunks = roundedUp(columns, 16) / chunk;
  const bool isPermuted = chunks % 8 == 0 || chunks == 2 || chunks == 4;
  return (isPermuted ? chunks : chunks + 1) * chunkBytes;
}

int64_t registers(const AttentionProblem &problem, const Sm80AttentionKnobs &knobs) {
  const int64_t outputs = roundedUp(problem.valueDim, 16) / 2, scores = knobs.tileKeys / 2;
  const int64_t queries = problem.headDim <= 128 ? roundedUp(problem.headDim, 16) / 4 : 4;
  return outputs + scores + queries + ownRegisters;
}

}  // namespace

int sm80AttentionThreads(const Sm80AttentionKnobs &knobs) {
  return warpSize * knobs.tileQueries / queriesOfWarp;
}

int64_t sm80AttentionSharedBytes(const AttentionProblem &problem, const Sm80AttentionKnobs &knobs) {
  const int64_t head = pitchBytes(problem.headDim), value = pitchBytes(problem.valueDim);
  return std::max(knobs.tileQueries * head + knobs.stages * knobs.tileKeys * (head + value),
                  knobs.tileQueries * value);
}

int64_t sm80AttentionBlocks(const AttentionProblem &problem, const Sm80AttentionKnobs &knobs) {
  return problem.heads * ((problem.queries + knobs.tileQueries - 1) / knobs.tileQueries);
}

std::string sm80AttentionTileRejection(const AttentionProblem &problem,
                                       const Sm80AttentionKnobs &knobs, bool hasValueOps) {
  if (knobs.tileQueries != 64 && knobs.tileQueries != 128)
    return fmt::format("{} queries a block; 64 and 128 are taken", knobs.tileQueries);
  if (knobs.tileKeys != 32 && knobs.tileKeys != 64)
    return fmt::format("{} keys a tile; 32 and 64 are taken", knobs.tileKeys);
  if (knobs.stages < 2 || knobs.stages > 4)
    return fmt::format("{} stages; 2 to 4 are taken", knobs.stages);
  if (problem.headDim > widest || problem.valueDim > widest)
    return fmt::format("heads of {} and {} elements; at most {} fit the registers", problem.headDim,
                       problem.valueDim, widest);
  const int64_t most = mostRegisters - (hasValueOps ? valueOpRegisters : 0);
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
  if (problem.output.columnStride != 1) return "elements of an output row are no neighbours";
  return "";
}

std::vector<Sm80AttentionKnobs> sm80AttentionTileChoices(const AttentionProblem &problem,
                                                         bool hasValueOps) {
  std::vector<Sm80AttentionKnobs> choices;
  for (const int tileQueries : {64, 128})
    for (const int tileKeys : {32, 64})
      for (const int stages : {2, 3}) {
        const Sm80AttentionKnobs knobs{tileQueries, tileKeys, stages};
        if (sm80AttentionTileRejection(problem, knobs, hasValueOps).empty())
          choices.push_back(knobs);
      }
  return choices;
}

}  // namespace weft
