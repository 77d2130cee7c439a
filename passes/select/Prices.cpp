// Which layouts are kept, and the tables over them. All calls of the cost model happen here.
#include "passes/select/Prices.h"

#include "kernel/Error.h"
#include "passes/configure/Packing.h"

#include <algorithm>
#include <numeric>

namespace weft::select {
namespace {

/// Combinations of one candidate's table; above it, the candidate's own worst layouts go.
constexpr size_t maximumTable = 8192;
/// Configurations that are priced one by one where the model is not separable.
constexpr double maximumPricedOneByOne = 20000;

std::vector<int64_t> extentsOf(const Tensor &tensor) {
  std::vector<int64_t> extents;
  for (const Axis &axis : tensor.axes) extents.push_back(axis.extent);
  return extents;
}

/// Kernels are handed the address of element zero: offsets are no part of a tensor's layout here.
Layout withoutOffset(Layout layout) {
  layout.offset = 0;
  return layout;
}

Configuration toConfiguration(const Kernel &kernel, const LayoutTuple &tuple, const Knobs &knobs) {
  const auto outputs = tuple.begin() + static_cast<ptrdiff_t>(kernel.inputs.size());
  return {.inputs = {tuple.begin(), outputs}, .outputs = {outputs, tuple.end()}, .knobs = knobs};
}

double combinations(const std::vector<std::vector<Layout>> &choices) {
  double product = 1;
  for (const auto &layouts : choices) product *= static_cast<double>(layouts.size());
  return product;
}

}  // namespace

void Price::offer(double offered, int offeredSpace, int offeredKnobs, int offeredTuple) {
  if (offered < seconds) {
    if (seconds > offered * (1 + noise)) secondSeconds = seconds, secondSpace = space, secondKnobs = knobs;
    seconds = offered, tuple = offeredTuple;
    space = static_cast<int16_t>(offeredSpace), knobs = static_cast<int16_t>(offeredKnobs);
  } else if (offered > seconds * (1 + noise) && offered < secondSeconds) {
    secondSeconds = offered;
    secondSpace = static_cast<int16_t>(offeredSpace), secondKnobs = static_cast<int16_t>(offeredKnobs);
  }
}

size_t CandidatePrices::indexOf(const std::vector<int> &choice) const {
  size_t index = 0;
  for (size_t i = 0; i < choices.size(); ++i) index = index * choices[i].size() + static_cast<size_t>(choice[i]);
  return index;
}

std::vector<int> CandidatePrices::choiceOf(size_t index) const {
  std::vector<int> choice(choices.size());
  for (size_t i = choices.size(); i-- > 0;) {
    choice[i] = static_cast<int>(index % choices[i].size());
    index /= choices[i].size();
  }
  return choice;
}

Prices::Prices(const Problem &problem, const CostModel &model, const Options &options, Statistics &statistics)
    : problem(problem), model(model), options(options), statistics(statistics) {
  choosePins();
  findFolded();
  filterCandidates();
  bestByLayout.resize(problem.candidates.size());
  candidates.resize(problem.candidates.size());
  keepLayouts();
  for (size_t c = 0; c < problem.candidates.size(); ++c)
    if (usable[c]) buildTable(static_cast<int>(c));
  checkCover();
  for (size_t t = 0; t < problem.tensors.size(); ++t) priceTransposes(static_cast<int>(t));
  findRegrets();
  statistics.coverageMeasured =
      statistics.configurations > 0 ? static_cast<double>(statistics.measured) / static_cast<double>(statistics.configurations) : 0;
}

void Prices::findRegrets() {
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    const size_t count = keptLayouts[t].size();
    std::vector<double> direct(count, infinite);
    for (size_t c = 0; c < candidates.size(); ++c)
      for (size_t i = 0; usable[c] && i < problem.candidates[c].inputs.size(); ++i) {
        if (problem.candidates[c].inputs[i] != static_cast<int>(t)) continue;
        for (size_t l = 0; l < count; ++l)
          if (const auto found = bestByLayout[c][i].find(keptLayouts[t][l]); found != bestByLayout[c][i].end())
            direct[l] = std::min(direct[l], found->second - candidates[c].bestSeconds);
      }
    if (problem.tensors[t].isResult && !pins[t]) direct.assign(count, 0);
    if (problem.tensors[t].isResult && pins[t]) direct[static_cast<size_t>(numberOf(static_cast<int>(t), *pins[t]))] = 0;
    std::vector<double> regret = direct;
    for (size_t from = 0; from < count; ++from)
      for (size_t to = 0; to < count; ++to)
        if (direct[to] < regret[from])
          regret[from] = std::min(regret[from], direct[to] + transposeSeconds(static_cast<int>(t), static_cast<int>(from), static_cast<int>(to)));
    for (double &seconds : regret)
      if (!(seconds < infinite)) seconds = 0;
    regrets.push_back(std::move(regret));
  }
}

