// Live ranges of tensors in shared memory; see PlanLiveness.h.
#include "plan/PlanLiveness.h"

#include "kernel/Configuration.h"
#include "kernel/Error.h"
#include "plan/PlanBounds.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace weft {

namespace {

/// Views, also before emission has given the other kernels their text.
bool touchesNothing(const PlanKernel &kernel) { return kernel.family.isView(); }

/// Tensors that views make one, and a cache with what an append makes of it, by the least of them.
class Views {
public:
  Views(const Plan &plan, const PlanMemory &memory) : parent(plan.tensors.size()) {
    std::iota(parent.begin(), parent.end(), 0);
    for (const PlanKernel &kernel : plan.kernels)
      if (touchesNothing(kernel))
        for (const std::vector<int> *tensors : {&kernel.inputs, &kernel.outputs})
          for (const int tensor : *tensors) unite(kernel.inputs.front(), tensor);
    for (const PlanKernel &kernel : plan.kernels)
      if (const int cache = cacheOf(plan, kernel); cache >= 0) unite(cache, kernel.outputs.front());
    std::map<int, int> packed;  // parameters are packed into one buffer without a kernel
    for (size_t tensor = 0; tensor < plan.tensors.size(); ++tensor)
      if (const int buffer = plan.tensors[tensor].buffer;
          memory.buffers()[size_t(buffer)].kind == BufferKind::parameter)
        unite(packed.try_emplace(buffer, int(tensor)).first->second, int(tensor));
    uniteViews(plan, memory);
  }
  int root(int tensor) const {
    while (parent[size_t(tensor)] != tensor) tensor = parent[size_t(tensor)];
    return tensor;
  }

private:
  /// A temporary or result that no kernel writes is a view of the tensors that it overlaps, or a
  /// larger tensor whose views are written.
  void uniteViews(const Plan &plan, const PlanMemory &memory) {
    std::set<int> written;
    for (const PlanKernel &kernel : plan.kernels)
      if (!touchesNothing(kernel)) written.insert(kernel.outputs.begin(), kernel.outputs.end());
    for (size_t one = 0; one < plan.tensors.size(); ++one) {
      const TensorRole role = plan.tensors[one].role;
      if (written.contains(int(one)) ||
          (role != TensorRole::temporary && role != TensorRole::result))
        continue;
      for (size_t other = 0; other < plan.tensors.size(); ++other)
        if (plan.tensors[one].buffer == plan.tensors[other].buffer &&
            memory.rangeOf(plan.tensors[one]).overlaps(memory.rangeOf(plan.tensors[other])))
          unite(int(one), int(other));
    }
  }
  void unite(int a, int b) {
    a = root(a), b = root(b);
    parent[size_t(std::max(a, b))] = std::min(a, b);
  }
  std::vector<int> parent;
};

/// `tensor`: -1 for a workspace.
void use(LiveRange &liveRange, int kernel, const MemoryRange &range, int tensor, bool writes) {
  if (liveRange.users.empty() || liveRange.users.back() != kernel) {
    liveRange.users.push_back(kernel);
    liveRange.touched.push_back(range);
    liveRange.tensors.emplace_back();
  }
  if (tensor >= 0) liveRange.tensors.back().push_back(tensor);
  liveRange.touched.back().begin = std::min(liveRange.touched.back().begin, range.begin);
  liveRange.touched.back().end = std::max(liveRange.touched.back().end, range.end);
  if (writes && (liveRange.writers.empty() || liveRange.writers.back() != kernel))
    liveRange.writers.push_back(kernel);
}

bool holds(const std::vector<int> &sorted, int one) {
  return std::ranges::binary_search(sorted, one);
}

/// Whether two users of one live range have elements in common. Slices of a tensor may lie
/// interleaved, and are told apart element by element; of other kernels the bytes from first to
/// last count.
bool touchTheSame(const Plan &plan, const LiveRange &liveRange, size_t n, size_t m) {
  if (!liveRange.touched[n].overlaps(liveRange.touched[m])) return false;
  if (!areOfDifferentSlices(plan.kernels[size_t(liveRange.users[n])],
                            plan.kernels[size_t(liveRange.users[m])]))
    return true;
  const std::vector<int> &others = liveRange.tensors[m];
  return std::ranges::any_of(liveRange.tensors[n], [&](int one) {
    return std::ranges::any_of(others, [&](int other) {
      return sharesElements(plan.tensors[size_t(one)], plan.tensors[size_t(other)]);
    });
  });
}

/// Every (kernel of a, kernel of b) of which one writes, the earlier first.
template <typename Visit>
void forEachConflict(const Plan &plan, const LiveRange &a, const LiveRange &b, Visit &&visit) {
  if (!a.range.overlaps(b.range) || (a.writers.empty() && b.writers.empty())) return;
  for (size_t n = 0; n < a.users.size(); ++n)
    for (size_t m = 0; m < b.users.size(); ++m) {
      const int one = a.users[n], other = b.users[m];
      if (one == other || !(holds(a.writers, one) || holds(b.writers, other))) continue;
      if (&a != &b || touchTheSame(plan, a, n, m))
        visit(std::min(one, other), std::max(one, other));
    }
}

class LiveRangeChecker {
public:
  LiveRangeChecker(const Plan &plan, const PlanMemory &memory, const std::string &where)
      : plan(plan),
        memory(memory),
        where(where),
        liveRanges(liveRangesOf(plan, memory)),
        order(plan) {}

