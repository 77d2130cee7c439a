// What an element-wise op computes for one element of its result: a typed tree over elements of its
// operands, its numeric attributes, literals and coordinates.
//
// The record of an op spells it once (ir/ElementwiseOps.td), as a C expression that parse() reads.
// All else follows from the tree: which headers emitted code includes, whether the op is a function
// of what it reads, how far fp32 may be off, which operands are read.
//
// Invariants: children come before their parents and the last node is the root; every node has the
// type that its children give it; a coordinate is an axis, never a row or a column of a tile, so
// that a tree holds wherever it is emitted; text() of a parsed expression is what parse() read.
#pragma once
#ifndef WEFT_KERNEL_EXPRESSION_H  // beside a precompiled header of a compiler cache
#define WEFT_KERNEL_EXPRESSION_H

#include "kernel/Ids.h"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

enum class ScalarType : uint8_t {
  f32,
  i32,
  boolean,
  rotation,  ///< a cosine and a sine: what rotation() of an angle gives
};
/// "f32", "i32", "bool", "rotation".
std::string_view nameOf(ScalarType type);

enum class DeviceFunctionId : uint8_t {
  relu,
  gelu,
  geluForHalf,
  geluForBfloat16,
  geluTanh,
  silu,
  tanh,
  sigmoid,
  exp,
  rsqrt,
  squareRoot,
  geluSlope,
  geluSlopeForHalf,
  geluSlopeForBfloat16,
  geluTanhSlope,
  siluSlope,
  rotaryFrequency,  ///< of a pair and an exponent
  scaledFrequency,
  rotation,  ///< of a position and a frequency
  shortRotation,
  clampedIndex,
  hasBlock,  ///< of a table of tiles, a head, a query and a key
};

/// A function of the device library that expressions call. One row of the table in Expression.cpp
/// is one function; nothing but the table's text knows what it is called in CUDA.
struct DeviceFunction {
  /// Functions in fewer instructions, for results of 16 bits (kernel/ShortFunction.h).
  struct ShortForms {
    DeviceFunctionId forHalf, forBfloat16;
  };
  DeviceFunctionId id;
  std::string_view name;    ///< in CUDA: "weft::gelu"
  std::string_view header;  ///< that declares it: "weft/math.cuh"
  int operands;
  ScalarType result;
  std::optional<ShortForms> shortForms = {};
  /// Whether the short form needs its operand stored in the same 16 bits.
  bool isShortOfStored = false;
};
std::span<const DeviceFunction> deviceFunctions();
const DeviceFunction &deviceFunction(DeviceFunctionId id);
/// The function of this CUDA name; null where there is none.
const DeviceFunction *deviceFunction(std::string_view name);

enum class ScalarOperator : uint8_t {
  negate,
  multiply,
  divide,
  modulo,
  add,
  subtract,
  less,
  lessEqual,
  greater,
  greaterEqual,
  equal,
  notEqual,
  bitXor,
  both,    ///< &&
  either,  ///< ||
};

struct ExpressionNode {
  enum class Kind : uint8_t {
    operand,     ///< an element of operand `index`: {0}; children, if any, are its coordinates
    attribute,   ///< a numeric attribute: {epsilon}
    coordinate,  ///< of the element, along axis `index`: [2]
    literal,     ///< 0.5f, 3, weft::negativeInfinity
    unary,
    binary,
    select,  ///< condition ? first : second
    call,    ///< a device function
    member,  ///< .cosine or .sine of a rotation
  };
  Kind kind = Kind::literal;
  ScalarType type = ScalarType::f32;
  ScalarOperator operation = ScalarOperator::add;  ///< unary, binary
  int index = -1;                                  ///< operand, coordinate
  std::string name{};                              ///< attribute, member
  const DeviceFunction *function = nullptr;        ///< call
  double value = 0;                                ///< literal
  std::vector<int> children{};
  bool calls(DeviceFunctionId id) const { return kind == Kind::call && function->id == id; }
  bool operator==(const ExpressionNode &) const = default;
};

class Expression {
public:
  using Node = ExpressionNode;
  Expression() = default;

  /// Of the text that text() prints, none if that is empty. Throws Error(badInput) that names the
  /// place and what was expected there: an unknown function, an operator between types that it does
  /// not take.
  static Expression parse(std::string_view text);

  static Expression operand(int index, ScalarType type = ScalarType::f32);
  /// An element of an operand elsewhere: one coordinate (i32) for each of its dimensions.
  static Expression element(int index, const std::vector<Expression> &coordinates,
                            ScalarType type = ScalarType::f32);
  static Expression attribute(std::string name);
  static Expression coordinate(int axis);
  static Expression literal(double value);
  static Expression integer(int64_t value);
  static Expression unary(ScalarOperator operation, const Expression &operand);
  static Expression binary(ScalarOperator operation, const Expression &left,
                           const Expression &right);
  static Expression select(const Expression &condition, const Expression &first,
                           const Expression &second);
  static Expression call(DeviceFunctionId function, const std::vector<Expression> &operands);
  /// By its name in CUDA, as a text spells it.
  static Expression call(std::string_view function, const std::vector<Expression> &operands);
  static Expression member(std::string name, const Expression &rotation);

  bool empty() const { return nodes.empty(); }
  int root() const { return static_cast<int>(nodes.size()) - 1; }
  const Node &operator[](int node) const { return nodes[static_cast<size_t>(node)]; }
  std::span<const Node> all() const { return nodes; }

  /// What replaces a node and all below it in the text; nothing: it is printed as it is. What is
  /// given must bind as tightly as a name.
  using Replace = std::function<std::optional<std::string>(int node)>;
  /// With as few parentheses as the precedence of C allows.
  std::string text(const Replace &replace = {}) const { return textOf(root(), replace); }
  /// Of one node and what is below it.
  std::string textOf(int node, const Replace &replace = {}) const;

  /// "weft/math.cuh": one for each function that is called.
  std::set<std::string> headers() const;
  bool usesAttribute(std::string_view name) const;
  bool usesCoordinates() const;
  /// Whether it reads this operand, or any, at other coordinates than its element's.
  bool readsElsewhere(std::optional<int> operand = {}) const;
  /// Whether a node is, or has below it, an operand.
  bool readsOperand(int node) const;
  /// Whether it calls a function of the device library.
  bool callsFunction() const;
  /// Whether it adds or subtracts, and multiplies or divides: what is rounded on the way may be
  /// larger than the result.
  bool roundsOnTheWay() const;
  std::set<int> operands() const;

  /// With other axes: each coordinate becomes `axes` of it.
  Expression withAxes(const std::vector<AxisId> &axes) const;
  /// With another function in the place of one.
  Expression withFunction(const DeviceFunction &from, const DeviceFunction &to) const;

  bool operator==(const Expression &) const = default;

private:
  friend class ExpressionParser;
  int append(const Expression &other);
  static Expression of(Node node, const std::vector<Expression> &children);

  std::vector<Node> nodes;
};

}  // namespace weft

#endif  // WEFT_KERNEL_EXPRESSION_H
