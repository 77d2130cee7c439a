// Runs one grid of a kernel that was compiled as host C++. Blocks run one after another; the
// threads of a block are fibers that switch only at barriers and warp exchanges, in a chosen order,
// so that a missing barrier shows as a wrong value in one of the orders. The blocks of a cluster
// take turns at cluster barriers, each with its own shared memory; that of a block that ended is
// poisoned, as that of one that has not begun. Everything is single-threaded and deterministic.
#pragma once

#include "tests/emulate/emulate_cuda.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace weft::emulate {

/// In which order the threads of a block are resumed between two barriers. Of asynchronous work
/// (sm90/), loads are done at once where it is ascending, and products and stores as late as the
/// program allows; where it is descending, the other way round.
enum class Schedule : uint8_t { ascending, descending };

struct Grid {
  std::array<int64_t, 3> blocks{1, 1, 1}, threads{1, 1, 1};
  int64_t cluster = 1;  ///< neighbouring blocks along x that form a cluster
  std::span<std::byte>
      shared{};  ///< memory of __shared__ variables: poisoned with 0xFF (NaN) before every block
  std::span<std::byte>
      dynamicShared{};  ///< dynamic shared memory, of kernels in no cluster: poisoned likewise
  std::vector<std::array<unsigned, 3>> only =
      {};  ///< blocks to run, with their clusters; empty: all
};

/// Runs `thread` once for every thread of the grid. Returns nothing, or what went wrong: a diverged
/// barrier or exchange with the threads and source lines, or an access outside every buffer.
std::string run(const Grid &grid, Schedule schedule, const std::function<void()> &thread);

}  // namespace weft::emulate
