// The letters of axes; see AxisRole.h.
#include "kernel/AxisRole.h"

#include "kernel/WordTable.h"

namespace weft {
namespace {

constexpr WordTable<AxisRole, 16> axisLetters = {{{AxisRole::batch, "b"},
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

std::string_view letterOf(AxisRole role) { return wordOf(axisLetters, role); }

std::optional<AxisRole> axisRoleNamed(std::string_view label) {
  return valueNamed(axisLetters, label);
}

}  // namespace weft
