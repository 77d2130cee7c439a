// Worker processes that try inputs, and the parent that outlives them: a crash, a hang or too much
// memory costs one worker and one input. Workers are forked from the parent, which has loaded
// everything and runs no thread.
#pragma once

#include "tests/fuzz/Findings.h"
#include "tests/fuzz/Kinds.h"

#include <chrono>
#include <filesystem>
#include <functional>

namespace weft::fuzz {

struct WorkLimits {
  double cpuSeconds = 20;    ///< of one command
  double wallSeconds = 240;  ///< of one command: waits count as hangs, a busy machine does not
  int64_t memoryBytes = int64_t(2) << 30;  ///< of a worker; 0: none, as AddressSanitizer needs
  uint64_t inputsPerWorker = 300;          ///< then a fresh one takes over
};

/// An input by its number: its files, and the choices that follow.
struct Work {
  Files files;
  Random random;
  bool everything = false;
};

/// Commands of one verb and first flag.
struct Commands {
  uint64_t run = 0, succeeded = 0;
  double seconds = 0;  ///< of processor time
};

struct Tally {
  uint64_t inputs = 0, findings = 0, newFindings = 0;
  std::map<std::string, Commands> commands;
  uint64_t next = 0;  ///< the first number that was not tried
};

/// Tries inputs `first` to `end` - 1 until the deadline, in `jobs` processes.
Tally tryInputs(const Kind &kind, const std::function<Work(uint64_t)> &work, uint64_t first,
                uint64_t end, int jobs, std::chrono::steady_clock::time_point deadline,
                const WorkLimits &limits, const std::filesystem::path &scratch,
                const std::filesystem::path &findings);

}  // namespace weft::fuzz
