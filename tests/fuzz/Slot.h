// What a worker and its parent share: which input is tried, by which command, and where it crashed.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weft::fuzz {

/// How often a command ran, how often it succeeded (what mutated inputs reach behind the first
/// check) and what it took.
struct VerbCount {
  std::array<char, 32> verb{};  ///< "explain --layout"; empty: none yet
  uint64_t commands = 0, succeeded = 0;
  double seconds = 0;  ///< of processor time
};

struct Slot {
  std::atomic<uint64_t> seed = 0;
  std::atomic<uint64_t> started = 0;   ///< inputs begun
  std::atomic<uint64_t> finished = 0;  ///< inputs judged, by this worker and those before it
  std::atomic<uint64_t> commands = 0;  ///< begun
  std::array<VerbCount, 32> verbs{};
  std::atomic<bool> isIdle = true;   ///< between two inputs
  std::array<char, 2048> command{};  ///< the one that runs, as text
  std::array<void *, 32> frames{};   ///< of a crash, innermost first
  std::atomic<int> frameCount = 0;
};

}  // namespace weft::fuzz
