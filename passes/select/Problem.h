// What selection is asked, and the path that it answers with: plain data, of which plans are built.
#pragma once

#include "kernel/EntryPointKind.h"
#include "kernel/InitialValue.h"
#include "kernel/TrainingRole.h"
#include "passes/configure/Cost.h"
#include "passes/select/Proposal.h"
#include "passes/select/Rewrite.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weft::select {

/// A tensor of the graph: axes by name and extent in logical order.
struct Tensor {
  std::string name;
  DType dtype = DType::f16;
  std::vector<Axis> axes;
  bool isArgument = false;   ///< live at the start
  bool isParameter = false;  ///< an argument that may be packed at load (inference): layout changes
                             ///< are priced zero
  bool isResult = false;     ///< live at the end
  std::optional<InitialValue> initial = {};  ///< of an argument that training may start from
  std::string masterOf = {};  ///< of an argument of f32: the argument that is its rounding, by name
  std::string nextOf = {};    ///< of a result: the argument that it is in the next step, by name
  TrainingRole training = TrainingRole::none;  ///< of an argument or a result
  int64_t layer = 0;                           ///< of several layers its own, from 1; 0: none
  std::optional<Layout> pinned;                ///< the caller's order, or --pin
  /// By --pin: no kernel may keep it inside, and whoever writes or reads it takes the pinned
  /// layout, also of a parameter.
  bool mustBeStored = false;
  int64_t bytes() const;
  int64_t elements() const;
  std::vector<int64_t> extents() const;  ///< in logical order
};

/// The kernel that moves a tensor from one layout to another.
Kernel transposeKernel(const Tensor &tensor);

/// A set of ops that may share one kernel; every op alone is a candidate too. One that no family
/// takes has no price: a fused candidate has to hold its ops, or there is no plan.
struct Candidate {
  std::string name;          ///< readable kernel name
  std::vector<int> ops;      ///< op indices of the Problem, ascending
  std::vector<int> inputs;   ///< tensor per Kernel::inputs
  std::vector<int> outputs;  ///< tensor per Kernel::outputs
  Kernel kernel;
  Proposal proposal = {};
};

struct Problem {
  std::string name;  ///< variant name: rewrites joined by '+', e.g. "qkv-stacked+softmax-fused"
  std::vector<Rewrite> rewrites;  ///< in order
  std::vector<Tensor> tensors;
  std::vector<std::string>
      ops;  ///< printable name per op; index = topological position in the graph
  std::vector<std::vector<int>> opInputs;   ///< tensors read, per op
  std::vector<std::vector<int>> opOutputs;  ///< tensors written, per op
  std::vector<EntryPointKind> entryPoints = {
      EntryPointKind::forward};  ///< of the plan, in the order in which they are called
  std::vector<int> opEntries;    ///< per op, which of these it belongs to; empty: all to the first
  /// By op, why no fused candidate holds it, where it has no kernel by itself; for messages.
  std::map<int, std::vector<std::string>> unfusedReasons = {};
  std::vector<Candidate> candidates;             ///< of ops of one entry point each
  std::vector<std::pair<int, int>> tiedTensors;  ///< pairs that share one layout variable
  /// By site and alternative the ops of which a plan has those of one alternative alone (Sites.h).
  /// All alternatives of a site write the same tensors for ops outside of it, and no candidate
  /// holds ops of two of them. Ops of no site are in every plan.
  std::vector<std::vector<std::vector<int>>> sites = {};
};

/// One step of a plan. A "transpose" of a parameter is a view and costs nothing: it is packed
/// at load. Layouts of view configurations carry the offset into the operand (slice) or result
/// (concat); other configurations never do. Where a concat's operands are strided views of its
/// result, all steps that write or read them carry the strides. `cost` is the contiguous one.
struct Step {
  int candidate = -1;           ///< index into Problem::candidates; -1: a transpose
  int tensor = -1;              ///< the transposed tensor
  int entry = 0;                ///< which of Problem::entryPoints it belongs to
  Configuration configuration;  ///< of the candidate, or of the transpose kernel
  Cost cost = {};
  /// The best step that would do the same work in another way (other knobs, layouts or fusion) and
  /// what it loses.
  std::string runnerUp = {};
  double runnerUpLoss = 0;  ///< seconds, whole plan
};

struct SelectionResult {
  std::string variant;
  std::vector<Step> steps;  ///< by entry point
  double seconds = 0;       ///< sum of step costs
  double lowerBound =
      0;  ///< of its variant: the cheapest lattice by each kernel's best time ignoring layouts
  int64_t peakTemporaryBytes = 0;  ///< with what launches work in
};

}  // namespace weft::select
