// From a selected path to a plan: every (tensor, layout) that occurs becomes one plan tensor, every
// step one plan kernel, but for steps that only move parameters, which happen when these are
// loaded. No MLIR. Invariant: plan.kernels[n] runs kernels[n]; kernels stand in the order of the
// path, which is topological.
#pragma once

#include "kernel/Expected.h"
#include "passes/select/Selection.h"
#include "plan/Plan.h"

#include <string>
#include <vector>

namespace weft {

/// What is needed to emit one kernel of the plan.
struct ChosenKernel {
  Kernel kernel;
  Configuration configuration;
  Cost cost;
  select::Proposal proposal;  ///< no fusion for a transpose
  std::vector<int> graphOps;  ///< op indices of the problem; empty for a transpose
  EntryPointKind entryPoint = EntryPointKind::forward;
  int step = -1;  ///< of the path; kernels that are chunks of one kernel share it
  /// The candidate's name, which the plan's kernels append layouts and chunks to; empty for a
  /// kernel that was read from an artifact.
  std::string candidateName = {};
};

struct Chunking;

struct PlannedKernels {
  Plan plan;
  std::vector<ChosenKernel> kernels;
};

/// Fills tensors, kernels (but for what emission and build find out), dependencies, buffers,
/// predicted time. `free`: arguments may stand in the layout that their first reader wants. Throws
/// Error(checkFailed) when the path reads a tensor in a layout that nothing produced: selection is
/// broken then. `chunks`, if any: the kernels around the largest temporary run in so many chunks
/// (PlanChunks.h), or Error(unsupported) says why not.
PlannedKernels buildPlan(const select::Problem &problem, const select::SelectionResult &path,
                         const Device &device, bool free, const Chunking *chunks = nullptr);

/// A part of a stacked tensor that is no view costs a copy: notes in the plan what keeps it from
/// being one, in place of earlier such notes.
void noteCopies(PlannedKernels &planned);
/// Notes in the plan, in place of earlier such notes, which kernels sum in a fixed order where
/// another one is legal, or in any order, and what the other way is predicted to take: the price of
/// determinism. Both by the model, measured or not.
void noteDeterminism(PlannedKernels &planned, const CostModel &prices);
/// A result may lie where an operand was only as overwritableInputs() (kernel/Family.h) allows.
/// Error(badInput) names `where`, the kernel, both tensors and the buffer.
Expected<void> checkOverwriting(const PlannedKernels &planned, const std::string &where);
/// Says in the plan what priced its kernels: the cost model, described as the analytic one if none
/// of the kernels was measured.
void notePrices(Plan &plan, const CostModel &costModel);

/// The argument whose element type is the plan's: the first parameter that is a rounding of its
/// master, else the first argument or parameter of the type of floats that most of them have;
/// nullptr: there is none.
const PlanTensor *elementsArgument(const Plan &plan);

/// Whether other tensors may lie between its elements: chunks of a stack.
bool hasStridedView(const PlanTensor &tensor);

/// A plan tensor's layout by the names of its axes.
NamedLayout namedLayout(const PlanTensor &tensor);
/// The same as letters: "hbjk", "q,k" for axes with longer names.
std::string printLayout(const PlanTensor &tensor);

/// The layouts that a kernel says are those of its tensors.
void refreshLayouts(const std::vector<PlanTensor> &tensors, PlanKernel &kernel);

}  // namespace weft
