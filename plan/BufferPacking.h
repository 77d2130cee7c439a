// Where the buffers of temporaries lie: packed by the kernels that use them, in the workspace and
// in results that are not written yet. No MLIR.
//
// Invariant: two buffers share bytes only if their live ranges, from the first to the last kernel
// that uses them, do not overlap; a buffer in a result's memory is last used before the result's
// buffer is first used.
#pragma once

#include "plan/Plan.h"

#include <vector>

namespace weft {

/// Fills memoryPlan and workspaceBytes for the order in which the kernels stand; in a plan with
/// concurrent (Plan::concurrent), sharing makes no two kernels wait for each other that stand near
/// each other. The smallest workspace that placing the buffers one by one finds, in several orders,
/// each where the gap it leaves is smallest; results take what makes the workspace smaller.
void packBuffers(Plan &plan);

/// Bytes of temporaries in use while each kernel runs, in whole units of 256 bytes; no order of
/// placement needs less than the greatest of them, unless results take some.
std::vector<int64_t> liveBytes(const Plan &plan);

}  // namespace weft
