// Models decided part by part; see LayeredModel.h.
#include "tools/driver/LayeredModel.h"

#include "ir/LayerMarks.h"
#include "kernel/Error.h"
#include "kernel/LayerNames.h"
#include "passes/Describe.h"
#include "passes/Rewrites.h"
#include "passes/SavedTensors.h"
#include "passes/decide/LayeredDecision.h"
#include "passes/decide/Recomputations.h"
#include "passes/layers/Layers.h"
#include "tools/driver/LayeredTraining.h"

#include <algorithm>
#include <map>

namespace weft::driver {
namespace {

/// Choices that are made of one selection graph, each with what is nearest.
void checkChoices(const Compilation &compilation) {
  const ChoiceFlags &choices = compilation.choiceFlags();
  const std::string &model = compilation.description().name;
  const auto reject = [&](bool isAsked, const char *flag, const char *nearest) {
    if (isAsked)
      throw Error::unsupported(
          "{}: {} is not supported of several layers yet, which are decided one by one; nearest is "
          "{}",
          model, flag, nearest);
  };
  constexpr const char *oneLayer = "one layer, without --layers and --part model";
  reject(!choices.pins.empty(), "--pin", oneLayer);
  reject(!choices.fuse.empty(), "--fuse", oneLayer);
  reject(!choices.noFuse.empty(), "--no-fuse", oneLayer);
  reject(!choices.variant.empty(), "--variant", "--stacking, --attention or --norms");
  reject(choices.free, "--free", oneLayer);
  reject(choices.chunks > 1, "--chunks", "--attention fused, which stores no scores");
  reject(choices.pipeline.slices() != 1, "--pipeline", oneLayer);
  reject(choices.memoryTrade.share() > 0, "--memory-trade", oneLayer);
}

/// Fused candidates that have ops on both sides of an op.
size_t candidatesAcross(const FusionResult &fusions, size_t op) {
  return size_t(std::ranges::count_if(fusions.candidates, [&](const FusionCandidate &candidate) {
    return candidate.ops.front() < int(op) && candidate.ops.back() >= int(op);
  }));
}

struct Cut {
  size_t rotation = 0;  ///< ops of a layer that stand in front of the cut behind the layer before
  size_t lost = 0;      ///< fused candidates that it cuts
  std::string behind;   ///< the tensor that is computed last in front of it, without its layer
};

/// The cut that is chosen of the first layers (decision::chooseCut): no more tensors may cross it
/// than one beside the border needs.
Cut cutBetween(const Compilation &compilation, GraphOp graph, const LayerPositions &layers) {
  const size_t count = decision::layersToCompare(layers.begins.size());
  if (count < 2) return {};
  std::vector<size_t> borders = {layers.begins.front()};
  borders.push_back(count < layers.begins.size() ? layers.begins[count] : layers.end);
  std::vector<LayerPart> parts = cutGraph(graph, borders);
  mlir::OwningOpRef<mlir::ModuleOp> alone = std::move(parts[borders.front() == 0 ? 0 : 1].module);
  const Compilation neighbours(compilation, std::move(alone));
  GraphOp few = *neighbours.graph().getOps<GraphOp>().begin();
  const LayerPositions positions = layerPositions(few);
  const FusionResult fusions = neighbours.unchangedFusions();
  const std::vector<mlir::Operation *> ops = numberedOps(few);
  const size_t border = positions.begins[1];
  std::vector<decision::CutPlace> places;
  const size_t rotations = std::min(layers.commonPlaces(), positions.commonPlaces());
  for (size_t rotation = 0; rotation < rotations; ++rotation) {
    const Crossing crossing = crossingAt(few, border + rotation);
    places.push_back({.tensors = crossing.tensors,
                      .bytes = crossing.bytes,
                      .lost = candidatesAcross(fusions, border + rotation)});
  }
  const size_t rotation = decision::chooseCut(places, places.front().tensors);
  return {.rotation = rotation,
          .lost = places[rotation].lost,
          .behind = withoutLayers(writtenName(ops[border + rotation - 1]->getResult(0)))};
}

/// Where the parts of the whole end: around every layer, or, with a rotation, as far behind every
/// border. The last layer then goes with what follows it, of which the whole may return more.
std::vector<size_t> cutsOf(const LayerPositions &layers, size_t rotation) {
  std::vector<size_t> cuts;
  if (layers.begins.size() == 1) return cuts;  // nothing repeats, and a cut may lose kernels
  for (const size_t begin : layers.begins) cuts.push_back(begin + rotation);
  if (rotation == 0) cuts.push_back(layers.end);
  return cuts;
}

/// Of all parts the rewrites, once each, as one layer names them, without the sites that have them.
std::vector<Rewrite> rewritesOf(const std::vector<DecidedPart> &parts) {
  std::vector<Rewrite> all;
  for (const DecidedPart &part : parts)
    for (Rewrite rewrite : part.chosen().rewrites) {
      if (rewrite.kind == Rewrite::Kind::atSite) continue;
      rewrite.subject = withoutLayers(rewrite.subject);
      if (std::ranges::count(all, rewrite) == 0) all.push_back(rewrite);
    }
  return all;
}

std::string placed(const std::string &text, const DecidedPart::Place &place) {
  return placedText(text, place.arguments, place.shift);
}

FusionRecord placed(FusionRecord record, const DecidedPart::Place &place) {
  for (int &op : record.ops) op = int(place.ops.at(size_t(op)));
  for (std::string &name : record.opNames) name = placed(name, place);
  for (std::string &step : record.steps) step = placed(step, place);
  if (record.rejectedOp >= 0) record.rejectedOp = int(place.ops.at(size_t(record.rejectedOp)));
  record.detail = placed(record.detail, place);
  return record;
}

/// Candidates of the whole: every op alone, and the kernels that the parts' paths have. Records
/// stay with the parts: wherever one stands they are the same.
FusionResult joinedFusions(const std::vector<DecidedPart> &parts, size_t ops) {
  FusionResult result;
  for (size_t op = 0; op < ops; ++op)
    result.candidates.push_back({.ops = {int(op)}, .patterns = {}});
  for (const DecidedPart &part : parts) {
    const select::Problem &problem = part.decision.best().selection.problem();
    for (const DecidedPart::Place &place : part.places)
      for (const select::Step &step : part.decision.path().steps) {
        if (step.candidate < 0) continue;
        const select::Candidate &candidate = problem.candidates[size_t(step.candidate)];
        if (candidate.ops.size() == 1) continue;
        FusionCandidate shifted{.ops = candidate.ops, .patterns = candidate.proposal.patterns};
        for (int &op : shifted.ops) op = int(place.ops.at(size_t(op)));
        result.candidates.push_back(std::move(shifted));
      }
  }
  return result;
}

/// Kernels of a layer begin with its name, so that people tell equal ones of several layers apart.
void nameByLayer(select::Problem &problem) {
  for (select::Candidate &candidate : problem.candidates) {
    const int output = problem.opOutputs[size_t(candidate.ops.front())].front();
    const int64_t layer = problem.tensors[size_t(output)].layer;
    if (layer == 0) continue;
    candidate.name = layerPrefix(layer) + withoutLayers(candidate.name);
    candidate.kernel.name = candidate.name;
  }
}

std::string cutNote(const Cut &cut, size_t layers, const std::vector<DecidedPart> &parts,
                    bool isTrained) {
  size_t places = 0;
  for (const DecidedPart &part : parts) places += part.places.size();
  const std::string none = isTrained ? "no tensor inside of a fused candidate crosses a cut"
                                     : "no fused candidate crosses a cut",
                    lost = fmt::format("{} fused candidates that cross a cut are lost", cut.lost);
  return fmt::format("{} layers in {} parts, cut behind '{}', of which {} {} decided: {}", layers,
                     places, cut.behind, parts.size(), parts.size() == 1 ? "is" : "are",
                     cut.lost == 0 ? none : lost);
}

class LayeredDecision {
public:
  explicit LayeredDecision(const Compilation &compilation)
      : whole(compilation),
        graph(*compilation.graph().getOps<GraphOp>().begin()),
        layers(layerPositions(graph)) {}

