// Text of initial values; see InitialValue.h.
#include "kernel/InitialValue.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace weft {

std::string text(const InitialValue &value) {
  switch (value.kind) {
    case InitialValue::Kind::zeros: return "zeros";
    case InitialValue::Kind::ones: return "ones";
    case InitialValue::Kind::normal: break;
  }
  return fmt::format("normal({})", value.deviation);  // the shortest text of this number
}

std::optional<InitialValue> parseInitialValue(std::string_view text) {
  if (text == "zeros") return InitialValue::zeros();
  if (text == "ones") return InitialValue::ones();
  constexpr std::string_view opening = "normal(";
  if (!text.starts_with(opening) || !text.ends_with(')')) return std::nullopt;
  text.remove_prefix(opening.size());
  text.remove_suffix(1);
  double deviation = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), deviation,
                                              std::chars_format::general);
  if (problem != std::errc() || end != text.data() + text.size() || !std::isfinite(deviation) ||
      deviation <= 0)
    return std::nullopt;
  return InitialValue::normal(deviation);
}

}  // namespace weft
