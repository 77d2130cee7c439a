// Stacking in the backward pass of projections that read one tensor (Table A.2 of "Data Movement Is
// All You Need"). The gradients dQ, dK and dV are concatenated into one tensor. The gradient of the
// common input is then one GEMM [Wq Wk Wv]^T [dQ dK dV] instead of three GEMMs and the sum of their
// results, and the gradients of the weights are slices of the result of one GEMM. The price: dQ, dK
// and dV must be written next to each other in memory, or copied.
#include "ir/Einsum.h"
#include "ir/LayerMarks.h"
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

/// The spec with both letters of a pair as the first; empty if they are not neighbours wherever
/// one of them stands.
std::string mergedSpec(const std::string &spec, const std::string &pair) {
  std::string merged;
  for (size_t at = 0; at < spec.size(); ++at) {
    merged += spec[at];
    if (spec[at] == pair[1]) return "";
    if (spec[at] != pair[0]) continue;
    if (at + 1 == spec.size() || spec[at + 1] != pair[1]) return "";
    ++at;
  }
  return merged;
}

std::string termOf(ContractOp op, mlir::Value operand) {
  const Einsum einsum = parseEinsum(op.getSpec());
  return op.getA() == operand ? einsum.a : einsum.b;
}

/// One of a member's two products, its pair of axes merged; empty if it cannot be.
std::string specOf(const GradientProjection &member, ContractOp op) {
  if (!member.merged) return op.getSpec().str();
  return mergedSpec(op.getSpec().str(),
                    termOf(op, member.gradient).substr(member.merged->second, 2));
}
/// Of the same product, the operand's letters.
std::string termOf(const GradientProjection &member, ContractOp op, mlir::Value operand) {
  const Einsum einsum = parseEinsum(specOf(member, op));
  return op.getA() == operand ? einsum.a : einsum.b;
}

bool isSameGemm(const GradientProjection &one, ContractOp a, const GradientProjection &other,
                ContractOp b) {
  const std::string spec = specOf(one, a);
  return !spec.empty() && renamed(spec) == renamed(specOf(other, b)) &&
         a.getScaleAttr() == b.getScaleAttr() && a.getPrecisionAttr() == b.getPrecisionAttr() &&
         mlir::getElementTypeOrSelf(a.getType()) == mlir::getElementTypeOrSelf(b.getType());
}

