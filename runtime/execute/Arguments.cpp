// See Arguments.h.
#include "runtime/execute/Arguments.h"

#include "kernel/Error.h"
#include "runtime/execute/Lengths.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace weft::runtime {
namespace {

/// Whether some kernel reads rows of a table at the tensor's elements.
bool holdsIndices(const Plan &plan, int tensor) {
  return plan.tensors[size_t(tensor)].dtype == DType::i32 &&
         std::ranges::any_of(plan.kernels, [&](const PlanKernel &kernel) {
           return std::ranges::count(kernel.inputs, tensor) > 0 &&
                  std::ranges::any_of(kernel.ops,
                                      [](const PlanOp &op) { return op.kind == OpKind::gather; });
         });
}

void checkIndices(const PlanTensor &tensor, std::span<const std::byte> elements,
                  std::string_view where) {
  for (size_t n = 0; n < elements.size() / sizeof(int32_t); ++n) {
    int32_t index = 0;
    std::memcpy(&index, elements.data() + n * sizeof(int32_t), sizeof(int32_t));
    if (index >= tensor.range[0] && index <= tensor.range[1]) continue;
    std::vector<int64_t> at(tensor.extents.size());
    size_t rest = n;
    for (size_t dimension = at.size(); dimension-- > 0;) {
      at[dimension] = int64_t(rest) % tensor.extents[dimension];
      rest /= size_t(tensor.extents[dimension]);
    }
    throw Error::badInput("{}: '{}' [{}] is {}, and its table has rows {} to {}", where,
                          tensor.logical, fmt::join(at, ", "), index, tensor.range[0],
                          tensor.range[1]);
  }
}

}  // namespace

bool isChecked(const Plan &plan, int tensor) {
  return plan.tensors[size_t(tensor)].countsTokens || holdsIndices(plan, tensor);
}

void checkInteger(const Plan &plan, int tensor, std::span<const std::byte> elements,
                  std::string_view where) {
  const PlanTensor &one = plan.tensors[size_t(tensor)];
  if (one.countsTokens) checkLengths(one, elements, where);
  if (holdsIndices(plan, tensor)) checkIndices(one, elements, where);
}

}  // namespace weft::runtime
