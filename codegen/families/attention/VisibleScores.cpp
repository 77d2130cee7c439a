// Mask conditions evaluated at points; see VisibleScores.h.
#include "codegen/families/attention/VisibleScores.h"

#include "codegen/families/attention/AttentionScore.h"
#include "kernel/BlockMask.h"
#include "kernel/CoordinateExpressions.h"
#include "kernel/RecentAnswers.h"
#include "kernel/TileBounds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace weft {
namespace {

/// A number of an i32 or boolean node where `query` and `key` are the coordinates of their axes;
/// nothing where it depends on more.
class PointOfMask {
public:
  PointOfMask(const Expression &expression, const AttentionProblem &problem, int64_t query,
              int64_t key)
      : expression(expression), problem(problem), query(query), key(key) {}

  std::optional<double> at(int node) const {
    using Kind = ExpressionNode::Kind;
    const ExpressionNode &own = expression[node];
    switch (own.kind) {
      case Kind::literal: return own.value;
      case Kind::coordinate:
        if (own.index == problem.queryAxis) return double(query);
        if (own.index == problem.keyAxis) return double(key);
        return std::nullopt;
      case Kind::unary: {
        const auto operand = at(own.children[0]);
        return operand ? std::optional(-*operand) : std::nullopt;
      }
      case Kind::binary: return binary(own);
      default: return std::nullopt;
    }
  }

private:
  std::optional<double> binary(const ExpressionNode &own) const {
    const std::optional<double> a = at(own.children[0]), b = at(own.children[1]);
    using enum ScalarOperator;
    // One side decides, whatever the other is.
    if (own.operation == both && ((a && *a == 0) || (b && *b == 0))) return 0;
    if (own.operation == either && ((a && *a != 0) || (b && *b != 0))) return 1;
    if (!a || !b) return std::nullopt;
    switch (own.operation) {
      case multiply: return *a * *b;
      case divide: return *b == 0 ? std::nullopt : std::optional(std::trunc(*a / *b));
      case modulo: return *b == 0 ? std::nullopt : std::optional(std::fmod(*a, *b));
      case add: return *a + *b;
      case subtract: return *a - *b;
      case less: return *a < *b;
      case lessEqual: return *a <= *b;
      case greater: return *a > *b;
      case greaterEqual: return *a >= *b;
      case equal: return *a == *b;
      case notEqual: return *a != *b;
      case both: return *a != 0 && *b != 0;
      case either: return *a != 0 || *b != 0;
      default: return std::nullopt;
    }
  }

  const Expression &expression;
  const AttentionProblem &problem;
  int64_t query, key;
};

/// The masks of a fused attention: those of a table of tiles, which are known exactly, and the
/// others, which are evaluated at points.
class Masks {
public:
  Masks(const Kernel &kernel, const AttentionRegion &region, const AttentionProblem &problem)
      : problem(problem) {
    const std::vector<bool> isMask = codegen::scoreMasks(kernel, region, problem);
    for (size_t op = 0; op < isMask.size(); ++op) {
      const BodyOp &own = kernel.body[region.scoreOps[op]];
      // How much documents leave is known at run time alone: all, asked of every score.
      if (!isMask[op] || isDocumentMask(own)) ++valueOps;
      else if (const BlockTable *const table = blockTableOf(kernel, own)) tables.push_back(table);
      else others.push_back(&own);
    }
  }

  /// Whether no mask but those of tables is known to exclude a score.
  bool isSeen(int64_t query, int64_t key) const {
    return std::ranges::all_of(others, [&](const BodyOp *op) {
      const Expression &expression = op->expression;
      const ExpressionNode &select = expression[expression.root()];
      const auto holds = PointOfMask(expression, problem, query, key).at(select.children[0]);
      const bool excludesWhereTrue =
          expression[select.children[1]].kind != ExpressionNode::Kind::operand;
      return !(holds && (*holds != 0) == excludesWhereTrue);
    });
  }

