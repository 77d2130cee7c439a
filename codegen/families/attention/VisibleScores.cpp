// Mask conditions evaluated at points; see VisibleScores.h.
#include "codegen/families/attention/VisibleScores.h"

#include "codegen/families/attention/AttentionScore.h"

#include <fmt/format.h>

#include <algorithm>
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

/// Whether no mask is known to exclude a score. `isMask`: of each score op.
bool isSeen(const Kernel &kernel, const AttentionRegion &region, const AttentionProblem &problem,
            const std::vector<bool> &isMask, int64_t query, int64_t key) {
  for (size_t op = 0; op < region.scoreOps.size(); ++op) {
    if (!isMask[op]) continue;
    const Expression &expression = kernel.body[region.scoreOps[op]].expression;
    const ExpressionNode &select = expression[expression.root()];
    const auto holds = PointOfMask(expression, problem, query, key).at(select.children[0]);
    const bool excludesWhereTrue =
        expression[select.children[1]].kind != ExpressionNode::Kind::operand;
    if (holds && (*holds != 0) == excludesWhereTrue) return false;
  }
  return true;
}

VisibleBlocks countBlocks(const Kernel &kernel, const AttentionRegion &region,
                          const AttentionProblem &problem, int64_t tileQueries, int64_t tileKeys) {
  const std::vector<bool> isMask = codegen::scoreMasks(kernel, region, problem);
  const int64_t tiles = (problem.queries + tileQueries - 1) / tileQueries,
                blocks = (problem.keys + tileKeys - 1) / tileKeys;
  constexpr int64_t mostTiles = 12, mostBlocks = 96, points = 4;  // looked at; along each side
  const int64_t tileCount = std::min(tiles, mostTiles), blockCount = std::min(blocks, mostBlocks);
  VisibleBlocks result;
  for (int64_t t = 0; t < tileCount; ++t) {
    const int64_t tile = tileCount == 1 ? 0 : t * (tiles - 1) / (tileCount - 1);
    int64_t seen = 0, mixed = 0;
    for (int64_t b = 0; b < blockCount; ++b) {
      const int64_t block = blockCount == 1 ? 0 : b * (blocks - 1) / (blockCount - 1);
      bool isAny = false, isAll = true;
      for (int64_t point = 0; point < points * points; ++point) {
        const int64_t row = point / points * (tileQueries - 1) / (points - 1),
                      column = point % points * (tileKeys - 1) / (points - 1);
        const bool isPointSeen = isSeen(kernel, region, problem, isMask,
                                        std::min(tile * tileQueries + row, problem.queries - 1),
                                        std::min(block * tileKeys + column, problem.keys - 1));
        isAny = isAny || isPointSeen, isAll = isAll && isPointSeen;
      }
      seen += isAny, mixed += isAny && !isAll;
    }
    result.mixed += double(mixed) * double(blocks) / double(blockCount) / double(tileCount);
    const double count = double(seen) * double(blocks) / double(blockCount);
    result.mean += count / double(tileCount);
    result.most = std::max(result.most, count);
  }
  return result;
}

}  // namespace

VisibleBlocks visibleBlocks(const Kernel &kernel, const AttentionRegion &region,
                            const AttentionProblem &problem, int64_t tileQueries,
                            int64_t tileKeys) {
  // Asked for every layout, which does not matter.
  static std::mutex mutex;
  static std::map<std::string, VisibleBlocks> known;
  const std::string key = fmt::format("{} {} {} {}\n{}", tileQueries, tileKeys, problem.queryAxis,
                                      problem.keyAxis, canonicalText(kernel));
  {
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(key); found != known.end()) return found->second;
  }
  const VisibleBlocks counted = countBlocks(kernel, region, problem, tileQueries, tileKeys);
  const std::lock_guard lock(mutex);
  return known.emplace(key, counted).first->second;
}

VisibleScores visibleScores(const Kernel &kernel, const AttentionRegion &region,
                            const AttentionProblem &problem) {
  VisibleScores visible;
  const std::vector<bool> isMask = codegen::scoreMasks(kernel, region, problem);
  visible.hasMasks = std::ranges::find(isMask, true) != isMask.end();
  visible.valueOps = int(std::ranges::count(isMask, false));
  if (!visible.hasMasks) return visible;
  constexpr int64_t points = 32;
  const int64_t rows = std::min(points, problem.queries), columns = std::min(points, problem.keys);
  int64_t seen = 0;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      seen += isSeen(kernel, region, problem, isMask, (2 * row + 1) * problem.queries / (2 * rows),
                     (2 * column + 1) * problem.keys / (2 * columns));
  visible.share = double(seen) / double(rows * columns);
  return visible;
}

}  // namespace weft
