// Prices at the optimistic end of estimates. Selection prices an estimate at its mean plus a margin
// (Margins.h), so that an unmeasured kernel is chosen only where it is expected to win. Where plans
// are measured before one is kept, that end would leave out what only a measurement can tell: there
// an estimate competes at its mean less the margin.
#pragma once

#include "passes/configure/CostModel.h"

#include <memory>

namespace weft {

/// An estimate at the other end of its margin: mean plus margin becomes mean less margin, with
/// Cost::margin below 0, and back. Measurements have no margin and stay.
Cost atOtherEnd(Cost cost);

/// `prices`, which outlive it, with every estimate at its optimistic end.
std::unique_ptr<CostModel> optimisticCostModel(const CostModel &prices);

}  // namespace weft