void Prices::choosePins() {
  for (const Tensor &tensor : problem.tensors) {
    const std::vector<int64_t> extents = extentsOf(tensor);
    std::optional<Layout> pin;
    if (tensor.pinned) {
      if (tensor.pinned->order.size() != extents.size())
        throw Error::badInput("tensor '{}' has {} dimensions, its pinned layout {}", tensor.name, extents.size(),
                              tensor.pinned->order.size());
      pin = normalized(*tensor.pinned, extents);
    } else if ((tensor.isArgument || tensor.isResult) && (!options.free || tensor.isParameter)) {
      pin = normalized(rowMajor(extents.size()), extents);
    }
    pins.push_back(pin);
  }
  for (const auto &[a, b] : problem.tiedTensors) {
    auto &first = pins[static_cast<size_t>(a)], &second = pins[static_cast<size_t>(b)];
    if (first && second && *first != *second)
      throw Error::badInput("tensors '{}' and '{}' share one layout but are pinned to different ones",
                            problem.tensors[static_cast<size_t>(a)].name, problem.tensors[static_cast<size_t>(b)].name);
    if (!first) first = second;
    if (!second) second = first;
  }
}

void Prices::findFolded() {
  for (const Tensor &tensor : problem.tensors) freeToPack.push_back(tensor.isArgument && tensor.isParameter);
  for (const auto &[a, b] : problem.tiedTensors) freeToPack[static_cast<size_t>(a)] = freeToPack[static_cast<size_t>(b)] = false;
  std::vector<int> order(problem.candidates.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return problem.candidates[static_cast<size_t>(a)].ops < problem.candidates[static_cast<size_t>(b)].ops;
  });
  candidates.resize(problem.candidates.size());
  for (int index : order) {
    const Candidate &candidate = problem.candidates[static_cast<size_t>(index)];
    if (candidate.ops.size() != 1 || candidate.inputs.empty() || !isPackedAtLoad(candidate.kernel)) continue;
    const bool fromParameters = std::all_of(candidate.inputs.begin(), candidate.inputs.end(), [&](int t) { return freeToPack[static_cast<size_t>(t)]; });
    const bool leaves = std::any_of(candidate.outputs.begin(), candidate.outputs.end(), [&](int t) { return problem.tensors[static_cast<size_t>(t)].isResult; });
    if (!fromParameters || leaves) continue;
    candidates[static_cast<size_t>(index)].isFolded = true;
    for (int tensor : candidate.outputs) {
      freeToPack[static_cast<size_t>(tensor)] = true;
      const std::vector<int64_t> extents = extentsOf(problem.tensors[static_cast<size_t>(tensor)]);
      if (!pins[static_cast<size_t>(tensor)]) pins[static_cast<size_t>(tensor)] = normalized(rowMajor(extents.size()), extents);
    }
  }
}

void Prices::filterCandidates() {
  for (const Candidate &candidate : problem.candidates) {
    const auto has = [&](int op) { return std::find(candidate.ops.begin(), candidate.ops.end(), op) != candidate.ops.end(); };
    bool isAllowed = true;
    for (const auto &[a, b] : options.forbidFused) isAllowed = isAllowed && !(has(a) && has(b));
    for (const auto &[a, b] : options.forceFused) isAllowed = isAllowed && has(a) == has(b);
    usable.push_back(isAllowed);
  }
}

/// Leaves the knobs of block reductions that combine as asked, if the kernel has a softmax and there are any.
static void combineSoftmax(const Kernel &kernel, BlockCombine combine, ConfigurationSpace &space) {
  const auto isSoftmax = [](const BodyOp &op) { return op.name == "softmax" || op.name == "local_softmax"; };
  if (std::none_of(kernel.body.begin(), kernel.body.end(), isSoftmax)) return;
  std::vector<Knobs> asked;
  for (const Knobs &knobs : space.knobs) {
    const auto *loop = std::get_if<LoopKnobs>(&knobs);
    if (loop && loop->reduction == ReductionMapping::block && loop->combine == combine) asked.push_back(knobs);
  }
  if (!asked.empty()) space.knobs = std::move(asked);
}