/// Of the gradient, a pair of axes merged.
std::vector<int64_t> gradientExtents(const GradientProjection &member) {
  std::vector<int64_t> result = extents(member.gradient.getType());
  if (!member.merged) return result;
  const size_t first = member.merged->second;
  result[first] *= result[first + 1];
  result.erase(result.begin() + ptrdiff_t(first) + 1);
  return result;
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
    ContractOp gemm = stackedGemm(range, simplest().ofInput, true);
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
    const GradientProjection &like = simplest();
    const std::string term = termOf(like.ofWeight, like.gradient),
                      result = parseEinsum(ContractOp(like.ofWeight).getSpec()).result;
    const auto axis = static_cast<int64_t>(result.find(term[group.gradientDimension]));
    ContractOp gemm = stackedGemm(range, like.ofWeight, false);
    const int64_t whole = extents(gradients(range).getType())[group.gradientDimension];
    gemm.getResult().setType(withExtent(gemm.getType(), axis, whole));
    gemm->setLoc(named("", range, [](const GradientProjection &member) {
      return ContractOp(member.ofWeight).getResult();
    }));
    int64_t start = 0;
    for (size_t index = range.first; index <= range.last; ++index) {
      const GradientProjection &member = group.members[index];
      ContractOp old = member.ofWeight;
      const int64_t size = gradientExtents(member)[group.gradientDimension];
      mlir::Value part =
          SliceOp::create(builder, old.getLoc(), gemm.getResult(), axis, start, size);
      if (member.merged) part = split(part, member);
      part.setType(mlir::cast<mlir::RankedTensorType>(old.getType()));
      old.getResult().replaceAllUsesWith(part);
      start += size;
    }
    // Only now: the builder stands before whatever follows the stacked gemm, which may be one of
    // them.
    for (size_t index = range.first; index <= range.last; ++index)
      ContractOp(group.members[index].ofWeight).erase();
  }

  /// Rotary embeddings whose gradients were turned back behind a merge: what still reads them as
  /// they were reads that result, its axes as two again.
  void rotateOnce() {
    for (const auto &[index, merged] : mergedGradients) {
      mlir::Value old = group.members[index].gradient;
      const auto comesBefore = [merged = merged](mlir::Operation *user) {
        return user->isBeforeInBlock(merged.getDefiningOp());
      };
      // Readers before the stack keep what was turned before it.
      if (!merged.getDefiningOp<RotaryOp>() || llvm::any_of(old.getUsers(), comesBefore)) continue;
      if (!old.use_empty()) {
        builder.setInsertionPointAfterValue(merged);
        const size_t pair = group.members[index].merged->second;
        const std::vector<int64_t> sizes = extents(old.getType());
        const std::vector<std::string> names = axisNames(old.getType());
        mlir::Value split =
            SplitAxisOp::create(builder, old.getLoc(), merged, int64_t(pair),
                                llvm::ArrayRef<int64_t>{sizes[pair], sizes[pair + 1]},
                                llvm::ArrayRef<std::string>{names[pair], names[pair + 1]});
        old.replaceAllUsesWith(split);
      }
      old.getDefiningOp()->erase();
    }
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

  /// A member whose axes are those of the stacked GEMMs; one of a group at least has no pair.
  const GradientProjection &simplest() const {
    return *llvm::find_if(group.members,
                          [](const GradientProjection &member) { return !member.merged; });
  }

  /// A tensor with the pair of axes from `position` on as one.
  mlir::Value merge(mlir::Value tensor, size_t position) {
    const std::string name = writtenName(tensor);
    const mlir::Location location =
        name.empty() ? builder.getUnknownLoc()
                     : mlir::NameLoc::get(builder.getStringAttr(name + "_merged"));
    return MergeAxesOp::create(builder, location, tensor, static_cast<int64_t>(position), 2,
                               axisNames(tensor.getType())[position]);
  }

  /// A member's gradient with its pair of axes as one. That of a rotary embedding is turned back
  /// behind the merge: what a loop writes may lie in the stack, what a merge gives may not.
  mlir::Value mergedGradient(size_t index) {
    mlir::Value &merged = mergedGradients[index];
    if (merged) return merged;
    const GradientProjection &member = group.members[index];
    const auto pair = int64_t(member.merged->second);
    auto rotary = member.gradient.getDefiningOp<RotaryOp>();
    const auto isOfPair = [&](int64_t dimension) {
      return dimension == pair || dimension == pair + 1;
    };
    if (!rotary || rotary.getStarts() || rotary.getAmong() ||
        isOfPair(int64_t(rotary.getPosition())) || isOfPair(int64_t(rotary.getDim())))
      return merged = merge(member.gradient, size_t(pair));
    const auto behind = [&](uint64_t dimension) {
      return dimension > uint64_t(pair) ? dimension - 1 : dimension;
    };
    mlir::Value whole = merge(rotary.getX(), size_t(pair));
    auto turned = mlir::cast<RotaryOp>(builder.clone(*rotary));
    const std::string name = writtenName(member.gradient);
    if (!name.empty()) turned->setLoc(mlir::NameLoc::get(builder.getStringAttr(name + "_merged")));
    turned->setOperand(0, whole);
    turned.setPosition(behind(rotary.getPosition()));
    turned.setDim(behind(rotary.getDim()));
    turned.getResult().setType(mlir::cast<mlir::RankedTensorType>(whole.getType()));
    return merged = turned.getResult();
  }

  /// The part of the weights' gradient that is the member's, its pair of axes as two.
  mlir::Value split(mlir::Value part, const GradientProjection &member) {
    ContractOp old = member.ofWeight;
    const std::string pair = termOf(old, member.gradient).substr(member.merged->second, 2);
    const size_t position = parseEinsum(old.getSpec()).result.find(pair);
    const std::string name = writtenName(old.getResult());
    if (!name.empty()) part.setLoc(mlir::NameLoc::get(builder.getStringAttr(name + "_merged")));
    const std::vector<int64_t> sizes = extents(old.getType());
    const std::vector<std::string> names = axisNames(old.getType());
    return SplitAxisOp::create(builder, old.getLoc(), part, static_cast<int64_t>(position),
                               llvm::ArrayRef<int64_t>{sizes[position], sizes[position + 1]},
                               llvm::ArrayRef<std::string>{names[position], names[position + 1]});
  }

  /// The gradients one after the other; made once for a range, behind the last of them.
  mlir::Value gradients(const MemberRange &range) {
    mlir::Value &stacked = stackedGradients[{range.first, range.last}];
    if (stacked) return stacked;
    builder.setInsertionPointAfter(lastOf(ops(
        range, [](const GradientProjection &member) { return member.gradient.getDefiningOp(); })));
    std::vector<mlir::Value> parts;
    for (size_t index = range.first; index <= range.last; ++index) {
      const GradientProjection &member = group.members[index];
      parts.push_back(member.merged ? mergedGradient(index) : member.gradient);
    }
    stacked = ConcatOp::create(
        builder, named("", range, [](const GradientProjection &member) { return member.gradient; }),
        parts, static_cast<int64_t>(group.gradientDimension));
    return stacked;
  }

  /// The simplest member's GEMM with stacked operands, where the gradients are there; the builder
  /// stands behind it.
  ContractOp stackedGemm(const MemberRange &range, ContractOp like, bool withWeights) {
    mlir::Value stacked = gradients(range);
    builder.setInsertionPointAfterValue(stacked);
    mlir::IRMapping mapping;
    mapping.map(simplest().gradient, stacked);
    if (withWeights) {
      std::vector<mlir::Value> weights;
      for (size_t index = range.first; index <= range.last; ++index) {
        const GradientProjection &member = group.members[index];
        weights.push_back(member.merged ? merge(member.weight, member.merged->first)
                                        : member.weight);
      }
      auto weight = ConcatOp::create(
          builder, named("", range, [](const GradientProjection &member) { return member.weight; }),
          weights, static_cast<int64_t>(group.weightDimension));
      mapping.map(simplest().weight, weight.getResult());
    }
    auto gemm = mlir::cast<ContractOp>(builder.clone(*like.getOperation(), mapping));
    builder.setInsertionPointAfter(gemm);
    return gemm;
  }

  const GradientGroup &group;
  BuilderOfLayer builder;
  std::map<std::pair<size_t, size_t>, mlir::Value> stackedGradients;
  std::map<size_t, mlir::Value> mergedGradients;  ///< by member
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
  }
  const std::optional<std::vector<Projection>> same = asOneGemm(projections);
  const std::optional<size_t> dimension = same ? stackedDimension(*same) : std::nullopt;
  if (!dimension) return std::nullopt;
  result.weightDimension = *dimension;
  for (size_t index = 0; index < result.members.size(); ++index)
    if (const std::optional<MergedPair> &pair = (*same)[index].merged)
      result.members[index].merged = {pair->weight, pair->result};
  const GradientProjection &first = result.members.front();
  for (const GradientProjection &member : result.members) {
    if (!isSameGemm(member, member.ofInput, first, first.ofInput) ||
        !isSameGemm(member, member.ofWeight, first, first.ofWeight))
      return std::nullopt;
    const char letter = termOf(member, member.ofInput, member.weight)[*dimension];
    const size_t position = termOf(member, member.ofInput, member.gradient).find(letter);
    if (&member == &first) result.gradientDimension = position;
    const std::string term = termOf(member, member.ofWeight, member.gradient);
    if (position == std::string::npos || position != result.gradientDimension ||
        parseEinsum(specOf(member, member.ofWeight)).result.find(term[position]) ==
            std::string::npos)
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
                    const std::optional<MemberRange> &weights,
                    const std::function<void()> &afterInputs) {
  GradientStacker stacker(group);
  if (inputs) {
    stacker.stackInputs(*inputs);
    if (afterInputs) afterInputs();
  }
  if (weights) stacker.stackWeights(*weights);
  stacker.rotateOnce();
}

}  // namespace weft
