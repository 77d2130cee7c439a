// Which elements a rotary embedding turns together: the words of its attribute `style`, in one
// table, and the axes of a kernel that an op of it turns.
//
// Invariant: nothing but this reads the word of a style.
#pragma once
#ifndef WEFT_KERNEL_ROTARY_STYLE_H  // beside a precompiled header of a compiler cache
#define WEFT_KERNEL_ROTARY_STYLE_H

#include "kernel/Kernel.h"

#include <optional>
#include <string_view>

namespace weft {

/// Pairs are (i, i + turned / 2) if halved, (2 i, 2 i + 1) if interleaved.
enum class RotaryStyle : uint8_t { halved, interleaved };
/// As the dialect writes it: "halved", "interleaved".
std::string_view nameOf(RotaryStyle style);
std::optional<RotaryStyle> rotaryStyleNamed(std::string_view name);
/// That of a rotary op; halved where it has no attribute `style`. Throws Error(checkFailed) where
/// the attribute names none, which the dialect's verifier rejects (rotary_c4).
RotaryStyle rotaryStyleOf(const BodyOp &rotary);

/// What a rotary op of a kernel turns; axes are the kernel's.
struct RotatedPairs {
  OpId op = 0;           ///< in Kernel::body
  AxisId pairs = -1;     ///< along which partners lie
  AxisId position = -1;  ///< that the angle is a multiple of
  AxisId among = -1;     ///< an axis of which [begin, end) alone is turned; -1: all is
  int64_t begin = 0, end = 0;
  int64_t extent = 2;  ///< of `pairs`
  int64_t turned = 2;  ///< elements of it that are pairs
  RotaryStyle style = RotaryStyle::halved;
  bool isReverse = false;
  bool operator==(const RotatedPairs &) const = default;
};
/// Nothing where the op is no rotary op, or lacks its expression or its attributes.
std::optional<RotatedPairs> rotatedPairs(const Kernel &kernel, OpId index);

}  // namespace weft

#endif  // WEFT_KERNEL_ROTARY_STYLE_H