/// A result lies in the caller's buffer and operands of a concatenation in their own: no views there.
void Prices::openSpaces(int index) {
  const Candidate &candidate = problem.candidates[static_cast<size_t>(index)];
  CandidatePrices &prices = candidates[static_cast<size_t>(index)];
  const bool leaves = std::any_of(candidate.outputs.begin(), candidate.outputs.end(), [&](int t) { return problem.tensors[static_cast<size_t>(t)].isResult; });
  std::vector<ConfigurationSpace> spaces = configurationSpaces(candidate.kernel, model.device());
  std::set<Knobs> loopKnobs;
  for (ConfigurationSpace &space : spaces) {
    if (options.softmax) combineSoftmax(candidate.kernel, *options.softmax, space);
    if (space.family == "loop") loopKnobs.insert(space.knobs.begin(), space.knobs.end());
  }
  std::vector<PricedConfiguration> rows = model.measured(candidate.kernel);
  std::erase_if(rows, [&](const PricedConfiguration &row) {  // what is asked for now, and still legal
    return std::holds_alternative<LoopKnobs>(row.configuration.knobs) && !loopKnobs.contains(row.configuration.knobs);
  });
  const bool fits = std::any_of(rows.begin(), rows.end(), [&](const PricedConfiguration &row) { return reachesPins(index, row); });
  bool isModelled = false;
  for (ConfigurationSpace &space : spaces) {
    const bool isView = space.family == "view";
    if (isView && (leaves || candidate.kernel.body[0].name == "concat")) continue;
    statistics.legalConfigurations += countConfigurations(candidate.kernel, space);
    if (!isView && fits) continue;
    isModelled = isModelled || !isView;
    prices.spaces.push_back(std::move(space));
  }
  prices.pricedSpaces = prices.spaces.size();
  if (fits) addMeasured(index, rows);
  if (!isModelled || !model.hasMeasurements()) return;
  const std::string reason = rows.empty() ? "no configuration was measured" : "no measured configuration takes the pinned layouts";
  if (!model.admitsModelled())
    throw Error::strictMiss("kernel '{}' of '{}': {} ({})", candidate.name, problem.name, reason, model.description());
  ++statistics.unmeasuredKernels;
  if (!rows.empty()) statistics.notes.push_back(fmt::format("kernel {}: {}; priced by the model", candidate.name, reason));
}

/// Whether a row leaves every pinned operand as it is pinned.
bool Prices::reachesPins(int index, const PricedConfiguration &row) const {
  const Candidate &candidate = problem.candidates[static_cast<size_t>(index)];
  const auto agrees = [&](int tensor, const Layout &layout) {
    const auto &pin = pins[static_cast<size_t>(tensor)];
    return !pin || freeToPack[static_cast<size_t>(tensor)] || layout == *pin;
  };
  for (size_t i = 0; i < candidate.inputs.size(); ++i)
    if (!agrees(candidate.inputs[i], row.configuration.inputs[i])) return false;
  for (size_t i = 0; i < candidate.outputs.size(); ++i)
    if (!agrees(candidate.outputs[i], row.configuration.outputs[i])) return false;
  return true;
}

/// Rows become spaces of tuples, one a family, in which only the measured points are offered.
void Prices::addMeasured(int index, const std::vector<PricedConfiguration> &rows) {
  CandidatePrices &prices = candidates[static_cast<size_t>(index)];
  std::map<std::string_view, int> spaceOf;
  std::map<std::pair<int, LayoutTuple>, int> tupleOf;
  std::map<std::pair<int, Knobs>, int> knobsOf;
  for (const PricedConfiguration &row : rows) {
    const std::string_view family = familyOf(row.configuration.knobs);
    const auto [space, isNewSpace] = spaceOf.try_emplace(family, static_cast<int>(prices.spaces.size()));
    if (isNewSpace) prices.spaces.push_back({.family = std::string(family)});
    ConfigurationSpace &target = prices.spaces[static_cast<size_t>(space->second)];
    LayoutTuple layouts = row.configuration.inputs;
    layouts.insert(layouts.end(), row.configuration.outputs.begin(), row.configuration.outputs.end());
    const auto [tuple, isNewTuple] = tupleOf.try_emplace({space->second, layouts}, static_cast<int>(target.tuples.size()));
    if (isNewTuple) target.tuples.push_back(std::move(layouts));
    const auto [knobs, isNewKnobs] = knobsOf.try_emplace({space->second, row.configuration.knobs}, static_cast<int>(target.knobs.size()));
    if (isNewKnobs) target.knobs.push_back(row.configuration.knobs);
    prices.measured.push_back({.space = space->second, .tuple = tuple->second, .knobs = knobs->second, .seconds = row.cost.seconds});
  }
  statistics.configurations += static_cast<int64_t>(rows.size());
  statistics.measured += static_cast<int64_t>(rows.size());
}

