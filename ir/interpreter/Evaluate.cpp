// The table from op class to numeric routine. Element-wise ops with a scalar meaning need no entry:
// their op carries it.
#include "ir/interpreter/Evaluate.h"

#include "ir/Einsum.h"
#include "ir/Weft.h"
#include "ir/interpreter/Contraction.h"
#include "ir/interpreter/CrossEntropy.h"
#include "ir/interpreter/Dropout.h"
#include "ir/interpreter/Masks.h"
#include "ir/interpreter/Movement.h"
#include "ir/interpreter/Normalization.h"
#include "ir/interpreter/NormalizationGradients.h"
#include "ir/interpreter/OnlineSoftmax.h"
#include "ir/interpreter/Ragged.h"
#include "ir/interpreter/Rotary.h"
#include "ir/interpreter/ScoreBiases.h"
#include "kernel/CoordinateExpressions.h"
#include "kernel/Error.h"
#include "kernel/ReduceKind.h"

#include "llvm/ADT/TypeSwitch.h"

namespace weft::reference {
namespace {

using Results = std::vector<TensorValue>;

/// std::vector from an initializer list would copy the tensors.
template <typename... Tensors>
Results results(Tensors... tensors) {
  Results all;
  (all.push_back(std::move(tensors)), ...);
  return all;
}

/// One evaluation in one precision.
template <typename Real>
struct Evaluator {
  mlir::Operation *op;
  Operands operands;
  const InterpreterOptions &options;

  const TensorValue &operand(size_t n) const { return *operands[n]; }

  Results operator()(ContractOp contraction) const {
    const Einsum einsum = parseEinsum(contraction.getSpec().str());
    const double scale = contraction.getScale() ? contraction.getScale()->convertToDouble() : 1.0;
    if (!contraction.getOffsets())
      return results(
          contract<Real>(einsum.a, einsum.b, einsum.result, operand(0), operand(1), scale));
    const char tokens = einsum.reduced().front();
    return results(contract<Real>(
        einsum.a, einsum.b, einsum.result,
        maskTokens(operand(0), static_cast<int64_t>(einsum.a.find(tokens)), operand(2), 0),
        maskTokens(operand(1), static_cast<int64_t>(einsum.b.find(tokens)), operand(2), 0), scale));
  }

  Results operator()(SoftmaxOp softmaxOp) const {
    return results(softmax<Real>(operand(0), softmaxOp.getAxis()));
  }
  Results operator()(LayerNormOp norm) const {
    Normalized all = layerNorm<Real>(operand(0), operand(1), norm.getBeta() ? &operand(2) : nullptr,
                                     norm.getAxis(), norm.getEpsilon().convertToDouble());
    if (op->getNumResults() == 1) return results(std::move(all.y));
    return results(std::move(all.y), std::move(all.mean), std::move(all.rstd));
  }
  Results operator()(RmsNormOp norm) const {
    Normalized all =
        rmsNorm<Real>(operand(0), operand(1), norm.getAxis(), norm.getEpsilon().convertToDouble());
    if (op->getNumResults() == 1) return results(std::move(all.y));
    return results(std::move(all.y), std::move(all.rstd));
  }
  Results operator()(ReduceOp reduction) const {
    const Reduction kind = reduceKindNamed(std::string_view(reduction.getKind())) == ReduceKind::sum
                               ? Reduction::sum
                               : Reduction::maximum;
    return results(reduce<Real>(operand(0), kind, reduction.getAxes()));
  }
  Results operator()(LocalSoftmaxOp local) const {
    LocalSoftmax all = localSoftmax<Real>(operand(0), local.getAxis(), local.getTile());
    return results(std::move(all.exponentials), std::move(all.maximum), std::move(all.sum));
  }
  Results operator()(ReduceSubvectorsOp reduction) const {
    return results(reduceSubvectors<Real>(operand(0), operand(1), reduction.getAxis()));
  }
  Results operator()(GlobalScalingOp scaling) const {
    return results(
        globalScaling<Real>(operand(0), operand(1), scaling.getAxis(), scaling.getTile()));
  }

