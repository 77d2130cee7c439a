// Order of kernels. Independent kernels must not be permuted, or layers explode. The next kernel
// contains the first unfinished op; if that kernel waits for an op outside, the kernels that
// contain the first such op come first.
//
// No plan is lost, whatever the order of ops is by which an op is first. Take any partition of the
// ops into kernels that do not wait for each other in a circle, and any set of its kernels that are
// finished. The partition has one kernel with the first unfinished op; while the kernel at hand
// waits, the partition has one with the first op that it waits for, which comes before it and is
// unfinished. Kernels that wait for each other in no circle are not met twice, so this ends at a
// kernel that is ready, and `NextCandidates` follows just these steps. So every partition is a
// path, and of its many permutations few. The order is thus chosen by the number of layers that it
// leads to.
//
// Alternatives. Where the op to look at belongs to a site of which nothing is finished, a plan may
// have any of its alternatives, and with each its first op: the kernels with these come next. With
// the first kernel of one alternative the ops of all others count as finished, so that those of
// sites that lie behind are one set, whichever way they were computed. Kernels may hold ops of
// several sites and of none, and a site's ops may stand apart, with others between that read some
// and write for some. So what a kernel waits for is known as far as the next ops of other sites
// alone: what these wait for depends on the alternative that is taken there. While a kernel waits,
// the ops beside its alternatives are no ops to wait for.
#include "passes/select/FinishedOpLattice.h"

#include "passes/select/OpOrder.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <ranges>
#include <span>
#include <tuple>

namespace weft::select {
namespace {

/// Finds the candidates that may come next (see the head of the file). A lattice asks for those of
/// thousands of sets, so sets are spans of words here, all of one length, in which a bit is the
/// place of an op in the order: the first op is the lowest bit.
class NextCandidates {
public:
  /// `opsOf`, `needs`, `finishedBy`: by candidate; `candidatesOf`: by op.
  NextCandidates(const std::vector<int> &order, const std::vector<OpSet> &opsOf,
                 const std::vector<OpSet> &needs, const std::vector<OpSet> &finishedBy,
                 const std::vector<std::vector<int>> &candidatesOf, const Sites &sites)
      : length((order.size() + 63) / 64),
        placeOf(order.size()),
        candidatesAt(order.size()),
        siteAt(order.size(), -1),
        visits(order.size()) {
    for (size_t place = 0; place < order.size(); ++place)
      placeOf[static_cast<size_t>(order[place])] = place;
    for (size_t place = 0; place < order.size(); ++place)
      for (const int candidate : candidatesOf[static_cast<size_t>(order[place])])
        candidatesAt[place].push_back(static_cast<size_t>(candidate));
    for (const OpSet &ops : opsOf) append(ops, own);
    for (const OpSet &ops : needs) append(ops, needed);
    for (const OpSet &ops : finishedBy) append(ops, taken);
    for (size_t site = 0; site < sites.count(); ++site) {
      const int number = static_cast<int>(site);
      append(sites.opsOfSite(number), opsOfSites);
      std::vector<size_t> &firsts = firstsOf.emplace_back();
      for (size_t one = 0; one < sites.alternativesOf(number); ++one) {
        size_t first = order.size();
        for (const int op : sites.ops(number, one).members()) {
          const size_t place = placeOf[static_cast<size_t>(op)];
          if (sites.alternativesOf(number) > 1) siteAt[place] = number;
          first = std::min(first, place);
        }
        firsts.push_back(first);
      }
    }
  }

  /// Of an incomplete set; ascending.
  std::vector<int> after(const OpSet &ops) {
    finished.clear();
    append(ops, finished);
    for (const size_t place : visited) visits[place].clear();
    visited.clear();
    ready.clear();
    reserved.assign(length, 0);
    excluded.assign(length, 0);
    size_t first = 0;
    while (finished[first / 64] >> (first % 64) & 1) ++first;
    collect(first, 0);
    std::ranges::sort(ready);
    ready.erase(std::ranges::unique(ready).begin(), ready.end());
    return ready;
  }

private:
  void append(const OpSet &ops, std::vector<uint64_t> &sets) const {
    const size_t first = sets.size();
    sets.resize(first + length);
    for (const int op : ops.members()) {
      const size_t place = placeOf[static_cast<size_t>(op)];
      sets[first + place / 64] |= uint64_t(1) << (place % 64);
    }
  }

