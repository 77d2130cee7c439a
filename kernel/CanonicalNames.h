// Names that do not depend on the model: axes a0, a1, ... in order of first use, values v0, v1, ...
// in order of definition. Shared by the canonical text of kernels and of configurations, so that
// the two agree.
#pragma once
#ifndef WEFT_KERNEL_CANONICAL_NAMES_H  // beside a precompiled header of a compiler cache
#define WEFT_KERNEL_CANONICAL_NAMES_H

#include "kernel/Kernel.h"

#include <string>
#include <vector>

namespace weft {

class CanonicalNames {
public:
  explicit CanonicalNames(const Kernel &kernel);

  std::string axis(AxisId axis) const;
  std::string value(ValueId value) const;
  /// "v0 f16[a0,a1]".
  std::string typed(const Kernel &kernel, ValueId value) const;
  /// Kernel axes in order of first use; axes that nothing uses are absent.
  const std::vector<AxisId> &axesInOrder() const { return axisOrder; }

private:
  std::vector<int> axisNumbers, valueNumbers;
  std::vector<AxisId> axisOrder;
};

}  // namespace weft

#endif  // WEFT_KERNEL_CANONICAL_NAMES_H
