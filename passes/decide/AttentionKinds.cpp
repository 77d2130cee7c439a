// Kinds of attention priced one by one; see AttentionKinds.h.
#include "passes/decide/AttentionKinds.h"

#include "kernel/RejectedAttention.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace weft::decision {
namespace {

Expected<KindFigures> decideKind(const AttentionQuestion &question, AttentionChoice kind,
                                 const Lengths &lengths, bool isEstimated) {
  const KindQuestion asked = question.ask(kind, lengths, isEstimated);
  const Expected<Decision> decided = decidePlan(asked.problem, asked.options);
  if (!decided) return Unexpected(decided.error());
  return attentionFigures(decided->planned, *asked.problem.context.prices, asked.fill,
                          question.shape);
}

/// The price of a kind at these lengths.
PricedKind priceKind(const AttentionQuestion &question, AttentionChoice kind,
                     const Lengths &lengths, bool isEstimated) {
  PricedKind priced{.kind = kind, .figures = {}, .rejection = ""};
  try {
    const Expected<KindFigures> considered = decideKind(question, kind, lengths, isEstimated);
    if (considered) {
      priced.figures = *considered;
      return priced;
    }
    priced.rejection = considered.error().what();
    if (isEstimated) return priced;
    const Expected<KindFigures> estimated = decideKind(question, kind, lengths, true);
    if (!estimated) return priced;
    priced.figures = *estimated;
    priced.figures->notConsidered = std::exchange(priced.rejection, "");
  } catch (const RejectedAttention &error) {
    priced.rejection = error.reason;
  } catch (const Error &error) {
    if (error.kind != ErrorKind::unsupported && error.kind != ErrorKind::badInput) throw;
    priced.rejection = error.what();
  }
  return priced;
}

PricedKind priceKind(const AttentionQuestion &question, AttentionChoice kind,
                     const Lengths &lengths) {
  return priceKind(question, kind, lengths, question.isEstimated);
}

Lengths ownLengths(const AttentionQuestion &question) {
  return {.queries = question.shape.queries, .keys = question.shape.keys};
}

/// With so many keys: as many queries where the attention has as many, else its own.
Lengths lengthsOf(const AttentionQuestion &question, int64_t keys) {
  const auto &[queries, ownKeys] = ownLengths(question);
  return {.queries = queries == ownKeys ? keys : queries, .keys = keys};
}

/// The fused kind at one length.
struct FusedPrice {
  PricedKind chosen;
  std::optional<PricedKind> estimated = {};  ///< without a profile, once that is asked for
};

/// As one graph; of a kind that is estimated alone both by estimates.
bool fusedWins(const AttentionQuestion &question, const PricedKind &other, FusedPrice &fused,
               const Lengths &lengths) {
  if (other.figures->notConsidered.empty())
    return fused.chosen.figures->graphSeconds <= other.figures->graphSeconds;
  if (!fused.estimated)
    fused.estimated = priceKind(question, AttentionChoice::fused, lengths, true);
  const std::optional<KindFigures> &again = fused.estimated->figures;
  return again && again->graphSeconds <= other.figures->graphSeconds;
}

/// Nothing where there are less than two points. `points`: lengths and bytes.
std::optional<WorkspaceSlope> slopeOf(const std::vector<std::pair<double, double>> &points) {
  if (points.size() < 2) return {};
  double meanLength = 0, meanBytes = 0, spread = 0, common = 0, greatest = 0;
  for (const auto &[length, bytes] : points) {
    meanLength += length / double(points.size()), meanBytes += bytes / double(points.size());
    greatest = std::max(greatest, bytes);
  }
  for (const auto &[length, bytes] : points) {
    spread += (length - meanLength) * (length - meanLength);
    common += (length - meanLength) * (bytes - meanBytes);
  }
  WorkspaceSlope slope{.lengths = int(points.size()), .bytesPerToken = common / spread};
  for (const auto &[length, bytes] : points) {
    const double line = meanBytes + slope.bytesPerToken * (length - meanLength);
    if (greatest > 0)
      slope.deviation = std::max(slope.deviation, std::abs(bytes - line) / greatest);
  }
  return slope;
}

/// At every length: what is faster at short ones need not be at longer ones. DeBERTa's gathered
/// biases, say, cost the fused kind time for each score.
void addCrossovers(const AttentionQuestion &question, AttentionPrices &prices) {
  const std::vector<PricedKind> &kinds = prices.kinds;
  std::vector<Crossover> &crossovers = prices.crossovers;
  std::vector<std::pair<double, double>> workspaces;  // of the fused kind
  for (const PricedKind &kind : kinds)
    if (kind.kind != AttentionChoice::fused)
      crossovers.push_back({.kind = kind.kind, .ranges = {}, .whyNone = kind.rejection});
  std::vector<bool> isCompared(crossovers.size());  // at any length
  std::vector<bool> wonBefore(crossovers.size());   // at the length before
  std::string noFused;
  for (int64_t keys = leastLength; keys <= mostLength; keys *= 2) {
    const Lengths lengths = lengthsOf(question, keys);
    const auto priced = [&](AttentionChoice kind) {
      return lengths == ownLengths(question) ? *std::ranges::find(kinds, kind, &PricedKind::kind)
                                             : priceKind(question, kind, lengths);
    };
    FusedPrice fused{priced(AttentionChoice::fused)};
    if (!fused.chosen.figures) noFused = fused.chosen.rejection;
    else workspaces.emplace_back(double(keys), double(fused.chosen.figures->workspaceBytes));
    for (size_t n = 0; n < crossovers.size(); ++n) {
      Crossover &one = crossovers[n];
      if (!one.whyNone.empty()) continue;
      bool wins = false;
      if (fused.chosen.figures) {
        const PricedKind other = priced(one.kind);
        isCompared[n] = isCompared[n] || other.figures;
        wins = other.figures && fusedWins(question, other, fused, lengths);
      }
      if (wins && wonBefore[n]) one.ranges.back().to = keys;
      else if (wins) one.ranges.push_back({.from = keys, .to = keys});
      wonBefore[n] = wins;
    }
  }
  for (size_t n = 0; n < crossovers.size(); ++n)
    if (!isCompared[n] && crossovers[n].whyNone.empty()) crossovers[n].whyNone = noFused;
  prices.fusedWorkspace = slopeOf(workspaces);
}

}  // namespace

std::optional<int64_t> Crossover::length() const {
  if (ranges.empty() || ranges.back().to != mostLength) return {};
  return ranges.back().from;
}

AttentionPrices attentionPrices(const AttentionQuestion &question) {
  AttentionPrices prices;
  for (const AttentionChoice kind : pricedKinds)
    prices.kinds.push_back(priceKind(question, kind, ownLengths(question)));
  prices.whyNoLengths =
      prices.kinds.back().figures
          ? question.lengthsRejection(lengthsOf(question, 2 * question.shape.keys))
          : "no fused plan";
  if (prices.whyNoLengths.empty()) addCrossovers(question, prices);
  return prices;
}

}  // namespace weft::decision
