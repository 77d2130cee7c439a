// Gates of probabilities commute past the contraction that sums them with values. A gate is a
// factor: a constant (weft.scale), or a tensor that the probabilities are multiplied or divided by.
//
//   y[j,w] = sum_k P[j,k] c v[k,w]     = c sum_k P[j,k] v[k,w]      into the contraction's factor
//          = sum_k P[j,k] g[j] v[k,w]  = g[j] sum_k P[j,k] v[k,w]   behind the contraction
//          = sum_k P[j,k] g[k] v[k,w]  = sum_k P[j,k] (g[k] v[k,w])  in front of the values
//
// What is left between softmax and contraction are casts and a dropout, which keeps what it keeps
// whatever the factors are, so that the rest may become a fold (FoldSoftmax.cpp). A gate of which
// one axis is of queries and another of keys stays: values would get the axis of queries.
//
// Invariant: no axis is added to any tensor. Known downside: values times gates are rounded to the
// values' type, where probabilities times gates were to theirs.
#include "ir/Einsum.h"
#include "ir/LayerMarks.h"
#include "passes/Describe.h"
#include "passes/Rewrites.h"
#include "passes/SavedTensors.h"
#include "passes/attention/Gates.h"

#include "llvm/ADT/DenseSet.h"

#include <fmt/format.h>

namespace weft {
namespace {

/// Dimensions of the probabilities that a gate has, in the order of the gate's.
std::vector<int64_t> dimensionsOf(mlir::Operation *gate) {
  if (auto along = gate->getAttrOfType<mlir::DenseI64ArrayAttr>("along"))
    return {along.asArrayRef().begin(), along.asArrayRef().end()};
  std::vector<int64_t> all;
  for (int64_t dimension = 0; dimension < std::ssize(extents(gate->getResult(0).getType()));
       ++dimension)
    all.push_back(dimension);
  return all;
}

mlir::Value factorOf(mlir::Operation *gate, mlir::Value probabilities) {
  return gate->getOperand(gate->getOperand(0) == probabilities ? 1 : 0);
}

/// A contraction of probabilities with values, by letters.
struct Terms {
  explicit Terms(ContractOp contraction, mlir::Value probabilities)
      : areFirst(contraction.getA() == probabilities) {
    const Einsum einsum = parseEinsum(contraction.getSpec().str());
    this->probabilities = areFirst ? einsum.a : einsum.b;
    values = areFirst ? einsum.b : einsum.a;
    result = einsum.result;
  }
  bool areFirst = true;
  std::string probabilities, values, result;

