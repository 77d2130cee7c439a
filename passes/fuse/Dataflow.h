// A dataflow graph as plain data: what the fusion rules and the bridge need of each op, without
// MLIR. Describe.cpp fills it from a weft.graph; everything that reasons about iteration spaces
// works on this.
//
// Invariant: ops are in topological order; a tensor has at most one producer.
#pragma once

#include "ir/IterationSpace.h"
#include "kernel/EntryPointKind.h"
#include "kernel/InitialValue.h"
#include "kernel/Kernel.h"
#include "kernel/TrainingRole.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace weft {

/// A tensor of the graph.
struct FlowTensor {
  std::string name;  ///< readable, unique in the graph, a C identifier
  DType dtype = DType::f32;
  std::vector<Axis> axes;  ///< label ("" if none) and extent of each dimension, in logical order
  int producer = -1;       ///< op index, -1: an argument of the graph
  std::vector<int> consumers;                ///< op indices, ascending, each once
  std::optional<InitialValue> initial = {};  ///< of an argument that training may start from
  bool isParameter = false;                  ///< a weight, or computed from weights alone
  bool isUpdated = false;  ///< an argument that an optimizer gives a next value (a weight or its
                           ///< averages), or moved from such alone
  /// Of an argument of f32: the name of the argument that is its rounding; empty: of none.
  std::string masterOf = {};
  /// Of a result: the name of the argument whose value in the next step it is; empty: of none.
  std::string nextOf = {};
  TrainingRole training = TrainingRole::none;  ///< of an argument or a result
  /// Of several layers the one that computes it, or whose weight it is, from 1; 0: none.
  int64_t layer = 0;
  bool leaves = false;  ///< returned, or read by an op outside the described set
  int64_t bytes() const;
};

/// An op with its access maps: every dimension of every operand and result runs along one local
/// axis of the op.
struct FlowOp {
  OpKind kind = OpKind::identity;
  std::string label;  ///< readable: the name location if the graph gives one, else the name
  OperatorClass operatorClass = OperatorClass::elementwise;
  std::vector<int> operands, results;                     ///< tensor indices
  std::vector<std::vector<int>> operandAxes, resultAxes;  ///< local axis of each dimension
  std::vector<int> independent,
      reduced;  ///< local axes that the op walks; the others are indexed only
  std::map<std::string, Attribute> attributes;
  Expression expression;  ///< coordinates are dimensions of the result
  double flop = 0;
  int number = -1;
  int entry = 0;  ///< which of Dataflow::entryPoints it belongs to
  bool reducesTiles =
      false;  ///< reduces sub-vectors of an axis, not the whole axis (local softmax)
  std::shared_ptr<const Kernel> region;  ///< the body, if the op is a weft.kernel
};

struct Dataflow {
  std::vector<FlowTensor> tensors;
  std::vector<FlowOp> ops;
  std::vector<EntryPointKind> entryPoints = {
      EntryPointKind::forward};  ///< of a plan, in the order in which they are called
};

/// A kernel with the graph tensor behind each of its inputs and outputs.
struct BoundKernel {
  Kernel kernel;
  std::vector<int> inputs, outputs;  ///< tensor indices, one per Kernel::inputs / outputs
  std::vector<AxisSets> spaces;      ///< of each body op, in kernel axes
};

/// The order of inputs and outputs that a kernel region fixes (tensor indices).
struct KernelSignature {
  std::vector<int> inputs, outputs;
};

/// The canonical kernel of a set of ops (indices, any order). Axes are unified through the dataflow
/// by union-find; an input that is read under two index maps becomes two inputs. Inputs are in
/// order of first read and outputs in order of definition, unless a signature gives them. Throws
/// Error(unsupported) where an intermediate tensor is read under two index maps, and
/// Error(checkFailed) if the result breaks an invariant of Kernel.h.
BoundKernel bindKernel(const Dataflow &flow, const std::vector<int> &ops,
                       const std::string &name = "", const KernelSignature *signature = nullptr);

/// "bias_dropout_residual_layer_norm"; repeated ops are counted ("bias_x3"); contractions are named
/// by what they compute, those of a fused attention "attention" with the ops on its scores behind
/// it ("attention_mask_add"), those of its backward pass "attention_backward_mask_add".
std::string kernelName(const Dataflow &flow, const std::vector<int> &ops);

}  // namespace weft
