// Random arguments that make sense to the ops that read them: indices and lengths stay in range.
// Every value is one that its element type can hold, so that graphs in f16 and kernels read the
// very same numbers.
#include "ir/Einsum.h"
#include "ir/Weft.h"
#include "ir/interpreter/Interpreter.h"
#include "ir/interpreter/Rounding.h"
#include "kernel/CoordinateExpressions.h"
#include "kernel/Pages.h"
#include "kernel/PositiveValues.h"

#include "llvm/ADT/DenseSet.h"

#include <cmath>
#include <numbers>
#include <optional>
#include <random>

namespace weft {
namespace {

/// Draws whose sequence is fixed by the C++ standard (the standard's own distributions are not).
class Source {
public:
  explicit Source(uint64_t seed) : engine(seed) {}
  /// In (0, 1).
  double uniform() { return (double(engine() >> 12) + 0.5) * 0x1p-52; }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }
  /// In [low, high].
  int64_t integer(int64_t low, int64_t high) {
    return low + int64_t(uniform() * double(high - low + 1));
  }

private:
  std::mt19937_64 engine;
};

/// Visits every op that reads a value, also inside kernels.
void forEachReader(mlir::Value value, const std::function<void(mlir::OpOperand &)> &visit) {
  for (mlir::OpOperand &use : value.getUses()) {
    if (auto kernel = mlir::dyn_cast<KernelOp>(use.getOwner()))
      forEachReader(kernel.getBlock()->getArgument(use.getOperandNumber()), visit);
    else visit(use);
  }
}

struct Range {
  int64_t low = 0, high = 0;
};

/// Of a sequence.
int64_t positionsOf(AppendOp append) {
  return extents(append.getCache().getType())[append.getAxis()] *
         (append.getTable() ? extents(append.getTable().getType())[1] : 1);
}

/// Pages in memory, of a table of these; nothing for other tensors.
std::optional<int64_t> pagesOfTable(mlir::Value value) {
  std::optional<int64_t> pages;
  forEachReader(value, [&](mlir::OpOperand &use) {
    const bool isTable = (mlir::isa<AppendOp>(use.getOwner()) && use.getOperandNumber() == 3) ||
                         (mlir::isa<GatherPagesOp>(use.getOwner()) && use.getOperandNumber() == 1);
    if (!isTable) return;
    const llvm::ArrayRef<int64_t> along =
        use.getOwner()->getAttrOfType<mlir::DenseI64ArrayAttr>("along").asArrayRef();
    const int64_t own = extents(use.getOwner()->getOperand(0).getType())[size_t(along[0])];
    pages = std::min(pages.value_or(own), own);
  });
  return pages;
}

/// Indices address the table's rows, packed or not; lengths go from none to all keys. Several
/// readers: what suits all of them; the largest integer where none asks for anything.
int64_t highestInteger(mlir::Value value) {
  int64_t high = std::numeric_limits<int32_t>::max();
  forEachReader(value, [&](mlir::OpOperand &use) {
    if (auto gather = mlir::dyn_cast<GatherOp>(use.getOwner()))
      high = std::min(high, extents(gather.getTable().getType())[0] - 1);
    if (auto packing = mlir::dyn_cast<PackOp>(use.getOwner()); packing && !use.getOperandNumber())
      high = std::min(high, highestInteger(packing.getResult()));
    if (mlir::isa<YieldOp>(use.getOwner()))
      high = std::min(
          high, highestInteger(use.getOwner()->getParentOp()->getResult(use.getOperandNumber())));
    if (auto sums = mlir::dyn_cast<OffsetsOp>(use.getOwner()))
      high = std::min(high, static_cast<int64_t>(sums.getBound()));
    if (auto append = mlir::dyn_cast<AppendOp>(use.getOwner());
        append && use.getOperandNumber() == 2)
      high = std::min(
          high, positionsOf(append) - extents(append.getTokens().getType())[append.getAxis()]);
    if (auto mask = mlir::dyn_cast<MaskOp>(use.getOwner()))
      high = std::min(high,
                      maskKindNamed(std::string_view(mask.getKind())) == MaskShape::Kind::document
                          ? mostRandomSegment
                          : extents(mask.getX().getType())[mask.getKey()]);
  });
  return high;
}

Range integerRange(mlir::Value value) {
  const int64_t high = highestInteger(value);
  return high == std::numeric_limits<int32_t>::max() ? Range{-8, 8} : Range{0, high};
}

/// Positions of a sequence, of offsets that pack, unpack or a mask reads; nothing for other
/// tensors.
std::optional<int64_t> lengthOfOffsets(mlir::Value value) {
  std::optional<int64_t> length;
  forEachReader(value, [&](mlir::OpOperand &use) {
    if (use.getOperandNumber() != 1) return;
    if (auto packing = mlir::dyn_cast<PackOp>(use.getOwner()))
      length = extents(packing.getX().getType())[packing.getAxes()[1]];
    if (auto unpacking = mlir::dyn_cast<UnpackOp>(use.getOwner()))
      length = extents(unpacking.getResult().getType())[unpacking.getInto()[1]];
    if (auto mask = mlir::dyn_cast<MaskOp>(use.getOwner());
        mask && isTokensMask(std::string_view(mask.getKind())))
      if (!length)
        length = extents(mask.getX().getType())[mask.getKey()] / (extents(value.getType())[0] - 1);
  });
  return length;
}

/// Whether the mask says which positions of a sequence are tokens: rows of ones, then zeros.
bool isMaskOfTokens(mlir::Value value) {
  bool isMask = false;
  forEachReader(value, [&](mlir::OpOperand &use) {
    isMask = isMask || mlir::isa<LengthsOp>(use.getOwner());
  });
  return isMask;
}

void fillPrefixes(TensorValue &mask, Source &source) {
  const size_t positions = size_t(mask.shape.back());
  for (size_t row = 0; row < mask.elements.size(); row += positions) {
    const auto length = size_t(source.integer(0, int64_t(positions)));
    for (size_t n = 0; n < positions; ++n) mask.elements[row + n] = n < length ? 1 : 0;
  }
}

/// Offsets of sequences of random lengths.
void fillOffsets(TensorValue &offsets, int64_t length, Source &source) {
  double tokens = 0;
  for (double &offset : offsets.elements) {
    offset = tokens;
    tokens += double(source.integer(0, length));
  }
}

/// The most terms that a contraction sums over the value, also where ops that only move elements,
/// as the concat of stacked projections, stand between; one where none reads it.
double mostTerms(mlir::Value value) {
  double most = 1;
  forEachReader(value, [&](mlir::OpOperand &use) {
    mlir::Operation *reader = use.getOwner();
    if (auto contraction = mlir::dyn_cast<ContractOp>(reader)) {
      const Einsum einsum = parseEinsum(contraction.getSpec().str());
      const std::vector<int64_t> shape = extents(contraction.getA().getType());
      double terms = 1;
      for (char letter : einsum.reduced()) terms *= double(shape[einsum.a.find(letter)]);
      most = std::max(most, terms);
    } else if (mlir::isa<ConcatOp, SliceOp, TransposeOp, SplitAxisOp, MergeAxesOp, IdentityOp,
                         CastOp>(reader)) {
      most = std::max(most, mostTerms(reader->getResult(0)));
    } else if (mlir::isa<YieldOp>(reader) && mlir::isa<KernelOp>(reader->getParentOp())) {
      most = std::max(most, mostTerms(reader->getParentOp()->getResult(use.getOperandNumber())));
    }
  });
  return most;
}

/// 1 / sqrt(mostTerms()), so that neither layers nor their gradients grow from one to the next;
/// 8-bit floats come with separate scales, and use the range that they have.
double contractionScale(mlir::Value value) {
  return isFloat8(*toDType(value.getType())) ? 1 : 1 / std::sqrt(mostTerms(value));
}

/// Adds the values that must be positive (kernel/PositiveValues.h), those of nested kernels first.
void addPositive(mlir::Block &block, llvm::DenseSet<mlir::Value> &positive) {
  for (mlir::Operation &op : llvm::reverse(block)) {
    if (auto kernel = mlir::dyn_cast<KernelOp>(op)) {
      mlir::Block &body = *kernel.getBlock();
      for (auto [result, inside] :
           llvm::zip_equal(op.getResults(), body.getTerminator()->getOperands()))
        if (positive.contains(result)) positive.insert(inside);
      addPositive(body, positive);
      for (auto [operand, inside] : llvm::zip_equal(op.getOperands(), body.getArguments()))
        if (positive.contains(inside)) positive.insert(operand);
      continue;
    }
    const std::optional<OpKind> kind = opKindNamed(op.getName().stripDialect());
    if (!kind) continue;
    const bool isSquare = kind == OpKind::mul && op.getOperand(0) == op.getOperand(1);
    const bool isAsked = llvm::any_of(
        op.getResults(), [&](mlir::Value result) { return positive.contains(result); });
    for (mlir::OpOperand &operand : op.getOpOperands())
      if (requiresPositive(*kind, operand.getOperandNumber()) ||
          (isAsked && !isSquare && preservesPositive(*kind, operand.getOperandNumber())))
        positive.insert(operand.get());
  }
}

bool isParameter(mlir::Operation *graph, unsigned argument) {
  auto op = mlir::dyn_cast<GraphOp>(graph);
  return op && op.isParameter(argument);
}

}  // namespace

