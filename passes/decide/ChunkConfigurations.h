// How the chunks of kernels (plan/PlanChunks.h) are configured, and at what price. No MLIR.
#pragma once

#include "passes/configure/CostModel.h"
#include "plan/PlanBuilder.h"

#include <deque>
#include <string>

namespace weft::decision {

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

/// The draft with the kernels around its largest temporary cut along the first of that one's
/// dimensions that allows it, and the chunks configured. Throws Error(unsupported) saying why when
/// they cannot run in so many chunks.
PlanDraft draftInChunks(const PlanDraft &whole, const Chunking &chunks);

}  // namespace weft::decision
