// Spelling of extents and strides; see ContractionTexts.h.
#include "codegen/families/contraction/ContractionTexts.h"

#include "kernel/Format.h"
#include "kernel/UnusedTokens.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace weft::codegen {

ConstantValue extentProduct(const Kernel &kernel, const std::vector<AxisId> &axes,
                            const std::vector<std::string> &names) {
  std::vector<ConstantValue> extents;
  for (AxisId axis : axes)
    if (kernel.axes[axis].extent > 1) extents.push_back(ConstantValue::name(names[axis]));
  return ConstantValue::product(extents);
}

ConstantValue StrideTexts::operator()(int64_t stride) {
  if (stride <= 1) return stride;
  return layout.isDense() ? dense(stride) : named(stride);
}

/// The axes faster than the one of this stride, slowest first. Extents above 1 make the products
/// distinct.
ConstantValue StrideTexts::dense(int64_t stride) const {
  std::vector<AxisId> faster;
  int64_t product = 1;
  for (auto dimension = layout.order.rbegin();
       dimension != layout.order.rend() && product != stride; ++dimension) {
    faster.insert(faster.begin(), value.axes[*dimension]);
    product *= kernel.axes[faster.front()].extent;
  }
  return product == stride ? extentProduct(kernel, faster, axisNames) : stride;
}

ConstantValue StrideTexts::named(int64_t stride) {
  const auto known = constantNames.find(stride);
  if (known != constantNames.end()) return ConstantValue::name(known->second);
  std::vector<int64_t> extents;
  for (const AxisId axis : value.axes) extents.push_back(kernel.axes[axis].extent);
  const std::vector<int64_t> strides = stridesOf(layout, extents);
  for (size_t d = 0; d < value.axes.size(); ++d) {
    if (strides[d] != stride || extents[d] == 1) continue;
    const std::string &axis = axisNames[value.axes[d]];
    const std::string name = names.reserve(fmt::format("{}_{}", tensorName, axis));
    constants.push_back({"weft::Offset",
                         {{name, stride}},
                         fmt::format("stride of {} along {}", tensorName, axis),
                         {ConstantSubject::Kind::strides, tensorName}});
    constantNames[stride] = name;
    return ConstantValue::name(name);
  }
  return stride;
}

std::string subVectorsText(const Kernel &kernel, const Configuration &configuration,
                           const ContractionRegion &region,
                           const std::vector<std::string> &axisNames,
                           const std::vector<std::string> &results, Names &names,
                           std::vector<ConstantLine> &constants) {
  const EpilogueSoftmax &softmax = region.softmax.value();
  const auto strides = [&](size_t output) {
    StrideTexts text(kernel, kernel.outputs[output], configuration.outputs[output], axisNames,
                     results[output], names, constants);
    const SubVectorStrides own = subVectorStrides(kernel, configuration, region, output).value();
    return ConstantValue::members(
        {{"batch", text(own.batch)}, {"row", text(own.row)}, {"subVector", text(own.subVector)}});
  };
  const std::string name = names.reserve("subVectors");
  const ConstantValue maxima = strides(softmax.maxima), sums = strides(softmax.sums);
  constants.push_back(
      {"weft::SubVectors",
       {{name, ConstantValue::members(
                   {{"length", softmax.length}, {"maxima", maxima, true}, {"sums", sums, true}})}},
       "",
       {ConstantSubject::Kind::subVectors}});
  return name;
}

Statement templateCall(std::string_view function, std::string_view args,
                       const std::vector<NamedArgument> &arguments) {
  constexpr size_t tensors = 3, mostColumns = 118;
  std::vector<std::string> members;
  for (const auto &[name, value] : arguments)
    if (!value.empty()) members.push_back(fmt::format(".{} = {}", name, value));
  const std::string line = fmt::format("{}({}{{{}}})", function, args, fmt::join(members, ", "));
  if (line.size() <= mostColumns && line.find('\n') == std::string::npos) return evaluate(line);
  const std::vector<std::string> further(members.begin() + tensors, members.end());
  members.resize(tensors);
  return evaluate(fmt::format("{}({}{{\n      {}{}{}}})", function, args, fmt::join(members, ", "),
                              further.empty() ? "" : ",\n      ", fmt::join(further, ",\n      ")));
}

std::string summedTokensArgument(const Kernel &kernel, const Configuration &configuration,
                                 const std::vector<std::string> &inputs, std::string_view space,
                                 Names &names, std::vector<Statement> &body) {
  const UnusedTokens summed = summedTokens(kernel).value();
  const auto input =
      size_t(std::ranges::find(kernel.inputs, summed.offsets) - kernel.inputs.begin());
  const int64_t stride = stridesByAxis(kernel, summed.offsets, configuration.inputs[input])
                             .at(kernel.values[size_t(summed.offsets)].axes[0]);
  const std::string name = names.reserve("tokens");
  body.push_back(declareConstant(
      "int", name, fmt::format("weft::loadOne({} + {})", inputs[input], summed.element * stride)));
  return fmt::format("{}::SummedTokens{{{}}}", space, name);
}

Statement extentChecks(const std::string &gemm, int64_t batch, int64_t m, int64_t n, int64_t k) {
  return launchCheckOf(
      {fmt::format("{}.batch == {}", gemm, batch), fmt::format("{}.m == {}", gemm, m),
       fmt::format("{}.n == {}", gemm, n), fmt::format("{}.k == {}", gemm, k)},
      "these extents");
}

}  // namespace weft::codegen
