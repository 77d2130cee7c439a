// Stacking in the backward pass of projections that read one tensor (Table A.2 of "Data Movement Is
// All You Need"). The gradients dQ, dK and dV are concatenated into one tensor. The gradient of the
// common input is then one GEMM [Wq Wk Wv]^T [dQ dK dV] instead of three GEMMs and the sum of their
// results, and the gradients of the weights are slices of the result of one GEMM. The price: dQ, dK
// and dV must be written next to each other in memory, or copied.
#include "ir/Einsum.h"
#include "passes/Describe.h"
#include "passes/algebra/Projection.h"

#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>

namespace weft {
namespace {

/// Letters in the order in which they occur: two specs are one GEMM if this is the same for
/// both.
std::string renamed(llvm::StringRef spec) {
  std::string letters, text;
  for (const char c : spec) {
    if (!llvm::isAlpha(c)) {
      text += c;
      continue;
    }
    if (letters.find(c) == std::string::npos) letters += c;
    text += static_cast<char>('a' + letters.find(c));
  }
  return text;
}

bool isSameGemm(ContractOp a, ContractOp b) {
  return renamed(a.getSpec()) == renamed(b.getSpec()) && a.getScaleAttr() == b.getScaleAttr() &&
         a.getPrecisionAttr() == b.getPrecisionAttr() &&
         mlir::getElementTypeOrSelf(a.getType()) == mlir::getElementTypeOrSelf(b.getType());
}

std::string termOf(ContractOp op, mlir::Value operand) {
  const Einsum einsum = parseEinsum(op.getSpec());
  return op.getA() == operand ? einsum.a : einsum.b;
}

/// The contraction of two values other than `except`; null if there is none or more than one.
ContractOp contractionOf(mlir::Value a, mlir::Value b, mlir::Operation *except) {
  ContractOp found;
  for (mlir::Operation *user : a.getUsers())
    if (auto op = mlir::dyn_cast<ContractOp>(user);
        op && op != except && op.getA() != op.getB() && llvm::is_contained(op->getOperands(), b)) {
      if (found && found != op) return {};
      found = op;
    }
  return found;
}

/// The gradient of a projection's result, found through the two products that it is an operand of.
std::optional<GradientProjection> gradientsOf(ContractOp forward, mlir::Value data) {
  const mlir::Value weight = forward.getA() == data ? forward.getB() : forward.getA();
  for (mlir::Operation *user : weight.getUsers()) {
    auto input = mlir::dyn_cast<ContractOp>(user);
    if (!input || input == forward) continue;
    const mlir::Value gradient = input.getA() == weight ? input.getB() : input.getA();
    if (gradient == data || !gradient.getDefiningOp()) continue;
    if (ContractOp ofWeight = contractionOf(gradient, data, input))
      return GradientProjection{
          .weight = weight, .gradient = gradient, .ofInput = input, .ofWeight = ofWeight};
  }
  return std::nullopt;
}

/// The sums that a value goes into, as long as it goes nowhere else.
std::vector<mlir::Operation *> sumsOf(mlir::Value value) {
  std::vector<mlir::Operation *> sums;
  while (value.hasOneUse() && mlir::isa<AddOp>(*value.user_begin())) {
    sums.push_back(*value.user_begin());
    value = sums.back()->getResult(0);
  }
  return sums;
}

/// Whether all are terms of one sum, so that they may be added up before.
bool areTermsOfOneSum(const GradientGroup &group) {
  std::vector<mlir::Operation *> common =
      sumsOf(ContractOp(group.members.front().ofInput).getResult());
  for (const GradientProjection &member : group.members) {
    const std::vector<mlir::Operation *> sums = sumsOf(ContractOp(member.ofInput).getResult());
    llvm::erase_if(common, [&](mlir::Operation *sum) { return !llvm::is_contained(sums, sum); });
  }
  return !common.empty();
}

mlir::Operation *lastOf(llvm::ArrayRef<mlir::Operation *> ops) {
  return *std::max_element(ops.begin(), ops.end(), [](mlir::Operation *a, mlir::Operation *b) {
    return a->isBeforeInBlock(b);
  });
}

class GradientStacker {
public:
  explicit GradientStacker(const GradientGroup &group)
      : group(group), builder(group.members.front().ofInput) {}

