// Variants of the whole graph: the combinations of the choices in one part of it, made in all parts
// alike. Each is a rewritten clone. The selector solves each alone, and all together as one problem
// (select/JoinVariants.h), in which every part has a choice of its variants. There are a few dozen
// at most: a group of projections is stacked in up to four ways, and in a backward pass in up to
// seven more for each; attention has four forms; saved tensors are recomputed one by one and all
// together; norms are decomposed if an option says so. Choices that matter little to each other are
// not multiplied. A trained graph is one part: layers that repeat are rewritten alike in it.
#include "ir/LayerMarks.h"
#include "kernel/RejectedAttention.h"
#include "passes/Describe.h"
#include "passes/Passes.h"
#include "passes/Rewrites.h"
#include "passes/SavedTensors.h"

#include <limits>
#include <map>
#include <set>
#include <tuple>

namespace weft {
namespace {

/// One way to stack a group: members first .. last of it; nothing stacked if absent.
struct Stacking {
  size_t group = 0, first = 0, last = 0;
  std::string name;
  StackedRotation turn = StackedRotation::together;
};
using Choice = std::optional<Stacking>;

std::string namesOf(const ProjectionGroup &group, size_t first, size_t last) {
  ProjectionGroup part{.data = group.data,
                       .projections = {group.projections.begin() + static_cast<long>(first),
                                       group.projections.begin() + static_cast<long>(last) + 1}};
  return part.name();
}

bool isDifferentiated(GraphOp graph) { return graph->hasAttr(savedName); }

template <typename Choice>
const SitePin<Choice> *pinAt(const std::vector<SitePin<Choice>> &pins, mlir::Value site) {
  return weft::pinAt(pins, writtenName(site), layerOf(site));
}

/// What is asked of a group: of all its projections by one of them.
const SitePin<StackingChoice> *stackingPin(const ProjectionGroup &group,
                                           const VariantOptions &options) {
  for (ContractOp projection : group.projections)
    if (const auto *pin = pinAt(options.stackingAt, projection.getResult())) return pin;
  return nullptr;
}
StackingChoice stackingOf(const ProjectionGroup &group, const VariantOptions &options) {
  const auto *pin = stackingPin(group, options);
  return pin ? pin->kind : options.stacking;
}

/// Throws where a projection that is asked to be stacked is of no group.
void checkStackingPins(GraphOp graph, const std::vector<ProjectionGroup> &groups,
                       const std::vector<FusionRecord> &records, const VariantOptions &options) {
  for (ContractOp op : graph.getBody().front().getOps<ContractOp>()) {
    const std::string name = writtenName(op.getResult());
    const auto *pin = pinAt(options.stackingAt, op.getResult());
    if (!pin || pin->kind == StackingChoice::automatic || pin->kind == StackingChoice::separate)
      continue;
    if (std::ranges::any_of(groups, [&](const ProjectionGroup &group) {
          return std::ranges::count(group.projections, op) > 0;
        }))
      continue;
    const auto record = std::ranges::find_if(records, [&](const FusionRecord &one) {
      return !one.accepted && std::ranges::count(one.opNames, name) > 0;
    });
    throw Error::unsupported(
        "--stacking {}={}: '{}' is stacked with no other: {}; nearest is "
        "--stacking {}=separate",
        pin->site, spelled(pin->kind), name,
        record == records.end() ? "no other contraction of a parameter reads what it reads"
                                : describe(*record),
        pin->site);
  }
}

/// Whether an attention may rotate queries that a stack of these projections has: not where its
/// backward pass reads them turned.
bool mayRotateQueries(const ProjectionGroup &group, const VariantOptions &options) {
  ContractOp first = group.projections.front();
  return options.canFuseAttention && isRotatedAnywhere(group) &&
         !isDifferentiated(first->getParentOfType<GraphOp>());
}

/// separate; every two neighbours (q with k, k with v); all, once more where rotary embeddings may
/// turn some of them in the stack, and where an attention may rotate queries. A group of two has no
/// third way.
std::vector<Choice> stackingChoices(const ProjectionGroup &group, size_t index,
                                    const VariantOptions &options) {
  const StackingChoice mode = stackingOf(group, options);
  const size_t size = group.projections.size();
  std::vector<Choice> choices;
  const auto stack = [&](size_t first, size_t last,
                         StackedRotation turn = StackedRotation::together) {
    choices.push_back(Stacking{index, first, last, namesOf(group, first, last), turn});
  };
  if (mode == StackingChoice::automatic || mode == StackingChoice::separate)
    choices.push_back(std::nullopt);
  if (mode == StackingChoice::automatic || mode == StackingChoice::two)
    for (size_t first = 0; first + 1 < size; ++first) stack(first, first + 1);
  if (mode == StackingChoice::three || (mode == StackingChoice::automatic && size > 2)) {
    if (options.canRotateBehindGemm && isRotatedInPart(group))
      stack(0, size - 1, StackedRotation::inStack);
    if (mayRotateQueries(group, options)) stack(0, size - 1, StackedRotation::apart);
    stack(0, size - 1);
  }
  return choices;
}

/// By group the first one that is like it: as many projections, of equal types, by equal equations,
/// of which the same is asked. Layers that repeat have groups that are alike.
std::vector<size_t> firstsAlike(const std::vector<ProjectionGroup> &groups,
                                const VariantOptions &options) {
  std::map<std::vector<const void *>, size_t> known;
  std::vector<size_t> firsts;
  for (size_t index = 0; index < groups.size(); ++index) {
    std::vector<const void *> key = {groups[index].data.getType().getAsOpaquePointer(),
                                     stackingPin(groups[index], options)};
    for (ContractOp projection : groups[index].projections) {
      key.push_back(projection.getSpecAttr().getAsOpaquePointer());
      for (const mlir::Type type : projection->getOperandTypes())
        key.push_back(type.getAsOpaquePointer());
      key.push_back(projection->getResult(0).getType().getAsOpaquePointer());
    }
    firsts.push_back(known.try_emplace(std::move(key), index).first->second);
  }
  return firsts;
}

/// How many products() there are; at most the largest number.
int64_t countGemms(const std::vector<std::vector<Choice>> &lists) {
  int64_t count = 1;
  for (const std::vector<Choice> &list : lists)
    if (__builtin_mul_overflow(count, static_cast<int64_t>(list.size()), &count))
      return std::numeric_limits<int64_t>::max();
  return count;
}

/// The first choice of every list, the second, ..: those whose lists are shorter stay at their
/// last.
std::vector<std::vector<Choice>> alike(const std::vector<std::vector<Choice>> &lists) {
  size_t longest = 0;
  for (const std::vector<Choice> &list : lists) longest = std::max(longest, list.size());
  std::vector<std::vector<Choice>> result(longest);
  for (size_t index = 0; index < longest; ++index)
    for (const std::vector<Choice> &list : lists)
      result[index].push_back(list[std::min(index, list.size() - 1)]);
  return result;
}

/// Of each group, which others are in the same part of the graph: numbers from 0.
std::vector<size_t> partsOfGroups(mlir::ModuleOp module, GraphOp graph,
                                  const std::vector<ProjectionGroup> &groups,
                                  const VariantOptions &options) {
  std::vector<size_t> result(groups.size(), 0);
  if (groups.size() < 2 || !options.partOfOp || isDifferentiated(graph)) return result;
  const std::vector<int> partOf = options.partOfOp(module);
  std::map<mlir::Operation *, int> parts;
  for (mlir::Operation *op : numberedOps(graph)) parts[op] = partOf.at(parts.size());
  // First and last part of each group; groups whose parts overlap are in one.
  std::vector<std::tuple<int, int, size_t>> ranges;
  for (size_t index = 0; index < groups.size(); ++index) {
    std::vector<int> own;
    for (ContractOp projection : groups[index].projections)
      own.push_back(parts.at(projection.getOperation()));
    const auto [least, most] = std::ranges::minmax(own);
    ranges.emplace_back(least, most, index);
  }
  std::sort(ranges.begin(), ranges.end());
  size_t part = 0;
  int end = std::get<1>(ranges.front());
  for (const auto &[first, last, index] : ranges) {
    if (first > end) ++part;
    end = std::max(end, last);
    result[index] = part;
  }
  return result;
}

/// The first way of every part, the second, ..; the last one of those that have fewer.
std::vector<std::vector<Choice>> alikeInParts(
    const std::vector<std::vector<std::vector<Choice>>> &ofParts) {
  size_t most = 0;
  for (const std::vector<std::vector<Choice>> &ways : ofParts) most = std::max(most, ways.size());
  std::vector<std::vector<Choice>> result(most);
  for (size_t index = 0; index < most; ++index)
    for (const std::vector<std::vector<Choice>> &ways : ofParts) {
      const std::vector<Choice> &way = ways[std::min(index, ways.size() - 1)];
      result[index].insert(result[index].end(), way.begin(), way.end());
    }
  return result;
}

std::vector<std::vector<Choice>> product(const std::vector<std::vector<Choice>> &lists) {
  std::vector<std::vector<Choice>> result{{}};
  for (const std::vector<Choice> &list : lists) {
    std::vector<std::vector<Choice>> longer;
    for (const std::vector<Choice> &prefix : result)
      for (const Choice &choice : list) {
        longer.push_back(prefix);
        longer.back().push_back(choice);
      }
    result = std::move(longer);
  }
  return result;
}

/// Every group the choice of the first that is like it, which alone `lists` has several for.
std::vector<std::vector<Choice>> asFirsts(const std::vector<std::vector<Choice>> &lists,
                                          const std::vector<ProjectionGroup> &groups,
                                          const std::vector<size_t> &firsts, bool isAlike) {
  std::vector<std::vector<Choice>> own;
  std::vector<size_t> placeOf(groups.size());
  for (size_t index = 0; index < groups.size(); ++index)
    if (firsts[index] == index) {
      placeOf[index] = own.size();
      own.push_back(lists[index]);
    }
  std::vector<std::vector<Choice>> result;
  for (const std::vector<Choice> &ofFirsts : isAlike ? alike(own) : product(own)) {
    std::vector<Choice> &all = result.emplace_back();
    for (size_t index = 0; index < groups.size(); ++index) {
      Choice choice = ofFirsts[placeOf[firsts[index]]];
      if (choice) {
        choice->group = index;
        choice->name = namesOf(groups[index], choice->first, choice->last);
      }
      all.push_back(std::move(choice));
    }
  }
  return result;
}

GraphOp graphOf(mlir::ModuleOp module) {
  auto graphs = module.getOps<GraphOp>();
  if (graphs.empty()) throw Error::badInput("module has no weft.graph");
  return *graphs.begin();
}

std::vector<SoftmaxOp> softmaxesOf(GraphOp graph) {
  auto ops = graph.getBody().front().getOps<SoftmaxOp>();
  return {ops.begin(), ops.end()};
}

enum class AttentionForm : uint8_t { unfused, decomposed, recomposed, fused };

/// Why the softmax cannot be in a fused attention: "softmax 'prob' is in no fused attention: the
/// graph returns it"; empty if it can. What the backward pass reads of it can be computed again.
std::string fusedRejection(SoftmaxOp softmax) {
  std::string reason = forwardRejection(softmax);
  if (!reason.empty() && isDifferentiated(softmax->getParentOfType<GraphOp>()))
    reason = recomputeAttentionRejection(softmax);
  if (reason.empty()) return "";
  const std::string name = writtenName(softmax.getResult());
  return fmt::format("softmax{} is in no fused attention: {}",
                     name.empty() ? "" : fmt::format(" '{}'", name), reason);
}

/// The same of a softmax whose steps cannot join the contractions around it.
std::string recomposedRejection(SoftmaxOp softmax) {
  const std::string reason = recomposeRejection(softmax);
  if (reason.empty()) return "";
  const std::string name = writtenName(softmax.getResult());
  return fmt::format("softmax{} is not recomposed: {}",
                     name.empty() ? "" : fmt::format(" '{}'", name), reason);
}

/// The form that is asked of one attention; nothing: it has that of the variant.
std::optional<AttentionForm> formAt(SoftmaxOp softmax, const VariantOptions &options) {
  const SitePin<AttentionChoice> *pin = pinAt(options.attentionAt, softmax.getResult());
  if (!pin) return std::nullopt;
  switch (pin->kind) {
    case AttentionChoice::automatic: return std::nullopt;
    case AttentionChoice::unfused: return AttentionForm::unfused;
    case AttentionChoice::decomposed: return AttentionForm::decomposed;
    case AttentionChoice::recomposed: return AttentionForm::recomposed;
    case AttentionChoice::fused: return AttentionForm::fused;
  }
  return std::nullopt;
}

/// The attentions that have the form of the variant.
std::vector<SoftmaxOp> freeSoftmaxes(GraphOp graph, const VariantOptions &options) {
  std::vector<SoftmaxOp> softmaxes = softmaxesOf(graph);
  std::erase_if(softmaxes, [&](SoftmaxOp softmax) { return formAt(softmax, options).has_value(); });
  return softmaxes;
}

/// Throws where an attention cannot have the form that is asked of it.
void checkAttentionPins(GraphOp graph, const VariantOptions &options) {
  const auto reject = [](const std::string &site, std::string_view kind,
                         const std::string &reason) {
    throw RejectedAttention(fmt::format("--attention {}={}", site, kind), reason,
                            fmt::format("nearest is --attention {}={}", site,
                                        kind == "fused" ? besideFused : "decomposed"));
  };
  for (SoftmaxOp softmax : softmaxesOf(graph)) {
    const std::string name = writtenName(softmax.getResult());
    const std::optional<AttentionForm> form = formAt(softmax, options);
    if (form == AttentionForm::recomposed)
      if (const std::string reason = recomposedRejection(softmax); !reason.empty())
        reject(name, "recomposed", reason);
    if (form != AttentionForm::fused) continue;
    if (const std::string reason = fusedRejection(softmax); !reason.empty())
      reject(name, "fused", reason);
    if (!options.canFuseAttention) reject(name, "fused", options.noFusedAttention);
  }
}

/// The forms that are proposed; the first is the one beside which other choices are made.
std::vector<AttentionForm> attentionForms(GraphOp graph, const VariantOptions &options) {
  const std::vector<SoftmaxOp> softmaxes = freeSoftmaxes(graph, options);
  if (softmaxes.empty()) return {AttentionForm::unfused};
  if (options.attention == AttentionChoice::unfused) return {AttentionForm::unfused};
  if (options.attention == AttentionChoice::decomposed) return {AttentionForm::decomposed};
  if (options.attention == AttentionChoice::recomposed) {
    std::vector<std::string> reasons;
    for (SoftmaxOp softmax : softmaxes) reasons.push_back(recomposedRejection(softmax));
    if (std::ranges::none_of(reasons, &std::string::empty))
      throw RejectedAttention("--attention recomposed", reasons.front(),
                              "the nearest alternative is --attention decomposed");
    return {AttentionForm::recomposed};
  }
  std::vector<std::string> rejections;
  for (SoftmaxOp softmax : softmaxes)
    if (std::string rejection = fusedRejection(softmax); !rejection.empty())
      rejections.push_back(std::move(rejection));
  const bool hasSite = rejections.size() < softmaxes.size();
  if (options.attention == AttentionChoice::fused) {
    if (!hasSite || !options.canFuseAttention)
      throw RejectedAttention(
          "--attention fused", hasSite ? options.noFusedAttention : rejections.front(),
          fmt::format("the nearest alternative is --attention {}", besideFused));
    return {AttentionForm::fused};
  }
  // Recomposed ones are asked for by name: a trained one stores scaled probabilities again for its
  // backward pass, and is predicted slower than both.
  std::vector<AttentionForm> forms{AttentionForm::unfused, AttentionForm::decomposed};
  if (hasSite && options.canFuseAttention &&
      (options.canFuseAttentionBackward || !isDifferentiated(graph)))
    forms.push_back(AttentionForm::fused);
  return forms;
}

/// Whether the fused form is proposed and leaves no softmax whole.
bool isFusedWhole(GraphOp graph, const std::vector<AttentionForm> &forms,
                  const VariantOptions &options) {
  return std::ranges::find(forms, AttentionForm::fused) != forms.end() &&
         std::ranges::all_of(freeSoftmaxes(graph, options),
                             [](SoftmaxOp softmax) { return fusedRejection(softmax).empty(); });
}

/// The forms of attention beside which norms are rewritten: the fused one where all of it has one,
/// and the first as well, since families need not take a fused attention of every type.
std::vector<AttentionForm> formsBesideNorms(GraphOp graph, const std::vector<AttentionForm> &forms,
                                            const VariantOptions &options) {
  if (!isFusedWhole(graph, forms, options) || forms.front() == AttentionForm::fused)
    return {forms.front()};
  return {AttentionForm::fused, forms.front()};
}

/// Those of the softmaxes in a fused attention that can be, with what the backward pass reads of
/// them computed again; the others stay whole. The rewrites of which any is.
std::vector<Rewrite> fuseAttention(GraphOp graph, const std::vector<SoftmaxOp> &softmaxes,
                                   bool withAllGradients, int subVector, Variant &variant) {
  bool isFused = false;
  int added = 0;
  for (SoftmaxOp softmax : softmaxes) {
    if (std::string rejection = fusedRejection(softmax); !rejection.empty()) {
      variant.unfused.push_back(std::move(rejection));
      continue;
    }
    isFused = true;
    if (!forwardRejection(softmax).empty()) {
      added += recomputeAttention(softmax, withAllGradients);
      continue;
    }
    commuteGates(softmax);
    if (!foldSoftmax(commuteScaling(decomposeSoftmax(softmax, subVector))))
      throw Error::checkFailed("a decomposed softmax whose scaling commuted does not fold");
  }
  boundDocumentMasks(graph);
  std::vector<Rewrite> rewrites;
  if (isFused) rewrites.push_back({Rewrite::Kind::fuseAttention});
  if (added > 0) rewrites.push_back({Rewrite::Kind::allGradients});
  return rewrites;
}

/// Those of the softmaxes recomposed that can be; the others stay whole.
void recompose(const std::vector<SoftmaxOp> &softmaxes, int subVector, Variant &variant) {
  for (SoftmaxOp softmax : softmaxes)
    if (std::string rejection = recomposedRejection(softmax); !rejection.empty())
      variant.unfused.push_back(std::move(rejection));
    else recomposeSoftmax(softmax, subVector);
}

/// Gives these softmaxes a form. Returns the rewrites that made it; none: no op of the graph is
/// another one.
std::vector<Rewrite> giveForm(GraphOp graph, AttentionForm form,
                              const std::vector<SoftmaxOp> &softmaxes, bool withAllGradients,
                              int subVector, Variant &variant) {
  const std::string length = std::to_string(subVector);
  switch (form) {
    case AttentionForm::unfused: return {};
    case AttentionForm::fused:
      return fuseAttention(graph, softmaxes, withAllGradients, subVector, variant);
    case AttentionForm::recomposed:
      recompose(softmaxes, subVector, variant);
      return {{Rewrite::Kind::recomposeSoftmax, length}};
    case AttentionForm::decomposed:
      for (SoftmaxOp softmax : softmaxes) decomposeSoftmax(softmax, subVector);
      return {{Rewrite::Kind::decomposeSoftmax, length}};
  }
  return {};
}

/// All attentions in the form of the variant, but for those that another one is asked of.
/// `afterRewrites` is called behind those of each form.
void rewriteAttention(GraphOp graph, AttentionForm ofOthers, bool withAllGradients,
                      const VariantOptions &options, int subVector, Variant &variant,
                      const std::function<void(const std::vector<Rewrite> &)> &afterRewrites) {
  for (const AttentionForm form :
       {AttentionForm::fused, AttentionForm::recomposed, AttentionForm::decomposed}) {
    std::vector<SoftmaxOp> softmaxes;
    std::set<std::string> sites;
    for (SoftmaxOp softmax : softmaxesOf(graph)) {
      const std::optional<AttentionForm> asked = formAt(softmax, options);
      if (asked.value_or(ofOthers) != form) continue;
      softmaxes.push_back(softmax);
      if (asked) sites.insert(pinAt(options.attentionAt, softmax.getResult())->site);
    }
    if (softmaxes.empty()) continue;
    const std::vector<Rewrite> rewrites =
        giveForm(graph, form, softmaxes, withAllGradients, subVector, variant);
    if (rewrites.empty()) continue;
    for (const Rewrite &rewrite : rewrites) {
      variant.rewrites.push_back(rewrite);
      if (form != ofOthers)
        for (const std::string &site : sites)
          variant.rewrites.push_back({Rewrite::Kind::atSite, site});
    }
    afterRewrites(rewrites);
  }
}

/// What is asked of one norm; nothing: as the variant has them.
std::optional<NormChoice> normAt(mlir::Operation *norm, const VariantOptions &options) {
  const SitePin<NormChoice> *pin = pinAt(options.normsAt, norm->getResult(0));
  return pin && pin->kind != NormChoice::automatic ? std::optional(pin->kind) : std::nullopt;
}

NormChoice choiceOf(NormSteps steps) {
  return steps == NormSteps::deferred ? NormChoice::deferred : NormChoice::decomposed;
}

/// Throws where a norm cannot have the form that is asked of it.
void checkNormPins(GraphOp graph, const VariantOptions &options) {
  for (mlir::Operation &op : graph.getBody().front()) {
    if (!isNorm(&op)) continue;
    const std::optional<NormChoice> asked = normAt(&op, options);
    for (const NormSteps steps : {NormSteps::decomposed, NormSteps::deferred})
      if (asked == choiceOf(steps))
        if (const std::string reason = normRejection(&op, steps); !reason.empty()) {
          const std::string name = writtenName(op.getResult(0));
          throw Error::unsupported("--norms {}={}: {}; nearest is --norms {}=fused", name,
                                   spelled(*asked), reason, name);
        }
  }
}

/// All norms by the steps of the variant, if any, but for those that another form is asked of.
void rewriteNorms(GraphOp graph, std::optional<NormSteps> ofOthers, const VariantOptions &options,
                  Variant &variant, const std::function<void(const Rewrite &)> &afterRewrite) {
  for (const NormSteps steps : {NormSteps::decomposed, NormSteps::deferred}) {
    std::set<std::string> sites;
    const auto isMeant = [&](mlir::Operation *norm) {
      const std::optional<NormChoice> asked = normAt(norm, options);
      if (!asked) return ofOthers == steps;
      if (asked != choiceOf(steps)) return false;
      sites.insert(pinAt(options.normsAt, norm->getResult(0))->site);
      return true;
    };
    const bool hasRewritten = hasDecomposableNorm(graph, steps, isMeant);
    if (!hasRewritten && ofOthers != steps) continue;
    const Rewrite rewrite{steps == NormSteps::deferred ? Rewrite::Kind::deferNorms
                                                       : Rewrite::Kind::decomposeNorms};
    std::vector<FusionRecord> records = decomposeNorms(graph, steps, isMeant);
    std::ranges::move(records, std::back_inserter(variant.norms));
    if (!hasRewritten) continue;
    variant.rewrites.push_back(rewrite);
    if (ofOthers != steps)
      for (const std::string &site : sites)
        variant.rewrites.push_back({Rewrite::Kind::atSite, site});
    afterRewrite(rewrite);
  }
}

/// How the backward pass of a group is stacked: nothing, two or all of its members, for the
/// gradient of the input, for those of the weights, or for both.
struct GradientStacking {
  size_t group = 0;
  std::optional<MemberRange> inputs, weights;
};
using GradientStackings = std::vector<GradientStacking>;  ///< of different groups

/// The ranges of a group that are stacked in the backward pass.
std::vector<MemberRange> gradientRanges(size_t size, StackingChoice mode) {
  std::vector<MemberRange> ranges;
  if (mode != StackingChoice::three || size == 2) ranges.push_back({0, 1});
  if (mode != StackingChoice::two && size > 2) ranges.push_back({0, size - 1});
  return ranges;
}

/// None stacked; the groups that are alike in every way; and, where there are others, every group
/// whole. Groups that are asked to be stacked are so in all of them.
std::vector<GradientStackings> gradientChoices(const std::vector<ProjectionGroup> &groups,
                                               const std::vector<size_t> &firsts,
                                               const VariantOptions &options) {
  const StackingChoice mode = options.stacking;
  std::vector<GradientStackings> choices;
  GradientStackings whole, pinned;
  if (mode == StackingChoice::automatic || mode == StackingChoice::separate) choices.emplace_back();
  size_t kinds = 0;
  for (size_t kind = 0; kind < groups.size(); ++kind) {
    const SitePin<StackingChoice> *pin = stackingPin(groups[kind], options);
    const bool isPinned = pin && pin->kind != StackingChoice::automatic;
    const StackingChoice own = stackingOf(groups[kind], options);
    if (firsts[kind] != kind || own == StackingChoice::separate) continue;
    std::vector<size_t> members;
    for (size_t index = kind; index < groups.size(); ++index)
      if (firsts[index] == kind && gradientsOf(groups[index])) members.push_back(index);
    if (members.empty()) continue;
    const std::vector<MemberRange> ranges = gradientRanges(groups[kind].projections.size(), own);
    if (isPinned) {
      for (const size_t index : members) pinned.push_back({index, ranges.back(), ranges.back()});
      continue;
    }
    ++kinds;
    const auto add = [&](std::optional<MemberRange> inputs, std::optional<MemberRange> weights) {
      GradientStackings &stackings = choices.emplace_back();
      for (const size_t index : members) stackings.push_back({index, inputs, weights});
    };
    for (const MemberRange &range : ranges) {
      if (own == StackingChoice::automatic) {
        add(range, std::nullopt);
        add(std::nullopt, range);
      }
      add(range, range);
    }
    for (const size_t index : members) whole.push_back({index, ranges.back(), ranges.back()});
  }
  if (kinds > 1) choices.push_back(std::move(whole));
  if (choices.empty()) choices.emplace_back();
  for (GradientStackings &stackings : choices) {
    stackings.insert(stackings.end(), pinned.begin(), pinned.end());
    std::ranges::sort(stackings, {}, &GradientStacking::group);
  }
  return choices;
}

/// Whether every group that is stacked in the backward pass is so whole, for all of its gradients.
bool isWhole(const GradientStackings &stackings, const std::vector<ProjectionGroup> &groups) {
  const auto isAll = [&](const GradientStacking &stacking,
                         const std::optional<MemberRange> &range) {
    return range && range->last - range->first + 1 == groups[stacking.group].projections.size();
  };
  return !stackings.empty() && std::ranges::all_of(stackings, [&](const GradientStacking &one) {
    return isAll(one, one.inputs) && isAll(one, one.weights);
  });
}

/// Saved tensors that are offered as recomputed each by itself, of those that may pay; kinds of
/// them, where there are more.
constexpr size_t mostRecomputed = 3;

/// Recomputations by kind: those of equal ops are one.
std::vector<std::vector<size_t>> kindsOf(const std::vector<Recomputation> &found) {
  std::map<std::string, size_t> known;
  std::vector<std::vector<size_t>> kinds;
  for (size_t index = 0; index < found.size(); ++index) {
    std::string key;
    for (mlir::Operation *op : found[index].chain) {
      key += op->getName().getStringRef();
      for (const mlir::Value operand : op->getOperands())
        key += fmt::format(" {}", operand.getType().getAsOpaquePointer());
      key += ";";
    }
    const auto [kind, isNew] = known.try_emplace(std::move(key), kinds.size());
    if (isNew) kinds.emplace_back();
    kinds[kind->second].push_back(index);
  }
  return kinds;
}

/// Which of the graph's recomputations are made: none; each alone; all of them. Of more than
/// `mostRecomputed`, as layers that repeat have, all of one kind together.
std::vector<std::vector<size_t>> recomputeChoices(GraphOp graph, RecomputeChoice mode) {
  std::vector<std::vector<size_t>> choices(1);
  if (mode == RecomputeChoice::none) return choices;
  const std::vector<Recomputation> found = findRecomputations(graph);
  std::vector<std::vector<size_t>> kinds = kindsOf(found);
  if (found.size() <= mostRecomputed) {
    kinds.clear();
    for (size_t index = 0; index < found.size(); ++index) kinds.push_back({index});
  }
  if (kinds.size() > mostRecomputed) kinds.resize(mostRecomputed);
  std::vector<size_t> all;
  for (const std::vector<size_t> &kind : kinds) {
    choices.push_back(kind);
    all.insert(all.end(), kind.begin(), kind.end());
  }
  if (kinds.size() > 1) choices.push_back(all);
  return choices;
}

/// From the last op to the first: what is computed again may read what another one computes again.
void recomputeAll(GraphOp graph, const std::vector<size_t> &chosen,
                  std::vector<Rewrite> &rewrites) {
  const std::vector<Recomputation> found = findRecomputations(graph);
  std::vector<Recomputation> recomputations;
  for (size_t index : chosen) recomputations.push_back(found[index]);
  std::sort(recomputations.begin(), recomputations.end(),
            [](const Recomputation &a, const Recomputation &b) {
              return b.chain.back()->isBeforeInBlock(a.chain.back());
            });
  for (const Recomputation &one : recomputations)
    rewrites.push_back({Rewrite::Kind::recompute, one.name()});
  for (const Recomputation &one : recomputations) recompute(graph, one);
}

/// Whether a stack leaves rotary embeddings to an attention.
bool isRotatedApart(const std::vector<Choice> &stackings) {
  return std::ranges::any_of(stackings, [](const Choice &choice) {
    return choice && choice->turn == StackedRotation::apart;
  });
}

/// Whether a group is stacked in part only.
bool isPart(const std::vector<Choice> &stackings, const std::vector<ProjectionGroup> &groups) {
  return std::any_of(stackings.begin(), stackings.end(), [&](const Choice &choice) {
    return choice && choice->last - choice->first + 1 < groups[choice->group].projections.size();
  });
}

/// Which rewrites made each op of a graph. An op is the one from before if kind, names and types of
/// its results are the same; of several alike the first ones are.
class OpOrigins {
public:
  explicit OpOrigins(GraphOp graph) { update(graph, {}); }