  void run() const {
    for (size_t a = 0; a < liveRanges.size(); ++a)
      for (size_t b = 0; b <= a; ++b) {
        forEachConflict(plan, liveRanges[a], liveRanges[b], [&](int earlier, int later) {
          if (!order.waits(later, earlier))
            reject(later, "it shares " + nameOf(liveRanges[a], liveRanges[b]) + " with", earlier,
                   ", but does not wait for it");
        });
        if (a == b || !liveRanges[a].range.overlaps(liveRanges[b].range)) continue;
        checkWrites(liveRanges[a], liveRanges[b]);
        checkWrites(liveRanges[b], liveRanges[a]);
      }
    for (const auto &[earlier, later] : dataFlow(plan))  // through views
      if (!order.waits(later, earlier))
        reject(later, "it reads what", earlier, " computes, but does not wait for it");
    for (size_t later = 0; later < plan.kernels.size(); ++later)
      for (size_t earlier = 0; earlier < later; ++earlier)
        if (areOfDifferentSlices(plan.kernels[earlier], plan.kernels[later]) &&
            order.waits(int(later), int(earlier)))
          reject(int(later), "it waits for", int(earlier),
                 ", but is of another slice, and slices run at once");
  }

  /// Who must wait for whom because of what it reads, views included.
  static std::vector<std::pair<int, int>> dataFlow(const Plan &plan) {
    std::vector<std::pair<int, int>> pairs;
    std::map<int, int> producer;
    for (size_t kernel = 0; kernel < plan.kernels.size(); ++kernel) {
      for (const int input : plan.kernels[kernel].inputs)
        if (const auto found = producer.find(input); found != producer.end())
          pairs.emplace_back(found->second, int(kernel));
      for (const int output : plan.kernels[kernel].outputs) producer[output] = int(kernel);
    }
    return pairs;
  }

private:
  std::string placeOf(int kernel) const {
    return fmt::format("{}: kernels[{}] ({})", where, kernel, plan.kernels[size_t(kernel)].name);
  }

  std::string nameOf(const LiveRange &a, const LiveRange &b) const {
    for (const PlanTensor &tensor : plan.tensors)
      if (tensor.name == a.name)
        for (const PlanTensor &other : plan.tensors)
          if (other.name == b.name && other.buffer == tensor.buffer)
            return fmt::format("buffer {}", tensor.buffer);
    return fmt::format("memory of '{}' and '{}' (bytes {} to {})", a.name, b.name,
                       std::max(a.range.begin, b.range.begin), std::min(a.range.end, b.range.end));
  }

  [[noreturn]] void reject(int kernel, const std::string &what, int other, const char *why) const {
    throw Error::badInput("{}: {} {}{}", placeOf(kernel), what, plan.kernels[size_t(other)].name,
                          why);
  }

  /// No write of b may fall into the live range of a.
  void checkWrites(const LiveRange &a, const LiveRange &b) const {
    for (const int writer : b.writers) {
      if (a.isGiven)
        throw Error::badInput("{}: it writes '{}' over '{}', which is given", placeOf(writer),
                              b.name, a.name);
      if (a.writers.empty()) continue;  // another name of what lies there
      if (holds(a.writers, writer))
        throw Error::badInput("{}: its results '{}' and '{}' share memory", placeOf(writer), a.name,
                              b.name);
      if (a.isResult && a.writers.front() < writer)
        throw Error::badInput("{}: it writes '{}' over the result '{}'", placeOf(writer), b.name,
                              a.name);
      if (a.writers.front() < writer && a.users.back() > writer)
        throw Error::badInput("{}: it uses '{}', over which {} has written '{}'",
                              placeOf(a.users.back()), a.name, plan.kernels[size_t(writer)].name,
                              b.name);
    }
  }

  const Plan &plan;
  const PlanMemory &memory;
  const std::string &where;
  const std::vector<LiveRange> liveRanges;
  const KernelOrder order;
};

}  // namespace

