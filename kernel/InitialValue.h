// What a tensor that training updates holds before the first step: the layer that declares it says
// so, as attribute `weft.initial` of the graph's argument, and the plan carries it to whoever
// trains.
//
// Invariant: parseInitialValue(text(value)) is value, bit by bit.
#pragma once
#ifndef WEFT_KERNEL_INITIAL_VALUE_H  // beside a precompiled header of a compiler cache
#define WEFT_KERNEL_INITIAL_VALUE_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft {

struct InitialValue {
  enum class Kind : uint8_t { zeros, ones, normal };
  Kind kind = Kind::zeros;
  double deviation = 0;  ///< of normal, around zero: finite and positive
  bool operator==(const InitialValue &) const = default;

  static constexpr InitialValue zeros() { return {}; }
  static constexpr InitialValue ones() { return {.kind = Kind::ones}; }
  static constexpr InitialValue normal(double deviation) {
    return {.kind = Kind::normal, .deviation = deviation};
  }
};

/// "zeros", "ones", "normal(0.02)".
std::string text(const InitialValue &value);
/// Nothing for other text, and for a deviation that is not finite and positive.
std::optional<InitialValue> parseInitialValue(std::string_view text);
/// What parseInitialValue reads, for messages.
inline constexpr std::string_view initialValueForms =
    "\"zeros\", \"ones\" or \"normal(D)\" with a deviation D > 0";

}  // namespace weft

#endif  // WEFT_KERNEL_INITIAL_VALUE_H
