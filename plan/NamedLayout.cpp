// Layouts to text and back; see NamedLayout.h.
#include "plan/NamedLayout.h"

#include <algorithm>
#include <charconv>

namespace weft {

NamedLayout namedLayout(const Layout &layout, const std::vector<std::string> &axes,
                        const std::vector<int64_t> &extents) {
  NamedLayout result{.pitch = pitchOf(layout, extents).value_or(0)};
  for (const int dimension : layout.order) result.order.push_back(axes[size_t(dimension)]);
  return result;
}

std::string joinAxes(const std::vector<std::string> &names) {
  const bool areLetters =
      std::ranges::all_of(names, [](const std::string &name) { return name.size() == 1; });
  return fmt::format("{}", fmt::join(names, areLetters ? "" : ","));
}

static std::string withPitch(std::string order, int64_t pitch) {
  return pitch > 0 ? fmt::format("{}:{}", order, pitch) : order;
}

std::string print(const NamedLayout &layout) {
  return withPitch(fmt::format("{}", fmt::join(layout.order, ",")), layout.pitch);
}

std::string shortText(const NamedLayout &layout) {
  return layout.order.empty() ? "-" : withPitch(joinAxes(layout.order), layout.pitch);
}

std::optional<NamedLayout> parseNamedLayout(std::string_view text) {
  NamedLayout result;
  const size_t colon = text.find(':');
  std::string_view order = text.substr(0, colon);
  if (order.find(',') == order.npos)
    for (const char letter : order) result.order.emplace_back(1, letter);
  else
    for (bool hasMore = true; hasMore;) {
      const size_t comma = order.find(',');
      result.order.emplace_back(order.substr(0, comma));
      hasMore = comma != order.npos;
      if (hasMore) order.remove_prefix(comma + 1);
    }
  if (colon == text.npos) return result;
  const char *const begin = text.data() + colon + 1, *const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, result.pitch);
  if (error != std::errc() || stop != end || result.pitch < 1) return std::nullopt;
  return result;
}

}  // namespace weft
