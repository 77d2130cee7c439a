// Compilations of single attentions; see AttentionQuestions.h.
#include "tools/driver/AttentionQuestions.h"

#include "kernel/Error.h"
#include "passes/attention/RecomposedSites.h"
#include "tools/driver/Compilation.h"

#include <memory>
#include <utility>

namespace weft::driver {
namespace {

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

/// A compilation and what it proposed, which lives in the context of the compilation.
struct ProposedKind {
  std::unique_ptr<Compilation> compilation;
  std::vector<ProposedVariant> proposed;
};

ProposedKind proposedKind(const ChoiceFlags &choices, const TargetFlags &target,
                          const std::string &graph, std::vector<SharedPrices> &known) {
  ModelFlags model;
  model.model = "report.json.mlir";  // how messages call it
  auto compilation = std::make_unique<Compilation>(model, choices, target);
  compilation->importTexts({{.rewrites = {}, .text = graph}}, Phase::algebra);
  compilation->sharePrices(known);
  std::vector<ProposedVariant> proposed = compilation->propose(Phase::algebra);
  return {.compilation = std::move(compilation), .proposed = std::move(proposed)};
}

decision::KindQuestion questionOfKind(const Request &request, const std::string &graph,
                                      AttentionChoice kind, bool isEstimated,
                                      std::vector<SharedPrices> &known) {
  TargetFlags target = request.target;
  if (isEstimated) target.profile = noProfile;
  target.strict = false;
  ChoiceFlags choices = choicesFor(request, kind);
  auto owner = std::make_shared<ProposedKind>(proposedKind(choices, target, graph, known));
  if (kind == AttentionChoice::decomposed) {
    choices.noFuse = recomposedPairs(owner->proposed.front().counted);
    owner = std::make_shared<ProposedKind>(proposedKind(choices, target, graph, known));
  }
  return {.owner = owner,
          .problem = owner->compilation->problem(owner->proposed),
          .options = owner->compilation->options(owner->proposed),
          .fill = owner->compilation->expectedFill()};
}

/// Prices of kernels of one pair of lengths, which all kinds of an attention share.
struct PricesOfLengths {
  decision::Lengths lengths;
  std::vector<SharedPrices> known;
};

}  // namespace

decision::AttentionQuestion questionOf(const Request &request, const AttentionSite &site) {
  auto prices = std::make_shared<PricesOfLengths>();
  return {
      .shape = site,
      .isEstimated = request.target.hasNoProfile(),
      .ask =
          [&, prices](AttentionChoice kind, const decision::Lengths &lengths, bool isEstimated) {
            if (prices->lengths != lengths) *prices = {.lengths = lengths, .known = {}};
            const bool isOwn = lengths.queries == site.queries && lengths.keys == site.keys;
            return questionOfKind(
                request,
                isOwn ? site.graphOf(kind) : atLengths(site, kind, lengths.queries, lengths.keys),
                kind, isEstimated, prices->known);
          },
      .lengthsRejection = [&](const decision::Lengths &lengths) -> std::string {
        try {
          atLengths(site, AttentionChoice::fused, lengths.queries, lengths.keys);
        } catch (const Error &error) {
          if (error.kind != ErrorKind::unsupported) throw;
          return error.what();
        }
        return "";
      }};
}

}  // namespace weft::driver
