// The scaling of a decomposed softmax commutes past the contraction that reads it: every factor
// belongs to one sub-vector of the contracted axis, so that the sub-vectors are contracted each by
// itself, and the factors multiply what comes of them.
//
//   sum_k (x'[k] r'[k / T]) v[k] = sum_n r'[n] (sum of k in sub-vector n: x'[k] v[k])
#include "ir/Einsum.h"
#include "passes/Describe.h"
#include "passes/Rewrites.h"

#include <fmt/format.h>

namespace weft {
namespace {

/// Kind and name of an op that reads something: "dropout 'kept'".
std::string described(mlir::Operation *op) {
  const std::string kind = op->getName().stripDialect().str();
  const std::string name = op->getNumResults() > 0 ? writtenName(op->getResult(0)) : "";
  return name.empty() ? kind : fmt::format("{} '{}'", kind, name);
}

/// A contraction and which of its operands the probabilities are.
struct Reader {
  ContractOp contraction;
  std::vector<CastOp> casts;  ///< on the way, in order
  bool isFirst = true;
};

/// The only reader of a value, through casts.
Reader readerOf(mlir::Value probabilities) {
  Reader reader;
  mlir::Value value = probabilities;
  while (auto cast = mlir::dyn_cast<CastOp>(*value.user_begin())) {
    reader.casts.push_back(cast);
    value = cast.getResult();
  }
  reader.contraction = mlir::cast<ContractOp>(*value.user_begin());
  reader.isFirst = reader.contraction.getA() == value;
  return reader;
}

/// A letter that the einsum lacks: n, or else the first one.
char freshLetter(const Einsum &einsum) {
  const std::string used = einsum.letters();
  for (char letter : std::string("nmopqrstuvwxyzabcdefghijklNMOPQRSTUVWXYZABCDEFGHIJKL"))
    if (used.find(letter) == std::string::npos) return letter;
  return 0;
}

}  // namespace

std::string attentionRejection(mlir::Value probabilities, int64_t axis) {
  mlir::Value value = probabilities;
  for (;;) {
    if (value.use_empty()) return "nothing reads it";
    if (!value.hasOneUse()) {
      // Uses are listed from the last one to the first.
      std::vector<mlir::Operation *> readers(value.user_begin(), value.user_end());
      const auto further = std::find_if(readers.begin(), readers.end(), [](mlir::Operation *op) {
        return !mlir::isa<ContractOp>(op);
      });
      mlir::Operation *named = further == readers.end() ? readers.front() : *further;
      return mlir::isa<ReturnOp>(named) ? "the graph returns it"
                                        : described(named) + " reads it, too";
    }
    mlir::Operation *reader = *value.user_begin();
    if (mlir::isa<ReturnOp>(reader)) return "the graph returns it";
    if (auto cast = mlir::dyn_cast<CastOp>(reader)) {
      value = cast.getResult();
      continue;
    }
    auto contraction = mlir::dyn_cast<ContractOp>(reader);
    if (!contraction) return described(reader) + " reads it, which is no contraction";
    const Einsum einsum = parseEinsum(contraction.getSpec().str());
    const std::string &letters = contraction.getA() == value ? einsum.a : einsum.b;
    if (einsum.reduced() != std::string(1, letters[size_t(axis)]))
      return described(reader) + " does not sum over the softmax's axis alone";
    if (contraction.getPrecision())
      return described(reader) + " asks for tf32, which a fold does not take";
    if (freshLetter(einsum) == 0) return described(reader) + " leaves no letter for sub-vectors";
    return "";
  }
}

ContractOp commuteScaling(GlobalScalingOp scaling) {
  const Reader reader = readerOf(scaling.getResult());
  ContractOp contraction = reader.contraction;
  const auto axis = static_cast<size_t>(scaling.getAxis());
  Einsum einsum = parseEinsum(contraction.getSpec().str());
  mlir::Value v = contraction.getB();
  if (!reader.isFirst) {
    std::swap(einsum.a, einsum.b);
    v = contraction.getA();
  }
  mlir::OpBuilder builder(contraction);
  const mlir::Location location = contraction.getLoc();
  auto partials = SubvectorContractOp::create(
      builder, mlir::NameLoc::get(builder.getStringAttr("partials"), location), einsum.text(),
      scaling.getX(), v, static_cast<int64_t>(scaling.getTile()));
  const char subVector = freshLetter(einsum);
  Einsum sum{.a = einsum.a, .b = einsum.result + subVector, .result = einsum.result};
  sum.a[axis] = subVector;
  const mlir::Type type = contraction.getType();
  auto result = ContractOp::create(
      builder, location, sum.text(), scaling.getFactors(), partials.getPartials(),
      contraction.getScale() ? std::optional(contraction.getScale()->convertToDouble())
                             : std::nullopt,
      axisNames(type), toDType(type));
  contraction.getResult().replaceAllUsesWith(result.getResult());
  contraction.erase();
  for (CastOp cast : llvm::reverse(reader.casts)) cast.erase();
  scaling.erase();
  return result;
}

int commuteScalings(GraphOp graph) {
  int commuted = 0;
  for (GlobalScalingOp scaling :
       llvm::make_early_inc_range(graph.getBody().front().getOps<GlobalScalingOp>())) {
    if (!attentionRejection(scaling.getResult(), static_cast<int64_t>(scaling.getAxis())).empty())
      continue;
    commuteScaling(scaling);
    ++commuted;
  }
  return commuted;
}

}  // namespace weft