std::vector<TensorValue> randomArguments(mlir::Operation *graph, uint64_t seed) {
  Source source(seed);
  llvm::DenseSet<mlir::Value> positive;
  addPositive(graph->getRegion(0).front(), positive);
  std::vector<TensorValue> arguments;
  for (mlir::BlockArgument argument : graph->getRegion(0).front().getArguments()) {
    TensorValue value = reference::zeros(extents(argument.getType()));
    const DType dtype = *toDType(argument.getType());
    const Range range = dtype == DType::i1 ? Range{0, 1} : integerRange(argument);
    const bool isPositive = positive.contains(argument);
    const bool isInteger = dtype == DType::i1 || dtype == DType::i32;
    const double scale =
        isParameter(graph, argument.getArgNumber()) ? contractionScale(argument) : 1;
    if (const auto length = lengthOfOffsets(argument)) {
      fillOffsets(value, *length, source);
      arguments.push_back(std::move(value));
      continue;
    }
    if (isMaskOfTokens(argument)) {
      fillPrefixes(value, source);
      arguments.push_back(std::move(value));
      continue;
    }
    if (const auto pages = pagesOfTable(argument)) {
      const int64_t sequences = value.shape[0], entries = value.shape[1];
      const ShuffledPages shuffled(sequences, *pages, seed);
      for (size_t n = 0; n < value.elements.size(); ++n)
        value.elements[n] = double(shuffled.entry(int64_t(n) / entries, int64_t(n) % entries));
      arguments.push_back(std::move(value));
      continue;
    }
    for (double &element : value.elements)
      element = isInteger ? double(source.integer(range.low, range.high))
                          : reference::roundTo(dtype, isPositive ? 0.5 + std::abs(source.normal())
                                                                 : scale * source.normal());
    arguments.push_back(std::move(value));
  }
  return arguments;
}

}  // namespace weft
