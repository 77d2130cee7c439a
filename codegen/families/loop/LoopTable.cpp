// Sums instead of configurations: a loop kernel with six operands of 24 layouts has 10^8
// combinations, but only 6 x 24 terms.
#include "codegen/families/loop/LoopTable.h"

#include "codegen/families/loop/LoopKnobs.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

namespace weft {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

}  // namespace

LoopTable::LoopTable(const Kernel &kernel, const Device &device, double margin,
                     const ConfigurationSpace &space,
                     const std::vector<std::vector<Layout>> &layouts) {
  const LoopPricer pricer(kernel, device);
  std::vector<std::vector<PlacedOperand>> placed(layouts.size());
  for (size_t operand = 0; operand < layouts.size(); ++operand)
    for (const Layout &layout : layouts[operand])
      placed[operand].push_back(pricer.place(operand, layout));

  // Rows that differ only in threads share their terms; among them only the fastest ever wins.
  std::map<std::array<int, 5>, size_t> sameTraffic;
  for (size_t k = 0; k < space.knobs.size(); ++k) {
    const auto &knobs = space.knobs[k].get<LoopKnobs>();
    const KnobPrice price = pricer.price(knobs);
    Row row{.knobs = static_cast<int>(k),
            .width = knobs.vectorWidth,
            .share = price.share,
            .issueSeconds = price.issueSeconds,
            .launchSeconds = device.launchSeconds,
            .margin = margin};
    const std::array<int, 5> key = {
        knobs.vectorAxis, knobs.vectorWidth, knobs.laneAxis, static_cast<int>(knobs.reduction),
        knobs.reduction == ReductionMapping::warp || knobs.reduction == ReductionMapping::block
            ? knobs.threadsPerRow
            : 1};
    const auto found = sameTraffic.find(key);
    if (found != sameTraffic.end() && rows[found->second].share >= row.share &&
        rows[found->second].issueSeconds <= row.issueSeconds)
      continue;
    for (size_t operand = 0; operand < placed.size(); ++operand) {
      std::vector<Term> terms;
      const double repeats = operand < kernel.inputs.size() ? price.rereads : 1;
      for (size_t l = 0; l < placed[operand].size(); ++l) {
        const ValueId value = operandValues(kernel)[operand];
        const bool isVector = row.width > 1 && isVectorAccessed(kernel, value, layouts[operand][l],
                                                                knobs.vectorAxis, row.width);
        terms.push_back({pricer.price(placed[operand][l], knobs).seconds * repeats, isVector});
      }
      double cheapest = infinite;
      for (const Term &term : terms) cheapest = std::min(cheapest, term.seconds);
      row.terms.push_back(std::move(terms));
      row.cheapest.push_back(cheapest);
    }
    sameTraffic[key] = rows.size();
    rows.push_back(std::move(row));
  }
}

double LoopTable::seconds(size_t index, const std::vector<int> &choice) const {
  std::vector<Partial> partial(choice.size() + 1);
  return seconds(index, choice, 0, partial);
}

double LoopTable::seconds(size_t index, const std::vector<int> &choice, size_t known,
                          std::span<Partial> partial) const {
  const Row &row = rows[index];
  if (known == 0) partial.front() = {.seconds = 0, .isUseful = row.width == 1};
  for (size_t operand = known; operand < choice.size(); ++operand) {
    const Term &term = row.terms[operand][static_cast<size_t>(choice[operand])];
    partial[operand + 1] = {.seconds = partial[operand].seconds + term.seconds,
                            .isUseful = partial[operand].isUseful || term.isVector};
  }
  return partial.back().isUseful ? row.total(partial.back().seconds) : infinite;
}

double LoopTable::best(size_t index, int fixed, int choice) const {
  const Row &row = rows[index];
  double sum = 0;
  for (size_t operand = 0; operand < row.terms.size(); ++operand) {
    const bool isFixed = static_cast<int>(operand) == fixed;
    sum +=
        isFixed ? row.terms[operand][static_cast<size_t>(choice)].seconds : row.cheapest[operand];
  }
  return row.total(sum);
}

std::unique_ptr<OperandSums> loopSums(const Kernel &kernel, const Device &device, double margin,
                                      const ConfigurationSpace &space,
                                      const std::vector<std::vector<Layout>> &layouts) {
  return std::make_unique<LoopTable>(kernel, device, margin, space, layouts);
}

}  // namespace weft
