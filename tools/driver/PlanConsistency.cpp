// A plan held against its graph; see PlanConsistency.h.
#include "tools/driver/PlanConsistency.h"

#include "kernel/Error.h"

#include <algorithm>
#include <map>
#include <set>

namespace weft::driver {
namespace {

void checkOperand(const runtime::PlanTensor &tensor, const Kernel &kernel, int value, const std::string &where) {
  const Value &operand = kernel.values[size_t(value)];
  std::vector<int64_t> extents;
  for (const int axis : operand.axes) extents.push_back(kernel.axes[size_t(axis)].extent);
  if (tensor.extents != extents)
    throw Error::badInput("{}: tensor '{}' has extents [{}], but [{}] in graph.mlir (kernel '{}'); extents are changed by "
                          "compiling again with --dim", where, tensor.name, fmt::join(tensor.extents, ", "),
                          fmt::join(extents, ", "), kernel.name);
  if (tensor.dtype != nameOf(operand.dtype))
    throw Error::badInput("{}: tensor '{}' has dtype {}, but {} in graph.mlir (kernel '{}'); element types are changed by "
                          "compiling again with --dtype", where, tensor.name, tensor.dtype, nameOf(operand.dtype),
                          kernel.name);
}

int64_t bytesOf(const runtime::PlanTensor &tensor) {
  int64_t bytes = sizeOf(*parseDType(tensor.dtype));
  for (const int64_t extent : tensor.extents) bytes *= extent;
  return bytes;
}

/// Extents by axis name; a name may have several, where a rewrite cut an axis into pieces.
std::map<std::string, std::set<int64_t>> extentsByName(const runtime::Plan &plan) {
  std::map<std::string, std::set<int64_t>> extents;
  for (const runtime::PlanTensor &tensor : plan.tensors)
    for (size_t dimension = 0; dimension < tensor.axes.size(); ++dimension)
      extents[tensor.axes[dimension]].insert(tensor.extents[dimension]);
  return extents;
}

}  // namespace

void checkOperands(const runtime::Plan &plan, const runtime::PlanKernel &entry, const Kernel &kernel,
                   const std::string &where) {
  for (size_t input = 0; input < entry.inputs.size(); ++input)
    checkOperand(plan.tensors[size_t(entry.inputs[input])], kernel, kernel.inputs[input], where);
  for (size_t output = 0; output < entry.outputs.size(); ++output)
    checkOperand(plan.tensors[size_t(entry.outputs[output])], kernel, kernel.outputs[output], where);
}

void checkHeader(const runtime::Plan &plan, const std::string &where) {
  const auto extents = extentsByName(plan);
  for (const auto &[name, extent] : plan.dims)
    if (const auto found = extents.find(name); found != extents.end() && !found->second.contains(extent))
      throw Error::badInput("{}: dims.{} is {}, but axis {} of the tensors has extent {}", where, name, extent, name,
                            fmt::join(found->second, " or "));
  const auto argument = std::ranges::find(plan.tensors, "argument", &runtime::PlanTensor::role);
  if (argument != plan.tensors.end() && argument->dtype != plan.dtype)
    throw Error::badInput("{}: dtype is \"{}\", but argument '{}' is {}", where, plan.dtype, argument->name,
                          argument->dtype);
  for (const runtime::PlanTensor &tensor : plan.tensors)
    if (tensor.bytes != bytesOf(tensor))
      throw Error::badInput("{}: tensor '{}' has {} bytes, but its extents and dtype {} make {}", where, tensor.name,
                            tensor.bytes, tensor.dtype, bytesOf(tensor));
}

}  // namespace weft::driver
