// From a path of one variant to its plan, with what the plan says of model, device and prices.
#pragma once

#include "kernel/Expected.h"
#include "passes/configure/CostModel.h"
#include "passes/decide/ChunkConfigurations.h"
#include "passes/select/Selection.h"
#include "plan/PlanBuilder.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace weft::decision {

struct SelectedVariant;

/// What all plans of a model share.
struct PlanContext {
  const CostModel *prices = nullptr;
  bool free = false;                    ///< arguments and results are not pinned
  std::string model;                    ///< as a person named it
  std::map<std::string, int64_t> dims;  ///< of the model
  DType dtype = DType::f16;             ///< of models without an argument of floats
  /// Of `prices`, where several selections are asked for; else each finds its own.
  std::shared_ptr<select::SharedSpaces> spaces = {};
  /// Of `prices`, likewise: how chunks of kernels are configured.
  std::shared_ptr<ChunkConfigurations> chunkConfigurations = {};
};

/// The plan of a path of a problem, with measurements of strided views and in chunks as asked.
/// Throws what draftPlan() (plan/PlanBuilder.h) and draftInChunks() do. `free`: of draftPlan().
PlannedKernels planOfPath(const select::Problem &problem, const select::SelectionResult &path,
                          const Chunking &chunks, bool free);

/// Everything but what emission and build find out. `path`: of the variant's selection graph. An
/// error where its kernels cannot run in so many chunks (PlanChunks.h), or are not measured under
/// --strict. `concurrent`: Plan::concurrent. `isPipelined`: the chunks are slices, which run at
/// once whatever `concurrent` says.
Expected<PlannedKernels> planOf(const PlanContext &context, const SelectedVariant &variant,
                                const select::SelectionResult &path, int chunks = 1,
                                bool concurrent = false, bool isPipelined = false);

/// The plans of one path, in any number of chunks, to be compared: the path is drafted once, also
/// for the numbers that it does not run in, and the plans do not say what planOf() adds for readers
/// (model, variant, device, element type, notes of prices). What it is given stays alive.
class PathPlans {
public:
  PathPlans(const PlanContext &context, const SelectedVariant &variant,
            const select::SelectionResult &path);

  /// An error where planOf() has one.
  Expected<PlannedKernels> in(int chunks, bool concurrent = false, bool isPipelined = false) const;

private:
  const PlanContext &context;
  const select::Problem &problem;
  Expected<PlanDraft> whole;
};

/// What the plan makes of one step of its path: the seconds of all its chunks, and how many these
/// are.
struct PlannedStep {
  double seconds = 0;
  int chunks = 0;  ///< 0: nothing runs, parameters are packed when they are loaded
};
/// One for each step of the path.
std::vector<PlannedStep> plannedSteps(const PlannedKernels &planned,
                                      const select::SelectionResult &path);

}  // namespace weft::decision
