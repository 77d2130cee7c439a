// The Pearson correlation of ranks.
#include "tools/driver/RankCorrelation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace weft::driver {
namespace {

std::vector<double> ranksOf(const std::vector<double> &values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = double(begin + end - 1) / 2;
    begin = end;
  }
  return ranks;
}

}  // namespace

std::optional<double> spearman(const std::vector<std::pair<double, double>> &pairs) {
  if (pairs.size() < 2) return std::nullopt;
  std::vector<double> first, second;
  for (const auto &[a, b] : pairs) {
    if (!std::isfinite(a) || !std::isfinite(b)) return std::nullopt;
    first.push_back(a);
    second.push_back(b);
  }
  const std::vector<double> x = ranksOf(first), y = ranksOf(second);
  const double mean = double(pairs.size() - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  if (!(xx > 0) || !(yy > 0)) return std::nullopt;
  return xy / std::sqrt(xx * yy);
}

}  // namespace weft::driver
