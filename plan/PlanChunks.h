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

#include <string>
#include <vector>

namespace weft {

/// A kernel on `size` indices of an axis from `start` on. Throws Error(badInput) naming what does
/// not allow it: no such axis, one that is reduced, indices beyond its extent, an op that takes
/// elements from other coordinates.
Kernel onChunk(const Kernel &kernel, const std::string &axis, int64_t start, int64_t size);

/// The kernels around the largest temporary of a draft, which run chunk by chunk.
struct ChunkChain {
  int count = 1;
  bool isPipelined = false;  ///< the chunks are slices
  std::vector<int> kernels;  ///< in the plan's order
  std::vector<int>
      inner;  ///< tensors between them, each read by one of them alone; the first is the largest

  /// What the pieces are called.
  const char *word() const { return isPipelined ? "slices" : "chunks"; }
};

/// Throws Error(unsupported) saying why where a draft has none.
ChunkChain chunkChain(const PlanDraft &draft, int count, bool isPipelined);

/// The dimensions of the largest temporary that its chain may be cut along, slowest first: of
/// slices outer ones alone, such as batch or heads, since each holds whole matrices.
std::vector<int> dimensionsToCut(const PlanDraft &draft, const ChunkChain &chain);

/// A draft whose chain is cut along one dimension. Its chunks lie as their tensors do and have the
/// knobs of their whole, which need not be legal of them.
struct ChunkCut {
  PlanDraft draft;  ///< with tensors for the chunks: operands and results of the whole as views
  int dimension = 0;
  std::vector<PlanKernel> entries = {};    ///< of the chunks, in their order
  std::vector<ChosenKernel> kernels = {};  ///< likewise
  std::vector<int> wholes = {};            ///< likewise, the kernel of the draft that each is of
  /// Why there is no chunk behind the last of these; empty: they are all.
  std::string rejection = {};
};
ChunkCut cutAlong(const PlanDraft &draft, const ChunkChain &chain, int dimension);

/// The draft of a cut with its chunks, configured and priced by now, in place of the chain.
PlanDraft inChunks(ChunkCut cut, const ChunkChain &chain, const Device &device);

}  // namespace weft
