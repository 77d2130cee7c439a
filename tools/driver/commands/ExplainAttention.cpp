// weft explain --attention: every attention of a plan in every kind, with time, traffic, workspace
// and error bound, which of them was chosen and why, and from which length on the fused one is the
// fastest.
#include "kernel/Error.h"
#include "kernel/ReasonCodes.h"
#include "kernel/RejectedAttention.h"
#include "plan/PlanFigures.h"
#include "tools/driver/AttentionQuestions.h"
#include "tools/driver/Console.h"
#include "tools/driver/PlanFacts.h"
#include "tools/driver/ProfileModel.h"
#include "tools/driver/commands/Explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace weft::driver {
namespace {

using nlohmann::json;

/// The plan of the whole model with every attention in one kind.
struct WholePlan {
  AttentionChoice kind;
  double seconds = 0;  ///< as one graph
  int64_t workspaceBytes = 0;
  std::string rejection;  ///< why there is none
  /// Of fused attentions that are trained: why no kernel takes a backward pass, as records say it,
  /// and how many backward passes a kernel takes that is slower than several.
  std::vector<std::string> rejectedBackwards = {};
  int slowerBackwards = 0;
};

/// Whether a set of ops was tried as the kernel of a backward pass.
bool isBackwardPass(const FusionRecord &record) {
  const auto count = [&](OpKind kind) {
    return std::ranges::count(record.opNames, std::string(weft::nameOf(kind)));
  };
  return count(OpKind::softmaxFromLogSums) == 1 && count(OpKind::contract) > 1;
}

/// "F033 attention-backward-off (...)" of every softmax of a graph whose backward pass is no
/// kernel: why no family takes it, else why it cannot be one, of the most ops that were tried.
std::vector<std::string> rejectedBackwards(const ProposedVariant &variant) {
  std::map<int, const FusionRecord *> rejected;  // by the softmax_from_log_sums
  std::set<int> accepted;
  for (const FusionRecord &record : variant.fusions.records) {
    if (!isBackwardPass(record)) continue;
    const auto softmax =
        std::ranges::find(record.opNames, std::string(weft::nameOf(OpKind::softmaxFromLogSums)));
    const int op = record.ops[size_t(softmax - record.opNames.begin())];
    if (record.accepted) accepted.insert(op);
    const bool isOff = record.code == reasons::attentionBackwardOff.code;
    if (!isOff && record.code != reasons::attentionBackwardRegion.code) continue;
    const FusionRecord *&kept = rejected[op];
    const auto weight = [](const FusionRecord &one) {
      return std::pair(one.code == reasons::attentionBackwardOff.code, one.ops.size());
    };
    if (!kept || weight(record) > weight(*kept)) kept = &record;
  }
  std::vector<std::string> rejections;
  for (const auto &[op, record] : rejected)
    if (!accepted.contains(op)) rejections.push_back(describe(*record));
  return rejections;
}

void addBackwards(WholePlan &whole, const ProposedVariant &variant, const Plan &plan) {
  whole.rejectedBackwards = rejectedBackwards(variant);
  whole.slowerBackwards =
      std::max(0, attentionBackwards(plan).unfused - int(whole.rejectedBackwards.size()));
}

std::vector<WholePlan> wholePlans(const Request &request) {
  std::vector<WholePlan> plans;
  std::vector<SharedPrices> known;  // what the kinds have in common is priced once
  for (const AttentionChoice kind : decision::pricedKinds) {
    ChoiceFlags choices = request.choices;
    choices.attention = kind;
    WholePlan whole{.kind = kind, .rejection = ""};
    try {
      Compilation compilation(request.model, choices, request.target);
      compilation.importTexts(request.graphs, request.first);
      compilation.sharePrices(known);
      const std::vector<ProposedVariant> proposed = compilation.propose(request.first);
      const Expected<decision::Decision> decided =
          decision::decidePlan(compilation.problem(proposed), compilation.options(proposed));
      if (decided) {
        const json figures = planFigures(decided->planned.plan);
        whole.seconds = figures["graphSeconds"];
        whole.workspaceBytes = figures["workspaceBytes"];
        if (kind == AttentionChoice::fused)
          addBackwards(whole, proposed[decided->best().index], decided->planned.plan);
      } else {
        whole.rejection = decided.error().what();
      }
    } catch (const RejectedAttention &error) {
      whole.rejection = error.reason;
    } catch (const Error &error) {
      if (error.kind != ErrorKind::unsupported && error.kind != ErrorKind::badInput) throw;
      whole.rejection = error.what();
    }
    plans.push_back(std::move(whole));
  }
  return plans;
}

bool holds(const PlanKernel &kernel, OpKind kind) {
  return std::ranges::count(kernel.ops, kind, &PlanOp::kind) > 0;
}

/// What a plan computes, op by op: PlanOp names results by the numbers of ops of the graph.
class ComputedOps {
public:
  explicit ComputedOps(const Plan &plan) {
    for (const PlanKernel &kernel : plan.kernels)
      for (const PlanOp &op : kernel.ops)
        for (const std::string &result : op.results) ops.try_emplace(result, &kernel, &op);
  }