  Results operator()(SubvectorContractOp contraction) const {
    const Einsum einsum = parseEinsum(contraction.getSpec().str());
    return results(subvectorContract<Real>(einsum.a, einsum.b, einsum.result, operand(0),
                                           operand(1), int64_t(contraction.getTile()),
                                           droppingOf(contraction.dropout())));
  }
  Results operator()(OnlineSoftmaxContractOp contraction) const {
    const Einsum einsum = parseEinsum(contraction.getSpec().str());
    OnlineSoftmax all = onlineSoftmaxContract<Real>(einsum.a, einsum.b, einsum.result, operand(0),
                                                    operand(1), droppingOf(contraction.dropout()));
    if (op->getNumResults() == 1) return results(std::move(all.result));
    return results(std::move(all.result), std::move(all.logSums));
  }

  Results operator()(CrossEntropyOp loss) const {
    CrossEntropy all = crossEntropy<Real>(operand(0), operand(1), loss.getAxis());
    return results(std::move(all.losses), std::move(all.logSums));
  }
  Results operator()(CrossEntropyDxOp gradient) const {
    return results(
        crossEntropyDx<Real>(operand(0), operand(1), operand(2), operand(3), gradient.getAxis()));
  }

  Results operator()(SoftmaxDxOp gradient) const {
    return results(softmaxDx<Real>(operand(0), operand(1), gradient.getAxis()));
  }
  Results operator()(LayerNormDxOp gradient) const {
    return results(layerNormDx<Real>(operand(0), operand(1), operand(2), operand(3), operand(4),
                                     gradient.getAxis()));
  }
  Results operator()(LayerNormDwOp gradient) const {
    const int64_t axis = normalizedAxis(gradient.getAxes());
    TensorValue gamma = gammaGradient<Real>(operand(0), operand(1), &operand(2), operand(3), axis);
    if (!gradient.getDbeta()) return results(std::move(gamma));
    return results(std::move(gamma), reduce<Real>(operand(0), Reduction::sum, gradient.getAxes()));
  }
  Results operator()(RmsNormDxOp gradient) const {
    return results(
        rmsNormDx<Real>(operand(0), operand(1), operand(2), operand(3), gradient.getAxis()));
  }
  Results operator()(RmsNormDwOp gradient) const {
    return results(gammaGradient<Real>(operand(0), operand(1), nullptr, operand(2),
                                       normalizedAxis(gradient.getAxes())));
  }
  Results operator()(ScatterAddOp gradient) const {
    return results(
        scatterAdd<Real>(operand(0), operand(1), extents(gradient.getResult().getType())));
  }

  Results operator()(TransposeOp movement) const {
    return results(transpose(operand(0), movement.getPermutation()));
  }
  Results operator()(SliceOp movement) const {
    return results(slice(operand(0), movement.getAxis(), movement.getStart(), movement.getSize()));
  }
  Results operator()(ConcatOp movement) const {
    return results(concat(operands, movement.getAxis()));
  }
  Results operator()(PadOp movement) const {
    return results(pad(operand(0), movement.getAxis(), movement.getStart(), movement.getSize()));
  }
  Results operator()(BroadcastOp movement) const {
    return results(
        broadcast(operand(0), extents(movement.getResult().getType()), movement.getInto()));
  }
  Results operator()(SplitAxisOp) const { return reshaped(); }
  Results operator()(MergeAxesOp) const { return reshaped(); }
  Results operator()(IdentityOp) const { return reshaped(); }
  Results operator()(GatherOp op) const {
    const DType type = *toDType(op.getTable().getType());
    const bool isInteger = type == DType::i32 || type == DType::i1;
    return results(
        gather(operand(0), operand(1), isInteger ? 0 : std::numeric_limits<double>::quiet_NaN()));
  }

  Results operator()(TileBoundsOp) const { return results(tileBounds(operand(0))); }
  Results operator()(OffsetsOp sums) const { return results(offsets(operand(0), sums.getBound())); }
  Results operator()(LengthsOp) const { return results(lengths(operand(0))); }
  Results operator()(PackOp packing) const {
    const llvm::ArrayRef<int64_t> axes = packing.getAxes();
    return results(
        pack(operand(0), operand(1), axes[0], axes[1], packing.getUnread() ? std::nan("") : 0));
  }
  Results operator()(UnpackOp unpacking) const {
    const llvm::ArrayRef<int64_t> into = unpacking.getInto();
    return results(unpack(operand(0), operand(1), unpacking.getAxis(), into[0], into[1],
                          extents(unpacking.getResult().getType()),
                          unpacking.getFill().convertToDouble()));
  }

