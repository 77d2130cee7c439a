// Who has bounds of segments; see TileBounds.h.
#include "kernel/TileBounds.h"

#include "kernel/CoordinateExpressions.h"

namespace weft {

std::optional<int> tileBoundsOf(const BodyOp &op) {
  if (!isDocumentMask(op) || op.operands.size() <= tileBoundsOperand) return std::nullopt;
  return op.operands[tileBoundsOperand];
}

bool isTileBounds(const Kernel &kernel, std::span<const size_t> ops, int value) {
  return std::ranges::any_of(
      ops, [&](size_t index) { return tileBoundsOf(kernel.body[index]) == value; });
}

}  // namespace weft
