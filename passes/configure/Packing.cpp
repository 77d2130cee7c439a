// Views of operands inside a packed result, per movement op; see Packing.h.
#include "passes/configure/Packing.h"

#include "kernel/Attributes.h"
#include "passes/configure/Family.h"

#include <algorithm>

namespace weft {
namespace {

/// The operands follow each other along the joined axis.
std::vector<Layout> concatOperands(const Kernel &kernel, Layout part) {
  const auto axis = static_cast<size_t>(attributeOf(kernel.body[0], attribute::axis));
  std::vector<Layout> operands;
  for (ValueId input : kernel.inputs) {
    operands.push_back(part);
    part.offset += extentsOf(kernel, input)[axis] * part.strides[axis];
  }
  return operands;
}

/// Splits the merged axis into its original axes: adjacent, slowest first.
Layout mergeOperand(const Kernel &kernel, const Layout &result) {
  const auto axis = static_cast<int>(attributeOf(kernel.body[0], attribute::axis));
  const auto count = static_cast<int>(attributeOf(kernel.body[0], attribute::count));
  const std::vector<int64_t> extents = extentsOf(kernel, kernel.inputs[0]);
  Layout operand{
      .order = {}, .strides = std::vector<int64_t>(extents.size()), .offset = result.offset};
  for (int dimension : result.order)
    for (int part = 0; part < (dimension == axis ? count : 1); ++part)
      operand.order.push_back(dimension > axis ? dimension + count - 1 : dimension + part);
  for (auto dimension = static_cast<int>(extents.size()) - 1; dimension >= 0; --dimension) {
    const auto d = static_cast<size_t>(dimension);
    const bool isFasterPartNext = dimension >= axis && dimension < axis + count - 1;
    const int whole = dimension < axis ? dimension : std::max(axis, dimension - count + 1);
    operand.strides[d] = isFasterPartNext ? operand.strides[d + 1] * extents[d + 1]
                                          : result.strides[static_cast<size_t>(whole)];
  }
  return operand;
}

/// Dimension i of the result is dimension permutation[i] of the operand.
Layout transposeOperand(const Kernel &kernel, const Layout &result) {
  const auto &permutation = attributeOf(kernel.body[0], attribute::permutation);
  Layout operand{
      .order = {}, .strides = std::vector<int64_t>(permutation.size()), .offset = result.offset};
  for (int dimension : result.order)
    operand.order.push_back(static_cast<int>(permutation[static_cast<size_t>(dimension)]));
  for (size_t i = 0; i < permutation.size(); ++i)
    operand.strides[static_cast<size_t>(permutation[i])] = result.strides[i];
  return operand;
}

}  // namespace

bool isPackedAtLoad(const Kernel &kernel) {
  if (kernel.body.size() != 1 || kernel.outputs.size() != 1) return false;
  if (kernel.inputs.size() != kernel.body[0].operands.size())
    return false;  // an operand twice has no separate place
  const OpKind op = kernel.body[0].kind;
  return op == OpKind::concat || op == OpKind::mergeAxes || op == OpKind::transpose ||
         op == OpKind::identity;
}

std::vector<Layout> packedOperands(const Kernel &kernel, const Layout &result) {
  const Layout whole{.order = result.order,
                     .strides = stridesOf(result, extentsOf(kernel, kernel.outputs[0])),
                     .offset = result.offset};
  const OpKind op = kernel.body[0].kind;
  if (op == OpKind::concat) return concatOperands(kernel, whole);
  if (op == OpKind::mergeAxes) return {mergeOperand(kernel, whole)};
  if (op == OpKind::transpose) return {transposeOperand(kernel, whole)};
  return {whole};
}

}  // namespace weft
