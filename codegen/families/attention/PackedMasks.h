// A fused attention over packed tokens without the masks that packing makes needless.
//
// A kernel that ends at the last token of a sequence computes no score of a key behind it, and
// stores no row of a query behind it. Masks by the lengths of the same sequences (weft.mask padding
// .. {packed}) then say nothing more, and cost the load of a length and a comparison a score.
#pragma once

#include "kernel/Kernel.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace weft {

struct KernelOfTokens {
  Kernel kernel;  ///< the same inputs, values and outputs; those of the masks are read no more
  /// Whether any of the masks left out keys. Without one these are zeros, which queries see.
  bool endsAtTokens = false;
  std::vector<OpId> places;  ///< of each op of its body: which of the other kernel's body it is
  uint64_t number = 0;       ///< for a SteadyKernel
};

/// Null where the kernel is no attention over packed tokens, or has no such mask.
std::shared_ptr<const KernelOfTokens> withoutMasksOfPacked(const Kernel &kernel);

}  // namespace weft
