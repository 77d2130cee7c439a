// A tensor's layout by the names of its axes: what plans, pins and reports say of it.
#pragma once

#include "kernel/Configuration.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// The axes of a tensor by name, slowest first, and where its rows are padded the elements from one
/// to the next: "phbj" or, with longer names, "p,h,b,j"; "bju:4096".
struct NamedLayout {
  std::vector<std::string> order = {};
  int64_t pitch = 0;  ///< 0: rows lie one after another
  bool operator==(const NamedLayout &) const = default;
};

/// Of a tensor with these axes.
NamedLayout namedLayout(const Layout &layout, const std::vector<std::string> &axes,
                        const std::vector<int64_t> &extents);

/// Axes without commas where all have one letter: "hbjk", "q,k".
std::string joinAxes(const std::vector<std::string> &names);

/// "h,b,j,k" or "b,j,u:4096", as --pin takes it.
std::string print(const NamedLayout &layout);
/// "hbjk", "q,k" or "bju:4096"; "-" of no axes.
std::string shortText(const NamedLayout &layout);

/// What both of these print but "-". Without a comma every letter is an axis. Nothing where the
/// text after the colon is no number of elements.
std::optional<NamedLayout> parseNamedLayout(std::string_view text);

}  // namespace weft

/// As shortText.
template <>
struct fmt::formatter<weft::NamedLayout> : fmt::formatter<std::string_view> {
  auto format(const weft::NamedLayout &layout, fmt::format_context &context) const {
    return fmt::formatter<std::string_view>::format(weft::shortText(layout), context);
  }
};
