// Measuring a profile's space: kernels are built ahead on all cores while GPUs measure, one thread
// and one process each, and measurements are committed as they come. Nothing here knows CUDA:
// builders and measurers are handed in.
//
// Invariant: what was measured is in the store when run() returns or throws, whatever ended it; a
// budget or an interrupt ends compilers at once and measuring processes after a grace of seconds.
#pragma once

#include "passes/decide/ProfileSpace.h"
#include "runtime/build/Build.h"
#include "runtime/measure/MeasureProcess.h"
#include "runtime/measure/ProfileStore.h"

#include <atomic>
#include <functional>

namespace weft::driver {

using decision::ProfileGemm;
using decision::ProfileItem;
using decision::ProfileSpace;

struct ProfileProgress {
  size_t done = 0, total = 0;                 ///< configurations and GEMMs
  size_t measured = 0, slow = 0, failed = 0;  ///< measurements of this run
  double seconds = 0;                         ///< since the start
  std::string last = {};  ///< kernel of the last measurement, with its best time so far
};

struct ProfileRunOptions {
  std::string architecture;  ///< to emit for
  int gpus = 1;
  double budgetSeconds = 0;  ///< 0: until all is measured
  bool again = false;  ///< also what is near its kernel's best by a measurement of another text
                       ///< than is emitted now
  std::atomic<bool> *interrupted = nullptr;  ///< set by a signal handler
  /// Both end early once `cancelled` is true, within seconds, with what they have.
  std::function<std::unique_ptr<runtime::Measurer>(int gpu, const std::atomic<bool> &cancelled)>
      startMeasurer;
  std::function<std::vector<runtime::BuildResult>(const std::vector<runtime::BuildRequest> &,
                                                  const std::atomic<bool> &cancelled)>
      build;
  std::function<void(const ProfileProgress &)>
      progress;  ///< called on this thread, a few times a second
};

enum class ProfileEnd { finished, budget, interrupted };

struct ProfileOutcome {
  ProfileProgress progress;
  size_t skipped = 0;  ///< measured by an earlier run
  ProfileEnd end = ProfileEnd::finished;
  std::string protocol;                   ///< of the first GPU
  std::vector<size_t> measurementsOfGpu;  ///< by GPU: measurements that it measured
  std::vector<std::string>
      lostGpus;  ///< GPUs that could not be used (any more), and why; the others went on
};

/// Measures what the store has no measurement for; measurements of an older family version are
/// measured again. Throws Error when no GPU can measure (any more).
ProfileOutcome runProfile(const ProfileSpace &space, runtime::ProfileStore &store,
                          const ProfileRunOptions &options);

}  // namespace weft::driver