  void update(GraphOp graph, const std::vector<Rewrite> &rewrites) {
    std::map<Key, std::vector<std::vector<Rewrite>>> next;
    list.clear();
    for (mlir::Operation *op : numberedOps(graph)) {
      const Key key = keyOf(*op);
      std::vector<std::vector<Rewrite>> &seen = next[key];
      const auto before = ofKey.find(key);
      const bool isOld = before != ofKey.end() && seen.size() < before->second.size();
      seen.push_back(isOld ? before->second[seen.size()] : rewrites);
      list.push_back(seen.back());
    }
    ofKey = std::move(next);
  }

  const std::vector<std::vector<Rewrite>> &ofOps() const { return list; }

private:
  /// The types are unique in their context: only whether they are equal matters.
  using Key = std::tuple<std::string, std::string, std::vector<const void *>>;
  static Key keyOf(mlir::Operation &op) {
    std::string names;
    std::vector<const void *> types;
    for (const mlir::Value result : op.getResults()) {
      names += writtenName(result) + ",";
      types.push_back(result.getType().getAsOpaquePointer());
    }
    return {op.getName().getStringRef().str(), names, types};
  }

  std::map<Key, std::vector<std::vector<Rewrite>>> ofKey;
  std::vector<std::vector<Rewrite>> list;
};

bool has(const Variant &variant, Rewrite::Kind kind) {
  return std::ranges::count(variant.rewrites, kind, &Rewrite::kind) > 0;
}

Variant rewrite(mlir::ModuleOp module, const std::vector<Choice> &stackings,
                const GradientStackings &gradients, const std::vector<size_t> &recomputed,
                AttentionForm attention, bool withAllGradients, std::optional<NormSteps> norms,
                int subVector, const VariantOptions &options) {
  Variant variant{.rewrites = {}, .module = mlir::OwningOpRef<mlir::ModuleOp>(module.clone())};
  GraphOp graph = graphOf(*variant.module);
  OpOrigins origins(graph);
  const auto addRewrite = [&](Rewrite one) {
    origins.update(graph, {one});
    variant.rewrites.push_back(std::move(one));
  };
  if (!recomputed.empty()) {
    recomputeAll(graph, recomputed, variant.rewrites);
    origins.update(graph, variant.rewrites);
  }
  std::vector<FusionRecord> records;
  const std::vector<ProjectionGroup> groups = findProjectionGroups(graph, records);
  std::vector<GradientGroup> backward;
  for (const GradientStacking &stacking : gradients)
    backward.push_back(*gradientsOf(groups[stacking.group]));
  for (const Choice &choice : stackings)
    if (choice) {
      stackProjections(groups[choice->group], choice->first, choice->last, choice->turn);
      addRewrite({Rewrite::Kind::stack, choice->name});
      if (choice->turn != StackedRotation::together)
        variant.rewrites.push_back({choice->turn == StackedRotation::inStack
                                        ? Rewrite::Kind::rotateInStack
                                        : Rewrite::Kind::rotateApart,
                                    choice->name});
    }
  for (size_t index = 0; index < gradients.size(); ++index) {
    const std::optional<MemberRange> &inputs = gradients[index].inputs,
                                     &weights = gradients[index].weights;
    const GradientGroup &members = backward[index];
    const std::string ofInputs = inputs ? members.name(*inputs) : "",
                      ofWeights = weights ? members.name(*weights) : "";
    stackGradients(members, inputs, weights, [&] {
      addRewrite({Rewrite::Kind::stackInputGradients, ofInputs});
    });
    if (weights) addRewrite({Rewrite::Kind::stackWeightGradients, ofWeights});
    else if (inputs) origins.update(graph, {variant.rewrites.back()});
  }
  const auto isBehind = [&](const Rewrite &one) { origins.update(graph, {one}); };
  rewriteAttention(graph, attention, withAllGradients, options, subVector, variant,
                   [&](const std::vector<Rewrite> &rewrites) { origins.update(graph, rewrites); });
  rewriteNorms(graph, norms, options, variant, isBehind);
  maskUnusedTokens(graph);
  origins.update(graph, {});
  variant.rewritesOfOp = origins.ofOps();
  return variant;
}

void check(const VariantOptions &options) {
  if (options.subVectors.empty()) throw Error::badInput("no length of sub-vectors");
  for (const int subVector : options.subVectors)
    if (subVector < 1)
      throw Error::badInput("sub-vector of {} elements; the least is 1", subVector);
}

/// With what follows of the graph for the choices that are left to the compiler.
VariantOptions decidedFor(VariantOptions options) {
  if (options.isRecomputed) options.recompute = RecomputeChoice::none;
  if (options.stacking != StackingChoice::automatic) return options;
  if (options.isRecomputed) options.stacking = StackingChoice::three;
  else if (options.updatesWeights) options.stacking = StackingChoice::separate;
  return options;
}

}  // namespace

std::vector<Variant> proposeVariants(mlir::ModuleOp module, const VariantOptions &asked) {
  const VariantOptions options = decidedFor(asked);
  check(options);
  GraphOp graph = graphOf(module);
  checkAttentionPins(graph, options);
  checkNormPins(graph, options);
  std::vector<FusionRecord> records;
  const std::vector<ProjectionGroup> groups = findProjectionGroups(graph, records);
  checkStackingPins(graph, groups, records, options);
  std::vector<std::vector<Choice>> stackings;
  for (size_t index = 0; index < groups.size(); ++index)
    stackings.push_back(stackingChoices(groups[index], index, options));
  const std::vector<AttentionForm> forms = attentionForms(graph, options);
  const std::vector<size_t> firsts = firstsAlike(groups, options);
  const std::vector<GradientStackings> gradients = gradientChoices(groups, firsts, options);
  const std::vector<std::vector<size_t>> recomputations =
      recomputeChoices(graph, options.recompute);
  const int64_t mostWays = std::max<int64_t>(1, options.most / static_cast<int64_t>(forms.size()));
  const std::vector<size_t> partOfGroup = partsOfGroups(module, graph, groups, options);
  const size_t parts =
      partOfGroup.empty() ? 1 : *std::max_element(partOfGroup.begin(), partOfGroup.end()) + 1;
  std::vector<std::vector<std::vector<Choice>>> ofParts;  // every part's ways
  int64_t leftOut = 0;
  // Stacks that leave rotary embeddings to an attention are beside a fused one alone.
  const int64_t fusedForms = std::ranges::count(forms, AttentionForm::fused);
  const auto addPart = [&](std::vector<std::vector<Choice>> made,
                           std::vector<std::vector<Choice>> lists) {
    leftOut += (countGemms(lists) - std::ssize(made)) * fusedForms;
    for (std::vector<Choice> &list : lists)
      std::erase_if(list, [](const Choice &choice) { return isRotatedApart({choice}); });
    leftOut += (countGemms(lists) - std::ranges::count_if(made, std::not_fn(isRotatedApart))) *
               (std::ssize(forms) - fusedForms);
    ofParts.push_back(std::move(made));
  };
  if (isDifferentiated(graph)) {  // one part, in which layers that repeat are stacked alike
    std::vector<std::vector<Choice>> own;
    for (size_t index = 0; index < groups.size(); ++index)
      if (firsts[index] == index) own.push_back(stackings[index]);
    addPart(asFirsts(stackings, groups, firsts, countGemms(own) > mostWays), own);
  }
  for (size_t part = 0; part < parts && !isDifferentiated(graph); ++part) {
    std::vector<std::vector<Choice>> own;
    for (size_t index = 0; index < groups.size(); ++index)
      if (partOfGroup[index] == part) own.push_back(stackings[index]);
    addPart(countGemms(own) > mostWays ? alike(own) : product(own), own);
  }
  const std::vector<std::vector<Choice>> forward = alikeInParts(ofParts);
  std::optional<NormSteps> normSteps;
  if (options.norms == NormChoice::decomposed || options.norms == NormChoice::deferred)
    normSteps = options.norms == NormChoice::deferred ? NormSteps::deferred : NormSteps::decomposed;
  std::vector<Variant> variants;
  int subVector = options.subVectors.front();
  // The kernel of a backward pass gives all gradients: beside a graph that lacks some, there is one
  // that has them, too. The forms of which a variant lacked none lack none.
  const bool mayLackGradients = isDifferentiated(graph) && options.canFuseAttentionBackward;
  std::set<AttentionForm> haveAllGradients;
  const auto add = [&](const std::vector<Choice> &choice, const GradientStackings &backward,
                       const std::vector<size_t> &recomputed, AttentionForm attention,
                       std::optional<NormSteps> norms) {
    const auto isFull = [&] { return std::ssize(variants) >= std::max<int64_t>(1, options.most); };
    if (isFull()) {
      ++leftOut;
      return;
    }
    const auto made = [&](bool withAllGradients) {
      Variant variant = rewrite(module, choice, backward, recomputed, attention, withAllGradients,
                                norms, subVector, options);
      variant.stackings = records;
      return variant;
    };
    variants.push_back(made(false));
    if (!mayLackGradients || haveAllGradients.contains(attention) ||
        !has(variants.back(), Rewrite::Kind::fuseAttention))
      return;
    Variant whole = made(true);
    if (!has(whole, Rewrite::Kind::allGradients)) haveAllGradients.insert(attention);
    else if (isFull()) ++leftOut;
    else variants.push_back(std::move(whole));
  };
  // Beside which of the stackings choices are made that matter little to them: none and the last,
  // which is mostly all.
  const std::set<size_t> beside = {0, forward.size() - 1};
  for (AttentionForm attention : forms)
    for (size_t index = 0; index < forward.size(); ++index)
      for (const GradientStackings &backward : gradients) {
        const std::vector<Choice> &choice = forward[index];
        if (attention != AttentionForm::fused && isRotatedApart(choice)) continue;
        // How softmax is computed changes nothing for the projections: they are stacked in all ways
        // beside one of its forms, and in the way that is mostly the best beside the fused one.
        if (attention != forms.front() && &backward != &gradients.front() &&
            !(attention == AttentionForm::fused && isWhole(backward, groups)))
          continue;
        // A trained fused attention is offered beside none and beside all of them stacked.
        if (attention == AttentionForm::fused && attention != forms.front() &&
            isDifferentiated(graph) && isPart(choice, groups))
          continue;
        // Nor does stacking some of them forward: their backward pass is stacked beside all and
        // beside none.
        if (&backward != &gradients.front() && (isPart(choice, groups) || !beside.contains(index)))
          continue;
        add(choice, backward, {}, attention, normSteps);
      }
  // Other sub-vectors change nothing for the projections: they are decomposed beside all stacked.
  for (AttentionForm attention : forms)
    if (attention == AttentionForm::decomposed || attention == AttentionForm::recomposed) {
      for (size_t other = 1; other < options.subVectors.size(); ++other) {
        subVector = options.subVectors[other];
        add(forward.back(), gradients.front(), {}, attention, normSteps);
      }
      subVector = options.subVectors.front();
    }
  // What is saved changes little for the projections either.
  for (size_t index : beside)
    for (size_t recomputed = 1; recomputed < recomputations.size(); ++recomputed)
      add(forward[index], gradients.front(), recomputations[recomputed], forms.front(), normSteps);
  // A fused attention saves least if all else that can be is computed again, too.
  if (forms.front() != AttentionForm::fused && forms.back() == AttentionForm::fused &&
      recomputations.size() > 1)
    for (size_t index : beside)
      for (const GradientStackings &backward : gradients)
        if (&backward == &gradients.front() || isWhole(backward, groups))
          add(forward[index], backward, recomputations.back(), AttentionForm::fused, normSteps);
  // Norms matter to those who read them: they are rewritten beside none and beside all of the
  // projections stacked.
  const std::vector<AttentionForm> besideNorms = formsBesideNorms(graph, forms, options);
  for (const NormSteps steps : {NormSteps::decomposed, NormSteps::deferred})
    if (options.norms == NormChoice::automatic &&
        hasDecomposableNorm(graph, steps, [&](mlir::Operation *norm) {
          return !normAt(norm, options).has_value();
        }))
      for (const AttentionForm form : besideNorms)
        for (size_t index : beside) add(forward[index], gradients.front(), {}, form, steps);
  std::vector<std::string> projectionOfPart;
  for (size_t part = 0; parts > 1 && part < parts; ++part) {
    const auto group = std::ranges::find(partOfGroup, part) - partOfGroup.begin();
    ContractOp projection = groups[static_cast<size_t>(group)].projections.front();
    projectionOfPart.push_back(writtenName(projection.getResult()));
  }
  for (Variant &variant : variants) {
    variant.leftOut = leftOut;
    variant.projectionOfPart = projectionOfPart;
  }
  return variants;
}

}  // namespace weft
