// Biases of attention scores by position: weft.alibi and weft.relative_bias, and
// weft.expand_buckets, which makes the latter's table of T5's. Expressions, constraints, and the
// space of the last.
#include "ir/Constraints.h"
#include "kernel/CoordinateExpressions.h"

namespace weft {
namespace {

/// Keys less queries: queries are aligned to the end of the keys.
int64_t shiftOf(mlir::Type scores, int64_t query, int64_t key) {
  const std::vector<int64_t> sizes = extents(scores);
  return sizes[static_cast<size_t>(key)] - sizes[static_cast<size_t>(query)];
}

std::vector<int> toDimensions(llvm::ArrayRef<int64_t> dimensions) {
  return {dimensions.begin(), dimensions.end()};
}

/// Larger tables have no use, and the distances of both sides must count in 32 bits.
constexpr int64_t farthestDistance = int64_t(1) << 20;

}  // namespace

//===-- alibi ---------------------------------------------------------------------------------===//

Expression AlibiOp::expression() {
  const mlir::Type x = getX().getType();
  const auto query = static_cast<int64_t>(getQuery()), key = static_cast<int64_t>(getKey());
  AlibiShape shape{.heads = toDimensions(getHeads()),
                   .extents = {},
                   .query = static_cast<int>(query),
                   .key = static_cast<int>(key),
                   .shift = shiftOf(x, query, key),
                   .steepness = getSteepness().convertToDouble()};
  for (const int64_t dimension : getHeads()) shape.extents.push_back(extents(x)[dimension]);
  return alibiExpression(shape);
}

mlir::LogicalResult AlibiOp::verifyOwnConstraints() {
  if (getHeads().empty())
    return broken(*this, "alibi_c1") << "'heads' lists no axis; one or several count the heads";
  std::vector<int64_t> all = getHeads().vec();
  all.push_back(getQuery()), all.push_back(getKey());
  return allOf(checkAxes(*this, "alibi_c1", "heads, query and key", all, getX().getType()),
               checkPositive(*this, "alibi_c2", "steepness", getSteepness().convertToDouble()));
}

//===-- relative_bias -------------------------------------------------------------------------===//

Expression RelativeBiasOp::expression() {
  const auto query = static_cast<int64_t>(getQuery()), key = static_cast<int64_t>(getKey());
  return relativeBiasExpression({.along = toDimensions(getAlong()),
                                 .query = static_cast<int>(query),
                                 .key = static_cast<int>(key),
                                 .shift = shiftOf(getX().getType(), query, key),
                                 .distance = static_cast<int64_t>(getDistance()),
                                 .distances = extents(getTable().getType()).back(),
                                 .isReverse = isReverse()});
}

mlir::LogicalResult RelativeBiasOp::verifyOwnConstraints() {
  const mlir::Type x = getX().getType();
  if (mlir::failed(allOf(
          checkFloats(*this, "relative_bias_c5"),
          checkElementType(*this, "relative_bias_c5", "the result", getResult().getType(), x),
          checkAxes(*this, "relative_bias_c1", "query and key",
                    {static_cast<int64_t>(getQuery()), static_cast<int64_t>(getKey())}, x),
          checkAxes(*this, "relative_bias_c2", "along", getAlong(), x),
          checkRange(*this, "relative_bias_c3", "distance", getDistance(), 1, farthestDistance))))
    return mlir::failure();
  if (getDirection() && !isReverse())
    return broken(*this, "relative_bias_c6")
           << "unknown direction \"" << *getDirection() << "\"; supported: reverse, or none";
  std::vector<int64_t> expected;
  for (const int64_t dimension : getAlong()) expected.push_back(extents(x)[dimension]);
  expected.push_back(2 * static_cast<int64_t>(getDistance()) + 1);
  // Without an element for the last distance.
  if (const std::vector<int64_t> own = extents(getTable().getType());
      own.size() == expected.size() && own.back() + 1 == expected.back())
    --expected.back();
  return checkExtents(*this, "relative_bias_c4", "the table", getTable().getType(), expected);
}

/// A table is differentiated by nobody: its elements are summed along diagonals of scores.
mlir::LogicalResult RelativeBiasOp::differentiate(Derivation &derivation) {
  if (derivation.isWanted(1))
    return emitOpError() << "has no derivative by its table; name what has one by --gradients-of";
  derivation.give(0, [&] { return derivation.upstream(); });
  return mlir::success();
}

//===-- expand_buckets ------------------------------------------------------------------------===//

void ExpandBucketsOp::build(mlir::OpBuilder &builder, mlir::OperationState &state,
                            mlir::Value table, llvm::StringRef kind, int64_t distance) {
  std::vector<std::string> names = axisNames(table.getType());
  std::vector<int64_t> sizes = extents(table.getType());
  names.erase(names.begin()), sizes.erase(sizes.begin());
  names.emplace_back("distance"), sizes.push_back(2 * distance + 1);
  state.addOperands(table);
  state.addTypes(
      makeTensor(builder.getContext(), names, sizes, mlir::getElementTypeOrSelf(table.getType())));
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.kind = builder.getStringAttr(kind);
  properties.distance = builder.getI64IntegerAttr(distance);
}

Expression ExpandBucketsOp::expression() {
  return expandBucketsExpression({.kind = *bucketKindNamed(getKind().str()),
                                  .buckets = extents(getTable().getType()).front(),
                                  .farthest = static_cast<int64_t>(getDistance()),
                                  .rank = rankOf(getTable().getType())});
}

mlir::LogicalResult ExpandBucketsOp::verifyConstraints() {
  const mlir::Type table = getTable().getType();
  const std::optional<BucketKind> kind = bucketKindNamed(getKind().str());
  if (!kind)
    return broken(*this, "expand_buckets_c1")
           << "unknown kind \"" << getKind() << "\"; supported: causal, bidirectional";
  if (rankOf(table) < 1)
    return broken(*this, "expand_buckets_c2") << "the table has no axis of buckets: " << table;
  std::vector<int64_t> expected = extents(table);
  const int64_t buckets = expected.front(), own = bucketsOfDirection(*kind, buckets),
                distance = static_cast<int64_t>(getDistance());
  if (own < 2 || (*kind == BucketKind::bidirectional && buckets % 2 != 0))
    return broken(*this, "expand_buckets_c2")
           << buckets << " buckets; a direction has at least 2, and both have equally many";
  if (mlir::failed(checkRange(*this, "expand_buckets_c3", "distance", distance, own / 2 + 1,
                              farthestDistance)))
    return mlir::failure();
  expected.erase(expected.begin());
  expected.push_back(2 * distance + 1);
  return allOf(
      checkExtents(*this, "expand_buckets_c4", "the result", getResult().getType(), expected),
      checkElementType(*this, "expand_buckets_c5", "the result", getResult().getType(), table),
      checkFloats(*this, "expand_buckets_c5"));
}

IterationSpace ExpandBucketsOp::iterationSpace() {
  SpaceBuilder builder(*this);
  const int rank = rankOf(getTable().getType());
  for (int dimension = 1; dimension < rank; ++dimension)
    builder.independent({{1, dimension - 1}, {0, dimension}});
  builder.independent({{1, rank - 1}});
  return builder.independent({{0, 0}}).take();
}
double ExpandBucketsOp::flop() { return 0; }

}  // namespace weft
