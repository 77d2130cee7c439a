// Masks that packing makes needless; see PackedMasks.h.
#include "codegen/families/attention/PackedMasks.h"

#include "codegen/families/attention/ScoreMasks.h"
#include "kernel/AttentionRegion.h"
#include "kernel/Attributes.h"
#include "kernel/MaskKind.h"
#include "kernel/RecentAnswers.h"

#include <algorithm>

namespace weft {
namespace {

/// The axis that a mask compares with lengths; -1 where these are not those of the sequences.
AxisId axisOfMask(const Kernel &kernel, const PackedTokens &packed, const BodyOp &op) {
  if (!isMaskOfPacked(op) || hasAttribute(op, attribute::fill)) return -1;
  const std::vector<AxisId> &axes = kernel.values[size_t(op.operands[0])].axes;
  const auto &along = attributeOf(op, attribute::along);
  if (along.size() != 1 || axes[size_t(along.front())] != packed.sequences) return -1;
  return axes[size_t(attributeOf(op, attribute::key))];
}

std::shared_ptr<const KernelOfTokens> build(const Kernel &kernel) {
  if (std::ranges::none_of(kernel.body, isMaskOfPacked)) return nullptr;
  const Expected<AttentionRegion, Reason> region = attentionRegion(kernel);
  if (!region || !region->packed) return nullptr;
  KernelOfTokens result{.kernel = kernel, .number = SteadyKernel::newNumber()};
  std::vector<BodyOp> &body = result.kernel.body;
  body.clear();
  std::vector<ValueId> standsFor(kernel.values.size());
  for (size_t value = 0; value < standsFor.size(); ++value) standsFor[value] = int(value);
  for (int op = 0; op < std::ssize(kernel.body); ++op) {
    const BodyOp &own = kernel.body[op];
    const auto scoreOp = std::ranges::find(region->scoreOps, OpId(op));
    const AxisId axis =
        scoreOp == region->scoreOps.end() ? AxisId(-1) : axisOfMask(kernel, *region->packed, own);
    const bool ofKeys =
        axis >= 0 && axis == region->keyAxis &&
        codegen::reachesFold(kernel, *region, size_t(scoreOp - region->scoreOps.begin()));
    if (ofKeys || (axis >= 0 && axis == region->packed->positions)) {
      standsFor[size_t(own.results[0])] = standsFor[size_t(own.operands[0])];
      result.endsAtTokens = result.endsAtTokens || ofKeys;
      continue;
    }
    body.push_back(own);
    result.places.push_back(op);
    for (ValueId &operand : body.back().operands) operand = standsFor[size_t(operand)];
  }
  if (body.size() == kernel.body.size()) return nullptr;
  return std::make_shared<const KernelOfTokens>(std::move(result));
}

}  // namespace

std::shared_ptr<const KernelOfTokens> withoutMasksOfPacked(const Kernel &kernel) {
  thread_local RecentAnswers<std::shared_ptr<const KernelOfTokens>> recent;
  return recent.of([&] { return build(kernel); }, kernel);
}

}  // namespace weft