  const AttentionProblem &problem;
  std::vector<const BlockTable *> tables;
  std::vector<const BodyOp *> others;
  int valueOps = 0;  ///< as VisibleScores has them
};

/// At most so many of a number of things: all of them, or evenly spread ones without the ends,
/// which patterns treat differently.
std::vector<int64_t> spread(int64_t all, int64_t most) {
  std::vector<int64_t> chosen;
  const int64_t count = std::min(all, most);
  for (int64_t n = 0; n < count; ++n) chosen.push_back((2 * n + 1) * all / (2 * count));
  return chosen;
}

constexpr int64_t mostHeads = 4;  ///< whose tables are looked at

struct Seen {
  bool isAny = true, isAll = true;
};

/// What masks but those of tables leave of a block of keys, by points of it.
Seen seenByOthers(const Masks &masks, int64_t firstQuery, int64_t tileQueries, int64_t firstKey,
                  int64_t tileKeys) {
  if (masks.others.empty()) return {};
  constexpr int64_t points = 4;  // along each side
  Seen seen{.isAny = false};
  for (int64_t point = 0; point < points * points; ++point) {
    const int64_t row = point / points * (tileQueries - 1) / (points - 1),
                  column = point % points * (tileKeys - 1) / (points - 1);
    const bool isPointSeen = masks.isSeen(std::min(firstQuery + row, masks.problem.queries - 1),
                                          std::min(firstKey + column, masks.problem.keys - 1));
    seen.isAny = seen.isAny || isPointSeen, seen.isAll = seen.isAll && isPointSeen;
  }
  return seen;
}

int64_t headsOfTables(const Masks &masks) {
  int64_t heads = 1;
  for (const BlockTable *table : masks.tables) heads = std::max(heads, table->heads);
  return heads;
}

/// Tiles along queries or keys, and the blocks along the other ones that they are walked in.
struct Tiling {
  TilesOf of;
  int64_t rows, columns;  ///< of a tile, of a block
  const AttentionProblem &problem;