  Results operator()(AppendOp cached) const {
    if (cached.getTable())
      return results(appendToPages(operand(0), operand(1), operand(2), operand(3), cached.getAxis(),
                                   along()[0]));
    return results(append(operand(0), operand(1), operand(2), cached.getAxis(), along()[0]));
  }
  Results operator()(GatherPagesOp gathered) const {
    return results(gatherPages(operand(0), operand(1), gathered.getAxis(), along()[0]));
  }

  Results operator()(DropoutOp dropoutOp) const {
    return results(dropout<Real>(operand(0), dropoutOp.getP().convertToDouble(),
                                 sourceOf(int64_t(dropoutOp.getStream()))));
  }
  Results operator()(RotaryOp embedding) const {
    const auto number = [](const std::optional<llvm::APFloat> &value, double absent) {
      return value ? value->convertToDouble() : absent;
    };
    return results(
        rotary<Real>(operand(0),
                     {.position = int64_t(embedding.getPosition()),
                      .dim = int64_t(embedding.getDim()),
                      .turned = embedding.turnedExtent(),
                      .base = embedding.getBase().convertToDouble(),
                      .style = embedding.style(),
                      .isReverse = embedding.isReverse(),
                      .factor = number(embedding.getFactor(), 1),
                      .original = int64_t(embedding.getOriginal().value_or(0)),
                      .low = number(embedding.getLow(), 0),
                      .high = number(embedding.getHigh(), 0),
                      .among = embedding.getAmong() ? int64_t(*embedding.getAmong()) : -1,
                      .begin = int64_t(embedding.getBegin().value_or(0)),
                      .end = int64_t(embedding.getEnd().value_or(0))},
                     starts()));
  }
  Results operator()(AlibiOp bias) const {
    return results(alibi<Real>(operand(0), bias.getHeads(), bias.getQuery(), bias.getKey(),
                               bias.getSteepness().convertToDouble()));
  }
  Results operator()(RelativeBiasOp bias) const {
    return results(relativeBias<Real>(operand(0), operand(1), along(), bias.getQuery(),
                                      bias.getKey(), bias.getDistance(), bias.isReverse()));
  }
  Results operator()(ExpandBucketsOp table) const {
    return results(
        expandBuckets(operand(0), *bucketKindNamed(table.getKind().str()), table.getDistance()));
  }
  Results operator()(MaskOp mask) const {
    const llvm::StringRef kind = mask.getKind();
    const int64_t key = mask.getKey(), query = mask.getQuery().value_or(0);
    const double fill = mask.getFill() ? mask.getFill()->convertToDouble()
                                       : -std::numeric_limits<double>::infinity();
    using Kind = MaskShape::Kind;
    const std::optional<Kind> known = maskKindNamed(std::string_view(kind));
    if (!known)
      throw Error::unsupported("mask of kind '{}' has no reference evaluation", kind.str());
    switch (*known) {
      case Kind::causal: return results(maskCausal(operand(0), query, key, fill, starts()));
      case Kind::window:
        return results(maskWindow(operand(0), query, key, *mask.getLeft(), *mask.getRight(),
                                  int64_t(mask.getGlobal().value_or(0)), fill, starts()));
      case Kind::padding:
        return results(maskPadding(operand(0), key, operand(1), along()[0], fill));
      case Kind::tokens: return results(maskTokens(operand(0), key, operand(1), fill));
      case Kind::unread: return results(maskTokens(operand(0), key, operand(1), std::nan("")));
      case Kind::block:
        return results(maskBlock(operand(0), query, key, *mask.getSize(), operand(1), fill));
      case Kind::pattern: {
        const TensorValue &x = operand(0);
        const BlockTable &table =
            blockTable(mask.getPattern()->str(), mask.countHeads(), x.shape[query], x.shape[key]);
        const llvm::ArrayRef<int64_t> heads = mask.getAlong().value_or(llvm::ArrayRef<int64_t>());
        return results(maskPattern(x, query, key, heads.vec(), table, fill));
      }
      case Kind::document:
        return results(maskDocument(operand(0), query, key, operand(1), along()[0], fill));
    }
    throw Error::checkFailed("a mask of no kind");
  }

