// Ops of coordinates: weft.mask, one op of four kinds, and the expression of weft.rotary. Builders,
// expressions and constraints.
#include "ir/Constraints.h"

#include <cmath>
#include <limits>

namespace weft {
namespace {

MaskOp makeMask(mlir::OpBuilder &builder, mlir::Location location, mlir::Value x,
                llvm::StringRef kind, int64_t key, std::optional<int64_t> query = std::nullopt,
                mlir::Value aux = {}) {
  return MaskOp::create(builder, location, x, kind, key, query, aux);
}

}  // namespace

MaskOp MaskOp::causal(mlir::OpBuilder &builder, mlir::Location location, mlir::Value x,
                      int64_t query, int64_t key) {
  return makeMask(builder, location, x, "causal", key, query);
}

MaskOp MaskOp::window(mlir::OpBuilder &builder, mlir::Location location, mlir::Value x,
                      int64_t query, int64_t key, int64_t left, int64_t right) {
  MaskOp op = makeMask(builder, location, x, "window", key, query);
  op.setLeft(left);
  op.setRight(right);
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

//===-- Expression ----------------------------------------------------------------------------===//

/// Excluded elements become -inf, or `fill`. Queries are aligned to the end of the keys.
Expression MaskOp::expression() {
  using E = Expression;
  const E key = E::coordinate(static_cast<int>(getKey()));
  const auto visible = [&]() -> E {
    if (getKind() == "padding")
      return E::binary(ScalarOperator::less, key, E::operand(1, ScalarType::i32));
    const int queryDimension = static_cast<int>(*getQuery());
    const E query = E::coordinate(queryDimension);
    if (getKind() == "block") {
      const E size = E::integer(static_cast<int64_t>(*getSize()));
      const E element = E::element(1,
                                   {E::binary(ScalarOperator::divide, query, size),
                                    E::binary(ScalarOperator::divide, key, size)},
                                   ScalarType::i32);
      return E::binary(ScalarOperator::notEqual, element, E::integer(0));
    }
    const std::vector<int64_t> sizes = extents(getX().getType());
    const int64_t shift =
        sizes[static_cast<size_t>(getKey())] - sizes[static_cast<size_t>(queryDimension)];
    const E position =
        shift == 0 ? query : E::binary(ScalarOperator::add, query, E::integer(shift));
    if (getKind() == "causal") return E::binary(ScalarOperator::lessEqual, key, position);
    const auto edge = [&](ScalarOperator side, int64_t reach) {
      return E::binary(side, position, E::integer(reach));
    };
    return E::binary(ScalarOperator::both,
                     E::binary(ScalarOperator::greaterEqual, key,
                               edge(ScalarOperator::subtract, static_cast<int64_t>(*getLeft()))),
                     E::binary(ScalarOperator::lessEqual, key,
                               edge(ScalarOperator::add, static_cast<int64_t>(*getRight()))));
  };
  const double fill =
      getFill() ? getFill()->convertToDouble() : -std::numeric_limits<double>::infinity();
  return E::select(visible(), E::operand(0), E::literal(fill));
}

/// Pairs are (i, i + half) if halved, (2i, 2i + 1) if interleaved: x of the pair's first turns into
/// x cos - partner sin, that of its second into x cos + partner sin.
Expression RotaryOp::expression() {
  using E = Expression;
  const int dimension = static_cast<int>(getDim());
  const int64_t extent = extents(getX().getType())[static_cast<size_t>(dimension)];
  const E here = E::coordinate(dimension), half = E::integer(extent / 2), two = E::integer(2);
  const bool isHalved = getStyle() == "halved";
  const E isFirst = isHalved
                        ? E::binary(ScalarOperator::less, here, half)
                        : E::binary(ScalarOperator::equal,
                                    E::binary(ScalarOperator::modulo, here, two), E::integer(0));
  const E partnerPlace = isHalved ? E::select(isFirst, E::binary(ScalarOperator::add, here, half),
                                              E::binary(ScalarOperator::subtract, here, half))
                                  : E::binary(ScalarOperator::bitXor, here, E::integer(1));
  const E pair = E::binary(isHalved ? ScalarOperator::modulo : ScalarOperator::divide, here,
                           isHalved ? half : two);
  std::vector<E> places;
  for (int other = 0; other < rankOf(getX().getType()); ++other)
    places.push_back(other == dimension ? partnerPlace : E::coordinate(other));
  const E x = E::operand(0), partner = E::element(0, places),
          minusPartner = E::unary(ScalarOperator::negate, partner);
  const E scale =
      E::literal(-2.0 * std::log2(getBase().convertToDouble()) / static_cast<double>(extent));
  const E turn = E::call("weft::rotation", {E::coordinate(static_cast<int>(getPosition())),
                                            E::call("weft::rotaryFrequency", {pair, scale})});
  return E::binary(ScalarOperator::add,
                   E::binary(ScalarOperator::multiply, x, E::member("cosine", turn)),
                   E::binary(ScalarOperator::multiply,
                             isReverse() ? E::select(isFirst, partner, minusPartner)
                                         : E::select(isFirst, minusPartner, partner),
                             E::member("sine", turn)));
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

//===-- Constraints ---------------------------------------------------------------------------===//

namespace {

/// Which attributes and operands a kind of mask has.
struct MaskForm {
  bool query, window, size, aux, along;
};
const std::map<llvm::StringRef, MaskForm> &maskForms() {
  static const std::map<llvm::StringRef, MaskForm> forms = {
      {"causal", {.query = true, .window = false, .size = false, .aux = false, .along = false}},
      {"window", {.query = true, .window = true, .size = false, .aux = false, .along = false}},
      {"padding", {.query = false, .window = false, .size = false, .aux = true, .along = true}},
      {"block", {.query = true, .window = false, .size = true, .aux = true, .along = false}}};
  return forms;
}

mlir::LogicalResult checkPresent(mlir::Operation *op, llvm::StringRef kind, llvm::StringRef name,
                                 bool present, bool expected) {
  if (present == expected) return mlir::success();
  return broken(op, "mask_c2") << "a " << kind << " mask " << (expected ? "needs" : "has no")
                               << " '" << name << "'";
}

int64_t blocks(int64_t extent, int64_t size) { return extent / size + (extent % size != 0); }

}  // namespace

mlir::LogicalResult MaskOp::verifyOwnConstraints() {
  const auto form = maskForms().find(getKind());
  if (form == maskForms().end())
    return broken(*this, "mask_c1")
           << "unknown kind \"" << getKind() << "\"; supported: causal, window, padding, block";
  const MaskForm &has = form->second;
  if (mlir::failed(
          allOf(checkPresent(*this, getKind(), "query", getQuery().has_value(), has.query),
                checkPresent(*this, getKind(), "left", getLeft().has_value(), has.window),
                checkPresent(*this, getKind(), "right", getRight().has_value(), has.window),
                checkPresent(*this, getKind(), "size", getSize().has_value(), has.size),
                checkPresent(*this, getKind(), "along", getAlong().has_value(), has.along),
                checkPresent(*this, getKind(), "second operand", getAux() != nullptr, has.aux))))
    return mlir::failure();
  if (getFill() && !getFill()->isFinite())
    return broken(*this, "mask_c7") << "'fill' must be finite; leave it out for -inf";
  return allOf(verifyAxesAndSizes(), checkFloatResult());
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
  for (auto [name, value, least] :
       {std::tuple("left", getLeft(), 0), {"right", getRight(), 0}, {"size", getSize(), 1}})
    if (value &&
        mlir::failed(checkRange(*this, "mask_c4", name, static_cast<int64_t>(*value), least)))
      return mlir::failure();
  if (!getAux()) return mlir::success();
  const mlir::Type aux = getAux().getType();
  if (getKind() == "block") {
    const int64_t size = *getSize();
    return allOf(
        checkExtents(*this, "mask_c5", "the table", aux,
                     {blocks(extents(x)[query], size), blocks(extents(x)[key], size)}),
        checkElementType(*this, "mask_c5", "the table", aux, fromDType(getContext(), DType::i1)));
  }
  if (getAlong()->size() != 1 || (*getAlong())[0] == key)
    return broken(*this, "mask_c5") << "'along' must be one axis other than the key axis";
  if (mlir::failed(checkAxes(*this, "mask_c5", "along", *getAlong(), x))) return mlir::failure();
  return allOf(
      checkExtents(*this, "mask_c5", "the tensor of lengths", aux, {extents(x)[(*getAlong())[0]]}),
      checkElementType(*this, "mask_c5", "the tensor of lengths", aux,
                       fromDType(getContext(), DType::i32)));
}

}  // namespace weft
