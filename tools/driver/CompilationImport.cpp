// How a compilation imports its model, differentiates and packs it; see Compilation.h.
#include "tools/driver/Compilation.h"

#include "ir/LayerMarks.h"
#include "ir/Weft.h"
#include "kernel/Error.h"
#include "kernel/LayerNames.h"
#include "kernel/MaskKind.h"
#include "kernel/Nearest.h"
#include "passes/Describe.h"
#include "passes/NameValues.h"
#include "passes/Rewrites.h"
#include "passes/algebra/Projection.h"
#include "passes/configure/Families.h"
#include "passes/select/KernelSpaces.h"
#include "tools/driver/Console.h"
#include "tools/driver/Diagnostics.h"
#include "tools/driver/ProfileModel.h"
#include "tools/driver/VariantFile.h"

#include <algorithm>
#include <set>

namespace weft::driver {
namespace {

std::vector<std::string> parametersOf(GraphOp graph) {
  std::vector<std::string> names;
  for (mlir::BlockArgument argument : graph.getBody().getArguments())
    if (graph.isParameter(argument.getArgNumber())) names.push_back(writtenName(argument));
  return names;
}

}  // namespace

void noteConfig(const models::Description &description) {
  if (!description.dtypeNote.empty()) printNote(description.dtypeNote);
  const auto note = [](const char *reason, const std::vector<std::string> &keys) {
    if (!keys.empty()) printNote(fmt::format("{}: {}", reason, fmt::join(keys, ", ")));
  };
  note("keys that do not change the mathematics", description.ignoredKeys);
  if (!description.dropoutNote.empty()) printNote(description.dropoutNote);
  note("assumed for missing keys, as the model's family does", description.assumed);
  note("keys left out by --allow-key", description.allowedKeys);
  for (const std::string &text : description.notes) printNote(text);
}

DType Compilation::elementType() const {
  return described.dtype.value_or(modelFlags.elementType().value_or(DType::f16));
}

void Compilation::import(Phase first, Phase last) {
  firstPhase = first;
  importModel(first);
  checkSites();
  if (!modelFlags.ragged.empty()) packImported();
  if (modelFlags.tf32) markTf32();
  priceTokens();
  noteBytes(Phase::import);
  if (!modelFlags.train || first > Phase::differentiate || last < Phase::differentiate) return;
  differentiateImported();
  noteBytes(Phase::differentiate);
}

namespace {

/// A name that only layers have, with their prefix, is that of all layers.
std::vector<std::string> namesOfLayers(const std::vector<std::string> &names, GraphOp graph,
                                       int64_t layers) {
  std::set<std::string> known, ofFirst;
  for (mlir::Operation *op : numberedOps(graph)) {
    known.insert(writtenName(op->getResult(0)));
    if (layerOf(op) == 1) ofFirst.insert(writtenName(op->getResult(0)));
  }
  std::vector<std::string> all;
  for (const std::string &name : names) {
    const bool isOfLayers = !known.contains(name) && ofFirst.contains(layerPrefix(1) + name);
    if (!isOfLayers) all.push_back(name);
    for (int64_t layer = 1; isOfLayers && layer <= layers; ++layer)
      all.push_back(layerPrefix(layer) + name);
  }
  return all;
}

/// The arguments that tables of biases by distance are or are computed from.
std::set<std::string> argumentsOfTables(GraphOp graph) {
  std::vector<mlir::Value> reached;
  for (RelativeBiasOp bias : graph.getBody().front().getOps<RelativeBiasOp>())
    reached.push_back(bias.getTable());
  std::set<std::string> names;
  llvm::DenseSet<mlir::Value> seen;
  while (!reached.empty()) {
    const mlir::Value value = reached.back();
    reached.pop_back();
    if (!seen.insert(value).second) continue;
    if (mlir::Operation *op = value.getDefiningOp())
      reached.insert(reached.end(), op->operand_begin(), op->operand_end());
    else if (mlir::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(value.getType())))
      names.insert(writtenName(value));
  }
  return names;
}

/// "'a', 'b', 'c'" of as many names as a layer has; how many more there are.
std::string firstOf(const std::vector<std::string> &names) {
  constexpr size_t most = 24;
  const std::span shown(names.data(), std::min(most, names.size()));
  return fmt::format("'{}'{}", fmt::join(shown, "', '"),
                     names.size() > most ? fmt::format(" and {} more", names.size() - most) : "");
}

/// Of a model whose tables of biases have no gradient: throws Error(unsupported) where one is asked
/// for that lies behind them. An optimizer asks for those of parameters.
void checkTrained(GraphOp graph, const std::string &model, const ModelFlags &flags) {
  const std::vector<std::string> &asked = flags.gradientsOf;
  const std::set<std::string> behind = argumentsOfTables(graph);
  const std::vector<std::string> wanted =
      asked.empty() && !flags.optimizer.empty() ? parametersOf(graph) : asked;
  std::vector<std::string> without;
  for (const std::string &name :
       wanted.empty() ? std::vector(behind.begin(), behind.end()) : wanted)
    if (behind.contains(name)) without.push_back(name);
  if (without.empty()) return;
  std::vector<std::string> others;
  for (mlir::BlockArgument argument : graph.getBody().getArguments())
    if (const std::string name = writtenName(argument);
        mlir::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(argument.getType())) &&
        !behind.contains(name) &&
        (flags.optimizer.empty() || graph.isParameter(argument.getArgNumber())))
      others.push_back(name);
  throw Error::unsupported(
      "{}: --train: the gradient of {} is not written: biases of scores by distance have none by "
      "their tables; all else trains beside them as it is: --gradients-of {}",
      model, firstOf(without), fmt::join(others, ","));
}

}  // namespace