  int64_t tiles() const { return (allRows() + rows - 1) / rows; }
  int64_t blocks() const { return (allColumns() + columns - 1) / columns; }
  int64_t allRows() const { return of == TilesOf::queries ? problem.queries : problem.keys; }
  int64_t allColumns() const { return of == TilesOf::queries ? problem.keys : problem.queries; }
  int64_t queries() const { return of == TilesOf::queries ? rows : columns; }
  int64_t keys() const { return of == TilesOf::queries ? columns : rows; }
  int64_t firstQuery(int64_t tile, int64_t block) const {
    return (of == TilesOf::queries ? tile : block) * queries();
  }
  int64_t firstKey(int64_t tile, int64_t block) const {
    return (of == TilesOf::queries ? block : tile) * keys();
  }
};

/// The rows or columns of a table that each tile or block meets, inclusive.
struct TableRange {
  int64_t first, last;
};
struct TableRanges {
  TableRanges(const BlockTable &table, const Tiling &tiling)
      : tiles(rangesOf(table, tiling.tiles(), tiling.rows, tiling.allRows())),
        blocks(rangesOf(table, tiling.blocks(), tiling.columns, tiling.allColumns())) {}
  static std::vector<TableRange> rangesOf(const BlockTable &table, int64_t count, int64_t length,
                                          int64_t all) {
    std::vector<TableRange> ranges;
    for (int64_t n = 0; n < count; ++n)
      ranges.push_back(
          {n * length / table.size, (std::min((n + 1) * length, all) - 1) / table.size});
    return ranges;
  }
  std::vector<TableRange> tiles, blocks;
};
std::vector<TableRanges> rangesOfTables(const Masks &masks, const Tiling &tiling) {
  std::vector<TableRanges> ranges;
  for (const BlockTable *table : masks.tables) ranges.emplace_back(*table, tiling);
  return ranges;
}

/// Of a row of a head's table.
const uint32_t *wordsOf(const BlockTable &table, int64_t head, int64_t row) {
  return table.words.data() + ((table.heads > 1 ? head : 0) * table.rows + row) * table.wordsOfRow;
}

/// Whether the table has any of these tiles.
bool hasAny(const BlockTable &table, int64_t head, const TableRange &rows,
            const TableRange &columns) {
  const int64_t firstWord = columns.first / 32, lastWord = columns.last / 32;
  const uint32_t *words = wordsOf(table, head, rows.first);
  for (int64_t row = rows.first; row <= rows.last; ++row, words += table.wordsOfRow)
    for (int64_t word = firstWord; word <= lastWord; ++word) {
      uint32_t bits = words[word];
      if (word == firstWord) bits &= ~uint32_t(0) << (columns.first % 32);
      if (word == lastWord) bits &= ~uint32_t(0) >> (31 - columns.last % 32);
      if (bits != 0) return true;
    }
  return false;
}

/// Visits the blocks, ascending, of which the table has any tile that a tile of queries or keys
/// meets: few of many.
template <typename Visit>
void forEachBlockOfTable(const BlockTable &table, int64_t head, const TableRange &ofTile,
                         const Tiling &tiling, Visit visit) {
  int64_t next = 0;                       // not visited yet
  const auto meet = [&](int64_t place) {  // along blocks
    const int64_t first = std::max(next, place * table.size / tiling.columns),
                  end = std::min((place + 1) * table.size, tiling.allColumns()),
                  last = (end - 1) / tiling.columns;
    for (int64_t block = first; block <= last; ++block) visit(block);
    next = std::max(next, last + 1);
  };
  if (tiling.of == TilesOf::keys) {
    for (int64_t row = 0; row < table.rows; ++row)
      if (hasAny(table, head, {row, row}, ofTile)) meet(row);
    return;
  }
  const uint32_t *words = wordsOf(table, head, ofTile.first);
  const int64_t rows = ofTile.last - ofTile.first + 1;
  for (int64_t word = 0; word < table.wordsOfRow; ++word) {
    uint32_t bits = 0;
    for (int64_t row = 0; row < rows; ++row) bits |= words[row * table.wordsOfRow + word];
    for (; bits != 0; bits &= bits - 1) meet(word * 32 + std::countr_zero(bits));
  }
}

struct BlockCount {
  int64_t seen = 0, mixed = 0;
};
/// The blocks that a tile of a head sees; of masks with a table.
BlockCount blocksOfTile(const Masks &masks, const std::vector<TableRanges> &ranges, int64_t head,
                        int64_t tile, const Tiling &tiling) {
  const AttentionProblem &problem = masks.problem;
  const bool areQueries = tiling.of == TilesOf::queries;
  BlockCount count;
  const auto add = [&](int64_t block) {
    for (size_t n = 1; n < masks.tables.size(); ++n) {
      const TableRange &ofTile = ranges[n].tiles[size_t(tile)],
                       &ofBlock = ranges[n].blocks[size_t(block)];
      if (!hasAny(*masks.tables[n], head, areQueries ? ofTile : ofBlock,
                  areQueries ? ofBlock : ofTile))
        return;
    }
    const int64_t firstQuery = tiling.firstQuery(tile, block),
                  lastQuery = std::min(firstQuery + tiling.queries(), problem.queries) - 1,
                  firstKey = tiling.firstKey(tile, block),
                  lastKey = std::min(firstKey + tiling.keys(), problem.keys) - 1;
    const bool isAll = std::ranges::all_of(masks.tables, [&](const BlockTable *table) {
      return table->coverage(head, firstQuery, lastQuery, firstKey, lastKey).isAll;
    });
    const Seen others = seenByOthers(masks, firstQuery, tiling.queries(), firstKey, tiling.keys());
    count.seen += others.isAny, count.mixed += others.isAny && !(isAll && others.isAll);
  };
  forEachBlockOfTable(*masks.tables.front(), head, ranges.front().tiles[size_t(tile)], tiling, add);
  return count;
}

/// With tables: every block of up to mostTiles tiles, of some heads. The first and the last tile,
/// which often see most, count for that alone where not all tiles are looked at.
VisibleBlocks countByTables(const Masks &masks, const Tiling &tiling) {
  const int64_t tiles = tiling.tiles();
  constexpr int64_t mostTiles = 128;
  const std::vector<int64_t> heads = spread(headsOfTables(masks), mostHeads);
  std::vector<int64_t> looked = spread(tiles, mostTiles);
  const size_t counted = looked.size();
  if (tiles > mostTiles) looked.push_back(0), looked.push_back(tiles - 1);
  const std::vector<TableRanges> ranges = rangesOfTables(masks, tiling);
  VisibleBlocks result;
  for (const int64_t head : heads)
    for (size_t n = 0; n < looked.size(); ++n) {
      const BlockCount count = blocksOfTile(masks, ranges, head, looked[n], tiling);
      result.most = std::max(result.most, double(count.seen));
      if (n >= counted) continue;
      result.mean += double(count.seen) / double(counted * heads.size());
      result.mixed += double(count.mixed) / double(counted * heads.size());
    }
  return result;
}

VisibleBlocks countBlocks(const Masks &masks, const Tiling &tiling) {
  if (!masks.tables.empty()) return countByTables(masks, tiling);
  const int64_t tiles = tiling.tiles(), blocks = tiling.blocks();
  constexpr int64_t mostTiles = 12, mostBlocks = 96;  // looked at
  const int64_t tileCount = std::min(tiles, mostTiles), blockCount = std::min(blocks, mostBlocks);
  VisibleBlocks result;
  for (int64_t t = 0; t < tileCount; ++t) {
    const int64_t tile = tileCount == 1 ? 0 : t * (tiles - 1) / (tileCount - 1);
    int64_t seen = 0, mixed = 0;
    for (int64_t b = 0; b < blockCount; ++b) {
      const int64_t block = blockCount == 1 ? 0 : b * (blocks - 1) / (blockCount - 1);
      const Seen own = seenByOthers(masks, tiling.firstQuery(tile, block), tiling.queries(),
                                    tiling.firstKey(tile, block), tiling.keys());
      seen += own.isAny, mixed += own.isAny && !own.isAll;
    }
    result.mixed += double(mixed) * double(blocks) / double(blockCount) / double(tileCount);
    const double count = double(seen) * double(blocks) / double(blockCount);
    result.mean += count / double(tileCount);
    result.most = std::max(result.most, count);
  }
  return result;
}

/// The share of scores that tables leave, and other masks at the middle of their tiles.
double shareByTables(const Masks &masks) {
  const BlockTable &first = *masks.tables.front();
  if (masks.tables.size() == 1 && masks.others.empty()) return first.share();
  constexpr int64_t mostRows = 256;
  const std::vector<int64_t> heads = spread(first.heads, mostHeads),
                             rows = spread(first.rows, mostRows);
  double seen = 0, all = 0;
  for (const int64_t head : heads)
    for (const int64_t row : rows) {
      const int64_t queries = std::min(first.size, first.queries - row * first.size),
                    query = row * first.size + queries / 2;
      all += double(queries) * double(first.keys);
      for (int64_t column = 0; column < first.columns; ++column) {
        if (!first.has(head, row, column)) continue;
        const int64_t keys = std::min(first.size, first.keys - column * first.size),
                      key = column * first.size + keys / 2;
        const bool isSeen =
            masks.isSeen(query, key) && std::ranges::all_of(masks.tables, [&](const auto *table) {
              return table->sees(std::min(head, table->heads - 1), query, key);
            });
        if (isSeen) seen += double(queries) * double(keys);
      }
    }
  return seen / all;
}

double shareByPoints(const Masks &masks) {
  const AttentionProblem &problem = masks.problem;
  constexpr int64_t points = 32;
  const int64_t rows = std::min(points, problem.queries), columns = std::min(points, problem.keys);
  int64_t seen = 0;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      seen += masks.isSeen((2 * row + 1) * problem.queries / (2 * rows),
                           (2 * column + 1) * problem.keys / (2 * columns));
  return double(seen) / double(rows * columns);
}

/// What was counted of a kernel. Its layouts do not matter.
struct Counted {
  std::string text;  ///< the kernel's; empty until something is asked that no equal text was
  std::map<std::array<int64_t, 5>, VisibleBlocks> blocks = {};
  std::map<std::array<int64_t, 2>, VisibleScores> scores = {};
};
Counted &countedOf(const Kernel &kernel) {
  thread_local RecentAnswers<Counted> recent;
  return recent.of([] { return Counted(); }, kernel);
}

/// What is asked of kernels with equal texts is counted once.
template <typename Count>
auto countedOnce(const std::string &question, const Kernel &kernel, Counted &counted, Count count) {
  static std::mutex mutex;
  static std::map<std::string, decltype(count())> known;
  if (counted.text.empty()) counted.text = canonicalText(kernel);
  const std::string key = fmt::format("{}\n{}", question, counted.text);
  {
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(key); found != known.end()) return found->second;
  }
  const auto result = count();
  const std::lock_guard lock(mutex);
  return known.emplace(key, result).first->second;
}

}  // namespace