  /// The kind of the attention whose output, or what factors make of it, this is; nothing where it
  /// is none. Factors commute behind the contraction with values, packing follows it, and other ops
  /// may be in the same kernel.
  std::optional<AttentionChoice> kindOf(const std::string &output) const {
    const auto found = ops.find(output);
    if (found == ops.end()) return std::nullopt;
    const auto &[kernel, op] = found->second;
    switch (op->kind) {
      case OpKind::onlineSoftmaxContract: return AttentionChoice::fused;
      case OpKind::contract:
        if (holds(*kernel, OpKind::globalScaling)) return AttentionChoice::recomposed;
        for (const std::string &operand : op->operands)
          if (const auto kind = kindOfProbabilities(operand)) return kind;
        return std::nullopt;
      case OpKind::scale:
      case OpKind::mul:
      case OpKind::div:
      case OpKind::cast:
      case OpKind::identity:
      case OpKind::pack:
        for (const std::string &operand : op->operands)
          if (const auto kind = kindOf(operand)) return kind;
        return std::nullopt;
      default: return std::nullopt;
    }
  }

private:
  /// Of what a contraction reads: by whether they were normalized whole.
  std::optional<AttentionChoice> kindOfProbabilities(const std::string &value) const {
    const auto found = ops.find(value);
    if (found == ops.end()) return std::nullopt;
    const PlanOp &op = *found->second.second;
    switch (op.kind) {
      case OpKind::softmax: return AttentionChoice::unfused;
      case OpKind::globalScaling: return AttentionChoice::decomposed;
      case OpKind::scale:
      case OpKind::mul:
      case OpKind::div:
      case OpKind::cast:
      case OpKind::identity:
      case OpKind::dropout:
        for (const std::string &operand : op.operands)
          if (const auto kind = kindOfProbabilities(operand)) return kind;
        return std::nullopt;
      default: return std::nullopt;
    }
  }