void Compilation::differentiateImported() {
  CapturedDiagnostics diagnostics(*context);
  for (const Variant &variant : imported) {
    auto graph = mlir::cast<GraphOp>(graphOf(*variant.module));
    checkTrained(graph, described.name, modelFlags);
    DifferentiateOptions options{
        .withRespectTo = modelFlags.gradientsOf,
        .recompute = namesOfLayers(modelFlags.recomputedNames(), graph, described.layers),
        .scalesLoss = !modelFlags.optimizer.empty()};
    commuteGates(graph, options.recompute);
    if (!modelFlags.optimizer.empty() && options.withRespectTo.empty())
      options.withRespectTo = parametersOf(graph);
    origins.clear();
    if (mlir::failed(differentiate(graph, options, &origins)))
      throw diagnostics.error(ErrorKind::badInput, "the graph could not be differentiated");
    if (!modelFlags.optimizer.empty() && mlir::failed(appendAdamW(graph, {})))
      throw diagnostics.error(ErrorKind::badInput, "the optimizer could not be appended");
  }
}

namespace {

/// Throws Error(badInput) for a pin of a site that is not among these names; of each its layer.
template <typename Choice>
void checkNamed(const char *flag, const char *what, const std::vector<SitePin<Choice>> &pins,
                const std::map<std::string, int64_t> &names) {
  for (const SitePin<Choice> &pin : pins) {
    if (std::ranges::any_of(names, [&](const auto &name) {
          return std::ranges::count(namesOfSite(name.first, name.second), pin.site) > 0;
        }))
      continue;
    std::vector<std::string> known;
    for (const auto &[name, layer] : names) known.push_back(name);
    throw Error::badInput("{} {}={}: the graph has no {} '{}'{}", flag, pin.site, spelled(pin.kind),
                          what, pin.site, nearestAndKnown(pin.site, known));
  }
}

}  // namespace

