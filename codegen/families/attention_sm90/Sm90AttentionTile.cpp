// Registers, shared memory and maps of a tile; see Sm90AttentionTile.h.
#include "codegen/families/attention_sm90/Sm90AttentionTile.h"

#include "codegen/families/attention/AttentionScore.h"
#include "codegen/families/attention/RotatedQueries.h"
#include "codegen/families/attention/VisibleScores.h"
#include "kernel/BlockMask.h"
#include "kernel/TileBounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>

namespace weft {
namespace {

constexpr int warpgroup = 128, rowBytes = 128, subtileSide = 64;
constexpr int64_t mostSharedBytes = 227 * 1024,  // of a block of sm_90
    sharedBytesOfMultiprocessor = 228 * 1024, reservedBytes = 1024;
constexpr int64_t wordsOfSequences = 4 * 32 * 4;  ///< of packed tokens
constexpr size_t mostHeadDimensions = 3;          // of a map of five
/// Scores, exponentials and output of a thread, in registers, that compile without a wait behind
/// every WGMMA: with three consumers, with two, and with one.
constexpr int mostRegistersOfThree = 132, mostRegistersOfTwo = 192, mostRegistersOfOne = 176;
/// The same where three blocks of one consumer share a multiprocessor.
constexpr int mostRegistersOfResidents = 88;
/// What masks of several comparisons need of them beside where the last block of keys is a part.
constexpr int conditionRegisters = 16;
/// What masks and tensors that score ops read need beside with three consumers, and value ops with
/// any, as draws of dropout. Of a tensor that one op reads twice, or several read, with three, and
/// where values behind counts are zeroed.
constexpr int maskRegisters = 8, inputRegisters = 16, valueOpRegisters = 12, dropoutRegisters = 16,
              secondReadRegisters = 8, sharedInputRegisters = 20, zeroingRegisters = 8;
/// What block masks need beside, by consumers, and more where each head has a table.
constexpr int tableRegistersOfThree = 36, tableRegistersOfTwo = 52, tableRegistersOfOne = 46,
              tableOfHeadRegisters = 10, tableOfHeadRegistersOfOne = 15;
/// Where one op reads a tensor twice, at queries and at keys (segments of documents), all loads of
/// a block stand in front of its scores: what two consumers need beside, and keys of a block of
/// one.
constexpr int secondReadRegistersOfTwo = 20, mostTwiceReadKeysOfOne = 112;
/// What rows of several heads need beside where score ops read tensors at the head of each, and
/// where these are no masks: with one consumer and with two.
constexpr int packedInputRegisters = 36, packedValueRegistersOfOne = 28,
              packedValueRegistersOfTwo = 52;
/// What splits of keys need beside where score ops that are no masks read tensors, of one head.
constexpr int splitInputRegisters = 52;
/// What queries that are turned need beside with one consumer, and columns of values, of which
/// wider ones spill then (tests/nvrtc).
constexpr int rotationRegistersOfOne = 8;
constexpr int64_t widestOfRotatingOne = 192;
/// Of 16 columns, some kernels of several blocks of keys were wrong on an H200 (cause unknown);
/// attention-sm80 takes them.
constexpr int64_t narrowestValues = 24;
/// Where score ops gather from a row for each query or key, whose loads ptxas puts in front of all
/// scores: columns of heads, and keys of a block with two consumers and with one. Wider ones spill.
constexpr int64_t widestOfGathers = 128;
constexpr int mostGatheringKeysOfTwo = 48, mostGatheringKeysOfOne = 32;
/// Keys of a block of consumers that share rows, where masks read tensors: wider ones spill.
constexpr int mostMaskedKeysOfSharedRows = 112;
/// Of splits of keys: bytes that they leave, and columns of values, of which wider ones spill.
constexpr int64_t mostPartialBytes = 64 << 20, widestOfSplits = 192;
constexpr int64_t widestOfThree = 96;  ///< columns of values: wider ones spill in blocks that pay

/// Consumers that share rows.
int consumersOfRows(const Sm90AttentionKnobs &knobs) { return std::max(knobs.keyConsumers, 1); }
int consumersOf(const Sm90AttentionKnobs &knobs) {
  return knobs.tileQueries / subtileSide * consumersOfRows(knobs);
}
/// Why score ops that gather from a row for each query or key do not fit such a tile.
std::string gatherRejection(const AttentionProblem &problem, const Sm90AttentionKnobs &knobs) {
  constexpr std::string_view gathers =
      "score ops gather from a row for each query or key, for which ";
  const int consumers = consumersOf(knobs);
  if (const int64_t columns = std::max(problem.headDim, problem.valueDim);
      columns > widestOfGathers)
    return fmt::format("{}heads of {} columns leave no registers; at most {} are taken", gathers,
                       columns, widestOfGathers);
  if (consumers == 3 || knobs.residents == 3)
    return fmt::format("{}{} leave no registers", gathers,
                       consumers == 3 ? "three consumers" : "three blocks a multiprocessor");
  if (const int most = consumers == 2 ? mostGatheringKeysOfTwo : mostGatheringKeysOfOne;
      knobs.tileKeys > most)
    return fmt::format("{}{} keys a block leave no registers; at most {} are taken", gathers,
                       knobs.tileKeys, most);
  return "";
}

/// Why the rows of a tile are no queries of several heads.
std::string packedRejection(const AttentionProblem &problem, const Sm90AttentionKnobs &knobs,
                            const ScoreNeeds &needs) {
  if (problem.headsOfGroup == 1) return "no heads share keys and values: there is nothing to pack";
  if (problem.headsOfGroup > subtileSide)
    return fmt::format("{} heads share keys and values; at most {} are packed into a tile's rows",
                       problem.headsOfGroup, subtileSide);
  if (problem.packed) return "rows of packed heads over packed tokens";
  if (needs.hasDropout)
    return "rows of packed heads, whose probabilities are not drawn a fragment at a time";
  if (consumersOf(knobs) == 3 || knobs.residents == 3)
    return fmt::format("{} leave no registers for rows of packed heads",
                       knobs.residents == 3 ? "three blocks a multiprocessor" : "three consumers");
  if (knobs.keyConsumers > 0 && needs.hasTablesOfHeads)
    return "consumers that share rows of packed heads have no registers for a block mask of each";
  if (knobs.headGroup % problem.headsOfGroup != 0)
    return fmt::format("tiles of {} heads together, of which {} are packed", knobs.headGroup,
                       problem.headsOfGroup);
  return "";
}

/// Why blocks do not share the keys of a tile.
std::string splitRejection(const AttentionProblem &problem, const Sm90AttentionKnobs &knobs,
                           const ScoreNeeds &needs) {
  if (const int64_t blocks = (problem.keys + knobs.tileKeys - 1) / knobs.tileKeys;
      knobs.splits < 1 || knobs.splits > blocks)
    return fmt::format("{} splits of {} blocks of keys", knobs.splits, blocks);
  if (problem.packed) return "splits of keys over packed tokens";
  if (needs.hasDropout) return "splits of keys with dropout";
  if (needs.hasTables) return "splits of keys under block masks";
  if (consumersOf(knobs) == 3) return "splits of keys of three consumers";
  if (problem.valueDim > widestOfSplits)
    return fmt::format("values of {} columns; splits of keys have registers for {}",
                       problem.valueDim, widestOfSplits);
  if (knobs.ordered != 0 || knobs.keyConsumers != 0 || knobs.residents != 0)
    return fmt::format("splits of keys {}; of consumers without an order, rows and residents alone",
                       knobs.ordered != 0        ? "of ordered consumers"
                       : knobs.keyConsumers != 0 ? "of consumers that share rows"
                                                 : "of three blocks a multiprocessor");
  if (const int64_t bytes = sm90AttentionPartialBytes(problem, knobs); bytes > mostPartialBytes)
    return fmt::format("{} bytes of workspace for the splits; the limit is {}: take fewer", bytes,
                       mostPartialBytes);
  return "";
}

int64_t panels(int64_t columns) { return (columns + subtileSide - 1) / subtileSide; }

int64_t queryBytes(const AttentionProblem &problem, const Sm90AttentionKnobs &knobs) {
  return panels(problem.headDim) * knobs.tileQueries * rowBytes;
}
int64_t outputBytes(const AttentionProblem &problem, const Sm90AttentionKnobs &knobs) {
  return panels(problem.valueDim) * knobs.tileQueries * rowBytes;
}
int64_t barriers(const AttentionProblem &problem, const Sm90AttentionKnobs &knobs) {
  return 2 * knobs.queryStages + 4 * knobs.stages + 4 +
         (problem.packed || problem.zeroesUnseen ? 1 : 0) + 2 * (consumersOfRows(knobs) - 1);
}
/// Sums of consumers that share rows: statistics and output of each thread.
int64_t partsBytes(const AttentionProblem &problem, const Sm90AttentionKnobs &knobs) {
  const int64_t columns = (problem.valueDim + 15) / 16 * 16;
  return (consumersOfRows(knobs) - 1) * warpgroup * (4 + columns / 2) * 4;
}
int64_t bytesWithoutOutput(const AttentionProblem &problem, const Sm90AttentionKnobs &knobs) {
  const int64_t block =
      (panels(problem.headDim) + panels(problem.valueDim)) * knobs.tileKeys * rowBytes;
  return knobs.queryStages * queryBytes(problem, knobs) + knobs.stages * block +
         partsBytes(problem, knobs) + barriers(problem, knobs) * 8 + 16 +
         (problem.packed ? wordsOfSequences : 0);
}

/// Elements of one head after the other, rows in order: as the kernel template writes them.
bool liesHeadByHead(const AttentionProblem &problem, const AttentionTensor &sums) {
  int64_t expected = problem.queries;
  bool isDense = problem.queries == 1 || sums.rowStride == 1;
  for (size_t axis = problem.headAxes.size(); axis-- > 0;) {
    isDense = isDense && sums.headStrides[axis] == expected;
    expected *= problem.headExtents[axis];
  }
  return isDense;
}

int registers(const AttentionProblem &problem, const Sm90AttentionKnobs &knobs) {
  const int64_t valueColumns = (problem.valueDim + 15) / 16 * 16;
  return int(knobs.tileKeys / 2 + knobs.tileKeys / 4 + valueColumns / 2);
}

int comparisonsOf(const Expression &expression) {
  using enum ScalarOperator;
  int count = 0;
  for (int node = 0; node <= expression.root(); ++node) {
    const ExpressionNode &own = expression[node];
    if (own.kind == ExpressionNode::Kind::binary)
      count += own.operation == less || own.operation == lessEqual || own.operation == greater ||
               own.operation == greaterEqual || own.operation == equal || own.operation == notEqual;
  }
  return count;
}

/// An operand at two computed places.
bool readsTwice(const Expression &expression) {
  std::map<int, std::set<std::string>> places;  // texts, by operand
  for (int node = 0; node <= expression.root(); ++node)
    if (expression[node].kind == ExpressionNode::Kind::operand &&
        !expression[node].children.empty())
      places[expression[node].index].insert(expression.textOf(node));
  return std::ranges::any_of(places, [](const auto &of) { return of.second.size() > 1; });
}

/// Two ops read one tensor, as masks of queries and of keys read lengths.
bool shareInputs(const Kernel &kernel, const AttentionRegion &region) {
  return std::ranges::any_of(region.inputs, [&](const ScoreInput &input) {
    return std::ranges::count_if(region.scoreOps, [&](OpId op) {
             return std::ranges::count(kernel.body[op].operands, input.value) > 0;
           }) > 1;
  });
}

}  // namespace

ScoreNeeds scoreNeeds(const Kernel &kernel, const AttentionRegion &region,
                      const AttentionProblem &problem) {
  const std::vector<bool> isMask = codegen::scoreMasks(kernel, region, problem);
  bool hasTables = false, hasTablesOfHeads = false, areAllTables = true;
  int64_t wholeTile = 0;
  int conditions = 0;
  for (size_t n = 0; n < isMask.size(); ++n) {
    if (!isMask[n]) continue;
    conditions += comparisonsOf(kernel.body[region.scoreOps[n]].expression);
    if (const BlockTable *const table = blockTableOf(kernel, kernel.body[region.scoreOps[n]])) {
      hasTables = true;
      hasTablesOfHeads = hasTablesOfHeads || table->heads > 1;
      wholeTile = std::gcd(wholeTile, table->size);
    } else {
      areAllTables = false;
    }
  }
  return {.hasMasks = std::ranges::find(isMask, true) != isMask.end(),
          .hasValueOps = std::ranges::find(isMask, false) != isMask.end(),
          .readsInputs = !region.inputs.empty(),
          .readsTwice = std::ranges::any_of(
              region.scoreOps, [&](OpId op) { return readsTwice(kernel.body[op].expression); }),
          .shareInputs = shareInputs(kernel, region),
          .gathersRows = gatheredTables(kernel, region, problem) > 0,
          .hasBounds = std::ranges::any_of(
              region.scoreOps, [&](OpId op) { return tileBoundsOf(kernel.body[op]).has_value(); }),
          .hasDropout = region.hasDropout,
          .rotatesQueries = region.turned.has_value(),
          .hasTables = hasTables,
          .hasTablesOfHeads = hasTablesOfHeads,
          .maskConditions = conditions,
          .wholeTile = areAllTables ? wholeTile : 0};
}

std::string sm90RotatedQueriesRejection(const Kernel &kernel, const AttentionRegion &region) {
  if (region.turned && region.packed && region.logSums >= 0)
    return "the logarithms of sums of packed tokens, beside queries that are turned";
  return rotatedQueriesRejection(kernel, region);
}

bool ScoreNeeds::leavesWholeTiles(const AttentionProblem &problem,
                                  const Sm90AttentionKnobs &knobs) const {
  if (knobs.packed != 0 && hasTablesOfHeads) return false;  // one head sees what another does not
  return wholeTile > 0 && wholeTile % sm90QueriesOfTile(problem, knobs) == 0 &&
         wholeTile % knobs.tileKeys == 0;
}

int sm90AttentionThreads(const Sm90AttentionKnobs &knobs) {
  return (consumersOf(knobs) + 1) * warpgroup;
}

bool sm90AttentionStaysInQ(const AttentionProblem &problem, const Sm90AttentionKnobs &knobs) {
  return bytesWithoutOutput(problem, knobs) + outputBytes(problem, knobs) > mostSharedBytes;
}

int64_t sm90AttentionSharedBytes(const AttentionProblem &problem, const Sm90AttentionKnobs &knobs) {
  return bytesWithoutOutput(problem, knobs) +
         (sm90AttentionStaysInQ(problem, knobs) ? 0 : outputBytes(problem, knobs));
}

int sm90AttentionResidentBlocks(const AttentionProblem &problem, const Sm90AttentionKnobs &knobs) {
  if (knobs.residents > 0) return knobs.residents;
  // Two blocks leave a thread 128 registers; one product into 240 columns takes 150 by ptxas.
  constexpr int64_t mostColumnsOfTwo = 192;
  const int64_t bytes = sm90AttentionSharedBytes(problem, knobs) + reservedBytes;
  return consumersOf(knobs) == 1 && problem.valueDim <= mostColumnsOfTwo &&
                 2 * bytes <= sharedBytesOfMultiprocessor
             ? 2
             : 1;
}

int64_t sm90PackedHeads(const AttentionProblem &problem, const Sm90AttentionKnobs &knobs) {
  return knobs.packed != 0 ? problem.headsOfGroup : 1;
}

int64_t sm90QueriesOfTile(const AttentionProblem &problem, const Sm90AttentionKnobs &knobs) {
  return knobs.tileQueries / subtileSide *
         std::max<int64_t>(subtileSide / sm90PackedHeads(problem, knobs), 1);
}

int64_t sm90AttentionTiles(const AttentionProblem &problem, const Sm90AttentionKnobs &knobs) {
  const int64_t queries = sm90QueriesOfTile(problem, knobs);
  return (problem.queries + queries - 1) / queries *
         (problem.heads / sm90PackedHeads(problem, knobs)) * knobs.splits;
}

int64_t sm90AttentionPartialBytes(const AttentionProblem &problem,
                                  const Sm90AttentionKnobs &knobs) {
  if (knobs.splits == 1) return 0;
  const int64_t columns = (problem.valueDim + 15) / 16 * 16;
  return sm90AttentionTiles(problem, knobs) * (knobs.tileQueries / subtileSide) * warpgroup *
         (4 + columns / 2) * 4;
}

int64_t sm90AttentionBlocks(const AttentionProblem &problem, const Sm90AttentionKnobs &knobs) {
  return std::min<int64_t>(sm90AttentionTiles(problem, knobs), knobs.blocks);
}

TileOrder sm90AttentionTileOrder(const Kernel &kernel, const AttentionRegion &region,
                                 const AttentionProblem &problem, const Sm90AttentionKnobs &knobs) {
  return longestTilesFirst(
      seenByTiles(kernel, region, problem, sm90QueriesOfTile(problem, knobs), knobs.tileKeys),
      true);
}

std::string sm90AttentionTileRejection(const AttentionProblem &problem,
                                       const Sm90AttentionKnobs &knobs, const ScoreNeeds &needs) {
  const int consumers = consumersOf(knobs);
  if (problem.packed && needs.hasTables) return "block masks over packed tokens";
  if (knobs.tileQueries % subtileSide != 0 || knobs.tileQueries < subtileSide ||
      knobs.tileQueries > 3 * subtileSide)
    return fmt::format("{} query rows a tile; 64, 128 and 192 are taken", knobs.tileQueries);
  if (knobs.packed != 0)
    if (std::string reason = packedRejection(problem, knobs, needs); !reason.empty()) return reason;
  if (knobs.splits != 1)
    if (std::string reason = splitRejection(problem, knobs, needs); !reason.empty()) return reason;
  if (knobs.keyConsumers == 1 || knobs.keyConsumers > 3)
    return fmt::format("{} consumers that share rows; 2 and 3 are taken, or 0", knobs.keyConsumers);
  if (knobs.keyConsumers > 0 &&
      (knobs.tileQueries != subtileSide || knobs.ordered != 0 || knobs.residents != 0))
    return fmt::format(
        "{} consumers share rows of tiles of {}{}; of tiles of 64 alone, in no order",
        knobs.keyConsumers, knobs.tileQueries,
        knobs.ordered != 0     ? ", ordered"
        : knobs.residents != 0 ? ", of several blocks a multiprocessor"
                               : "");
  if (knobs.keyConsumers > 0 && needs.hasMasks && needs.readsInputs &&
      knobs.tileKeys > mostMaskedKeysOfSharedRows)
    return fmt::format(
        "{} keys a block of consumers that share rows, under masks of tensors; at "
        "most {} are taken",
        knobs.tileKeys, mostMaskedKeysOfSharedRows);
  if (consumers == 1 && needs.readsTwice && knobs.tileKeys > mostTwiceReadKeysOfOne)
    return fmt::format(
        "{} keys a block of one consumer, under a mask that reads a tensor at queries and at keys; "
        "at most {} are taken",
        knobs.tileKeys, mostTwiceReadKeysOfOne);
  if (knobs.tileKeys % 16 != 0 || knobs.tileKeys < 16 || knobs.tileKeys > 256)
    return fmt::format("{} keys a block; multiples of 16 up to 256 are taken", knobs.tileKeys);
  if (problem.paged && knobs.tileKeys % problem.paged->positions != 0 &&
      problem.paged->positions % knobs.tileKeys != 0)
    return fmt::format("{} keys a block of pages of {}; one is a multiple of the other",
                       knobs.tileKeys, problem.paged->positions);
  if (needs.gathersRows)
    if (std::string reason = gatherRejection(problem, knobs); !reason.empty()) return reason;
  if (knobs.stages < 2) return fmt::format("{} stages; at least 2 are needed", knobs.stages);
  if (knobs.stages % consumersOfRows(knobs) != 0)
    return fmt::format("{} stages for {} consumers, which take as many each", knobs.stages,
                       consumersOfRows(knobs));
  if (knobs.queryStages < 1 || knobs.queryStages > 2)
    return fmt::format("{} tiles of queries in shared memory; 1 and 2 are taken",
                       knobs.queryStages);
  if (problem.valueDim < narrowestValues)
    return fmt::format("values of {} columns; at least {} are taken", problem.valueDim,
                       narrowestValues);
  if (problem.valueDim > 256 || problem.headDim > 256)
    return fmt::format("heads of {} and {} columns; at most 256 fit the registers", problem.headDim,
                       problem.valueDim);
  if (consumers == 3 && problem.valueDim > widestOfThree)
    return fmt::format("values of {} columns; three consumers have registers for {}",
                       problem.valueDim, widestOfThree);
  if (needs.rotatesQueries && consumers == 1 && problem.valueDim > widestOfRotatingOne)
    return fmt::format(
        "values of {} columns; one consumer that rotates queries has registers for {}",
        problem.valueDim, widestOfRotatingOne);
  if (knobs.residents != 0 && (knobs.residents != 3 || consumers != 1))
    return fmt::format("{} blocks of {} consumers a multiprocessor; 3 of one are taken, or 0",
                       knobs.residents, consumers);
  const bool readsTables = needs.hasTables && !needs.leavesWholeTiles(problem, knobs);
  if (consumers == 3 && readsTables && needs.hasTablesOfHeads)
    return "three consumers have no registers for a block mask of each head";
  if (consumers == 3 && needs.hasBounds)
    return "three consumers have no registers for bounds of documents";
  if (consumers == 3 && problem.packed && problem.logSums)
    return "three consumers have no registers for logarithms of sums of packed tokens";
  int most = knobs.residents == 3 ? mostRegistersOfResidents
             : consumers == 3     ? mostRegistersOfThree
             : consumers == 2     ? mostRegistersOfTwo
                                  : mostRegistersOfOne;
  if (knobs.residents == 3 && needs.maskConditions > 1 && problem.keys % knobs.tileKeys != 0)
    most -= conditionRegisters;
  if (consumers == 3 && needs.hasMasks) most -= maskRegisters;
  if (consumers == 3 && needs.readsInputs) most -= inputRegisters;
  if (consumers == 3 && needs.readsTwice) most -= secondReadRegisters;
  if (consumers == 2 && needs.readsTwice) most -= secondReadRegistersOfTwo;
  if (consumers == 3 && needs.shareInputs) most -= sharedInputRegisters;
  if (consumers == 3 && problem.zeroesUnseen) most -= zeroingRegisters;
  if (readsTables)
    most -= consumers == 3   ? tableRegistersOfThree
            : consumers == 2 ? tableRegistersOfTwo
                             : tableRegistersOfOne;
  if (readsTables && needs.hasTablesOfHeads)
    most -= consumers == 1 ? tableOfHeadRegistersOfOne : tableOfHeadRegisters;
  if (needs.hasValueOps) most -= valueOpRegisters;
  if (knobs.packed != 0 && needs.readsInputs)
    most -= packedInputRegisters + (!needs.hasValueOps ? 0
                                    : consumers == 2   ? packedValueRegistersOfTwo
                                                       : packedValueRegistersOfOne);
  if (knobs.splits > 1 && knobs.packed == 0 && needs.readsInputs && needs.hasValueOps)
    most -= splitInputRegisters;
  if (needs.hasDropout) most -= dropoutRegisters;
  if (needs.rotatesQueries && consumers == 1) most -= rotationRegistersOfOne;
  if (const int needed = registers(problem, knobs); needed > most)
    return fmt::format(
        "{} registers a thread hold scores, exponentials and output of {} keys; at "
        "most {} are free",
        needed, knobs.tileKeys, most);
  if (const int64_t bytes = sm90AttentionSharedBytes(problem, knobs); bytes > mostSharedBytes)
    return fmt::format("{} bytes of shared memory; a block has {}", bytes, mostSharedBytes);
  if (const int64_t bytes =
          knobs.residents * (sm90AttentionSharedBytes(problem, knobs) + reservedBytes);
      bytes > sharedBytesOfMultiprocessor)
    return fmt::format("{} bytes of shared memory for {} blocks; a multiprocessor has {}", bytes,
                       knobs.residents, sharedBytesOfMultiprocessor);
  if (sm90AttentionStaysInQ(problem, knobs) &&
      (knobs.queryStages > 1 || panels(problem.valueDim) > panels(problem.headDim)))
    return "no place in shared memory for the output";
  return "";
}

std::string sm90PackedLayoutRejection(const AttentionProblem &problem) {
  for (const auto &[tensor, what] :
       {std::pair(&problem.q, "queries"), {&problem.output, "the output"}}) {
    if (!strideOfGroup(problem, *tensor))
      return fmt::format("heads of a group of {} lie at several strides; packed ones lie at one",
                         what);
    if (const size_t count = headDimensions(problem, *tensor, problem.headsOfGroup).size() + 1;
        count > mostHeadDimensions)
      return fmt::format(
          "packed heads of {} have {} strides; a tensor map has {} beside rows and columns", what,
          count, mostHeadDimensions);
  }
  return "";
}

std::string sm90AttentionLayoutRejection(const AttentionProblem &problem) {
  constexpr int64_t bytes = 16;
  const auto rejection = [&](const AttentionTensor &tensor, std::string_view what,
                             DType type) -> std::string {
    if (!tensor.hasAlignedRows(sizeOf(type), bytes))
      return fmt::format(
          "rows of {} are no neighbours that start at multiples of {} bytes, which "
          "TMA asks for",
          what, bytes);
    const bool isPaged = problem.paged && (&tensor == &problem.k || &tensor == &problem.v);
    if (const size_t count = headDimensions(problem, tensor).size() + (isPaged ? 1 : 0);
        count > mostHeadDimensions)
      return fmt::format("heads of {} have {} strides; a tensor map has {} beside rows and columns",
                         what, count, mostHeadDimensions);
    return "";
  };
  if (problem.paged)
    for (const int64_t stride : {problem.paged->kStride, problem.paged->vStride})
      if (stride * sizeOf(problem.operandType) % bytes != 0)
        return fmt::format("pages start elsewhere than at multiples of {} bytes", bytes);
  std::string reason = rejection(problem.q, "queries", problem.operandType);
  if (reason.empty()) reason = rejection(problem.k, "keys", problem.operandType);
  if (reason.empty()) reason = rejection(problem.v, "values", problem.operandType);
  if (reason.empty()) reason = rejection(problem.output, "the output", problem.outputType);
  if (reason.empty() && problem.logSums && !problem.packed &&
      !liesHeadByHead(problem, *problem.logSums))
    reason = "the logarithms of sums do not lie head by head, query by query";
  return reason;
}

namespace {
/// Whether rows are of one head, or those of a group fill fewer tiles.
bool paysToPack(const AttentionProblem &problem, const Sm90AttentionKnobs &knobs) {
  Sm90AttentionKnobs apart = knobs;
  apart.packed = 0;
  return knobs.packed == 0 ||
         sm90AttentionTiles(problem, knobs) < sm90AttentionTiles(problem, apart);
}

/// Tiles whose consumers share rows, where there are too few to fill the multiprocessors twice. Two
/// of them: three took as long (H100, 12 heads of 616 queries and keys, d = 64: 7.9 and 7.8 us).
void addSharedRows(std::vector<Sm90AttentionKnobs> &choices, const AttentionProblem &problem,
                   const ScoreNeeds &needs, int packed, int multiprocessors) {
  constexpr int widest = 128, narrowest = 64, together = 2;
  bool hasWidest = false;
  for (int tileKeys = widest; tileKeys >= narrowest; tileKeys -= 16) {
    if (hasWidest && (!needs.hasMasks || tileKeys > narrowest)) continue;
    Sm90AttentionKnobs knobs{.tileQueries = subtileSide,
                             .tileKeys = tileKeys,
                             .stages = 2 * together,
                             .queryStages = 1,
                             .ordered = 0,
                             .keyConsumers = together,
                             .packed = packed,
                             .blocks = multiprocessors};
    if (!paysToPack(problem, knobs)) return;
    if (sm90AttentionTiles(problem, knobs) > 2 * multiprocessors) return;
    if (problem.keys <= (together - 1) * tileKeys) continue;
    if (!sm90AttentionTileRejection(problem, knobs, needs).empty()) knobs.stages = together;
    if (!sm90AttentionTileRejection(problem, knobs, needs).empty()) continue;
    choices.push_back(knobs);
    hasWidest = true;
  }
}

/// Tiles whose consumers do not share rows, packed or not.
void addTiles(std::vector<Sm90AttentionKnobs> &choices, const AttentionProblem &problem,
              const ScoreNeeds &needs, int packed, int multiprocessors) {
  // Wider blocks than 128 lose to it where both fit (H200: 409 against 470 TFLOP/s at 128 x 192 of
  // d = 64, 572 against 645 at 128 x 144 of d = 128).
  constexpr int widest = 128, narrowest = 32;
  for (const int consumers : {3, 2, 1}) {
    if (consumers == 3 && packed != 0) continue;
    for (int tileKeys = widest; tileKeys >= narrowest; tileKeys -= 16) {
      Sm90AttentionKnobs knobs{.tileQueries = consumers * subtileSide,
                               .tileKeys = tileKeys,
                               .queryStages = 2,
                               .ordered = consumers > 1 && problem.valueDim <= 128 ? 1 : 0,
                               .packed = packed};
      if (!paysToPack(problem, knobs)) break;
      if (!sm90AttentionTileRejection(problem, knobs, needs).empty()) knobs.queryStages = 1;
      if (!sm90AttentionTileRejection(problem, knobs, needs).empty()) continue;
      if (needs.hasMasks && !problem.packed) {
        constexpr int64_t bytesInL2 = 24 << 20;  // of keys and values
        const int64_t bytesOfHead =
            problem.keys * (problem.headDim + problem.valueDim) * sizeOf(problem.operandType);
        // Where all fit, the same number whatever the extents: it makes one group of them.
        constexpr int64_t mostTogether = 128;
        const int64_t keyHeads = problem.heads / problem.headsOfGroup,
                      fitting = std::min(bytesInL2 / bytesOfHead, mostTogether);
        knobs.headGroup =
            int((keyHeads <= fitting ? mostTogether : headsTogether(keyHeads, fitting)) *
                problem.headsOfGroup);
      }
      knobs.blocks = multiprocessors * sm90AttentionResidentBlocks(problem, knobs);
      choices.push_back(knobs);
      // Narrow blocks leave out more of what masks exclude.
      constexpr int narrow = 64;
      if (needs.hasMasks && tileKeys > narrow) {
        knobs.tileKeys = narrow;
        knobs.blocks = multiprocessors * sm90AttentionResidentBlocks(problem, knobs);
        if (sm90AttentionTileRejection(problem, knobs, needs).empty()) choices.push_back(knobs);
      }
      if (consumers == 1 && tileKeys >= narrow) {
        knobs.tileKeys = narrow;
        knobs.residents = 3;
        knobs.blocks = 3 * multiprocessors;
        if (sm90AttentionTileRejection(problem, knobs, needs).empty()) choices.push_back(knobs);
      }
      break;
    }
  }
}

/// Tiles of queries whose many keys several blocks share, as many as have a multiprocessor each,
/// and half of them: where tiles of queries are too few. Fewer rows than a consumer has are left to
/// attention-sm80, whose tiles are narrower.
void addSplits(std::vector<Sm90AttentionKnobs> &choices, const AttentionProblem &problem,
               const ScoreNeeds &needs, int packed, int multiprocessors) {
  constexpr int64_t leastBlocks = 4;  // of a split
  constexpr int widest = 128, narrowest = 64;
  if (problem.queries * problem.headsOfGroup < subtileSide) return;
  for (const int consumers : {2, 1})
    for (int tileKeys = widest; tileKeys >= narrowest; tileKeys -= 16) {
      Sm90AttentionKnobs knobs{.tileQueries = consumers * subtileSide,
                               .tileKeys = tileKeys,
                               .queryStages = 1,
                               .ordered = 0,
                               .packed = packed};
      if (!paysToPack(problem, knobs)) break;
      const int64_t slots = int64_t(multiprocessors) * sm90AttentionResidentBlocks(problem, knobs),
                    blocks = (problem.keys + tileKeys - 1) / tileKeys,
                    most =
                        std::min(slots / sm90AttentionTiles(problem, knobs), blocks / leastBlocks);
      bool isTaken = false;
      for (const int64_t splits : {most, most / 2}) {
        knobs.splits = int(splits);
        knobs.blocks = int(slots);
        if (splits < 2 || !sm90AttentionTileRejection(problem, knobs, needs).empty()) continue;
        choices.push_back(knobs);
        isTaken = true;
      }
      if (isTaken) break;  // the widest that fits
    }
}
}  // namespace

std::vector<Sm90AttentionKnobs> sm90AttentionTileChoices(const AttentionProblem &problem,
                                                         const ScoreNeeds &needs,
                                                         int multiprocessors) {
  std::vector<Sm90AttentionKnobs> choices;
  for (const int packed : {0, 1}) {
    addTiles(choices, problem, needs, packed, multiprocessors);
    addSharedRows(choices, problem, needs, packed, multiprocessors);
    addSplits(choices, problem, needs, packed, multiprocessors);
  }
  return choices;
}

}  // namespace weft
