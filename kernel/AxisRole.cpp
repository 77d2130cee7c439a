// The letters of axes; see AxisRole.h.
#include "kernel/AxisRole.h"

#include <algorithm>
#include <array>
#include <utility>

namespace weft {
namespace {

constexpr std::array<std::pair<AxisRole, std::string_view>, 16> axisLetters = {
    {{AxisRole::batch, "b"},
     {AxisRole::queries, "j"},
     {AxisRole::keys, "k"},
     {AxisRole::memoryPositions, "m"},
     {AxisRole::globalPositions, "a"},
     {AxisRole::otherPositions, "o"},
     {AxisRole::heads, "h"},
     {AxisRole::keyHeads, "g"},
     {AxisRole::headSize, "p"},
     {AxisRole::valueSize, "w"},
     {AxisRole::hidden, "i"},
     {AxisRole::feedForward, "u"},
     {AxisRole::vocabulary, "v"},
     {AxisRole::pages, "f"},
     {AxisRole::pagesOfSequence, "e"},
     {AxisRole::pagePositions, "c"}}};

}  // namespace

std::string_view letterOf(AxisRole role) {
  return std::ranges::find(axisLetters, role, [](const auto &one) { return one.first; })->second;
}

std::optional<AxisRole> axisRoleNamed(std::string_view label) {
  const auto found =
      std::ranges::find(axisLetters, label, [](const auto &one) { return one.second; });
  return found == axisLetters.end() ? std::nullopt : std::optional(found->first);
}

}  // namespace weft
