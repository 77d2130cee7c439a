// Timing of anything that can be enqueued on a stream.
//
// A subject's calls are queued one after another in one CUDA graph, between two events that the
// graph itself records. One more call precedes the first event, so the time does not include the
// start of the graph, whose cost depends on how far the host is ahead. Subjects alternate, round
// after round and every second round in reverse order, so that drifts of clock and temperature
// affect all alike. A measurement is the median over rounds.
//
// Cold L2: no call may find its data in the L2 cache. If a subject has enough sets of buffers,
// calls cycle through the sets. Else a fill of twice the L2's size precedes each call, and the time
// of the fills alone, measured in the same round, is subtracted. Warm L2: the same buffers for all
// calls. The result says which was done.
//
// Invariant: all calls of a subject in a round (without rests, of all subjects) are enqueued
// without waiting, queued behind a fill that keeps the GPU busy meanwhile.
#pragma once

#include "runtime/cuda/Cuda.h"
#include "runtime/cuda/Nvml.h"
#include "runtime/measure/Statistics.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::runtime {

enum class L2State { cold, warm };
std::string_view nameOf(L2State state);

/// How calls were kept from finding their data in L2.
enum class Eviction {
  none,      ///< warm
  rotation,  ///< sets of buffers in turn
  fill,      ///< a fill before each call, its time subtracted
};
std::string_view nameOf(Eviction eviction);

struct Subject {
  std::string name;
  /// Enqueues one call on the stream, which is captured, with the buffers of the set (0 <= set <
  /// sets).
  std::function<void(cuda::StreamHandle *stream, int set)> enqueue;
  int sets = 1;
  /// Bytes that one call with one set reads and writes; decides whether `sets` are enough to
  /// rotate.
  int64_t bytesPerSet = 0;
};

struct Protocol {
  L2State l2 = L2State::cold;
  int rounds = 25, warmUpRounds = 3;
  /// Calls in a row are chosen so that they take about this long, within [1, mostCalls].
  double secondsPerRound = 2e-3;
  int mostCalls = 200;
  /// Before every turn, so that the power limit does not lower clocks that a call on a cool card
  /// would have; 0: turn after turn.
  double restSeconds = 0;
};

struct Measurement {
  std::string name;
  Statistics seconds;  ///< of one call
  std::vector<double>
      samples;  ///< of every round after the warm-up: pairs with those of the other subjects
  Eviction eviction = Eviction::none;
  int sets = 1, callsPerRound = 1;
};

struct MeasurementRun {
  std::vector<Measurement> measurements;  ///< in the subjects' order
  ClockSummary clocks;                    ///< read while the rounds ran
};

/// Sets of buffers that a subject of so many bytes needs for cold calls by rotation, so that twice
/// the L2's size is touched between two uses of a set. The most an int holds for no bytes.
int setsForColdL2(int64_t bytesPerSet, int64_t l2Bytes);

/// Measures subjects against each other. `monitor`: null for no clock readings. Throws what
/// enqueueing throws, and DriverError if a kernel failed.
MeasurementRun measure(const cuda::Context &context, const std::vector<Subject> &subjects,
                       const Protocol &protocol, const GpuMonitor *monitor = nullptr);

/// Seconds of one enqueued call as it comes: no graph, no warm-up. For telling the hopeless from
/// the rest.
double timeOnce(const cuda::Stream &stream,
                const std::function<void(cuda::StreamHandle *stream)> &enqueue);

/// "NVIDIA H200, driver 580.1 (CUDA 13.0)".
std::string describeGpu(const cuda::Context &context, const GpuMonitor &monitor);

/// "cold L2, n=25 rounds of about 2.00 ms, 3 to warm up, interleaved, 20.0 ms of rest before every
/// turn".
std::string describe(const Protocol &protocol);

}  // namespace weft::runtime
