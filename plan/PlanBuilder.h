// From a selected path to a plan: every (tensor, layout) that occurs becomes one plan tensor, every
// step one plan kernel, but for steps that only move parameters, which happen when these are
// loaded. No MLIR. Invariant: plan.kernels[n] runs kernels[n]; kernels stand in the order of the
// path, which is topological.
#pragma once

#include "kernel/Expected.h"
#include "passes/select/Problem.h"
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

struct PlannedKernels {
  Plan plan;
  std::vector<ChosenKernel> kernels;
};

/// A plan without memory: its kernels may still be configured in another way, or be cut into chunks
/// (PlanChunks.h).
struct PlanDraft {
  PlannedKernels planned;
  std::vector<int> viewOf;  ///< by tensor, the one whose buffer it lies in, or -1
};

/// Fills tensors and kernels (but for what emission and build find out), in the configurations and
/// at the costs of the path. `free`: arguments may stand in the layout that their first reader
/// wants. Throws Error(checkFailed) when the path reads a tensor in a layout that nothing produced:
/// selection is broken then.
PlanDraft draftPlan(const select::Problem &problem, const select::SelectionResult &path,
                    const Device &device, bool free);
/// Says of a kernel's entry what follows from its configuration and its cost.
void describeConfigured(PlanKernel &entry, const ChosenKernel &chosen, const Device &device);
/// Fills entry points, dependencies, buffers, predicted time and ranges of inputs. `concurrent`:
/// Plan::concurrent.
PlannedKernels finishPlan(PlanDraft draft, const select::Problem &problem, bool concurrent);

/// A part of a stacked tensor that is no view costs a copy: notes in the plan what keeps it from
/// being one, in place of earlier such notes.
void noteCopies(PlannedKernels &planned);
/// A result may lie where an operand was only as overwritableInputs() (kernel/Family.h) allows.
/// Error(badInput) names `where`, the kernel, both tensors and the buffer.
Expected<void> checkOverwriting(const PlannedKernels &planned, const std::string &where);

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
