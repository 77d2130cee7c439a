// Traffic, roundings and tiles of the kernels of one attention; see AttentionFigures.h.
#include "passes/decide/AttentionFigures.h"

#include "codegen/families/attention/AttentionProblem.h"
#include "codegen/families/attention/VisibleScores.h"
#include "codegen/families/contraction/GemmProblem.h"
#include "kernel/StridedBatchedGemm.h"
#include "passes/decide/KernelPrices.h"
#include "plan/PlanFigures.h"

#include <algorithm>
#include <map>
#include <utility>

namespace weft::decision {
namespace {

int64_t ceilOf(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Relative error of one rounding to the type.
double unitOf(DType type) {
  switch (type) {
    case DType::f16: return 0x1p-11;
    case DType::bf16: return 0x1p-8;
    default: return 0x1p-24;
  }
}

/// Queries and keys of a tile; nothing of other families.
std::optional<BlockTile> attentionTile(const Knobs &knobs) {
  const Family &family = knobs.family();
  if (!family.takesAttention || !family.blockTile) return {};
  return family.blockTile(knobs);
}

/// Every tile of C loads its rows of A and its columns of B. Tiles of the library are taken as
/// 128 x 128.
BlockTile gemmTile(const Knobs &knobs) {
  const Family &family = knobs.family();
  if (family.isGemm && family.blockTile) return family.blockTile(knobs);
  return {.rows = 128, .columns = 128};
}

struct Attention {
  AttentionRegion region;
  AttentionProblem problem;
};
std::optional<Attention> attentionOf(const ChosenKernel &chosen) {
  const Expected<AttentionRegion, Reason> found = attentionRegion(chosen.kernel);
  if (!found) return {};
  const Expected<AttentionProblem> problem =
      attentionProblem(chosen.kernel, *found, chosen.configuration);
  if (!problem) return {};
  return Attention{.region = *found, .problem = *problem};
}

/// Queries and output once, keys and values for every tile of queries: `keysSeen` of them.
int64_t attentionL2Bytes(const AttentionProblem &problem, int64_t tileQueries, double keysSeen) {
  const int64_t rows = problem.heads * problem.queries;
  const int64_t once = rows * (problem.headDim * sizeOf(problem.operandType) +
                               problem.valueDim * sizeOf(problem.outputType));
  const double again = double(problem.heads) * double(ceilOf(problem.queries, tileQueries)) *
                       keysSeen * double(problem.headDim + problem.valueDim) *
                       double(sizeOf(problem.operandType));
  return once + int64_t(again);
}

struct GemmExtents {
  int64_t batch = 1, m = 1, n = 1, k = 1;
};

/// By the axes of the contraction alone, A and B as its op has them.
GemmExtents extentsOf(const Kernel &kernel, const BodyOp &contraction) {
  const auto has = [&](ValueId value, AxisId axis) {
    return std::ranges::count(kernel.values[size_t(value)].axes, axis) > 0;
  };
  const int a = contraction.operands[0], b = contraction.operands[1];
  GemmExtents extents;
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis) {
    const bool ofA = has(a, int(axis)), ofB = has(b, int(axis));
    const bool isReduced = std::ranges::count(contraction.reducedAxes, int(axis)) > 0;
    if (!ofA && !ofB) continue;
    (isReduced    ? extents.k
     : ofA && ofB ? extents.batch
     : ofA        ? extents.m
                  : extents.n) *= kernel.axes[axis].extent;
  }
  return extents;
}

int64_t gemmL2Bytes(const ChosenKernel &chosen, const BodyOp &contraction) {
  const Kernel &kernel = chosen.kernel;
  const BlockTile tile = gemmTile(chosen.configuration.knobs);
  GemmExtents extents = extentsOf(kernel, contraction);
  if (const Expected<GemmProblem, Reason> found = gemmProblem(kernel, chosen.configuration, true);
      found && found->isSwapped)
    std::swap(extents.m, extents.n);
  const int64_t bytes = sizeOf(kernel.values[size_t(contraction.operands[0])].dtype);
  const int64_t rows = std::min(tile.rows, extents.m), columns = std::min(tile.columns, extents.n);
  const int64_t tiles =
      extents.batch * ceilOf(extents.m, tile.rows) * ceilOf(extents.n, tile.columns);
  int64_t operands = 0;
  for (const int operand : contraction.operands)
    if (std::ranges::count(kernel.inputs, operand) > 0) operands += kernel.bytes(operand);
  return tiles * (rows + ceilOf(columns, tile.multicast)) * extents.k * bytes +
         std::max<int64_t>(0, kernel.necessaryBytes() - operands);
}

/// Bytes that a kernel requests from L2: of GEMMs and fused attentions by their tiles, of others
/// what they move.
int64_t l2BytesOf(const ChosenKernel &chosen) {
  if (const std::optional<BlockTile> tile = attentionTile(chosen.configuration.knobs))
    if (const std::optional<Attention> attention = attentionOf(chosen)) {
      const VisibleBlocks blocks = visibleBlocks(chosen.kernel, attention->region,
                                                 attention->problem, tile->rows, tile->columns);
      const bool hasMasks =
          visibleScores(chosen.kernel, attention->region, attention->problem).hasMasks;
      const double keys = double(attention->problem.keys);
      return attentionL2Bytes(
          attention->problem, tile->rows,
          hasMasks ? std::min(keys, blocks.mean * double(tile->columns)) : keys);
    }
  for (const BodyOp &op : chosen.kernel.body)
    if (op.kind == OpKind::contract) return gemmL2Bytes(chosen, op);
  return chosen.cost.bytesMoved;
}

/// Between the contraction of queries and keys and the softmax, or behind it.
bool isProbability(OpKind kind) {
  return kind == OpKind::softmax || kind == OpKind::localSoftmax || kind == OpKind::globalScaling ||
         kind == OpKind::dropout;
}

/// What a kernel rounds: its results, what it computes for a contraction to read, and what
/// contractions read as tf32.
RoundingBound roundingsOf(const Kernel &kernel, const AttentionShape &shape) {
  const auto isOutput = [&](const std::string &name) {
    return name == shape.output || (!shape.packed.empty() && name == shape.packed);
  };
  constexpr double lostInTf32 = 0x1p-9;  // of a product (ir/SPEC.md, "Contraction")
  RoundingBound bound;
  for (const BodyOp &op : kernel.body) {
    if ((op.kind == OpKind::contract || op.kind == OpKind::onlineSoftmaxContract) && isTf32(op)) {
      const bool isOfValues = op.kind == OpKind::onlineSoftmaxContract ||
                              isOutput(kernel.values[size_t(op.results.front())].name);
      (isOfValues ? bound.constant : bound.perScore) += isOfValues ? lostInTf32 : 2 * lostInTf32;
    }
    if (op.kind == OpKind::onlineSoftmaxContract)
      bound.constant += unitOf(kernel.values[size_t(op.operands.back())].dtype);
    for (const int operand : op.operands) {
      const bool isComputed =
          std::ranges::count(kernel.inputs, operand) == 0 &&
          std::ranges::none_of(kernel.body, [&](const BodyOp &other) {
            return other.kind == OpKind::unpack && std::ranges::count(other.results, operand) > 0;
          });
      if (op.kind == OpKind::contract && isComputed)
        bound.constant += unitOf(kernel.values[size_t(operand)].dtype);
    }
    if (op.results.empty() || std::ranges::count(kernel.outputs, op.results.front()) == 0) continue;
    const Value &result = kernel.values[size_t(op.results.front())];
    if (result.dtype == DType::i32) continue;                         // offsets of sequences
    if (op.kind == OpKind::reduceSubvectors) continue;                // fp32, of a row
    if (kernel.operatorClass() == OperatorClass::movement) continue;  // tokens alone move
    // An error of a score is one of its exponential and of the sum that this is divided by.
    if (isOutput(result.name) || isProbability(op.kind) || op.kind == OpKind::onlineSoftmaxContract)
      bound.constant += unitOf(result.dtype);
    else bound.perScore += 2 * unitOf(result.dtype);
  }
  return bound;
}

/// Under the layouts of the kernel that was chosen.
std::vector<PricedTile> tilesOf(const ChosenKernel &chosen, const CostModel &prices,
                                const AttentionProblem &problem) {
  std::map<std::pair<int64_t, int64_t>, PricedTile> best;
  bool isAnyMeasured = false;
  for (const auto &[configuration, cost] : pricedInItsLayouts(chosen, prices)) {
    const std::optional<BlockTile> tile = attentionTile(configuration.knobs);
    if (!tile || &configuration.knobs.family() != &chosen.configuration.knobs.family()) continue;
    isAnyMeasured = isAnyMeasured || cost.measured;
    const PricedTile priced{.queries = tile->rows,
                            .keys = tile->columns,
                            .knobs = planKnobs(configuration.knobs, chosen.kernel),
                            .seconds = cost.seconds,
                            .isMeasured = cost.measured,
                            .l2Bytes = attentionL2Bytes(problem, tile->rows, double(problem.keys))};
    const auto [known, isNew] = best.try_emplace({tile->rows, tile->columns}, priced);
    if (!isNew && std::pair(!priced.isMeasured, priced.seconds) <
                      std::pair(!known->second.isMeasured, known->second.seconds))
      known->second = priced;
  }
  std::vector<PricedTile> tiles;
  for (const auto &[size, tile] : best)
    if (tile.isMeasured || !isAnyMeasured) tiles.push_back(tile);
  return tiles;
}

/// The kernel of the tokens that are expected, as it is priced.
ChosenKernel atExpectedFill(const ChosenKernel &chosen, const std::optional<ExpectedFill> &fill) {
  ChosenKernel result = chosen;
  const bool isLoop = chosen.kernel.operatorClass() != OperatorClass::contraction;
  if (fill)
    if (std::optional<Kernel> less = shortenedKernel(chosen.kernel, *fill, isLoop))
      result.kernel = std::move(*less);
  return result;
}

}  // namespace

KindFigures attentionFigures(const PlannedKernels &planned, const CostModel &prices,
                             const std::optional<ExpectedFill> &fill, const AttentionShape &shape) {
  const Plan &plan = planned.plan;
  const GraphPrediction graph = graphOf(plan);
  KindFigures figures{.seconds = plan.predictedSeconds,
                      .graphSeconds = graph.seconds(),
                      .workspaceBytes = plan.workspaceBytes,
                      .chunks = chunkCount(plan)};
  double moved = -graph.reusedBytes - graph.overwrittenBytes;
  for (size_t index = 0; index < plan.kernels.size(); ++index) {
    const PlanKernel &kernel = plan.kernels[index];
    const ChosenKernel &chosen = planned.kernels[index];
    if (kernel.family.isView()) continue;
    figures.launches += 1;
    figures.measured += kernel.measured;
    moved += double(kernel.bytesMoved);
    const ChosenKernel filled = atExpectedFill(chosen, fill);
    figures.l2Bytes += l2BytesOf(filled);
    const std::string name = kernel.label.empty() ? wholeName(kernel) : kernel.label;
    if (std::ranges::count(figures.kernels, name) == 0) {
      figures.kernels.push_back(name);
      const RoundingBound bound = roundingsOf(chosen.kernel, shape);
      figures.error.constant += bound.constant, figures.error.perScore += bound.perScore;
    }
    const std::optional<BlockTile> tile = attentionTile(chosen.configuration.knobs);
    const std::optional<Attention> attention = tile ? attentionOf(filled) : std::nullopt;
    if (!attention) continue;
    figures.tileRows = tile->rows;
    figures.tiles = tilesOf(chosen, prices, attention->problem);
    figures.l2Theory =
        attentionL2Bytes(attention->problem, tile->rows, double(attention->problem.keys));
  }
  figures.dramBytes = int64_t(std::max(0.0, moved));
  figures.softmax = softmaxAccount(planned, shape);
  return figures;
}

}  // namespace weft::decision
