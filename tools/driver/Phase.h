// The phases of the pipeline by name, for --start-from and --stop-after.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::driver {

/// In the order in which they run.
enum class Phase : uint8_t {
  import,
  differentiate,
  algebra,
  attention,
  fuse,
  configure,
  select,
  lower,
  emit,
  build
};

std::string nameOf(Phase phase);
std::vector<std::string> phaseNames();
/// Throws Error(badInput) with the nearest name.
Phase parsePhase(const std::string &name);

}  // namespace weft::driver
