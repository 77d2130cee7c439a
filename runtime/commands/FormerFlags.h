// What flags of weft and weft-run were called before: both name the present one to who types the
// former.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::runtime {

inline constexpr std::array<std::pair<std::string_view, std::string_view>, 3> formerFlags{
    {{"--branches", "--concurrent"}, {"--parts", "--chunks"}, {"--parts-only", "--chunks-only"}}};

/// "--branches is now --concurrent", and that the command lacks it where it is not among `known`,
/// the command's flags; empty for what was never a flag.
inline std::string formerFlagHint(std::string_view flag, const std::vector<std::string> &known,
                                  const std::string &command) {
  const auto *const found =
      std::ranges::find(formerFlags, flag, &std::pair<std::string_view, std::string_view>::first);
  if (found == formerFlags.end()) return "";
  const std::string hint = fmt::format("{} is now {}", flag, found->second);
  if (std::ranges::find(known, found->second) != known.end()) return hint;
  return fmt::format("{}, which {} does not have ({} --help lists all)", hint, command, command);
}

}  // namespace weft::runtime
