// Rounds of subjects between events; see Measure.h.
#include "runtime/measure/Measure.h"

#include "kernel/Format.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>
#include <thread>

namespace weft::runtime {

namespace {

/// The fill before cold calls writes this many times the L2's size, and rotation touches as much
/// between two uses.
constexpr int64_t evictionFactor = 2;
/// Where the driver reports no L2 size.
constexpr int64_t assumedL2Bytes = 64 << 20;

int64_t evictionBytes(int64_t l2Bytes) {
  return evictionFactor * (l2Bytes > 0 ? l2Bytes : assumedL2Bytes);
}

/// One subject with its calls in a row, ready to be enqueued between two events.
class Row {
public:
  Row(const Subject &subject, Eviction eviction, const cuda::Buffer &scratch)
      : subject(subject),
        scratch(scratch),
        eviction(eviction),
        sets(eviction == Eviction::rotation ? subject.sets : 1) {}

  /// Decides the calls from how long a few of them take.
  void prepare(const cuda::Stream &stream, const Protocol &protocol) {
    enqueueCall(stream.handle(), 0);  // loads lazily loaded code
    stream.synchronize();
    constexpr int trialCalls = 3;
    const double seconds = timeOnce(stream, [&](cuda::StreamHandle *handle) {
      for (int call = 0; call < trialCalls; ++call) enqueueCall(handle, call % sets);
    });
    const double calls = std::ceil(protocol.secondsPerRound * trialCalls / std::max(seconds, 1e-9));
    callCount = int(std::clamp(calls, 1.0, double(std::max(1, protocol.mostCalls))));
    graph.emplace_back(
        cuda::Graph::capture(stream, [&](cuda::StreamHandle *handle) { enqueueTimed(handle); }));
  }

  void launch(cuda::StreamHandle *stream) { graph.front().launch(stream); }

  double secondsPerCall() const { return cuda::secondsBetween(start, end) / callCount; }
  int calls() const { return callCount; }
  int setsUsed() const { return sets; }
  Eviction evictedBy() const { return eviction; }

private:
  void enqueueCall(cuda::StreamHandle *stream, int set) {
    if (eviction == Eviction::fill) cuda::fillAsync(scratch.address(), 0, scratch.bytes(), stream);
    subject.enqueue(stream, set);
  }
  /// The call that is not timed takes the last set: the timed ones begin with the first.
  void enqueueTimed(cuda::StreamHandle *stream) {
    subject.enqueue(stream, sets - 1);
    start.recordInGraph(stream);
    for (int call = 0; call < callCount; ++call) enqueueCall(stream, call % sets);
    end.recordInGraph(stream);
  }

  const Subject &subject;
  const cuda::Buffer &scratch;
  Eviction eviction;
  int sets, callCount = 1;
  std::vector<cuda::Graph> graph;  ///< one, once prepared
  cuda::Event start, end;
};

Eviction evictionFor(const Subject &subject, const Protocol &protocol, int64_t l2Bytes) {
  if (protocol.l2 == L2State::warm) return Eviction::none;
  return subject.sets >= setsForColdL2(subject.bytesPerSet, l2Bytes) ? Eviction::rotation
                                                                     : Eviction::fill;
}

/// The subjects' rows and, where fills evict, the row of fills alone behind them.
class Rounds {
public:
  Rounds(const cuda::Context &context, const std::vector<Subject> &subjects,
         const Protocol &protocol)
      : scratch(evictionBytes(context.gpu().l2Bytes)),
        subjects(subjects),
        restSeconds(protocol.restSeconds) {
    bool fills = false;
    for (const Subject &subject : subjects) {
      const Eviction eviction = evictionFor(subject, protocol, context.gpu().l2Bytes);
      fills |= eviction == Eviction::fill;
      rows.push_back(std::make_unique<Row>(subject, eviction, scratch));
    }
    if (fills) rows.push_back(std::make_unique<Row>(fillAlone, Eviction::none, scratch));
    for (const std::unique_ptr<Row> &row : rows) row->prepare(stream, protocol);
    samples.resize(rows.size());
  }

