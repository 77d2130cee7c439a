// Plans side by side; see ComparePlans.h.
#include "runtime/measure/ComparePlans.h"

#include "kernel/Error.h"
#include "runtime/measure/ReferenceCopy.h"
#include "runtime/measure/TimePlan.h"

#include <memory>
#include <stdexcept>

namespace weft::runtime {

namespace {

/// Smaller differences come and go with the addresses of buffers.
constexpr double noise = 0.005;

/// The error is the GPU's or the process', not the plan's alone.
bool endsEverything(const Error &error) {
  const auto *driver = dynamic_cast<const cuda::DriverError *>(&error);
  return driver && driver->isSticky();
}

/// Null, with the reason in `problem`, for a plan that cannot be loaded here.
std::unique_ptr<TimedPlan> load(ComparedPlan plan, const cuda::Context &context, uint64_t seed,
                                L2State l2, int64_t mostBytes, std::string &problem) {
  try {
    auto loaded =
        std::make_unique<TimedPlan>(std::move(plan.artifact), plan.name, context, "", "", seed);
    loaded->prepareWhole(l2, mostBytes);
    return loaded;
  } catch (const Error &error) {
    if (endsEverything(error))
      throw Error(error.kind, fmt::format("{}: {}", plan.name, error.what()));
    problem = error.what();
    return nullptr;
  }
}

}  // namespace

PlanComparison comparePlans(const cuda::Context &context, std::vector<ComparedPlan> plans,
                            uint64_t seed, const Protocol &protocol) {
  const GpuMonitor monitor(context.gpu().uuid);
  PlanComparison comparison{.times = std::vector<PlanTime>(plans.size()),
                            .gpu = describeGpu(context, monitor),
                            .protocol = describe(protocol),
                            .clocks = {}};
  const int64_t budget = context.memory().first / 2 / int64_t(plans.size());
  std::vector<std::unique_ptr<TimedPlan>> loaded;
  std::vector<Subject> subjects;
  std::vector<size_t> planOfSubject;
  for (size_t index = 0; index < plans.size(); ++index) {
    loaded.push_back(load(std::move(plans[index]), context, seed, protocol.l2, budget,
                          comparison.times[index].problem));
    if (!loaded.back()) continue;
    subjects.push_back(loaded.back()->whole());
    planOfSubject.push_back(index);
  }
  if (subjects.empty())
    throw Error::unsupported("no plan can be timed on {}: {}", context.gpu().name,
                             comparison.times.front().problem);
  const ReferenceCopy reference(
      context);  // loaded, so that kernels start as they do in the profile's process
  MeasurementRun run = measure(context, subjects, protocol, &monitor);
  comparison.clocks = run.clocks;
  std::vector<std::vector<double>> samples(comparison.times.size());
  for (size_t subject = 0; subject < subjects.size(); ++subject) {
    samples[planOfSubject[subject]] = run.measurements[subject].samples;
    comparison.times[planOfSubject[subject]].measurement = std::move(run.measurements[subject]);
  }
  comparison.kept = firstUnbeaten(samples);
  return comparison;
}

size_t firstUnbeaten(const std::vector<std::vector<double>> &samples) {
  std::optional<size_t> fastest;
  for (size_t plan = 0; plan < samples.size(); ++plan)
    if (!samples[plan].empty() &&
        (!fastest || summarize(samples[plan]).median < summarize(samples[*fastest]).median))
      fastest = plan;
  if (!fastest) throw std::logic_error("no plan was timed");
  for (size_t plan = 0; plan < *fastest; ++plan) {
    if (samples[plan].empty()) continue;
    const Statistics ratio = summarizeRatio(samples[plan], samples[*fastest]);
    if (ratio.p10 <= 1 || ratio.median <= 1 + noise) return plan;
  }
  return *fastest;
}

}  // namespace weft::runtime
