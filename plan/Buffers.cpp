// Buffers and dependencies of a plan; see Buffers.h.
#include "plan/Buffers.h"

#include "kernel/Configuration.h"
#include "plan/BufferPacking.h"
#include "plan/PlanLiveness.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <set>

namespace weft {
namespace {

int rootOf(int tensor, const std::vector<int> &viewOf) {
  while (viewOf[size_t(tensor)] >= 0) tensor = viewOf[size_t(tensor)];
  return tensor;
}

/// Who uses each root tensor, views included.
class Uses {
public:
  Uses(const Plan &plan, const std::vector<int> &viewOf)
      : users(plan.tensors.size()), order(plan.kernels.size(), flow(plan, viewOf)) {
    for (size_t kernel = 0; kernel < plan.kernels.size(); ++kernel)
      for (const auto *tensors : {&plan.kernels[kernel].inputs, &plan.kernels[kernel].outputs})
        for (const int tensor : *tensors) users[size_t(rootOf(tensor, viewOf))].insert(int(kernel));
  }

  bool isLast(int kernel, int root) const {
    return !users[size_t(root)].empty() && *users[size_t(root)].rbegin() == kernel;
  }
  /// Whether data alone make the kernel wait for every other one that uses the tensor.
  bool comesAfterAll(int kernel, int root) const {
    return std::ranges::all_of(users[size_t(root)], [&](int other) {
      return other == kernel || order.waits(kernel, other);
    });
  }

private:
  static std::vector<std::pair<int, int>> flow(const Plan &plan, const std::vector<int> &viewOf) {
    std::vector<std::set<int>> writers(plan.tensors.size());
    std::vector<std::pair<int, int>> pairs;
    for (size_t kernel = 0; kernel < plan.kernels.size(); ++kernel) {
      for (const int input : plan.kernels[kernel].inputs)
        for (const int writer : writers[size_t(rootOf(input, viewOf))])
          pairs.emplace_back(writer, int(kernel));
      for (const int output : plan.kernels[kernel].outputs)
        writers[size_t(rootOf(output, viewOf))].insert(int(kernel));
    }
    return pairs;
  }

  std::vector<std::set<int>> users;
  KernelOrder order;
};

/// The input that the kernel's first output may take the place of: a temporary that nothing else
/// reads now or later. Readers of views count as readers of the whole. With concurrent it also
/// waits for all that uses the input anyway. -1 if there is none.
int overwrittenInput(const Plan &plan, int kernel, const std::vector<int> &overwritable,
                     const std::vector<int> &viewOf, const Uses &uses,
                     const std::vector<bool> &isTemporary) {
  const std::vector<int> &inputs = plan.kernels[size_t(kernel)].inputs;
  for (const int input : overwritable) {
    const auto readers = std::ranges::count_if(
        inputs, [&](int other) { return rootOf(other, viewOf) == rootOf(input, viewOf); });
    const bool isWhole = rootOf(input, viewOf) == input;
    const bool isFree =
        uses.isLast(kernel, input) && (!plan.concurrent || uses.comesAfterAll(kernel, input));
    if (isWhole && readers == 1 && isFree &&
        isTemporary[size_t(plan.tensors[size_t(input)].buffer)])
      return input;
  }
  return -1;
}

/// Kernels of a plan, one bit each: plans in chunks have hundreds, and each waits for most of those
/// before it.
class KernelSet {
public:
  explicit KernelSet(size_t kernels) : words((kernels + 63) / 64) {}

