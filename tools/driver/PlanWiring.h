// A plan's kernels, tensors and entry points held to the values of its graph: each kernel reads and
// writes what its region does, parameters, arguments and results are those of the same name, chunks
// cover their axis once, packed parameters lie where their whole is read, and entry points are
// those of the graph. No MLIR: SelectedGraph.h makes the wiring of a graph.
//
// Invariant: a plan that passes computes what its graph says, whatever tensors were exchanged in
// it, if every kernel computes its region.
#pragma once

#include "kernel/EntryPointKind.h"
#include "kernel/InitialValue.h"
#include "kernel/Kernel.h"
#include "runtime/artifact/Artifact.h"

#include <string>
#include <string_view>
#include <vector>

namespace weft::driver {

/// A value of a graph. Transposes are seen through: a value that was copied into another layout is
/// the same value, and so is one that is packed of the same parameters in the same way.
struct GraphValue {
  enum class Origin { argument, parameter, packed, computed };
  std::string name;
  Origin origin = Origin::computed;
  DType dtype = DType::f32;
  std::vector<std::string> axes;
  std::vector<int64_t> extents;
  std::optional<InitialValue> initial = {};
  std::string masterOf = {}, nextOf = {};  ///< names of arguments, as PlanTensor has them
  TrainingRole training = TrainingRole::none;
  int64_t layer = 0;
  int packing =
      -1;  ///< of a packed value: the region of GraphWiring::packings that makes it at load
};

/// A kernel of the graph; operands and results are values, in the order of Kernel::inputs and
/// outputs.
struct GraphRegion {
  Kernel kernel;
  std::vector<int> operands, results;
  std::optional<EntryPointKind> entryPoint;  ///< nothing that is returned depends on it: none
  bool isTranspose = false;                  ///< of a value that stays the same
};

struct GraphWiring {
  std::vector<GraphValue> values;
  std::vector<GraphRegion> regions;   ///< that a plan has kernels of, in order
  std::vector<GraphRegion> packings;  ///< movement of parameters, done at load
  std::vector<int> returned;          ///< values
};

/// The graph's region of every kernel of the plan: chunks name theirs, the other kernels get
/// the remaining ones, in order. Throws Error(badInput) naming `where` and the kernel without a
/// region, or where the numbers of kernels differ.
std::vector<size_t> regionsOf(const Plan &plan, size_t inGraph, const std::string &where);

/// Whether a graph's text may call so what a plan calls `inPlan`: it numbers names that it would
/// have twice, and "x_0" is "x" unless there is an x.
bool isNumberedName(std::string_view inGraph, std::string_view inPlan);

/// Throws Error(badInput) naming `where`, the kernel or the tensor, and what the graph has instead.
/// Call it after verify.
void checkWiring(const Plan &plan, const GraphWiring &graph, const std::string &where);

}  // namespace weft::driver