  /// Element-wise by the op's own scalar meaning; smaller operands are broadcast along `along`, and
  /// without it scalars everywhere.
  Results elementwise(WeftOp scalar) const {
    const TensorValue &first = operand(0);
    const bool spreads = op->hasAttr("along");
    std::vector<TensorValue> spread;
    std::vector<const std::vector<double> *> columns{&first.elements};
    spread.reserve(operands.size());
    for (size_t n = 1; n < operands.size(); ++n) {
      const bool isScalar = operand(n).shape.empty();
      if (spreads) spread.push_back(broadcast(operand(n), first.shape, along()));
      else if (isScalar) spread.push_back(broadcast(operand(n), first.shape, {}));
      columns.push_back(spreads || isScalar ? &spread.back().elements : &operand(n).elements);
    }
    TensorValue result = zeros(first.shape);
    std::vector<double> values(operands.size());
    for (size_t at = 0; at < result.elements.size(); ++at) {
      for (size_t n = 0; n < values.size(); ++n) values[n] = (*columns[n])[at];
      result.elements[at] = Real(scalar.evaluateScalar(values));
    }
    return results(std::move(result));
  }

private:
  DropoutSource sourceOf(int64_t stream) const {
    return {.seed = options.seed, .step = options.step, .stream = uint32_t(stream)};
  }
  std::optional<Dropping> droppingOf(const std::optional<Dropout> &dropout) const {
    if (!dropout) return std::nullopt;
    return Dropping{.p = dropout->p, .source = sourceOf(dropout->stream)};
  }
  /// The one axis that is not reduced.
  static int64_t normalizedAxis(llvm::ArrayRef<int64_t> reduced) {
    int64_t axis = 0;
    while (llvm::is_contained(reduced, axis)) ++axis;
    return axis;
  }
  llvm::ArrayRef<int64_t> along() const {
    return op->getAttrOfType<mlir::DenseI64ArrayAttr>("along").asArrayRef();
  }
  /// The second operand, where an op of positions has one.
  SequenceStarts starts() const {
    if (operands.size() < 2) return {};
    return {.starts = &operand(1), .along = along()[0]};
  }
  Results reshaped() const {
    return results(reshape(operand(0), extents(op->getResult(0).getType())));
  }
};

template <typename Real>
Results evaluateIn(mlir::Operation *op, Operands operands, const InterpreterOptions &options) {
  const Evaluator<Real> evaluator{op, operands, options};
  return llvm::TypeSwitch<mlir::Operation *, Results>(op)
      .Case<ContractOp, SoftmaxOp, LayerNormOp, RmsNormOp, ReduceOp, LocalSoftmaxOp,
            ReduceSubvectorsOp, GlobalScalingOp, SubvectorContractOp, OnlineSoftmaxContractOp,
            TransposeOp, SliceOp, ConcatOp, SplitAxisOp, MergeAxesOp, IdentityOp, GatherOp,
            DropoutOp, RotaryOp, MaskOp, AlibiOp, RelativeBiasOp, ExpandBucketsOp, CrossEntropyOp,
            CrossEntropyDxOp, SoftmaxDxOp, LayerNormDxOp, LayerNormDwOp, RmsNormDxOp, RmsNormDwOp,
            ScatterAddOp, PadOp, BroadcastOp, OffsetsOp, LengthsOp, PackOp, UnpackOp, AppendOp,
            GatherPagesOp, TileBoundsOp>([&](auto typed) { return evaluator(typed); })
      .Default([&](mlir::Operation *other) {
        auto scalar = mlir::dyn_cast<WeftOp>(other);
        if (!scalar || scalar.expression().empty())
          throw Error::unsupported("'{}' has no reference evaluation",
                                   other->getName().getStringRef().str());
        return evaluator.elementwise(scalar);
      });
}

}  // namespace

std::vector<TensorValue> evaluate(mlir::Operation *op, Operands operands,
                                  const InterpreterOptions &options) {
  return options.precision == Precision::f32 ? evaluateIn<float>(op, operands, options)
                                             : evaluateIn<double>(op, operands, options);
}

}  // namespace weft::reference
