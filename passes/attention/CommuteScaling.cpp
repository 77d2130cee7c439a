// The scaling of a decomposed softmax commutes past the contraction that reads it: every factor
// belongs to one sub-vector of the contracted axis, so that the sub-vectors are contracted each by
// itself, and the factors multiply what comes of them.
//
//   sum_k (x'[k] r'[k / T]) v[k] = sum_n r'[n] (sum of k in sub-vector n: x'[k] v[k])
//
// A dropout between the two is a factor of every element: it goes to the exponentials, which lie at
// the same coordinates and so draw the same bits. Precision tf32 goes to the sums of sub-vectors,
// which have the products; their factors are multiplied in full fp32.
#include "ir/Einsum.h"
#include "ir/LayerMarks.h"
#include "passes/Describe.h"
#include "passes/Rewrites.h"
#include "passes/attention/Gates.h"

#include <fmt/format.h>

namespace weft {
namespace {

/// A contraction and which of its operands the probabilities are.
struct Reader {
  ContractOp contraction;
  std::vector<mlir::Operation *> between;  ///< casts, and a dropout at most; in order
  std::optional<Dropout> dropout;
  bool isFirst = true;
};

/// The only reader of a value, through casts and a dropout.
Reader readerOf(mlir::Value probabilities) {
  Reader reader;
  mlir::Value value = probabilities;
  while (mlir::isa<CastOp, DropoutOp>(*value.user_begin())) {
    mlir::Operation *op = *value.user_begin();
    if (auto dropout = mlir::dyn_cast<DropoutOp>(op))
      reader.dropout = {.p = dropout.getP().convertToDouble(),
                        .stream = static_cast<int64_t>(dropout.getStream())};
    reader.between.push_back(op);
    value = op->getResult(0);
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

std::string attentionRejection(mlir::Value probabilities, int64_t axis, Gates gates,
                               llvm::function_ref<bool(mlir::Operation *)> counts) {
  mlir::Value value = probabilities;
  std::string what = "it";
  bool isDropped = false;
  std::vector<mlir::Operation *> between;
  for (;;) {
    // Uses are listed from the last one to the first.
    std::vector<mlir::Operation *> readers;
    llvm::copy_if(value.getUsers(), std::back_inserter(readers), counts);
    if (readers.empty()) return "nothing reads " + what;
    if (readers.size() > 1) {
      const auto further = std::find_if(readers.begin(), readers.end(), [](mlir::Operation *op) {
        return !mlir::isa<ContractOp, DropoutOp>(op);
      });
      mlir::Operation *named = further == readers.end() ? readers.front() : *further;
      return mlir::isa<ReturnOp>(named) ? "the graph returns " + what
                                        : fmt::format("{} reads {}, too", described(named), what);
    }
    mlir::Operation *reader = readers.front();
    if (mlir::isa<ReturnOp>(reader)) return "the graph returns " + what;
    if (auto cast = mlir::dyn_cast<CastOp>(reader)) {
      value = cast.getResult();
      continue;
    }
    if (auto dropout = mlir::dyn_cast<DropoutOp>(reader)) {
      if (isDropped)
        return fmt::format("{} reads {}, which is dropped already", described(reader), what);
      isDropped = true;
      value = dropout.getResult();
      const std::string name = writtenName(value);
      what = name.empty() ? "what dropout keeps of it" : fmt::format("'{}'", name);
      continue;
    }
    if (isGateOf(reader, value)) {
      between.push_back(reader);
      value = reader->getResult(0);
      const std::string name = writtenName(value);
      what = name.empty() ? "its product" : fmt::format("'{}'", name);
      continue;
    }
    auto contraction = mlir::dyn_cast<ContractOp>(reader);
    if (!contraction)
      return fmt::format("{} reads {}, which is no contraction", described(reader), what);
    const Einsum einsum = parseEinsum(contraction.getSpec().str());
    const std::string &letters = contraction.getA() == value ? einsum.a : einsum.b;
    if (einsum.reduced() != std::string(1, letters[size_t(axis)]))
      return described(reader) + " does not sum over the softmax's axis alone";
    if (freshLetter(einsum) == 0) return described(reader) + " leaves no letter for sub-vectors";
    for (mlir::Operation *gate : between)
      if (std::string rejection = gateRejection(gate, axis, contraction, value); !rejection.empty())
        return rejection;
    if (gates == Gates::stay && !between.empty())
      return described(between.front()) +
             " multiplies it, and gates of a graph with a backward pass stay: commute-gates runs "
             "before differentiate, and moves none that --recompute names";
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
  BuilderOfLayer builder(contraction);
  const mlir::Location location = contraction.getLoc();
  auto partials = SubvectorContractOp::create(
      builder, mlir::NameLoc::get(builder.getStringAttr("partials"), location), einsum.text(),
      scaling.getX(), v, static_cast<int64_t>(scaling.getTile()), reader.dropout);
  partials.setPrecisionAttr(contraction.getPrecisionAttr());
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
  for (mlir::Operation *op : llvm::reverse(reader.between)) op->erase();
  scaling.erase();
  return result;
}

int commuteScalings(GraphOp graph) {
  int commuted = 0;
  for (GlobalScalingOp scaling :
       llvm::make_early_inc_range(graph.getBody().front().getOps<GlobalScalingOp>())) {
    if (!attentionRejection(scaling.getResult(), static_cast<int64_t>(scaling.getAxis()),
                            Gates::stay)
             .empty())
      continue;
    commuteScaling(scaling);
    ++commuted;
  }
  return commuted;
}

}  // namespace weft
