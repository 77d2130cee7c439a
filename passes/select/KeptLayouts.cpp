// Which layouts a tensor keeps: those of configurations near the best of some kernel, at most
// `maximumLayouts`, first those of kernels that some plan near the bound has.
//
// Measured kernels have the layouts of their measurements, so the kept layouts were measured. A
// layout that only views accept is kept only if nothing but views writes and reads the tensor:
// no launched kernel would accept it.
#include "passes/select/Prices.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft::select {
namespace {

/// What a layout that a kernel cannot take counts for.
constexpr double farRatio = 4;

}  // namespace

void Prices::keepLayouts(SharedSpaces &shared) {
  const size_t count = problem.tensors.size();
  std::vector<Worths> worths(count);
  std::vector<int> kernels(count, 0);
  bests.resize(problem.candidates.size());
  for (size_t c = 0; c < problem.candidates.size(); ++c) {
    if (!usable[c]) continue;
    const Candidate &candidate = problem.candidates[c];
    CandidatePrices &prices = candidates[c];
    prices.operands = candidate.inputs;
    prices.operands.insert(prices.operands.end(), candidate.outputs.begin(),
                           candidate.outputs.end());
    if (prices.isFolded) {
      bests[c] = std::make_shared<Bests>(
          Bests{.byLayout = std::vector<std::map<Layout, Bests::Best>>(prices.operands.size())});
      prices.bestSeconds = 0;
      continue;
    }
    ++statistics.kernels;
    openSpaces(static_cast<int>(c), shared);
    prices.bestSeconds = bests[c]->seconds;
    weigh(static_cast<int>(c), worths);
    for (int tensor : prices.operands) ++kernels[static_cast<size_t>(tensor)];
  }
  keptLayouts.resize(count);
  for (size_t t = 0; t < count; ++t) {
    const auto tensor = static_cast<int>(t);
    keepOf(tensor, ranked(tensor, worths[t], kernels[t]));
  }
}

void Prices::keepLayoutsFirst(const std::vector<bool> &near) {
  const size_t count = problem.tensors.size();
  std::vector<Worths> worths(count);
  std::vector<int> kernels(count, 0);
  for (size_t c = 0; c < problem.candidates.size(); ++c) {
    if (!usable[c] || !near[c] || candidates[c].isFolded) continue;
    weigh(static_cast<int>(c), worths);
    for (int tensor : candidates[c].operands) ++kernels[static_cast<size_t>(tensor)];
  }
  statistics.layoutCuts.clear();
  for (size_t t = 0; t < count; ++t) {
    const auto tensor = static_cast<int>(t);
    std::vector<Layout> best = ranked(tensor, worths[t], kernels[t]);
    best.insert(best.end(), keptLayouts[t].begin(), keptLayouts[t].end());
    keepOf(tensor, best);
  }
}

void Prices::weigh(int index, std::vector<Worths> &worths) const {
  const auto c = static_cast<size_t>(index);
  const CandidatePrices &prices = candidates[c];
  for (size_t operand = 0; operand < prices.operands.size(); ++operand)
    for (const auto &[layout, best] : bests[c]->byLayout[operand]) {
      Worth &entry = worths[static_cast<size_t>(prices.operands[operand])][layout];
      const double ratio = prices.bestSeconds > 0 ? best.seconds / prices.bestSeconds
                                                  : (best.seconds > 0 ? farRatio : 1);
      entry.bestRatio = std::min(entry.bestRatio, ratio);
      entry.sum += std::min(ratio, farRatio);
      ++entry.kernels;
      entry.isRun = entry.isRun || best.isRun;
      if (!bests[c]->tuple.empty() && withoutPlace(bests[c]->tuple[operand]) == layout)
        entry.isSomeBest = true;
    }
}

std::vector<Layout> Prices::ranked(int tensor, const Worths &worths, int kernels) const {
  const bool runs = std::any_of(worths.begin(), worths.end(),
                                [](const auto &entry) { return entry.second.isRun; });
  std::vector<std::tuple<bool, double, Layout>> order;  // cut last, by sum, by layout
  for (const auto &[layout, entry] : worths) {
    if (entry.bestRatio > options.nearBest && !entry.isSomeBest) continue;
    if (runs && !entry.isRun) continue;
    order.emplace_back(!entry.isSomeBest, entry.sum + farRatio * (kernels - entry.kernels), layout);
  }
  std::sort(order.begin(), order.end());
  std::vector<Layout> layouts;
  for (const auto &[cutLast, sum, layout] : order) layouts.push_back(layout);
  return layouts;
}

void Prices::keepOf(int index, const std::vector<Layout> &best) {
  const auto t = static_cast<size_t>(index);
  const Tensor &tensor = problem.tensors[t];
  std::vector<Layout> kept;
  if (pins[t]) kept.push_back(*pins[t]);
  const bool isFixed =
      pins[t] && (fixed[t] || (!freeToPack[t] && !tensor.isArgument && !tensor.isResult));
  for (const Layout &layout : best)
    if (!isFixed && kept.size() < maximumLayouts &&
        std::find(kept.begin(), kept.end(), layout) == kept.end())
      kept.push_back(layout);
  if (kept.empty()) kept.push_back(normalized(rowMajor(tensor.axes.size()), tensor.extents()));
  std::sort(kept.begin(), kept.end());
  const double all = countLayouts(tensor.extents());
  if (static_cast<double>(kept.size()) < all)
    statistics.layoutCuts.push_back(
        isFixed
            ? fmt::format("tensor {}: pinned to 1 of {:.0f} layouts", tensor.name, all)
            : fmt::format(
                  "tensor {}: kept {} of {:.0f} layouts (within {}x of the best of some kernel)",
                  tensor.name, kept.size(), all, options.nearBest));
  keptLayouts[t] = std::move(kept);
}

}  // namespace weft::select
