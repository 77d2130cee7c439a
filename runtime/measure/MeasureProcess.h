// A measuring process of one GPU, from both sides. The parent starts its own executable again,
// gives it groups and gets their times; whatever happens to the process costs at most the group it
// had.
#pragma once

#include "kernel/Error.h"
#include "runtime/build/WorkerProtocol.h"
#include "runtime/measure/MeasureJobs.h"

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace weft::runtime {

/// Thrown by measurers whose work was cancelled before there was a result.
class MeasureCancelled : public Error {
public:
  MeasureCancelled() : Error(ErrorKind::checkFailed, "measuring was cancelled") {}
};

/// Times groups of configurations. The seam at which tests put a measurer without a GPU.
class Measurer {
public:
  virtual ~Measurer() = default;
  virtual const MeasureGreeting &greeting() const = 0;
  /// One result a kernel, or one a candidate of the GEMM. Never throws for a configuration that
  /// fails; throws Error when the GPU is gone, MeasureCancelled as the measurer's maker asked.
  virtual MeasureReply measure(const MeasureGroup &group) = 0;
};

/// The hidden argument that makes an executable a measuring process; the next argument is the
/// number of the GPU.
inline constexpr const char *measureWorkerArgument = "--weft-measure-worker";
/// For mains, beside serveAsBuildWorker(): the exit code if this process was started to measure,
/// else nothing.
std::optional<int> serveAsMeasureWorker(int argumentCount, char **arguments);

struct MeasureProcessOptions {
  int gpu = 0;
  double timeoutSeconds = 60;        ///< for one group; a GPU that hangs is left after it
  std::filesystem::path executable;  ///< empty: this one
  /// Once true, work in hand gets `graceSeconds` to end; then its process is killed, and measure()
  /// returns what it has of the group or throws MeasureCancelled. Nothing is said to have failed
  /// for that.
  const std::atomic<bool> *cancelled = nullptr;
  double graceSeconds = 2;
};

/// A measuring process as a Measurer. A group that kills the process, or exceeds its time, is
/// measured again one by one in fresh processes, so that only the culprit fails. Throws Error when
/// the GPU cannot be opened (again).
std::unique_ptr<Measurer> startMeasureProcess(const MeasureProcessOptions &options);

}  // namespace weft::runtime
