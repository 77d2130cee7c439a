// Coordinates of the whole in a kernel that runs on one chunk of an axis. A mask compares the
// positions of queries and keys, a rotation turns by a position, a slope follows from the number of
// a head: each is a coordinate of the chunk plus where the chunk starts. The op's expression says
// so, and its attributes do, dimension by dimension of its result:
//
//    origins   where the chunk starts
//    wholes    the extents of the whole
//
// An op without them stands in no chunk, or in one along axes whose coordinates it does not count.
#pragma once

#include "kernel/Kernel.h"

#include <optional>

namespace weft {

/// Whether an op counts coordinates along an axis: its expression reads them other than as the
/// place of an operand that has the axis itself, and so is there in chunks, too; or it reads such
/// an operand elsewhere.
bool countsAlong(const Kernel &kernel, const BodyOp &op, AxisId axis);
/// Makes the op count from `start`, on a chunk of an axis of `whole`, which has the whole extents.
/// False, and nothing is done, where it would read beyond the chunk of an operand, or is of a kind
/// whose meaning nothing counts so: a rotation along its pairs, packed tokens.
bool countFrom(const Kernel &whole, BodyOp &op, AxisId axis, int64_t start);

/// A coordinate of an op's result as one of the whole, and the extent there.
int64_t placeInWhole(const BodyOp &op, size_t dimension, int64_t place);
int64_t extentOfWhole(const Kernel &kernel, const BodyOp &op, size_t dimension);

}  // namespace weft