  DecidedModel decide() {
    prepare();
    result.decision = valueOrThrow(decision::decideLayers(question()));
    return std::move(result);
  }

  std::vector<decision::FrontierPoint> points() {
    prepare();
    return valueOrThrow(decision::layeredPoints(question()));
  }

private:
  void prepare() {
    checkChoices(whole);
    if (whole.model().train) {
      CutTraining training = cutTrainingGraph(whole, layers);
      cut = {.lost = training.lost,
             .behind = fmt::format("{}' and '{}", training.behind, training.behindGradient)};
      addParts(std::move(training.parts));
    } else {
      cut = cutBetween(whole, graph, layers);
      addParts(cutGraph(graph, cutsOf(layers, cut.rotation)));
    }
    std::vector<const ProposedVariant *> all;
    for (DecidedPart &part : result.parts) {
      part.proposed = part.compilation->propose(Phase::import);
      for (const ProposedVariant &variant : part.proposed) all.push_back(&variant);
    }
    whole.checkChoicesHold(all);
    if (whole.model().train) sets = decision::recomputedSets(recomputableChains());
  }

  /// What any part could compute again, as one layer names it.
  std::vector<std::vector<std::string>> recomputableChains() const {
    std::vector<std::vector<std::string>> chains;
    for (const DecidedPart &part : result.parts)
      for (std::vector<std::string> chain : part.compilation->recomputableNames()) {
        for (std::string &name : chain) name = withoutLayers(name);
        if (std::ranges::find(chains, chain) == chains.end()) chains.push_back(std::move(chain));
      }
    return chains;
  }

