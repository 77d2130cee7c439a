// See Append.h.
#include "kernel/Append.h"

#include "kernel/Attributes.h"

#include <algorithm>

namespace weft {
namespace {

bool isAppended(const Kernel &kernel, ValueId value, size_t operand) {
  const BodyOp *const append = appendOf(kernel);
  return append && append->operands[operand] == value;
}

}  // namespace

const BodyOp *appendOf(const Kernel &kernel) {
  return !kernel.body.empty() && kernel.body.back().kind == OpKind::append ? &kernel.body.back()
                                                                           : nullptr;
}

size_t appendAxis(const BodyOp &append) { return size_t(attributeOf(append, attribute::axis)); }

size_t appendAlong(const BodyOp &append) {
  return size_t(attributeOf(append, attribute::along).at(0));
}

int64_t mostCached(const Kernel &kernel, const BodyOp &append) {
  const auto extent = [&](size_t operand, size_t dimension) {
    const ValueId value = append.operands[operand];
    return kernel.axes[size_t(kernel.values[size_t(value)].axes[dimension])].extent;
  };
  const size_t axis = appendAxis(append);
  return extent(appendedCache, axis) * (isPaged(append) ? extent(appendTable, 1) : 1) -
         extent(appendedTokens, axis);
}

std::string appendRejection(const Kernel &kernel) {
  const auto isAppend = [](const BodyOp &op) { return op.kind == OpKind::append; };
  const auto count = std::ranges::count_if(kernel.body, isAppend);
  if (count == 0) return "";
  const BodyOp *const append = appendOf(kernel);
  if (count > 1 || !append) return "'append' is the last op of its kernel";
  if (kernel.outputs != append->results) return "'append' has the only result of its kernel";
  const ValueId cache = append->operands[appendedCache];
  if (std::ranges::find(kernel.inputs, cache) == kernel.inputs.end())
    return "the cache of 'append' is computed";
  const auto reads = [&](const BodyOp &op) {
    return std::ranges::find(op.operands, cache) != op.operands.end();
  };
  return std::ranges::count_if(kernel.body, reads) == 1 ? ""
                                                        : "an op beside 'append' reads its cache";
}

const std::vector<AxisId> &walkedAxes(const Kernel &kernel, ValueId value) {
  const BodyOp *const append = appendOf(kernel);
  const bool isResult = append && append->results.front() == value;
  return kernel.values[size_t(isResult ? append->operands[appendedTokens] : value)].axes;
}

int64_t movedElements(const Kernel &kernel, ValueId value) {
  if (isAppended(kernel, value, appendedCache)) return 0;
  const auto elementsAlong = [&](const std::vector<AxisId> &axes) {
    int64_t elements = 1;
    for (const AxisId axis : axes) elements *= kernel.axes[size_t(axis)].extent;
    return elements;
  };
  const int64_t all = elementsAlong(walkedAxes(kernel, value));
  int64_t read = 0;
  for (const BodyOp &op : kernel.body) {
    const auto reads = std::ranges::count(op.operands, value);
    if (reads == 0) continue;
    const bool isOfSome =
        reads == 1 && op.operands.front() == value &&
        (op.kind == OpKind::gather || op.kind == OpKind::gatherPages || op.kind == OpKind::slice);
    if (!isOfSome) return all;
    const int64_t taken = elementsAlong(kernel.values[size_t(op.results.front())].axes);
    if (op.kind == OpKind::gatherPages) return taken;  // pages that no sequence has are none of it
    read += taken;
  }
  return read > 0 ? std::min(all, read) : all;
}

}  // namespace weft
