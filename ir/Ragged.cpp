// Sequences of different lengths: offsets, lengths, pack and unpack. Building, verification,
// spaces.
//
// A pair of axes (sequences, positions) is packed as one axis of tokens. Its extent is the bound,
// all sequences at full length; how many tokens there are is the last offset, known at run time.
#include "ir/Constraints.h"

namespace weft {
namespace {

/// fp32 adds the lengths exactly up to here.
constexpr int64_t mostTokens = int64_t(1) << 24;

/// i32, one more than there are sequences.
mlir::LogicalResult checkOffsets(mlir::Operation *op, llvm::StringRef extentId,
                                 llvm::StringRef typeId, mlir::Type offsets, int64_t sequences) {
  return allOf(checkExtents(op, extentId, "the tensor of offsets", offsets, {sequences + 1}),
               checkElementType(op, typeId, "the tensor of offsets", offsets,
                                fromDType(op->getContext(), DType::i32)));
}

/// The type of x with dimension `axes`[0] as tokens and without `axes`[1].
mlir::RankedTensorType packedType(mlir::Type x, llvm::ArrayRef<int64_t> axes,
                                  llvm::StringRef name) {
  const std::vector<int64_t> all = extents(x);
  return withoutDimensions(
      withExtent(x, axes[0], all[size_t(axes[0])] * all[size_t(axes[1])], name), {axes[1]});
}

}  // namespace

//===-- offsets -------------------------------------------------------------------------------===//

void OffsetsOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value lengths,
                      int64_t bound) {
  state.addOperands(lengths);
  state.addTypes(withExtent(lengths.getType(), 0, extents(lengths.getType())[0] + 1,
                            axisNames(lengths.getType())[0] + "_offset"));
  state.getOrAddProperties<Properties>().bound = builder.getI64IntegerAttr(bound);
}
mlir::LogicalResult OffsetsOp::verifyConstraints() {
  const mlir::Type lengths = getLengths().getType(), i32 = fromDType(getContext(), DType::i32);
  if (rankOf(lengths) != 1)
    return broken(*this, "offsets_c1") << "lengths have one axis, that of sequences: " << lengths;
  const int64_t sequences = extents(lengths)[0];
  return allOf(
      checkElementType(*this, "offsets_c1", "the tensor of lengths", lengths, i32),
      checkRange(*this, "offsets_c2", "bound", getBound(), 1, mostTokens / sequences),
      checkExtents(*this, "offsets_c3", "the result", getResult().getType(), {sequences + 1}),
      checkElementType(*this, "offsets_c3", "the result", getResult().getType(), i32));
}
IterationSpace OffsetsOp::iterationSpace() {
  return SpaceBuilder(*this).independent({{1, 0}}).reduced({{0, 0}}).take();
}
double OffsetsOp::flop() { return static_cast<double>(elementsOf(getLengths().getType())); }

//===-- lengths -------------------------------------------------------------------------------===//

void LengthsOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value mask) {
  state.addOperands(mask);
  state.addTypes(makeTensor(builder.getContext(), {axisNames(mask.getType()).front()},
                            {extents(mask.getType()).front()},
                            fromDType(builder.getContext(), DType::i32)));
}
mlir::LogicalResult LengthsOp::verifyConstraints() {
  const mlir::Type mask = getMask().getType(), result = getResult().getType();
  if (rankOf(mask) != 2)
    return broken(*this, "lengths_c1")
           << "a mask of tokens has two axes, sequences and positions: " << mask;
  const std::vector<int64_t> all = extents(mask);
  return allOf(
      checkElementType(*this, "lengths_c1", "the mask", mask, fromDType(getContext(), DType::i1)),
      checkRange(*this, "lengths_c2", "positions", all[1], 1, mostTokens),
      checkExtents(*this, "lengths_c3", "the result", result, {all[0]}),
      checkElementType(*this, "lengths_c3", "the result", result,
                       fromDType(getContext(), DType::i32)));
}
IterationSpace LengthsOp::iterationSpace() {
  return SpaceBuilder(*this).independent({{1, 0}, {0, 0}}).reduced({{0, 1}}).take();
}
double LengthsOp::flop() { return static_cast<double>(elementsOf(getMask().getType())); }

//===-- pack ----------------------------------------------------------------------------------===//

void PackOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value x,
                   mlir::Value offsets, llvm::ArrayRef<int64_t> axes, llvm::StringRef axisName) {
  state.addOperands({x, offsets});
  state.addTypes(packedType(x.getType(), axes, axisName));
  state.getOrAddProperties<Properties>().axes = builder.getDenseI64ArrayAttr(axes);
}
mlir::LogicalResult PackOp::verifyConstraints() {
  const mlir::Type x = getX().getType();
  if (getAxes().size() != 2)
    return broken(*this, "pack_c1")
           << "'axes' lists " << getAxes().size() << " axes; sequences and positions are two";
  if (mlir::failed(checkAxes(*this, "pack_c1", "axes", getAxes(), x))) return mlir::failure();
  return allOf(checkOffsets(*this, "pack_c2", "pack_c2", getOffsets().getType(),
                            extents(x)[size_t(getAxes()[0])]),
               checkExtents(*this, "pack_c3", "the result", getResult().getType(),
                            extents(packedType(x, getAxes(), "t"))),
               checkElementType(*this, "pack_c4", "the result", getResult().getType(), x));
}
IterationSpace PackOp::iterationSpace() {
  SpaceBuilder builder(*this);
  const int sequences = static_cast<int>(getAxes()[0]), positions = static_cast<int>(getAxes()[1]);
  for (int dimension = 0; dimension < rankOf(getX().getType()); ++dimension) {
    const int own = dimension - (dimension > positions ? 1 : 0);
    if (dimension == positions) continue;
    if (dimension == sequences) builder.independent({{2, own}});
    else builder.independent({{2, own}, {0, dimension}});
  }
  return builder.independent({{0, sequences}})
      .independent({{0, positions}})
      .independent({{1, 0}})
      .take();
}
double PackOp::flop() { return 0; }
mlir::LogicalResult PackOp::differentiate(Derivation &derivation) {
  const mlir::Type x = getX().getType();
  const int64_t sequences = getAxes()[0], positions = getAxes()[1];
  const std::vector<std::string> names = axisNames(x);
  const std::vector<std::string> own = {names[size_t(sequences)], names[size_t(positions)]};
  derivation.give(0, [&] {
    return make<UnpackOp>(derivation.upstream(), derivation.operand(1),
                          sequences - (sequences > positions ? 1 : 0), getAxes(),
                          extents(x)[size_t(positions)], llvm::ArrayRef<std::string>(own));
  });
  return mlir::success();
}

