// What is left of a decomposed softmax once its scaling has commuted past the contraction is a fold
// over tiles of the contracted axis. Its state is (maximum m, sum d, output o), and a tile is
// (m', d', partials). Two states make one:
//
//   m = max(m1, m2),  d = exp(m1 - m) d1 + exp(m2 - m) d2,  o = exp(m1 - m) o1 + exp(m2 - m) o2
//
// which is associative, so that the tiles may be of any size and taken in any order; o / d is the
// result. No tile needs the scores of another one. What a dropout keeps of the exponentials is in
// o alone: d is the sum of all of them.
#include "ir/Einsum.h"
#include "ir/LayerMarks.h"
#include "passes/Describe.h"
#include "passes/Rewrites.h"

#include <fmt/format.h>

#include <map>

namespace weft {
namespace {

/// The ops of one attention between scores and result.
struct Chain {
  LocalSoftmaxOp local;
  ReduceSubvectorsOp reduction;
  SubvectorContractOp partials;
  ContractOp sum;
  std::string spec;  ///< of the fold: scores, values -> result
};

/// The chain that ends in a contraction; nothing where the ops before it are others, or where
/// something else reads what is between them.
std::optional<Chain> chainTo(ContractOp sum) {
  Chain chain{.local = {}, .reduction = {}, .partials = {}, .sum = sum, .spec = {}};
  if (sum.getPrecision()) return std::nullopt;
  Einsum einsum = parseEinsum(sum.getSpec().str());
  mlir::Value factors = sum.getA(), partials = sum.getB();
  if (!partials.getDefiningOp<SubvectorContractOp>()) {
    std::swap(factors, partials);
    std::swap(einsum.a, einsum.b);
  }
  chain.partials = partials.getDefiningOp<SubvectorContractOp>();
  chain.reduction = factors.getDefiningOp<ReduceSubvectorsOp>();
  if (!chain.partials || !chain.reduction) return std::nullopt;
  chain.local = chain.partials.getX().getDefiningOp<LocalSoftmaxOp>();
  if (!chain.local) return std::nullopt;
  if (chain.partials.getX() != chain.local.getExponentials() ||
      chain.reduction.getMaxima() != chain.local.getMaxima() ||
      chain.reduction.getSums() != chain.local.getSums() ||
      chain.partials.getTile() != chain.local.getTile() ||
      chain.reduction.getAxis() != chain.local.getAxis())
    return std::nullopt;
  for (mlir::Value between :
       {mlir::Value(chain.local.getExponentials()), mlir::Value(chain.local.getMaxima()),
        mlir::Value(chain.local.getSums()), factors, partials})
    if (!between.hasOneUse()) return std::nullopt;

  // The letters of the sum over sub-vectors in those of the contraction that makes the partials,
  // whose contracted axis has to be that of the softmax.
  const Einsum inner = parseEinsum(chain.partials.getSpec().str());
  const auto axis = static_cast<size_t>(chain.local.getAxis());
  const char subVector = einsum.b.back(), contracted = inner.reduced().front();
  if (einsum.reduced() != std::string(1, subVector) || inner.a[axis] != contracted)
    return std::nullopt;
  std::map<char, char> letters{{subVector, contracted}};
  for (size_t d = 0; d < inner.result.size(); ++d) letters[einsum.b[d]] = inner.result[d];
  for (size_t d = 0; d < einsum.a.size(); ++d)
    if (const auto known = letters.find(einsum.a[d]);
        known == letters.end() || known->second != inner.a[d])
      return std::nullopt;
  Einsum whole{.a = inner.a, .b = inner.b, .result = {}};
  for (char letter : einsum.result) whole.result += letters.at(letter);
  chain.spec = whole.text();
  return chain;
}

}  // namespace

OnlineSoftmaxContractOp foldSoftmax(ContractOp sum, bool withLogSums) {
  const std::optional<Chain> found = chainTo(sum);
  if (!found) return {};
  Chain chain = *found;
  BuilderOfLayer builder(sum);
  const mlir::Location location = sum.getLoc();
  const std::optional<llvm::APFloat> scale = sum.getScale();
  const std::string own = writtenName(sum.getResult());
  std::string names = scale ? "unscaled" : own;
  if (withLogSums && !own.empty()) names += fmt::format(", {}_log_sums", own);
  auto fold = OnlineSoftmaxContractOp::create(
      builder,
      names == own ? location
                   : mlir::Location(mlir::NameLoc::get(builder.getStringAttr(names), location)),
      chain.spec, chain.local.getX(), chain.partials.getV(), sum.getType(), withLogSums,
      chain.partials.dropout());
  fold.setPrecisionAttr(chain.partials.getPrecisionAttr());
  mlir::Value result = fold.getResult();
  if (scale) result = ScaleOp::create(builder, location, result, scale->convertToDouble());
  sum.getResult().replaceAllUsesWith(result);
  for (mlir::Operation *op : {sum.getOperation(), chain.partials.getOperation(),
                              chain.reduction.getOperation(), chain.local.getOperation()})
    op->erase();
  return fold;
}

int foldSoftmaxes(GraphOp graph) {
  int folded = 0;
  for (ContractOp sum : llvm::make_early_inc_range(graph.getBody().front().getOps<ContractOp>()))
    if (foldSoftmax(sum)) ++folded;
  return folded;
}

}  // namespace weft
