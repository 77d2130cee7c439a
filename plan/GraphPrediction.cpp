// Reuse distances over a plan's memory, and slices that share the device; see GraphPrediction.h.
//
// The constants were fitted to 38 encoder plans on an H200 (BERT-base, BERT-large, the paper's
// encoder; B=8 L=512, B=96 L=128, B=1 L=128..4096; whole, and in 2 to 16 chunks), measured as whole
// graphs on cold inputs and parameters with rests between calls (weft time --burst): with them
// every whole is within 4.3% of what that profile's measurements predict, 1.9% in the root mean
// square. What other profiles and plans give stands in bench/RESULTS.md.
//
// The cost of a path was fitted to one measurement there ("streams", N=256): four attentions on
// parallel paths of a graph took 5.4 us longer than one of them alone, which fills little of the
// device. No other measurement has been held against it.
#include "plan/GraphPrediction.h"

#include "kernel/Configuration.h"
#include "plan/ConcurrentLaunches.h"
#include "plan/PlanMemory.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>

namespace weft {
namespace {

/// Data stay in the L2 for certain while less than the first share of its size went through since,
/// and are gone after the second: its two partitions keep copies of what their multiprocessors
/// read, and replacement is not least-recently-used.
constexpr double keptShare = 0.5, goneShare = 1.1;
/// Seconds saved per second that DRAM would take: most of it where a read is spared, little where a
/// write-back is, for which no kernel waits.
constexpr double savedByReuse = 0.65, savedByOverwriting = 0.1;
/// What each parallel path of a graph beyond the first adds to its time.
constexpr double pathSeconds = 1.8e-6;

/// Share of a tensor that is still there after so many bytes, its own included, went through a
/// cache of `l2Bytes`.
double stillThere(double distance, double l2Bytes) {
  if (distance <= keptShare * l2Bytes) return 1;
  return std::max(0.0, (goneShare * l2Bytes - distance) / ((goneShare - keptShare) * l2Bytes));
}

/// What of the plan's memory is in the cache, in a call that finds nothing of an earlier one: which
/// bytes were touched, and how many went through since.
class ReuseDistance {
public:
  ReuseDistance(const Plan &plan, double l2Bytes) : plan(plan), memory(plan), l2Bytes(l2Bytes) {}

  void run(const PlanKernel &kernel, GraphPrediction &prediction) {
    const std::set<int> inputs(kernel.inputs.begin(), kernel.inputs.end());
    for (const int tensor : inputs) {
      prediction.reusedBytes += residentBytes(rangeOf(tensor), bytesOf(tensor));
      passed += bytesOf(tensor);
    }
    std::set<int> buffers;
    for (const int tensor : inputs) buffers.insert(bufferOf(tensor));
    for (const int tensor : kernel.outputs)
      if (buffers.insert(bufferOf(tensor)).second) {
        prediction.overwrittenBytes += overwrittenBytes(rangeOf(tensor), bytesOf(tensor));
        passed += bytesOf(tensor);
      }
    for (const int tensor : inputs) touch(rangeOf(tensor), bytesOf(tensor), false);
    for (const int tensor : kernel.outputs) write(rangeOf(tensor), bytesOf(tensor));
  }

private:
  struct Touch {
    MemoryRange range;
    double bytes = 0, passed = 0;  ///< of it; through the cache until it was touched last
    bool isWritten = false;        ///< by a kernel of this call
    bool holds(const MemoryRange &other) const {
      return range.memory == other.memory && range.begin <= other.begin && other.end <= range.end;
    }
    bool is(const MemoryRange &other) const {
      return holds(other) && range.begin == other.begin && range.end == other.end;
    }
  };

  int bufferOf(int tensor) const { return plan.tensors[size_t(tensor)].buffer; }
  double bytesOf(int tensor) const { return double(plan.tensors[size_t(tensor)].bytes); }
  MemoryRange rangeOf(int tensor) const { return memory.rangeOf(plan.tensors[size_t(tensor)]); }
  /// Share of it that is still there, of the part that begins so many bytes before its end.
  double share(const Touch &touch, double bytes) const {
    return l2Bytes > 0 ? stillThere(passed - touch.passed + bytes, l2Bytes) : 0;
  }

  /// Of a range that was touched as a whole, or as part of a larger one; else of the parts that
  /// were touched.
  double residentBytes(const MemoryRange &range, double bytes) const {
    const Touch *latest = nullptr;
    for (const Touch &touch : touches)
      if (touch.holds(range) && (!latest || touch.passed > latest->passed)) latest = &touch;
    if (latest) {
      const double toEnd = double(latest->range.end - range.begin) /
                           double(latest->range.end - latest->range.begin) * latest->bytes;
      return bytes * share(*latest, toEnd);
    }
    double parts = 0;
    for (const Touch &touch : touches)
      if (touch.range.overlaps(range)) parts += touch.bytes * share(touch, touch.bytes);
    return std::min(parts, bytes);
  }