VisibleBlocks visibleBlocks(const Kernel &kernel, const AttentionRegion &region,
                            const AttentionProblem &problem, int64_t tileRows, int64_t blockColumns,
                            TilesOf of) {
  Counted &counted = countedOf(kernel);
  const std::array<int64_t, 5> question = {int64_t(of), tileRows, blockColumns, problem.queryAxis,
                                           problem.keyAxis};
  if (const auto known = counted.blocks.find(question); known != counted.blocks.end())
    return known->second;
  const Tiling tiling{of, tileRows, blockColumns, problem};
  const VisibleBlocks blocks =
      countedOnce(fmt::format("{}", fmt::join(question, " ")), kernel, counted,
                  [&] { return countBlocks(Masks(kernel, region, problem), tiling); });
  counted.blocks.emplace(question, blocks);
  return blocks;
}

std::vector<int64_t> seenByTiles(const Kernel &kernel, const AttentionRegion &region,
                                 const AttentionProblem &problem, int64_t tileRows,
                                 int64_t blockColumns, TilesOf of) {
  const Masks masks(kernel, region, problem);
  if (masks.tables.empty()) return {};
  const Tiling tiling{of, tileRows, blockColumns, problem};
  return countedOnce(fmt::format("tiles {} {} {} {} {}", int(of), tileRows, blockColumns,
                                 problem.queryAxis, problem.keyAxis),
                     kernel, countedOf(kernel), [&] {
                       const std::vector<int64_t> heads = spread(headsOfTables(masks), mostHeads);
                       const std::vector<TableRanges> ranges = rangesOfTables(masks, tiling);
                       std::vector<int64_t> seen(size_t(tiling.tiles()));
                       for (size_t tile = 0; tile < seen.size(); ++tile)
                         for (const int64_t head : heads)
                           seen[tile] +=
                               blocksOfTile(masks, ranges, head, int64_t(tile), tiling).seen;
                       return seen;
                     });
}

