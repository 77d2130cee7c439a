// Limits of the tiles of attention-backward-sm80; see Sm80AttentionBackwardTile.h.
#include "codegen/families/attention_backward_sm80/Sm80AttentionBackwardTile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace weft {
namespace {

constexpr int64_t mostSharedBytes = 99 * 1024;  // dynamic, of every target from sm_80 on
constexpr int64_t chunk = 8, chunkBytes = 16;
/// Registers of a thread, and those that are no scores or gradients (tests/nvrtc).
constexpr int64_t mostRegisters = 255, ownRegisters = 64;
/// Of 64 columns a step, what it takes to ask which are of tokens: heads of 80 elements spill, of
/// 64 do not.
constexpr int64_t packedRegisters = 56;
constexpr int widestColumns = 64;

int64_t roundedUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }
int64_t tilesOf(int64_t positions, int rows) { return (positions + rows - 1) / rows; }

bool isTf32(const AttentionProblem &attention) { return attention.operandType == DType::tf32; }

/// Of a position in shared memory: whole blocks of 16 elements of 16 bits, as which f32 is copied,
/// too; an odd number of chunks where these are not permuted.
int64_t pitchBytes(const AttentionProblem &attention, int64_t columns) {
  const int64_t chunks = roundedUp(columns * sizeOf(attention.operandType) / 2, 16) / chunk;
  const bool isPermuted = chunks % 8 == 0 || chunks == 2 || chunks == 4;
  return (isPermuted ? chunks : chunks + 1) * chunkBytes;
}

/// Of the gradients that are `summed`, scores and their gradients.
int64_t registersOf(int64_t summed, const AttentionProblem &attention, int tileColumns) {
  return summed / 2 + tileColumns + ownRegisters +
         (attention.packed && tileColumns == widestColumns ? packedRegisters : 0);
}
/// Both gradients of a block with keys, of wide heads the wider one.
int64_t registers(const AttentionBackwardProblem &problem, int tileColumns) {
  const int64_t head = roundedUp(problem.attention.headDim, 16),
                value = roundedUp(problem.attention.valueDim, 16);
  return registersOf(sm80AttentionBackwardIsWide(problem) ? std::max(head, value) : head + value,
                     problem.attention, tileColumns);
}

template <size_t count>
bool isOneOf(ValueId value, const std::array<int, count> &values) {
  return std::ranges::find(values, value) != values.end();
}
constexpr std::array rowChoices = {32, 64, 128}, columnChoices = {16, 32, 64};

}  // namespace

bool sm80AttentionBackwardIsWide(const AttentionBackwardProblem &problem) {
  const AttentionProblem &attention = problem.attention;
  return !attention.packed && !isTf32(attention) &&
         registersOf(roundedUp(attention.headDim, 16) + roundedUp(attention.valueDim, 16),
                     attention, columnChoices.front()) > mostRegisters;
}

int sm80AttentionBackwardThreads(const Sm80AttentionBackwardKnobs &knobs) {
  return 2 * knobs.tileRows;
}

int64_t sm80AttentionBackwardSharedBytes(const AttentionBackwardProblem &problem,
                                         const Sm80AttentionBackwardKnobs &knobs, int rowFloats) {
  const AttentionProblem &attention = problem.attention;
  const int64_t position =
      pitchBytes(attention, attention.headDim) + pitchBytes(attention, attention.valueDim);
  return knobs.tileRows * position +
         knobs.stages * knobs.tileColumns * (position + 4 * roundedUp(rowFloats, 2));
}

int64_t sm80AttentionBackwardKeyBlocks(const AttentionBackwardProblem &problem,
                                       const Sm80AttentionBackwardKnobs &knobs) {
  return problem.groups() * tilesOf(problem.attention.keys, knobs.tileRows) *
         (sm80AttentionBackwardIsWide(problem) ? 2 : 1);
}
int64_t sm80AttentionBackwardBlocks(const AttentionBackwardProblem &problem,
                                    const Sm80AttentionBackwardKnobs &knobs) {
  return sm80AttentionBackwardKeyBlocks(problem, knobs) +
         problem.attention.heads * tilesOf(problem.attention.queries, knobs.tileRows);
}

