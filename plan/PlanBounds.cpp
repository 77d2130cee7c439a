// Places of tensors, checked; see PlanBounds.h.
#include "plan/PlanBounds.h"

#include "kernel/Error.h"
#include "plan/CheckedSizes.h"
#include "plan/TensorLayout.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

namespace weft {

namespace {

bool isGiven(const PlanTensor &tensor) { return isGiven(tensor.role); }

class PlacesChecker {
public:
  PlacesChecker(const Plan &plan, const std::string &where) : plan(plan), where(where) {}

  void run() const {
    require(plan.workspaceBytes >= 0 && plan.workspaceBytes <= mostBytes, "workspaceBytes",
            fmt::format("{} bytes are {}", plan.workspaceBytes,
                        plan.workspaceBytes < 0 ? "less than none" : "more than any memory"));
    std::set<std::string> names;
    Checked total = 0;
    for (size_t index = 0; index < plan.tensors.size(); ++index) {
      const PlanTensor &tensor = plan.tensors[index];
      const std::string place = fmt::format("tensors[{}] ({})", index, tensor.name);
      require(!tensor.name.empty() && names.insert(tensor.name).second, place,
              "its name is empty or taken by an earlier tensor");
      checkShape(tensor, place);
      checkStrides(tensor, place);
      checkBuffer(tensor.buffer, place);
      total = checkedSum(total, endOf(tensor, place));
    }
    for (size_t index = 0; index < plan.kernels.size(); ++index)
      checkWorkspace(plan.kernels[index],
                     fmt::format("kernels[{}] ({})", index, plan.kernels[index].name));
    for (size_t index = 0; index < plan.memoryPlan.size(); ++index)
      checkAllocation(plan.memoryPlan[index], fmt::format("memoryPlan[{}]", index));
    require(total && *total <= mostBytes, "tensors",
            "their bytes together are more than any memory");
    checkGiven();
    checkBeginnings();
  }

private:
  void require(bool holds, const std::string &place, const std::string &problem) const {
    if (!holds) throw Error::badInput("{}: {}: {}", where, place, problem);
  }

  void checkShape(const PlanTensor &tensor, const std::string &place) const {
    const size_t rank = tensor.axes.size();
    require(tensor.extents.size() == rank && tensor.order.size() == rank &&
                tensor.strides.size() == rank,
            place, "axes, extents, order and strides differ in length");
    std::vector<int> sorted = tensor.order, identity(rank);
    std::ranges::sort(sorted);
    std::iota(identity.begin(), identity.end(), 0);
    require(sorted == identity, place,
            fmt::format("order [{}] is no permutation of its {} dimensions",
                        fmt::join(tensor.order, ", "), rank));
    require(std::ranges::all_of(tensor.extents, [](int64_t extent) { return extent > 0; }), place,
            "an extent is not positive");
    require(storedAs(tensor.dtype) == tensor.dtype, place,
            fmt::format("unknown dtype \"{}\"", nameOf(tensor.dtype)));
    require(std::isfinite(tensor.scale) && tensor.scale >= 0, place,
            fmt::format("scale {} is no deviation of values", tensor.scale));
    require(tensor.range[0] <= tensor.range[1] && tensor.range[0] >= -mostBytes &&
                tensor.range[1] <= mostBytes,
            place,
            fmt::format("range [{}, {}] is none of values", tensor.range[0], tensor.range[1]));
  }

  /// Along each dimension a step leads beyond all elements of the faster ones.
  void checkStrides(const PlanTensor &tensor, const std::string &place) const {
    std::vector<std::pair<int64_t, int64_t>>
        steps;  // stride, extent; an extent of 1 may have any stride that is none backwards
    for (size_t dimension = 0; dimension < tensor.extents.size(); ++dimension) {
      require(tensor.strides[dimension] >= 0 && tensor.strides[dimension] <= mostBytes, place,
              fmt::format("stride {} is {}", tensor.strides[dimension],
                          tensor.strides[dimension] < 0 ? "negative" : "beyond any memory"));
      if (tensor.extents[dimension] > 1)
        steps.emplace_back(tensor.strides[dimension], tensor.extents[dimension]);
    }
    std::ranges::sort(steps);
    Checked last = 0;
    for (const auto &[stride, extent] : steps) {
      require(last && stride > *last, place,
              fmt::format("strides [{}] put two of its elements in one place",
                          fmt::join(tensor.strides, ", ")));
      last = checkedSum(last, checkedProblem(extent - 1, stride));
    }
    require(last && *last <= mostBytes, place,
            fmt::format("strides [{}] lead beyond any memory", fmt::join(tensor.strides, ", ")));
  }

  /// Every tensor has a buffer at most, every kernel a workspace.
  void checkBuffer(int buffer, const std::string &place) const {
    const size_t most = plan.tensors.size() + plan.kernels.size();
    require(buffer >= 0 && size_t(buffer) < most, place,
            fmt::format("nothing lies in buffer {}; the plan has {} at most", buffer, most));
  }

  /// Bytes from the start of its buffer to its last element.
  Checked endOf(const PlanTensor &tensor, const std::string &place) const {
    require(tensor.offset >= 0, place,
            fmt::format("offset {} lies before its buffer", tensor.offset));
    const Checked elements =
        checkedSum(checkedSum(tensor.offset, 1), checkedLast(tensor.extents, tensor.strides));
    const Checked end = checkedProblem(elements, elementBytes(tensor));
    require(end && *end <= mostBytes, place,
            fmt::format("from offset {} on it reaches beyond any memory", tensor.offset));
    return end;
  }

