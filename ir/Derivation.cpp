// Formulas of derivatives: arithmetic on tensors, and what brings a gradient to the type of its
// operand.
#include "ir/Derivation.h"

#include "ir/Weft.h"

#include "llvm/ADT/STLExtras.h"

namespace weft {
namespace {

template <typename Op>
Term binary(const Term &a, const Term &b) {
  if (b.along) return make<Op>(a, b, b.along.asArrayRef());
  return make<Op>(a, b);
}

/// Accumulators over the dimensions that `along` lacks and brings the rest into its order.
mlir::Value summedAlong(Derivation &derivation, mlir::Value gradient, llvm::ArrayRef<int64_t> along,
                        DType dtype) {
  mlir::OpBuilder &builder = derivation.builder();
  llvm::SmallVector<int64_t> summed, kept;
  for (int64_t dimension = 0; dimension < static_cast<int64_t>(extents(gradient.getType()).size());
       ++dimension)
    (llvm::is_contained(along, dimension) ? kept : summed).push_back(dimension);
  if (!summed.empty())
    gradient = ReduceOp::create(builder, derivation.location(), "sum", gradient, summed, dtype);
  if (llvm::is_sorted(along)) return gradient;
  llvm::SmallVector<int64_t> permutation;
  for (int64_t dimension : along) permutation.push_back(llvm::find(kept, dimension) - kept.begin());
  return TransposeOp::create(builder, derivation.location(), gradient, permutation);
}

}  // namespace

Derivation::Derivation(mlir::Operation *op, mlir::OpBuilder &builder,
                       llvm::ArrayRef<mlir::Value> upstream, llvm::ArrayRef<bool> isWanted)
    : op(op),
      opBuilder(builder),
      upstreams(upstream),
      wanted(isWanted),
      gradients(op->getNumOperands()) {}

Term Derivation::upstream(unsigned result) {
  return {this, result < upstreams.size() ? upstreams[result] : mlir::Value(), {}};
}

Term Derivation::operand(unsigned number) {
  if (number >= op->getNumOperands()) return {this, {}, {}};
  return {this, op->getOperand(number),
          number == 1 ? op->getAttrOfType<mlir::DenseI64ArrayAttr>("along") : nullptr};
}

Term Derivation::result(unsigned number) {
  return {
      this, number < op->getNumResults() ? mlir::Value(op->getResult(number)) : mlir::Value(), {}};
}

/// Names are given once the gradient is whole; until then ops carry the place of the op they are
/// derived from.
mlir::Location Derivation::location() const {
  auto named = mlir::dyn_cast<mlir::NameLoc>(op->getLoc());
  return named ? named.getChildLoc() : op->getLoc();
}

mlir::Value Derivation::fitted(unsigned operand, Term gradient) {
  const mlir::Type type = op->getOperand(operand).getType();
  const Term term = this->operand(operand);
  mlir::Value value = gradient.value;
  if (term.along) value = summedAlong(*this, value, term.along.asArrayRef(), *toDType(type));
  if (toDType(value.getType()) != toDType(type))
    value = CastOp::create(opBuilder, location(), value, *toDType(type));
  return value;
}

Term operator+(const Term &a, const Term &b) { return binary<AddOp>(a, b); }
Term operator-(const Term &a, const Term &b) { return binary<SubOp>(a, b); }
Term operator*(const Term &a, const Term &b) { return binary<MulOp>(a, b); }
Term operator/(const Term &a, const Term &b) { return binary<DivOp>(a, b); }
Term operator*(const Term &a, double factor) { return make<ScaleOp>(a, factor); }

mlir::LogicalResult noDerivative(mlir::Operation *op) {
  return op->emitOpError() << "has no derivative; differentiate before the pass that introduces "
                              "it, or ask for gradients "
                              "that do not lead through it";
}

}  // namespace weft
