// Bounds of the segments of a document mask: of every `boundedTile` neighbouring positions the
// least and the greatest segment, so that whoever has a tile of scores knows without its segments
// whether a mask leaves nothing of it, or all.
//
// A mask that has them as its third operand computes what it computes without: they are a hint, and
// no element reads them.
#pragma once

#include "kernel/Kernel.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

namespace weft {

constexpr int64_t boundedTile = 32;  ///< neighbouring positions
constexpr int64_t boundsOfTile = 2;  ///< the last axis: the least, then the greatest
constexpr size_t segmentsOperand = 1, tileBoundsOperand = 2;  ///< of a document mask

inline int64_t boundedTiles(int64_t positions) {
  return positions / boundedTile + (positions % boundedTile != 0);
}

/// The value that bounds the segments of a document mask; nothing where no op gave it any.
std::optional<ValueId> tileBoundsOf(const BodyOp &op);
/// Whether a value bounds the segments of any of these ops.
bool isTileBounds(const Kernel &kernel, std::span<const OpId> ops, ValueId value);

}  // namespace weft