  /// Whether none of the site's ops is finished or reserved.
  bool isOpen(int site, size_t first) const {
    const uint64_t *ops = &opsOfSites[static_cast<size_t>(site) * length];
    for (size_t word = 0; word < length; ++word)
      if (ops[word] & (finished[word] | reserved[first + word])) return false;
    return true;
  }

  /// The first op of every alternative where the op at `place` is of an open site, else that op.
  void collect(size_t place, size_t first) {
    if (const int site = siteAt[place]; site >= 0 && isOpen(site, first)) {
      for (const size_t other : firstsOf[static_cast<size_t>(site)]) collectAt(other, first);
      return;
    }
    collectAt(place, first);
  }

  /// Candidates with the op at `place` outside the reserved ops: those that are ready, else what
  /// they wait for. `first`: of the words of the reserved ops and of those that they make
  /// unnecessary, which stay for later visits.
  void collectAt(size_t place, size_t first) {
    if (reserved[first + place / 64] >> (place % 64) & 1) return;  // waits for itself: not convex
    // More reserved ops leave fewer candidates at every step, where the same are unnecessary.
    for (const size_t earlier : visits[place])
      if (isWithin(earlier, first)) return;
    if (visits[place].empty()) visited.push_back(place);
    visits[place].push_back(first);
    for (const size_t candidate : candidatesAt[place]) {
      const std::span<const uint64_t> ops(&own[candidate * length], length),
          before(&needed[candidate * length], length);
      bool isTaken = false;
      for (size_t word = 0; word < length && !isTaken; ++word)
        isTaken = ops[word] & (finished[word] | reserved[first + word] | excluded[first + word]);
      if (isTaken) continue;
      if (std::ranges::all_of(std::views::iota(size_t(0), length),
                              [&](size_t word) { return !(before[word] & ~finished[word]); })) {
        ready.push_back(static_cast<int>(candidate));
        continue;
      }
      const size_t longer = reserved.size();
      for (size_t i = 0; i < length; ++i) {
        reserved.push_back(reserved[first + i] | ops[i]);
        excluded.push_back(excluded[first + i] | (taken[candidate * length + i] & ~ops[i]));
      }
      const auto awaited = [&](size_t word) {
        return before[word] & ~finished[word] & ~excluded[longer + word];
      };
      size_t word = 0;
      while (word < length && !awaited(word)) ++word;
      if (word == length) continue;  // waits for ops beside its own alternatives: for itself
      collect(word * 64 + static_cast<size_t>(std::countr_zero(awaited(word))), longer);
    }
  }

  bool isWithin(size_t few, size_t many) const {
    for (size_t word = 0; word < length; ++word)
      if (reserved[few + word] & ~reserved[many + word] ||
          excluded[few + word] != excluded[many + word])
        return false;
    return true;
  }