  void stackInputs(const MemberRange &range) {
    ContractOp gemm = stackedGemm(range, group.members[range.first].ofInput, true);
    mlir::Operation *carrier = lastOf(ops(range, [](const GradientProjection &member) {
      return ContractOp(member.ofInput).getOperation();
    }));
    for (size_t index = range.first; index <= range.last; ++index) {
      ContractOp old = group.members[index].ofInput;
      if (old.getOperation() == carrier) continue;
      mlir::Operation *sum = *old.getResult().user_begin();
      const mlir::Value other = sum->getOperand(sum->getOperand(0) == old.getResult() ? 1 : 0);
      if (isGraphResult(sum->getResult(0)) && other.getDefiningOp())
        other.getDefiningOp()->setLoc(sum->getLoc());  // callers know a result by its name
      sum->getResult(0).replaceAllUsesWith(other);
      sum->erase();
    }
    gemm->setLoc(isGraphResult(carrier->getResult(0))
                     ? carrier->getLoc()
                     : named("", range, [](const GradientProjection &member) {
                         return ContractOp(member.ofInput).getResult();
                       }));
    gemm.getResult().setType(mlir::cast<mlir::RankedTensorType>(carrier->getResult(0).getType()));
    carrier->getResult(0).replaceAllUsesWith(gemm.getResult());
    for (size_t index = range.first; index <= range.last; ++index)
      ContractOp(group.members[index].ofInput).erase();
  }

  void stackWeights(const MemberRange &range) {
    const GradientProjection &first = group.members[range.first];
    const std::string term = termOf(first.ofWeight, first.gradient),
                      result = parseEinsum(ContractOp(first.ofWeight).getSpec()).result;
    const auto axis = static_cast<int64_t>(result.find(term[group.gradientDimension]));
    ContractOp gemm = stackedGemm(range, first.ofWeight, false);
    const int64_t whole = extents(gradients(range).getType())[group.gradientDimension];
    gemm.getResult().setType(withExtent(gemm.getType(), axis, whole));
    gemm->setLoc(named("", range, [](const GradientProjection &member) {
      return ContractOp(member.ofWeight).getResult();
    }));
    int64_t start = 0;
    for (size_t index = range.first; index <= range.last; ++index) {
      const GradientProjection &member = group.members[index];
      ContractOp old = member.ofWeight;
      const int64_t size = extents(member.gradient.getType())[group.gradientDimension];
      auto part = SliceOp::create(builder, old.getLoc(), gemm.getResult(), axis, start, size);
      part.getResult().setType(mlir::cast<mlir::RankedTensorType>(old.getType()));
      old.getResult().replaceAllUsesWith(part.getResult());
      start += size;
    }
    // Only now: the builder stands before whatever follows the stacked gemm, which may be one of
    // them.
    for (size_t index = range.first; index <= range.last; ++index)
      ContractOp(group.members[index].ofWeight).erase();
  }

private:
  static bool isGraphResult(mlir::Value value) {
    return llvm::any_of(value.getUsers(), [](mlir::Operation *user) {
      return user->hasTrait<mlir::OpTrait::IsTerminator>();
    });
  }

  template <typename Pick>
  std::vector<mlir::Operation *> ops(const MemberRange &range, Pick pick) const {
    std::vector<mlir::Operation *> result;
    for (size_t index = range.first; index <= range.last; ++index)
      result.push_back(pick(group.members[index]));
    return result;
  }

  template <typename Pick>
  mlir::Location named(const std::string &prefix, const MemberRange &range, Pick pick) {
    std::string text = prefix;
    for (size_t index = range.first; index <= range.last; ++index) {
      const std::string name = writtenName(pick(group.members[index]));
      if (name.empty()) return builder.getUnknownLoc();
      text += (text.empty() ? "" : "_") + name;
    }
    return mlir::NameLoc::get(builder.getStringAttr(text));
  }

