// What of a kernel comes of its contraction past a block mask, followed op by op; see
// MaskedTiles.h.
#include "codegen/families/contraction/MaskedTiles.h"

#include "kernel/Attributes.h"
#include "kernel/Expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <vector>

namespace weft {
namespace {

/// A mask by one table for all heads, by coordinates of whole axes.
struct TableMask {
  const BlockTable *table = nullptr;
  AxisId query = -1, key = -1;
};

std::optional<TableMask> tableMaskOf(const Kernel &kernel, const BodyOp &op) {
  using Kind = ExpressionNode::Kind;
  const BlockTable *const table = blockTableOf(kernel, op);
  if (!table || table->heads != 1 || op.expression.empty()) return std::nullopt;
  const Expression &expression = op.expression;
  const ExpressionNode &root = expression[expression.root()];
  if (root.kind != Kind::select) return std::nullopt;
  const ExpressionNode &condition = expression[root.children[0]],
                       &kept = expression[root.children[1]], &fill = expression[root.children[2]];
  if (!condition.calls(DeviceFunctionId::hasBlock) || kept.kind != Kind::operand ||
      kept.index != 0 || fill.kind != Kind::literal)
    return std::nullopt;
  const ExpressionNode &query = expression[condition.children[2]],
                       &key = expression[condition.children[3]];
  if (query.kind != Kind::coordinate || key.kind != Kind::coordinate ||
      kernel.axes[size_t(query.index)].extent != table->queries ||
      kernel.axes[size_t(key.index)].extent != table->keys)
    return std::nullopt;
  return TableMask{.table = table, .query = AxisId(query.index), .key = AxisId(key.index)};
}

}  // namespace

double MaskedTiles::seenShare(int64_t tileM, int64_t tileN) const {
  // Tables live as long as the program, and configurations of many layouts ask for one number.
  static std::mutex mutex;
  static std::map<std::tuple<const BlockTable *, bool, int64_t, int64_t>, double> known;
  const std::tuple key(table, areRowsKeys, tileM, tileN);
  {
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(key); found != known.end()) return found->second;
  }
  const int64_t queries = areRowsKeys ? tileN : tileM, keys = areRowsKeys ? tileM : tileN;
  int64_t seen = 0, all = 0;
  for (int64_t query = 0; query < table->queries; query += queries)
    for (int64_t first = 0; first < table->keys; first += keys, ++all)
      seen += table
                  ->coverage(0, query, std::min(query + queries, table->queries) - 1, first,
                             std::min(first + keys, table->keys) - 1)
                  .isAny;
  const std::lock_guard lock(mutex);
  return known.emplace(key, double(seen) / double(all)).first->second;
}

std::string MaskedTiles::argument(const std::string &space, const std::string &sides) const {
  return fmt::format("{}::maskedTiles<{}{}, {}, {}>({})", space, sides, table->queries, table->keys,
                     areRowsKeys, name);
}

std::optional<MaskedTiles> maskedTiles(const Kernel &kernel, const ContractionRegion &region,
                                       bool isSwapped) {
  if (region.prologue || region.storesAccumulator) return std::nullopt;
  // What needs the products of a tile of which the table has nothing.
  std::set<ValueId> needing = {region.c};
  const auto needs = [&](ValueId value) { return needing.contains(value); };
  std::optional<TableMask> mask;
  std::string pattern;
  for (size_t index = size_t(region.contraction) + 1; index < kernel.body.size(); ++index) {
    const BodyOp &op = kernel.body[index];
    if (std::ranges::none_of(op.operands, needs)) continue;
    const bool needsOthers = std::any_of(op.operands.begin() + 1, op.operands.end(), needs);
    if (const auto own = tableMaskOf(kernel, op); own && !needsOthers && !mask) {
      mask = own;
      pattern = attributeOf(op, attribute::pattern);
      continue;
    }
    needing.insert(op.results.begin(), op.results.end());
  }
  if (!mask || std::ranges::any_of(kernel.outputs, needs)) return std::nullopt;
  const ContractionGroups groups = contractionGroups(kernel, {region.a, region.b, region.c});
  const auto isOf = [&](ContractionGroup group, AxisId axis) {
    return groups[group] == std::vector<AxisId>{axis};
  };
  const bool areRowsQueries = isOf(mGroup, mask->query) && isOf(nGroup, mask->key);
  if (!areRowsQueries && !(isOf(mGroup, mask->key) && isOf(nGroup, mask->query)))
    return std::nullopt;
  return MaskedTiles{.table = mask->table,
                     .name = blockTableName(pattern),
                     .areRowsKeys = areRowsQueries == isSwapped};
}

}  // namespace weft
