// The tables and JSON of weft time; see TimeCommand.h.
#include "runtime/commands/TimeCommand.h"

#include "kernel/Error.h"
#include "kernel/Format.h"
#include "kernel/PlainText.h"
#include "kernel/TextTable.h"
#include "plan/ConcurrentLaunches.h"
#include "plan/GraphPrediction.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/commands/ConcurrentFlag.h"
#include "runtime/execute/Lengths.h"
#include "runtime/measure/ReferenceCopy.h"
#include "runtime/measure/TimePlan.h"
#include "runtime/system/Environment.h"
#include "runtime/system/JsonText.h"
#include "runtime/system/Streams.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace weft::runtime {

namespace {

/// What was measured of one plan: the whole where it was asked for, then kernels as in
/// TimedPlan::kernels().
struct PlanTimes {
  const TimedPlan *timed = nullptr;
  std::vector<Measurement> measurements;

  const Measurement *whole() const { return timed->hasWhole() ? &measurements.front() : nullptr; }
  const Measurement &kernel(size_t position) const {
    return measurements[position + (timed->hasWhole() ? 1 : 0)];
  }
  const PlanKernel &planned(size_t position) const {
    return timed->plan().kernels[size_t(timed->kernels()[position])];
  }
  double sumOfKernels() const {
    double sum = 0;
    for (size_t position = 0; position < timed->kernels().size(); ++position)
      sum += kernel(position).seconds.median;
    return sum;
  }
  GraphPrediction predicted() const { return predictGraph(timed->plan(), timed->kernels()); }
  /// What `--against` compares: the whole, or the one kernel.
  const Measurement &headline() const { return measurements.front(); }
};

std::string times(double ratio) { return fmt::format("{:.3f}x", ratio); }
std::string orDash(bool present, const std::string &text) { return present ? text : "-"; }

/// Cells of one row; the columns of `printRows`.
using Cells = std::vector<std::string>;
constexpr size_t priceColumn = 6;

Cells rowOf(const std::string &name, const Statistics &seconds, double bytes, double flop,
            double share, double predicted, const std::string &protocol) {
  return {name,
          formatSeconds(seconds.median),
          fmt::format("{:.1f}%", 100 * seconds.spread()),
          orDash(bytes > 0, fmt::format("{:.0f}", bytes / seconds.median / 1e9)),
          orDash(flop > 0, fmt::format("{:.1f}", flop / seconds.median / 1e12)),
          orDash(share > 0, fmt::format("{:.1f}%", 100 * share)),
          orDash(predicted > 0, formatSeconds(predicted)),
          orDash(predicted > 0, times(seconds.median / predicted)),
          protocol};
}

std::string printRows(const std::vector<Cells> &rows) {
  using enum TextTable::Align;
  TextTable table({{"kernel", left},
                   {"median", right},
                   {"spread", right},
                   {"GB/s", right},
                   {"TFLOP/s", right},
                   {"share", right},
                   {"plan", right},
                   {"measured/plan", right},
                   {"calls a round", left}});
  for (const Cells &row : rows) table.addRow(row);
  return table.print(outputColumns(STDOUT_FILENO));
}

std::string protocolOf(const Measurement &one) {
  switch (one.eviction) {
    case Eviction::none: return fmt::format("{} calls, same buffers", one.callsPerRound);
    case Eviction::rotation:
      return fmt::format("{} calls over {} sets", one.callsPerRound, one.sets);
    case Eviction::fill: return fmt::format("{} calls, a fill before each", one.callsPerRound);
  }
  return {};
}

std::string tableOf(const PlanTimes &times) {
  const Plan &plan = times.timed->plan();
  std::vector<Cells> rows;
  const double sum = times.sumOfKernels();
  for (size_t position = 0; position < times.timed->kernels().size(); ++position) {
    const PlanKernel &kernel = times.planned(position);
    const Measurement &one = times.kernel(position);
    // The plan's price of an edited kernel is that of the generated text; without a manifest, it is
    // anybody's.
    const bool isOfOther = kernel.edited || kernel.isUntold;
    rows.push_back(rowOf(kernel.name, one.seconds, double(kernel.bytesMoved), kernel.flop,
                         one.seconds.median / sum, isOfOther ? 0 : kernel.seconds,
                         protocolOf(one)));
    if (isOfOther) rows.back()[priceColumn] = nameOf(timeSourceOf(kernel));
  }
  const GraphPrediction predicted = times.predicted();
  if (const Measurement *whole = times.whole())
    rows.push_back(
        rowOf("whole graph", whole->seconds, 0, 0, 0, predicted.seconds(), protocolOf(*whole)));
  std::string text = fmt::format(
      "{}: {} ({}), variant {}, entry point {}{}; plan priced by: {}\n{}", times.timed->folder(),
      printableLine(plan.model), nameOf(plan.dtype), plan.variant, times.timed->entryName(),
      plan.concurrent ? ", with concurrent kernels" : "", plan.costModel.text(), printRows(rows));
  if (const Measurement *whole = times.whole())
    text += fmt::format(
        "sum of kernels {}, whole graph {} ({} of the sum)\nplan: sum {}, less {} for {:.1f} MB "
        "that kernels find in L2: {}; measured {}\n",
        formatSeconds(sum), formatSeconds(whole->seconds.median),
        runtime::times(whole->seconds.median / sum), formatSeconds(predicted.sumSeconds),
        formatSeconds(predicted.reuseSeconds), predicted.reusedBytes / 1e6,
        formatSeconds(predicted.seconds()),
        runtime::times(whole->seconds.median / predicted.seconds()));
  return text;
}

nlohmann::json jsonOf(const Measurement &one) {
  return {{"median", one.seconds.median},
          {"p10", one.seconds.p10},
          {"p90", one.seconds.p90},
          {"fastest", one.seconds.fastest},
          {"n", one.seconds.n},
          {"callsPerRound", one.callsPerRound},
          {"eviction", nameOf(one.eviction)},
          {"sets", one.sets}};
}

nlohmann::json jsonOf(const PlanTimes &times) {
  nlohmann::json kernels = nlohmann::json::array();
  for (size_t position = 0; position < times.timed->kernels().size(); ++position) {
    const PlanKernel &kernel = times.planned(position);
    kernels.push_back({{"name", kernel.name},
                       {"seconds", jsonOf(times.kernel(position))},
                       {"predicted", kernel.seconds},
                       {"timeSource", nameOf(timeSourceOf(kernel))},
                       {"bytesMoved", kernel.bytesMoved},
                       {"flop", kernel.flop}});
  }
  const Measurement *whole = times.whole();
  const GraphPrediction predicted = times.predicted();
  return {{"folder", times.timed->folder()},
          {"model", times.timed->plan().model},
          {"entry", times.timed->entryName()},
          {"concurrent", times.timed->plan().concurrent},
          {"costModel", times.timed->plan().costModel.text()},
          {"kernels", kernels},
          {"sumOfKernels", times.sumOfKernels()},
          {"predicted", predicted.sumSeconds},
          {"predictedWhole", predicted.seconds()},
          {"reusedBytes", predicted.reusedBytes},
          {"whole", whole ? jsonOf(*whole) : nlohmann::json()}};
}

template <typename Value>
nlohmann::json orNull(const std::optional<Value> &value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

nlohmann::json jsonOf(const ClockSummary &clocks) {
  return {{"smMhz", orNull(clocks.medianSmMhz)},
          {"lowestSmMhz", orNull(clocks.lowestSmMhz)},
          {"highestSmMhz", orNull(clocks.highestSmMhz)},
          {"memoryMhz", orNull(clocks.memoryMhz)},
          {"watts", orNull(clocks.medianWatts)},
          {"limitWatts", orNull(clocks.limitWatts)},
          {"celsius", orNull(clocks.highestCelsius)},
          {"throttled", describeThrottling(clocks.throttleReasons)}};
}

nlohmann::json ratioJson(const Statistics &ratio) {
  return {{"median", ratio.median}, {"p10", ratio.p10}, {"p90", ratio.p90}, {"n", ratio.n}};
}

void check(const TimeRequest &request) {
  if (request.cold && request.warm) throw Error::badInput("--cold and --warm exclude each other");
  if (request.rounds < 1) throw Error::badInput("--rounds {}: at least one round", request.rounds);
}

/// One measurement of all plans together, taken apart again.
std::vector<PlanTimes> measureAll(const cuda::Context &context,
                                  std::vector<std::unique_ptr<TimedPlan>> &plans,
                                  const Protocol &protocol, const GpuMonitor &monitor,
                                  ClockSummary &clocks, Statistics &referenceCopy) {
  const int64_t budget = context.memory().first / 2 / int64_t(plans.size());
  std::vector<Subject> subjects;
  std::vector<PlanTimes> all;
  for (const std::unique_ptr<TimedPlan> &plan : plans) {
    plan->prepare(protocol.l2, budget);
    for (Subject &subject : plan->subjects()) subjects.push_back(std::move(subject));
  }
  ReferenceCopy reference(context);
  subjects.push_back(reference.subject());
  const MeasurementRun run = measure(context, subjects, protocol, &monitor);
  clocks = run.clocks;
  referenceCopy = run.measurements.back().seconds;
  auto next = run.measurements.begin();
  for (const std::unique_ptr<TimedPlan> &plan : plans) {
    const auto end = next + std::ptrdiff_t(plan->kernels().size() + (plan->hasWhole() ? 1 : 0));
    all.push_back({.timed = plan.get(), .measurements = {next, end}});
    next = end;
  }
  return all;
}

}  // namespace

int timeArtifact(const TimeRequest &request) {
  check(request);
  std::vector<Artifact> artifacts{readArtifact(request.folder)};
  if (!request.against.empty()) artifacts.push_back(readArtifact(request.against));
  for (Artifact &artifact : artifacts) {
    setConcurrent(artifact.plan, request.concurrent);
    verifyDerived(
        artifact.plan,
        (&artifact == &artifacts.front() ? request.folder : request.against) + "/plan.json");
  }
  checkAskedLengths(artifacts.front().plan, request.lengths);
  const cuda::Context context(request.gpu);
  const GpuMonitor monitor(context.gpu().uuid);
  std::vector<std::unique_ptr<TimedPlan>> plans;
  for (Artifact &artifact : artifacts)
    plans.push_back(std::make_unique<TimedPlan>(
        std::move(artifact), plans.empty() ? request.folder : request.against, context,
        request.entry, request.kernel, request.seed, request.lengths));
  constexpr double rest = 20e-3;
  const Protocol protocol{.l2 = request.warm ? L2State::warm : L2State::cold,
                          .rounds = request.rounds,
                          .restSeconds = request.burst ? rest : 0};
  ClockSummary clocks;
  Statistics referenceCopy;
  const std::vector<PlanTimes> all =
      measureAll(context, plans, protocol, monitor, clocks, referenceCopy);

  const std::string where = describeGpu(context, monitor);
  const std::string state = monitor.problem().empty() ? describe(clocks) : monitor.problem();
  nlohmann::json report = {{"gpu", where},
                           {"protocol", describe(protocol)},
                           {"clocks", jsonOf(clocks)},
                           {"referenceCopy", referenceCopy.median},
                           {"plans", nlohmann::json::array()}};
  std::string text = fmt::format("{}; {}\n{}; reference copy {}\n", where, describe(protocol),
                                 state, formatSeconds(referenceCopy.median));
  for (const PlanTimes &one : all) {
    report["plans"].push_back(jsonOf(one));
    text += "\n" + tableOf(one);
  }
  if (all.size() == 2) {
    const Statistics ratio = summarizeRatio(all[1].headline().samples, all[0].headline().samples);
    report["timesAsFast"] = ratioJson(ratio);
    text += fmt::format(
        "\n{} is {} as fast as {} ({:.3f} to {:.3f} in the middle 80% of {} rounds)\n",
        request.folder, times(ratio.median), request.against, ratio.p10, ratio.p90, ratio.n);
  }
  printOut("{}", request.json ? resultText(report) : wrapped(text, outputColumns(STDOUT_FILENO)));
  return 0;
}

}  // namespace weft::runtime
