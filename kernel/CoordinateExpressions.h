// The expressions of element-wise ops that depend on where an element lies: masks and rotary
// embedding. Coordinates are those of the op's dimensions (Expression::withAxes makes them axes of
// a kernel).
#pragma once

#include "kernel/Expression.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace weft {

/// Which keys a query sees; others become `fill`. Queries are aligned to the end of the keys:
/// `shift` is the number of keys less that of queries.
struct MaskShape {
  enum class Kind : uint8_t {
    causal,   ///< key <= query + shift
    window,   ///< query + shift - left <= key <= query + shift + right
    padding,  ///< key < length, the op's second operand
    block     ///< where the second operand has no zero for the block of `size` x `size`
  };
  Kind kind = Kind::causal;
  int key = 0, query = 0;       ///< dimensions
  int64_t shift = 0;            ///< of causal and window
  int64_t left = 0, right = 0;  ///< of a window
  int64_t size = 1;             ///< of a block
  double fill = -std::numeric_limits<double>::infinity();
};
/// As the dialect writes it: "causal", "padding".
std::string_view nameOf(MaskShape::Kind kind);
std::optional<MaskShape::Kind> maskKindNamed(std::string_view name);
Expression maskExpression(const MaskShape &mask);

/// Pairs are (i, i + half) if halved, (2i, 2i + 1) if interleaved: x of the pair's first turns into
/// x cos - partner sin, that of its second into x cos + partner sin (RoFormer, section 3.4.2); the
/// other way around in reverse, as gradients do.
struct RotaryShape {
  bool isHalved = true, isReverse = false;
  int dimension = 0, position = 0;  ///< dimensions: of the pairs, and of the angle's factor
  int rank = 1;                     ///< dimensions of the operand
  int64_t extent = 2;               ///< of `dimension`
  double base = 10000;
};
Expression rotaryExpression(const RotaryShape &rotary);

}  // namespace weft
