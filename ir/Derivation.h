// How an op states its derivative, once, beside its other properties: formulas over tensors, whose
// operators append the ops that compute them. For y = f(a, b) and a scalar loss L, dy stands for
// dL/dy; the formula of an operand is dL/da.
//
//   weft.mul           derivative = ["dy * b", "dy * a"]   a record of ElementwiseOps.td
//   weft.softmax       derivation.give(0, [&] { return make<SoftmaxDxOp>(dy, y, getAxis()); })
//
// A formula has the extents of the op's first operand. What is due to an operand that runs along
// some axes of it only (a bias) is summed over the others here, and cast to the operand's element
// type: formulas say nothing of either. Formulas may read operands and results of the op: those
// that do become the saved tensors of the backward pass.
#pragma once
#ifndef WEFT_IR_DERIVATION_H  // beside a precompiled header of a compiler cache
#define WEFT_IR_DERIVATION_H

#include "ir/Types.h"

#include "mlir/IR/Builders.h"

#include <type_traits>
#include <utility>

namespace weft {

class Derivation;

/// A tensor in a formula. `along`: the dimension of the op's first operand that each of its
/// runs along; null where it has them all.
struct Term {
  Derivation *derivation = nullptr;
  mlir::Value value;
  mlir::DenseI64ArrayAttr along;
};

/// The derivation of one op. Ops are appended at the builder's place.
class Derivation {
public:
  /// `upstream`: the gradient of each result, null for those that do not influence the loss.
  Derivation(mlir::Operation *op, mlir::OpBuilder &builder, llvm::ArrayRef<mlir::Value> upstream,
             llvm::ArrayRef<bool> isWanted);

  /// Gradients and values in formulas; empty where the op has no such operand or result.
  Term upstream(unsigned result = 0);
  Term operand(unsigned number);
  Term result(unsigned number = 0);
  bool isWanted(unsigned operand) const { return operand < wanted.size() && wanted[operand]; }
  mlir::OpBuilder &builder() { return opBuilder; }
  mlir::Location location() const;

  /// The gradient of an operand by its formula, which is not evaluated if nobody wants it.
  template <typename Formula>
  void give(unsigned operand, Formula formula) {
    if (isWanted(operand)) gradients[operand] = fitted(operand, formula());
  }
  /// One per operand; null where none was given.
  llvm::ArrayRef<mlir::Value> given() const { return gradients; }

private:
  mlir::Value fitted(unsigned operand, Term gradient);

  mlir::Operation *op;
  mlir::OpBuilder &opBuilder;
  llvm::ArrayRef<mlir::Value> upstreams;
  llvm::ArrayRef<bool> wanted;
  llvm::SmallVector<mlir::Value> gradients;
};

/// Element-wise; the left one has all axes.
Term operator+(const Term &a, const Term &b);
Term operator-(const Term &a, const Term &b);
Term operator*(const Term &a, const Term &b);
Term operator/(const Term &a, const Term &b);
Term operator*(const Term &a, double factor);

namespace detail {
template <typename Argument>
decltype(auto) operandOf(Argument &&argument) {
  if constexpr (std::is_same_v<std::decay_t<Argument>, Term>) return mlir::Value(argument.value);
  else return std::forward<Argument>(argument);
}
}  // namespace detail

/// Any op as a formula: terms and attributes in the order of its builder.
template <typename Op, typename... Arguments>
Term make(const Term &first, Arguments &&...arguments) {
  Derivation &derivation = *first.derivation;
  auto op = Op::create(derivation.builder(), derivation.location(), first.value,
                       detail::operandOf(std::forward<Arguments>(arguments))...);
  return {&derivation, op->getResult(0), {}};
}

/// Of ops that state no derivative: a diagnostic at the op.
mlir::LogicalResult noDerivative(mlir::Operation *op);

}  // namespace weft

#endif  // WEFT_IR_DERIVATION_H
