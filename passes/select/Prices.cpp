// The steps from a problem to its tables, and what the search asks of them.
#include "passes/select/Prices.h"

#include "kernel/Error.h"
#include "passes/select/Sites.h"

#include <algorithm>

namespace weft::select {

Prices::Prices(const Problem &problem, const CostModel &model, const Options &options,
               Statistics &statistics, SharedSpaces &shared)
    : problem(problem),
      model(model),
      options(options),
      statistics(statistics),
      spaces(shared),
      entries(problem.candidates.size()) {
  choosePins();
  findFolded();
  filterCandidates();
  keepLayouts(shared);
}

Prices::Prices(const Problem &problem, const CostModel &model, const Options &options,
               Statistics &statistics)
    : Prices(problem, model, options, statistics, std::make_shared<SharedSpaces>(model)) {}

Prices::Prices(const Problem &problem, const CostModel &model, const Options &options,
               Statistics &statistics, std::shared_ptr<SharedSpaces> given)
    : Prices(problem, model, options, statistics, *given) {
  own = std::move(given);
  buildTables();
}

void Prices::priceAll(const std::vector<bool> &wanted) {
  areTablesBuilt = true;
  limitTables(wanted);
  for (size_t c = 0; c < problem.candidates.size(); ++c)
    if (wanted[c]) buildTable(static_cast<int>(c));
  for (size_t t = 0; t < problem.tensors.size(); ++t) priceTransposes(static_cast<int>(t));
  findRegrets();
  countCoverage();
}

void Prices::buildTables() {
  priceAll(usable);
  if (cutTables)
    statistics.searchCuts.push_back(fmt::format(
        "kernels of '{}' keep {} combinations of layouts each", problem.name, mostCombinations));
  checkEveryOpHasKernel();
}

void Prices::buildTablesOf(const std::vector<bool> &wanted) {
  std::vector<bool> both = wanted;
  for (size_t c = 0; c < both.size(); ++c) both[c] = both[c] && usable[c];
  priceAll(both);
}

void Prices::countCoverage() {
  statistics.coverageMeasured = statistics.configurations > 0
                                    ? static_cast<double>(statistics.measured) /
                                          static_cast<double>(statistics.configurations)
                                    : 0;
}

/// Per layout, seconds that the best reader without a transpose loses by it; zero where the tensor
/// is wanted so.
std::vector<double> Prices::directLosses(int tensor) const {
  const auto t = static_cast<size_t>(tensor);
  const size_t count = keptLayouts[t].size();
  std::vector<double> losses(count, infinite);
  for (size_t c = 0; c < candidates.size(); ++c)
    for (size_t i = 0; usable[c] && i < problem.candidates[c].inputs.size(); ++i) {
      if (problem.candidates[c].inputs[i] != tensor) continue;
      for (size_t l = 0; l < count; ++l)
        if (const auto found = bests[c]->byLayout[i].find(keptLayouts[t][l]);
            found != bests[c]->byLayout[i].end())
          losses[l] = std::min(losses[l], found->second.seconds - candidates[c].bestSeconds);
    }
  if (problem.tensors[t].isResult && !pins[t]) losses.assign(count, 0);
  if (problem.tensors[t].isResult && pins[t])
    losses[static_cast<size_t>(numberOf(tensor, *pins[t]))] = 0;
  return losses;
}

void Prices::findRegrets() {
  regrets.clear();
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    const size_t count = keptLayouts[t].size();
    const std::vector<double> direct = directLosses(static_cast<int>(t));
    std::vector<double> regret = direct;
    for (size_t from = 0; from < count; ++from)
      for (size_t to = 0; to < count; ++to)
        if (direct[to] < regret[from])
          regret[from] =
              std::min(regret[from],
                       direct[to] + transposeSeconds(static_cast<int>(t), static_cast<int>(from),
                                                     static_cast<int>(to)));
    for (double &seconds : regret)
      if (!(seconds < infinite)) seconds = 0;
    regrets.push_back(std::move(regret));
  }
}