  double overwrittenBytes(const MemoryRange &range, double bytes) const {
    double sum = 0;
    for (const Touch &touch : touches)
      if (touch.isWritten && touch.range.overlaps(range))
        sum += touch.bytes * share(touch, touch.bytes);
    return std::min(sum, bytes);
  }

  void touch(const MemoryRange &range, double bytes, bool isWritten) {
    for (Touch &one : touches)
      if (one.is(range)) {
        one.passed = passed;
        one.isWritten |= isWritten;
        return;
      }
    touches.push_back({.range = range, .bytes = bytes, .passed = passed, .isWritten = isWritten});
  }

  /// What lay there before is gone.
  void write(const MemoryRange &range, double bytes) {
    std::erase_if(touches, [&](const Touch &one) { return one.range.overlaps(range); });
    touch(range, bytes, true);
  }

  const Plan &plan;
  const PlanMemory memory;
  const double l2Bytes;
  double passed = 0;
  std::vector<Touch> touches;
};

/// Launches that share the device: each runs at full speed while the shares of all that run fit
/// into it, else all get slower alike.
class SharedDevice {
public:
  SharedDevice(const Plan &plan, std::vector<Launch> launches)
      : plan(plan), launches(std::move(launches)) {
    for (const Launch &launch : this->launches) {
      left.push_back(plan.kernels[size_t(launch.kernel)].seconds);
      waiting.push_back(launch.after.size());
    }
    for (size_t launch = 0; launch < left.size(); ++launch)
      if (waiting[launch] == 0) start(launch);
    while (!running.empty()) advance();
  }

  double seconds = 0;
  std::vector<int> order;  ///< kernels, as they start

private:
  double shareOf(size_t launch) const {
    const std::optional<PlanChunk> &chunk = plan.kernels[size_t(launches[launch].kernel)].chunk;
    return chunk && chunk->isSlice ? chunk->deviceShare : 1;
  }
  void start(size_t launch) {
    running.push_back(launch);
    order.push_back(launches[launch].kernel);
  }

  /// Until the next one ends.
  void advance() {
    double shares = 0, shortest = left[running.front()];
    for (const size_t launch : running) {
      shares += shareOf(launch);
      shortest = std::min(shortest, left[launch]);
    }
    seconds += shortest * std::max(1.0, shares);
    std::vector<size_t> ended;
    for (const size_t launch : running)
      if ((left[launch] -= shortest) <= 0) ended.push_back(launch);
    std::erase_if(running, [&](size_t launch) { return left[launch] <= 0; });
    for (size_t later = 0; later < launches.size(); ++later)
      for (const int before : launches[later].after)
        if (std::ranges::find(ended, size_t(before)) != ended.end() && --waiting[later] == 0)
          start(later);
  }

  const Plan &plan;
  const std::vector<Launch> launches;
  std::vector<double> left;  ///< seconds at full speed
  std::vector<size_t> waiting, running;
};

/// How many slices run at once; 1 where nothing is pipelined.
size_t sliceCount(const Plan &plan, const std::vector<int> &kernels) {
  std::set<int64_t> starts;
  for (const int kernel : kernels)
    if (const std::optional<PlanChunk> &chunk = plan.kernels[size_t(kernel)].chunk;
        chunk && chunk->isSlice)
      starts.insert(chunk->start);
  return std::max<size_t>(1, starts.size());
}

}  // namespace

GraphPrediction predictGraph(const Plan &plan, const std::vector<int> &kernels,
                             const Device &device) {
  GraphPrediction prediction;
  for (const int index : kernels) prediction.sumSeconds += plan.kernels[size_t(index)].seconds;
  // isView asks for text, which a plan that is priced may not have yet.
  const auto isLaunched = [&](int kernel) { return !plan.kernels[size_t(kernel)].family.isView(); };
  std::vector<int> order;
  std::ranges::copy_if(kernels, std::back_inserter(order), isLaunched);
  if (const size_t slices = sliceCount(plan, order); plan.concurrent && slices > 1) {
    const SharedDevice shared(plan, launchesOf(plan, kernels, isLaunched));
    prediction.overlapSeconds =
        prediction.sumSeconds - shared.seconds - pathSeconds * double(slices - 1);
    order = shared.order;
  }
  ReuseDistance distance(plan, device.l2Bytes);
  for (const int index : order) distance.run(plan.kernels[size_t(index)], prediction);
  prediction.reuseSeconds = device.copyBandwidth > 0
                                ? (savedByReuse * prediction.reusedBytes +
                                   savedByOverwriting * prediction.overwrittenBytes) /
                                      device.copyBandwidth
                                : 0;
  return prediction;
}

GraphPrediction predictGraph(const Plan &plan, const Device &device) {
  std::vector<int> kernels(plan.kernels.size());
  std::iota(kernels.begin(), kernels.end(), 0);
  return predictGraph(plan, kernels, device);
}

GraphPrediction predictGraph(const Plan &plan, const std::vector<int> &kernels) {
  const auto known = std::ranges::find(devices(), plan.device, &Device::name);
  return predictGraph(plan, kernels, known == devices().end() ? Device{} : *known);
}

}  // namespace weft
