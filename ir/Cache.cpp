// Caches of keys and values: append. Building, verification, spaces.
//
// The result is what the cache's argument holds from then on: it has no memory besides. So the
// argument has no other reader, and the result is none of the graph.
#include "ir/Constraints.h"

namespace weft {

void AppendOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value cache,
                     mlir::Value tokens, mlir::Value starts, int64_t axis, int64_t along) {
  state.addOperands({cache, tokens, starts});
  state.addTypes(cache.getType());
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.axis = builder.getI64IntegerAttr(axis);
  properties.along = builder.getDenseI64ArrayAttr({along});
}

mlir::LogicalResult AppendOp::verifyConstraints() {
  const mlir::Type cache = getCache().getType(), tokens = getTokens().getType(),
                   starts = getStarts().getType();
  if (getAlong().size() != 1)
    return broken(*this, "append_c1") << "'along' is the one axis of sequences";
  const int64_t axis = getAxis(), along = getAlong()[0];
  if (mlir::failed(checkAxes(*this, "append_c1", "axis", {axis, along}, cache)))
    return mlir::failure();
  if (rankOf(tokens) != rankOf(cache))
    return broken(*this, "append_c2") << "tokens have the axes of the cache: " << tokens;
  std::vector<int64_t> expected = extents(cache);
  expected[size_t(axis)] = extents(tokens)[size_t(axis)];
  if (extents(tokens)[size_t(axis)] > extents(cache)[size_t(axis)])
    return broken(*this, "append_c3") << extents(tokens)[size_t(axis)] << " tokens for a cache of "
                                      << extents(cache)[size_t(axis)];
  const auto argument = mlir::dyn_cast<mlir::BlockArgument>(getCache());
  if (!argument || !argument.hasOneUse())
    return broken(*this, "append_c6") << "the cache is an argument that nothing else reads";
  for (mlir::Operation *user : getResult().getUsers())
    if (mlir::isa<ReturnOp>(user))
      return broken(*this, "append_c7")
             << "the result is what the argument holds from then on, and not returned";
  return allOf(
      checkExtents(*this, "append_c2", "the tensor of tokens", tokens, expected),
      checkExtents(*this, "append_c4", "the tensor of starts", starts,
                   {extents(cache)[size_t(along)]}),
      checkElementType(*this, "append_c4", "the tensor of starts", starts,
                       fromDType(getContext(), DType::i32)),
      checkExtents(*this, "append_c5", "the result", getResult().getType(), extents(cache)),
      checkElementType(*this, "append_c5", "the tensor of tokens", tokens, cache),
      checkElementType(*this, "append_c5", "the result", getResult().getType(), cache));
}

IterationSpace AppendOp::iterationSpace() {
  SpaceBuilder builder(*this);
  const int positions = static_cast<int>(getAxis()), sequences = static_cast<int>(getAlong()[0]);
  for (int dimension = 0; dimension < rankOf(getCache().getType()); ++dimension) {
    if (dimension == positions) builder.independent({{3, dimension}, {0, dimension}});
    else if (dimension == sequences)
      builder.independent({{3, dimension}, {0, dimension}, {1, dimension}, {2, 0}});
    else builder.independent({{3, dimension}, {0, dimension}, {1, dimension}});
  }
  return builder.independent({{1, positions}}).take();
}
double AppendOp::flop() { return 0; }

}  // namespace weft