  std::map<std::string, std::pair<const PlanKernel *, const PlanOp *>> ops;
};

/// The kind in which the plan computes an attention. `labels`: of the graph's ops, by number.
AttentionChoice chosenKind(const Plan &plan, const std::vector<std::string> &labels,
                           const AttentionSite &site) {
  const ComputedOps ops(plan);
  for (const std::string &name : {site.output, site.packed}) {
    const auto label = std::ranges::find(labels, name);
    if (name.empty() || label == labels.end()) continue;
    if (const auto kind = ops.kindOf(std::to_string(label - labels.begin()))) return *kind;
  }
  const bool isDecomposed = std::ranges::any_of(
      plan.kernels, [](const PlanKernel &kernel) { return holds(kernel, OpKind::localSoftmax); });
  return isDecomposed ? AttentionChoice::decomposed : AttentionChoice::unfused;
}

/// Why a kind was chosen: it was asked for, it is the fastest here, or the whole plan is.
std::string whyChosen(AttentionChoice chosen, const Request &request,
                      const decision::AttentionPrices &prices,
                      const std::vector<WholePlan> &wholes) {
  if (request.choices.attention != AttentionChoice::automatic)
    return fmt::format("--attention {} asked for it", request.choices.attention.text);
  const decision::PricedKind *own = nullptr, *best = nullptr;
  for (const decision::PricedKind &kind : prices.kinds) {
    if (!kind.figures || !kind.figures->notConsidered.empty()) continue;
    if (kind.kind == chosen) own = &kind;
    if (!best || kind.figures->graphSeconds < best->figures->graphSeconds) best = &kind;
  }
  if (own && own == best) return "the fastest of those that are considered";
  // Decomposed, a plan may have the two fusions, too: equal plans are both the fastest.
  const WholePlan *fastest = nullptr, *same = nullptr;
  for (const WholePlan &whole : wholes) {
    if (!whole.rejection.empty()) continue;
    if (!fastest || whole.seconds < fastest->seconds) fastest = &whole;
    if (whole.kind == chosen) same = &whole;
  }
  if (same && same->seconds <= fastest->seconds)
    return fmt::format("the whole plan is the fastest with it{}",
                       best ? fmt::format(", though {} is faster here", spelled(best->kind)) : "");
  return best ? fmt::format("{} is faster here by today's prices", spelled(best->kind))
              : "no other kind is considered here";
}

std::string errorText(const decision::RoundingBound &error) {
  if (error.perScore == 0) return fmt::format("{:.1e}", error.constant);
  return fmt::format("{:.1e} + {:.1e} |s|", error.constant, error.perScore);
}

std::string pricesText(const decision::KindFigures &figures) {
  if (!figures.notConsidered.empty()) return "estimated *";
  if (figures.measured == figures.launches) return "measured";
  return figures.measured == 0
             ? "estimated"
             : fmt::format("{} of {} measured", figures.measured, figures.launches);
}

/// "sweeps of the scores: unfused 4, recomposed 2, fused 0".
std::string sweepsText(const decision::AttentionPrices &prices) {
  std::vector<std::string> kinds;
  for (const decision::PricedKind &kind : prices.kinds)
    if (kind.figures)
      kinds.push_back(fmt::format("{} {:.3g}", spelled(kind.kind),
                                  std::round(10 * kind.figures->softmax.sweeps) / 10));
  return kinds.empty() ? "" : fmt::format("sweeps of the scores: {}\n", fmt::join(kinds, ", "));
}

/// The steps of a decomposed softmax that are kernels apart, with their shares of what they take
/// together; and the traffic of statistics.
std::string stepsText(const decision::SoftmaxAccount &own) {
  const double all = own.localSeconds + own.reductionSeconds + own.scalingSeconds;
  std::vector<std::string> steps;
  for (const auto &[name, seconds] : {std::pair{"LS", own.localSeconds},
                                      {"IR", own.reductionSeconds},
                                      {"GS", own.scalingSeconds}})
    if (seconds == all && seconds > 0)
      steps.push_back(fmt::format("{} {}", name, formatSeconds(seconds)));
    else if (seconds > 0)
      steps.push_back(
          fmt::format("{} {} ({:.0f}%)", name, formatSeconds(seconds), 100 * seconds / all));
  return fmt::format(
      "sub-vectors of {} keys; in kernels apart {}; m', d', r' {:.1f}% of what a softmax moves",
      own.subVector, steps.empty() ? "none" : fmt::format("{}", fmt::join(steps, ", ")),
      100 * own.statisticsShare);
}

/// At which lengths packed sequences are priced; empty where they are at full length.
std::string fillText(const std::optional<ExpectedFill> &fill) {
  if (!fill || fill->isFull()) return "";
  return fmt::format(" at full length; priced at {:.0f}% of the tokens", 100 * fill->tokens);
}

/// "unfused from 64 to 512 and from 4096 on".
std::string lengthsText(const decision::Crossover &crossover) {
  const std::string_view kind = spelled(crossover.kind);
  if (!crossover.whyNone.empty()) return fmt::format("{} (no plan)", kind);
  if (crossover.ranges.empty()) return fmt::format("{} at no length", kind);
  std::vector<std::string> ranges;
  for (const auto &[from, to] : crossover.ranges)
    ranges.push_back(to == decision::mostLength ? fmt::format("from {} on", from)
                     : from == to               ? fmt::format("at {}", from)
                                                : fmt::format("from {} to {}", from, to));
  return fmt::format("{} {}", kind, fmt::join(ranges, " and "));
}

/// "workspace of fused over these lengths: 48 B a token, off the line by 0.1% at most".
std::string slopeText(const std::optional<decision::WorkspaceSlope> &slope) {
  if (!slope) return "";
  return fmt::format(
      "workspace of fused over these lengths: {:.3g} B a token{}\n", slope->bytesPerToken,
      slope->deviation == 0
          ? ""
          : fmt::format(", off the line by {:.2g}% at most", 100 * slope->deviation));
}

std::string siteText(const AttentionSite &site, const decision::AttentionPrices &prices,
                     AttentionChoice chosen, const std::string &why,
                     const std::optional<ExpectedFill> &fill) {
  std::string text = fmt::format(
      "{}: {} heads, {} queries, {} keys, head dim {}{}, {}; compulsory {}{}\n", site.output,
      formatCount(site.heads), formatCount(site.queries), formatCount(site.keys), site.headDim,
      site.valueDim == site.headDim ? "" : fmt::format(" and {}", site.valueDim),
      weft::nameOf(site.dtype), formatBytes(site.compulsoryBytes), fillText(fill));
  Table table({{"", left},
               {"kind", left},
               {"time", right},
               {"DRAM", right},
               {"L2", right},
               {"workspace", right},
               {"error bound", right},
               {"launches", right},
               {"prices", left}});
  std::string notes;
  for (const decision::PricedKind &kind : prices.kinds) {
    const std::string mark = kind.kind == chosen ? "*" : "";
    if (!kind.figures) {
      table.addRow(
          {mark, std::string(spelled(kind.kind)), "-", "-", "-", "-", "-", "-", "no plan"});
      notes += fmt::format("{}: no plan: {}\n", spelled(kind.kind), kind.rejection);
      continue;
    }
    const decision::KindFigures &figures = *kind.figures;
    table.addRow({mark, std::string(spelled(kind.kind)), formatSeconds(figures.graphSeconds),
                  formatBytes(figures.dramBytes), formatBytes(figures.l2Bytes),
                  formatBytes(figures.workspaceBytes), errorText(figures.error),
                  std::to_string(figures.launches), pricesText(figures)});
    if (!figures.notConsidered.empty())
      notes += fmt::format("* {}: not considered, estimated by the model alone: {}\n",
                           spelled(kind.kind), figures.notConsidered);
    if (figures.softmax.subVector > 0)
      notes += fmt::format("{}: {}\n", spelled(kind.kind), stepsText(figures.softmax));
    if (figures.tileRows > 0)
      notes += fmt::format(
          "fused, theory of L2: keys and values of a head once for every {} queries, with queries "
          "and output: {}\n",
          figures.tileRows, formatBytes(figures.l2Theory));
  }
  text += table.print() + fmt::format("chosen: {}: {}\n", spelled(chosen), why) +
          sweepsText(prices) + notes;
  if (!prices.whyNoLengths.empty())
    return text + fmt::format("no crossover over length: {}\n", prices.whyNoLengths);
  std::vector<std::string> lengths;
  for (const decision::Crossover &one : prices.crossovers) lengths.push_back(lengthsText(one));
  return text +
         fmt::format("fused is as fast as, of the powers of two from {} to {} {}: {}\n",
                     decision::leastLength, decision::mostLength,
                     site.queries == site.keys ? "queries and keys" : "keys",
                     fmt::join(lengths, ", ")) +
         slopeText(prices.fusedWorkspace);
}

json tilesJson(const std::vector<decision::PricedTile> &tiles) {
  json list = json::array();
  for (const decision::PricedTile &tile : tiles)
    list.push_back({{"queries", tile.queries},
                    {"keys", tile.keys},
                    {"knobs", toJson(tile.knobs)},
                    {"seconds", tile.seconds},
                    {"measured", tile.isMeasured},
                    {"l2Bytes", tile.l2Bytes}});
  return list;
}

json rangesJson(const decision::Crossover &crossover) {
  json list = json::array();
  for (const decision::LengthRange &range : crossover.ranges)
    list.push_back({{"from", range.from}, {"to", range.to}});
  return list;
}

json toJson(const AttentionSite &site, const decision::AttentionPrices &prices,
            AttentionChoice chosen, const std::string &why) {
  json kinds = json::array(), crossovers = json::array();
  for (const decision::PricedKind &kind : prices.kinds) {
    json one = {{"kind", spelled(kind.kind)}, {"chosen", kind.kind == chosen}};
    if (!kind.figures) {
      one["rejected"] = kind.rejection;
    } else {
      const decision::KindFigures &figures = *kind.figures;
      one["figures"] = {{"seconds", figures.seconds},
                        {"graphSeconds", figures.graphSeconds},
                        {"dramBytes", figures.dramBytes},
                        {"l2Bytes", figures.l2Bytes},
                        {"l2Theory", figures.l2Theory},
                        {"tileRows", figures.tileRows},
                        {"tiles", tilesJson(figures.tiles)},
                        {"workspaceBytes", figures.workspaceBytes},
                        {"errorConstant", figures.error.constant},
                        {"errorPerScore", figures.error.perScore},
                        {"sweeps", figures.softmax.sweeps},
                        {"subVector", figures.softmax.subVector},
                        {"statisticsBytes", figures.softmax.statisticsBytes},
                        {"statisticsShare", figures.softmax.statisticsShare},
                        {"localSoftmaxSeconds", figures.softmax.localSeconds},
                        {"reduceSubvectorsSeconds", figures.softmax.reductionSeconds},
                        {"globalScalingSeconds", figures.softmax.scalingSeconds},
                        {"chunks", figures.chunks},
                        {"launches", figures.launches},
                        {"measured", figures.measured},
                        {"kernels", figures.kernels},
                        {"notConsidered", figures.notConsidered}};
    }
    kinds.push_back(std::move(one));
  }
  for (const decision::Crossover &one : prices.crossovers)
    crossovers.push_back({{"kind", spelled(one.kind)},
                          {"length", one.length() ? json(*one.length()) : json()},
                          {"ranges", rangesJson(one)},
                          {"whyNone", one.whyNone}});
  json workspace;
  if (const auto &slope = prices.fusedWorkspace)
    workspace = {{"lengths", slope->lengths},
                 {"bytesPerToken", slope->bytesPerToken},
                 {"deviation", slope->deviation}};
  return {{"softmax", site.softmax},
          {"output", site.output},
          {"dtype", weft::nameOf(site.dtype)},
          {"heads", site.heads},
          {"queries", site.queries},
          {"keys", site.keys},
          {"headDim", site.headDim},
          {"valueDim", site.valueDim},
          {"compulsoryBytes", site.compulsoryBytes},
          {"chosen", spelled(chosen)},
          {"why", why},
          {"kinds", kinds},
          {"crossovers", crossovers},
          {"fusedWorkspace", workspace},
          {"whyNoLengths", prices.whyNoLengths}};
}

json toJson(const WholePlan &whole) {
  if (!whole.rejection.empty())
    return {{"kind", spelled(whole.kind)}, {"rejected", whole.rejection}};
  json plan = {{"kind", spelled(whole.kind)},
               {"graphSeconds", whole.seconds},
               {"workspaceBytes", whole.workspaceBytes}};
  if (!whole.rejectedBackwards.empty()) plan["rejectedBackwards"] = whole.rejectedBackwards;
  if (whole.slowerBackwards > 0) plan["slowerBackwards"] = whole.slowerBackwards;
  return plan;
}

std::string wholesText(const std::vector<WholePlan> &wholes) {
  std::vector<std::string> texts;
  for (const WholePlan &whole : wholes)
    texts.push_back(whole.rejection.empty() ? fmt::format("{} {} in {}", spelled(whole.kind),
                                                          formatSeconds(whole.seconds),
                                                          formatBytes(whole.workspaceBytes))
                                            : fmt::format("{} none", spelled(whole.kind)));
  std::string text = fmt::format(
      "the whole plan as one graph, all attentions in one kind, and its workspace: "
      "{}\n",
      fmt::join(texts, "; "));
  for (const WholePlan &whole : wholes) {
    for (const std::string &rejection : whole.rejectedBackwards)
      text += fmt::format("backward: no fused kernel: {}\n", rejection);
    if (whole.slowerBackwards > 0)
      text += fmt::format("backward: {}: several kernels are faster by today's prices\n",
                          whole.slowerBackwards == 1 ? "a fused kernel is not taken"
                                                     : fmt::format("{} fused kernels are not taken",
                                                                   whole.slowerBackwards));
  }
  return text;
}

}  // namespace