  const size_t length;  ///< words of a set
  std::vector<size_t> placeOf;
  std::vector<std::vector<size_t>> candidatesAt;
  std::vector<int> siteAt;  ///< by place: its site, if that has alternatives; else -1
  std::vector<std::vector<size_t>> firstsOf;  ///< by site: the first place of every alternative
  std::vector<uint64_t> own, needed, taken;   ///< sets by candidate
  std::vector<uint64_t> opsOfSites;           ///< sets by site
  std::vector<uint64_t> finished;
  std::vector<uint64_t> reserved, excluded;  ///< one set a visit
  std::vector<std::vector<size_t>> visits;   ///< by place: first words of what was reserved
  std::vector<size_t> visited;               ///< places with visits
  std::vector<int> ready;
};

}  // namespace

FinishedOpLattice::FinishedOpLattice(const Problem &problem, const Prices &prices, int64_t most,
                                     int64_t mostKept)
    : problem(problem), prices(prices), siteMap(problem) {
  findDependencies();
  std::vector<bool> isLeftOut(problem.candidates.size(), false);
  const std::vector<int> dispensable = leastGainFirst();
  for (size_t kept = static_cast<size_t>(std::min<int64_t>(std::ssize(dispensable), mostKept));;
       kept = kept * 7 / 8) {
    for (size_t n = 0; n + kept < dispensable.size(); ++n)
      isLeftOut[static_cast<size_t>(dispensable[n])] = true;
    leftOutCount = static_cast<int64_t>(dispensable.size() - kept);
    keptCount = static_cast<int64_t>(kept);
    offer(isLeftOut);
    chooseOrder();
    all.clear();
    if (openLayers(kept == 0 ? std::numeric_limits<int64_t>::max() : most)) break;
  }
  findBounds();
}

/// Fused candidates without which every op of theirs still has a kernel by itself.
std::vector<int> FinishedOpLattice::leastGainFirst() const {
  std::vector<double> alone(problem.ops.size(), infinite);
  for (size_t c = 0; c < problem.candidates.size(); ++c)
    if (const std::vector<int> &ops = problem.candidates[c].ops;
        ops.size() == 1 && prices.isUsable(static_cast<int>(c)) &&
        prices.isPriced(static_cast<int>(c)))
      alone[static_cast<size_t>(ops.front())] = prices.candidate(static_cast<int>(c)).bestSeconds;
  std::vector<std::pair<double, int>> ranked;
  for (size_t c = 0; c < problem.candidates.size(); ++c) {
    const std::vector<int> &ops = problem.candidates[c].ops;
    if (ops.size() < 2 || !prices.isUsable(static_cast<int>(c))) continue;
    double gain = -prices.candidate(static_cast<int>(c)).bestSeconds;
    for (const int op : ops) gain += alone[static_cast<size_t>(op)];
    if (gain < infinite) ranked.emplace_back(gain, static_cast<int>(c));
  }
  std::stable_sort(ranked.begin(), ranked.end());
  std::vector<int> result;
  for (const auto &[gain, candidate] : ranked) result.push_back(candidate);
  return result;
}

void FinishedOpLattice::offer(const std::vector<bool> &isLeftOut) {
  candidatesOf.assign(problem.ops.size(), {});
  for (size_t c = 0; c < problem.candidates.size(); ++c)
    if (prices.isUsable(static_cast<int>(c)) && !isLeftOut[c])
      for (int op : problem.candidates[c].ops)
        candidatesOf[static_cast<size_t>(op)].push_back(static_cast<int>(c));
}

int64_t FinishedOpLattice::leastTemporaryBytes(bool betweenKernels) const {
  constexpr int64_t unreached = std::numeric_limits<int64_t>::max();
  const auto bytesOf = [&](const std::vector<int> &tensors) {
    int64_t bytes = 0;
    for (const int tensor : tensors)
      if (isTemporary(tensor)) bytes += problem.tensors[static_cast<size_t>(tensor)].bytes();
    return bytes;
  };
  std::vector<int64_t> peak(all.size(), unreached);
  peak.front() = 0;
  int64_t least = unreached;
  for (size_t l = 0; l < all.size(); ++l) {
    if (peak[l] == unreached) continue;
    const int64_t here = all[l].untrackedBytes + bytesOf(all[l].tracked);
    if (isComplete(all[l])) least = std::min(least, std::max(peak[l], here));
    for (const Transition &transition : all[l].next) {
      const Candidate &candidate = problem.candidates[static_cast<size_t>(transition.candidate)];
      int64_t &target = peak[static_cast<size_t>(transition.target)];
      const int64_t written = betweenKernels ? 0 : bytesOf(candidate.outputs);
      target = std::min(target, std::max(peak[l], here + written));
    }
  }
  return least == unreached ? 0 : least;
}

double FinishedOpLattice::boundOfAll() const {
  std::vector<double> least(problem.ops.size(), infinite);
  for (size_t c = 0; c < problem.candidates.size(); ++c)
    for (const int op : problem.candidates[c].ops)
      if (prices.isUsable(static_cast<int>(c)))
        least[static_cast<size_t>(op)] =
            std::min(least[static_cast<size_t>(op)],
                     prices.candidate(static_cast<int>(c)).bestSeconds /
                         static_cast<double>(problem.candidates[c].ops.size()));
  double sum = 0;
  for (size_t op = 0; op < least.size(); ++op)
    if (siteMap.siteOf(static_cast<int>(op)) < 0) sum += least[op];
  for (int site = 0; site < static_cast<int>(siteMap.count()); ++site) {
    double cheapest = infinite;
    for (size_t one = 0; one < siteMap.alternativesOf(site); ++one) {
      double ofOne = 0;
      for (const int op : siteMap.ops(site, one).members()) ofOne += least[static_cast<size_t>(op)];
      cheapest = std::min(cheapest, ofOne);
    }
    sum += cheapest;
  }
  return sum;
}

void FinishedOpLattice::findDependencies() {
  const size_t count = problem.ops.size();
  ancestors.resize(count);
  consumers.resize(problem.tensors.size());
  producers.resize(problem.tensors.size());
  for (size_t op = 0; op < count; ++op) {
    for (int tensor : problem.opInputs[op]) {
      consumers[static_cast<size_t>(tensor)].insert(static_cast<int>(op));
      for (const int before : producers[static_cast<size_t>(tensor)].members()) {
        if (siteMap.excludeEachOther(before, static_cast<int>(op))) continue;
        ancestors[op].insert(before);
        if (!isChoice(before))
          ancestors[op] = ancestors[op] | ancestors[static_cast<size_t>(before)];
      }
    }
    for (int tensor : problem.opOutputs[op])
      producers[static_cast<size_t>(tensor)].insert(static_cast<int>(op));
  }
  for (const Candidate &candidate : problem.candidates) {
    const OpSet own(candidate.ops);
    const OpSet unnecessary = siteMap.unnecessaryBeside(candidate.ops);
    opsOf.push_back(own);
    needs.push_back(neededBy(candidate, unnecessary) - own - unnecessary);
    finishedBy.push_back(own | unnecessary);
    std::set<int> touched;
    for (const int op : finishedBy.back().members())
      for (const auto *tensors : {&problem.opInputs, &problem.opOutputs})
        touched.insert((*tensors)[static_cast<size_t>(op)].begin(),
                       (*tensors)[static_cast<size_t>(op)].end());
    touchedBy.emplace_back(touched.begin(), touched.end());
  }
}

/// Whether plans may lack the op.
bool FinishedOpLattice::isChoice(int op) const {
  const int site = siteMap.siteOf(op);
  return site >= 0 && siteMap.alternativesOf(site) > 1;
}

/// Ops that stand before those of a candidate in every plan with it, with the next ones of other
/// sites but not with what these need, which another alternative may not.
OpSet FinishedOpLattice::neededBy(const Candidate &candidate, const OpSet &unnecessary) const {
  OpSet own;  // of its sites, of which it is known which alternative a plan has
  for (const int op : candidate.ops)
    if (isChoice(op)) own = own | siteMap.ops(siteMap.siteOf(op), siteMap.alternativeOf(op));
  OpSet needed;
  for (const int op : candidate.ops) needed = needed | ancestors[static_cast<size_t>(op)];
  OpSet seen;
  for (bool isMore = !own.isEmpty(); isMore;) {
    isMore = false;
    for (const int op : (needed - seen).members()) {
      seen.insert(op);
      if (!own.contains(op)) continue;
      needed = needed | ancestors[static_cast<size_t>(op)];
      isMore = true;
    }
  }
  return needed - unnecessary;
}

/// `ops`: ascending; kernels that hold others, too, are left out.
std::vector<int> FinishedOpLattice::orderOf(const std::vector<int> &ops) const {
  std::vector<int> numbers(problem.ops.size(), -1);
  for (size_t n = 0; n < ops.size(); ++n)
    numbers[static_cast<size_t>(ops[n])] = static_cast<int>(n);
  std::vector<OpSet> kernels, direct(ops.size());
  std::set<int> offered;
  for (const int op : ops)
    offered.insert(candidatesOf[static_cast<size_t>(op)].begin(),
                   candidatesOf[static_cast<size_t>(op)].end());
  for (const int candidate : offered) {
    const std::vector<int> &own = problem.candidates[static_cast<size_t>(candidate)].ops;
    if (std::ranges::any_of(own, [&](int op) { return numbers[static_cast<size_t>(op)] < 0; }))
      continue;
    OpSet &kernel = kernels.emplace_back();
    for (const int op : own) kernel.insert(numbers[static_cast<size_t>(op)]);
  }
  for (const int op : ops)
    for (const int tensor : problem.opInputs[static_cast<size_t>(op)])
      for (const int producer : producers[static_cast<size_t>(tensor)].members())
        if (const int number = numbers[static_cast<size_t>(producer)];
            number >= 0 && !siteMap.excludeEachOther(producer, op))
          direct[static_cast<size_t>(numbers[static_cast<size_t>(op)])].insert(number);
  std::vector<int> result;
  for (const int number : compactOrder(kernels, direct))
    result.push_back(ops[static_cast<size_t>(number)]);
  return result;
}

/// Where kernels stay within alternatives, each has an order by itself: one after another, as sites
/// stand, which takes time in proportion to their number. Else the ops of the first alternatives
/// have one with those of no site, and the others stand among them as in an order with theirs.
void FinishedOpLattice::chooseOrder() {
  order.clear();
  size_t held = 0;
  bool isChoosing = false;
  for (int site = 0; site < static_cast<int>(siteMap.count()); ++site) {
    held += static_cast<size_t>(siteMap.opsOfSite(site).size());
    isChoosing |= siteMap.alternativesOf(site) > 1;
  }
  const bool isWithin = std::ranges::all_of(problem.candidates, [&](const Candidate &candidate) {
    return std::ranges::all_of(candidate.ops, [&](int op) {
      return siteMap.siteOf(op) == siteMap.siteOf(candidate.ops.front());
    });
  });
  if (isChoosing && (held != problem.ops.size() || !isWithin)) {
    chooseOrderAcross();
    return;
  }
  std::vector<std::vector<int>> groups;
  for (int site = 0; isChoosing && site < static_cast<int>(siteMap.count()); ++site)
    for (size_t one = 0; one < siteMap.alternativesOf(site); ++one)
      groups.push_back(siteMap.ops(site, one).members());
  if (!isChoosing) groups = {OpSet::firstOps(static_cast<int>(problem.ops.size())).members()};
  for (const std::vector<int> &group : groups)
    for (const int op : orderOf(group)) order.push_back(op);
}

void FinishedOpLattice::chooseOrderAcross() {
  OpSet first = OpSet::firstOps(static_cast<int>(problem.ops.size()));
  for (int site = 0; site < static_cast<int>(siteMap.count()); ++site)
    first = first - (siteMap.opsOfSite(site) - siteMap.ops(site, 0));
  std::vector<int> placeOf(problem.ops.size(), -1);
  std::vector<std::tuple<int, int, size_t, size_t, int>> placed;  // the op last
  for (const int op : orderOf(first.members())) {
    placeOf[static_cast<size_t>(op)] = static_cast<int>(placed.size());
    placed.emplace_back(placed.size(), -1, 0, 0, op);
  }
  for (int site = 0; site < static_cast<int>(siteMap.count()); ++site)
    for (size_t one = 1; one < siteMap.alternativesOf(site); ++one) {
      const OpSet &own = siteMap.ops(site, one);
      int behind = -1;
      size_t within = 0;
      for (const int op : orderOf(((first - siteMap.ops(site, 0)) | own).members()))
        if (own.contains(op)) placed.emplace_back(behind, site, one, within++, op);
        else behind = std::max(behind, placeOf[static_cast<size_t>(op)]);
    }
  std::ranges::sort(placed);
  for (const auto &one : placed) order.push_back(std::get<4>(one));
}

/// False as soon as what it holds takes more than `most` bytes, or has more layers than a search
/// has states for; a way counts with a set, since what is bounded is the time, too.
bool FinishedOpLattice::openLayers(int64_t most) {
  const int64_t bytesOfSet =
      static_cast<int64_t>(OpSet::firstOps(static_cast<int>(problem.ops.size())).bytes());
  const int64_t bytesOfLayer = 3 * bytesOfSet + int64_t(sizeof(Layer)) + 200,
                bytesOfWay = bytesOfSet + int64_t(sizeof(int) + sizeof(Transition));
  constexpr int64_t bytesOfTracked =
      int64_t(sizeof(int) + sizeof(double) * maximumLayouts);  // a sum each (LagrangianBound.h)
  const bool isLimited = most < std::numeric_limits<int64_t>::max();
  int64_t bytes = 0;
  NextCandidates nextCandidates(order, opsOf, needs, finishedBy, candidatesOf, siteMap);
  // Layers as they are numbered. Kernels finish at least one op, so a set has all its ways in
  // before it is looked at.
  struct Opened {
    int number = -1;
    std::vector<std::pair<int, const Opened *>> next = {};  ///< candidates and where they lead
    int before = -1, by = -1;  ///< a layer and a candidate that lead here
  };
  std::map<std::pair<int, OpSet>, Opened> opened;
  opened.try_emplace({0, OpSet()});
  for (auto &[key, layer] : opened) {
    const OpSet &finished = key.second;
    layer.number = static_cast<int>(all.size());
    all.push_back(layer.before < 0
                      ? openLayer(finished)
                      : openLayer(finished, all[static_cast<size_t>(layer.before)], layer.by));
    bytes += bytesOfLayer + bytesOfTracked * static_cast<int64_t>(all.back().tracked.size());
    if (bytes > most || (isLimited && std::ssize(all) > mostLayers)) return false;
    if (isComplete(all.back())) continue;
    for (const int candidate : nextCandidates.after(finished)) {
      bytes += bytesOfWay;
      OpSet target = finished | finishedBy[static_cast<size_t>(candidate)];
      const int size = target.size();
      Opened &next = opened.try_emplace({size, std::move(target)}).first->second;
      if (next.before < 0) next.before = layer.number, next.by = candidate;
      layer.next.emplace_back(candidate, &next);
    }
  }
  auto layer = all.begin();
  for (const auto &[key, one] : opened) {
    for (const auto &[candidate, target] : one.next)
      layer->next.push_back({candidate, target->number});
    ++layer;
  }
  return true;
}

void FinishedOpLattice::findBounds() {
  for (auto layer = all.rbegin(); layer != all.rend(); ++layer) {
    if (isComplete(*layer)) layer->after = 0;
    for (const Transition &transition : layer->next)
      layer->after = std::min(layer->after, prices.candidate(transition.candidate).bestSeconds +
                                                all[static_cast<size_t>(transition.target)].after);
  }
}

bool FinishedOpLattice::isLive(int tensor, const OpSet &finished) const {
  const Tensor &facts = problem.tensors[static_cast<size_t>(tensor)];
  const OpSet &writers = producers[static_cast<size_t>(tensor)];
  if (writers.isEmpty() ? !facts.isArgument : !finished.containsAll(writers)) return false;
  return facts.isResult || !finished.containsAll(consumers[static_cast<size_t>(tensor)]);
}

bool FinishedOpLattice::isTemporary(int tensor) const {
  const Tensor &facts = problem.tensors[static_cast<size_t>(tensor)];
  return !facts.isArgument && !facts.isResult && !prices.isFreeToPack(tensor);
}

Layer FinishedOpLattice::openLayer(const OpSet &finished) const {
  Layer layer{.finished = finished};
  for (int tensor = 0; tensor < static_cast<int>(problem.tensors.size()); ++tensor) {
    if (!isLive(tensor, finished) || prices.isFreeToPack(tensor)) continue;
    if (prices.layouts(tensor).size() > 1) layer.tracked.push_back(tensor);
    else if (isTemporary(tensor))
      layer.untrackedBytes += problem.tensors[static_cast<size_t>(tensor)].bytes();
  }
  return layer;
}

/// The same from a layer before: only what the candidate reads or writes may begin or cease to
/// live.
Layer FinishedOpLattice::openLayer(const OpSet &finished, const Layer &before,
                                   int candidate) const {
  Layer layer{.finished = finished, .untrackedBytes = before.untrackedBytes};
  const std::vector<int> &touched = touchedBy[static_cast<size_t>(candidate)];
  std::ranges::set_difference(before.tracked, touched, std::back_inserter(layer.tracked));
  for (const int tensor : touched) {
    if (prices.isFreeToPack(tensor)) continue;
    const bool isNow = isLive(tensor, finished);
    if (prices.layouts(tensor).size() > 1) {
      if (isNow) layer.tracked.push_back(tensor);
    } else if (isTemporary(tensor)) {
      layer.untrackedBytes += (isNow - isLive(tensor, before.finished)) *
                              problem.tensors[static_cast<size_t>(tensor)].bytes();
    }
  }
  std::ranges::sort(layer.tracked);
  return layer;
}

}  // namespace weft::select