void Prices::keepLayouts() {
  /// A layout's worth for one tensor: the best ratio over kernels decides whether it is kept, the sum which go first.
  struct Worth {
    double bestRatio = infinite, sum = 0;
    int kernels = 0;
    bool isSomeBest = false;
  };
  std::vector<std::map<Layout, Worth>> worth(problem.tensors.size());
  std::vector<int> kernelsOf(problem.tensors.size(), 0);
  constexpr double farRatio = 4;  // what a layout that a kernel cannot take counts for
  const Device &device = model.device();

  for (size_t c = 0; c < problem.candidates.size(); ++c) {
    if (!usable[c]) continue;
    const Candidate &candidate = problem.candidates[c];
    CandidatePrices &prices = candidates[c];
    prices.operands = candidate.inputs;
    prices.operands.insert(prices.operands.end(), candidate.outputs.begin(), candidate.outputs.end());
    bestByLayout[c].resize(prices.operands.size());
    if (prices.isFolded) {
      prices.bestSeconds = 0;
      continue;
    }
    ++statistics.kernels;
    openSpaces(static_cast<int>(c));
    LayoutTuple bestTuple;
    const auto offer = [&](size_t operand, const Layout &layout, double seconds) {
      double &best = bestByLayout[c][operand].try_emplace(withoutOffset(layout), infinite).first->second;
      best = std::min(best, seconds);
    };
    for (const MeasuredPoint &point : prices.measured) {
      const LayoutTuple &tuple = prices.spaces[static_cast<size_t>(point.space)].tuples[static_cast<size_t>(point.tuple)];
      if (point.seconds < prices.bestSeconds) prices.bestSeconds = point.seconds, bestTuple = tuple;
      for (size_t operand = 0; operand < tuple.size(); ++operand) offer(operand, tuple[operand], point.seconds);
    }
    for (size_t s = 0; s < prices.pricedSpaces; ++s) {
      const ConfigurationSpace &space = prices.spaces[s];
      const double configurations = combinations(space.choices) * static_cast<double>(space.knobs.size());
      const bool bySum = space.tuples.empty() && (model.isSeparable(candidate.kernel) || configurations > maximumPricedOneByOne);
      if (bySum) {
        const LoopTable table(candidate.kernel, device, space, space.choices);
        for (size_t row = 0; row < table.knobsCount(); ++row) {
          prices.bestSeconds = std::min(prices.bestSeconds, table.best(row, -1, 0));
          for (size_t operand = 0; operand < space.choices.size(); ++operand)
            for (size_t l = 0; l < space.choices[operand].size(); ++l)
              offer(operand, space.choices[operand][l], table.best(row, static_cast<int>(operand), static_cast<int>(l)));
        }
        continue;
      }
      forEachTuple(space, [&](const LayoutTuple &tuple) {
        double seconds = infinite;
        for (const Knobs &knobs : space.knobs)
          if (isUseful(candidate.kernel, tuple, knobs) && ++statistics.configurations)
            seconds = std::min(seconds, model.cost(candidate.kernel, toConfiguration(candidate.kernel, tuple, knobs)).seconds);
        if (seconds < prices.bestSeconds) prices.bestSeconds = seconds, bestTuple = tuple;
        for (size_t operand = 0; operand < tuple.size(); ++operand) offer(operand, tuple[operand], seconds);
        return true;
      });
    }
    for (size_t operand = 0; operand < prices.operands.size(); ++operand) {
      const auto tensor = static_cast<size_t>(prices.operands[operand]);
      ++kernelsOf[tensor];
      for (const auto &[layout, seconds] : bestByLayout[c][operand]) {
        Worth &entry = worth[tensor][layout];
        const double ratio = prices.bestSeconds > 0 ? seconds / prices.bestSeconds : (seconds > 0 ? farRatio : 1);
        entry.bestRatio = std::min(entry.bestRatio, ratio);
        entry.sum += std::min(ratio, farRatio);
        ++entry.kernels;
        if (!bestTuple.empty() && withoutOffset(bestTuple[operand]) == layout) entry.isSomeBest = true;
      }
    }
  }

  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    std::vector<std::tuple<bool, double, Layout>> ranked;  // cut last, by sum, by layout
    for (const auto &[layout, entry] : worth[t]) {
      if (entry.bestRatio > options.nearBest && !entry.isSomeBest) continue;
      ranked.emplace_back(!entry.isSomeBest, entry.sum + farRatio * (kernelsOf[t] - entry.kernels), layout);
    }
    std::sort(ranked.begin(), ranked.end());
    std::vector<Layout> kept;
    if (pins[t]) kept.push_back(*pins[t]);
    const Tensor &tensor = problem.tensors[t];
    const bool isFixed = pins[t] && !freeToPack[t] && !tensor.isArgument && !tensor.isResult;
    for (const auto &[cutLast, sum, layout] : ranked)
      if (!isFixed && kept.size() < maximumLayouts && std::find(kept.begin(), kept.end(), layout) == kept.end()) kept.push_back(layout);
    if (kept.empty()) kept.push_back(normalized(rowMajor(tensor.axes.size()), extentsOf(tensor)));
    std::sort(kept.begin(), kept.end());
    const size_t all = distinctLayouts(extentsOf(tensor)).size();
    if (kept.size() < all)
      statistics.layoutCuts.push_back(isFixed ? fmt::format("tensor {}: pinned to 1 of {} layouts", tensor.name, all)
                                              : fmt::format("tensor {}: kept {} of {} layouts (within {}x of the best of some kernel)",
                                                            tensor.name, kept.size(), all, options.nearBest));
    keptLayouts.push_back(std::move(kept));
  }
}

