// Shared memory, workspace and maps of a tile; see Sm90AttentionBackwardTile.h.
#include "codegen/families/attention_backward_sm90/Sm90AttentionBackwardTile.h"

#include "codegen/families/attention/HeadDimensions.h"
#include "codegen/families/attention/TileOrder.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace weft {
namespace {

constexpr int warpgroup = 128, rowBytes = 128, subtileSide = 64, stages = 2;
constexpr int64_t mostSharedBytes = 227 * 1024,  // of a block of sm_90
    sharedBytesOfMultiprocessor = 228 * 1024, reservedBytes = 1024;
constexpr int64_t subtileBytes = subtileSide * rowBytes,
                  unitBytes = int64_t(4) * subtileSide * subtileSide;
constexpr size_t mostHeadDimensions = 3;  // of a map of five
/// Of heads: so many columns of sums fit the registers of a tile of one gradient; those that tiles
/// of all three take, which are all that there are over packed tokens.
constexpr int64_t mostColumns = 256, mostColumnsTogether = 128;
/// Scores, gradients of what is kept, of keys and of values of a thread, in registers, that compile
/// without a wait behind every WGMMA.
constexpr int64_t mostRegisters = 192;
/// The same where two blocks share a multiprocessor; what dropout takes of gradients apart and of
/// packed tokens, storing the gradient of scores of the former and of parts of a group, or both
/// where two blocks share it; dropout beside what is stored of parts of a group of gradients apart
/// takes twice as many.
constexpr int64_t mostRegistersOfTwo = 160, crowdedRegisters = 16;
/// Of 16 columns, ptxas serializes the WGMMAs of blocks of 64 queries beside the table of a mask.
constexpr int64_t narrowestOf64 = 24;

int64_t panels(int64_t columns) { return (columns + subtileSide - 1) / subtileSide; }
int64_t rounded(int64_t columns) { return (columns + 15) / 16 * 16; }
int64_t queryTiles(const AttentionBackwardProblem &problem,
                   const Sm90AttentionBackwardKnobs &knobs) {
  return (problem.attention.queries + knobs.tileQueries - 1) / knobs.tileQueries;
}
int64_t keyTiles(const AttentionBackwardProblem &problem, const Sm90AttentionBackwardKnobs &knobs) {
  return (problem.attention.keys + knobs.tileKeys - 1) / knobs.tileKeys;
}
int64_t units(const AttentionBackwardProblem &problem, const Sm90AttentionBackwardKnobs &knobs) {
  return knobs.tileQueries / subtileSide * panels(problem.attention.headDim);
}

/// Whether tiles of queries sum the gradient of these.
bool isApart(const Sm90AttentionBackwardKnobs &knobs) {
  return knobs.gradients != BackwardGradients::together;
}
bool isSingle(const Sm90AttentionBackwardKnobs &knobs) {
  return knobs.gradients == BackwardGradients::single;
}

int64_t splitSharedBytes(const AttentionBackwardProblem &problem,
                         const Sm90AttentionBackwardKnobs &knobs, int rowFloats,
                         const SplitBackwardStages &stages) {
  constexpr int64_t toldBytes = 16;
  const int64_t headPanels = panels(problem.attention.headDim),
                valuePanels = panels(problem.attention.valueDim),
                columnPanels = headPanels + valuePanels,
                rowsBytes = (int64_t(4) * knobs.tileQueries * rowFloats + 15) / 16 * 16,
                barriers = 2 * stages.tiles + (isSingle(knobs) ? 4 : 3) * stages.blocks + 4 +
                           (problem.attention.zeroesUnseen ? 1 : 0);
  if (isSingle(knobs))
    return columnPanels * knobs.tileKeys * rowBytes +
           stages.blocks * (std::max(headPanels, valuePanels) * knobs.tileQueries * rowBytes +
                            rowsBytes + toldBytes) +
           barriers * 8 + 16;
  return stages.tiles * columnPanels * knobs.tileKeys * rowBytes +
         stages.blocks * (columnPanels * knobs.tileQueries * rowBytes + rowsBytes + toldBytes) +
         barriers * 8 + 16;
}

}  // namespace

int sm90AttentionBackwardResidents(const Sm90AttentionBackwardKnobs &knobs) {
  return knobs.gradients == BackwardGradients::apart && knobs.tileKeys == 64 ? 2 : 1;
}

