// Random elements and summaries; see RandomInputs.h.
#include "runtime/execute/RandomInputs.h"

#include "kernel/Pages.h"
#include "kernel/RandomValues.h"
#include "kernel/reference/Rounding.h"
#include "kernel/reference/StoredElement.h"
#include "plan/TensorLayout.h"
#include "runtime/execute/Executor.h"
#include "runtime/execute/Lengths.h"

#include <cmath>

namespace weft::runtime {

std::vector<std::byte> randomElements(const PlanTensor &tensor, uint64_t seed) {
  const RandomValues values(seed, tensor.logical);
  const DType dtype = tensor.dtype;
  const bool isInteger = dtype == DType::i32 || dtype == DType::i1;
  if (dtype == DType::i1 && tensor.countsTokens) {  // a mask over (sequences, positions)
    std::vector<int32_t> lengths(size_t(tensor.extents.at(0)));
    for (size_t n = 0; n < lengths.size(); ++n)
      lengths[n] = int32_t(values.integer(int64_t(n), 0, tensor.extents.at(1)));
    return prefixMask(tensor, lengths);
  }
  const int64_t size = sizeOf(dtype), count = elementCount(tensor);
  std::vector<std::byte> elements(size_t(count * size));
  const int64_t entries = tensor.pagePositions > 0 ? tensor.extents[1] : 1;
  const ShuffledPages pages(tensor.pagePositions > 0 ? tensor.extents[0] : 1, tensor.range[1] + 1,
                            values.bits(0));
  for (int64_t n = 0; n < count; ++n) {
    double value = tensor.pagePositions > 0 ? double(pages.entry(n / entries, n % entries))
                   : isInteger ? double(values.integer(n, tensor.range[0], tensor.range[1]))
                               : values.real(n, tensor.scale);
    if (tensor.positive) value = 0.5 + std::abs(value);  // away from zero
    reference::storeElement(dtype, elements.data() + n * size, reference::roundTo(dtype, value));
  }
  return elements;
}

void setRandomInputs(Executor &executor, const EntryPoint &entry, uint64_t seed) {
  for (const std::string &name : executor.parameters())
    executor.setParameter(name, randomElements(executor.parameter(name), seed));
  for (const int input : entry.inputs)
    if (const PlanTensor &tensor = executor.plan().tensors[size_t(input)];
        tensor.role == TensorRole::argument)
      executor.write(input, randomElements(tensor, seed));
}

ElementSummary summarize(const PlanTensor &tensor, std::span<const std::byte> elements) {
  const DType dtype = tensor.dtype;
  ElementSummary summary{.count = elementCount(tensor), .minimum = HUGE_VAL, .maximum = -HUGE_VAL};
  double sum = 0;
  for (int64_t n = 0; n < summary.count; ++n) {
    const double value = reference::loadElement(dtype, elements.data() + n * sizeOf(dtype));
    if (std::isnan(value)) ++summary.notNumbers;
    else if (std::isinf(value)) ++summary.infinities;
    else {
      summary.minimum = std::min(summary.minimum, value);
      summary.maximum = std::max(summary.maximum, value);
      sum += value;
    }
  }
  const int64_t finite = summary.count - summary.notNumbers - summary.infinities;
  summary.mean = sum / double(finite);
  if (finite == 0) summary.minimum = summary.maximum = summary.mean = std::nan("");
  return summary;
}

}  // namespace weft::runtime
