// Kinds of attention priced one by one; see AttentionKinds.h.
#include "tools/driver/AttentionKinds.h"

#include "codegen/families/attention/AttentionProblem.h"
#include "codegen/families/attention/VisibleScores.h"
#include "codegen/families/contraction/GemmProblem.h"
#include "kernel/Error.h"
#include "kernel/StridedBatchedGemm.h"
#include "passes/attention/RecomposedSites.h"
#include "passes/decide/KernelPrices.h"
#include "plan/PlanFigures.h"
#include "tools/driver/PlanFacts.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace weft::driver {
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

/// The choices under which one kind is decided for an attention alone.
ChoiceFlags choicesFor(const Request &request, AttentionChoice kind) {
  ChoiceFlags choices;
  choices.attention = kind;
  if (kind == AttentionChoice::decomposed || kind == AttentionChoice::recomposed)
    choices.subVector = request.choices.subVector;
  choices.softmax = request.choices.softmax;
  choices.fuseRules = request.choices.fuseRules;
  choices.memoryTrade = request.choices.memoryTrade;
  choices.searchMemory = request.choices.searchMemory;
  choices.fill = request.choices.fill;
  choices.free = true;
  choices.chunks = 0;
  choices.concurrent = decision::Concurrency::off;
  return choices;
}

