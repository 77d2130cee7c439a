// The frontier of time and memory: of the plans of all variants, whole and in chunks, those that no
// other beats in both. Variants differ in what the backward pass computes again, so in training
// this is what is kept against what is recomputed.
//
// Each variant is selected without a limit, and again under limits of its live temporaries and of
// what launches work in (select::Options::maxMemory). A limit is one byte less than the fastest
// plan known within the one before takes, so that every search either finds a faster plan in less
// memory or shows that a variant has none. Not searched are variants that are slower without a
// limit than what is known within this one, and those whose live temporaries take more, whatever
// the layouts (Selection::leastLiveBytes). --max-memory (MemoryLimit.h) goes down the same
// limits, until a plan fits, and seeks among smaller temporaries besides: of each plan of the
// frontier that is done, too, so that its limit finds no faster one of its variant. No MLIR.
#pragma once

#include "passes/decide/Decide.h"

#include <span>

namespace weft::decision {

struct FrontierPoint {
  double seconds = 0;       ///< predicted, of its kernels: what --max-memory compares
  double graphSeconds = 0;  ///< predicted, as one graph
  int64_t workspaceBytes = 0;
  size_t index = 0;          ///< of Problem::variants
  std::string variant = {};  ///< its name
  std::vector<Rewrite> rewrites = {};
  int chunks = 1;
};

/// Those that no other point beats in time and memory, by growing memory and so by falling time. Of
/// points that are equal in one, the better in the other; of equal ones the first.
std::vector<FrontierPoint> undominated(std::vector<FrontierPoint> points);

/// All plans that were priced, undominated or not. An error as of decide().
Expected<std::vector<FrontierPoint>> memoryPoints(const Problem &problem, const Options &options);

struct PlanByMemory {
  size_t selection = 0;  ///< of those without a limit, then of PlansByMemory::limited
  size_t path = 0;       ///< of its k best
  PricedChunking priced = {};
};
struct PlansByMemory {
  std::vector<SelectedVariant> limited;  ///< what was selected under limits
  std::vector<size_t> firstOf;           ///< by these: the same variant's selection without a limit
  std::vector<PlanByMemory> plans;
};

/// Plans of variants that were selected without a limit, and of what is selected under falling
/// limits until the fastest plan known within one takes at most `enough` bytes, or none is known.
PlansByMemory plansByMemory(const Problem &problem, const Options &options,
                            const std::vector<Pin> &pins, std::span<const SelectedVariant> first,
                            int64_t enough);

}  // namespace weft::decision
