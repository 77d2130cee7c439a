// The fused body of a loop kernel as a graph of scalar computations, pulled from the outputs: what
// one element of each output needs, down to single loads. Softmax and the norms fall apart into row
// reductions and scalar expressions here, and movement ops into coordinates, so that scheduling
// (LoopPasses) knows neither.
//
//   y = softmax x over k    ->   m = max over the row of x; e = exp(x - m); s = sum over the row of
//                           e; y = e / s
//   y = slice x             ->    x at other coordinates
#pragma once

#include "codegen/families/loop/LoopKnobs.h"
#include "codegen/families/loop/LoopSpace.h"

namespace weft::codegen {

struct Node {
  enum class Kind : uint8_t {
    load,       ///< one element of an input
    pointwise,  ///< an expression over other nodes
    kept,       ///< the dropout decisions of one vector
    reduction,  ///< of a row
  };
  Kind kind = Kind::pointwise;
  Code text{};                  ///< expression; {0}, {1}, ... stand for operands
  std::vector<int> operands{};  ///< earlier nodes
  int input = -1;               ///< load: position in Kernel::inputs
  std::vector<Index> at{};      ///< load: coordinate of each dimension
  Code condition{};             ///< load: zero where it does not hold
  Reduction reduction = Reduction::sum;
  std::string wish{};  ///< the name it would like
  ScalarType type = ScalarType::f32;
  int number = -1;          ///< op number for the comment
  bool step = false;        ///< differs between the steps of a row
  bool perElement = false;  ///< differs between the elements of a vector
  bool drawsAlone = false;  ///< pointwise: makes a dropout decision for every element by itself
  int depth = 0;            ///< reductions of the row that must be finished before it
};

/// Of a variable that holds a node: "float", "int".
Code cudaTypeOf(ScalarType type);
/// "0" of integers, and of all others `ofFloats`.
Code zeroOf(ScalarType type, const char *ofFloats = "0.0f");

/// Where one output element comes from and goes to.
struct OutputStore {
  int output = 0;  ///< position in Kernel::outputs
  int node = -1;
  std::vector<Index> at{};
  int inside = -1;  ///< node that is not 0 where the place is inside the output; -1: it always is
};

struct LoopGraph {
  std::vector<Node> nodes{};  ///< operands come before users
  std::vector<OutputStore> stores{};
  std::vector<ConstantLine> constants{};  ///< factors, probabilities
  std::vector<Parameter> parameters{};    ///< besides tensors: dropout key and streams
  Block prologue;                         ///< dropout key
  Code keyPointer{};                      ///< the parameter that leads to it
  std::set<std::string> headers{};
  Code extraStepGuard{};    ///< sub-vectors that reach beyond the row
  Code valid, validText{};  ///< elements of the vector inside the tensor; empty: always all
  bool validIsStep = false;
  /// Packed tokens from a number on that is known at run time (kernel/UnusedTokens.h). No input:
  /// all are computed.
  struct UnusedRows {
    int input = -1;       ///< position in Kernel::inputs of the offsets
    int64_t element = 0;  ///< of them: the number of tokens
    bool areUnread = false;
    bool mayLeave = false;  ///< tokens are rows, whose threads leave; else they leave out steps
    int reduced = -1;       ///< tokens are summed: their position in LoopSpace::reduced
    Code name{}, token{};   ///< of the number; which token the row or step is, or its first
  } unused{};
};

/// What a kernel iterates over: axes of its space, and axes that are expressions over them
/// (sub-vectors).
struct IterationAxes {
  Kernel kernel{};  ///< with the axis inside a sub-vector added, if there is one
  LoopKnobs knobs{};
  std::vector<AxisId> outer, reduced{};
  AxisId splitAxis = -1, tileAxis = -1,
         subVectorAxis = -1;  ///< splitAxis = subVectorAxis * tile + tileAxis
};
IterationAxes iterationAxes(const Kernel &kernel, const LoopKnobs &knobs);

LoopGraph buildLoopGraph(const IterationAxes &axes, LoopSpace &space, Names &names);

}  // namespace weft::codegen
