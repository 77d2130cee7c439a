// Import and proposals of one compilation; see Compilation.h.
#include "tools/driver/Compilation.h"

#include "ir/Weft.h"
#include "kernel/Error.h"
#include "kernel/LayerNames.h"
#include "kernel/Nearest.h"
#include "kernel/ReasonCodes.h"
#include "passes/CombineVariants.h"
#include "passes/Describe.h"
#include "passes/NameValues.h"
#include "passes/Rewrites.h"
#include "passes/SavedTensors.h"
#include "passes/account/Operators.h"
#include "passes/algebra/Projection.h"
#include "passes/attention/RecomposedSites.h"
#include "passes/configure/Families.h"
#include "passes/select/KernelSpaces.h"
#include "tools/driver/Console.h"
#include "tools/driver/Diagnostics.h"
#include "tools/driver/FamiliesLeftOut.h"
#include "tools/driver/ProfileModel.h"
#include "tools/driver/VariantFile.h"

#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <charconv>
#include <ranges>

namespace weft::driver {
namespace {

mlir::Operation *graphOf(mlir::ModuleOp module) {
  const auto graphs = module.getOps<GraphOp>();
  if (graphs.empty()) throw Error::badInput("the file holds no weft.graph");
  if (std::next(graphs.begin()) != graphs.end())
    throw Error::unsupported("the file holds more than one weft.graph; compile takes one");
  return *graphs.begin();
}

/// The op that a person means by its number ("7", "%7") or by the name it was written with; nothing
/// if the graph has none.
std::optional<int> resolveOp(const std::string &name, const std::vector<FlowOp> &ops) {
  const std::string digits = name.starts_with('%') ? name.substr(1) : name;
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool isNumber = error == std::errc() && end == digits.data() + digits.size();
  std::vector<int> found;
  for (const FlowOp &op : ops)
    if (isNumber ? op.number == number : op.label == name) found.push_back(op.number);
  if (found.size() > 1)
    throw Error::badInput("'{}' names {} ops (numbers {}); name one by its number", name,
                          found.size(), fmt::join(found, ", "));
  return found.empty() ? std::nullopt : std::optional(found.front());
}

std::vector<std::string> parametersOf(GraphOp graph) {
  std::vector<std::string> names;
  for (mlir::BlockArgument argument : graph.getBody().getArguments())
    if (graph.isParameter(argument.getArgNumber())) names.push_back(writtenName(argument));
  return names;
}

void keepVariant(std::vector<ProposedVariant> &variants, const std::string &name) {
  std::vector<std::string> names;
  for (const ProposedVariant &variant : variants) names.push_back(variant.name());
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw Error::badInput("no variant '{}'{}", name, nearestAndKnown(name, names));
  std::erase_if(variants, [&](const ProposedVariant &variant) { return variant.name() != name; });
}

}  // namespace

std::string ProposedVariant::name() const { return variantName(rewrites); }

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

Compilation::Compilation(ModelFlags model, ChoiceFlags choices, TargetFlags target)
    : modelFlags(std::move(model)),
      choices(std::move(choices)),
      targetFlags(std::move(target)),
      context(std::make_shared<mlir::MLIRContext>()) {
  this->choices.check();
  memory = this->choices.memoryOfSearch();
  modelFlags.check();
  prices = costModelOf(targetFlags);
  spaces = std::make_shared<select::SharedSpaces>(*prices);
  pricesKey = keyOfPrices(targetFlags, *prices);
  epilogueRejection = epilogueRejections(prices->device());
  prologueRejection = prologueRejections(prices->device());
  attentionRejection = attentionRejections(prices->device());
  attentionBackwardRejection = attentionBackwardRejections(prices->device());
  context->disableMultithreading();     // graphs are small; threads cost more than they give
  context->printOpOnDiagnostic(false);  // messages name places; the generic form names nothing
  context->loadDialect<WeftDialect>();
}

Compilation::Compilation(const Compilation &whole, mlir::OwningOpRef<mlir::ModuleOp> part)
    : modelFlags(whole.modelFlags),
      choices(whole.choices),
      memory(whole.memory),
      targetFlags(whole.targetFlags),
      unfilled(whole.unfilled),
      prices(whole.prices),
      spaces(whole.spaces),
      fill(whole.fill),
      tokens(whole.tokens),
      pricesKey(whole.pricesKey),
      epilogueRejection(whole.epilogueRejection),
      prologueRejection(whole.prologueRejection),
      attentionRejection(whole.attentionRejection),
      attentionBackwardRejection(whole.attentionBackwardRejection),
      context(whole.context),
      described(whole.described),
      isPart(true) {
  choices.chunks = 1;  // which are of one tensor of a whole plan
  imported.push_back({.rewrites = {}, .module = std::move(part)});
}

Compilation::~Compilation() = default;

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

PhaseBytes bytesAfter(Phase phase, mlir::Operation *graph, const MovedShare &share) {
  const Dataflow flow = describeGraph(graph).flow;
  const auto computes = [](const FlowOp &op) {
    return op.operatorClass != OperatorClass::movement;
  };
  return {.phase = std::string(nameOf(phase)),
          .ops = size_t(std::count_if(flow.ops.begin(), flow.ops.end(), computes)),
          .bytes = separateBytes(flow, share)};
}

}  // namespace

double Compilation::movedShare(const Kernel &kernel) const {
  if (!fill) return 1;
  const bool isLoop = kernel.operatorClass() != OperatorClass::contraction;
  const std::optional<Kernel> less = shortenedKernel(kernel, *fill, isLoop);
  return less ? double(less->necessaryBytes()) / double(kernel.necessaryBytes()) : 1;
}

double Compilation::movedShare(const Dataflow &flow, const std::vector<int> &ops) const {
  if (!fill || fill->isFull()) return 1;
  try {
    return movedShare(bindKernel(flow, ops).kernel);
  } catch (const Error &) {  // several axes of one operand are one: no such kernel
    return 1;
  }
}

PhaseBytes Compilation::bytesAfter(Phase phase, mlir::Operation *graph) const {
  return driver::bytesAfter(phase, graph, [&](const Dataflow &flow, const std::vector<int> &ops) {
    return movedShare(flow, ops);
  });
}

void Compilation::noteBytes(Phase phase) {
  importedBytes.push_back(bytesAfter(phase, graphOf(*imported.front().module)));
}

