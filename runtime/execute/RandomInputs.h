// Seeded random values for a plan's arguments and parameters (kernel/RandomValues.h), and summaries
// of tensors.
#pragma once

#include "runtime/artifact/Artifact.h"

#include <cstddef>
#include <span>

namespace weft {
struct EntryPoint;
}

namespace weft::runtime {

class Executor;

/// Logical row-major elements of the tensor: floats with deviation tensor.scale, or at least
/// 0.5 where tensor.positive; integers within tensor.range. Drawn by the tensor's logical name, so
/// that every layout and every plan of a model gets the same values.
std::vector<std::byte> randomElements(const PlanTensor &tensor, uint64_t seed);

/// Random parameters, and random inputs of the entry point.
void setRandomInputs(Executor &executor, const EntryPoint &entry, uint64_t seed);

struct ElementSummary {
  int64_t count = 0, notNumbers = 0, infinities = 0;
  double minimum = 0, maximum = 0, mean = 0;  ///< of the finite elements; NaN if there is none
};
ElementSummary summarize(const PlanTensor &tensor, std::span<const std::byte> elements);

}  // namespace weft::runtime
