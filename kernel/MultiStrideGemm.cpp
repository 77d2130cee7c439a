// Factors of groups; see MultiStrideGemm.h.
#include "kernel/MultiStrideGemm.h"

#include "kernel/ContractionRegion.h"

#include <algorithm>

namespace weft {
namespace {

using Strides = std::map<AxisId, int64_t>;  ///< by axis longer than 1

std::vector<AxisId> ordered(std::vector<AxisId> group, const Strides &strides) {
  std::ranges::sort(group, std::greater(), [&](AxisId axis) { return strides.at(axis); });
  return group;
}

/// `group`: slowest first.
GroupFactors factorsOf(const Kernel &kernel, const std::vector<AxisId> &group,
                       const Strides &strides) {
  GroupFactors factors;
  for (auto axis = group.rbegin(); axis != group.rend(); ++axis) {
    const int64_t extent = kernel.axes[size_t(*axis)].extent, stride = strides.at(*axis);
    if (factors.empty() || factors.back().stride * factors.back().extent != stride)
      factors.push_back({.extent = 1, .stride = stride});
    factors.back().extent *= extent;
    factors.back().axes.insert(factors.back().axes.begin(), *axis);
  }
  return factors;
}

}  // namespace

bool hasSeveralStrides(const TensorFactors &tensor) {
  return std::ranges::any_of(tensor, [](const GroupFactors &group) { return group.size() > 1; });
}

bool hasSeveralStrides(const MultiStrideGemm &gemm) {
  return hasSeveralStrides(gemm.a) || hasSeveralStrides(gemm.b) || hasSeveralStrides(gemm.c);
}

std::optional<MultiStrideGemm> multiStrideGemm(const Kernel &kernel,
                                               const Configuration &configuration) {
  const auto values = contractionValues(kernel);
  if (!values) return std::nullopt;
  const GemmInputs inputs = gemmInputs(kernel);
  if (std::max(inputs.a, inputs.b) >= kernel.inputs.size() || inputs.a == inputs.b)
    return std::nullopt;
  const Strides a = stridesByAxis(kernel, (*values)[0], configuration.inputs[inputs.a]),
                b = stridesByAxis(kernel, (*values)[1], configuration.inputs[inputs.b]),
                c = stridesByAxis(kernel, kernel.outputs[0], configuration.outputs[0]);
  const auto isStored = [&](AxisId axis) {
    return kernel.axes[size_t(axis)].extent == 1 || c.contains(axis);
  };
  if (!std::ranges::all_of(kernel.values[size_t((*values)[2])].axes, isStored)) return std::nullopt;
  const ContractionGroups groups = contractionGroups(kernel, *values);
  MultiStrideGemm gemm;
  const auto add = [&](ContractionGroup group, const std::vector<AxisId> &order) {
    for (const AxisId axis : order) gemm.extents[group] *= kernel.axes[size_t(axis)].extent;
    if (group != nGroup) gemm.a[group] = factorsOf(kernel, order, a);
    if (group != mGroup) gemm.b[group] = factorsOf(kernel, order, b);
    if (group != kGroup) gemm.c[group] = factorsOf(kernel, order, c);
  };
  for (const ContractionGroup group : {batchGroup, mGroup, nGroup})
    add(group, ordered(groups[group], c));
  const std::vector<AxisId> asInA = ordered(groups[kGroup], a), asInB = ordered(groups[kGroup], b);
  const auto stridesIn = [&](const std::vector<AxisId> &order) {
    return factorsOf(kernel, order, a).size() + factorsOf(kernel, order, b).size();
  };
  add(kGroup, stridesIn(asInB) < stridesIn(asInA) ? asInB : asInA);
  return gemm;
}

std::optional<StridedBatchedGemm> gemmOfResult(const Kernel &kernel,
                                               const Configuration &configuration) {
  const auto factored = multiStrideGemm(kernel, configuration);
  if (!factored || hasSeveralStrides(factored->c)) return std::nullopt;
  const auto stride = [&](ContractionGroup group) {
    return factored->c[group].empty() ? 0 : factored->c[group].front().stride;
  };
  return StridedBatchedGemm{.batch = factored->extents[batchGroup],
                            .m = factored->extents[mGroup],
                            .n = factored->extents[nGroup],
                            .k = factored->extents[kGroup],
                            .batchStrideC = stride(batchGroup),
                            .strideCm = stride(mGroup),
                            .strideCn = stride(nGroup)};
}

}  // namespace weft