SplitBackwardStages splitBackwardStages(const AttentionBackwardProblem &problem,
                                        const Sm90AttentionBackwardKnobs &knobs, int rowFloats) {
  constexpr int mostBlocks = 4, mostTiles = 2, leastPlaces = 3, mostPlaces = 6;
  const int64_t most =
      sharedBytesOfMultiprocessor / sm90AttentionBackwardResidents(knobs) - reservedBytes;
  SplitBackwardStages stages;
  const auto fits = [&](const SplitBackwardStages &wanted) {
    return splitSharedBytes(problem, knobs, rowFloats, wanted) <= most;
  };
  if (isSingle(knobs)) {
    stages.blocks = leastPlaces;
    while (stages.blocks < mostPlaces && fits({stages.blocks + 1, stages.tiles})) ++stages.blocks;
    return stages;
  }
  // A third block hides more than the next tile does, which begins when its last block is read.
  for (const SplitBackwardStages wanted :
       {SplitBackwardStages{3, 1}, {3, mostTiles}, {mostBlocks, mostTiles}})
    if (fits(wanted)) stages = wanted;
  return stages;
}

int splitBackwardBoxRows(const Sm90AttentionBackwardKnobs &knobs) {
  return std::min(knobs.tileQueries, subtileSide);
}

int sm90AttentionBackwardThreads(const Sm90AttentionBackwardKnobs &knobs) {
  return (knobs.tileKeys / subtileSide + 1) * warpgroup;
}

int64_t sm90AttentionBackwardSharedBytes(const AttentionBackwardProblem &problem,
                                         const Sm90AttentionBackwardKnobs &knobs, int rowFloats) {
  if (isApart(knobs))
    return splitSharedBytes(problem, knobs, rowFloats,
                            splitBackwardStages(problem, knobs, rowFloats));
  constexpr int64_t blockBytes = 16;
  const int64_t barriers = 2 + 4 * stages + 3 + 4 + 4 + (problem.attention.zeroesUnseen ? 1 : 0);
  const int64_t columnPanels =
      panels(problem.attention.headDim) + panels(problem.attention.valueDim);
  const int64_t rowsBytes = (int64_t(4) * knobs.tileQueries * rowFloats + 15) / 16 * 16;
  return columnPanels * knobs.tileKeys * rowBytes +
         stages * columnPanels * knobs.tileQueries * rowBytes +
         2 * (knobs.tileQueries / subtileSide * knobs.tileKeys * rowBytes) +
         units(problem, knobs) * unitBytes + subtileBytes + stages * rowsBytes +
         stages * blockBytes + barriers * 8 + 16;
}

int64_t sm90AttentionBackwardGroupParts(const AttentionBackwardProblem &problem,
                                        const Sm90AttentionBackwardKnobs &knobs) {
  const int64_t heads = problem.attention.headsOfGroup;
  return knobs.headsOfTile == 0 ? 1 : (heads + knobs.headsOfTile - 1) / knobs.headsOfTile;
}

int64_t sm90AttentionBackwardTiles(const AttentionBackwardProblem &problem,
                                   const Sm90AttentionBackwardKnobs &knobs) {
  const int64_t ofQueries = (problem.attention.queries + knobs.tileKeys - 1) / knobs.tileKeys;
  return keyTiles(problem, knobs) * problem.groups() *
             sm90AttentionBackwardGroupParts(problem, knobs) * (isSingle(knobs) ? 2 : 1) +
         (isApart(knobs) ? ofQueries * problem.attention.heads : 0);
}

int64_t sm90AttentionBackwardHeadsInFlight(const AttentionBackwardProblem &problem,
                                           const Sm90AttentionBackwardKnobs &knobs) {
  const int64_t ofTile = knobs.headsOfTile > 0 ? knobs.headsOfTile : problem.attention.headsOfGroup,
                keyTiles = (problem.attention.keys + knobs.tileKeys - 1) / knobs.tileKeys,
                together =
                    std::max<int64_t>(knobs.headGroup, (knobs.blocks + keyTiles - 1) / keyTiles);
  return std::min(together * ofTile, problem.attention.heads);
}

int64_t sm90AttentionBackwardBlocks(const AttentionBackwardProblem &problem,
                                    const Sm90AttentionBackwardKnobs &knobs) {
  return std::min<int64_t>(sm90AttentionBackwardTiles(problem, knobs), knobs.blocks);
}

int64_t sm90AttentionBackwardSemaphores(const AttentionBackwardProblem &problem,
                                        const Sm90AttentionBackwardKnobs &knobs) {
  return problem.attention.heads * queryTiles(problem, knobs);
}

