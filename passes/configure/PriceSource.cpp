// Texts of sources of prices; see PriceSource.h.
#include "passes/configure/PriceSource.h"

#include <fmt/format.h>

namespace weft {

std::string PriceSource::text() const {
  return fmt::format("{}{}{}", name, details.empty() ? "" : fmt::format(" ({})", details), remark);
}

PriceSource PriceSource::of(std::string_view text) {
  constexpr std::string_view opening = " (", closing = " measurements)";
  const size_t end = text.rfind(closing);
  const size_t start =
      end == std::string_view::npos ? std::string_view::npos : text.rfind(opening, end);
  if (start == std::string_view::npos) return {.name = std::string(text)};
  const size_t after = end + closing.size(), details = start + opening.size();
  return {.name = std::string(text.substr(0, start)),
          .details = std::string(text.substr(details, after - 1 - details)),
          .remark = std::string(text.substr(after))};
}

}  // namespace weft
