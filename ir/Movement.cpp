// Ops that move data and compute nothing: building, verification, spaces.
#include "ir/Constraints.h"

#include <numeric>

namespace weft {

//===-- transpose -----------------------------------------------------------------------------===//

void TransposeOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value x,
                        llvm::ArrayRef<int64_t> permutation) {
  const std::vector<std::string> names = axisNames(x.getType());
  const std::vector<int64_t> all = extents(x.getType());
  std::vector<std::string> permutedNames;
  std::vector<int64_t> permuted;
  for (int64_t dimension : permutation) {
    permutedNames.push_back(names[dimension]);
    permuted.push_back(all[dimension]);
  }
  state.addOperands(x);
  state.addTypes(makeTensor(builder.getContext(), permutedNames, permuted,
                            mlir::getElementTypeOrSelf(x.getType())));
  state.getOrAddProperties<Properties>().permutation = builder.getDenseI64ArrayAttr(permutation);
}
mlir::LogicalResult TransposeOp::verifyConstraints() {
  const mlir::Type x = getX().getType();
  if (static_cast<int>(getPermutation().size()) != rankOf(x))
    return broken(*this, "transpose_c1")
           << "'permutation' has " << getPermutation().size() << " entries for " << x;
  if (mlir::failed(checkAxes(*this, "transpose_c1", "permutation", getPermutation(), x)))
    return mlir::failure();
  std::vector<int64_t> permuted;
  for (int64_t dimension : getPermutation()) permuted.push_back(extents(x)[dimension]);
  return allOf(checkExtents(*this, "transpose_c2", "the result", getResult().getType(), permuted),
               checkElementType(*this, "transpose_c3", "the result", getResult().getType(), x));
}
IterationSpace TransposeOp::iterationSpace() {
  SpaceBuilder builder(*this);
  for (auto [dimension, source] : llvm::enumerate(getPermutation()))
    builder.independent({{1, static_cast<int>(dimension)}, {0, static_cast<int>(source)}});
  return builder.take();
}
double TransposeOp::flop() { return 0; }
mlir::LogicalResult TransposeOp::differentiate(Derivation &derivation) {
  llvm::SmallVector<int64_t> inverse(getPermutation().size());
  for (auto [dimension, source] : llvm::enumerate(getPermutation()))
    inverse[source] = static_cast<int64_t>(dimension);
  derivation.give(0, [&] {
    return make<TransposeOp>(derivation.upstream(), llvm::ArrayRef<int64_t>(inverse));
  });
  return mlir::success();
}

//===-- slice and concat ----------------------------------------------------------------------===//

namespace {

/// All axes run through all tensors, except `axis`, which is a separate axis in each.
IterationSpace spaceExcept(mlir::Operation *op, int64_t axis) {
  SpaceBuilder builder(op);
  for (int dimension = 0; dimension < rankOf(builder.type(0)); ++dimension) {
    std::vector<Place> places;
    for (int tensor = 0; tensor <= builder.result(0); ++tensor) {
      if (dimension == axis) builder.independent({{tensor, dimension}});
      else places.push_back({tensor, dimension});
    }
    if (!places.empty()) builder.independent(places);
  }
  return builder.take();
}

}  // namespace

void SliceOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value x,
                    int64_t axis, int64_t start, int64_t size) {
  state.addOperands(x);
  state.addTypes(withExtent(x.getType(), axis, size));
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.axis = builder.getI64IntegerAttr(axis);
  properties.start = builder.getI64IntegerAttr(start);
  properties.size = builder.getI64IntegerAttr(size);
}
mlir::LogicalResult SliceOp::verifyConstraints() {
  const mlir::Type x = getX().getType();
  const int64_t start = getStart(), size = getSize();
  if (mlir::failed(checkAxis(*this, "slice_c1", "axis", getAxis(), x))) return mlir::failure();
  const int64_t extent = extents(x)[getAxis()];
  if (mlir::failed(checkRange(*this, "slice_c2", "start", start, 0, extent - 1)) ||
      mlir::failed(checkRange(*this, "slice_c2", "size", size, 1, extent - start)))
    return mlir::failure();
  return allOf(checkExtents(*this, "slice_c3", "the result", getResult().getType(),
                            extents(withExtent(x, getAxis(), size))),
               checkElementType(*this, "slice_c4", "the result", getResult().getType(), x));
}
IterationSpace SliceOp::iterationSpace() { return spaceExcept(*this, getAxis()); }
double SliceOp::flop() { return 0; }
mlir::LogicalResult SliceOp::differentiate(Derivation &derivation) {
  const int64_t axis = static_cast<int64_t>(getAxis());
  derivation.give(0, [&] {
    return make<PadOp>(derivation.upstream(), axis, static_cast<int64_t>(getStart()),
                       extents(getX().getType())[axis]);
  });
  return mlir::success();
}

void ConcatOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::ValueRange parts,
                     int64_t axis) {
  int64_t extent = 0;
  for (mlir::Value part : parts) extent += extents(part.getType())[axis];
  state.addOperands(parts);
  state.addTypes(withExtent(parts.front().getType(), axis, extent));
  state.getOrAddProperties<Properties>().axis = builder.getI64IntegerAttr(axis);
}
mlir::LogicalResult ConcatOp::verifyConstraints() {
  if (getParts().empty()) return broken(*this, "concat_c2") << "nothing to concatenate";
  const mlir::Type first = getParts().front().getType();
  if (mlir::failed(checkAxis(*this, "concat_c1", "axis", getAxis(), first))) return mlir::failure();
  std::vector<int64_t> total = extents(first);
  total[getAxis()] = 0;
  for (mlir::Type part : getParts().getTypes()) {
    std::vector<int64_t> expected = extents(first);
    if (rankOf(part) == rankOf(first)) expected[getAxis()] = extents(part)[getAxis()];
    if (mlir::failed(checkExtents(*this, "concat_c2", "a part", part, expected)) ||
        mlir::failed(checkElementType(*this, "concat_c4", "a part", part, first)))
      return mlir::failure();
    total[getAxis()] += expected[getAxis()];
  }
  return allOf(checkExtents(*this, "concat_c3", "the result", getResult().getType(), total),
               checkElementType(*this, "concat_c4", "the result", getResult().getType(), first));
}
IterationSpace ConcatOp::iterationSpace() { return spaceExcept(*this, getAxis()); }
double ConcatOp::flop() { return 0; }
mlir::LogicalResult ConcatOp::differentiate(Derivation &derivation) {
  const int64_t axis = static_cast<int64_t>(getAxis());
  int64_t start = 0;
  for (auto [number, part] : llvm::enumerate(getParts())) {
    const int64_t size = extents(part.getType())[axis];
    derivation.give(static_cast<unsigned>(number),
                    [&] { return make<SliceOp>(derivation.upstream(), axis, start, size); });
    start += size;
  }
  return mlir::success();
}

//===-- split_axis and merge_axes -------------------------------------------------------------===//

namespace {

/// The axis at `axis` of tensor `whole` is `count` axes of tensor `split`; all others run through
/// both.
IterationSpace splitSpace(mlir::Operation *op, int whole, int split, int axis, int count) {
  SpaceBuilder builder(op);
  for (int dimension = 0; dimension < rankOf(builder.type(split)); ++dimension) {
    const bool inside = dimension >= axis && dimension < axis + count;
    const int other = dimension < axis ? dimension : dimension - count + 1;
    if (inside) builder.independent({{split, dimension}});
    else builder.independent({{split, dimension}, {whole, other}});
  }
  return builder.independent({{whole, axis}}).take();
}

}  // namespace

void SplitAxisOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value x,
                        int64_t axis, llvm::ArrayRef<int64_t> sizes,
                        llvm::ArrayRef<std::string> names) {
  std::vector<std::string> allNames = axisNames(x.getType());
  std::vector<int64_t> all = extents(x.getType());
  allNames.erase(allNames.begin() + axis);
  all.erase(all.begin() + axis);
  allNames.insert(allNames.begin() + axis, names.begin(), names.end());
  all.insert(all.begin() + axis, sizes.begin(), sizes.end());
  state.addOperands(x);
  state.addTypes(
      makeTensor(builder.getContext(), allNames, all, mlir::getElementTypeOrSelf(x.getType())));
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.axis = builder.getI64IntegerAttr(axis);
  properties.sizes = builder.getDenseI64ArrayAttr(sizes);
}
mlir::LogicalResult SplitAxisOp::verifyConstraints() {
  const mlir::Type x = getX().getType();
  if (mlir::failed(checkAxis(*this, "split_axis_c1", "axis", getAxis(), x))) return mlir::failure();
  std::vector<int64_t> expected = extents(x);
  int64_t remaining = expected[getAxis()];
  for (int64_t size : getSizes()) {
    if (size < 1 || remaining % size != 0)
      return broken(*this, "split_axis_c2")
             << "sizes [" << getSizes() << "] do not multiply to the extent "
             << expected[getAxis()];
    remaining /= size;
  }
  if (remaining != 1 || getSizes().empty())
    return broken(*this, "split_axis_c2")
           << "sizes [" << getSizes() << "] do not multiply to the extent " << expected[getAxis()];
  expected.erase(expected.begin() + getAxis());
  expected.insert(expected.begin() + getAxis(), getSizes().begin(), getSizes().end());
  return allOf(checkExtents(*this, "split_axis_c3", "the result", getResult().getType(), expected),
               checkElementType(*this, "split_axis_c4", "the result", getResult().getType(), x));
}
IterationSpace SplitAxisOp::iterationSpace() {
  return splitSpace(*this, 0, 1, static_cast<int>(getAxis()), static_cast<int>(getSizes().size()));
}
double SplitAxisOp::flop() { return 0; }
mlir::LogicalResult SplitAxisOp::differentiate(Derivation &derivation) {
  const int64_t axis = static_cast<int64_t>(getAxis());
  derivation.give(0, [&] {
    return make<MergeAxesOp>(derivation.upstream(), axis, static_cast<int64_t>(getSizes().size()),
                             llvm::StringRef(axisNames(getX().getType())[axis]));
  });
  return mlir::success();
}

void MergeAxesOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value x,
                        int64_t axis, int64_t count, llvm::StringRef name) {
  std::vector<std::string> names = axisNames(x.getType());
  std::vector<int64_t> all = extents(x.getType());
  for (int64_t merged = 1; merged < count; ++merged) {
    all[axis] *= all[axis + 1];
    all.erase(all.begin() + axis + 1);
    names.erase(names.begin() + axis + 1);
  }
  names[axis] = name.str();
  state.addOperands(x);
  state.addTypes(
      makeTensor(builder.getContext(), names, all, mlir::getElementTypeOrSelf(x.getType())));
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.axis = builder.getI64IntegerAttr(axis);
  properties.count = builder.getI64IntegerAttr(count);
}
mlir::LogicalResult MergeAxesOp::verifyConstraints() {
  const mlir::Type x = getX().getType();
  const int64_t axis = getAxis(), count = getCount();
  if (mlir::failed(checkAxis(*this, "merge_axes_c1", "axis", axis, x)) ||
      mlir::failed(checkRange(*this, "merge_axes_c2", "count", count, 1, rankOf(x) - axis)))
    return mlir::failure();
  std::vector<int64_t> expected = extents(x);
  const auto first = expected.begin() + axis;
  *first = std::accumulate(first, first + count, int64_t{1}, std::multiplies<int64_t>());
  expected.erase(first + 1, first + count);
  return allOf(checkExtents(*this, "merge_axes_c3", "the result", getResult().getType(), expected),
               checkElementType(*this, "merge_axes_c4", "the result", getResult().getType(), x));
}
IterationSpace MergeAxesOp::iterationSpace() {
  return splitSpace(*this, 1, 0, static_cast<int>(getAxis()), static_cast<int>(getCount()));
}
double MergeAxesOp::flop() { return 0; }
mlir::LogicalResult MergeAxesOp::differentiate(Derivation &derivation) {
  const size_t axis = static_cast<size_t>(getAxis()), count = static_cast<size_t>(getCount());
  const std::vector<int64_t> all = extents(getX().getType());
  const std::vector<std::string> names = axisNames(getX().getType());
  derivation.give(0, [&] {
    return make<SplitAxisOp>(derivation.upstream(), static_cast<int64_t>(axis),
                             llvm::ArrayRef<int64_t>(all).slice(axis, count),
                             llvm::ArrayRef<std::string>(names).slice(axis, count));
  });
  return mlir::success();
}