int cacheOf(const Plan &plan, const PlanKernel &kernel) {
  if (kernel.ops.empty() || kernel.ops.back().kind != OpKind::append) return -1;
  const PlanTensor &result = plan.tensors[size_t(kernel.outputs.front())];
  const auto cache = std::ranges::find_if(kernel.inputs, [&](int input) {
    return plan.tensors[size_t(input)].buffer == result.buffer &&
           plan.tensors[size_t(input)].role == TensorRole::argument;
  });
  return cache == kernel.inputs.end() ? -1 : *cache;
}

std::vector<LiveRange> liveRangesOf(const Plan &plan, const PlanMemory &memory) {
  const Views views(plan, memory);
  std::map<int, LiveRange> byRoot;
  for (size_t index = 0; index < plan.tensors.size(); ++index) {
    const PlanTensor &tensor = plan.tensors[index];
    const MemoryRange range = memory.rangeOf(tensor);
    const auto [found, isNew] =
        byRoot.try_emplace(views.root(int(index)), LiveRange{.name = tensor.name, .range = range});
    LiveRange &liveRange = found->second;
    liveRange.range.begin = std::min(liveRange.range.begin, range.begin);
    liveRange.range.end = std::max(liveRange.range.end, range.end);
    liveRange.isGiven |= isGiven(tensor.role);
    liveRange.isResult |= tensor.role == TensorRole::result;
  }
  std::vector<LiveRange> scratch;
  for (size_t kernel = 0; kernel < plan.kernels.size(); ++kernel) {
    const PlanKernel &one = plan.kernels[kernel];
    if (touchesNothing(one)) continue;
    const auto useTensor = [&](int tensor, bool writes) {
      use(byRoot.at(views.root(tensor)), int(kernel), memory.rangeOf(plan.tensors[size_t(tensor)]),
          tensor, writes);
    };
    for (const int input : one.inputs) useTensor(input, false);
    for (const int output : one.outputs) useTensor(output, true);
    if (one.workspaceBuffer < 0) continue;
    scratch.push_back(
        {.name = one.name + "'s workspace", .range = memory.rangeOf(one.workspaceBuffer)});
    use(scratch.back(), int(kernel), scratch.back().range, -1, true);
  }
  std::vector<LiveRange> liveRanges;
  for (auto &[root, liveRange] : byRoot) liveRanges.push_back(std::move(liveRange));
  liveRanges.insert(liveRanges.end(), scratch.begin(), scratch.end());
  return liveRanges;
}

std::vector<std::pair<int, int>> repeatedConflicts(const Plan &plan,
                                                   const std::vector<LiveRange> &liveRanges) {
  std::vector<std::pair<int, int>> pairs = LiveRangeChecker::dataFlow(plan);
  for (size_t a = 0; a < liveRanges.size(); ++a)
    for (size_t b = 0; b <= a; ++b)
      forEachConflict(plan, liveRanges[a], liveRanges[b],
                      [&](int earlier, int later) { pairs.emplace_back(earlier, later); });
  return pairs;
}

std::vector<std::pair<int, int>> conflicts(const Plan &plan,
                                           const std::vector<LiveRange> &liveRanges) {
  std::vector<std::pair<int, int>> pairs = repeatedConflicts(plan, liveRanges);
  std::ranges::sort(pairs);
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

KernelOrder::KernelOrder(size_t kernels, const std::vector<std::pair<int, int>> &pairs)
    : before(kernels, std::vector<bool>(kernels)) {
  std::vector<std::pair<int, int>> sorted = pairs;
  std::ranges::sort(sorted, {}, [](const auto &pair) {
    return pair.second;
  });  // what comes before the earlier one is known by then
  for (const auto &[earlier, later] : sorted) follow(later, earlier);
}

KernelOrder::KernelOrder(const Plan &plan)
    : before(plan.kernels.size(), std::vector<bool>(plan.kernels.size())) {
  for (size_t kernel = 0; kernel < plan.kernels.size(); ++kernel)
    for (const int one : plan.kernels[kernel].after) follow(int(kernel), one);
}

void KernelOrder::follow(int later, int earlier) {
  std::vector<bool> &all = before[size_t(later)];
  all[size_t(earlier)] = true;
  for (size_t kernel = 0; kernel < size_t(earlier); ++kernel)
    if (before[size_t(earlier)][kernel]) all[kernel] = true;
}

bool areOfDifferentSlices(const PlanKernel &a, const PlanKernel &b) {
  return a.chunk && b.chunk && a.chunk->isSlice && b.chunk->isSlice &&
         a.chunk->start != b.chunk->start;
}

void checkLiveRanges(const Plan &plan, const PlanMemory &memory, const std::string &where) {
  LiveRangeChecker(plan, memory, where).run();
}

}  // namespace weft