  void checkWorkspace(const PlanKernel &kernel, const std::string &place) const {
    require(kernel.workspaceBuffer >= -1, place,
            fmt::format("workspaceBuffer {} is neither a buffer nor -1", kernel.workspaceBuffer));
    require(kernel.workspaceBytes >= 0 && kernel.workspaceBytes <= mostBytes, place,
            fmt::format("workspaceBytes: {} are {}", kernel.workspaceBytes,
                        kernel.workspaceBytes < 0 ? "less than none" : "more than any memory"));
    require(kernel.workspaceBytes == 0 || kernel.workspaceBuffer >= 0, place,
            fmt::format("it works in {} bytes, and has no workspaceBuffer", kernel.workspaceBytes));
    if (kernel.workspaceBuffer < 0) return;
    checkBuffer(kernel.workspaceBuffer, place + ": workspaceBuffer");
    for (const PlanTensor &tensor : plan.tensors)
      require(
          tensor.buffer != kernel.workspaceBuffer, place,
          fmt::format("its workspaceBuffer {} holds '{}'", kernel.workspaceBuffer, tensor.name));
  }

  void checkAllocation(const BufferAllocation &allocation, const std::string &place) const {
    checkBuffer(allocation.buffer, place);
    require(allocation.offset >= 0 && allocation.offset <= mostBytes, place,
            fmt::format("offset {} of buffer {} lies {} any memory", allocation.offset,
                        allocation.buffer, allocation.offset < 0 ? "before" : "beyond"));
  }

  /// What callers and files bring has separate memory; parameters that are packed lie beside each
  /// other.
  void checkGiven() const {
    std::map<int, std::vector<size_t>> byBuffer;
    for (size_t index = 0; index < plan.tensors.size(); ++index)
      if (isGiven(plan.tensors[index])) byBuffer[plan.tensors[index].buffer].push_back(index);
    for (const auto &[buffer, given] : byBuffer)
      for (size_t later = 1; later < given.size(); ++later)
        for (size_t earlier = 0; earlier < later; ++earlier) {
          const PlanTensor &one = plan.tensors[given[earlier]], &other = plan.tensors[given[later]];
          const std::string place = fmt::format("tensors[{}] ({})", given[later], other.name);
          require(one.role == TensorRole::parameter && other.role == TensorRole::parameter, place,
                  fmt::format(
                      "{} '{}' and {} '{}' share buffer {}; only parameters are packed into one",
                      nameOf(one.role), one.name, nameOf(other.role), other.name, buffer));
          require(!sharesElements(one, other), place,
                  fmt::format("parameters '{}' and '{}' share memory of buffer {}", one.name,
                              other.name, buffer));
        }
  }

  /// A buffer begins with what lies in it: the memory behind its address is aligned, and TMA reads
  /// it from there.
  void checkBeginnings() const {
    std::map<int, size_t> firstOf;
    for (size_t index = 0; index < plan.tensors.size(); ++index) {
      const auto [first, isNew] = firstOf.try_emplace(plan.tensors[index].buffer, index);
      if (!isNew && plan.tensors[index].offset < plan.tensors[first->second].offset)
        first->second = index;
    }
    for (const auto &[buffer, first] : firstOf)
      require(plan.tensors[first].offset == 0,
              fmt::format("tensors[{}] ({})", first, plan.tensors[first].name),
              fmt::format("offset {}, but nothing lies before it in buffer {}: weft derives 0",
                          plan.tensors[first].offset, buffer));
  }

  const Plan &plan;
  const std::string &where;
};

/// One stride and how often it may be taken: forwards by one tensor, backwards by the other.
struct Step {
  int64_t stride = 0, least = 0, most = 0;
};

/// Whether some number of each step, the largest first, leads to `distance`. `budget`: what is left
/// to try; nothing left counts as yes.
bool leadsTo(int64_t distance, std::span<const Step> steps, int &budget) {
  if (steps.empty()) return distance == 0;
  if (--budget < 0) return true;
  int64_t least = 0, most = 0;  // of the others; checked sizes add up
  for (const Step &step : steps.subspan(1)) {
    least += step.least * step.stride;
    most += step.most * step.stride;
  }
  const Step &step = steps.front();
  const auto floorOf = [](int64_t a, int64_t b) { return a / b - (a % b < 0); };
  const int64_t first = std::max(step.least, -floorOf(most - distance, step.stride)),
                last = std::min(step.most, floorOf(distance - least, step.stride));
  for (int64_t taken = first; taken <= last; ++taken)
    if (budget < 0 || leadsTo(distance - taken * step.stride, steps.subspan(1), budget))
      return true;
  return false;
}

}  // namespace

bool sharesElements(const PlanTensor &a, const PlanTensor &b) {
  constexpr int tries = 10'000;
  if (elementBytes(a) != elementBytes(b)) {  // rare: by bytes from the first to the last
    const auto begin = [](const PlanTensor &tensor) {
      return tensor.offset * elementBytes(tensor);
    };
    return begin(a) < begin(b) + spanBytes(b) && begin(b) < begin(a) + spanBytes(a);
  }
  std::map<int64_t, Step, std::greater<>> byStride;
  for (const PlanTensor *tensor : {&a, &b})
    for (size_t dimension = 0; dimension < tensor->extents.size(); ++dimension) {
      if (tensor->extents[dimension] == 1) continue;
      Step &step = byStride[tensor->strides[dimension]];
      step.stride = tensor->strides[dimension];
      (tensor == &a ? step.most : step.least) +=
          (tensor == &a ? 1 : -1) * (tensor->extents[dimension] - 1);
    }
  std::vector<Step> steps;
  for (const auto &[stride, step] : byStride) steps.push_back(step);
  int budget = tries;
  return leadsTo(b.offset - a.offset, steps, budget);
}

void checkPlaces(const Plan &plan, const std::string &where) { PlacesChecker(plan, where).run(); }

}  // namespace weft