  /// Of a set what a part could compute again. The last one is all that takes nothing more to be
  /// saved, chains that could not pay by themselves included.
  std::vector<std::string> namesOf(size_t set, size_t part) const {
    const Compilation &compilation = *result.parts[part].compilation;
    if (set == sets.size())
      return namesThatSaveMemory(*compilation.graph().getOps<GraphOp>().begin());
    std::vector<std::string> names;
    for (const std::vector<std::string> &chain : compilation.recomputableNames())
      for (const std::string &name : chain)
        if (std::ranges::find(sets[set], withoutLayers(name)) != sets[set].end() &&
            std::ranges::find(names, name) == names.end())
          names.push_back(name);
    return names;
  }

  /// One part for each distinct text, and for each place of the whole its part and results.
  void addParts(std::vector<LayerPart> parts) {
    std::map<std::string, size_t> known;
    for (LayerPart &part : parts) {
      const std::string text = shiftedText(
          part, [&](mlir::ModuleOp module) { return Compilation::print(module) + pinsOf(module); });
      const auto [found, isNew] = known.try_emplace(text, result.parts.size());
      if (isNew) {
        firstLayers.push_back(part.firstLayer);
        result.parts.emplace_back();
        result.parts.back().compilation =
            std::make_unique<Compilation>(whole, std::move(part.module));
      }
      placedParts.push_back({.part = found->second,
                             .shift = part.firstLayer - firstLayers[found->second],
                             .firstStream = part.firstStream,
                             .arguments = std::move(part.arguments),
                             .results = std::move(part.results)});
    }
  }

  /// What is asked of single sites of a part, by their names: parts that differ in it are several.
  std::string pinsOf(mlir::ModuleOp part) const {
    const ChoiceFlags &choices = whole.choiceFlags();
    std::string text;
    if (!choices.namesSites()) return text;
    const auto attentions = choices.attention.sites();
    const auto norms = choices.norms.sites();
    const auto stackings = choices.stacking.sites();
    const auto add = [&](const auto &pins, const std::string &name, int64_t layer) {
      if (const auto *pin = pinAt(pins, name, layer))
        text += fmt::format(" {}={}", name, spelled(pin->kind));
    };
    for (mlir::Operation *op : numberedOps(*part.getOps<GraphOp>().begin())) {
      const std::string name = writtenName(op->getResult(0));
      if (mlir::isa<SoftmaxOp>(op)) add(attentions, name, layerOf(op));
      else if (isNorm(op)) add(norms, name, layerOf(op));
      else if (mlir::isa<ContractOp>(op)) add(stackings, name, layerOf(op));
    }
    return text;
  }

  /// What the phase that decides asks of the parts and of the whole.
  decision::LayeredQuestion question() {
    return {.parts = result.parts.size(),
            .isTrained = whole.model().train,
            .choosesRecomputed = whole.model().choosesRecomputed(),
            .ask = [this](size_t part) { return questionOf(result.parts[part]); },
            .recomputedSets = sets.size() + 1,
            .namesOf = [this](size_t set, size_t part) { return namesOf(set, part); },
            .askRecomputing =
                [this](size_t part, const std::vector<std::string> &names) {
                  return recomputing(result.parts[part], names);
                },
            .take =
                [this](size_t part, decision::Decision decided) {
                  result.parts[part].decision = std::move(decided);
                },
            .join =
                [this] {
                  join();
                  return joinedQuestion();
                }};
  }

  static decision::Question questionOf(const DecidedPart &part) {
    return {.problem = part.compilation->problem(part.proposed),
            .options = part.compilation->options(part.proposed)};
  }

  static decision::Question recomputing(DecidedPart &part, const std::vector<std::string> &names) {
    part.proposed = names.empty() ? part.compilation->propose(Phase::import)
                                  : part.compilation->proposeRecomputed(names);
    decision::Question asked = questionOf(part);
    if (names.empty()) return asked;
    for (ProposedVariant &variant : part.proposed)
      variant.notes.push_back(fmt::format("--max-memory: computed again in the backward pass: {}",
                                          fmt::join(names, ", ")));
    return asked;
  }

