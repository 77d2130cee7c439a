// The figures of a plan that all commands print alike: select, compile, explain, report.json. No
// MLIR.
#pragma once

#include "plan/Plan.h"

#include <nlohmann/json.hpp>

#include <string>

namespace weft {

/// Plan::predictedSeconds: of all kernels, added in their order, so that a plan read back has the
/// same bits.
double sumOfKernels(const Plan &plan);

/// In how many chunks the largest temporary is computed; 1: as a whole.
int chunkCount(const Plan &plan);

/// Whether these chunks are slices, which run at once (PlanChunk::isSlice).
bool isPipelined(const Plan &plan);

/// The precision at which contractions read f32: "tf32" where all do, "partly tf32", or "" where
/// they read what is stored.
std::string contractionPrecision(const Plan &plan);

/// Element type and that precision as printed: "f32 (contractions tf32)".
std::string elementsText(const Plan &plan);

/// Members: variant, seconds (of all kernels, chunks too), graphSeconds (as one graph),
/// workspaceBytes, chunks, kernels (names, in their order).
nlohmann::json planFigures(const Plan &plan);

}  // namespace weft