int64_t sm90AttentionBackwardPartSemaphores(const AttentionBackwardProblem &problem,
                                            const Sm90AttentionBackwardKnobs &knobs) {
  const int64_t parts = sm90AttentionBackwardGroupParts(problem, knobs);
  return parts == 1 ? 0
                    : keyTiles(problem, knobs) * problem.groups() * (knobs.tileKeys / subtileSide);
}

int64_t sm90AttentionBackwardWorkspaceBytes(const AttentionBackwardProblem &problem,
                                            const Sm90AttentionBackwardKnobs &knobs) {
  const int64_t columns = rounded(problem.attention.headDim) + rounded(problem.attention.valueDim),
                parts = sm90AttentionBackwardGroupParts(problem, knobs),
                floats = parts == 1 ? 0
                                    : keyTiles(problem, knobs) * problem.groups() * parts *
                                          knobs.tileKeys * columns;
  return 4 * floats + (isApart(knobs) ? 0
                                      : sm90AttentionBackwardSemaphores(problem, knobs) *
                                            units(problem, knobs) * unitBytes);
}

int mostRowFloats(const Kernel &kernel, const AttentionBackwardRegion &region) {
  if (region.packed) return int(region.packed->rows.size());
  return 1 + int(std::ranges::count_if(region.inputs, [&](const ScoreInput &input) {
           const Value &value = kernel.values[size_t(input.value)];
           return value.dtype == DType::f32 && input.value != region.logSums &&
                  std::ranges::find(value.axes, region.keyAxis) == value.axes.end();
         }));
}

int64_t sm90AttentionBackwardRegisters(const AttentionBackwardProblem &problem,
                                       const Sm90AttentionBackwardKnobs &knobs) {
  const int64_t head = rounded(problem.attention.headDim),
                value = rounded(problem.attention.valueDim);
  return knobs.tileQueries + (isSingle(knobs) ? std::max(head, value) : head + value) / 2;
}

bool sm90AttentionBackwardLoadsUnderConditions(const AttentionBackwardProblem &problem,
                                               const Sm90AttentionBackwardKnobs &knobs) {
  return problem.attention.packed ||
         (problem.dScores && sm90AttentionBackwardRegisters(problem, knobs) >= mostRegisters);
}

std::string sm90AttentionBackwardTileRejection(const AttentionBackwardProblem &problem,
                                               const Sm90AttentionBackwardKnobs &knobs,
                                               int rowFloats, bool hasDropout) {
  const AttentionProblem &attention = problem.attention;
  const bool split = isApart(knobs), single = isSingle(knobs);
  const int64_t widest = std::max(attention.headDim, attention.valueDim);
  const std::string heads =
      fmt::format("heads of {} and {} columns", attention.headDim, attention.valueDim);
  if (widest > mostColumns) return fmt::format("{}; at most {} are taken", heads, mostColumns);
  if (attention.packed && widest > mostColumnsTogether)
    return fmt::format("{} over packed tokens; at most {} are taken there", heads,
                       mostColumnsTogether);
  if (split && attention.packed) return "gradients apart, over packed tokens";
  if (knobs.tileQueries != 64 && knobs.tileQueries != (split ? 32 : 128))
    return fmt::format("{} queries a block; {} are taken{}", knobs.tileQueries,
                       split ? "32 and 64" : "64 and 128",
                       split ? " where gradients are apart" : "");
  if (knobs.tileKeys != 128 && (!split || single || knobs.tileKeys != 64))
    return fmt::format("{} keys a tile; {} taken", knobs.tileKeys,
                       split && !single ? "64 and 128 are" : "128 are");
  if (knobs.sums == GradientSums::unordered && (split || attention.keys <= knobs.tileKeys))
    return fmt::format(
        "sums in any order; {}",
        split ? "gradients apart have none in the workspace"
              : fmt::format("{} keys are one tile, which has nothing to add to", attention.keys));
  if (single && knobs.headsOfTile > 0)
    return fmt::format("{} heads a tile; tiles of one gradient take all {} that share keys",
                       knobs.headsOfTile, attention.headsOfGroup);
  if (knobs.headsOfTile > 0 && (knobs.headsOfTile >= attention.headsOfGroup ||
                                (split && attention.headsOfGroup % knobs.headsOfTile != 0)))
    return fmt::format("{} heads a tile; {}{} that share keys are taken", knobs.headsOfTile,
                       split ? "divisors of the " : "fewer than the ", attention.headsOfGroup);
  // Of more, one WGMMA takes more registers than a thread of two blocks a multiprocessor has, and
  // ptxas spills beside the addresses of parts and products of 64 columns.
  if (split && !single && widest > mostColumnsTogether &&
      (knobs.tileKeys == 64 || knobs.tileQueries == 64 || knobs.headsOfTile > 0))
    return fmt::format(
        "{}; where gradients are apart, tiles of 64 rows, blocks of 64 columns and "
        "parts of a group take at most {}",
        heads, mostColumnsTogether);
  if (!split && widest > mostColumnsTogether)
    return fmt::format("{}; tiles of keys sum gradients of queries of at most {}", heads,
                       mostColumnsTogether);
  if (const int64_t columns = std::min(attention.headDim, attention.valueDim);
      !split && knobs.tileQueries == 64 && columns < narrowestOf64)
    return fmt::format("heads of {} columns; blocks of 64 queries take at least {}", columns,
                       narrowestOf64);
  const int64_t registers = sm90AttentionBackwardRegisters(problem, knobs);
  const bool shares = sm90AttentionBackwardResidents(knobs) > 1,
             stores = problem.dScores.has_value(), hasParts = knobs.headsOfTile > 0;
  const int crowded = shares   ? stores && hasDropout
                      : stores ? (split || hasParts) + (split && hasDropout) * (hasParts ? 2 : 1)
                               : (split || attention.packed) && hasDropout;
  const int64_t free = (shares ? mostRegistersOfTwo : mostRegisters) - crowded * crowdedRegisters;
  if (registers > free)
    return fmt::format(
        "{} registers a thread hold products of {} queries and sums; at most {} are "
        "free",
        registers, knobs.tileQueries, free);
  if (const int64_t bytes = sm90AttentionBackwardSharedBytes(problem, knobs, rowFloats);
      bytes > mostSharedBytes)
    return fmt::format("{} bytes of shared memory; a block has {}", bytes, mostSharedBytes);
  return "";
}

