// Caches of keys and values: append and gather_pages. Building, verification, spaces.
//
// What append gives is what the cache's argument holds from then on: it has no memory besides. So
// the argument has no other reader, and the result is none of the graph. A cache lies in one piece,
// or in pages that a table lists (kernel/Pages.h).
#include "ir/Constraints.h"

namespace weft {
namespace {

mlir::LogicalResult checkIntegers(mlir::Operation *op, llvm::StringRef id, llvm::StringRef what,
                                  mlir::Type type) {
  return checkElementType(op, id, what, type, fromDType(op->getContext(), DType::i32));
}

}  // namespace

//===-- append --------------------------------------------------------------------------------===//

void AppendOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value cache,
                     mlir::Value tokens, mlir::Value starts, int64_t axis, int64_t along,
                     mlir::Value table) {
  state.addOperands({cache, tokens, starts});
  if (table) state.addOperands(table);
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
  int64_t sequences = expected[size_t(along)], positions = extents(cache)[size_t(axis)];
  if (const mlir::Value table = getTable()) {
    if (rankOf(table.getType()) != 2)
      return broken(*this, "append_c8")
             << "a table has the axes of sequences and of their pages: " << table.getType();
    sequences = extents(table.getType())[0], positions *= extents(table.getType())[1];
    expected[size_t(along)] = sequences;
    if (mlir::failed(checkIntegers(*this, "append_c8", "the table", table.getType())))
      return mlir::failure();
  }
  if (extents(tokens)[size_t(axis)] > positions)
    return broken(*this, "append_c3")
           << extents(tokens)[size_t(axis)] << " tokens for a cache of " << positions;
  const auto argument = mlir::dyn_cast<mlir::BlockArgument>(getCache());
  if (!argument || !argument.hasOneUse())
    return broken(*this, "append_c6") << "the cache is an argument that nothing else reads";
  for (mlir::Operation *user : getResult().getUsers())
    if (mlir::isa<ReturnOp>(user))
      return broken(*this, "append_c7")
             << "the result is what the argument holds from then on, and not returned";
  return allOf(
      checkExtents(*this, "append_c2", "the tensor of tokens", tokens, expected),
      checkExtents(*this, "append_c4", "the tensor of starts", starts, {sequences}),
      checkIntegers(*this, "append_c4", "the tensor of starts", starts),
      checkExtents(*this, "append_c5", "the result", getResult().getType(), extents(cache)),
      checkElementType(*this, "append_c5", "the tensor of tokens", tokens, cache),
      checkElementType(*this, "append_c5", "the result", getResult().getType(), cache));
}

IterationSpace AppendOp::iterationSpace() {
  SpaceBuilder builder(*this);
  const int positions = static_cast<int>(getAxis()), sequences = static_cast<int>(getAlong()[0]),
            result = builder.result(0);
  const bool isPaged = bool(getTable());
  for (int dimension = 0; dimension < rankOf(getCache().getType()); ++dimension) {
    const bool isOfSequences = dimension == sequences;
    if (dimension == positions || (isOfSequences && isPaged))
      builder.independent({{result, dimension}, {0, dimension}});
    else if (isOfSequences)
      builder.independent({{result, dimension}, {0, dimension}, {1, dimension}, {2, 0}});
    else builder.independent({{result, dimension}, {0, dimension}, {1, dimension}});
  }
  builder.independent({{1, positions}});
  if (isPaged) builder.independent({{1, sequences}, {2, 0}, {3, 0}}).independent({{3, 1}});
  return builder.take();
}
double AppendOp::flop() { return 0; }

//===-- gather_pages --------------------------------------------------------------------------===//

void GatherPagesOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value pages,
                          mlir::Value table, int64_t axis, int64_t along, llvm::StringRef name) {
  const mlir::Type tableType = table.getType();
  const int64_t positions = extents(pages.getType())[size_t(axis)] * extents(tableType)[1];
  std::vector<std::string> names = axisNames(pages.getType());
  std::vector<int64_t> all = extents(pages.getType());
  names[size_t(along)] = axisNames(tableType)[0], all[size_t(along)] = extents(tableType)[0];
  names[size_t(axis)] = name.str(), all[size_t(axis)] = positions;
  state.addOperands({pages, table});
  state.addTypes(
      makeTensor(builder.getContext(), names, all, mlir::getElementTypeOrSelf(pages.getType())));
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.axis = builder.getI64IntegerAttr(axis);
  properties.along = builder.getDenseI64ArrayAttr({along});
}

mlir::LogicalResult GatherPagesOp::verifyConstraints() {
  const mlir::Type pages = getPages().getType(), table = getTable().getType(),
                   result = getResult().getType();
  if (getAlong().size() != 1)
    return broken(*this, "gather_pages_c1") << "'along' is the one axis of pages";
  const int64_t axis = getAxis(), along = getAlong()[0];
  if (mlir::failed(checkAxes(*this, "gather_pages_c1", "axis", {axis, along}, pages)))
    return mlir::failure();
  if (rankOf(table) != 2)
    return broken(*this, "gather_pages_c2")
           << "a table has the axes of sequences and of their pages: " << table;
  std::vector<int64_t> expected = extents(pages);
  expected[size_t(along)] = extents(table)[0];
  expected[size_t(axis)] *= extents(table)[1];
  return allOf(checkIntegers(*this, "gather_pages_c2", "the table", table),
               checkExtents(*this, "gather_pages_c3", "the result", result, expected),
               checkElementType(*this, "gather_pages_c4", "the result", result, pages));
}

IterationSpace GatherPagesOp::iterationSpace() {
  SpaceBuilder builder(*this);
  const int positions = static_cast<int>(getAxis()), sequences = static_cast<int>(getAlong()[0]);
  for (int dimension = 0; dimension < rankOf(getResult().getType()); ++dimension) {
    if (dimension == positions) builder.independent({{2, dimension}});
    else if (dimension == sequences) builder.independent({{2, dimension}, {1, 0}});
    else builder.independent({{2, dimension}, {0, dimension}});
  }
  return builder.independent({{0, sequences}})
      .independent({{0, positions}})
      .independent({{1, 1}})
      .take();
}
double GatherPagesOp::flop() { return 0; }

}  // namespace weft
