// Reuse distances over a plan's buffers; see GraphPrediction.h.
//
// The constants were fitted to 24 encoder plans on an H200 (BERT-base, BERT-large, the paper's encoder; B=8 L=512, B=96 L=128, B=1
// L=128..4096), measured as whole graphs on cold inputs and parameters: with them every whole is within 4% of what the profile's rows predict.
#include "runtime/GraphPrediction.h"

#include <algorithm>
#include <map>
#include <set>

namespace weft::runtime {
namespace {

/// Data stay in the L2 for certain while less than the first share of its size went through since, and are gone after the second: its
/// two partitions keep copies of what their multiprocessors read, and replacement is not least-recently-used.
constexpr double keptShare = 0.2, goneShare = 1;
/// Seconds saved per second that DRAM would take.
constexpr double savedShare = 0.45;

/// Share of a tensor that is still there after so many bytes, its own included, went through a cache of `l2Bytes`.
double stillThere(double distance, double l2Bytes) {
  if (distance <= keptShare * l2Bytes) return 1;
  return std::max(0.0, (goneShare * l2Bytes - distance) / ((goneShare - keptShare) * l2Bytes));
}

/// Bytes that went through the cache since a buffer was last touched, in a call that finds nothing of an earlier one.
class ReuseDistance {
public:
  explicit ReuseDistance(const Plan &plan) : plan(plan) {}

  /// Bytes of the kernel's inputs that are still there.
  double run(const PlanKernel &kernel, double l2Bytes) {
    const std::set<int> inputs(kernel.inputs.begin(), kernel.inputs.end());
    double reused = 0;
    for (const int tensor : inputs) {
      const double bytes = double(plan.tensors[size_t(tensor)].bytes);
      const auto last = lastTouched.find(buffer(tensor));
      if (last != lastTouched.end() && l2Bytes > 0) reused += bytes * stillThere(passed - last->second + bytes, l2Bytes);
      passed += bytes;
    }
    std::set<int> touched;
    for (const int tensor : inputs) touched.insert(buffer(tensor));
    for (const int tensor : kernel.outputs)
      if (touched.insert(buffer(tensor)).second) passed += double(plan.tensors[size_t(tensor)].bytes);
    for (const int one : touched) lastTouched[one] = passed;
    return reused;
  }

private:
  int buffer(int tensor) const { return plan.tensors[size_t(tensor)].buffer; }
  const Plan &plan;
  double passed = 0;
  std::map<int, double> lastTouched;
};

}  // namespace

GraphPrediction predictGraph(const Plan &plan, const std::vector<int> &kernels, const Device &device) {
  GraphPrediction prediction;
  ReuseDistance distance(plan);
  for (const int index : kernels) {
    const PlanKernel &kernel = plan.kernels[size_t(index)];
    prediction.sumSeconds += kernel.seconds;
    if (isView(kernel)) continue;
    prediction.reusedBytes += distance.run(kernel, device.l2Bytes);
  }
  prediction.reuseSeconds = device.copyBandwidth > 0 ? savedShare * prediction.reusedBytes / device.copyBandwidth : 0;
  return prediction;
}

GraphPrediction predictGraph(const Plan &plan, const std::vector<int> &kernels) {
  const auto known = std::ranges::find(devices(), plan.device, &Device::name);
  return predictGraph(plan, kernels, known == devices().end() ? Device{} : *known);
}

}  // namespace weft::runtime
