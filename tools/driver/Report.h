// report.json: everything `explain` needs that is not in the plan. Derived, and the same for the
// same inputs: no wall times, no cache hits.
#pragma once

#include "passes/select/StepText.h"
#include "plan/PlanBuilder.h"
#include "tools/driver/Compilation.h"
#include "tools/driver/Emission.h"
#include "tools/driver/LayeredModel.h"

#include <nlohmann/json.hpp>

#include <map>

namespace weft::driver {

/// Members: model, plan (PlanFigures.h), variants, rooflineSeconds, stages, ops, opLabels, fusions,
/// fusionPrices, layouts, alternatives, pins, saved, measuredPlans, chunks, movement, kernelOps,
/// request (Request.h). `layouts` and `fusionPrices` are of the selection graph of the chosen
/// variant, whose kernels are whole; what compiling with other flags gives, chunks and all, is
/// decided when it is asked for (LayoutPredictions.h). Of a model that was decided by parts, both
/// are of each part's graph, once for every place where it stands.
nlohmann::json makeReport(const Compilation &compilation, const DecidedModel &decided,
                          const PlannedKernels &planned);

/// Why kernels are as they are. Refers to the variant's fusions, of which a large graph has
/// hundreds of thousands.
class FusionNotes {
public:
  explicit FusionNotes(const ProposedVariant &variant);
  /// The rewrites that made ops of the kernel, the pattern that proposed it, and the rejected
  /// fusions that touch it, largest first.
  std::vector<std::string> of(const ChosenKernel &chosen) const;

private:
  const std::vector<FusionRecord> &records;
  const std::vector<std::vector<Rewrite>> &rewritesOfOp;
  std::map<int, std::vector<size_t>> rejectedOf;  ///< op -> records, ascending
};

}  // namespace weft::driver