Account Compilation::account(const ProposedVariant &variant) const {
  mlir::Operation *graph = graphOf(mlir::ModuleOp(variant.module.get()));
  Account result{
      .flow = variant.counted, .phases = importedBytes, .fill = fill.value_or(ExpectedFill())};
  if (isLayered()) result.phases.push_back(bytesAfter(Phase::attention, graph));
  if (isLayered() || firstPhase > Phase::attention) return result;
  const ProposedVariant *nearest = nullptr;  // the variant before attention: of those whose
                                             // rewrites begin this one's, the longest
  std::vector<ProposedVariant> stacked;
  for (const Variant &one : imported)
    for (ProposedVariant &proposed :
         rewriteOne(one, choices, modelFlags.choosesRecomputed(), firstPhase, Phase::algebra))
      stacked.push_back(std::move(proposed));
  for (const ProposedVariant &proposed : stacked) {
    const auto &rewrites = proposed.rewrites;
    const bool begins = rewrites.size() <= variant.rewrites.size() &&
                        std::equal(rewrites.begin(), rewrites.end(), variant.rewrites.begin());
    if (begins && (!nearest || rewrites.size() > nearest->rewrites.size())) nearest = &proposed;
  }
  if (nearest)
    result.phases.push_back(
        bytesAfter(Phase::algebra, graphOf(mlir::ModuleOp(nearest->module.get()))));
  result.phases.push_back(bytesAfter(Phase::attention, graph));
  return result;
}

namespace {

/// A name that only layers have, with their prefix, is that of all layers.
std::vector<std::string> namesOfLayers(const std::vector<std::string> &names, GraphOp graph,
                                       int64_t layers) {
  std::set<std::string> known;
  for (mlir::Operation *op : numberedOps(graph)) known.insert(writtenName(op->getResult(0)));
  std::vector<std::string> all;
  for (const std::string &name : names) {
    const bool isOfLayers = !known.contains(name) && known.contains(layerPrefix(1) + name);
    if (!isOfLayers) all.push_back(name);
    for (int64_t layer = 1; isOfLayers && layer <= layers; ++layer)
      all.push_back(layerPrefix(layer) + name);
  }
  return all;
}

/// The arguments that tables of biases by distance are, by buckets or as they are; nothing where
/// one is computed.
std::optional<std::set<std::string>> argumentsOfTables(GraphOp graph) {
  std::set<std::string> names;
  for (RelativeBiasOp bias : graph.getBody().front().getOps<RelativeBiasOp>()) {
    mlir::Value table = bias.getTable();
    if (auto expanded = table.getDefiningOp<ExpandBucketsOp>()) table = expanded.getTable();
    if (!mlir::isa<mlir::BlockArgument>(table)) return std::nullopt;
    names.insert(writtenName(table));
  }
  return names;
}

/// Of a model whose tables of biases have no gradient: throws Error(unsupported) unless gradients
/// of something else are asked for by name. An optimizer asks for those of parameters.
void checkTrained(GraphOp graph, const std::string &model, const ModelFlags &flags) {
  const std::vector<std::string> &asked = flags.gradientsOf;
  const std::optional<std::set<std::string>> tables = argumentsOfTables(graph);
  if (!tables)
    throw Error::unsupported(
        "{}: --train: terms of scores by distance have no derivative by their tables, which the "
        "model computes; nearest is bert-base or transformer-decoder",
        model);
  const std::vector<std::string> wanted =
      asked.empty() && !flags.optimizer.empty() ? parametersOf(graph) : asked;
  if (!wanted.empty() &&
      std::ranges::none_of(wanted, [&](const std::string &name) { return tables->contains(name); }))
    return;
  std::vector<std::string> others;
  for (mlir::BlockArgument argument : graph.getBody().getArguments())
    if (const std::string name = writtenName(argument);
        mlir::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(argument.getType())) &&
        !tables->contains(name) &&
        (flags.optimizer.empty() || graph.isParameter(argument.getArgNumber())))
      others.push_back(name);
  throw Error::unsupported(
      "{}: --train: the gradient of '{}', the biases of scores by distance, is not written; all "
      "else "
      "trains beside it as it is: --gradients-of {}",
      model, fmt::join(*tables, "', '"), fmt::join(others, ","));
}

}  // namespace

