// Which elements a rotary embedding turns together: the words of its attribute `style`, in one
// table.
//
// Invariant: nothing but this reads the word of a style.
#pragma once

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

}  // namespace weft
