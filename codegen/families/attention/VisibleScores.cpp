// Mask conditions evaluated at points; see VisibleScores.h.
#include "codegen/families/attention/VisibleScores.h"

#include "codegen/families/attention/AttentionScore.h"

#include <algorithm>
#include <cmath>
#include <optional>

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

}  // namespace

VisibleScores visibleScores(const Kernel &kernel, const AttentionRegion &region,
                            const AttentionProblem &problem) {
  VisibleScores visible;
  const std::vector<bool> isMask = codegen::scoreMasks(kernel, region, problem);
  visible.hasMasks = std::ranges::find(isMask, true) != isMask.end();
  visible.valueOps = int(std::ranges::count(isMask, false));
  if (!visible.hasMasks) return visible;
  constexpr int64_t points = 32;
  const int64_t rows = std::min(points, problem.queries), columns = std::min(points, problem.keys);
  int64_t seen = 0, most = 0;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t ofRow = 0;
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t query = (2 * row + 1) * problem.queries / (2 * rows),
                    key = (2 * column + 1) * problem.keys / (2 * columns);
      bool isSeen = true;
      for (size_t op = 0; op < region.scoreOps.size(); ++op) {
        const Expression &expression = kernel.body[region.scoreOps[op]].expression;
        if (!isMask[op]) continue;
        const ExpressionNode &select = expression[expression.root()];
        const auto holds = PointOfMask(expression, problem, query, key).at(select.children[0]);
        const ExpressionNode &excluded = expression[select.children[1]];
        const bool excludesWhereTrue = excluded.kind != ExpressionNode::Kind::operand;
        if (holds && (*holds != 0) == excludesWhereTrue) isSeen = false;
      }
      ofRow += isSeen;
    }
    seen += ofRow, most = std::max(most, ofRow);
  }
  visible.share = double(seen) / double(rows * columns);
  visible.largestShare = double(most) / double(columns);
  return visible;
}

}  // namespace weft
