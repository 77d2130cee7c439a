// See Arguments.h.
#include "runtime/execute/Arguments.h"

#include "kernel/Error.h"
#include "runtime/execute/Lengths.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace weft::runtime {
namespace {

/// Whether some kernel reads rows of a table at the tensor's elements, or at those that another
/// moves elsewhere, e.g. packs.
bool holdsIndices(const Plan &plan, int tensor) {
  std::vector<int> reached = {tensor};
  for (size_t next = 0; next < reached.size(); ++next) {
    if (plan.tensors[size_t(reached[next])].dtype != DType::i32) continue;
    for (const PlanKernel &kernel : plan.kernels) {
      if (std::ranges::count(kernel.inputs, reached[next]) == 0) continue;
      if (std::ranges::any_of(kernel.ops,
                              [](const PlanOp &op) { return op.kind == OpKind::gather; }))
        return true;
      const std::string &name = plan.tensors[size_t(reached[next])].logical;
      const bool isMoved = std::ranges::any_of(kernel.ops, [&](const PlanOp &op) {
        return !op.operands.empty() && op.operands[0] == name;  // what others are is no element
      });
      for (const int output : kernel.outputs)
        if (isMoved && std::ranges::count(reached, output) == 0) reached.push_back(output);
    }
  }
  return false;
}

/// Of a tensor that a kernel packs an argument into, which of both callers know; empty for others.
std::string packedFrom(const Plan &plan, int tensor) {
  for (const PlanKernel &kernel : plan.kernels) {
    if (std::ranges::count(kernel.outputs, tensor) == 0) continue;
    for (const PlanOp &op : kernel.ops)
      for (const int input : kernel.inputs)
        if (const PlanTensor &source = plan.tensors[size_t(input)];
            op.kind == OpKind::pack && op.operands.at(0) == source.logical &&
            source.role == TensorRole::argument)
          return fmt::format(" (packed from '{}')", source.logical);
  }
  return "";
}

/// Whether some kernel reads where sequences begin among tokens from the tensor.
bool holdsOffsets(const Plan &plan, int tensor) {
  const PlanTensor &one = plan.tensors[size_t(tensor)];
  if (one.dtype != DType::i32) return false;
  return std::ranges::any_of(plan.kernels, [&](const PlanKernel &kernel) {
    return std::ranges::any_of(kernel.ops, [&](const PlanOp &op) {
      return (op.kind == OpKind::pack || op.kind == OpKind::unpack) && op.operands.size() > 1 &&
             op.operands[1] == one.logical;
    });
  });
}

Error indexError(const Plan &plan, int tensor, int64_t index, int64_t place,
                 std::string_view where) {
  const PlanTensor &one = plan.tensors[size_t(tensor)];
  std::vector<int64_t> at(one.extents.size());
  for (size_t dimension = at.size(); dimension-- > 0;) {
    at[dimension] = place % one.extents[dimension];
    place /= one.extents[dimension];
  }
  return Error::badInput("{}: '{}' [{}]{} is {}, and its table has rows {} to {}", where,
                         one.logical, fmt::join(at, ", "), packedFrom(plan, tensor), index,
                         one.range[0], one.range[1]);
}

void checkIndices(const Plan &plan, int tensor, std::span<const std::byte> elements,
                  std::string_view where) {
  const std::array<int64_t, 2> &range = plan.tensors[size_t(tensor)].range;
  for (size_t n = 0; n < elements.size() / sizeof(int32_t); ++n) {
    int32_t index = 0;
    std::memcpy(&index, elements.data() + n * sizeof(int32_t), sizeof(int32_t));
    if (index < range[0] || index > range[1])
      throw indexError(plan, tensor, index, int64_t(n), where);
  }
}

}  // namespace

bool isChecked(const Plan &plan, int tensor) {
  return plan.tensors[size_t(tensor)].countsTokens || holdsIndices(plan, tensor) ||
         holdsOffsets(plan, tensor);
}

void checkInteger(const Plan &plan, int tensor, std::span<const std::byte> elements,
                  std::string_view where) {
  const PlanTensor &one = plan.tensors[size_t(tensor)];
  if (one.countsTokens) checkLengths(one, elements, where);
  if (!one.countsTokens && holdsIndices(plan, tensor)) checkIndices(plan, tensor, elements, where);
  if (holdsOffsets(plan, tensor)) checkOffsets(one, elements, where);
}

Error reportedError(const Plan &plan, int tensor, const ReportedElement &element,
                    std::string_view where) {
  const PlanTensor &one = plan.tensors[size_t(tensor)];
  const bool isOfTokens = one.countsTokens || one.dtype != DType::i32;
  return isOfTokens ? elementError(one, element.value, element.place, where)
                    : indexError(plan, tensor, element.value, element.place, where);
}

}  // namespace weft::runtime
