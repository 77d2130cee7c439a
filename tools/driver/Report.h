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
/// decided when it is asked for (LayoutPredictions.h). A model that was decided by parts has its
/// fusions, their prices and its variants in `parts`, once for each distinct part, and
/// FoldedReport.h says what that is where the part stands; it has no `layouts`, which nothing reads
/// of a part.
nlohmann::json makeReport(const Compilation &compilation, const DecidedModel &decided,
                          const PlannedKernels &planned);

/// Why kernels are as they are. Refers to the fusions that were proposed, of which a large graph
/// has hundreds of thousands.
class FusionNotes {
public:
  explicit FusionNotes(const DecidedModel &decided);
  /// The rewrites that made ops of the kernel, the pattern that proposed it, and the rejected
  /// fusions that touch it, largest first.
  std::vector<std::string> of(const ChosenKernel &chosen) const;

private:
  /// Of a model that was decided whole, or of one part of it.
  struct Found {
    const std::vector<FusionRecord> *records = nullptr;
    std::map<int, std::vector<size_t>> rejectedOf = {};  ///< op -> records, ascending
  };
  /// What an op of the whole is in its part.
  struct Spot {
    size_t found = 0;
    const DecidedPart::Place *place = nullptr;
    int op = 0;
  };
  void addRejected(const ChosenKernel &chosen, std::vector<std::string> &notes) const;

  std::vector<Found> found;
  std::map<int, Spot> spotOf;  ///< of a model without parts empty
  const std::vector<std::vector<Rewrite>> &rewritesOfOp;
};

}  // namespace weft::driver
