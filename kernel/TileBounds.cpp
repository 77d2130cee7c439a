// Who has bounds of segments; see TileBounds.h.
#include "kernel/TileBounds.h"

#include "kernel/CoordinateExpressions.h"

namespace weft {

std::optional<ValueId> tileBoundsOf(const BodyOp &op) {
  if (!isDocumentMask(op) || op.operands.size() <= tileBoundsOperand) return std::nullopt;
  return op.operands[tileBoundsOperand];
}

bool isTileBounds(const Kernel &kernel, std::span<const OpId> ops, ValueId value) {
  return std::ranges::any_of(ops,
                             [&](OpId index) { return tileBoundsOf(kernel.body[index]) == value; });
}

}  // namespace weft