//===-- gather and identity -------------------------------------------------------------------===//

void GatherOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value table,
                     mlir::Value indices) {
  std::vector<std::string> names = axisNames(indices.getType()),
                           rowNames = axisNames(table.getType());
  std::vector<int64_t> all = extents(indices.getType()), row = extents(table.getType());
  names.insert(names.end(), rowNames.begin() + 1, rowNames.end());
  all.insert(all.end(), row.begin() + 1, row.end());
  state.addOperands({table, indices});
  state.addTypes(
      makeTensor(builder.getContext(), names, all, mlir::getElementTypeOrSelf(table.getType())));
}
mlir::LogicalResult GatherOp::verifyConstraints() {
  const mlir::Type table = getTable().getType(), indices = getIndices().getType();
  if (rankOf(table) < 1)
    return broken(*this, "gather_c1") << "the table has no axis to gather along: " << table;
  if (mlir::failed(checkElementType(*this, "gather_c2", "the indices", indices,
                                    fromDType(getContext(), DType::i32))))
    return mlir::failure();
  std::vector<int64_t> expected = extents(indices), row = extents(table);
  expected.insert(expected.end(), row.begin() + 1, row.end());
  return allOf(checkExtents(*this, "gather_c3", "the result", getResult().getType(), expected),
               checkElementType(*this, "gather_c4", "the result", getResult().getType(), table));
}
IterationSpace GatherOp::iterationSpace() {
  SpaceBuilder builder(*this);
  const int rank = rankOf(getIndices().getType());
  for (int dimension = 0; dimension < rank; ++dimension)
    builder.independent({{2, dimension}, {1, dimension}});
  for (int dimension = 1; dimension < rankOf(getTable().getType()); ++dimension)
    builder.independent({{2, rank + dimension - 1}, {0, dimension}});
  return builder.independent({{0, 0}}).take();
}
double GatherOp::flop() { return 0; }
mlir::LogicalResult GatherOp::differentiate(Derivation &derivation) {
  derivation.give(0, [&] {
    return make<ScatterAddOp>(derivation.upstream(), derivation.operand(1), getTable().getType());
  });
  return mlir::success();
}

void IdentityOp::build(mlir::OpBuilder &, mlir::OperationState &state, mlir::Value x) {
  buildElementwise(state, x);
}
mlir::LogicalResult IdentityOp::verifyConstraints() {
  if (getX().getType() != getResult().getType())
    return broken(*this, "identity_c1")
           << "the result is " << getResult().getType() << ", the operand is " << getX().getType();
  return mlir::success();
}
IterationSpace IdentityOp::iterationSpace() { return alignedSpace(*this, {0, 1}); }
double IdentityOp::flop() { return 0; }
mlir::LogicalResult IdentityOp::differentiate(Derivation &derivation) {
  derivation.give(0, [&] { return derivation.upstream(); });
  return mlir::success();
}

}  // namespace weft