void Prices::buildTable(int index) {
  const Candidate &candidate = problem.candidates[static_cast<size_t>(index)];
  CandidatePrices &prices = candidates[static_cast<size_t>(index)];
  const auto &bests = bestByLayout[static_cast<size_t>(index)];
  if (prices.isFolded) {
    LayoutTuple tuple;
    for (int tensor : prices.operands) {
      tuple.push_back(*pins[static_cast<size_t>(tensor)]);
      prices.choices.push_back({numberOf(tensor, tuple.back())});
    }
    prices.spaces = {{.family = "view", .tuples = {tuple}, .knobs = {ViewKnobs{}}}};
    prices.pricedSpaces = 1;
    prices.table.resize(1);
    prices.table[0].offer(0, 0, 0, 0);
    return;
  }
  size_t size = 1;
  for (size_t operand = 0; operand < prices.operands.size(); ++operand) {
    std::vector<std::pair<double, int>> ranked;
    const int tensor = prices.operands[operand];
    for (size_t l = 0; l < layouts(tensor).size(); ++l)
      if (const auto found = bests[operand].find(layouts(tensor)[l]); found != bests[operand].end())
        ranked.emplace_back(found->second, static_cast<int>(l));
    std::sort(ranked.begin(), ranked.end());
    std::vector<int> numbers;
    for (const auto &[seconds, number] : ranked) numbers.push_back(number);
    prices.choices.push_back(numbers);
    size *= numbers.size();
  }
  while (size > maximumTable) {
    const auto longest = std::max_element(prices.choices.begin(), prices.choices.end(), [](const auto &a, const auto &b) { return a.size() < b.size(); });
    size = size / longest->size() * (longest->size() - 1);
    longest->pop_back();
  }
  prices.table.assign(size, {});
  if (size == 0) return;

  const auto entryOf = [&](const LayoutTuple &tuple) -> std::optional<size_t> {
    std::vector<int> choice;
    for (size_t operand = 0; operand < prices.operands.size(); ++operand) {
      const int number = numberOf(prices.operands[operand], withoutOffset(tuple[operand]));
      const auto &numbers = prices.choices[operand];
      const auto found = std::find(numbers.begin(), numbers.end(), number);
      if (found == numbers.end()) return std::nullopt;
      choice.push_back(static_cast<int>(found - numbers.begin()));
    }
    return prices.indexOf(choice);
  };
  for (const MeasuredPoint &point : prices.measured)
    if (const auto entry = entryOf(prices.spaces[static_cast<size_t>(point.space)].tuples[static_cast<size_t>(point.tuple)]))
      prices.table[*entry].offer(point.seconds, point.space, point.knobs, point.tuple);

  for (size_t s = 0; s < prices.pricedSpaces; ++s) {
    const ConfigurationSpace &space = prices.spaces[s];
    if (space.tuples.empty() && model.isSeparable(candidate.kernel)) {
      std::vector<std::vector<Layout>> lists;
      for (size_t operand = 0; operand < prices.choices.size(); ++operand) {
        lists.emplace_back();
        for (int number : prices.choices[operand]) lists.back().push_back(layouts(prices.operands[operand])[static_cast<size_t>(number)]);
      }
      const LoopTable table(candidate.kernel, model.device(), space, lists);
      std::vector<std::pair<double, size_t>> rows;
      for (size_t row = 0; row < table.knobsCount(); ++row) rows.emplace_back(table.best(row, -1, 0), row);
      std::sort(rows.begin(), rows.end());
      for (size_t entry = 0; entry < size; ++entry) {
        const std::vector<int> choice = prices.choiceOf(entry);
        for (const auto &[bound, row] : rows) {
          if (bound >= prices.table[entry].secondSeconds) break;
          ++statistics.configurations;
          prices.table[entry].offer(table.seconds(row, choice), static_cast<int>(s), table.knobsOf(row), -1);
        }
      }
      continue;
    }
    const auto offerTuple = [&](const LayoutTuple &tuple, size_t entry, int tupleIndex) {
      for (size_t k = 0; k < space.knobs.size(); ++k)
        if (isUseful(candidate.kernel, tuple, space.knobs[k]))
          prices.table[entry].offer(model.cost(candidate.kernel, toConfiguration(candidate.kernel, tuple, space.knobs[k])).seconds,
                                    static_cast<int>(s), static_cast<int>(k), tupleIndex);
    };
    for (size_t i = 0; i < space.tuples.size(); ++i)
      if (const auto entry = entryOf(space.tuples[i])) offerTuple(space.tuples[i], *entry, static_cast<int>(i));
    for (size_t entry = 0; space.tuples.empty() && entry < size; ++entry) {
      const std::vector<int> choice = prices.choiceOf(entry);
      LayoutTuple tuple;
      for (size_t operand = 0; operand < choice.size(); ++operand)
        tuple.push_back(layouts(prices.operands[operand])[static_cast<size_t>(prices.choices[operand][static_cast<size_t>(choice[operand])])]);
      offerTuple(tuple, entry, -1);
    }
  }
}

