// Worker processes and the jobs they are given. A worker that dies or exceeds its time fails only
// the job it had; the next job gets a fresh worker.
#pragma once

#include "runtime/build/WorkerProtocol.h"

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weft::runtime {

struct JobOutcome {
  std::optional<WorkerReply> reply;
  std::string failure;  ///< why there is no reply: "worker crashed (signal 11, Segmentation
                        ///< fault)", "timed out after 60 s"
};

struct PoolOptions {
  std::filesystem::path executable;  ///< started with buildWorkerArgument
  int workers = 1;
  double timeoutSeconds = 60;  ///< for one job
  const std::atomic<bool> *cancelled = nullptr;
};

/// Workers that are started when there is work for them and stay until the pool goes. Starting one
/// costs as much as several kernels: NVRTC is a library of 100 MB. Of one thread; its workers end
/// with the thread that ran the jobs.
class WorkerPool {
public:
  explicit WorkerPool(PoolOptions options);
  ~WorkerPool();
  WorkerPool(const WorkerPool &) = delete;
  WorkerPool &operator=(const WorkerPool &) = delete;

  /// Runs all jobs; `finished` is called on this thread once a job, in the order in which they end.
  /// Once `cancelled` is true, the workers are ended, and jobs without an outcome get none.
  void run(const std::vector<WorkerRequest> &jobs,
           const std::function<void(size_t job, JobOutcome outcome)> &finished);

  /// Processes started so far.
  size_t started() const;

private:
  class Crew;
  std::unique_ptr<Crew> crew;
};

}  // namespace weft::runtime