  void insert(size_t kernel) { words[kernel / 64] |= uint64_t(1) << (kernel % 64); }
  void insert(const KernelSet &others) {
    for (size_t word = 0; word < words.size(); ++word) words[word] |= others.words[word];
  }
  bool contains(size_t kernel) const { return (words[kernel / 64] >> (kernel % 64)) & 1; }
  /// In ascending order.
  template <typename Visit>
  void forEach(Visit &&visit) const {
    for (size_t word = 0; word < words.size(); ++word)
      for (uint64_t left = words[word]; left != 0; left &= left - 1)
        visit(word * 64 + size_t(std::countr_zero(left)));
  }

private:
  std::vector<uint64_t> words;
};

/// The least number of no buffer.
int unusedBuffer(const Plan &plan) {
  std::set<int> used;
  for (const PlanTensor &tensor : plan.tensors) used.insert(tensor.buffer);
  for (const PlanKernel &kernel : plan.kernels) used.insert(kernel.workspaceBuffer);
  int buffer = 0;
  while (used.contains(buffer)) ++buffer;
  return buffer;
}

}  // namespace

void assignBuffers(Plan &plan, const std::vector<int> &viewOf,
                   const std::vector<std::vector<int>> &overwritable) {
  std::vector<bool> isTemporary;  // by buffer
  const auto newBuffer = [&](bool temporary) {
    isTemporary.push_back(temporary);
    return int(isTemporary.size()) - 1;
  };
  for (size_t index = 0; index < plan.tensors.size(); ++index) {
    PlanTensor &root = plan.tensors[size_t(rootOf(int(index), viewOf))];
    if (root.buffer < 0 && plan.tensors[index].role != TensorRole::temporary)
      root.buffer = newBuffer(false);
  }
  const Uses uses(plan, viewOf);
  for (size_t kernel = 0; kernel < plan.kernels.size(); ++kernel) {
    PlanKernel &step = plan.kernels[kernel];
    for (const int output : step.outputs) {
      int &buffer = plan.tensors[size_t(rootOf(output, viewOf))].buffer;
      if (buffer >= 0) continue;
      const bool mayOverwrite = output == step.outputs.front() && rootOf(output, viewOf) == output;
      const int input = mayOverwrite ? overwrittenInput(plan, int(kernel), overwritable[kernel],
                                                        viewOf, uses, isTemporary)
                                     : -1;
      buffer = input < 0 ? newBuffer(true) : plan.tensors[size_t(input)].buffer;
    }
    if (workspaceBytesOf(step) > 0) step.workspaceBuffer = newBuffer(true);
  }
  for (size_t index = 0; index < plan.tensors.size(); ++index)
    plan.tensors[index].buffer = plan.tensors[size_t(rootOf(int(index), viewOf))].buffer;
  packBuffers(plan);
}

void resizeWorkspace(Plan &plan, PlanKernel &kernel, int64_t bytes) {
  const int64_t before = kernel.workspaceBytes;
  kernel.workspaceBytes = kernel.family.isLibrary() ? 0 : bytes;
  if (kernel.family.isLibrary()) return;
  if (bytes == 0 || bytes > before)
    std::erase_if(plan.memoryPlan, [&](const BufferAllocation &one) {
      return one.buffer == kernel.workspaceBuffer;
    });
  if (bytes == 0) kernel.workspaceBuffer = -1;
  else if (kernel.workspaceBuffer < 0) kernel.workspaceBuffer = unusedBuffer(plan);
}

void orderKernels(Plan &plan) {
  const PlanMemory memory(plan);
  std::vector<KernelSet> before(plan.kernels.size(), KernelSet(plan.kernels.size())),
      reachable = before;
  for (const auto &[earlier, later] : repeatedConflicts(plan, liveRangesOf(plan, memory)))
    before[size_t(later)].insert(size_t(earlier));
  for (size_t kernel = 0; kernel < plan.kernels.size(); ++kernel) {
    KernelSet &implied = reachable[kernel];
    before[kernel].forEach([&](size_t one) { implied.insert(reachable[one]); });
    std::vector<int> &after = plan.kernels[kernel].after;
    after.clear();
    before[kernel].forEach([&](size_t one) {
      if (!implied.contains(one)) after.push_back(int(one));
    });
    implied.insert(before[kernel]);
  }
}

}  // namespace weft
