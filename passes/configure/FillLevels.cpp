// Drawing batches; see FillLevels.h.
#include "passes/configure/FillLevels.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace weft {
namespace {

constexpr size_t leastBatches = 1000, mostDraws = size_t(1) << 22;
constexpr double equalFills = 1e-6;

struct Batch {
  double tokens = 0, pairs = 0;
};

/// Batches in which each sequence has every length equally often, in another order than the other
/// sequences.
std::vector<Batch> drawBatches(const std::vector<double> &shares, int64_t sequences) {
  const size_t rounds = (leastBatches + shares.size() - 1) / shares.size();
  std::vector<Batch> batches(rounds * shares.size());
  std::vector<size_t> order(batches.size());
  std::mt19937_64 random(1);
  for (int64_t sequence = 0; sequence < sequences; ++sequence) {
    std::iota(order.begin(), order.end(), size_t(0));
    for (size_t n = order.size() - 1; sequence > 0 && n > 0; --n)
      std::swap(order[n], order[random() % (n + 1)]);
    for (size_t batch = 0; batch < batches.size(); ++batch) {
      const double share = shares[order[batch] % shares.size()];
      batches[batch].tokens += share / double(sequences);
      batches[batch].pairs += share * share / double(sequences);
    }
  }
  return batches;
}

/// As many of them as can be drawn of, evenly among the sorted ones.
std::vector<double> thinned(std::vector<double> shares, int64_t sequences) {
  std::ranges::sort(shares);
  const size_t most = std::max<size_t>(1, mostDraws / size_t(std::max<int64_t>(1, sequences)));
  if (shares.size() <= most) return shares;
  std::vector<double> kept;
  for (size_t n = 0; n < most; ++n)
    kept.push_back(shares[(2 * n + 1) * shares.size() / (2 * most)]);
  return kept;
}

std::vector<FillLevel> levelsOf(std::vector<Batch> batches) {
  std::ranges::sort(batches, {},
                    [](const Batch &batch) { return std::pair(batch.tokens, batch.pairs); });
  std::vector<FillLevel> levels;
  for (size_t level = 0; level < fillLevels; ++level) {
    const size_t begin = level * batches.size() / fillLevels,
                 end = (level + 1) * batches.size() / fillLevels;
    FillLevel own{.tokens = 0, .pairs = 0, .weight = double(end - begin) / double(batches.size())};
    for (size_t n = begin; n < end; ++n) {
      own.tokens += batches[n].tokens / double(end - begin);
      own.pairs += batches[n].pairs / double(end - begin);
    }
    levels.push_back(own);
  }
  const bool areEqual = levels.back().tokens - levels.front().tokens < equalFills &&
                        std::abs(levels.back().pairs - levels.front().pairs) < equalFills;
  return areEqual ? std::vector<FillLevel>() : levels;
}

}  // namespace

ExpectedFill fillOf(std::vector<double> shares, int64_t sequences) {
  ExpectedFill fill{.tokens = 0, .pairs = 0};
  for (const double share : shares) {
    fill.tokens += share / double(shares.size());
    fill.pairs += share * share / double(shares.size());
  }
  fill.levels = levelsOf(drawBatches(thinned(std::move(shares), sequences), sequences));
  return fill;
}

ExpectedFill fillOfBatches(const std::vector<std::vector<double>> &lengths) {
  ExpectedFill fill{.tokens = 0, .pairs = 0};
  std::vector<Batch> batches;
  for (const std::vector<double> &shares : lengths) {
    Batch own;
    for (const double share : shares) {
      own.tokens += share / double(shares.size());
      own.pairs += share * share / double(shares.size());
    }
    fill.tokens += own.tokens / double(lengths.size());
    fill.pairs += own.pairs / double(lengths.size());
    batches.insert(batches.end(), fillLevels, own);  // so that levels have equal weights
  }
  fill.levels = levelsOf(std::move(batches));
  return fill;
}

ExpectedFill fillOfMean(double mean, int64_t sequences) {
  const double spread = std::min(mean, 1 - mean);
  std::vector<double> shares(leastBatches);
  for (size_t n = 0; n < shares.size(); ++n)
    shares[n] = mean + spread * ((2 * double(n) + 1) / double(shares.size()) - 1);
  ExpectedFill fill = fillOf(std::move(shares), sequences);
  // The variance of such lengths is a third of the square.
  fill.tokens = mean, fill.pairs = mean * mean + spread * spread / 3;
  return fill;
}

std::vector<FillLevel> curveOf(const ExpectedFill &fill) {
  if (!fill.levels.empty()) return fill.levels;
  std::vector<FillLevel> levels;
  if (!fill.isFull()) levels.push_back({.tokens = fill.tokens, .pairs = fill.pairs, .weight = 1});
  for (int level = 1; level <= fillLevels; ++level) {
    const double share = double(level) / fillLevels;
    const FillLevel equal{.tokens = share, .pairs = share * share, .weight = 0};
    const auto isKnown = [&](const FillLevel &one) {
      return std::abs(one.tokens - equal.tokens) < 1e-9 && std::abs(one.pairs - equal.pairs) < 1e-9;
    };
    if (std::ranges::none_of(levels, isKnown)) levels.push_back(equal);
  }
  std::ranges::sort(levels, {}, &FillLevel::tokens);
  return levels;
}

}  // namespace weft