void Compilation::checkSites() const {
  if (!choices.namesSites() || firstPhase >= Phase::fuse) return;
  std::map<std::string, int64_t> softmaxes, norms, projections;
  for (const Variant &variant : imported) {
    auto graph = mlir::cast<GraphOp>(graphOf(*variant.module));
    for (mlir::Operation *op : numberedOps(graph)) {
      const std::string name = writtenName(op->getResult(0));
      if (mlir::isa<SoftmaxOp>(op)) softmaxes[name] = layerOf(op);
      if (isNorm(op)) norms[name] = layerOf(op);
      if (auto contraction = mlir::dyn_cast<ContractOp>(op);
          contraction && weightOperandOf(contraction))
        projections[name] = layerOf(op);
    }
  }
  checkNamed("--attention", "softmax", choices.attention.sites(), softmaxes);
  checkNamed("--norms", "norm", choices.norms.sites(), norms);
  checkNamed("--stacking", "projection", choices.stacking.sites(), projections);
}

void Compilation::packImported() {
  if (firstPhase > Phase::import)
    throw Error::badInput("--ragged: packs the imported graph; it takes no --start-from {}",
                          nameOf(firstPhase));
  for (const Variant &variant : imported) {
    const std::string reason =
        packSequences(mlir::cast<GraphOp>(graphOf(*variant.module)), modelFlags.ragged);
    if (!reason.empty())
      throw Error::unsupported("{}: --ragged {}: {}", described.name, modelFlags.ragged, reason);
  }
}

namespace {

/// Masks that hide keys behind lengths which a caller brings, as they are or by a mask of tokens
/// (weft.lengths).
std::vector<MaskOp> paddingsOf(mlir::Operation *graph) {
  std::vector<MaskOp> found;
  graph->walk([&](MaskOp mask) {
    if (maskKindNamed(mask.getKind()) != MaskShape::Kind::padding) return;
    const mlir::Value lengths = mask.getAux();
    if (mlir::isa<mlir::BlockArgument>(lengths) || lengths.getDefiningOp<LengthsOp>())
      found.push_back(mask);
  });
  return found;
}

/// What lengths are of.
struct Sequences {
  int64_t longest = 0, count = 0;
  auto operator<=>(const Sequences &) const = default;
};
Sequences sequencesOf(OffsetsOp op) {
  return {.longest = int64_t(op.getBound()), .count = extents(op.getLengths().getType())[0]};
}
Sequences sequencesOf(AppendOp op) {
  const size_t positions = size_t(op.getAxis());
  const int64_t pages = op.getTable() ? extents(op.getTable().getType())[1] : 1;
  return {.longest = extents(op.getCache().getType())[positions] * pages -
                     extents(op.getTokens().getType())[positions],
          .count = elementsOf(op.getStarts().getType())};
}
Sequences sequencesOf(MaskOp padding) {
  return {.longest = extents(padding.getX().getType())[padding.getKey()],
          .count = elementsOf(padding.getAux().getType())};
}

/// The sequences of all of these ops; `asked`: what --lengths says. Throws Error(unsupported) where
/// they are several: expected lengths are of one kind.
template <typename Op>
Sequences oneOf(const std::vector<Op> &ops, const std::string &asked) {
  std::set<Sequences> all;
  for (Op op : ops) all.insert(sequencesOf(op));
  if (all.size() > 1 && !asked.empty()) {
    std::vector<std::string> texts;
    for (const Sequences &one : all)
      texts.push_back(fmt::format("{} of at most {}", one.count, one.longest));
    throw Error::unsupported(
        "--lengths {}: the graph has several kinds of sequences ({}), and expected lengths are of "
        "one; nearest is no --lengths, which prices all at full length",
        asked, fmt::join(texts, "; "));
  }
  return *all.begin();
}

template <typename Op>
std::vector<Op> opsOf(mlir::Operation *graph) {
  std::vector<Op> found;
  graph->walk([&](Op op) { found.push_back(op); });
  return found;
}

}  // namespace

