// Ops of coordinates: weft.mask, one op of seven kinds, and the expression of weft.rotary.
// Builders, expressions and constraints.
#include "ir/Constraints.h"
#include "kernel/BlockMask.h"
#include "kernel/CoordinateExpressions.h"
#include "kernel/Error.h"
#include "kernel/TileBounds.h"

namespace weft {
namespace {

MaskOp makeMask(mlir::OpBuilder &builder, mlir::Location location, mlir::Value x,
                llvm::StringRef kind, int64_t key, std::optional<int64_t> query = std::nullopt,
                mlir::Value aux = {}) {
  return MaskOp::create(builder, location, x, kind, key, query, aux);
}

/// What the verifier knows it to be; a mask that it has not seen yet may have any word.
MaskShape::Kind kindOf(MaskOp mask) {
  return maskKindNamed(std::string_view(mask.getKind())).value_or(MaskShape::Kind::causal);
}

}  // namespace

MaskOp MaskOp::causal(mlir::OpBuilder &builder, mlir::Location location, mlir::Value x,
                      int64_t query, int64_t key) {
  return makeMask(builder, location, x, "causal", key, query);
}

MaskOp MaskOp::window(mlir::OpBuilder &builder, mlir::Location location, mlir::Value x,
                      int64_t query, int64_t key, int64_t left, int64_t right, int64_t global) {
  MaskOp op = makeMask(builder, location, x, "window", key, query);
  op.setLeft(left);
  op.setRight(right);
  if (global > 0) op.setGlobal(global);
  return op;
}

MaskOp MaskOp::padding(mlir::OpBuilder &builder, mlir::Location location, mlir::Value x,
                       int64_t key, mlir::Value lengths, int64_t along) {
  MaskOp op = makeMask(builder, location, x, "padding", key, std::nullopt, lengths);
  op.setAlong(llvm::ArrayRef<int64_t>{along});
  return op;
}

MaskOp MaskOp::block(mlir::OpBuilder &builder, mlir::Location location, mlir::Value x,
                     int64_t query, int64_t key, int64_t size, mlir::Value table) {
  MaskOp op = makeMask(builder, location, x, "block", key, query, table);
  op.setSize(size);
  return op;
}

MaskOp MaskOp::byPattern(mlir::OpBuilder &builder, mlir::Location location, mlir::Value x,
                         int64_t query, int64_t key, llvm::ArrayRef<int64_t> heads,
                         llvm::StringRef pattern) {
  MaskOp op = makeMask(builder, location, x, "pattern", key, query);
  op.setPattern(pattern);
  if (!heads.empty()) op.setAlong(heads);
  return op;
}

int64_t MaskOp::countHeads() {
  int64_t heads = 1;
  for (const int64_t dimension : getAlong().value_or(llvm::ArrayRef<int64_t>()))
    heads *= extents(getX().getType())[size_t(dimension)];
  return heads;
}

MaskOp MaskOp::document(mlir::OpBuilder &builder, mlir::Location location, mlir::Value x,
                        int64_t query, int64_t key, mlir::Value segments, int64_t along) {
  MaskOp op = makeMask(builder, location, x, "document", key, query, segments);
  op.setAlong(llvm::ArrayRef<int64_t>{along});
  return op;
}

void MaskOp::setStarts(mlir::Value starts, int64_t along) {
  getOthersMutable().assign(starts);
  setAlong(llvm::ArrayRef<int64_t>{along});
}

void MaskOp::setBounds(mlir::Value bounds) { getOthersMutable().assign({getAux(), bounds}); }

//===-- Expression ----------------------------------------------------------------------------===//

Expression MaskOp::expression() {
  using Kind = MaskShape::Kind;
  MaskShape mask{.kind = kindOf(*this), .key = static_cast<int>(getKey())};
  if (getQuery()) mask.query = static_cast<int>(*getQuery());
  if (getFill()) mask.fill = getFill()->convertToDouble();
  if (mask.kind == Kind::block) mask.size = static_cast<int64_t>(*getSize());
  if (mask.kind == Kind::window) {
    mask.left = static_cast<int64_t>(*getLeft()), mask.right = static_cast<int64_t>(*getRight());
    mask.global = static_cast<int64_t>(getGlobal().value_or(0));
  }
  if (mask.kind == Kind::pattern)
    for (const int64_t dimension : getAlong().value_or(llvm::ArrayRef<int64_t>())) {
      mask.heads.push_back(static_cast<int>(dimension));
      mask.headExtents.push_back(extents(getX().getType())[size_t(dimension)]);
    }
  if (mask.kind == Kind::document) mask.batch = static_cast<int>(getAlong()->front());
  if (mask.kind == Kind::tokens || mask.kind == Kind::unread)
    mask.sequences = extents(getAux().getType())[0] - 1;
  if (mask.kind == Kind::window || mask.kind == Kind::causal || mask.kind == Kind::document) {
    const std::vector<int64_t> sizes = extents(getX().getType());
    mask.shift = sizes[static_cast<size_t>(mask.key)] - sizes[static_cast<size_t>(mask.query)];
    mask.hasStarts = mask.kind != Kind::document && getAux();
  }
  return maskExpression(mask);
}

RotaryStyle RotaryOp::style() { return *rotaryStyleNamed(getStyle()); }

int64_t RotaryOp::turnedExtent() {
  return getTurned() ? static_cast<int64_t>(*getTurned())
                     : extents(getX().getType())[static_cast<size_t>(getDim())];
}

Expression RotaryOp::expression() {
  const auto dimension = static_cast<int>(getDim());
  const auto number = [](const std::optional<llvm::APFloat> &value, double absent) {
    return value ? value->convertToDouble() : absent;
  };
  const mlir::Type element = mlir::getElementTypeOrSelf(getResult().getType());
  const bool isShort = element.isF16() || element.isBF16();
  return rotaryExpression({.style = style(),
                           .isReverse = isReverse(),
                           .isShort = isShort,
                           .hasStarts = getStarts() != nullptr,
                           .isPacked = getAlong() && getAlong()->front() == int64_t(getPosition()),
                           .dimension = dimension,
                           .position = static_cast<int>(getPosition()),
                           .rank = static_cast<int>(rankOf(getX().getType())),
                           .extent = extents(getX().getType())[static_cast<size_t>(dimension)],
                           .turned = turnedExtent(),
                           .base = getBase().convertToDouble(),
                           .factor = number(getFactor(), 1),
                           .original = static_cast<int64_t>(getOriginal().value_or(0)),
                           .low = number(getLow(), 0),
                           .high = number(getHigh(), 0),
                           .among = getAmong() ? static_cast<int>(*getAmong()) : -1,
                           .begin = static_cast<int64_t>(getBegin().value_or(0)),
                           .end = static_cast<int64_t>(getEnd().value_or(0))});
}

//===-- Derivative ----------------------------------------------------------------------------===//

/// The same mask of another tensor: gradients pass where elements do and are zero where they are
/// excluded.
Term MaskOp::filledWithZeros(const Term &x) {
  mlir::OpBuilder &builder = x.derivation->builder();
  auto op = mlir::cast<MaskOp>(builder.clone(*getOperation()));
  op.getXMutable().assign(x.value);
  op.getResult().setType(mlir::cast<mlir::RankedTensorType>(x.value.getType()));
  op->setLoc(x.derivation->location());
  op.setFillAttr(builder.getF64FloatAttr(0));
  return {x.derivation, op.getResult(), {}};
}

/// By the same angles the other way.
Term RotaryOp::turnedBack(const Term &x) {
  mlir::OpBuilder &builder = x.derivation->builder();
  auto op = mlir::cast<RotaryOp>(builder.clone(*getOperation()));
  op.getXMutable().assign(x.value);
  op.getResult().setType(mlir::cast<mlir::RankedTensorType>(x.value.getType()));
  op->setLoc(x.derivation->location());
  if (isReverse()) op.removeDirectionAttr();
  else op.setDirection("reverse");
  return {x.derivation, op.getResult(), {}};
}

//===-- Constraints ---------------------------------------------------------------------------===//

namespace {

/// Which attributes and operands a kind of mask has.
struct MaskForm {
  bool query, window, size;
  std::optional<bool> aux;    ///< nothing: either, and `along` as it
  std::optional<bool> along;  ///< nothing: either
  bool pattern = false;
};
const std::map<llvm::StringRef, MaskForm> &maskForms() {
  static const std::map<llvm::StringRef, MaskForm> forms = {
      {"causal",
       {.query = true, .window = false, .size = false, .aux = std::nullopt, .along = std::nullopt}},
      {"window",
       {.query = true, .window = true, .size = false, .aux = std::nullopt, .along = std::nullopt}},
      {"padding", {.query = false, .window = false, .size = false, .aux = true, .along = true}},
      {"block", {.query = true, .window = false, .size = true, .aux = true, .along = false}},
      {"pattern",
       {.query = true,
        .window = false,
        .size = false,
        .aux = false,
        .along = std::nullopt,
        .pattern = true}},
      {"document", {.query = true, .window = false, .size = false, .aux = true, .along = true}},
      {"tokens", {.query = false, .window = false, .size = false, .aux = true, .along = false}},
      {"unread", {.query = false, .window = false, .size = false, .aux = true, .along = false}}};
  return forms;
}

mlir::LogicalResult checkPresent(mlir::Operation *op, llvm::StringRef kind, llvm::StringRef name,
                                 bool present, bool expected) {
  if (present == expected) return mlir::success();
  return broken(op, "mask_c2") << "a " << kind << " mask " << (expected ? "needs" : "has no")
                               << " '" << name << "'";
}

/// Where offsets are an argument, of a part of a model or of a user's graph, whose they are is for
/// the caller to say.
mlir::LogicalResult checkPacked(MaskOp mask) {
  if (!mask.getPacked()) return mlir::success();
  if (kindOf(mask) != MaskShape::Kind::padding)
    return broken(mask, "mask_c11") << "a " << mask.getKind() << " mask is not 'packed'; a padding "
                                    << "mask by the lengths of packed sequences may be";
  auto graph = mlir::dyn_cast_or_null<GraphOp>(mask->getParentOp());
  if (!graph) return mlir::success();
  const auto positions = uint64_t(extents(mask.getX().getType())[size_t(mask.getKey())]);
  for (OffsetsOp offsets : graph.getBody().front().getOps<OffsetsOp>()) {
    if (offsets.getLengths() != mask.getAux())
      return broken(mask, "mask_c11") << "'packed' says that all weft.offsets sum these lengths; "
                                      << "one sums others: leave 'packed' out";
    if (offsets.getBound() != positions)
      return broken(mask, "mask_c11")
             << "'packed' says that sequences have up to " << positions
             << " tokens, but weft.offsets has 'bound' " << offsets.getBound();
  }
  return mlir::success();
}

int64_t blocks(int64_t extent, int64_t size) { return extent / size + (extent % size != 0); }

}  // namespace

mlir::LogicalResult MaskOp::verifyOwnConstraints() {
  const auto form = maskForms().find(getKind());
  if (form == maskForms().end())
    return broken(*this, "mask_c1")
           << "unknown kind \"" << getKind()
           << "\"; supported: causal, window, padding, block, document, pattern, tokens, unread";
  const MaskForm &has = form->second;
  if (mlir::failed(allOf(
          checkPresent(*this, getKind(), "query", getQuery().has_value(), has.query),
          checkPresent(*this, getKind(), "left", getLeft().has_value(), has.window),
          checkPresent(*this, getKind(), "right", getRight().has_value(), has.window),
          checkPresent(*this, getKind(), "global", getGlobal().has_value(),
                       has.window && getGlobal().has_value()),
          checkPresent(*this, getKind(), "size", getSize().has_value(), has.size),
          checkPresent(*this, getKind(), "along", getAlong().has_value(),
                       has.along.value_or(has.aux ? getAlong().has_value() : getAux() != nullptr)),
          checkPresent(*this, getKind(), "pattern", getPattern().has_value(), has.pattern),
          checkPresent(*this, getKind(), "second operand", getAux() != nullptr,
                       has.aux.value_or(getAux() != nullptr)),
          checkPresent(*this, getKind(), "third operand", getBounds() != nullptr,
                       kindOf(*this) == MaskShape::Kind::document && getBounds() != nullptr))))
    return mlir::failure();
  if (getOthers().size() > 2)
    return broken(*this, "mask_c2") << "a " << getKind() << " mask has no fourth operand";
  if (getFill() && !getFill()->isFinite())
    return broken(*this, "mask_c7") << "'fill' must be finite; leave it out for -inf";
  if (getFill() && kindOf(*this) == MaskShape::Kind::unread)
    return broken(*this, "mask_c7") << "an unread mask has no 'fill'";
  if (mlir::failed(allOf(verifyAxesAndSizes(), checkFloatResult()))) return mlir::failure();
  return checkPacked(*this);
}

mlir::LogicalResult MaskOp::checkFloatResult() {
  if (!mlir::isa<mlir::FloatType>(getX().getType().getElementType()))
    return broken(*this, "mask_c6") << getX().getType() << " is not a tensor of floats";
  return checkElementType(*this, "mask_c6", "the result", getResult().getType(), getX().getType());
}

mlir::LogicalResult MaskOp::verifyAxesAndSizes() {
  const mlir::Type x = getX().getType();
  const int64_t key = getKey(), query = getQuery().value_or(-1);
  if (mlir::failed(checkAxis(*this, "mask_c3", "key", key, x))) return mlir::failure();
  if (getQuery() && mlir::failed(checkAxes(*this, "mask_c3", "query", {query, key}, x)))
    return mlir::failure();
  for (auto [name, value, least] : {std::tuple("left", getLeft(), 0),
                                    {"right", getRight(), 0},
                                    {"global", getGlobal(), 1},
                                    {"size", getSize(), 1}})
    if (value &&
        mlir::failed(checkRange(*this, "mask_c4", name, static_cast<int64_t>(*value), least)))
      return mlir::failure();
  if (kindOf(*this) == MaskShape::Kind::pattern) return verifyPattern();
  if (!getAux()) return mlir::success();
  const mlir::Type aux = getAux().getType();
  if (kindOf(*this) == MaskShape::Kind::block) {
    const int64_t size = *getSize();
    return allOf(
        checkExtents(*this, "mask_c5", "the table", aux,
                     {blocks(extents(x)[query], size), blocks(extents(x)[key], size)}),
        checkElementType(*this, "mask_c5", "the table", aux, fromDType(getContext(), DType::i1)));
  }
  if (isTokensMask(std::string_view(getKind()))) {
    if (rankOf(aux) != 1 || extents(aux)[0] < 2)
      return broken(*this, "mask_c5")
             << "offsets have one axis, one longer than there are sequences: " << aux;
    return checkElementType(*this, "mask_c5", "the tensor of offsets", aux,
                            fromDType(getContext(), DType::i32));
  }
  if (getAlong()->size() != 1 || (*getAlong())[0] == key)
    return broken(*this, "mask_c5") << "'along' must be one axis other than the key axis";
  if (mlir::failed(checkAxes(*this, "mask_c5", "along", *getAlong(), x))) return mlir::failure();
  if (kindOf(*this) == MaskShape::Kind::document) return verifySegments();
  if ((*getAlong())[0] == query)
    return broken(*this, "mask_c5") << "'along' must be one axis other than the query axis";
  const char *const what = getQuery() ? "the tensor of starts" : "the tensor of lengths";
  return allOf(checkExtents(*this, "mask_c5", what, aux, {extents(x)[(*getAlong())[0]]}),
               checkElementType(*this, "mask_c5", what, aux, fromDType(getContext(), DType::i32)));
}

mlir::LogicalResult MaskOp::verifyPattern() {
  const std::vector<int64_t> sizes = extents(getX().getType());
  if (const auto along = getAlong()) {
    if (mlir::failed(checkAxes(*this, "mask_c5", "along", *along, getX().getType())))
      return mlir::failure();
    if (along->empty() || llvm::is_contained(*along, int64_t(getKey())) ||
        llvm::is_contained(*along, int64_t(*getQuery())))
      return broken(*this, "mask_c5") << "'along' must be axes other than those of query and key";
  }
  try {
    const bool isByHead = BlockPattern::parse(getPattern()->str()).isByHead;
    if (isByHead != getAlong().has_value())
      return broken(*this, "mask_c9")
             << (isByHead ? "a table of each head needs 'along', the axes of heads"
                          : "'along' is of patterns with a table for each head");
    blockTable(getPattern()->str(), countHeads(), sizes[*getQuery()], sizes[getKey()]);
  } catch (const Error &error) {
    return broken(*this, "mask_c9") << "pattern: " << error.what();
  }
  return mlir::success();
}

mlir::LogicalResult MaskOp::verifySegments() {
  const std::vector<int64_t> sizes = extents(getX().getType());
  const int64_t queries = sizes[*getQuery()], keys = sizes[getKey()], along = (*getAlong())[0];
  if (along == static_cast<int64_t>(*getQuery()))
    return broken(*this, "mask_c5") << "'along' must be one axis other than the query axis";
  if (queries > keys)
    return broken(*this, "mask_c8") << "a document mask of " << queries << " queries and " << keys
                                    << " keys: the first queries have no segment";
  const mlir::Type i32 = fromDType(getContext(), DType::i32);
  if (mlir::failed(allOf(
          checkExtents(*this, "mask_c5", "the tensor of segments", getAux().getType(),
                       {sizes[along], keys}),
          checkElementType(*this, "mask_c5", "the tensor of segments", getAux().getType(), i32))))
    return mlir::failure();
  if (!getBounds()) return mlir::success();
  return allOf(
      checkExtents(*this, "mask_c10", "the tensor of bounds", getBounds().getType(),
                   {sizes[along], boundedTiles(keys), boundsOfTile}),
      checkElementType(*this, "mask_c10", "the tensor of bounds", getBounds().getType(), i32));
}

//===-- tile_bounds ---------------------------------------------------------------------------===//

void TileBoundsOp::build(mlir::OpBuilder &builder, mlir::OperationState &state,
                         mlir::Value segments) {
  std::vector<std::string> names = axisNames(segments.getType());
  std::vector<int64_t> sizes = extents(segments.getType());
  names.back() += "_tile", sizes.back() = boundedTiles(sizes.back());
  names.emplace_back("bound"), sizes.push_back(boundsOfTile);
  state.addOperands(segments);
  state.addTypes(makeTensor(builder.getContext(), names, sizes,
                            mlir::getElementTypeOrSelf(segments.getType())));
}

mlir::LogicalResult TileBoundsOp::verifyConstraints() {
  const mlir::Type segments = getSegments().getType(), result = getResult().getType(),
                   i32 = fromDType(getContext(), DType::i32);
  if (rankOf(segments) < 1)
    return broken(*this, "tile_bounds_c1") << "the operand has no axis of positions: " << segments;
  std::vector<int64_t> expected = extents(segments);
  expected.back() = boundedTiles(expected.back());
  expected.push_back(boundsOfTile);
  return allOf(checkElementType(*this, "tile_bounds_c1", "the operand", segments, i32),
               checkExtents(*this, "tile_bounds_c2", "the result", result, expected),
               checkElementType(*this, "tile_bounds_c2", "the result", result, i32));
}

/// The axis of positions is walked inside an element, as that of a table of buckets is.
IterationSpace TileBoundsOp::iterationSpace() {
  SpaceBuilder builder(*this);
  const int last = rankOf(getSegments().getType()) - 1;
  for (int dimension = 0; dimension < last; ++dimension)
    builder.independent({{1, dimension}, {0, dimension}});
  return builder.independent({{1, last}})
      .independent({{1, last + 1}})
      .independent({{0, last}})
      .take();
}
double TileBoundsOp::flop() { return 0; }

}  // namespace weft