std::string sm90AttentionBackwardLayoutRejection(const AttentionBackwardProblem &problem) {
  constexpr int64_t bytes = 16;
  const AttentionProblem &attention = problem.attention;
  // Of packed tokens, one dimension of a map says where a sequence ends.
  const size_t most = mostHeadDimensions - (attention.packed ? 1 : 0);
  for (const auto &[tensor, what] : {std::pair(&attention.q, "queries"),
                                     {&attention.k, "keys"},
                                     {&attention.v, "values"},
                                     {&attention.output, "the output's gradient"},
                                     {&problem.dQ, "the queries' gradient"},
                                     {&problem.dK, "the keys' gradient"},
                                     {&problem.dV, "the values' gradient"}}) {
    if (!tensor->hasAlignedRows(sizeOf(attention.operandType), bytes))
      return fmt::format(
          "rows of {} are no neighbours that start at multiples of {} bytes, which TMA asks for",
          what, bytes);
    if (const size_t count = headDimensions(attention, *tensor).size(); count > most)
      return fmt::format("heads of {} have {} strides; a tensor map has {} beside rows and columns",
                         what, count, most);
  }
  return "";
}

std::vector<Sm90AttentionBackwardKnobs> sm90AttentionBackwardTileChoices(
    const AttentionBackwardProblem &problem, int rowFloats, bool readsScores, bool hasDropout,
    bool hasTables, int multiprocessors) {
  const AttentionProblem &attention = problem.attention;
  // As many heads as blocks run at a time, so that none waits for its turn, as far as their queries
  // stay in L2.
  constexpr int64_t bytesInL2 = 24 << 20;
  const int64_t bytesOfHead =
      attention.queries * (attention.headDim + attention.valueDim) * sizeOf(attention.operandType);
  const auto mostTogether = [&](int64_t tileHeads) {
    return std::min<int64_t>(tileHeads, multiprocessors);
  };
  const auto groupOf = [&](int64_t tileHeads, int64_t ofTile) {
    const int64_t bytes = std::max<int64_t>(bytesOfHead * ofTile, 1);
    return int(std::clamp<int64_t>(bytesInL2 / bytes, 1, mostTogether(tileHeads)));
  };
  std::vector<Sm90AttentionBackwardKnobs> choices;
  const auto offer = [&](const Sm90AttentionBackwardKnobs &knobs) {
    const bool isTaken =
        sm90AttentionBackwardTileRejection(problem, knobs, rowFloats, hasDropout).empty();
    if (isTaken) choices.push_back(knobs);
    return isTaken;
  };
  // Of all heads that share keys; or of some of them, for about one, two and four tiles a block, or
  // so few that their queries stay in L2 while all tiles of keys pass.
  const int64_t heads = attention.headsOfGroup,
                tiles = problem.groups() * ((attention.keys + 127) / 128);
  std::vector<int64_t> headsOfTiles = {heads};
  for (const int64_t waves : {1, 2, 4}) {
    const int64_t parts = std::min(heads, (waves * multiprocessors + tiles - 1) / tiles),
                  ofTile = (heads + parts - 1) / parts;
    if (ofTile < headsOfTiles.back()) headsOfTiles.push_back(ofTile);
  }
  const int64_t tilesOfHead = (attention.keys + 127) / 128,
                atOnce = (multiprocessors + tilesOfHead - 1) / tilesOfHead,
                inL2 = std::max<int64_t>(bytesInL2 / std::max<int64_t>(bytesOfHead, 1) / atOnce, 1);
  if (inL2 < headsOfTiles.back()) headsOfTiles.push_back(inL2);
  for (const int64_t ofTile : headsOfTiles) {
    const int64_t tileHeads = problem.groups() * ((heads + ofTile - 1) / ofTile);
    const int most = int(mostTogether(tileHeads)), group = groupOf(tileHeads, ofTile);
    std::vector<int> groups = {group};
    if (const int even = int(headsTogether(tileHeads, group)); even != group)
      groups.push_back(even);
    // Tiles of several heads are long and few: taken all together, the longest ones begin first,
    // and many of a head pass a block of queries at the same time.
    if (heads > 1 && most != group) groups.push_back(most);
    for (const int together : groups)
      for (const int tileQueries : {128, 64})
        if (tileQueries == 64 || !readsScores)
          offer({.tileQueries = tileQueries,
                 .tileKeys = 128,
                 .headGroup = together,
                 .headsOfTile = ofTile == heads ? 0 : int(ofTile),
                 .blocks = multiprocessors});
  }
  // A tile of keys that many queries see, of every head, is done when all others are: where a table
  // shows some keys to far more queries than others, and where no multiprocessor has two tiles.
  const bool takesParts = hasTables || tilesOfHead * problem.groups() < multiprocessors;
  constexpr int64_t mostPartBytes = 64 << 20;
  const int64_t bytesOfPart = problem.groups() * attention.keys *
                              (attention.headDim + attention.valueDim) * int64_t(sizeof(float));
  std::vector<int64_t> headsApart = {heads};
  for (const int64_t parts : std::set<int64_t>{2, 4, heads})
    if (takesParts && parts > 1 && parts <= heads && heads % parts == 0 &&
        parts * bytesOfPart <= mostPartBytes)
      headsApart.push_back(heads / parts);
  for (const int64_t ofTile : headsApart) {
    const int64_t tileHeads = problem.groups() * (heads / ofTile);
    for (const int tileKeys : {64, 128})
      for (const int columns : {64, 32}) {
        Sm90AttentionBackwardKnobs knobs{
            .gradients = BackwardGradients::apart,
            .tileQueries = columns,
            .tileKeys = tileKeys,
            .headGroup = int(headsTogether(tileHeads, groupOf(tileHeads, ofTile))),
            .headsOfTile = ofTile == heads ? 0 : int(ofTile)};
        knobs.blocks = multiprocessors * sm90AttentionBackwardResidents(knobs);
        if (offer(knobs)) break;  // wider blocks where registers hold them
      }
  }
  // Where both gradients of a tile of keys leave few registers or none.
  // Whom wide blocks leave few registers, the producer spills tables of tiles, and consumers the
  // addresses of what element-wise ops read along keys.
  const int64_t widest = std::max(attention.headDim, attention.valueDim);
  if (widest > mostColumnsTogether)
    for (const int columns : {64, 32})
      if (((!hasTables && !readsScores) ||
           columns + rounded(widest) / 2 <= mostRegisters - crowdedRegisters) &&
          offer(
              {.gradients = BackwardGradients::single,
               .tileQueries = columns,
               .tileKeys = 128,
               .headGroup = int(headsTogether(problem.groups(), groupOf(problem.groups(), heads))),
               .blocks = multiprocessors}))
        break;
  return choices;
}

}  // namespace weft
