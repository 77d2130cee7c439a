// Outcomes are looked up by (candidate, input masks): thousands of states share few of them.
#include "passes/select/Outcomes.h"

#include <algorithm>
#include <set>

namespace weft::select {

Outcomes::Ranked &Outcomes::of(int candidate, const Masks &inputs,
                               const std::vector<bool> &matters) {
  key.assign(reinterpret_cast<const char *>(&candidate), sizeof candidate);
  key.append(inputs.begin(), inputs.end());
  for (const bool one : matters) key.push_back(one ? 1 : 0);
  const auto [entry, isNew] = found.try_emplace(key);
  if (isNew) {
    entry->second = find(candidate, inputs, matters);
    worked += static_cast<int64_t>(prices.candidate(candidate).table.size() +
                                   16 * entry->second.all.size());
    constexpr int64_t ofOutcome = sizeof(Outcome) + sizeof(double) + 64, ofAnswer = 160;
    held += ofAnswer + ofOutcome * static_cast<int64_t>(entry->second.all.size());
  }
  return entry->second;
}

Outcomes::Ranked Outcomes::find(int candidate, const Masks &inputs,
                                const std::vector<bool> &matters) {
  const CandidatePrices &table = prices.candidate(candidate);
  const size_t operands = table.choices.size();
  /// Per operand and choice: seconds of the transpose it needs, and its part of the key: which
  /// layout must be told apart.
  std::vector<std::vector<double>> penalty(operands);
  std::vector<std::vector<int>> part(operands);
  for (size_t i = 0; i < operands; ++i)
    for (size_t c = 0; c < table.choices[i].size(); ++c) {
      const int layout = table.choices[i][c];
      const bool isMissing = i < inputs.size() && !(inputs[i] >> layout & 1);
      penalty[i].push_back(
          isMissing ? prices.cheapestTranspose(table.operands[i], inputs[i], layout).second : 0);
      part[i].push_back(matters[i] && (isMissing || i >= inputs.size()) ? layout : -1);
    }
  // Outcomes are numbered by the ranks of their parts, so that they come in the order of the keys.
  std::vector<std::vector<size_t>> step(operands);
  size_t keys = 1;
  for (size_t i = operands; i-- > 0;) {
    std::vector<int> distinct = part[i];
    std::ranges::sort(distinct);
    distinct.erase(std::ranges::unique(distinct).begin(), distinct.end());
    for (const int one : part[i])
      step[i].push_back(
          keys * static_cast<size_t>(std::ranges::lower_bound(distinct, one) - distinct.begin()));
    keys *= std::max<size_t>(1, distinct.size());
  }
  constexpr size_t mostKeys = 1 << 16;  // a dense table has fewer
  best.assign(keys <= mostKeys ? keys : 0, {infinite, 0});
  std::map<size_t, std::pair<double, size_t>> sparse;
  std::vector<int> choice = table.table.empty() ? std::vector<int>(operands) : table.choiceOf(0);
  // Sums over the first operands, which stay the same from one entry to the next.
  std::vector<double> seconds(operands + 1, 0);
  std::vector<size_t> number(operands + 1, 0);
  const auto sumFrom = [&](size_t first, size_t end) {
    for (size_t i = first; i < end; ++i) {
      seconds[i + 1] = seconds[i] + penalty[i][size_t(choice[i])];
      number[i + 1] = number[i] + step[i][size_t(choice[i])];
    }
  };
  const auto offer = [&](size_t entry, double here, size_t key) {
    if (!(here < infinite)) return;
    std::pair<double, size_t> &known =
        keys <= mostKeys ? best[key] : sparse.try_emplace(key, infinite, size_t(0)).first->second;
    if (here < known.first) known = {here, entry};
  };
  size_t changed = 0;
  if (!table.listed.empty() || operands == 0) {
    for (size_t entry = 0; entry < table.table.size(); ++entry) {
      sumFrom(changed, operands);
      offer(entry, table.table[entry].seconds + seconds[operands], number[operands]);
      changed = table.advance(choice, entry);
    }
  } else if (!table.table.empty()) {  // dense: the last operand by itself, beside the others' sums
    const size_t last = operands - 1, width = table.choices[last].size();
    for (size_t row = 0; row < table.table.size(); row += width) {
      sumFrom(changed, last);
      for (size_t c = 0; c < width; ++c)
        offer(row + c, table.table[row + c].seconds + (seconds[last] + penalty[last][c]),
              number[last] + step[last][c]);
      choice[last] = int(width) - 1;  // the row's last entry, from which to advance
      changed = table.advance(choice, row + width - 1);
    }
  }
  Ranked result;
  const auto add = [&](const std::pair<double, size_t> &known) {
    const auto &[least, entry] = known;
    if (!(least < infinite)) return;
    double forecast = least;
    choice = table.choiceOf(entry);
    for (size_t i = inputs.size(); i < operands; ++i)
      forecast += prices.regret(table.operands[i], table.choices[i][size_t(choice[i])]);
    result.all.push_back({.seconds = least, .entry = entry, .forecast = forecast});
  };
  if (keys <= mostKeys)
    for (const auto &known : best) add(known);
  for (const auto &[ignored, known] : sparse) add(known);
  std::stable_sort(result.all.begin(), result.all.end(),
                   [](const Outcome &a, const Outcome &b) { return a.forecast < b.forecast; });
  result.leastFrom.resize(result.all.size());
  for (size_t i = result.all.size(); i-- > 0;)
    result.leastFrom[i] = std::min(result.all[i].seconds,
                                   i + 1 < result.all.size() ? result.leastFrom[i + 1] : infinite);
  return result;
}

const OutcomeSteps &Outcomes::stepsOf(Ranked &answer, size_t outcome, int candidate,
                                      const Masks &inputs) const {
  const auto [known, isNew] = answer.steps.try_emplace(outcome);
  OutcomeSteps &steps = known->second;
  if (!isNew) return steps;
  const CandidatePrices &table = prices.candidate(candidate);
  const size_t entry = answer.all[outcome].entry;
  const std::vector<int> choice = table.choiceOf(entry);
  steps.kernelSeconds = table.table[entry].seconds;
  std::set<std::pair<int, int>> missing;
  for (size_t i = 0; i < choice.size(); ++i) {
    const int layout = table.choices[i][static_cast<size_t>(choice[i])];
    if (i >= inputs.size()) steps.outputLayouts.push_back(layout);
    else if (!(inputs[i] >> layout & 1)) missing.insert({table.operands[i], layout});
  }
  steps.transposes.assign(missing.begin(), missing.end());
  return steps;
}

}  // namespace weft::select
