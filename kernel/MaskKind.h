// Which mask an op is.
#pragma once

#include "kernel/CoordinateExpressions.h"

namespace weft {

/// That of a mask; nothing for every other op, and for a word that names none.
std::optional<MaskShape::Kind> maskKind(const BodyOp &op);

/// Whether a padding mask says that its lengths are those of packed sequences (`packed`).
bool isMaskOfPacked(const BodyOp &op);

}  // namespace weft