  void join() {
    result.proposed.clear();
    for (DecidedPart &part : result.parts) part.places.clear();
    std::vector<JoinedPart> joined;
    for (const PlacedPart &place : placedParts)
      joined.push_back({.module = mlir::ModuleOp(result.parts[place.part].chosen().module.get()),
                        .arguments = place.arguments,
                        .results = place.results,
                        .shift = place.shift,
                        .firstStream = place.firstStream});
    std::vector<std::vector<size_t>> numbers;
    ProposedVariant variant;
    variant.module = joinGraphs(graph, joined, &numbers);
    for (size_t index = 0; index < placedParts.size(); ++index)
      result.parts[placedParts[index].part].places.push_back(
          {.ops = std::move(numbers[index]),
           .shift = placedParts[index].shift,
           .arguments = placedParts[index].arguments});
    GraphOp chosen = *variant.module->getOps<GraphOp>().begin();
    variant.fusions = joinedFusions(result.parts, numberedOps(chosen).size());
    variant.rewrites = rewritesOf(result.parts);
    variant.rewritesOfOp.resize(numberedOps(chosen).size());
    for (const DecidedPart &part : result.parts)
      for (const DecidedPart::Place &place : part.places)
        for (size_t op = 0; op < part.chosen().rewritesOfOp.size(); ++op)
          for (Rewrite rewrite : part.chosen().rewritesOfOp[op]) {
            rewrite.subject = placed(rewrite.subject, place);
            variant.rewritesOfOp.at(place.ops.at(op)).push_back(std::move(rewrite));
          }
    variant.counted = describeGraph(chosen).flow;
    for (const DecidedPart &part : result.parts) {
      for (const FusionRecord &record : part.chosen().stackings)
        variant.stackings.push_back(placed(record, part.places.front()));
      for (const FusionRecord &record : part.chosen().norms)
        variant.norms.push_back(placed(record, part.places.front()));
      for (const std::string &note : part.chosen().notes)
        variant.notes.push_back(placed(note, part.places.front()));
    }
    if (layers.begins.size() > 1)
      variant.notes.push_back(
          cutNote(cut, layers.begins.size(), result.parts, whole.model().train));
    result.proposed.push_back(std::move(variant));
  }

  decision::JoinedQuestion joinedQuestion() {
    result.options = whole.options(result.proposed);
    decision::JoinedQuestion asked{
        .problem = whole.problem(result.proposed), .options = result.options, .parts = {}};
    nameByLayer(asked.problem.variants.front().problem);
    std::vector<size_t> seen(result.parts.size(), 0);
    for (const PlacedPart &place : placedParts) {
      const DecidedPart &part = result.parts[place.part];
      const DecidedPart::Place &at = part.places[seen[place.part]++];
      asked.parts.push_back(
          {.decision = &part.decision, .ops = at.ops, .placedText = [&at](const std::string &text) {
             return placed(text, at);
           }});
    }
    return asked;
  }

  struct PlacedPart {
    size_t part = 0;
    int64_t shift = 0, firstStream = 0;
    std::vector<std::string> arguments, results;
  };

  const Compilation &whole;
  GraphOp graph;
  LayerPositions layers;
  Cut cut;
  std::vector<PlacedPart> placedParts;         ///< in the order of the whole
  std::vector<int64_t> firstLayers;            ///< of the distinct parts
  std::vector<std::vector<std::string>> sets;  ///< to be computed again, as one layer names them
  DecidedModel result;
};

}  // namespace

std::vector<decision::FrontierPoint> layeredPoints(const Compilation &compilation) {
  return LayeredDecision(compilation).points();
}

DecidedModel decideModel(const Compilation &compilation, Phase first,
                         const decision::Measure &measure, int plansToMeasure) {
  if (compilation.isLayered()) {
    if (measure)
      throw Error::unsupported(
          "{}: --measure compares plans of one selection; nearest is to measure one layer, without "
          "--layers and --part model",
          compilation.description().name);
    return LayeredDecision(compilation).decide();
  }
  DecidedModel result;
  result.proposed = compilation.propose(first);
  result.problem = compilation.problem(result.proposed);
  result.options = compilation.options(result.proposed);
  result.options.plansToMeasure = plansToMeasure;
  result.decision = valueOrThrow(decision::decide(result.problem, result.options, measure));
  return result;
}

}  // namespace weft::driver
