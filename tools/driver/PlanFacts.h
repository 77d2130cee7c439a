// What a reader of a plan wants to know first, drawn from plan and report: what was measured, where
// the time goes, what is lost and where, what to beware of. Facts, not lines: FirstLines.h and
// `explain` print them. No MLIR.
#pragma once

#include "passes/select/Selection.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/artifact/VerificationRecords.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weft::driver {

/// Configurations of all candidate kernels of all variants: how many are legal, how many of those
/// selection was offered with a price, and how many of these prices were measured.
struct Coverage {
  double legal = 0;
  int64_t offered = 0, measured = 0;
};
/// Of the variants that report.json lists; nothing for a report without statistics.
std::optional<Coverage> coverageOf(const nlohmann::json &report);
/// "51,133 of 5.8e+11 legal configurations offered, all measured".
std::string describe(const Coverage &coverage);
/// What the same says of legal configurations, and of measured ones.
std::vector<std::string> itemsOf(const Coverage &coverage);

/// Kernels that are launched, those measured, those edited by hand, and what the believed records
/// say of the others' exact texts: agreed with fp64 on a GPU, agreed for an older verifier alone,
/// or failed, alone or in a whole plan. Views are none.
struct Evidence {
  int launched = 0, measured = 0, edited = 0, untold = 0, verified = 0, older = 0, failed = 0;
};
Evidence evidenceOf(const Plan &plan, const runtime::BelievedRecords &records);

/// Launches that compute the same on other data: chunks of one kernel, or the same kernel in
/// several layers.
struct FoldedKernel {
  std::string name;          ///< of the first, without what its chunk adds
  std::vector<int> kernels;  ///< of the plan, ascending
  double seconds = 0;        ///< of all
};
/// Views left out; in the plan's order.
std::vector<FoldedKernel> foldedKernels(const Plan &plan);

/// Names of the ops of a kernel, in order, repeated ones once: "contract", "bias", "gelu".
std::vector<std::string> opNames(const PlanKernel &kernel);

/// Share of the kernels' time by stage of the layer (passes/account/Stages.h), largest first. Empty
/// for reports without stages.
std::vector<std::pair<std::string, double>> stageShares(const Plan &plan,
                                                        const nlohmann::json &report);

/// What two kernels exchange through memory because they may not be one.
struct UnfusedLoss {
  std::string tensor, writer,
      reader;                ///< the largest tensor; kernels without the axes in their names
  int64_t bytes = 0;         ///< that one kernel would not move
  double seconds = 0;        ///< at the device's copy bandwidth: no more than this is lost
  std::string code, reason;  ///< ReasonCodes.h; empty where only a measurement is missing
  int repeats = 1;           ///< layers that lose as much between the same kernels
};
/// The largest of a plan, of layers that are alike the first one's. Two contractions count where
/// both are attention's: other GEMMs in a row would need a whole row of tiles on chip. Kernels that
/// selection could have fused, and did not for the price, lose nothing.
std::optional<UnfusedLoss> largestUnfused(const Plan &plan, const nlohmann::json &report);

/// Another layout of a stored tensor.
struct LayoutChange {
  std::string tensor;
  NamedLayout layout, other;
  double seconds = 0;  ///< as one graph, that compiling with --pin TENSOR=OTHER adds to the plan,
                       ///< less than zero where it saves (LayoutPredictions.h)
  int64_t workspaceBytes = 0;
};
/// A stored tensor, and its other layouts that are worth a prediction, most promising first.
struct LayoutQuestion {
  std::string tensor;
  NamedLayout layout;
  std::vector<std::string> others;  ///< as report.json has them
};
/// Most promising first by the prices of the selection graph (`layouts` of report.json): what would
/// save, then the costliest, unless the plan has transposes. The graph's prices are of kernels
/// computed whole in one variant, so no plan's.
std::vector<LayoutQuestion> layoutQuestions(const Plan &plan, const nlohmann::json &layouts);
/// Worth a line.
bool isNotable(const Plan &plan, const LayoutChange &change);

/// The stored tensor whose layout matters most, from the member layoutChange of the report: one
/// that a pin or the caller keeps from a faster one, else transposes, else one whose other layout
/// costs much.
struct LayoutFact {
  std::string text;                   ///< one line; empty if no tensor has a notable choice
  std::string tensor, layout, other;  ///< empty where transposes are meant
  double seconds = 0;  ///< that the other layout adds to the plan as one graph, less than zero
                       ///< where it saves; or of the transposes
  int64_t workspaceBytes = 0;  ///< with the other layout
};
LayoutFact costliestLayout(const Plan &plan, const nlohmann::json &report);

/// The plan's workspace, and what less of it would cost or more of it would save.
struct MemoryTrade {
  struct Other {
    int chunks = 1;
    int64_t bytes = 0;
    double seconds = 0;  ///< that it adds to the whole graph, less than zero where it is faster
  };
  std::string text;  ///< one line
  std::vector<Other> others = {};
};
MemoryTrade memoryTrade(const Plan &plan, const nlohmann::json &report);

/// What a warning is about.
enum class WarningKind : uint8_t { edits, verification, prices, search, memory, kernels, build };

struct Warning {
  WarningKind kind = WarningKind::kernels;
  std::string text;  ///< one line, without the mark
};

/// What makes the figures less than they seem: a search that its memory cut short, edits, texts
/// that failed or were never verified, estimates, old measurements, variants without a plan,
/// missing cubins. Most important first.
std::vector<Warning> warningsOf(const Plan &plan, const nlohmann::json &report,
                                const runtime::BelievedRecords &records);
std::vector<std::string> textsOf(const std::vector<Warning> &warnings);

/// A kernel's label, or where the plan has none, from before labels, its name.
std::string shortName(const PlanKernel &kernel);

/// The kernel of that name, else the only one of that label, as tables print it, else the only one
/// whose name begins so. Throws Error(badInput) with those that the name may mean, or the nearest.
const PlanKernel &findKernel(const Plan &plan, const std::string &name);

/// Backward passes of fused attentions. Those that are not one kernel store scores; one kernel may
/// store their gradient, which that of a bias is or is summed from.
struct AttentionBackwards {
  int all = 0, unfused = 0, storing = 0;
};
AttentionBackwards attentionBackwards(const Plan &plan);

/// "fused attention", "recomposed attention", "decomposed attention", "unfused attention", or empty
/// for plans without; in training of a fused one also that its backward pass is not, or what it
/// stores.
std::string attentionForm(const Plan &plan);

/// Of how many chunks a kernel has most; 1 where all run whole.
int mostChunks(const Plan &plan);

}  // namespace weft::driver