/// What --fuse is asked for a recomposed softmax, and --no-fuse for a decomposed one.
std::vector<std::string> recomposedPairs(const Dataflow &flow) {
  std::vector<std::string> pairs;
  for (const RecomposedSite &site : recomposedSites(flow))
    for (const auto &[one, other] : site.pairs()) pairs.push_back(fmt::format("{},{}", one, other));
  return pairs;
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

/// Between the contraction of queries and keys and the softmax, or behind it.
bool isProbability(OpKind kind) {
  return kind == OpKind::softmax || kind == OpKind::localSoftmax || kind == OpKind::globalScaling ||
         kind == OpKind::dropout;
}

/// What a kernel rounds: its results, what it computes for a contraction to read, and what
/// contractions read as tf32.
RoundingBound roundingsOf(const Kernel &kernel, const AttentionSite &site) {
  const auto isOutput = [&](const std::string &name) {
    return name == site.output || (!site.packed.empty() && name == site.packed);
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
  for (const auto &[configuration, cost] : decision::pricedInItsLayouts(chosen, prices)) {
    const std::optional<BlockTile> tile = attentionTile(configuration.knobs);
    if (!tile || &configuration.knobs.family() != &chosen.configuration.knobs.family()) continue;
    isAnyMeasured = isAnyMeasured || cost.measured;
    const PricedTile priced{.queries = tile->rows,
                            .keys = tile->columns,
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

KindFigures figuresOf(const PlannedKernels &planned, const Compilation &compilation,
                      const AttentionSite &site) {
  const CostModel &prices = compilation.costModel();
  const Plan &plan = planned.plan;
  const GraphPrediction graph = decision::graphOf(plan);
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
    const ChosenKernel filled = atExpectedFill(chosen, compilation.expectedFill());
    figures.l2Bytes += l2BytesOf(filled);
    const std::string name = shortName(kernel);
    if (std::ranges::count(figures.kernels, name) == 0) {
      figures.kernels.push_back(name);
      const RoundingBound bound = roundingsOf(chosen.kernel, site);
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
  figures.softmax = softmaxAccount(planned, site);
  return figures;
}

Expected<KindFigures> decideKind(const Request &request, const AttentionSite &site,
                                 const std::string &graph, AttentionChoice kind,
                                 const std::string &profile, std::vector<SharedPrices> &known) {
  TargetFlags target = request.target;
  target.profile = profile;
  target.strict = false;
  ChoiceFlags choices = choicesFor(request, kind);
  ModelFlags model;
  model.model = "report.json.mlir";  // how messages call it
  const auto compile = [&] {
    auto compilation = std::make_unique<Compilation>(model, choices, target);
    compilation->importTexts({{.rewrites = {}, .text = graph}}, Phase::algebra);
    compilation->sharePrices(known);
    return compilation;
  };
  auto compilation = compile();
  std::vector<ProposedVariant> proposed = compilation->propose(Phase::algebra);
  if (kind == AttentionChoice::decomposed) {
    choices.noFuse = recomposedPairs(proposed.front().counted);
    proposed.clear();  // they live in the context of their compilation
    compilation = compile();
    proposed = compilation->propose(Phase::algebra);
  }
  const Expected<decision::Decision> decided =
      decision::decidePlan(compilation->problem(proposed), compilation->options(proposed));
  if (!decided) return Unexpected(decided.error());
  return figuresOf(decided->planned, *compilation, site);
}

}  // namespace

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

PricedKind priceKind(const Request &request, const AttentionSite &site, AttentionChoice kind,
                     int64_t queries, int64_t keys, std::vector<SharedPrices> &known) {
  PricedKind priced{.kind = kind, .figures = {}, .rejection = ""};
  try {
    const std::string graph = queries == site.queries && keys == site.keys
                                  ? site.graphOf(kind)
                                  : atLengths(site, kind, queries, keys);
    const Expected<KindFigures> considered =
        decideKind(request, site, graph, kind, request.target.profile, known);
    if (considered) {
      priced.figures = *considered;
      return priced;
    }
    priced.rejection = considered.error().what();
    if (request.target.profile == "none") return priced;
    const Expected<KindFigures> estimated = decideKind(request, site, graph, kind, "none", known);
    if (!estimated) return priced;
    priced.figures = *estimated;
    priced.figures->notConsidered = std::exchange(priced.rejection, "");
  } catch (const Error &error) {
    if (error.kind != ErrorKind::unsupported && error.kind != ErrorKind::badInput) throw;
    priced.rejection = error.what();
  }
  return priced;
}

namespace {

/// The fused kind at one length.
struct FusedPrice {
  PricedKind chosen;
  std::optional<PricedKind> estimated = {};  ///< without a profile, once that is asked for
};

/// As one graph; of a kind that is estimated alone both by estimates.
bool fusedWins(const Request &request, const AttentionSite &site, const PricedKind &other,
               FusedPrice &fused, int64_t queries, int64_t keys, std::vector<SharedPrices> &known) {
  if (other.figures->notConsidered.empty())
    return fused.chosen.figures->graphSeconds <= other.figures->graphSeconds;
  if (!fused.estimated) {
    Request estimated = request;
    estimated.target.profile = "none";
    fused.estimated = priceKind(estimated, site, AttentionChoice::fused, queries, keys, known);
  }
  const std::optional<KindFigures> &again = fused.estimated->figures;
  return again && again->graphSeconds <= other.figures->graphSeconds;
}

/// At every length: what is faster at short ones need not be at longer ones. DeBERTa's gathered
/// biases, say, cost the fused kind time for each score.
std::vector<Crossover> crossoversOf(const Request &request, const AttentionSite &site,
                                    const std::vector<PricedKind> &kinds) {
  std::vector<Crossover> crossovers;
  for (const PricedKind &kind : kinds)
    if (kind.kind != AttentionChoice::fused)
      crossovers.push_back({.kind = kind.kind, .ranges = {}, .whyNone = kind.rejection});
  std::vector<bool> isCompared(crossovers.size());  // at any length
  std::vector<bool> wonBefore(crossovers.size());   // at the length before
  std::string noFused;
  for (int64_t keys = leastLength; keys <= mostLength; keys *= 2) {
    const int64_t queries = site.queries == site.keys ? keys : site.queries;
    std::vector<SharedPrices> known;  // of kernels of these lengths
    const auto priced = [&](AttentionChoice kind) {
      if (queries == site.queries && keys == site.keys)
        return *std::ranges::find(kinds, kind, &PricedKind::kind);
      return priceKind(request, site, kind, queries, keys, known);
    };
    FusedPrice fused{priced(AttentionChoice::fused)};
    if (!fused.chosen.figures) noFused = fused.chosen.rejection;
    for (size_t n = 0; n < crossovers.size(); ++n) {
      Crossover &one = crossovers[n];
      if (!one.whyNone.empty()) continue;
      bool wins = false;
      if (fused.chosen.figures) {
        const PricedKind other = priced(one.kind);
        isCompared[n] = isCompared[n] || other.figures;
        wins = other.figures && fusedWins(request, site, other, fused, queries, keys, known);
      }
      if (wins && wonBefore[n]) one.ranges.back().to = keys;
      else if (wins) one.ranges.push_back({.from = keys, .to = keys});
      wonBefore[n] = wins;
    }
  }
  for (size_t n = 0; n < crossovers.size(); ++n)
    if (!isCompared[n] && crossovers[n].whyNone.empty()) crossovers[n].whyNone = noFused;
  return crossovers;
}

}  // namespace

std::optional<int64_t> Crossover::length() const {
  if (ranges.empty() || ranges.back().to != mostLength) return {};
  return ranges.back().from;
}

SitePrices priceSite(const Request &request, const AttentionSite &site) {
  SitePrices prices{.site = site, .kinds = {}, .crossovers = {}, .whyNoLengths = ""};
  std::vector<SharedPrices> known;
  for (const AttentionChoice kind : pricedKinds)
    prices.kinds.push_back(priceKind(request, site, kind, site.queries, site.keys, known));
  if (!prices.kinds.back().figures) {
    prices.whyNoLengths = "no fused plan: " + prices.kinds.back().rejection;
    return prices;
  }
  try {
    atLengths(site, AttentionChoice::fused,
              site.queries == site.keys ? 2 * site.keys : site.queries, 2 * site.keys);
  } catch (const Error &error) {
    if (error.kind != ErrorKind::unsupported) throw;
    prices.whyNoLengths = error.what();
    return prices;
  }
  prices.crossovers = crossoversOf(request, site, prices.kinds);
  return prices;
}

}  // namespace weft::driver