void Compilation::differentiateImported() {
  CapturedDiagnostics diagnostics(*context);
  for (const Variant &variant : imported) {
    auto graph = mlir::cast<GraphOp>(graphOf(*variant.module));
    if (const auto tables = argumentsOfTables(graph); tables && !tables->empty())
      checkTrained(graph, described.name, modelFlags);
    DifferentiateOptions options{
        .withRespectTo = modelFlags.gradientsOf,
        .recompute = namesOfLayers(modelFlags.recomputedNames(), graph, described.layers),
        .scalesLoss = !modelFlags.optimizer.empty()};
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

/// Throws Error(badInput) for a pin of a site that is not among these names.
template <typename Choice>
void checkNamed(const char *flag, const char *what, const std::vector<SitePin<Choice>> &pins,
                const std::set<std::string> &names) {
  for (const SitePin<Choice> &pin : pins) {
    if (std::ranges::any_of(names, [&](const std::string &name) {
          return name == pin.site || withoutLayers(name) == pin.site;
        }))
      continue;
    const std::vector<std::string> known(names.begin(), names.end());
    throw Error::badInput("{} {}={}: the graph has no {} '{}'{}", flag, pin.site, spelled(pin.kind),
                          what, pin.site, nearestAndKnown(pin.site, known));
  }
}

}  // namespace

void Compilation::checkSites() const {
  if (!choices.namesSites() || firstPhase >= Phase::fuse) return;
  std::set<std::string> softmaxes, norms, projections;
  for (const Variant &variant : imported) {
    auto graph = mlir::cast<GraphOp>(graphOf(*variant.module));
    for (mlir::Operation *op : numberedOps(graph)) {
      const std::string name = writtenName(op->getResult(0));
      if (mlir::isa<SoftmaxOp>(op)) softmaxes.insert(name);
      if (isNorm(op)) norms.insert(name);
      if (auto contraction = mlir::dyn_cast<ContractOp>(op);
          contraction && weightOperandOf(contraction))
        projections.insert(name);
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

void Compilation::priceTokens() {
  OffsetsOp offsets;
  AppendOp append;
  graphOf(*imported.front().module)->walk([&](OffsetsOp op) { offsets = op; });
  graphOf(*imported.front().module)->walk([&](AppendOp op) { append = op; });
  if (!offsets && !append) {
    if (!choices.lengths.empty())
      throw Error::badInput(
          "--lengths {}: no argument of the graph counts tokens; --ragged AXIS packs them, --cache "
          "N reads those before from caches",
          choices.lengths);
    if (!choices.fill) return;
    fill = choices.fill;  // of an attention that reads a cache, without what appends to it
  } else if (offsets) {
    fill = choices.expectedFill(int64_t(offsets.getBound()),
                                extents(offsets.getLengths().getType())[0]);
    tokens = int64_t(offsets.getBound()) * extents(offsets.getLengths().getType())[0];
  } else {
    const size_t positions = size_t(append.getAxis());
    const int64_t pages = append.getTable() ? extents(append.getTable().getType())[1] : 1;
    fill = choices.expectedFill(extents(append.getCache().getType())[positions] * pages -
                                    extents(append.getTokens().getType())[positions],
                                elementsOf(append.getStarts().getType()));
  }
  unfilled = std::move(prices);
  prices = filledCostModel(*unfilled, *fill);
  spaces = std::make_shared<select::SharedSpaces>(*prices);
  if (!fill->isFull()) pricesKey = keyOfPrices(targetFlags, *prices);
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

void Compilation::importModel(Phase first) {
  if (modelFlags.model.ends_with(".mlir")) {
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
  const models::Request request{
      .model = modelFlags.model,
      .dims = modelFlags.dimensions(),
      .dtype = modelFlags.elementType(),
      .part = modelFlags.part,
      .layers = modelFlags.layerCount(),
      .allLayers = modelFlags.takesAllLayers(),
      .allowedKeys = {modelFlags.allowedKeys.begin(), modelFlags.allowedKeys.end()},
      .dropout = modelFlags.dropoutProbability(),
      .mask = modelFlags.scoreMask(),
      .score = modelFlags.scoreForm(),
      .training = modelFlags.train,
      .cache = modelFlags.cachedPositions(),
      .page = modelFlags.pagePositions(),
      .residual = modelFlags.residualType(),
      .ragged = !modelFlags.ragged.empty()};
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
  models::Model model =
      models::build({.model = modelFlags.model,
                     .dims = modelFlags.dimensions(),
                     .dtype = modelFlags.elementType(),
                     .text = variant.text,
                     .part = modelFlags.part,
                     .layers = modelFlags.layerCount(),
                     .allLayers = modelFlags.takesAllLayers(),
                     .allowedKeys = {modelFlags.allowedKeys.begin(), modelFlags.allowedKeys.end()},
                     .dropout = modelFlags.dropoutProbability(),
                     .mask = modelFlags.scoreMask(),
                     .score = modelFlags.scoreForm()},
                    *context);
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

std::vector<ProposedVariant> Compilation::rewriteOne(const Variant &variant,
                                                     const ChoiceFlags &asked,
                                                     bool choosesRecomputed, Phase first,
                                                     Phase last, bool inParts) const {
  std::vector<ProposedVariant> result;
  if (first >= Phase::fuse || last < Phase::algebra) {
    ProposedVariant whole;
    whole.rewrites = variant.rewrites;
    whole.module = variant.module.get().clone();
    if (first < Phase::configure) detachFusions(graphOf(*whole.module));
    result.push_back(std::move(whole));
    return result;
  }
  VariantOptions options{.attention = asked.attention.value(),
                         .norms = asked.norms.value(),
                         .stacking = asked.stacking.value()};
  options.subVectors = asked.subVectors();
  options.attentionAt = asked.attention.sites();
  options.normsAt = asked.norms.sites();
  options.stackingAt = asked.stacking.sites();
  const bool asksFused = asked.attention.isAnywhere(AttentionChoice::fused);
  if (asksFused && asked.chunks > 1)
    throw Error::unsupported(
        "--attention fused: --chunks {} asks for stored scores, of which a fused attention has "
        "none; the nearest alternative is --chunks 1, or --attention decomposed",
        asked.chunks);
  if (asksFused && asked.slices() > 1)
    throw Error::unsupported(
        "--attention fused: --pipeline {} asks for kernels around stored scores, of which a fused "
        "attention has none; the nearest alternative is --pipeline auto, or --attention unfused",
        asked.pipeline);
  // Chunks and slices are of stored scores: whoever asks for a number of them asks for a plan that
  // has some.
  options.canFuseAttention = asked.chunks <= 1 && asked.slices() <= 1 &&
                             offersFamilyWith(&Family::takesAttention, prices->device());
  options.canFuseAttentionBackward = bool(attentionBackwardRejection);
  options.canTurnBehindGemm = offersFamilyWith(&Family::turnsPairs, prices->device());
  options.recompute = choosesRecomputed ? RecomputeChoice::automatic : RecomputeChoice::none;
  // Weights that change every step are not packed at load: to stack them is a copy a step.
  if (!modelFlags.optimizer.empty() && options.stacking == StackingChoice::automatic)
    options.stacking = StackingChoice::separate;
  options.most = memory.mostVariants(size_t(
      std::ranges::distance(graphOf(mlir::ModuleOp(variant.module.get()))->getRegion(0).front())));
  if (last < Phase::attention) {
    options.attention = AttentionChoice::unfused, options.norms = NormChoice::fused;
    options.attentionAt.clear(), options.normsAt.clear();
  }
  if (first >= Phase::attention) {
    options.recompute = RecomputeChoice::none;
    options.stacking = StackingChoice::separate;
    options.stackingAt.clear();
  }
  if (inParts) options.partOfOp = [this](mlir::ModuleOp module) { return partsOfOps(module); };
  for (Variant &rewritten : proposeVariants(*variant.module, options)) {
    ProposedVariant proposed;
    proposed.projectionOfPart = std::move(rewritten.projectionOfPart);
    proposed.rewrites = variant.rewrites;
    proposed.rewrites.insert(proposed.rewrites.end(), rewritten.rewrites.begin(),
                             rewritten.rewrites.end());
    proposed.module = std::move(rewritten.module);
    proposed.rewriteOfOp = std::move(rewritten.rewriteOfOp);
    proposed.leftOut = rewritten.leftOut;
    proposed.stackings = std::move(rewritten.stackings);
    for (const FusionRecord &record : rewritten.norms)
      if (!record.accepted)
        proposed.notes.push_back(
            fmt::format("norm {} stays whole: {}", record.opNames.front(), describe(record)));
    proposed.norms = std::move(rewritten.norms);
    std::ranges::move(rewritten.unfused, std::back_inserter(proposed.notes));
    result.push_back(std::move(proposed));
  }
  return result;
}

std::vector<ProposedVariant> Compilation::rewrite(Phase first, Phase last) const {
  std::vector<ProposedVariant> result = rewriteAll(first, last, false);
  if (!choices.variant.empty() && !isVariantChosen) keepVariant(result, choices.variant);
  return result;
}

std::vector<ProposedVariant> Compilation::rewriteAll(Phase first, Phase last, bool inParts) const {
  if (isLayered())
    throw Error::unsupported(
        "{}: several layers are decided one by one, and their whole graph is not rewritten or "
        "searched; nearest is one layer, without --layers and --part model",
        described.name);
  std::vector<ProposedVariant> result;
  CapturedDiagnostics diagnostics(*context);
  for (const Variant &variant : imported) {
    if (!graphOf(*variant.module)->getRegion(0).getOps<KernelOp>().empty())
      throw Error::badInput(
          "{}: its kernels are chosen already (weft.kernel); go on from the graph before "
          "selection, or "
          "from the artifact with weft emit",
          modelFlags.model);
    for (ProposedVariant &proposed :
         rewriteOne(variant, choices, modelFlags.choosesRecomputed(), first, last, inParts))
      result.push_back(std::move(proposed));
  }
  if (result.empty())
    throw diagnostics.error(
        ErrorKind::unsupported,
        fmt::format("no variant of the graph has --attention {} and --stacking {}",
                    choices.attention.text, choices.stacking.text));
  if (!isPart && first < Phase::attention && last >= Phase::attention) {
    std::vector<const ProposedVariant *> all;
    for (const ProposedVariant &variant : result) all.push_back(&variant);
    checkChoicesHold(all);
  }
  return result;
}

void Compilation::checkChoicesHold(const std::vector<const ProposedVariant *> &rewritten) const {
  const auto has = [&](Rewrite::Kind kind) {
    return std::ranges::any_of(rewritten, [&](const ProposedVariant *variant) {
      return std::ranges::count(variant->rewrites, kind, &Rewrite::kind) > 0;
    });
  };
  const auto reasonOf = [&](const std::vector<FusionRecord> ProposedVariant::*records,
                            std::string_view otherwise) {
    for (const ProposedVariant *variant : rewritten)
      for (const FusionRecord &record : variant->*records)
        if (!record.accepted) return describe(record);
    return std::string(otherwise);
  };
  const StackingChoice stacking = choices.stacking.value();
  if ((stacking == StackingChoice::two || stacking == StackingChoice::three) &&
      !has(Rewrite::Kind::stack) && !has(Rewrite::Kind::stackInputGradients))
    throw Error::unsupported(
        "--stacking {}: no projections can be stacked: {}; nearest is --stacking auto",
        choices.stacking.text,
        reasonOf(&ProposedVariant::stackings, "no two contractions of parameters read one tensor"));
  const NormChoice norms = choices.norms.value();
  // In a graph that trains norms stay whole, each with a note.
  const bool isDifferentiated =
      modelFlags.train || graphOf(*imported.front().module)->hasAttr(savedName);
  if (!isDifferentiated && (norms == NormChoice::decomposed || norms == NormChoice::deferred) &&
      !has(norms == NormChoice::decomposed ? Rewrite::Kind::decomposeNorms
                                           : Rewrite::Kind::deferNorms))
    throw Error::unsupported(
        "--norms {}: no norm can be {}: {}; nearest is --norms auto", choices.norms.text,
        choices.norms.text,
        reasonOf(&ProposedVariant::norms, norms == NormChoice::deferred
                                              ? "no contraction reads an RMS norm along its rows"
                                              : "the graph has none"));
}

FuseOptions Compilation::fuseOptions(ProposedVariant &variant, size_t variants,
                                     std::vector<std::string> &missing) const {
  const DescribedOps described = describeGraph(graphOf(*variant.module));
  const auto resolve = [&](const std::vector<OpPair> &pairs, std::set<std::pair<int, int>> &into) {
    for (const auto &[first, second] : pairs) {
      const std::optional<int> a = resolveOp(first, described.flow.ops),
                               b = resolveOp(second, described.flow.ops);
      if (!a) missing.push_back(first);
      if (!b) missing.push_back(second);
      if (a && b) into.insert(std::minmax(*a, *b));
    }
  };
  resolve(choices.notFused(), variant.forbidden);
  missing.clear();  // a graph without the op does not fuse it
  resolve(choices.fused(), variant.forced);
  const FuseOptions unlimited;
  return {.rules = choices.fuseRules.value(),
          .forced = variant.forced,
          .forbidden = variant.forbidden,
          .maxCandidates = std::min(unlimited.maxCandidates, memory.mostCandidates(variants)),
          .maxRecordBytes = memory.bytesOfRecords(variants),
          .epilogueRejection = epilogueRejection,
          .prologueRejection = prologueRejection,
          .attentionRejection = attentionRejection,
          .attentionBackwardRejection = attentionBackwardRejection};
}

FusionResult Compilation::unchangedFusions() const {
  ProposedVariant variant;
  variant.module = imported.front().module.get().clone();
  std::vector<std::string> missing;
  const FuseOptions options = fuseOptions(variant, 1, missing);
  return proposeFusions(graphOf(*variant.module), options);
}

namespace {

bool holdsBoth(const std::vector<int> &ops, const std::pair<int, int> &pair) {
  const auto holds = [&](int op) { return std::find(ops.begin(), ops.end(), op) != ops.end(); };
  return holds(pair.first) && holds(pair.second);
}

/// The attempt that says most about a pair: that of the two alone, else the smallest that held
/// both.
const FusionRecord *rejectionOf(const std::pair<int, int> &pair, const FusionResult &fusions) {
  const FusionRecord *best = nullptr;
  for (const FusionRecord &record : fusions.records)
    if (!record.accepted && holdsBoth(record.ops, pair) &&
        (!best || record.ops.size() < best->ops.size()))
      best = &record;
  return best;
}

/// Of a pair that no rule ever held at once, what was said against the ops between them: the
/// smallest attempt that held one of the two and an op between.
const FusionRecord *rejectionBetween(const std::pair<int, int> &pair, const FusionResult &fusions) {
  const FusionRecord *best = nullptr;
  for (const FusionRecord &record : fusions.records) {
    const auto holds = [&](int op) { return std::ranges::count(record.ops, op) > 0; };
    const bool isBetween = std::ranges::any_of(
        record.ops, [&](int op) { return op > pair.first && op < pair.second; });
    if (!record.accepted && isBetween && (holds(pair.first) || holds(pair.second)) &&
        (!best || record.ops.size() < best->ops.size()))
      best = &record;
  }
  return best;
}

/// "'score', 'biased'"
std::string labelsOf(const std::vector<int> &ops, const ProposedVariant &variant) {
  std::vector<std::string> labels;
  for (const int op : ops)
    for (const FlowOp &own : variant.counted.ops)
      if (own.number == op) labels.push_back(fmt::format("'{}'", own.label));
  return fmt::format("{}", fmt::join(labels, ", "));
}

/// Why a variant cannot fuse what --fuse names; empty if it can.
std::string rejectedPair(const ProposedVariant &variant) {
  for (const std::pair<int, int> &pair : variant.forced) {
    const auto &candidates = variant.fusions.candidates;
    if (std::any_of(candidates.begin(), candidates.end(), [&](const FusionCandidate &candidate) {
          return holdsBoth(candidate.ops, pair);
        }))
      continue;
    std::string reason = "no fusion pattern joins them";
    if (const FusionRecord *record = rejectionOf(pair, variant.fusions)) reason = describe(*record);
    else if (const FusionRecord *between = rejectionBetween(pair, variant.fusions))
      reason = fmt::format("{}: {}", labelsOf(between->ops, variant), describe(*between));
    return fmt::format("variant {}: ops {} are not fused: {}", variant.name(),
                       labelsOf({pair.first, pair.second}, variant), reason);
  }
  return "";
}

}  // namespace

namespace {

/// Why no kernel takes a fused attention of the variant: the limits of each family, else what the
/// rules say against its region; empty where one takes all of them.
std::string unfusedReason(const ProposedVariant &variant) {
  for (const FlowOp &op : variant.counted.ops) {
    if (op.kind != OpKind::onlineSoftmaxContract) continue;
    const auto &candidates = variant.fusions.candidates;
    if (std::ranges::any_of(candidates, [&](const FusionCandidate &candidate) {
          return candidate.ops.size() > 1 && std::ranges::count(candidate.ops, op.number) > 0;
        }))
      continue;
    const auto rejectedFor = [&](std::string_view code) {
      return std::ranges::find_if(variant.fusions.records, [&](const auto &one) {
        return !one.accepted && (code.empty() || one.code == code) &&
               std::ranges::count(one.ops, op.number) > 0;
      });
    };
    for (const std::string_view code :
         {reasons::attentionOff.code, reasons::attentionRegion.code, std::string_view()})
      if (const auto record = rejectedFor(code); record != variant.fusions.records.end())
        return fmt::format("'{}' fits no kernel: {}", op.label, describe(*record));
  }
  return "";
}

}  // namespace

namespace {

/// The softmax that a site is of: its scaling gives what it gave.
std::string softmaxOf(const RecomposedSite &site, const Dataflow &flow) {
  for (const FlowOp &op : flow.ops)
    if (op.number == site.scaling) return op.label;
  return site.name;
}

/// Forgets the sites whose ops no kernel takes together, with a note each. Returns the first reason
/// where none is left, or where all have to be; empty otherwise.
std::string leaveApart(ProposedVariant &variant, const std::vector<RecomposedSite> &sites,
                       bool areAllNamed) {
  std::string firstReason;
  bool isAnyLeft = false;
  for (const RecomposedSite &site : sites) {
    const std::set<std::pair<int, int>> others = std::exchange(variant.forced, {});
    std::string reason;
    for (const auto &pair : site.pairs()) {
      variant.forced = {pair};
      if (reason.empty()) reason = rejectedPair(variant);
    }
    variant.forced = others;
    isAnyLeft = isAnyLeft || reason.empty();
    if (reason.empty()) continue;
    for (const auto &pair : site.pairs()) variant.forced.erase(pair);
    variant.notes.push_back(fmt::format("'{}' is not recomposed: {}", site.name, reason));
    if (firstReason.empty()) firstReason = variant.notes.back();
  }
  const bool hasSoftmax =
      std::ranges::count(variant.counted.ops, OpKind::localSoftmax, &FlowOp::kind) > 0;
  if (sites.empty()) return hasSoftmax ? "no softmax is between two contractions" : "";
  return isAnyLeft && !areAllNamed ? "" : firstReason;
}

}  // namespace

std::vector<ProposedVariant> Compilation::propose(Phase first) const {
  const bool isNamed = !choices.variant.empty() && !isVariantChosen;
  std::vector<ProposedVariant> rewritten = rewriteAll(first, Phase::attention, true);
  if (isNamed &&
      std::ranges::find(rewritten, choices.variant, &ProposedVariant::name) != rewritten.end()) {
    keepVariant(rewritten, choices.variant);
    return withFusions(std::move(rewritten), first);
  }
  std::vector<ProposedVariant> variants = withFusions(std::move(rewritten), first);
  if (!addCombination(variants, first)) {
    rewritten = rewriteAll(first, Phase::attention, false);
    if (isNamed) keepVariant(rewritten, choices.variant);
    return withFusions(std::move(rewritten), first);
  }
  if (isNamed) keepVariant(variants, choices.variant);
  return variants;
}

std::vector<int> Compilation::partsOfOps(mlir::ModuleOp module) const {
  ProposedVariant variant;
  variant.module = module.clone();
  mlir::Operation *graph = graphOf(*variant.module);
  std::vector<std::string> missing;
  variant.fusions = proposeFusions(graph, fuseOptions(variant, 1, missing));
  const std::vector<int> ofProblem = select::partsOf(problemOf(variant), namesThatMayCross(graph));
  std::vector<int> result(numberedOps(graph).size(), 0);
  const Dataflow flow = describeGraph(graph).flow;
  for (size_t op = 0; op < ofProblem.size(); ++op)
    result[size_t(flow.ops[op].number)] = ofProblem[op];
  return result;
}

namespace {

/// Candidates of alternatives that lack a pinned tensor, where others of their site have it, have
/// no plan.
void dropLackingPinned(select::Problem &problem, const std::vector<decision::Pin> &pins) {
  const auto has = [&](const std::vector<int> &ops, const std::string &name) {
    return std::ranges::any_of(ops, [&](int op) {
      return std::ranges::any_of(problem.opOutputs[size_t(op)], [&](int tensor) {
        return problem.tensors[size_t(tensor)].name == name;
      });
    });
  };
  for (const decision::Pin &pin : pins)
    for (const std::vector<std::vector<int>> &alternatives : problem.sites) {
      if (std::ranges::none_of(alternatives, [&](const auto &ops) { return has(ops, pin.tensor); }))
        continue;
      for (const std::vector<int> &ops : alternatives)
        if (!has(ops, pin.tensor))
          std::erase_if(problem.candidates, [&](const select::Candidate &candidate) {
            return std::ranges::count(ops, candidate.ops.front()) > 0;
          });
    }
}

/// Pairs of ops of the variants, as numbers in the joint problem.
std::set<std::pair<int, int>> pairsIn(const select::JoinedVariants &joined,
                                      const std::vector<ProposedVariant> &variants,
                                      const std::set<std::pair<int, int>> ProposedVariant::*pairs) {
  std::set<std::pair<int, int>> result;
  for (size_t site = 0; site < joined.variantOf.size(); ++site)
    for (size_t one = 0; one < joined.variantOf[site].size(); ++one) {
      const size_t variant = joined.variantOf[site][one];
      const std::vector<int> &own = joined.opsOf[site][variant],
                             &joint = joined.problem.sites[site][one];
      for (const auto &[a, b] : variants[variant].*pairs) {
        const auto first = std::ranges::find(own, a), second = std::ranges::find(own, b);
        if (first != own.end() && second != own.end())
          result.insert({joint[size_t(first - own.begin())], joint[size_t(second - own.begin())]});
      }
    }
  return result;
}

}  // namespace

bool Compilation::addCombination(std::vector<ProposedVariant> &variants, Phase first) const {
  const std::vector<std::string> projections = variants.front().projectionOfPart;
  if (variants.size() < 2 || imported.size() > 1 ||
      graphOf(*variants.front().module)->hasAttr(savedName))
    return projections.empty();
  std::vector<select::Problem> own = problems(variants);
  std::vector<const select::Problem *> joinable;
  std::vector<std::set<std::string>> mayCross;
  for (size_t v = 0; v < variants.size(); ++v) {
    joinable.push_back(&own[v]);
    mayCross.push_back(namesThatMayCross(graphOf(*variants[v].module)));
  }
  std::optional<select::JoinedVariants> joined = select::joinVariants(joinable, mayCross);
  if (!joined) return projections.empty();
  std::set<int> sites;
  for (size_t op = 0; op < own.front().ops.size(); ++op)
    for (const int tensor : own.front().opOutputs[op])
      if (std::ranges::count(projections, own.front().tensors[size_t(tensor)].name) > 0)
        sites.insert(joined->siteOf[op]);
  if (sites.size() < projections.size()) return false;
  select::Options options;
  options.free = choices.free;
  options.softmax = choices.softmax.value();
  options.searchBytes = memory.bytesOfSearch(1);
  options.forceFused = pairsIn(*joined, variants, &ProposedVariant::forced);
  options.forbidFused = pairsIn(*joined, variants, &ProposedVariant::forbidden);
  // The price of a pin is against the best without it.
  std::vector<std::vector<decision::Pin>> questions{{}};
  if (!choices.pinned().empty()) questions.push_back(choices.pinned());
  std::vector<std::vector<size_t>> best;
  ProposedVariant &unchanged = variants.front();
  for (const std::vector<decision::Pin> &pins : questions) {
    select::Problem problem = joined->problem;
    decision::applyPins(problem, pins);
    dropLackingPinned(problem, pins);
    try {
      const select::Selection selection =
          select::selectAmongAlternatives(problem, *spaces, options);
      const double bound = selection.best().lowerBound;
      unchanged.boundOfCombinations =
          std::min(bound, unchanged.boundOfCombinations.value_or(bound));
      for (const std::string &cut : selection.statistics().searchCuts)
        unchanged.cutsOfCombinations.push_back(cut);
      const std::vector<size_t> chosen = select::plainest(*joined, selection);
      if (!select::variantWith(*joined, chosen) && std::ranges::count(best, chosen) == 0)
        best.push_back(chosen);
    } catch (const Error &error) {  // each variant says by itself what it lacks
      if (error.kind != ErrorKind::unsupported && error.kind != ErrorKind::strictMiss) throw;
    }
  }
  std::vector<ProposedVariant> added;
  for (const std::vector<size_t> &chosen : best)
    added.push_back(combined(variants, *joined, chosen));
  if (!added.empty())
    for (ProposedVariant &variant : withFusions(std::move(added), first))
      variants.push_back(std::move(variant));
  return true;
}

ProposedVariant Compilation::combined(const std::vector<ProposedVariant> &variants,
                                      const select::JoinedVariants &joined,
                                      const std::vector<size_t> &variantOfSite) const {
  std::vector<mlir::ModuleOp> modules;
  for (const ProposedVariant &variant : variants)
    modules.push_back(mlir::ModuleOp(variant.module.get()));
  CombinedGraph graph = combineVariants(modules, joined, variantOfSite);
  ProposedVariant result;
  result.module = std::move(graph.module);
  result.stackings = variants.front().stackings;
  result.leftOut = variants.front().leftOut;
  const std::vector<mlir::Operation *> ops = numberedOps(graphOf(*result.module));
  std::map<std::string, std::string> lastOf;  // by rewrite: what the last op of its writes
  for (size_t op = 0; op < graph.origins.size(); ++op) {
    const auto &[variant, number] = graph.origins[op];
    const std::vector<std::string> &rewrites = variants[variant].rewriteOfOp;
    result.rewriteOfOp.push_back(number < rewrites.size() ? rewrites[number] : "");
    if (!result.rewriteOfOp.back().empty())
      lastOf[result.rewriteOfOp.back()] = writtenName(ops[op]->getResult(0));
  }
  // A rewrite that a variant makes everywhere is named with the last tensor that it writes here.
  const auto isPresent = [&](const Rewrite &rewrite, const ProposedVariant &variant) {
    const std::string own = text(rewrite);
    if (lastOf.contains(own)) return true;
    if (rewrite.kind == Rewrite::Kind::recompute) {
      for (const auto &[made, name] : lastOf)
        if (fmt::format("+{}+", made).find("+" + own + "+") != std::string::npos) return true;
      return false;
    }
    if (rewrite.kind != Rewrite::Kind::other) return false;
    for (const Rewrite &other : variant.rewrites)
      if (other.kind == Rewrite::Kind::stack && own.ends_with(other.subject) &&
          lastOf.contains(text(other)))
        return true;
    return false;
  };
  std::set<size_t> used(variantOfSite.begin(), variantOfSite.end());
  for (const size_t v : used) {
    for (const Rewrite &rewrite : variants[v].rewrites) {
      if (std::ranges::count(result.rewrites, rewrite) > 0) continue;
      const bool isImported = std::ranges::count(imported.front().rewrites, rewrite) > 0;
      if (!isImported && !isPresent(rewrite, variants[v])) continue;
      result.rewrites.push_back(rewrite);
      const bool isWhole = std::ranges::all_of(used, [&](size_t other) {
        return std::ranges::count(variants[other].rewrites, rewrite) > 0;
      });
      if (!isImported && !isWhole && rewrite.kind != Rewrite::Kind::stack &&
          rewrite.kind != Rewrite::Kind::other && !lastOf[text(rewrite)].empty())
        result.rewrites.push_back(forSite(lastOf[text(rewrite)]));
    }
    for (const std::string &note : variants[v].notes)
      if (std::ranges::count(result.notes, note) == 0) result.notes.push_back(note);
    if (result.norms.empty()) result.norms = variants[v].norms;
  }
  return result;
}

std::vector<std::vector<std::string>> Compilation::recomputableNames() const {
  if (imported.size() != 1) return {};
  return weft::recomputableNames(mlir::cast<GraphOp>(graphOf(*imported.front().module)));
}

std::vector<ProposedVariant> Compilation::proposeRecomputed(
    const std::vector<std::string> &names) const {
  CapturedDiagnostics diagnostics(*context);
  const Variant again{.rewrites = imported.front().rewrites,
                      .module = mlir::OwningOpRef<mlir::ModuleOp>(
                          mlir::ModuleOp(imported.front().module.get()).clone())};
  if (mlir::failed(recompute(mlir::cast<GraphOp>(graphOf(*again.module)), names)))
    throw diagnostics.error(ErrorKind::badInput, "recomputed names");
  ChoiceFlags asked = choices;
  if (asked.stacking == StackingChoice::automatic) asked.stacking.setOthers(StackingChoice::three);
  return withFusions(rewriteOne(again, asked, false, Phase::algebra, Phase::attention),
                     Phase::algebra);
}

std::vector<ProposedVariant> Compilation::withFusions(std::vector<ProposedVariant> rewritten,
                                                      Phase first) const {
  std::vector<ProposedVariant> kept;
  std::vector<std::string> missingSomewhere, rejected, apart;
  std::set<std::string> labels;  // of the ops of all variants
  for (ProposedVariant &variant : rewritten) {
    std::vector<std::string> missing;
    variant.counted = describeGraph(graphOf(*variant.module)).flow;
    for (const FlowOp &op : variant.counted.ops) labels.insert(op.label);
    std::vector<RecomposedSite> recomposed;
    if (choices.attention.isAnywhere(AttentionChoice::recomposed))
      recomposed = recomposedSites(variant.counted);
    if (const auto pins = choices.attention.sites();
        choices.attention != AttentionChoice::recomposed)
      std::erase_if(recomposed, [&](const RecomposedSite &site) {
        const auto *pin = pinAt(pins, softmaxOf(site, variant.counted));
        return !pin || pin->kind != AttentionChoice::recomposed;
      });
    for (const RecomposedSite &site : recomposed)
      for (const auto &pair : site.pairs()) variant.forced.insert(pair);
    const FuseOptions options = fuseOptions(variant, rewritten.size(), missing);
    if (!missing.empty()) {
      missingSomewhere = missing;
      continue;
    }
    mlir::Operation *graph = graphOf(*variant.module);
    if (first <= Phase::fuse && options.rules == FuseRules::standard)
      for (const ImpliedMask &mask : leaveOutImpliedMasks(mlir::cast<GraphOp>(graph)))
        variant.notes.push_back(fmt::format(
            "{} draws no mask: {} reads {}, which is zero where it would drop",
            writtenName(mask.scaled), writtenName(mask.reader), writtenName(mask.dropped)));
    variant.fusions = first >= Phase::configure ? attachedFusions(graph, options)
                                                : proposeFusions(graph, options);
    detachFusions(graph);
    recordFamiliesLeftOut(variant, graph, costModel().device());
    if (const std::string reason = unfusedReason(variant);
        choices.attention == AttentionChoice::fused && !reason.empty())
      throw Error::unsupported(
          "--attention fused: {}; the nearest alternative is --attention decomposed, --attention "
          "auto prices all forms",
          reason);
    if (choices.attention.isAnywhere(AttentionChoice::recomposed) && first < Phase::configure)
      if (std::string reason =
              leaveApart(variant, recomposed, choices.attention != AttentionChoice::recomposed);
          !reason.empty()) {
        apart.push_back(std::move(reason));
        continue;
      }
    if (const std::string reason = rejectedPair(variant); !reason.empty())
      rejected.push_back(reason);
    else kept.push_back(std::move(variant));
  }
  const std::vector<std::string> names(labels.begin(), labels.end());
  if (kept.empty() && rejected.empty() && !apart.empty())
    throw Error::unsupported(
        "--attention {}: {}; the nearest alternative is --attention decomposed",
        choices.attention.text, apart.front());
  if (kept.empty() && !rejected.empty())
    throw Error::unsupported("--fuse {}: {}", fmt::join(choices.fuse, " --fuse "),
                             fmt::join(rejected, "\n  "));
  if (kept.empty())
    throw Error::badInput("--fuse: no variant of the graph has an op '{}'{}",
                          missingSomewhere.front(),
                          nearestAndKnown(missingSomewhere.front(), names));
  for (const auto &[first, second] : choices.notFused())
    for (const std::string &name : {first, second})
      if (std::none_of(kept.begin(), kept.end(), [&](ProposedVariant &variant) {
            return resolveOp(name, describeGraph(graphOf(*variant.module)).flow.ops).has_value();
          }))
        throw Error::badInput("--no-fuse: no variant of the graph has an op '{}'{}", name,
                              nearestAndKnown(name, names));
  return kept;
}

select::Problem Compilation::problemOf(const ProposedVariant &variant) const {
  return toProblem(graphOf(mlir::ModuleOp(variant.module.get())), variant.rewrites,
                   variant.fusions);
}

bool Compilation::variantHasTensor(const ProposedVariant &variant, const std::string &name) const {
  const std::vector<select::Tensor> tensors = problemOf(variant).tensors;
  return std::ranges::find(tensors, name, &select::Tensor::name) != tensors.end();
}

std::vector<select::Problem> Compilation::everyProblem() const {
  ChoiceFlags all = choices;
  all.attention = AttentionChoice::automatic;
  all.norms = NormChoice::automatic;
  all.stacking = StackingChoice::automatic;
  std::vector<select::Problem> result;
  for (const Variant &variant : imported)
    for (const ProposedVariant &proposed :
         rewriteOne(variant, all, modelFlags.choosesRecomputed(), firstPhase, Phase::attention))
      result.push_back(problemOf(proposed));
  return result;
}

std::vector<select::Problem> Compilation::problems(
    const std::vector<ProposedVariant> &proposed) const {
  std::vector<select::Problem> result;
  for (const ProposedVariant &variant : proposed) {
    result.push_back(problemOf(variant));
    for (select::Tensor &tensor : result.back().tensors)
      if (choices.free && !tensor.isParameter) tensor.pinned.reset();  // the caller's order
  }
  return result;
}

decision::PlanContext Compilation::planContext() const {
  return {.prices = prices.get(),
          .free = choices.free,
          .model = described.name,
          .dims = described.dims,
          .dtype = elementType(),
          .spaces = spaces};
}

decision::Problem Compilation::problem(const std::vector<ProposedVariant> &proposed) const {
  decision::Problem result{
      .variants = {},
      .context = planContext(),
      .leftOut = proposed.empty() ? 0 : proposed.front().leftOut,
      .boundOfCombinations = proposed.empty() ? std::nullopt : proposed.front().boundOfCombinations,
      .cutsOfCombinations =
          proposed.empty() ? std::vector<std::string>() : proposed.front().cutsOfCombinations,
      .everyVariant = [this] { return everyProblem(); }};
  std::vector<select::Problem> problems = this->problems(proposed);
  for (size_t index = 0; index < proposed.size(); ++index)
    result.variants.push_back({.problem = std::move(problems[index]),
                               .notes = proposed[index].notes,
                               .forced = proposed[index].forced,
                               .forbidden = proposed[index].forbidden,
                               .isCut = proposed[index].fusions.isCut});
  return result;
}

namespace {

constexpr const char *wholePlan = "plan";

}  // namespace

/// Known for a graph, its choices and its prices (KnownTimes.h). Variants and fusions are functions
/// of the graph, of the rewrites that name a variant and of the choices, so they need not be
/// printed.
Compilation::KnownWithoutPins Compilation::knownWithoutPins(
    const std::vector<ProposedVariant> &proposed) const {
  KnownTimes known(pricesKey);
  for (const Variant &variant : imported) known.add(print(*variant.module));
  for (const ProposedVariant &variant : proposed) known.add(variant.name());
  if (choices.namesSites())
    known.add(
        fmt::format("{} {} {}", choices.attention.text, choices.norms.text, choices.stacking.text));
  known.add(fmt::format("{} {} {} {} {} {} {}", nameOf(std::max(firstPhase, Phase::algebra)),
                        choices.free, choices.softmax.text, choices.fuseRules.text,
                        fmt::join(choices.fuse, " "), fmt::join(choices.noFuse, " "),
                        choices.searchMemory));
  KnownTimes ofPlan = known;
  ofPlan.add(fmt::format("{} {} {} {} {} {} {}", wholePlan, choices.maxMemory,
                         choices.memoryTradeShare(), choices.chunks, choices.concurrent.text,
                         choices.pipeline, choices.alternatives));
  return {.variants = std::move(known), .plan = std::move(ofPlan)};
}

decision::Options Compilation::options(const std::vector<ProposedVariant> &proposed) const {
  const auto known = std::make_shared<KnownWithoutPins>(knownWithoutPins(proposed));
  return {.pins = choices.pinned(),
          .alternatives = choices.alternatives,
          .chunks = choices.chunks,
          .slices = choices.slices(),
          .maxMemory = choices.maxMemoryBytes(),
          .maxMemoryText = choices.maxMemory,
          .memoryTrade = choices.memoryTradeShare(),
          .concurrent = choices.concurrent.value(),
          .softmax = choices.softmax.value(),
          .earlyStarts = choices.earlyStarts(
              targetFlags.target.empty() ? prices->device().architecture : targetFlags.target),
          .searchMemory = memory,
          .strict = targetFlags.strict,
          .recall = [known]() -> std::optional<decision::WithoutPins> {
            const auto times = known->variants.find(), plan = known->plan.find();
            if (!times || !plan || !plan->contains(wholePlan)) return std::nullopt;
            return decision::WithoutPins{.times = *times, .seconds = plan->at(wholePlan)};
          },
          .remember =
              [known](const decision::WithoutPins &found) {
                known->variants.store(found.times);
                known->plan.store({{wholePlan, found.seconds}});
              }};
}

decision::Decision Compilation::decide(const std::vector<ProposedVariant> &proposed,
                                       const decision::Measure &measure, int plansToMeasure) const {
  decision::Options asked = options(proposed);
  asked.plansToMeasure = plansToMeasure;
  return valueOrThrow(decision::decide(problem(proposed), asked, measure));
}

std::string Compilation::materialized(const std::vector<ProposedVariant> &proposed,
                                      const decision::Decision &decision) const {
  CapturedDiagnostics diagnostics(*context);
  const decision::SelectedVariant &variant = decision.best();
  const auto module = materialize(mlir::ModuleOp(proposed[variant.index].module.get()),
                                  variant.selection.problem(), decision.path());
  if (!module)
    throw diagnostics.error(ErrorKind::checkFailed, "the plan could not be written into the graph");
  return print(*module);
}

std::string Compilation::print(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  text += '\n';
  return text;
}

std::string Compilation::printWithFusions(const ProposedVariant &variant) {
  mlir::OwningOpRef<mlir::ModuleOp> module = variant.module.get().clone();
  attachFusions(graphOf(*module), variant.fusions);
  return print(*module);
}

}  // namespace weft::driver