//===-- unpack --------------------------------------------------------------------------------===//

void UnpackOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value x,
                     mlir::Value offsets, int64_t axis, llvm::ArrayRef<int64_t> into,
                     int64_t length, llvm::ArrayRef<std::string> names, double fill) {
  std::vector<std::string> allNames = axisNames(x.getType());
  std::vector<int64_t> all = extents(x.getType());
  allNames.erase(allNames.begin() + axis), all.erase(all.begin() + axis);
  const int64_t sequences = extents(offsets.getType())[0] - 1;
  for (const size_t n :
       into[0] < into[1] ? std::array<size_t, 2>{0, 1} : std::array<size_t, 2>{1, 0}) {
    allNames.insert(allNames.begin() + into[n], names[n]);
    all.insert(all.begin() + into[n], n == 0 ? sequences : length);
  }
  state.addOperands({x, offsets});
  state.addTypes(
      makeTensor(builder.getContext(), allNames, all, mlir::getElementTypeOrSelf(x.getType())));
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.axis = builder.getI64IntegerAttr(axis);
  properties.into = builder.getDenseI64ArrayAttr(into);
  properties.fill = builder.getF64FloatAttr(fill);
}
mlir::LogicalResult UnpackOp::verifyConstraints() {
  const mlir::Type x = getX().getType(), result = getResult().getType();
  const int64_t axis = getAxis();
  if (mlir::failed(checkAxis(*this, "unpack_c1", "axis", axis, x))) return mlir::failure();
  if (getInto().size() != 2)
    return broken(*this, "unpack_c2")
           << "'into' lists " << getInto().size() << " dimensions; sequences and positions are two";
  if (mlir::failed(checkAxes(*this, "unpack_c2", "into", getInto(), result)))
    return mlir::failure();
  if (!getFill().isFinite()) return broken(*this, "unpack_c6") << "'fill' must be finite";
  const mlir::Type type = mlir::getElementTypeOrSelf(x);
  if (mlir::isa<mlir::IntegerType>(type) && !getFill().isZero())
    return broken(*this, "unpack_c6") << "'fill' of a tensor of integers is 0";
  if (rankOf(result) != rankOf(x) + 1)
    return broken(*this, "unpack_c5")
           << "the result has " << rankOf(result) << " dimensions, a tensor of " << rankOf(x)
           << " whose tokens are unpacked has " << rankOf(x) + 1;
  const int64_t sequences = extents(result)[size_t(getInto()[0])],
                length = extents(result)[size_t(getInto()[1])];
  if (sequences * length != extents(x)[size_t(axis)])
    return broken(*this, "unpack_c3")
           << sequences << " sequences of " << length << " positions are packed as "
           << sequences * length << " tokens, axis " << axis << " of " << x << " has "
           << extents(x)[size_t(axis)];
  std::vector<int64_t> expected = extents(x);
  expected.erase(expected.begin() + axis);
  for (const size_t n :
       getInto()[0] < getInto()[1] ? std::array<size_t, 2>{0, 1} : std::array<size_t, 2>{1, 0})
    expected.insert(expected.begin() + getInto()[n], n == 0 ? sequences : length);
  return allOf(checkOffsets(*this, "unpack_c4", "unpack_c4", getOffsets().getType(), sequences),
               checkExtents(*this, "unpack_c5", "the result", result, expected),
               checkElementType(*this, "unpack_c7", "the result", result, x));
}
IterationSpace UnpackOp::iterationSpace() {
  SpaceBuilder builder(*this);
  const int axis = static_cast<int>(getAxis());
  int own = 0;
  for (int dimension = 0; dimension < rankOf(getResult().getType()); ++dimension) {
    if (llvm::is_contained(getInto(), dimension)) {
      builder.independent({{2, dimension}});
      continue;
    }
    if (own == axis) ++own;
    builder.independent({{2, dimension}, {0, own++}});
  }
  return builder.independent({{0, axis}}).independent({{1, 0}}).take();
}
double UnpackOp::flop() { return 0; }
mlir::LogicalResult UnpackOp::differentiate(Derivation &derivation) {
  const std::string name = axisNames(getX().getType())[size_t(getAxis())];
  derivation.give(0, [&] {
    return make<PackOp>(derivation.upstream(), derivation.operand(1), getInto(),
                        llvm::StringRef(name));
  });
  return mlir::success();
}

}  // namespace weft
