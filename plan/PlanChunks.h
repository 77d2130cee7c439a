// Kernels in chunks: those around a plan's largest temporary run several times, each time on one
// chunk of an axis, so that only one chunk of the temporary is live at a time. An example is
// attention, with the scores of one or a few heads at a time.
//
// The chunks of a pipelined plan are slices: each has separate temporaries and waits for no other,
// so that all run at once on parallel paths of one CUDA graph.
//
// What is computed stays the same: chunks are cut along an axis that none of the kernels reduces
// over, dropout masks are drawn at the coordinates of the whole. No MLIR.
#pragma once

#include "plan/PlanBuilder.h"

#include <deque>
#include <string>

namespace weft {

/// How chunks of kernels are configured, found once: the paths and numbers of chunks that a
/// decision compares have most chunks in common. For one cost model, and one thread at a time.
class ChunkConfigurations {
public:
  struct Known {
    std::string candidate;  ///< ChosenKernel::candidateName
    Kernel kernel;          ///< without its name, which says where the chunk starts
    Configuration asked, chosen;
    Cost cost;                      ///< as the model prices it
    bool isItsMeasurement = false;  ///< `cost` is of a measurement of the chunk itself
  };
  /// Null where there is none yet. Pointers stay valid.
  const Known *find(const std::string &candidate, const Kernel &kernel,
                    const Configuration &asked) const;
  const Known &add(Known known) { return all.emplace_back(std::move(known)); }

private:
  std::deque<Known> all;
};

/// How often the kernels run, what prices them, whether kernels may run at once
/// (Plan::concurrent), and whether the chunks are slices, which do.
struct Chunking {
  int count = 1;
  const CostModel *prices = nullptr;
  bool concurrent = false;
  bool isPipelined = false;
  ChunkConfigurations *known = nullptr;  ///< by `prices`; null: each plan finds its own
};

/// A kernel on `size` indices of an axis from `start` on. Throws Error(badInput) naming what does
/// not allow it: no such axis, one that is reduced, indices beyond its extent, an op that takes
/// elements from other coordinates.
Kernel onChunk(const Kernel &kernel, const std::string &axis, int64_t start, int64_t size);

/// Replaces the kernels around the largest temporary of a plan without buffers: chunk by chunk,
/// operands and results of the whole as views (`viewOf`, by tensor). Slices are cut along an outer
/// axis of the temporary alone, such as batch or heads: each holds whole matrices. Throws
/// Error(unsupported) saying why when they cannot run in so many chunks.
void runInChunks(PlannedKernels &planned, std::vector<int> &viewOf, const Chunking &chunks);

}  // namespace weft