namespace {

/// Whether a tile of scores reads several rows of the input.
bool isScattered(const Kernel &kernel, const AttentionRegion &region,
                 const AttentionProblem &problem, ValueId value) {
  if (isTileBounds(kernel, region.scoreOps, value)) return false;  // a tile asks for a few
  const std::vector<AxisId> &ofScores = kernel.values[size_t(region.scores)].axes;
  return std::ranges::count_if(kernel.values[size_t(value)].axes, [&](AxisId axis) {
           return kernel.axes[size_t(axis)].extent > 1 &&
                  (axis == problem.queryAxis || axis == problem.keyAxis ||
                   std::ranges::find(ofScores, axis) == ofScores.end());
         }) > 1;
}

}  // namespace

int gatheredTables(const Kernel &kernel, const AttentionRegion &region,
                   const AttentionProblem &problem) {
  return int(std::ranges::count_if(region.inputs, [&](const ScoreInput &input) {
    return isScattered(kernel, region, problem, input.value) &&
           isReadElsewhereAlone(kernel, region.scoreOps, input.value);
  }));
}

namespace {

VisibleScores scoresOf(const Kernel &kernel, const AttentionRegion &region,
                       const AttentionProblem &problem, Counted &counted) {
  const Masks masks(kernel, region, problem);
  VisibleScores visible{.hasMasks = !masks.tables.empty() || !masks.others.empty(),
                        .hasTables = !masks.tables.empty(),
                        .valueOps = masks.valueOps};
  for (const ScoreInput &input : region.inputs)
    visible.scatteredInputs += isScattered(kernel, region, problem, input.value) ? 1 : 0;
  if (visible.hasMasks)
    visible.share = countedOnce(
        fmt::format("{} {}", problem.queryAxis, problem.keyAxis), kernel, counted,
        [&] { return visible.hasTables ? shareByTables(masks) : shareByPoints(masks); });
  return visible;
}

}  // namespace

VisibleScores visibleScores(const Kernel &kernel, const AttentionRegion &region,
                            const AttentionProblem &problem) {
  Counted &counted = countedOf(kernel);
  const std::array<int64_t, 2> question = {problem.queryAxis, problem.keyAxis};
  if (const auto known = counted.scores.find(question); known != counted.scores.end())
    return known->second;
  const VisibleScores scores = scoresOf(kernel, region, problem, counted);
  counted.scores.emplace(question, scores);
  return scores;
}

}  // namespace weft
