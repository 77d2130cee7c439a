// Subgradient ascent; see LagrangianBound.h for why any multipliers give a bound.
#include "passes/select/LagrangianBound.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <utility>

namespace weft::select {
namespace {

/// Steps after the last that rose the bound by a share of what is missing.
constexpr int patience = 12, mostShrinks = 6;
/// Of the last direction that the next one keeps.
constexpr double momentum = 0.6;
constexpr double shrink = 0.5;
/// Where no plan is known the best one is taken to be so much above the bound, and more so, as long
/// as it proves to be.
constexpr double guess = 1.05;
constexpr int mostGuesses = 20;
/// LagrangianBound stay below what transposes cost by more than sums are rounded.
constexpr double margin = 1 - 1e-9;

/// Combinations of a table that is not kept as a list.
constexpr size_t mostDense = 8192;

bool contains(const std::vector<int> &list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

LagrangianBound::LagrangianBound(const Problem &problem, const Prices &prices,
                                 const FinishedOpLattice &lattice, int64_t most)
    : problem(problem),
      prices(prices),
      lattice(lattice),
      readersOf(problem.tensors.size()),
      tables(problem.candidates.size()),
      left(most) {
  findReaders();
  for (size_t candidate = 0; candidate < tables.size(); ++candidate)
    if (prices.isUsable(static_cast<int>(candidate))) buildTable(static_cast<int>(candidate));
  for (const Table &table : tables)
    combinationsOfStep += static_cast<int64_t>(table.seconds.size());
  std::vector<double> slopes;
  best = solve(std::vector<double>(count, 0.0), slopes);
}

/// By reader of a tensor its ops: one, or of a site one of every alternative. The same op of
/// several alternatives, by its text, is one reader.
std::vector<std::vector<int>> LagrangianBound::readingOps(int tensor) const {
  const Sites &sites = lattice.sites();
  std::vector<std::vector<int>> result;
  std::map<int, std::vector<std::vector<int>>> ofSites;  // by alternative
  std::set<std::pair<int, size_t>> writtenIn;
  bool isWrittenOutside = problem.tensors[static_cast<size_t>(tensor)].isArgument;
  for (size_t op = 0; op < problem.ops.size(); ++op)
    if (contains(problem.opOutputs[op], tensor)) {
      const int site = sites.siteOf(static_cast<int>(op));
      if (site < 0) isWrittenOutside = true;
      else writtenIn.insert({site, sites.alternativeOf(static_cast<int>(op))});
    }
  for (size_t number = 0; number < problem.ops.size(); ++number) {
    if (!contains(problem.opInputs[number], tensor)) continue;
    const int op = static_cast<int>(number), site = sites.siteOf(op);
    const bool isBesideWriter = !isWrittenOutside && writtenIn.size() == 1 &&
                                writtenIn.contains({site, sites.alternativeOf(op)});
    if (site < 0 || sites.alternativesOf(site) == 1 || isBesideWriter) {
      result.push_back({op});
      continue;
    }
    std::vector<std::vector<int>> &alternatives = ofSites[site];
    alternatives.resize(sites.alternativesOf(site));
    alternatives[sites.alternativeOf(op)].push_back(op);
  }
  for (auto &[site, alternatives] : ofSites) {
    size_t fewest = alternatives.front().size();
    for (const std::vector<int> &ops : alternatives) fewest = std::min(fewest, ops.size());
    const auto isIn = [&](int op, const std::vector<int> &ops) {
      return std::ranges::any_of(ops, [&](int other) {
        return problem.ops[static_cast<size_t>(other)] == problem.ops[static_cast<size_t>(op)];
      });
    };
    const std::vector<std::vector<int>> unsorted = alternatives;
    for (std::vector<int> &ops : alternatives)
      std::ranges::stable_sort(
          ops, {}, [&](int op) {  // those of all alternatives in front, by text
            const bool isCommon = std::ranges::all_of(
                unsorted, [&](const std::vector<int> &others) { return isIn(op, others); });
            return isCommon ? std::pair(0, problem.ops[static_cast<size_t>(op)])
                            : std::pair(1, std::string());
          });
    for (size_t n = 0; n < fewest; ++n) {
      std::vector<int> &reader = result.emplace_back();
      for (const std::vector<int> &ops : alternatives) reader.push_back(ops[n]);
    }
  }
  return result;
}

void LagrangianBound::findReaders() {
  const auto add = [&](int tensor, std::vector<int> ops) {
    readersOf[static_cast<size_t>(tensor)].push_back(static_cast<int>(readers.size()));
    readers.push_back({.tensor = tensor, .ops = std::move(ops), .first = count});
    count += layoutsOf(tensor);
  };
  const auto mayHave = [&](int tensor) {
    return !prices.isFreeToPack(tensor) && layoutsOf(tensor) > 1;
  };
  const int tensors = static_cast<int>(problem.tensors.size());
  if (lattice.sites().count() == 0)
    for (size_t op = 0; op < problem.ops.size(); ++op)
      for (const int tensor :
           std::set<int>(problem.opInputs[op].begin(), problem.opInputs[op].end()))
        if (mayHave(tensor)) add(tensor, {static_cast<int>(op)});
  for (int tensor = 0; lattice.sites().count() > 0 && tensor < tensors; ++tensor)
    if (mayHave(tensor))
      for (std::vector<int> &ops : readingOps(tensor)) add(tensor, std::move(ops));
  for (int tensor = 0; tensor < tensors; ++tensor)
    if (problem.tensors[static_cast<size_t>(tensor)].isResult && prices.pinned(tensor) &&
        mayHave(tensor))
      add(tensor, {});
}

void LagrangianBound::addTerms(int candidate, int tensor, bool isOutput, size_t operand,
                               Table &table) const {
  const std::vector<int> &ops = problem.candidates[static_cast<size_t>(candidate)].ops;
  for (const int reader : readersOf[static_cast<size_t>(tensor)])
    if (std::ranges::any_of(readers[static_cast<size_t>(reader)].ops,
                            [&](int op) { return contains(ops, op); }) != isOutput)
      table.terms.push_back({.operand = operand, .reader = reader, .sign = isOutput ? 1.0 : -1.0});
}

void LagrangianBound::buildTable(int index) {
  const Candidate &candidate = problem.candidates[static_cast<size_t>(index)];
  const CandidatePrices &from = prices.candidate(index);
  Table &table = tables[static_cast<size_t>(index)];
  std::vector<size_t> operands;  // that have terms
  for (size_t operand = 0; operand < from.operands.size(); ++operand) {
    const bool isRepeated = std::find(from.operands.begin(),
                                      from.operands.begin() + static_cast<std::ptrdiff_t>(operand),
                                      from.operands[operand]) !=
                            from.operands.begin() + static_cast<std::ptrdiff_t>(operand);
    const size_t before = table.terms.size();
    if (!isRepeated)
      addTerms(index, from.operands[operand], operand >= candidate.inputs.size(), operands.size(),
               table);
    if (table.terms.size() == before) continue;
    operands.push_back(operand);
    table.counts.push_back(layoutsOf(from.operands[operand]));
  }
  table.operands = operands.size();
  addCombinations(from, operands, table);
}

/// The table without the operands that have no terms.
void LagrangianBound::addCombinations(const CandidatePrices &from,
                                      const std::vector<size_t> &operands, Table &table) const {
  if (from.table.empty()) return;
  size_t size = 1;
  std::vector<size_t> step(operands.size());
  for (size_t n = operands.size(); n-- > 0;) {
    step[n] = size;
    size *= from.choices[operands[n]].size();
    // of a list of combinations the product may be far beyond its length
    if (size > mostDense && !from.listed.empty()) {
      addListed(from, operands, table);
      return;
    }
  }
  for (const size_t operand : operands)
    table.choices.emplace_back(from.choices[operand].begin(), from.choices[operand].end());
  table.seconds.assign(size, infinite);
  std::vector<int> choice = from.choiceOf(0);
  for (size_t entry = 0; entry < from.table.size(); ++entry) {
    size_t at = 0;
    for (size_t n = 0; n < operands.size(); ++n) at += step[n] * size_t(choice[operands[n]]);
    table.seconds[at] = std::min(table.seconds[at], from.table[entry].seconds);
    from.advance(choice, entry);
  }
  if (operands.empty()) return;
  const size_t width = table.choices.back().size();
  for (auto row = table.seconds.begin(); row != table.seconds.end(); row += std::ptrdiff_t(width))
    table.rows.push_back(*std::min_element(row, row + std::ptrdiff_t(width)));
  if (operands.size() < 2) return;
  const auto rows = std::ptrdiff_t(table.choices[operands.size() - 2].size());
  for (auto block = table.rows.begin(); block != table.rows.end(); block += rows)
    table.blocks.push_back(*std::min_element(block, block + rows));
}

void LagrangianBound::addListed(const CandidatePrices &from, const std::vector<size_t> &operands,
                                Table &table) const {
  std::map<std::vector<int>, double> bests;  // by the choices of operands that have terms
  std::vector<int> key(operands.size());
  for (size_t entry = 0; entry < from.table.size(); ++entry) {
    const double seconds = from.table[entry].seconds;
    if (!(seconds < infinite)) continue;
    for (size_t n = 0; n < operands.size(); ++n) key[n] = from.listed[entry][operands[n]];
    double &best = bests.try_emplace(key, seconds).first->second;
    best = std::min(best, seconds);
  }
  for (const auto &[choices, seconds] : bests) {
    table.seconds.push_back(seconds);
    for (size_t n = 0; n < operands.size(); ++n)
      table.layouts.push_back(static_cast<uint8_t>(from.choices[operands[n]][size_t(choices[n])]));
  }
}

LayoutMask LagrangianBound::atStart(int tensor) const {
  if (const std::optional<int> pin = prices.pinned(tensor))
    return static_cast<LayoutMask>(1U << *pin);
  return static_cast<LayoutMask>((1U << layoutsOf(tensor)) - 1);
}

/// Over the tensor's readers, each given the least of the layouts in the mask.
double LagrangianBound::least(int tensor, LayoutMask mask,
                              const std::vector<double> &multipliers) const {
  double sum = 0;
  for (const int index : readersOf[static_cast<size_t>(tensor)]) {
    double lowest = infinite;
    for (size_t layout = 0; layout < layoutsOf(tensor); ++layout)
      if (mask >> layout & 1)
        lowest = std::min(lowest, multipliers[readers[static_cast<size_t>(index)].first + layout]);
    sum += lowest;
  }
  return sum;
}

double LagrangianBound::cheapest(const Table &table, const std::vector<double> &multipliers,
                                 size_t &combination) const {
  thread_local std::vector<double> paid;  // operand x maximumLayouts
  paid.assign(table.operands * maximumLayouts, 0);
  for (const Table::Term &term : table.terms) {
    const double *values = &multipliers[readers[static_cast<size_t>(term.reader)].first];
    for (size_t layout = 0; layout < table.counts[term.operand]; ++layout)
      paid[term.operand * maximumLayouts + layout] += term.sign * values[layout];
  }
  if (!table.layouts.empty()) return cheapestListed(table, paid, combination);
  double lowest = infinite;
  if (table.operands == 0 || table.seconds.empty()) {
    for (size_t one = 0; one < table.seconds.size(); ++one)
      if (table.seconds[one] < lowest) lowest = table.seconds[one], combination = one;
    return lowest;
  }
  // The last operand by itself, beside the sum of the others, which changes from the last one on.
  const size_t last = table.operands - 1, width = table.choices[last].size();
  std::array<double, maximumLayouts> ofLast = {};
  for (size_t c = 0; c < width; ++c)
    ofLast[c] = paid[last * maximumLayouts + table.choices[last][c]];
  const double leastOfLast = *std::min_element(ofLast.begin(), ofLast.begin() + width);
  thread_local std::vector<size_t> choice;
  thread_local std::vector<double> sums;  // over the operands in front of each
  choice.assign(last, 0);
  sums.assign(last + 1, 0);
  const auto sumFrom = [&](size_t first) {
    for (size_t n = first; n < last; ++n)
      sums[n + 1] = sums[n] + paid[n * maximumLayouts + table.choices[n][choice[n]]];
  };
  // Multipliers change little from one solution to the next, and so does what is cheapest: what was
  // it before excludes most rows by their bounds. These are sums of lesser terms in the same order,
  // which rounding leaves the lesser. Of equal ones the first counts, so it is taken as greater.
  for (size_t n = last, rest = combination / width; n-- > 0;) {
    choice[n] = rest % table.choices[n].size();
    rest /= table.choices[n].size();
  }
  sumFrom(0);
  lowest = std::nextafter(table.seconds[combination] + ofLast[combination % width] + sums[last],
                          infinite);
  choice.assign(last, 0);
  const size_t rowsOfBlock = last > 0 ? table.choices[last - 1].size() : 1;
  double leastOfRows = infinite;  // of the operand that differs between a block's rows
  for (size_t c = 0; last > 0 && c < rowsOfBlock; ++c)
    leastOfRows =
        std::min(leastOfRows, paid[(last - 1) * maximumLayouts + table.choices[last - 1][c]]);
  size_t changed = 0, block = 0;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    sumFrom(changed);
    const bool beginsBlock = last > 0 && choice[last - 1] == 0;
    if (beginsBlock &&
        !(table.blocks[block++] + leastOfLast + (sums[last - 1] + leastOfRows) < lowest)) {
      row += rowsOfBlock - 1;
      choice[last - 1] = rowsOfBlock - 1;  // the block's last row, from which to go on
    } else if (table.rows[row] + leastOfLast + sums[last] < lowest) {
      const double *seconds = &table.seconds[row * width];
      double least = infinite;
      for (size_t c = 0; c < width; ++c) least = std::min(least, seconds[c] + ofLast[c]);
      if (least + sums[last] < lowest) {
        lowest = least + sums[last];
        for (size_t c = width; c-- > 0;)
          if (seconds[c] + ofLast[c] == least) combination = row * width + c;
      }
    }
    changed = 0;
    for (size_t n = last; n-- > 0;) {
      changed = n;
      if (++choice[n] < table.choices[n].size()) break;
      choice[n] = 0;
    }
  }
  return lowest;
}

double LagrangianBound::cheapestListed(const Table &table, const std::vector<double> &paid,
                                       size_t &combination) {
  double lowest = infinite;
  const uint8_t *layouts = table.layouts.data();
  for (size_t one = 0; one < table.seconds.size(); ++one, layouts += table.operands) {
    double seconds = table.seconds[one];
    for (size_t operand = 0; operand < table.operands; ++operand)
      seconds += paid[operand * maximumLayouts + layouts[operand]];
    if (seconds < lowest) lowest = seconds, combination = one;
  }
  return lowest;
}

size_t LagrangianBound::layoutIn(const Table &table, size_t combination, size_t operand) {
  if (!table.layouts.empty()) return table.layouts[combination * table.operands + operand];
  for (size_t n = table.operands; n-- > operand + 1;) combination /= table.choices[n].size();
  return table.choices[operand][combination % table.choices[operand].size()];
}

void LagrangianBound::addSlopes(const Table &table, size_t combination,
                                std::vector<double> &slopes) const {
  for (const Table::Term &term : table.terms)
    slopes[readers[static_cast<size_t>(term.reader)].first +
           layoutIn(table, combination, term.operand)] += term.sign;
}

LagrangianBound::Solution LagrangianBound::solve(const std::vector<double> &multipliers,
                                                 std::vector<double> &slopes) const {
  const std::vector<Layer> &layers = lattice.layers();
  std::vector<double> lowest(tables.size(), infinite);
  std::vector<size_t> &combinations = cheapestBefore;
  combinations.resize(tables.size(), 0);
  for (size_t candidate = 0; candidate < tables.size(); ++candidate)
    lowest[candidate] = cheapest(tables[candidate], multipliers, combinations[candidate]);
  double callers = 0;
  slopes.assign(count, 0);
  for (const Reader &reader : readers)
    if (reader.ops.empty()) {
      const size_t wanted = reader.first + static_cast<size_t>(*prices.pinned(reader.tensor));
      callers -= multipliers[wanted];
      slopes[wanted] -= 1;
    }
  Solution solution{.multipliers = multipliers,
                    .after = std::vector<double>(layers.size(), infinite)};
  std::vector<const Transition *> way(layers.size(), nullptr);
  for (size_t layer = layers.size(); layer-- > 0;) {
    if (lattice.isComplete(layers[layer])) solution.after[layer] = callers;
    for (const Transition &transition : layers[layer].next) {
      const double seconds = lowest[static_cast<size_t>(transition.candidate)] +
                             solution.after[static_cast<size_t>(transition.target)];
      if (seconds < solution.after[layer])
        solution.after[layer] = seconds, way[layer] = &transition;
    }
  }
  solution.bound = solution.after[0];
  for (const int tensor : layers[0].tracked) {
    const LayoutMask mask = atStart(tensor);
    solution.bound += least(tensor, mask, multipliers);
    for (const int reader : readersOf[static_cast<size_t>(tensor)])
      if (std::has_single_bit(mask))
        slopes[readers[static_cast<size_t>(reader)].first +
               static_cast<size_t>(std::countr_zero(mask))] += 1;
  }
  for (size_t layer = 0; way[layer]; layer = static_cast<size_t>(way[layer]->target))
    addSlopes(tables[static_cast<size_t>(way[layer]->candidate)],
              combinations[static_cast<size_t>(way[layer]->candidate)], slopes);
  return solution;
}

/// By how much, between any two layouts, the multipliers of all readers together fall too far; at
/// most 1: nowhere. `lowers` those that do.
double LagrangianBound::excess(int tensor, bool lowers, std::vector<double> &multipliers) const {
  const std::vector<int> &own = readersOf[static_cast<size_t>(tensor)];
  const auto at = [&](int reader, size_t layout) -> double & {
    return multipliers[readers[static_cast<size_t>(reader)].first + layout];
  };
  double most = 0;
  for (size_t from = 0; from < layoutsOf(tensor); ++from)
    for (size_t to = 0; to < layoutsOf(tensor); ++to) {
      if (from == to) continue;
      const double allowed =
          prices.transposeSeconds(tensor, static_cast<int>(from), static_cast<int>(to)) * margin;
      double falls = 0;
      for (const int reader : own) falls += std::max(0.0, at(reader, from) - at(reader, to));
      if (falls <= allowed) continue;
      most = std::max(most, allowed > 0 ? falls / allowed : infinite);
      for (const int reader : own)
        if (const double fall = at(reader, from) - at(reader, to); lowers && fall > 0)
          at(reader, from) = at(reader, to) + fall * (allowed / falls);
    }
  return most;
}

/// Lowers multipliers until they obey the transposes, and the least of every reader to zero.
void LagrangianBound::obeyTransposes(int tensor, std::vector<double> &multipliers) const {
  for (int pass = 0; pass < 4 && excess(tensor, true, multipliers) > 1; ++pass) {}
  const double left = std::max(1.0, excess(tensor, false, multipliers));
  for (const int index : readersOf[static_cast<size_t>(tensor)]) {
    const std::span<double> own(&multipliers[readers[static_cast<size_t>(index)].first],
                                layoutsOf(tensor));
    const double lowest = *std::min_element(own.begin(), own.end());
    for (double &value : own) value = left > 1 ? (value - lowest) / left * margin : value - lowest;
  }
}

void LagrangianBound::raise() {
  if (std::exchange(isRaised, true)) return;
  const auto isRisenBy = [&](double target) {
    raise(target);
    return best.bound >= target;
  };
  for (int tries = 0; tries < mostGuesses && best.bound > 0 && isRisenBy(best.bound * guess);
       ++tries) {}
}

void LagrangianBound::raise(double target, int steps) {
  if (count == 0 || !(target < infinite)) return;
  sums.clear();
  std::vector<double> here = best.multipliers, slopes, direction(count, 0.0);
  double pace = 1;
  int idle = 0, shrinks = 0;
  for (int step = 0; step < steps && best.bound < target; ++step) {
    left -= combinationsOfStep;
    if (left < 0) return;
    Solution solution = solve(here, slopes);
    const double missing = target - best.bound;
    idle = solution.bound > best.bound + missing * 1e-3 ? 0 : idle + 1;
    const double reached = solution.bound;
    if (reached > best.bound) best = std::move(solution);
    if (idle > patience) {
      if (++shrinks > mostShrinks) return;
      pace *= shrink;
      idle = 0;
      here = best.multipliers;
      direction.assign(count, 0.0);
      continue;
    }
    double length = 0;
    for (size_t i = 0; i < count; ++i) {
      direction[i] = slopes[i] + momentum * direction[i];
      length += direction[i] * direction[i];
    }
    if (length == 0) return;
    for (size_t i = 0; i < count; ++i) here[i] += pace * (target - reached) / length * direction[i];
    for (size_t tensor = 0; tensor < readersOf.size(); ++tensor)
      if (!readersOf[tensor].empty()) obeyTransposes(static_cast<int>(tensor), here);
  }
}

double LagrangianBound::of(int layer, MaskView masks) const {
  const std::vector<int> &tracked = lattice.layers()[static_cast<size_t>(layer)].tracked;
  sums.resize(lattice.layers().size());
  std::vector<double> &known = sums[static_cast<size_t>(layer)];
  if (known.empty()) known.assign(tracked.size() * maximumLayouts, -1);
  double sum = 0;
  for (size_t i = 0; i < tracked.size(); ++i) {
    if (!std::has_single_bit(masks[i])) {  // several copies are rare
      sum += refunded(layer, tracked[i], masks[i]);
      continue;
    }
    double &one = known[i * maximumLayouts + static_cast<size_t>(std::countr_zero(masks[i]))];
    if (one < 0) one = refunded(layer, tracked[i], masks[i]);
    sum += one;
  }
  return sum;
}

double LagrangianBound::refunded(int layer, int tensor, LayoutMask mask) const {
  double sum = 0;
  for (const int index : readersOf[static_cast<size_t>(tensor)]) {
    const Reader &reader = readers[static_cast<size_t>(index)];
    const OpSet &finished = lattice.layers()[static_cast<size_t>(layer)].finished;
    if (!reader.ops.empty() &&
        std::ranges::all_of(reader.ops, [&](int op) { return finished.contains(op); }))
      continue;
    double lowest = infinite;
    for (size_t layout = 0; layout < layoutsOf(tensor); ++layout)
      if (mask >> layout & 1) lowest = std::min(lowest, best.multipliers[reader.first + layout]);
    sum += lowest;
  }
  return sum;
}

}  // namespace weft::select
