// What slices, sums and gathers turn into in a backward pass: padding, broadcasting, and adding up
// rows by index.
#include "ir/Constraints.h"

namespace weft {

//===-- pad -----------------------------------------------------------------------------------===//

void PadOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value x,
                  int64_t axis, int64_t start, int64_t size) {
  state.addOperands(x);
  state.addTypes(withExtent(x.getType(), axis, size));
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.axis = builder.getI64IntegerAttr(axis);
  properties.start = builder.getI64IntegerAttr(start);
  properties.size = builder.getI64IntegerAttr(size);
}
mlir::LogicalResult PadOp::verifyConstraints() {
  const mlir::Type x = getX().getType();
  const int64_t start = getStart(), size = getSize();
  if (mlir::failed(checkAxis(*this, "pad_c1", "axis", getAxis(), x))) return mlir::failure();
  const int64_t extent = extents(x)[getAxis()];
  if (mlir::failed(checkRange(*this, "pad_c2", "start", start, 0)) ||
      mlir::failed(checkRange(*this, "pad_c2", "start", start, 0, size - extent)))
    return mlir::failure();
  return allOf(checkExtents(*this, "pad_c3", "the result", getResult().getType(),
                            extents(withExtent(x, getAxis(), size))),
               checkElementType(*this, "pad_c4", "the result", getResult().getType(), x));
}
IterationSpace PadOp::iterationSpace() {
  SpaceBuilder builder(*this);
  for (int dimension = 0; dimension < rankOf(getX().getType()); ++dimension) {
    if (dimension == static_cast<int>(getAxis()))
      builder.independent({{1, dimension}}).independent({{0, dimension}});
    else builder.independent({{1, dimension}, {0, dimension}});
  }
  return builder.take();
}
double PadOp::flop() { return 0; }
mlir::LogicalResult PadOp::differentiate(Derivation &derivation) {
  const int64_t axis = static_cast<int64_t>(getAxis());
  derivation.give(0, [&] {
    return make<SliceOp>(derivation.upstream(), axis, static_cast<int64_t>(getStart()),
                         extents(getX().getType())[axis]);
  });
  return mlir::success();
}

//===-- broadcast -----------------------------------------------------------------------------===//

void BroadcastOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value x,
                        llvm::ArrayRef<int64_t> into, mlir::Type like) {
  state.addOperands(x);
  state.addTypes(withDType(like, *toDType(x.getType())));
  state.getOrAddProperties<Properties>().into = builder.getDenseI64ArrayAttr(into);
}
mlir::LogicalResult BroadcastOp::verifyConstraints() {
  const mlir::Type x = getX().getType(), result = getResult().getType();
  if (static_cast<int>(getInto().size()) != rankOf(x))
    return broken(*this, "broadcast_c1")
           << "'into' has " << getInto().size() << " entries for " << x;
  if (mlir::failed(checkAxes(*this, "broadcast_c1", "into", getInto(), result)))
    return mlir::failure();
  std::vector<int64_t> expected;
  for (int64_t dimension : getInto()) expected.push_back(extents(result)[dimension]);
  return allOf(checkExtents(*this, "broadcast_c2", "the operand", x, expected),
               checkElementType(*this, "broadcast_c3", "the result", result, x));
}
IterationSpace BroadcastOp::iterationSpace() {
  SpaceBuilder builder(*this);
  for (int dimension = 0; dimension < rankOf(getResult().getType()); ++dimension) {
    std::vector<Place> places = {{1, dimension}};
    if (const auto at = llvm::find(getInto(), dimension); at != getInto().end())
      places.push_back({0, static_cast<int>(at - getInto().begin())});
    builder.independent(places);
  }
  return builder.take();
}
double BroadcastOp::flop() { return 0; }
mlir::LogicalResult BroadcastOp::differentiate(Derivation &derivation) {
  derivation.give(0, [&] {
    llvm::SmallVector<int64_t> repeated, kept, permutation;
    for (int64_t dimension = 0; dimension < rankOf(getResult().getType()); ++dimension)
      (llvm::is_contained(getInto(), dimension) ? kept : repeated).push_back(dimension);
    Term sum = derivation.upstream();
    if (!repeated.empty())
      sum.value =
          ReduceOp::create(derivation.builder(), derivation.location(), "sum", sum.value, repeated);
    for (int64_t dimension : getInto())
      permutation.push_back(llvm::find(kept, dimension) - kept.begin());
    return llvm::is_sorted(permutation)
               ? sum
               : make<TransposeOp>(sum, llvm::ArrayRef<int64_t>(permutation));
  });
  return mlir::success();
}

//===-- scatter_add ---------------------------------------------------------------------------===//

void ScatterAddOp::build(mlir::OpBuilder &, mlir::OperationState &state, mlir::Value rows,
                         mlir::Value indices, mlir::Type table) {
  state.addOperands({rows, indices});
  state.addTypes(table);
}
mlir::LogicalResult ScatterAddOp::verifyConstraints() {
  const mlir::Type rows = getRows().getType(), indices = getIndices().getType(),
                   table = getResult().getType();
  if (rankOf(table) < 1)
    return broken(*this, "scatter_add_c1") << "the result has no axis to scatter along: " << table;
  if (mlir::failed(checkElementType(*this, "scatter_add_c2", "the indices", indices,
                                    fromDType(getContext(), DType::i32))))
    return mlir::failure();
  std::vector<int64_t> expected = extents(indices), row = extents(table);
  expected.insert(expected.end(), row.begin() + 1, row.end());
  if (mlir::failed(checkExtents(*this, "scatter_add_c3", "the operand", rows, expected)))
    return mlir::failure();
  for (mlir::Type type : {rows, table})
    if (!mlir::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(type)))
      return broken(*this, "scatter_add_c4") << type << " is not a tensor of floats";
  return mlir::success();
}
IterationSpace ScatterAddOp::iterationSpace() {
  SpaceBuilder builder(*this);
  const int rank = rankOf(getIndices().getType());
  builder.independent({{2, 0}});
  for (int dimension = 1; dimension < rankOf(getResult().getType()); ++dimension)
    builder.independent({{0, rank + dimension - 1}, {2, dimension}});
  for (int dimension = 0; dimension < rank; ++dimension)
    builder.reduced({{0, dimension}, {1, dimension}});
  return builder.take();
}
double ScatterAddOp::flop() { return static_cast<double>(elementsOf(getRows().getType())); }

}  // namespace weft