void Prices::checkEveryOpHasKernel() const {
  const Sites sites(problem);
  for (size_t op = 0; op < problem.ops.size(); ++op) {
    if (sites.isOpen(static_cast<int>(op), {})) continue;  // other alternatives may have one
    bool hasKernel = false;
    std::string reasons;
    if (const auto unfused = problem.unfusedReasons.find(static_cast<int>(op));
        unfused != problem.unfusedReasons.end())
      for (const std::string &reason : unfused->second) reasons += "; not fused: " + reason;
    for (size_t c = 0; c < problem.candidates.size(); ++c) {
      const Candidate &candidate = problem.candidates[c];
      if (std::find(candidate.ops.begin(), candidate.ops.end(), static_cast<int>(op)) ==
          candidate.ops.end())
        continue;
      if (!usable[c]) {
        const int inside = keptInside(candidate);
        reasons += uncounted.contains(c)
                       ? fmt::format("; '{}' leaves out no row, and the device counts the tokens",
                                     candidate.name)
                   : inside < 0
                       ? fmt::format("; '{}' is excluded by --fuse or --no-fuse", candidate.name)
                       : fmt::format("; '{}' keeps '{}' inside, which --pin wants stored",
                                     candidate.name, tensorOf(inside).name);
        continue;
      }
      const auto &table = candidates[c].table;
      if (std::any_of(table.begin(), table.end(),
                      [](const Price &price) { return price.seconds < infinite; }))
        hasKernel = true;
      else if (candidates[c].spaces.empty()) {
        for (const std::string &family : candidates[c].waiting)
          reasons += fmt::format("; '{}', {}: {}", candidate.name, family, waitingReason);
        for (const Exclusion &exclusion : enumerate(candidate.kernel, model.device()).excluded)
          reasons +=
              fmt::format("; '{}', {}: {}", candidate.name, exclusion.family, exclusion.reason);
      }
    }
    if (!hasKernel)
      throw Error::unsupported("op {} '{}' of '{}' fits no kernel{}", op, problem.ops[op],
                               problem.name, reasons);
  }
}

int Prices::numberOf(int tensor, const Layout &layout) const {
  const auto &kept = layouts(tensor);
  const auto found = std::find(kept.begin(), kept.end(), layout);
  return found == kept.end() ? -1 : static_cast<int>(found - kept.begin());
}

std::optional<int> Prices::pinned(int tensor) const {
  const auto &pin = pins[static_cast<size_t>(tensor)];
  if (!pin) return std::nullopt;
  return numberOf(tensor, *pin);
}

Configuration Prices::configuration(int index, size_t entry) const {
  const CandidatePrices &prices = candidates[static_cast<size_t>(index)];
  const Price &price = prices.table[entry];
  const ConfigurationSpace &space = prices.space(price.space);
  const LayoutTuple tuple =
      price.tuple >= 0 ? space.tuples[static_cast<size_t>(price.tuple)] : tupleOf(prices, entry);
  return toConfiguration(problem.candidates[static_cast<size_t>(index)].kernel, tuple,
                         space.knobs[static_cast<size_t>(price.knobs)]);
}

int64_t Prices::workspaceBytes(int index, size_t entry) const {
  const CandidatePrices &prices = candidates[static_cast<size_t>(index)];
  const Family &family = *prices.space(prices.table[entry].space).family;
  if (!family.workspaceBytes && !family.workspaceOfKnobs) return 0;
  const auto [known, isNew] = workspaces.try_emplace({index, entry}, 0);
  if (isNew)
    known->second = launchWorkspaceBytes(problem.candidates[static_cast<size_t>(index)].kernel,
                                         configuration(index, entry));
  return known->second;
}

std::string Prices::runnerUpKnobs(int index, size_t entry) const {
  const CandidatePrices &prices = candidates[static_cast<size_t>(index)];
  const Price &price = prices.table[entry];
  if (price.secondSpace < 0) return "";
  const ConfigurationSpace &space = prices.space(price.secondSpace);
  return describe(problem.candidates[static_cast<size_t>(index)].kernel,
                  space.knobs[static_cast<size_t>(price.secondKnobs)]);
}

}  // namespace weft::select
