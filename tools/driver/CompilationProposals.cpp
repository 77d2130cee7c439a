// Rewritten graphs of a compilation and the fusions proposed for each; see Compilation.h.
#include "tools/driver/Compilation.h"

#include "codegen/targets/Targets.h"
#include "ir/Weft.h"
#include "kernel/Error.h"
#include "kernel/Nearest.h"
#include "kernel/RejectedAttention.h"
#include "passes/Describe.h"
#include "passes/Rewrites.h"
#include "passes/SavedTensors.h"
#include "passes/attention/RecomposedSites.h"
#include "passes/configure/Families.h"
#include "passes/configure/NearestHeadDim.h"
#include "passes/decide/Recomputations.h"
#include "passes/select/GraphParts.h"
#include "tools/driver/Diagnostics.h"
#include "tools/driver/FamiliesLeftOut.h"

#include <algorithm>
#include <charconv>

namespace weft::driver {
namespace {

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

void keepVariant(std::vector<ProposedVariant> &variants, const std::string &name) {
  std::vector<std::string> names;
  for (const ProposedVariant &variant : variants) names.push_back(variant.name());
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw Error::badInput("no variant '{}'{}", name, nearestAndKnown(name, names));
  std::erase_if(variants, [&](const ProposedVariant &variant) { return variant.name() != name; });
}

/// "no kernel family of sm_75 takes a fused attention, which needs sm_80 or later".
std::string noFusedAttention(Device device) {
  std::string reason =
      fmt::format("no kernel family of {} takes a fused attention", device.architecture);
  for (const std::string_view target : codegen::targets()) {
    device.architecture = target;
    if (offersFamilyWith(&Family::takesAttention, device))
      return fmt::format("{}, which needs {} or later", reason, target);
  }
  return reason;
}

}  // namespace

std::vector<ProposedVariant> Compilation::rewriteOne(const Variant &variant,
                                                     const ChoiceFlags &asked, bool isRecomputed,
                                                     Phase first, Phase last, bool inParts) const {
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
  options.subVectors = asked.subVector.lengths();
  options.attentionAt = asked.attention.sites();
  options.normsAt = asked.norms.sites();
  options.stackingAt = asked.stacking.sites();
  const bool asksFused = asked.attention.isAnywhere(AttentionChoice::fused);
  if (asksFused && asked.chunks > 1)
    throw Error::unsupported(
        "--attention fused: --chunks {} asks for stored scores, of which a fused attention has "
        "none; the nearest alternative is --chunks 1, or --attention decomposed",
        asked.chunks);
  if (asksFused && asked.pipeline.slices() > 1)
    throw Error::unsupported(
        "--attention fused: --pipeline {} asks for kernels around stored scores, of which a fused "
        "attention has none; the nearest alternative is --pipeline auto, or --attention unfused",
        asked.pipeline.text);
  // Chunks and slices are of stored scores: whoever asks for a number of them asks for a plan that
  // has some.
  options.canFuseAttention = asked.chunks <= 1 && asked.pipeline.slices() <= 1 &&
                             offersFamilyWith(&Family::takesAttention, costModel().device());
  options.noFusedAttention = noFusedAttention(costModel().device());
  options.canFuseAttentionBackward = bool(attentionBackwardRejection);
  options.canRotateBehindGemm = offersFamilyWith(&Family::rotatesPairs, costModel().device());
  options.recompute =
      modelFlags.choosesRecomputed() ? RecomputeChoice::automatic : RecomputeChoice::none;
  options.isRecomputed = isRecomputed;
  options.updatesWeights = !modelFlags.optimizer.empty();
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
    proposed.rewritesOfOp = std::move(rewritten.rewritesOfOp);
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
    for (ProposedVariant &proposed : rewriteOne(variant, choices, false, first, last, inParts))
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
  if ((norms == NormChoice::decomposed || norms == NormChoice::deferred) &&
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

/// An attention of a variant that no kernel takes fused.
struct UnfusedAttention {
  std::string label;           ///< of its fold
  const FusionRecord *record;  ///< the limits of each family, else what the rules say
};

/// The first of a variant; nothing where kernels take all of them.
std::optional<UnfusedAttention> unfusedAttention(const ProposedVariant &variant) {
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
        return UnfusedAttention{.label = op.label, .record = &*record};
  }
  return std::nullopt;
}

/// The head dim with which a family would take the ops of a record; empty where it is not at fault.
std::string nearestHeadDimOf(const FusionRecord &record, const Dataflow &flow,
                             const std::function<std::string(const Kernel &)> &rejection) {
  if (record.code != reasons::attentionOff.code) return "";
  std::vector<int> ops;
  for (size_t op = 0; op < flow.ops.size(); ++op)
    if (std::ranges::count(record.ops, flow.ops[op].number) > 0) ops.push_back(int(op));
  return nearestHeadDim(bindKernel(flow, ops).kernel, rejection);
}

}  // namespace

namespace {

/// What is asked of the softmax that a site is of: its scaling gives what that gave.
const SitePin<AttentionChoice> *pinOf(const RecomposedSite &site, const Dataflow &flow,
                                      const std::vector<SitePin<AttentionChoice>> &pins) {
  for (const FlowOp &op : flow.ops)
    if (op.number == site.scaling)
      return pinAt(pins, op.label, flow.tensors[size_t(op.results.front())].layer);
  return pinAt(pins, site.name, 0);
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
  return isPart || choices.maxMemory.empty() ? proposeForTime(first) : proposeForMemory(first);
}

std::vector<ProposedVariant> Compilation::proposeForMemory(Phase first) const {
  const bool isNamed = !choices.variant.empty() && !isVariantChosen;
  std::vector<ProposedVariant> added;
  std::set<std::string> names;
  if (first <= Phase::algebra)
    for (const std::vector<std::string> &set : recomputedSets())
      for (ProposedVariant &variant : proposeRecomputed(set))
        if (names.insert(variant.name()).second) added.push_back(std::move(variant));
  if (isNamed && names.contains(choices.variant)) {
    keepVariant(added, choices.variant);
    return added;
  }
  std::vector<ProposedVariant> variants = proposeForTime(first);
  if (isNamed) return variants;
  std::set<std::string> known;
  for (const ProposedVariant &variant : variants) known.insert(variant.name());
  for (ProposedVariant &variant : added)
    if (!known.contains(variant.name())) variants.push_back(std::move(variant));
  return variants;
}

std::vector<ProposedVariant> Compilation::proposeForTime(Phase first) const {
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

std::vector<std::vector<std::string>> Compilation::recomputableNames() const {
  if (imported.size() != 1) return {};
  return weft::recomputableNames(mlir::cast<GraphOp>(graphOf(*imported.front().module)));
}

std::vector<std::vector<std::string>> Compilation::recomputedSets() const {
  if (!modelFlags.train || !modelFlags.choosesRecomputed()) return {};
  return decision::recomputedSets(recomputableNames());
}

std::vector<ProposedVariant> Compilation::proposeRecomputed(
    const std::vector<std::string> &names) const {
  CapturedDiagnostics diagnostics(*context);
  Variant again{.rewrites = imported.front().rewrites,
                .module = mlir::OwningOpRef<mlir::ModuleOp>(
                    mlir::ModuleOp(imported.front().module.get()).clone())};
  if (mlir::failed(recompute(mlir::cast<GraphOp>(graphOf(*again.module)), names)))
    throw diagnostics.error(ErrorKind::badInput, "recomputed names");
  for (const std::string &name : names)
    again.rewrites.push_back({.kind = Rewrite::Kind::recompute, .subject = name});
  return withFusions(rewriteOne(again, choices, true, Phase::algebra, Phase::attention),
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
        const auto *pin = pinOf(site, variant.counted, pins);
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
    if (const std::optional<UnfusedAttention> unfused = unfusedAttention(variant);
        choices.attention == AttentionChoice::fused && unfused) {
      const std::string headDim =
          nearestHeadDimOf(*unfused->record, describeGraph(graph).flow, attentionRejection);
      throw RejectedAttention(
          "--attention fused",
          fmt::format("'{}' fits no kernel: {}", unfused->label, describe(*unfused->record)),
          fmt::format("the nearest {}--attention {}",
                      headDim.empty() ? "alternative is "
                                      : fmt::format("alternatives are {} and ", headDim),
                      besideFused));
    }
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
    throw RejectedAttention(fmt::format("--attention {}", choices.attention.text), apart.front(),
                            "the nearest alternative is --attention decomposed");
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

}  // namespace weft::driver