  /// The gradients one after the other; made once for a range, behind the last of them.
  mlir::Value gradients(const MemberRange &range) {
    mlir::Value &stacked = stackedGradients[{range.first, range.last}];
    if (stacked) return stacked;
    std::vector<mlir::Value> parts;
    for (size_t index = range.first; index <= range.last; ++index)
      parts.push_back(group.members[index].gradient);
    builder.setInsertionPointAfter(lastOf(ops(
        range, [](const GradientProjection &member) { return member.gradient.getDefiningOp(); })));
    stacked = ConcatOp::create(
        builder, named("", range, [](const GradientProjection &member) { return member.gradient; }),
        parts, static_cast<int64_t>(group.gradientDimension));
    return stacked;
  }

  /// The first member's GEMM with stacked operands, where the gradients are there; the builder
  /// stands behind it.
  ContractOp stackedGemm(const MemberRange &range, ContractOp like, bool withWeights) {
    const GradientProjection &first = group.members[range.first];
    mlir::Value stacked = gradients(range);
    builder.setInsertionPointAfterValue(stacked);
    mlir::IRMapping mapping;
    mapping.map(first.gradient, stacked);
    if (withWeights) {
      std::vector<mlir::Value> weights;
      for (size_t index = range.first; index <= range.last; ++index)
        weights.push_back(group.members[index].weight);
      auto weight = ConcatOp::create(
          builder, named("", range, [](const GradientProjection &member) { return member.weight; }),
          weights, static_cast<int64_t>(group.weightDimension));
      mapping.map(first.weight, weight.getResult());
    }
    auto gemm = mlir::cast<ContractOp>(builder.clone(*like.getOperation(), mapping));
    builder.setInsertionPointAfter(gemm);
    return gemm;
  }

  const GradientGroup &group;
  mlir::OpBuilder builder;
  std::map<std::pair<size_t, size_t>, mlir::Value> stackedGradients;
};

}  // namespace

std::optional<GradientGroup> gradientsOf(const ProjectionGroup &group) {
  GradientGroup result;
  std::vector<Projection> projections;
  for (ContractOp forward : group.projections) {
    const std::optional<GradientProjection> member = gradientsOf(forward, group.data);
    if (!member) return std::nullopt;
    for (const GradientProjection &other :
         result.members)  // projections by one weight have one set of gradients
      if (other.ofInput == member->ofInput || other.ofWeight == member->ofWeight)
        return std::nullopt;
    result.members.push_back(*member);
    projections.push_back(projectionOf(forward, *weightOperandOf(forward)));
    if (projections.back().weightTerm.size() != projections.front().weightTerm.size())
      return std::nullopt;  // a pair of axes that would have to be merged
  }
  const std::optional<size_t> dimension = stackedDimension(projections);
  if (!dimension) return std::nullopt;
  result.weightDimension = *dimension;
  for (const GradientProjection &member : result.members) {
    const char letter = termOf(member.ofInput, member.weight)[*dimension];
    const size_t position = termOf(member.ofInput, member.gradient).find(letter);
    const Einsum ofWeight = parseEinsum(ContractOp(member.ofWeight).getSpec());
    if (&member == &result.members.front()) result.gradientDimension = position;
    const std::string term = termOf(member.ofWeight, member.gradient);
    if (position == std::string::npos || position != result.gradientDimension ||
        ofWeight.result.find(term[position]) == std::string::npos ||
        !isSameGemm(member.ofInput, result.members.front().ofInput) ||
        !isSameGemm(member.ofWeight, result.members.front().ofWeight))
      return std::nullopt;
  }
  if (!areTermsOfOneSum(result)) return std::nullopt;
  return result;
}

std::string GradientGroup::name(const MemberRange &range) const {
  std::string text;
  for (size_t index = range.first; index <= range.last; ++index)
    text += (text.empty() ? "" : "-") + writtenName(members[index].weight);
  return text;
}

void stackGradients(const GradientGroup &group, const std::optional<MemberRange> &inputs,
                    const std::optional<MemberRange> &weights) {
  GradientStacker stacker(group);
  if (inputs) stacker.stackInputs(*inputs);
  if (weights) stacker.stackWeights(*weights);
}

}  // namespace weft
