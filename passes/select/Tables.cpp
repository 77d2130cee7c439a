// The price of a candidate under every combination of kept layouts. What is offered here is what
// the search chooses among, so it is counted here.
#include "kernel/RecentAnswers.h"
#include "passes/configure/OperandSums.h"
#include "passes/select/Prices.h"

#include <algorithm>
#include <set>

namespace weft::select {
namespace {

/// Combinations of one candidate's table; above it, the candidate's own worst layouts go. Fewer
/// where memory is short.
constexpr size_t shortestTable = 16;

}  // namespace

void Price::offer(double offered, int offeredSpace, int offeredKnobs, int offeredTuple) {
  if (offered < seconds) {
    if (seconds > offered * (1 + noise))
      secondSeconds = seconds, secondSpace = space, secondKnobs = knobs;
    seconds = offered, tuple = offeredTuple;
    space = static_cast<int16_t>(offeredSpace), knobs = static_cast<int16_t>(offeredKnobs);
  } else if (offered > seconds * (1 + noise) && offered < secondSeconds) {
    secondSeconds = offered;
    secondSpace = static_cast<int16_t>(offeredSpace),
    secondKnobs = static_cast<int16_t>(offeredKnobs);
  }
}

std::optional<size_t> CandidatePrices::indexOf(const std::vector<int> &choice) const {
  if (!listed.empty()) {
    const auto found = std::ranges::lower_bound(listed, choice);
    if (found == listed.end() || *found != choice) return std::nullopt;
    return size_t(found - listed.begin());
  }
  size_t index = 0;
  for (size_t i = 0; i < choices.size(); ++i)
    index = index * choices[i].size() + static_cast<size_t>(choice[i]);
  return index;
}

size_t CandidatePrices::advance(std::vector<int> &choice, size_t index) const {
  if (!listed.empty()) {
    if (index + 1 < listed.size()) choice = listed[index + 1];
    return 0;
  }
  for (size_t operand = choice.size(); operand-- > 0;) {
    if (++choice[operand] < int(choices[operand].size())) return operand;
    choice[operand] = 0;
  }
  return 0;
}

std::vector<int> CandidatePrices::choiceOf(size_t index) const {
  if (!listed.empty()) return listed[index];
  std::vector<int> choice(choices.size());
  for (size_t i = choices.size(); i-- > 0;) {
    choice[i] = static_cast<int>(index % choices[i].size());
    index /= choices[i].size();
  }
  return choice;
}

void Prices::buildTable(int index) {
  const Kernel &kernel = problem.candidates[static_cast<size_t>(index)].kernel;
  CandidatePrices &prices = candidates[static_cast<size_t>(index)];
  if (prices.isFolded) {
    buildFolded(prices);
    return;
  }
  const size_t size = chooseLayouts(index);
  if (size == 0) return;
  SharedSpaces::Entry &entry = *entries[static_cast<size_t>(index)];
  const auto price = [&] { return priceTable(kernel, prices, size); };
  const bool isShared = std::ranges::all_of(
      prices.spaces, [&](const SharedSpace &space) { return entry.has(space); });
  prices.owner = isShared ? spaces.table(entry,
                                         {.spaces = prices.spaces,
                                          .layouts = chosenLayouts(prices),
                                          .isListed = !prices.listed.empty()},
                                         price)
                          : std::make_shared<const PricedTable>(price());
  prices.table = prices.owner->entries;
  statistics.configurations += prices.owner->configurations;
  statistics.measured += prices.owner->measured;
}

/// Per operand, as its choices are numbered.
std::vector<LayoutTuple> Prices::chosenLayouts(const CandidatePrices &prices) const {
  std::vector<LayoutTuple> lists;
  for (size_t operand = 0; operand < prices.choices.size(); ++operand) {
    lists.emplace_back();
    for (const int number : prices.choices[operand])
      lists.back().push_back(layouts(prices.operands[operand])[static_cast<size_t>(number)]);
  }
  return lists;
}

/// A function of the kernel, its spaces and the chosen layouts alone.
PricedTable Prices::priceTable(const Kernel &kernel, const CandidatePrices &prices,
                               size_t size) const {
  const SteadyKernel steady(kernel);
  PricedTable result{.entries = std::vector<Price>(size)};
  offerMeasured(prices, result);
  const KnownSeconds known =
      prices.measured.empty() ? knownSeconds(kernel, prices) : KnownSeconds();
  for (size_t s = 0; s < prices.pricedSpaces; ++s)
    if (prices.spaces[s]->family->operandSums && prices.spaces[s]->tuples.empty() &&
        model.modelled().isSeparable(kernel))
      offerSums(kernel, prices, s, known, result);
    else offerOneByOne(kernel, prices, s, known, result);
  return result;
}

/// Rows of a kernel that is priced by the model because none of them leaves the pinned operands as
/// they are.
Prices::KnownSeconds Prices::knownSeconds(const Kernel &kernel,
                                          const CandidatePrices &prices) const {
  KnownSeconds known;
  for (const PricedConfiguration &row : model.measured(kernel)) {
    LayoutTuple tuple = row.configuration.inputs;
    tuple.insert(tuple.end(), row.configuration.outputs.begin(), row.configuration.outputs.end());
    if (const auto entry = entryOf(prices, tuple))
      known[{*entry, row.configuration.knobs}] = row.cost.seconds;
  }
  return known;
}

void Prices::buildFolded(CandidatePrices &prices) const {
  LayoutTuple tuple;
  for (int tensor : prices.operands) {
    tuple.push_back(*pins[static_cast<size_t>(tensor)]);
    prices.choices.push_back({numberOf(tensor, tuple.back())});
  }
  const Family &views = familyWith(&Family::isView);
  prices.spaces = {std::make_shared<ConfigurationSpace>(
      ConfigurationSpace{.family = &views, .tuples = {tuple}, .knobs = {views.defaults()}})};
  prices.pricedSpaces = 1;
  PricedTable table{.entries = std::vector<Price>(1)};
  table.entries[0].offer(0, 0, 0, 0);
  prices.owner = std::make_shared<const PricedTable>(std::move(table));
  prices.table = prices.owner->entries;
}

/// What a table may hold: an equal part of what all tables may take, where they would take more.
void Prices::limitTables(const std::vector<bool> &wanted) {
  int64_t entries = 0, tables = 0;
  for (size_t c = 0; c < problem.candidates.size(); ++c) {
    size_t size = wanted[c] ? 1 : 0;
    tables += wanted[c] ? 1 : 0;
    for (size_t operand = 0; wanted[c] && operand < bests[c]->byLayout.size(); ++operand)
      size =
          std::min(maximumTable,
                   size * static_cast<size_t>(std::ranges::count_if(
                              layouts(candidates[c].operands[operand]), [&](const Layout &layout) {
                                return bests[c]->byLayout[operand].contains(layout);
                              })));
    entries += static_cast<int64_t>(size);
  }
  const auto all = std::min(options.searchBytes / 3 / static_cast<int64_t>(sizeof(Price)),
                            options.searchWork / 32),
             each = all / std::max<int64_t>(1, tables);
  mostCombinations = maximumTable;
  if (entries > all)
    mostCombinations = static_cast<size_t>(std::clamp<int64_t>(each, shortestTable, maximumTable));
}

/// Lists the combinations that the families list, where every one of them does. False if some do
/// not, or if a table would be as short without.
bool Prices::listCombinations(CandidatePrices &prices) const {
  std::set<std::vector<int>> found;
  for (const SharedSpace &space : prices.spaces) {
    if (space->tuples.empty()) return false;
    for (const LayoutTuple &tuple : space->tuples) {
      std::vector<int> choice;
      for (size_t operand = 0; operand < prices.operands.size(); ++operand) {
        const int number = numberOf(prices.operands[operand], withoutPlace(tuple[operand]));
        const auto at = std::ranges::find(prices.choices[operand], number);
        if (at == prices.choices[operand].end()) break;
        choice.push_back(int(at - prices.choices[operand].begin()));
      }
      if (choice.size() == prices.operands.size()) found.insert(std::move(choice));
    }
  }
  if (found.empty() || found.size() > mostCombinations) return false;
  prices.listed.assign(found.begin(), found.end());
  return true;
}

/// Per operand the kept layouts that the candidate can take, its best first. Returns how many
/// combinations of them its table has.
size_t Prices::chooseLayouts(int index) {
  CandidatePrices &prices = candidates[static_cast<size_t>(index)];
  for (size_t operand = 0; operand < prices.operands.size(); ++operand) {
    const auto &best = bests[static_cast<size_t>(index)]->byLayout[operand];
    const std::vector<Layout> &kept = layouts(prices.operands[operand]);
    std::vector<std::pair<double, int>> ranked;
    for (size_t l = 0; l < kept.size(); ++l)
      if (const auto found = best.find(kept[l]); found != best.end())
        ranked.emplace_back(found->second.seconds, static_cast<int>(l));
    std::sort(ranked.begin(), ranked.end());
    std::vector<int> numbers;
    for (const auto &[seconds, number] : ranked) numbers.push_back(number);
    prices.choices.push_back(numbers);
  }
  const auto size = [&] {  // of many operands more than a size_t counts
    double product = 1;
    for (const std::vector<int> &numbers : prices.choices) product *= double(numbers.size());
    return product;
  };
  const auto most = double(mostCombinations);
  if (size() > most && listCombinations(prices)) return prices.listed.size();
  if (size() > most && mostCombinations < maximumTable) cutTables = true;
  while (size() > most)
    std::max_element(prices.choices.begin(), prices.choices.end(),
                     [](const auto &a, const auto &b) { return a.size() < b.size(); })
        ->pop_back();
  return size_t(size());
}

/// The entry of a combination of layouts; nothing if the table lacks one of them.
std::optional<size_t> Prices::entryOf(const CandidatePrices &prices,
                                      const LayoutTuple &tuple) const {
  std::vector<int> choice;
  for (size_t operand = 0; operand < prices.operands.size(); ++operand) {
    const int number = numberOf(prices.operands[operand], withoutPlace(tuple[operand]));
    const auto &numbers = prices.choices[operand];
    const auto found = std::find(numbers.begin(), numbers.end(), number);
    if (found == numbers.end()) return std::nullopt;
    choice.push_back(static_cast<int>(found - numbers.begin()));
  }
  return prices.indexOf(choice);
}

LayoutTuple Prices::tupleOf(const CandidatePrices &prices, size_t entry) const {
  LayoutTuple tuple;
  const std::vector<int> choice = prices.choiceOf(entry);
  for (size_t operand = 0; operand < choice.size(); ++operand)
    tuple.push_back(layouts(prices.operands[operand])[static_cast<size_t>(
        prices.choices[operand][static_cast<size_t>(choice[operand])])]);
  return tuple;
}

void Prices::offerMeasured(const CandidatePrices &prices, PricedTable &result) const {
  for (const MeasuredPoint &point : prices.measured) {
    const auto entry =
        entryOf(prices, prices.space(point.space).tuples[static_cast<size_t>(point.tuple)]);
    if (!entry) continue;
    ++result.configurations;
    result.measured += point.isMeasured ? 1 : 0;
    result.entries[*entry].offer(point.seconds, point.space, point.knobs, point.tuple);
  }
}

void Prices::offerSums(const Kernel &kernel, const CandidatePrices &prices, size_t s,
                       const KnownSeconds &known, PricedTable &result) const {
  const Kernel priced = model.modelled().separableKernel(kernel);
  const ConfigurationSpace &space = *prices.spaces[s];
  const std::unique_ptr<OperandSums> sums = space.family->operandSums(
      priced, model.device(), model.modelled().separableMargin(), space, chosenLayouts(prices));
  const OperandSums &table = *sums;
  std::vector<std::pair<double, size_t>> rows;
  for (size_t row = 0; row < table.knobsCount(); ++row)
    rows.emplace_back(table.best(row, -1, 0), row);
  std::sort(rows.begin(), rows.end());
  const std::vector<Knobs> &knobs = prices.spaces[s]->knobs;
  for (size_t k = 0; k < knobs.size() && !known.empty(); ++k)
    for (const auto &[place, seconds] : known)
      if (place.second == knobs[k])
        result.entries[place.first].offer(seconds, static_cast<int>(s), static_cast<int>(k), -1);
  std::vector<int> choice = prices.choiceOf(0);
  const size_t terms = choice.size() + 1;
  std::vector<OperandSums::Partial> partial(table.knobsCount() * terms);  // of each row
  std::vector<size_t> summed(table.knobsCount(), 0);  // operands of which it still holds
  for (size_t entry = 0; entry < result.entries.size(); ++entry) {
    for (const auto &[bound, row] : rows) {
      if (bound >= result.entries[entry].secondSeconds) break;
      ++result.configurations;
      if (!known.empty() && known.contains({entry, knobs[static_cast<size_t>(table.knobsOf(row))]}))
        continue;
      result.entries[entry].offer(
          table.seconds(row, choice, summed[row], std::span(partial).subspan(row * terms, terms)),
          static_cast<int>(s), table.knobsOf(row), -1);
      summed[row] = choice.size();
    }
    const size_t changed = prices.advance(choice, entry);
    for (size_t &operands : summed) operands = std::min(operands, changed);
  }
}

void Prices::offerOneByOne(const Kernel &kernel, const CandidatePrices &prices, size_t s,
                           const KnownSeconds &known, PricedTable &result) const {
  const ConfigurationSpace &space = *prices.spaces[s];
  const bool isView = space.family->isView;
  const auto offerTuple = [&](const LayoutTuple &tuple, size_t entry, int tupleIndex) {
    for (size_t k = 0; k < space.knobs.size(); ++k) {
      if (!isUseful(kernel, tuple, space.knobs[k])) continue;
      result.configurations += isView ? 0 : 1;
      const auto row = known.empty() ? known.end() : known.find({entry, space.knobs[k]});
      const double seconds = row != known.end()
                                 ? row->second
                                 : model.modelled()
                                       .cost(kernel, toConfiguration(kernel, tuple, space.knobs[k]))
                                       .seconds;
      result.entries[entry].offer(seconds, static_cast<int>(s), static_cast<int>(k), tupleIndex);
    }
  };
  for (size_t i = 0; i < space.tuples.size(); ++i)
    if (const auto entry = entryOf(prices, space.tuples[i]))
      offerTuple(space.tuples[i], *entry, static_cast<int>(i));
  for (size_t entry = 0; space.tuples.empty() && entry < result.entries.size(); ++entry)
    offerTuple(tupleOf(prices, entry), entry, -1);
}

}  // namespace weft::select
