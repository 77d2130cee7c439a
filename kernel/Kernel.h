// The canonical kernel: a fused region in normal form, as plain data without MLIR.
//
// Everything after fusion works on this one structure: configurations are enumerated for it, the
// cost model prices it, the selector chooses among its configurations, code generation lowers and
// prints it, the cache and the profile key on its text. It is self-contained: an axis is an AxisId,
// which indexes `axes`, a tensor a ValueId, which indexes `values` (kernel/Ids.h).
//
// Invariants (checked by verify()):
//   - values are numbered inputs first, then in order of definition; every non-input value has one
//       defining body op;
//   - body is in topological order;
//   - a value's `axes` are in the logical order of its tensor type (its layout is not part of a
//       kernel);
//   - two tensor dimensions are the same kernel axis exactly if some body op identifies them;
//       extents are then equal.
#pragma once
#ifndef WEFT_KERNEL_KERNEL_H  // beside a precompiled header of a compiler cache
#define WEFT_KERNEL_KERNEL_H

#include "kernel/DType.h"
#include "kernel/Dropout.h"
#include "kernel/Expression.h"
#include "kernel/Ids.h"
#include "kernel/OpKind.h"

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace weft {

/// Section 3.2 of "Data Movement Is All You Need". `movement` moves data and computes nothing
/// (transpose, slice, concat).
enum class OperatorClass : uint8_t { contraction, normalization, elementwise, movement };
std::string_view nameOf(OperatorClass operatorClass);

/// A named extent of the iteration space.
struct Axis {
  std::string name;  ///< label for people ("b", "j"); unique inside one kernel
  int64_t extent = 0;
  bool operator==(const Axis &) const = default;
};

/// A tensor that enters, leaves, or lives inside a kernel.
struct Value {
  std::string
      name;  ///< readable, unique inside the kernel: an argument name of the emitted function
  DType dtype = DType::f32;
  std::vector<AxisId>
      axes;         ///< kernel axis of each dimension, in the logical order of the tensor type
  int number = -1;  ///< SSA number in the graph ("%24"), for comments only; never hashed
  bool operator==(const Value &) const = default;
};

using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>>;

/// One op of the fused body. Attribute names are those of SPEC.md.
struct BodyOp {
  OpKind kind = OpKind::identity;
  OperatorClass operatorClass = OperatorClass::elementwise;
  std::vector<ValueId> operands;
  std::vector<ValueId> results;
  /// Kernel axes that the op reduces over (softmax, norms, reduce, contract); empty for maps.
  std::vector<AxisId> reducedAxes;
  std::map<std::string, Attribute> attributes;
  /// Element-wise ops: an element of the result, over elements of the operands. Coordinates are
  /// kernel axes. Empty for every other op, and for dropout, whose draws are no expression.
  Expression expression;
  double flop = 0;
  int number = -1;  ///< op number in the graph, for comments and reports only; never hashed
  bool operator==(const BodyOp &) const = default;
};

/// What an op with these attributes drops, of its first operand: dropout itself, and contractions
/// of what would be dropped before them. Nothing if it draws no mask.
std::optional<Dropout> dropoutOf(const std::map<std::string, Attribute> &attributes);
inline std::optional<Dropout> dropoutOf(const BodyOp &op) { return dropoutOf(op.attributes); }

struct Kernel {
  std::string name;  ///< readable: "bias_dropout_residual_layernorm"; never hashed
  std::vector<Axis> axes;
  std::vector<Value> values;
  std::vector<ValueId> inputs;   ///< in operand order
  std::vector<ValueId> outputs;  ///< in result order
  std::vector<BodyOp> body;

  /// The class that decides the kernel family: contraction if any body op is one, else
  /// normalization if any op reduces, else elementwise, else movement.
  OperatorClass operatorClass() const;
  double flop() const;
  int64_t elements(ValueId value) const;
  int64_t bytes(ValueId value) const;
  /// Bytes that any implementation must move: every input once plus every output once (Q of the MUE
  /// metric); of a cache that it appends to (kernel/Append.h), the tokens.
  int64_t necessaryBytes() const;
  /// Axes over which some body op reduces, ascending.
  std::vector<AxisId> reducedAxes() const;
  bool operator==(const Kernel &) const = default;
};

/// In logical order.
std::vector<int64_t> extentsOf(const Kernel &kernel, ValueId value);

/// Throws Error(checkFailed) that names the first broken invariant.
void verify(const Kernel &kernel);

/// The text that is hashed and printed for people: body in normal form, axes renamed a0, a1, ... in
/// order of first use, values v0, v1, ...; no names, op numbers, dropout streams or seeds. Equal
/// kernels of different models give equal text.
std::string canonicalText(const Kernel &kernel);

}  // namespace weft

#endif  // WEFT_KERNEL_KERNEL_H