Explanation explainAttention(const runtime::Artifact &artifact, const std::string &profile) {
  Request request = requestOf(artifact.report);
  if (!profile.empty()) request.target.profile = profile;
  if (request.first > Phase::attention)
    throw Error::unsupported(
        "explain --attention: the plan was asked from a graph behind the attention phase "
        "(--start-from {}), whose kind is given; compile the model, or its graph with --start-from "
        "attention",
        weft::driver::nameOf(request.first));
  const std::vector<AttentionSite> sites =
      attentionSites(request.graphs.front().text, request.choices.subVector.lengths().front());
  if (sites.empty())
    return {.text = "no attention: no softmax between two contractions\n",
            .json = {{"sites", json::array()}, {"plans", json::array()}, {"samePrices", true}}};
  const std::vector<WholePlan> wholes = wholePlans(request);
  const bool haveSamePrices =
      sourceOfPrices(request.target, *costModelOf(request.target)) == request.prices;
  const auto labels = artifact.report.value("opLabels", std::vector<std::string>());
  std::string text;
  json list = json::array(), plans = json::array();
  for (const AttentionSite &site : sites) {
    const decision::AttentionPrices prices = decision::attentionPrices(questionOf(request, site));
    const AttentionChoice chosen = chosenKind(artifact.plan, labels, site);
    const std::string why = whyChosen(chosen, request, prices, wholes);
    text += siteText(site, prices, chosen, why, request.choices.fill) + "\n";
    list.push_back(toJson(site, prices, chosen, why));
  }
  for (const WholePlan &whole : wholes) plans.push_back(toJson(whole));
  text += wholesText(wholes) +
          "each kind as decided for the attention alone, its arguments and results in any layout; "
          "DRAM without what kernels find in L2; error bound: over the greatest value, |s|: the "
          "greatest score; sweeps: how often kernels read or write as many elements as there are "
          "scores, of these; the row decomposed has its three steps in kernels apart, "
          "--attention decomposed also takes them in GEMMs (recomposed) where that is faster\n";
  if (std::ranges::any_of(sites, [](const AttentionSite &site) { return !site.fused.empty(); }))
    text +=
        "of a trained attention, the forward pass: what the backward pass reads is stored, "
        "probabilities or, if it is fused, one number a row\n";
  if (!haveSamePrices) text += "note: the prices are others than when this plan was chosen\n";
  return {.text = text,
          .json = {{"sites", list}, {"plans", plans}, {"samePrices", haveSamePrices}}};
}

}  // namespace weft::driver
