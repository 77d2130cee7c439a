// What the axes of a layer are: the letters that models label axes and dims with, in one table. A
// graph may label its axes otherwise: their roles are then not known.
//
// Invariant: models give the letters, and all others ask this table what a letter stands for.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft {

enum class AxisRole : uint8_t {
  batch,
  queries,
  keys,
  memoryPositions,
  globalPositions,  ///< the first positions, which see all
  otherPositions,   ///< those behind them
  heads,            ///< of queries
  keyHeads,
  headSize,
  valueSize,  ///< of a head of values
  hidden,
  feedForward,
  vocabulary,
  pages,
  pagesOfSequence,  ///< of a model without pages the columns of a pooler
  pagePositions,
};
/// "h".
std::string_view letterOf(AxisRole role);
/// Nothing: models label no such axis so.
std::optional<AxisRole> axisRoleNamed(std::string_view label);

}  // namespace weft