  void run(int round, bool counts, const GpuMonitor *monitor) {
    for (size_t turn = 0; turn < rows.size(); ++turn) {
      if (restSeconds > 0) {
        stream.synchronize();
        std::this_thread::sleep_for(std::chrono::duration<double>(restSeconds));
      }
      cuda::fillAsync(scratch.address(), 0, scratch.bytes(),
                      stream.handle());  // busy while the host enqueues the rest
      rows[round % 2 == 0 ? turn : rows.size() - 1 - turn]->launch(stream.handle());
    }
    if (monitor) states.push_back(monitor->read());
    stream.synchronize();
    for (size_t i = 0; counts && i < rows.size(); ++i)
      samples[i].push_back(rows[i]->secondsPerCall());
  }

  MeasurementRun finish() {
    MeasurementRun run{.measurements = {}, .clocks = summarizeStates(states)};
    for (size_t i = 0; i < subjects.size(); ++i) {
      std::vector<double> seconds = samples[i];
      if (rows[i]->evictedBy() == Eviction::fill)
        for (size_t round = 0; round < seconds.size(); ++round)
          seconds[round] -= samples.back()[round];
      run.measurements.push_back({.name = subjects[i].name,
                                  .seconds = summarize(seconds),
                                  .samples = seconds,
                                  .eviction = rows[i]->evictedBy(),
                                  .sets = rows[i]->setsUsed(),
                                  .callsPerRound = rows[i]->calls()});
    }
    return run;
  }

private:
  cuda::Stream stream;
  cuda::Buffer scratch;
  const std::vector<Subject> &subjects;
  const double restSeconds;
  const Subject fillAlone{.name = "fill", .enqueue = [this](cuda::StreamHandle *handle, int) {
                            cuda::fillAsync(scratch.address(), 0, scratch.bytes(), handle);
                          }};
  std::vector<std::unique_ptr<Row>> rows;
  std::vector<std::vector<double>> samples;
  std::vector<GpuState> states;
};

}  // namespace

std::string_view nameOf(L2State state) {
  switch (state) {
    case L2State::cold: return "cold";
    case L2State::warm: return "warm";
  }
  throw std::logic_error("unknown L2State");
}

std::string_view nameOf(Eviction eviction) {
  switch (eviction) {
    case Eviction::none: return "none";
    case Eviction::rotation: return "rotation";
    case Eviction::fill: return "fill";
  }
  throw std::logic_error("unknown Eviction");
}

int setsForColdL2(int64_t bytesPerSet, int64_t l2Bytes) {
  if (bytesPerSet <= 0) return std::numeric_limits<int>::max();
  const int64_t others = (evictionBytes(l2Bytes) + bytesPerSet - 1) / bytesPerSet;
  return int(std::min<int64_t>(1 + others, std::numeric_limits<int>::max()));
}

MeasurementRun measure(const cuda::Context &context, const std::vector<Subject> &subjects,
                       const Protocol &protocol, const GpuMonitor *monitor) {
  Rounds rounds(context, subjects, protocol);
  for (int round = 0; round < protocol.warmUpRounds; ++round) rounds.run(round, false, nullptr);
  for (int round = 0; round < std::max(1, protocol.rounds); ++round)
    rounds.run(round, true, monitor);
  return rounds.finish();
}

double timeOnce(const cuda::Stream &stream,
                const std::function<void(cuda::StreamHandle *stream)> &enqueue) {
  cuda::Event start, end;
  start.record(stream.handle());
  enqueue(stream.handle());
  end.record(stream.handle());
  end.synchronize();
  return cuda::secondsBetween(start, end);
}

std::string describeGpu(const cuda::Context &context, const GpuMonitor &monitor) {
  return fmt::format(
      "{}, driver {} (CUDA {})", context.gpu().name,
      monitor.driverVersion().empty() ? "of unknown version" : monitor.driverVersion(),
      context.gpu().driverVersion);
}

std::string describe(const Protocol &protocol) {
  return fmt::format(
      "{} L2, n={} rounds of about {}, {} to warm up, interleaved{}", nameOf(protocol.l2),
      protocol.rounds, formatSeconds(protocol.secondsPerRound), protocol.warmUpRounds,
      protocol.restSeconds > 0
          ? fmt::format(", {} of rest before every turn", formatSeconds(protocol.restSeconds))
          : "");
}

}  // namespace weft::runtime
