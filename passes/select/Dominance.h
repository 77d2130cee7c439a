// Whether one state of a layer is as good as another one by transposes alone.
#pragma once

#include "passes/select/FinishedOpLattice.h"
#include "passes/select/Outcomes.h"

namespace weft::select {

class Dominance {
public:
  Dominance(const Layer &layer, const Prices &prices);

  /// Whether a state with `from` can be brought to the layouts `to` within `seconds`, which may be
  /// negative.
  bool reaches(MaskView from, MaskView to, double seconds) const;

private:
  const Layer &layer;
  const Prices &prices;
  double leastTranspose = infinite;  ///< of any tracked tensor
};

}  // namespace weft::select