void Compilation::priceTokens() {
  std::optional<ExpectedFill> &fill = priced.fill;
  mlir::Operation *graph = graphOf(*imported.front().module);
  const auto expected = [&](const Sequences &of) {
    return choices.expectedFill(of.longest, of.count);
  };
  if (const std::vector<OffsetsOp> offsets = opsOf<OffsetsOp>(graph); !offsets.empty()) {
    const Sequences of = oneOf(offsets, choices.lengths);
    fill = expected(of);
    tokens.packed = of.longest * of.count;
  } else if (const std::vector<AppendOp> appends = opsOf<AppendOp>(graph); !appends.empty()) {
    fill = expected(oneOf(appends, choices.lengths));
  } else {
    const std::vector<MaskOp> paddings = paddingsOf(graph);
    if (!choices.lengths.empty() && paddings.empty())
      throw Error::badInput(
          "--lengths {}: no argument of the graph counts tokens; --ragged AXIS packs them, --cache "
          "N reads those before from caches, --mask padding hides the keys behind them",
          choices.lengths);
    if (choices.lengths.empty() && !choices.fill) return;
    // Without a mask: of an attention that reads a cache, without what appends to it.
    fill = paddings.empty() ? *choices.fill : expected(oneOf(paddings, choices.lengths));
    for (MaskOp padding : paddings) tokens.scores.push_back(axisNames(padding.getX().getType()));
  }
  priced.unfilled = std::move(priced.model);
  priced.model = filledCostModel(*priced.unfilled, *fill);
  priced.spaces = std::make_shared<select::SharedSpaces>(costModel());
  priced.chunkConfigurations = std::make_shared<decision::ChunkConfigurations>();
  if (!fill->isFull()) priced.key = keyOfPrices(targetFlags, costModel());
}

void Compilation::markTf32() {
  size_t marked = 0;
  std::string other;  // element type of a contraction that is not marked
  for (const Variant &variant : imported)
    graphOf(*variant.module)->walk([&](ContractOp op) {
      const DType a = *toDType(op.getA().getType()), b = *toDType(op.getB().getType());
      if (a != DType::f32 || b != DType::f32) {
        other = nameOf(a == DType::f32 ? b : a);
        return;
      }
      op.setPrecision(nameOf(DType::tf32));
      ++marked;
    });
  const auto markFold = [&](auto op) {
    if (*toDType(op.getV().getType()) != DType::f32) return;
    op.setPrecision(nameOf(DType::tf32));
    ++marked;
  };
  for (const Variant &variant : imported) {
    graphOf(*variant.module)->walk([&](SubvectorContractOp op) { markFold(op); });
    graphOf(*variant.module)->walk([&](OnlineSoftmaxContractOp op) { markFold(op); });
  }
  if (marked == 0 && other.empty())
    throw Error::badInput("--tf32: '{}' has no contraction", modelFlags.model);
  if (marked == 0)
    throw Error::badInput(
        "--tf32: is a precision of f32 GEMMs, and contractions of '{}' have operands of {}",
        modelFlags.model, other);
}

namespace {

/// What the flags ask of a model, whether it is built or read.
models::Request modelRequest(const ModelFlags &flags) {
  return {.model = flags.model,
          .dims = flags.dimensions(),
          .dtype = flags.elementType(),
          .part = models::partNamed(flags.part),
          .layers = flags.layerCount(),
          .allLayers = flags.takesAllLayers(),
          .allowedKeys = {flags.allowedKeys.begin(), flags.allowedKeys.end()},
          .dropout = flags.dropoutProbability(),
          .mask = flags.scoreMask(),
          .score = flags.scoreForm(),
          .cache = flags.cachedPositions(),
          .page = flags.pagePositions(),
          .residual = flags.residualType()};
}

}  // namespace