  /// Where these dimensions of the probabilities are in another term; nothing where it lacks any.
  std::optional<std::vector<int64_t>> placesIn(const std::string &term,
                                               const std::vector<int64_t> &dimensions) const {
    std::vector<int64_t> places;
    for (const int64_t dimension : dimensions) {
      const size_t at = term.find(probabilities[size_t(dimension)]);
      if (at == std::string::npos) return std::nullopt;
      places.push_back(int64_t(at));
    }
    return places;
  }
};

/// The tensor multiplied or divided as the gate does it.
mlir::Value gated(mlir::OpBuilder &builder, mlir::Location location, mlir::Operation *gate,
                  mlir::Value tensor, mlir::Value factor, const std::vector<int64_t> &along) {
  if (mlir::isa<DivOp>(gate)) return DivOp::create(builder, location, tensor, factor, along);
  return MulOp::create(builder, location, tensor, factor, along);
}

/// By the name of a value; by that of `location` where it has none. Where the op stands in a file
/// stays, but no second name, which derivatives would take.
mlir::Location named(mlir::Location location, mlir::Value value, const char *suffix) {
  const std::string name = writtenName(value);
  if (name.empty()) return location;
  const auto before = mlir::dyn_cast<mlir::NameLoc>(location);
  return mlir::NameLoc::get(mlir::StringAttr::get(value.getContext(), name + suffix),
                            before ? before.getChildLoc() : location);
}

/// A gate and what it multiplies.
struct Gate {
  mlir::Operation *op;
  mlir::Value probabilities;
};

/// From a softmax to the contraction that sums its probabilities: requires an empty
/// forwardRejection().
struct Path {
  explicit Path(SoftmaxOp softmax) : probabilities(softmax.getResult()) {
    while (!(contraction = mlir::dyn_cast<ContractOp>(*probabilities.user_begin()))) {
      mlir::Operation *op = *probabilities.user_begin();
      if (!mlir::isa<CastOp, DropoutOp>(op)) gates.push_back({op, probabilities});
      probabilities = op->getResult(0);
    }
  }
  /// Whether ops of these names would change or vanish.
  bool changesAny(const std::vector<std::string> &names) const {
    if (gates.empty()) return false;
    std::vector<mlir::Operation *> changed = {contraction};
    for (const Gate &gate : gates) changed.push_back(gate.op);
    return llvm::any_of(changed, [&](mlir::Operation *op) {
      return llvm::is_contained(names, writtenName(op->getResult(0)));
    });
  }
  mlir::Value probabilities;  ///< the contraction's operand
  ContractOp contraction;
  std::vector<Gate> gates;
};

void multiply(ContractOp contraction, double factor) {
  const double before = contraction.getScale() ? contraction.getScale()->convertToDouble() : 1.0;
  contraction.setScaleAttr(
      mlir::Builder(contraction.getContext()).getF64FloatAttr(before * factor));
}

/// Moves gates of rows behind the contraction, whose name the last one has then.
void moveBehind(ContractOp contraction, const Terms &terms, const std::vector<Gate> &gates) {
  BuilderOfLayer builder(contraction.getContext(), layerOf(contraction.getResult()));
  builder.setInsertionPointAfter(contraction);
  const mlir::Location location = contraction.getLoc();
  const mlir::Location between = named(location, contraction.getResult(), "_ungated");
  llvm::DenseSet<mlir::Operation *> made;
  mlir::Value result = contraction.getResult();
  for (const Gate &gate : gates) {
    result = gated(builder, &gate == &gates.back() ? location : between, gate.op, result,
                   factorOf(gate.op, gate.probabilities),
                   *terms.placesIn(terms.result, dimensionsOf(gate.op)));
    made.insert(result.getDefiningOp());
  }
  contraction->setLoc(between);
  contraction.getResult().replaceUsesWithIf(
      result, [&](mlir::OpOperand &use) { return !made.contains(use.getOwner()); });
}

}  // namespace

bool isGateOf(mlir::Operation *op, mlir::Value probabilities) {
  if (mlir::isa<ScaleOp>(op)) return true;
  if (!mlir::isa<MulOp, DivOp>(op) || op->getOperand(0) == op->getOperand(1)) return false;
  // Factors commute: of two that are alike any may be the gate.
  return op->getOperand(0) == probabilities ||
         (mlir::isa<MulOp>(op) && op->getOperand(0).getType() == probabilities.getType() &&
          !op->hasAttr("along"));
}

std::string gateRejection(mlir::Operation *gate, int64_t axis, ContractOp contraction,
                          mlir::Value probabilities) {
  if (mlir::isa<ScaleOp>(gate)) return "";
  const Terms terms(contraction, probabilities);
  const std::vector<int64_t> dimensions = dimensionsOf(gate);
  if (!llvm::is_contained(dimensions, axis) || terms.placesIn(terms.values, dimensions)) return "";
  const std::vector<std::string> names = axisNames(probabilities.getType());
  const auto other = llvm::find_if(
      dimensions, [&](int64_t dimension) { return !terms.placesIn(terms.values, {dimension}); });
  return fmt::format(
      "the factor of {} varies along '{}' and along '{}', which the values of {} lack, so that it "
      "moves neither to them nor behind it",
      described(gate), names[size_t(axis)], names[size_t(*other)], described(contraction));
}

std::string forwardRejection(SoftmaxOp softmax) {
  const bool isTrained = mlir::cast<GraphOp>(softmax->getParentOp())->hasAttr(savedName);
  return attentionRejection(softmax.getResult(), int64_t(softmax.getAxis()),
                            isTrained ? Gates::stay : Gates::commute);
}

int commuteGates(SoftmaxOp softmax) {
  const Path path(softmax);
  const std::vector<Gate> &gates = path.gates;
  ContractOp contraction = path.contraction;
  std::vector<Gate> ofRows;
  const Terms terms(contraction, path.probabilities);
  const auto axis = int64_t(softmax.getAxis());
  BuilderOfLayer builder(contraction);
  for (const Gate &gate : gates) {
    if (auto scale = mlir::dyn_cast<ScaleOp>(gate.op)) {
      multiply(contraction, scale.getFactor().convertToDouble());
      continue;
    }
    if (!llvm::is_contained(dimensionsOf(gate.op), axis)) {
      ofRows.push_back(gate);
      continue;
    }
    mlir::OpOperand &values = contraction->getOpOperand(terms.areFirst ? 1 : 0);
    values.set(gated(builder, named(gate.op->getLoc(), values.get(), "_gated"), gate.op,
                     values.get(), factorOf(gate.op, gate.probabilities),
                     *terms.placesIn(terms.values, dimensionsOf(gate.op))));
  }
  if (!ofRows.empty()) moveBehind(contraction, terms, ofRows);
  for (const Gate &gate : llvm::reverse(gates)) {
    gate.op->getResult(0).replaceAllUsesWith(
        gate.op->getOperand(gate.op->getOperand(0) == gate.probabilities ? 0 : 1));
    gate.op->erase();
  }
  return int(gates.size());
}

int commuteGates(GraphOp graph, const std::vector<std::string> &kept) {
  int commuted = 0;
  for (SoftmaxOp softmax : graph.getBody().front().getOps<SoftmaxOp>())
    if (forwardRejection(softmax).empty() && !Path(softmax).changesAny(kept))
      commuted += commuteGates(softmax);
  return commuted;
}

}  // namespace weft