std::string sm80AttentionBackwardTileRejection(const AttentionBackwardProblem &problem,
                                               const Sm80AttentionBackwardKnobs &knobs,
                                               int rowFloats) {
  if (!isOneOf(knobs.tileRows, rowChoices))
    return fmt::format("{} rows a block; 32, 64 and 128 are taken", knobs.tileRows);
  if (!isOneOf(knobs.tileColumns, columnChoices))
    return fmt::format("{} columns a step; 16, 32 and 64 are taken", knobs.tileColumns);
  if (knobs.stages < 2 || knobs.stages > 4)
    return fmt::format("{} stages; 2 to 4 are taken", knobs.stages);
  const AttentionProblem &attention = problem.attention;
  if (const int64_t needed = registers(problem, knobs.tileColumns); needed > mostRegisters)
    return fmt::format(
        "{} registers a thread for heads of {} and {} elements and {} columns a step; {} are free: "
        "take fewer columns, or shorter heads",
        needed, attention.headDim, attention.valueDim, knobs.tileColumns, mostRegisters);
  if (const int64_t bytes = sm80AttentionBackwardSharedBytes(problem, knobs, rowFloats);
      bytes > mostSharedBytes)
    return fmt::format(
        "{} bytes of shared memory; the limit is {}: take fewer rows, columns or stages", bytes,
        mostSharedBytes);
  return "";
}

std::string sm80AttentionBackwardLayoutRejection(const AttentionBackwardProblem &problem) {
  const AttentionProblem &attention = problem.attention;
  if (attention.headDim % chunk != 0 || attention.valueDim % chunk != 0)
    return fmt::format("heads of {} and {} elements; multiples of {} are copied asynchronously",
                       attention.headDim, attention.valueDim, chunk);
  for (const auto &[tensor, what] : {std::pair{&attention.q, "queries"},
                                     {&attention.k, "keys"},
                                     {&attention.v, "values"},
                                     {&problem.dOutput(), "d_output"}})
    if (!tensor->hasAlignedRows(sizeOf(attention.operandType), chunkBytes))
      return fmt::format(
          "rows of {} are no neighbours that start at multiples of {} bytes, which asynchronous "
          "copies ask for",
          what, chunkBytes);
  for (const AttentionTensor *gradient : {&problem.dQ, &problem.dK, &problem.dV})
    if (gradient->columnStride != 1) return "elements of a gradient's row are no neighbours";
  return "";
}

Sm80AttentionBackwardKnobs sm80SmallestBackwardTile(const AttentionBackwardProblem &problem) {
  return {.tileRows = isTf32(problem.attention) ? 32 : 64, .tileColumns = 16};
}

std::vector<Sm80AttentionBackwardKnobs> sm80AttentionBackwardTileChoices(
    const AttentionBackwardProblem &problem, int rowFloats) {
  std::vector<Sm80AttentionBackwardKnobs> choices;
  for (const int tileRows : {64, 128})
    for (const int tileColumns : columnChoices)
      for (const int stages : {2, 3}) {
        const Sm80AttentionBackwardKnobs knobs{tileRows, tileColumns, stages};
        if (sm80AttentionBackwardTileRejection(problem, knobs, rowFloats).empty())
          choices.push_back(knobs);
      }
  // Wide rows of f32 leave shared memory for few of them.
  if (const Sm80AttentionBackwardKnobs smallest = sm80SmallestBackwardTile(problem);
      choices.empty() && sm80AttentionBackwardTileRejection(problem, smallest, rowFloats).empty())
    choices.push_back(smallest);
  return choices;
}

}  // namespace weft