void Compilation::importModel(Phase first) {
  if (modelFlags.isGraphFile()) {
    importVariants(first);
    return;
  }
  std::error_code none;
  if (const std::filesystem::file_status status = std::filesystem::status(modelFlags.model, none);
      std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
      !std::filesystem::is_directory(status))
    throw Error::badInput(
        "{}: it is no regular file (a pipe, a device or a socket): write what it gives to a file",
        modelFlags.model);
  models::Request request = modelRequest(modelFlags);
  request.training = modelFlags.train;
  request.ragged = !modelFlags.ragged.empty();
  CapturedDiagnostics diagnostics(*context);
  models::Model model = models::build(request, *context);
  if (!model.module) throw diagnostics.error(ErrorKind::badInput, "the model could not be built");
  graphOf(*model.module);
  described = std::move(model.description);
  modelFlags.check(described.dtype);
  if (modelFlags.train && !described.isTrained)
    checkTrained(mlir::cast<GraphOp>(graphOf(*model.module)), described.name, modelFlags);
  imported.push_back({.rewrites = {}, .module = std::move(model.module)});
}

void Compilation::importTexts(const std::vector<VariantText> &texts, Phase first) {
  firstPhase = first;
  for (const VariantText &variant : texts) importText(variant);
  if (imported.empty()) throw Error::badInput("{}: holds no graph", modelFlags.model);
  priceTokens();
  noteBytes(Phase::import);
}

std::vector<VariantText> Compilation::importedTexts() const {
  std::vector<VariantText> texts;
  for (const Variant &variant : imported)
    texts.push_back(
        {.rewrites = variant.rewrites, .text = print(mlir::ModuleOp(variant.module.get()))});
  return texts;
}

namespace {

/// Erases ops that no result of the graph depends on, which kernels would compute for nobody;
/// returns what they are called.
std::vector<std::string> eraseUnread(mlir::Operation *graph) {
  std::vector<std::string> names;
  mlir::Block &body = graph->getRegion(0).front();
  for (mlir::Operation &op : llvm::make_early_inc_range(llvm::reverse(body))) {
    if (op.getNumResults() == 0 || !op.use_empty()) continue;
    const std::string name = writtenName(op.getResult(0));
    names.push_back(name.empty() ? op.getName().stripDialect().str() : name);
    op.erase();
  }
  std::ranges::reverse(names);
  return names;
}

}  // namespace

void Compilation::importText(const VariantText &variant) {
  models::Request request = modelRequest(modelFlags);
  request.text = variant.text;
  models::Model model = models::build(request, *context);
  mlir::Operation *graph = graphOf(*model.module);
  if (firstPhase == Phase::import) {
    if (const std::vector<std::string> unread = eraseUnread(graph); !unread.empty())
      printNote(
          fmt::format("not computed, since no result depends on it: {}", fmt::join(unread, ", ")));
    nameValues(graph);
  }
  if (imported.empty()) described = std::move(model.description);
  imported.push_back({.rewrites = variant.rewrites, .module = std::move(model.module)});
}

void Compilation::importVariants(Phase first) {
  const std::vector<VariantText> texts = splitVariants(readFile(modelFlags.model));
  std::vector<std::string> names;
  for (const VariantText &variant : texts) names.push_back(variantName(variant.rewrites));
  const bool several = texts.size() > 1, chosen = several && !choices.variant.empty();
  if (chosen && std::find(names.begin(), names.end(), choices.variant) == names.end())
    throw Error::badInput("{}: no variant '{}'{}", modelFlags.model, choices.variant,
                          nearestAndKnown(choices.variant, names));
  if (several && !chosen && first < Phase::attention)
    throw Error::badInput(
        "{}: holds {} variants ({}); name one with --variant, or go on with all by --start-from "
        "attention or fuse",
        modelFlags.model, texts.size(), fmt::join(names, ", "));
  for (size_t index = 0; index < texts.size(); ++index)
    if (!chosen || names[index] == choices.variant) importText(texts[index]);
  isVariantChosen = chosen;
}

}  // namespace weft::driver
