// Plans built in memory and compared on a GPU; see MeasuredChoice.h.
#include "tools/driver/MeasuredChoice.h"

#include "kernel/Error.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/measure/ComparePlans.h"
#include "tools/driver/Console.h"
#include "tools/driver/Emission.h"

#include <CLI/CLI.hpp>

namespace weft::driver {
namespace {

constexpr uint64_t inputSeed = 1;

runtime::Artifact buildInMemory(PlannedKernels planned, const std::string &architecture) {
  const EmittedPlan emitted = emitKernels(
      planned, architecture, [](const ChosenKernel &) { return std::vector<std::string>(); });
  BuildSummary summary;
  runtime::Artifact artifact;
  artifact.cubins = buildCubins(planned.plan, emitted, false, {}, summary).cubins;
  artifact.plan = std::move(planned.plan);
  return artifact;
}

}  // namespace

void MeasureFlags::declare(CLI::App &command) {
  command
      .add_flag("--measure{4}", plans,
                "time the 4 plans that are predicted to be best (--measure=N: N plans) as whole "
                "graphs on this machine's GPU and keep the "
                "fastest; the artifact then depends on the measurement")
      ->group("Choices");
}

void MeasureFlags::open(const PhaseFlags &phases,
                        std::optional<runtime::cuda::Context> &gpu) const {
  if (plans < 2)
    throw Error::badInput("--measure={}: at least 2 plans, or there is nothing to choose", plans);
  if (phases.last() < Phase::build || phases.first() >= Phase::lower)
    throw Error::badInput(
        "--measure chooses among plans that were selected and built: it goes without --stop-after, "
        "and starts before lower");
  if (runtime::findNvrtc().library.empty())
    throw Error::unsupported(
        "--measure needs NVRTC, which builds the plans to time; 'weft env' says where it is looked "
        "for");
  try {
    gpu.emplace(0);
  } catch (const Error &error) {
    throw Error(error.kind, fmt::format("--measure times plans on a GPU: {}", error.what()));
  }
}

decision::Measure measureOn(const runtime::cuda::Context &gpu, const std::string &architecture) {
  return [&gpu, architecture](std::vector<decision::PlanToMeasure> asked) {
    std::vector<runtime::ComparedPlan> plans;
    Progress progress;
    for (decision::PlanToMeasure &one : asked) {
      progress.show(fmt::format("building plan {}/{} to measure", plans.size() + 1, asked.size()));
      plans.push_back(
          {.name = one.name, .artifact = buildInMemory(std::move(one.planned), architecture)});
    }
    progress.show(fmt::format("timing {} plans", plans.size()));
    const runtime::PlanComparison comparison =
        runtime::comparePlans(gpu, std::move(plans), inputSeed, {});
    progress.clear();
    decision::MeasuredPlans result{.times = {}, .kept = comparison.kept};
    for (const auto &time : comparison.times) {
      decision::MeasuredPlans::Time measured{.measurement = {}, .problem = time.problem};
      if (time.measurement)
        measured.measurement = {.seconds = time.measurement->seconds.median,
                                .spread = time.measurement->seconds.spread(),
                                .gpu = comparison.gpu,
                                .protocol = comparison.protocol};
      result.times.push_back(std::move(measured));
    }
    return result;
  };
}

}  // namespace weft::driver