void Prices::checkCover() const {
  for (size_t op = 0; op < problem.ops.size(); ++op) {
    bool isCovered = false;
    std::string reasons;
    for (size_t c = 0; c < problem.candidates.size(); ++c) {
      const Candidate &candidate = problem.candidates[c];
      if (std::find(candidate.ops.begin(), candidate.ops.end(), static_cast<int>(op)) == candidate.ops.end()) continue;
      if (!usable[c]) {
        reasons += fmt::format("; '{}' is excluded by --fuse or --no-fuse", candidate.name);
        continue;
      }
      const auto &table = candidates[c].table;
      if (std::any_of(table.begin(), table.end(), [](const Price &price) { return price.seconds < infinite; })) isCovered = true;
      else if (candidates[c].spaces.empty())
        for (const Exclusion &exclusion : enumerate(candidate.kernel, model.device()).excluded)
          reasons += fmt::format("; '{}', {}: {}", candidate.name, exclusion.family, exclusion.reason);
    }
    if (!isCovered)
      throw Error::unsupported("op {} '{}' of '{}' fits no kernel{}", op, problem.ops[op], problem.name, reasons);
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

Kernel Prices::identityKernel(int index) const {
  const Tensor &tensor = problem.tensors[static_cast<size_t>(index)];
  Kernel kernel;
  kernel.name = "transpose_" + tensor.name;
  kernel.axes = tensor.axes;
  std::vector<int> axes(tensor.axes.size());
  std::iota(axes.begin(), axes.end(), 0);
  kernel.values = {{.name = "from", .dtype = tensor.dtype, .axes = axes}, {.name = "to", .dtype = tensor.dtype, .axes = axes}};
  kernel.inputs = {0};
  kernel.outputs = {1};
  BodyOp identity;
  identity.name = "identity";
  identity.operatorClass = OperatorClass::movement;
  identity.operands = {0};
  identity.results = {1};
  kernel.body = {identity};
  return kernel;
}

void Prices::priceTransposes(int tensor) {
  const size_t count = layouts(tensor).size();
  std::vector<TransposePrice> &prices = transposes.emplace_back(count * count);
  if (freeToPack[static_cast<size_t>(tensor)]) {
    prices.assign(count * count, {.seconds = 0, .knobs = ViewKnobs{}});
    return;
  }
  const Kernel kernel = identityKernel(tensor);
  const std::vector<PricedConfiguration> &rows = model.measured(kernel);
  for (const PricedConfiguration &row : rows) {
    const int from = numberOf(tensor, row.configuration.inputs[0]), to = numberOf(tensor, row.configuration.outputs[0]);
    if (from < 0 || to < 0 || from == to) continue;
    ++statistics.configurations;
    ++statistics.measured;
    TransposePrice &price = prices[static_cast<size_t>(from) * count + static_cast<size_t>(to)];
    if (row.cost.seconds < price.seconds) price = {.seconds = row.cost.seconds, .knobs = row.configuration.knobs};
  }
  const FamilyAnswer answer = transposeSpace(kernel, model.device());
  if (!answer.space || !model.admitsModelled()) return;
  for (size_t from = 0; from < count; ++from)
    for (size_t to = 0; to < count; ++to) {
      if (from == to) continue;
      const LayoutTuple tuple = {layouts(tensor)[from], layouts(tensor)[to]};
      TransposePrice &price = prices[from * count + to];
      if (price.seconds < infinite) continue;  // measured
      for (const Knobs &knobs : answer.space->knobs) {
        if (!isUseful(kernel, tuple, knobs)) continue;
        ++statistics.configurations;
        const double seconds = model.cost(kernel, toConfiguration(kernel, tuple, knobs)).seconds;
        if (seconds < price.seconds) price = {.seconds = seconds, .knobs = knobs};
      }
    }
}

double Prices::transposeSeconds(int tensor, int from, int to) const {
  return from == to ? 0 : transpose(tensor, from, to).seconds;
}

std::pair<int, double> Prices::cheapestTranspose(int tensor, LayoutMask available, int to) const {
  std::pair<int, double> best = {-1, infinite};
  for (int from = 0; from < static_cast<int>(layouts(tensor).size()); ++from) {
    if (!(available >> from & 1)) continue;
    if (const double seconds = transposeSeconds(tensor, from, to); seconds < best.second) best = {from, seconds};
  }
  return best;
}

Configuration Prices::configuration(int index, size_t entry) const {
  const CandidatePrices &prices = candidates[static_cast<size_t>(index)];
  const Price &price = prices.table[entry];
  const Kernel &kernel = problem.candidates[static_cast<size_t>(index)].kernel;
  const ConfigurationSpace &space = prices.spaces[static_cast<size_t>(price.space)];
  const Knobs &knobs = space.knobs[static_cast<size_t>(price.knobs)];
  if (price.tuple >= 0) return toConfiguration(kernel, space.tuples[static_cast<size_t>(price.tuple)], knobs);
  LayoutTuple tuple;
  const std::vector<int> choice = prices.choiceOf(entry);
  for (size_t operand = 0; operand < choice.size(); ++operand)
    tuple.push_back(layouts(prices.operands[operand])[static_cast<size_t>(prices.choices[operand][static_cast<size_t>(choice[operand])])]);
  return toConfiguration(kernel, tuple, knobs);
}

std::string Prices::runnerUpKnobs(int index, size_t entry) const {
  const CandidatePrices &prices = candidates[static_cast<size_t>(index)];
  const Price &price = prices.table[entry];
  if (price.secondSpace < 0) return "";
  const ConfigurationSpace &space = prices.spaces[static_cast<size_t>(price.secondSpace)];
  return describe(problem.candidates[static_cast<size_t>(index)].kernel, space.knobs[static_cast<size_t>(price.secondKnobs)]);
}

Configuration Prices::transposeConfiguration(int tensor, int from, int to) const {
  return {.inputs = {layouts(tensor)[static_cast<size_t>(from)]},
          .outputs = {layouts(tensor)[static_cast<size_t>(to)]},
          .knobs = transpose(tensor, from, to).knobs};
}

}  // namespace weft::select
