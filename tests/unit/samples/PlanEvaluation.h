// A whole plan computed without a device: every kernel element by element in fp64, in the memory
// that the plan lays out. What overwrites a life, reads another tensor's place or does not wait for
// what it reads gives other results or NaN.
#pragma once

#include "codegen/families/view/ViewKnobs.h"
#include "ir/interpreter/Tensor.h"
#include "kernel/reference/PointEvaluator.h"
#include "plan/PlanBuilder.h"
#include "plan/PlanMemory.h"

#include <limits>
#include <map>
#include <set>

namespace weft::test {

class PlanEvaluation {
public:
  /// All memory holds NaN.
  PlanEvaluation(const PlannedKernels &planned, uint64_t seed)
      : planned(planned), plan(planned.plan), memory(planned.plan), seed(seed) {
    for (const PlanTensor &tensor : plan.tensors) {
      const MemoryRange range = memory.rangeOf(tensor);
      std::vector<double> &bytes = held[range.memory];
      bytes.resize(std::max(bytes.size(), size_t(range.end)),
                   std::numeric_limits<double>::quiet_NaN());
    }
  }

  /// `logical`: row-major.
  void write(const PlanTensor &tensor, const std::vector<double> &logical) {
    size_t next = 0;
    forEachElement(tensor,
                   [&](const std::vector<int64_t> &at) { store(tensor, at, logical.at(next++)); });
  }
  std::vector<double> read(const PlanTensor &tensor) const {
    std::vector<double> logical;
    forEachElement(tensor,
                   [&](const std::vector<int64_t> &at) { logical.push_back(load(tensor, at)); });
    return logical;
  }

  /// As the kernels stand, or, of those that may start, always the last.
  void run(bool latestFirst) {
    std::set<int> finished;
    while (finished.size() < plan.kernels.size()) {
      int next = -1;
      for (int kernel = 0; kernel < int(plan.kernels.size()); ++kernel) {
        const std::vector<int> &after = plan.kernels[size_t(kernel)].after;
        const bool mayStart = !finished.contains(kernel) &&
                              std::all_of(after.begin(), after.end(),
                                          [&](int one) { return finished.contains(one); });
        if (mayStart && (next < 0 || latestFirst)) next = kernel;
      }
      runKernel(size_t(next));
      finished.insert(next);
    }
  }

private:
  template <typename Visit>
  static void forEachElement(const PlanTensor &tensor, Visit &&visit) {
    std::vector<int64_t> at(tensor.extents.size(), 0);
    for (bool more = true; more;) {
      visit(at);
      more = false;
      for (size_t d = at.size(); d-- > 0 && !more;) {
        more = ++at[d] < tensor.extents[d];
        if (!more) at[d] = 0;
      }
    }
  }
  size_t addressOf(const PlanTensor &tensor, std::span<const int64_t> at) const {
    int64_t element = 0;
    for (size_t d = 0; d < at.size(); ++d) element += at[d] * tensor.strides[d];
    return size_t(memory.rangeOf(tensor).begin + element * sizeOf(tensor.dtype));
  }
  double load(const PlanTensor &tensor, std::span<const int64_t> at) const {
    return held.at(memory.rangeOf(tensor).memory).at(addressOf(tensor, at));
  }
  /// The value stands at the first byte; the others hold NaN, so that elements that overlap are
  /// found.
  void store(const PlanTensor &tensor, std::span<const int64_t> at, double value) {
    std::vector<double> &bytes = held.at(memory.rangeOf(tensor).memory);
    const size_t address = addressOf(tensor, at);
    for (int64_t byte = 0; byte < sizeOf(tensor.dtype); ++byte)
      bytes.at(address + size_t(byte)) =
          byte == 0 ? value : std::numeric_limits<double>::quiet_NaN();
  }

  void runKernel(size_t index) {
    const PlanKernel &entry = plan.kernels[index];
    if (entry.family == viewFamily) return;
    std::vector<reference::ElementReader> inputs;
    for (const int input : entry.inputs)
      inputs.push_back([this, input](std::span<const int64_t> at) {
        return load(plan.tensors[size_t(input)], at);
      });
    reference::PointEvaluator evaluator(planned.kernels[index].kernel, inputs,
                                        {.seed = seed, .step = 0});
    std::vector<std::vector<double>> results(
        entry.outputs.size());  // written when all is read: kernels may work in place
    for (size_t output = 0; output < results.size(); ++output)
      forEachElement(plan.tensors[size_t(entry.outputs[output])],
                     [&](const std::vector<int64_t> &at) {
                       results[output].push_back(evaluator.output(output, at).value);
                     });
    for (size_t output = 0; output < results.size(); ++output)
      write(plan.tensors[size_t(entry.outputs[output])], results[output]);
  }

  const PlannedKernels &planned;
  const Plan &plan;
  const PlanMemory memory;
  const uint64_t seed;
  std::map<int, std::vector<double>> held;  ///< by memory, a value a byte
};

}  // namespace weft::test
