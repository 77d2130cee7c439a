// Names and constants of merged dimensions; see DimensionProgram.h.
#include "codegen/families/transpose/DimensionProgram.h"

#include "codegen/EntryName.h"

namespace weft::codegen {

DimensionProgram::DimensionProgram(const Kernel &kernel, std::vector<MergedDimension> merged,
                                   std::string_view entry)
    : kernel(kernel), dimensions(std::move(merged)) {
  program.entry = names.reserve(entryName(kernel, entry));
  program.headers = {"weft/types.cuh", "weft/vector.cuh"};
  type = std::string(cudaNameOf(kernel.values[kernel.inputs[0]].dtype));
  from = names.reserve(kernel.values[kernel.inputs[0]].name);
  to = names.reserve(kernel.values[kernel.outputs[0]].name);
  program.parameters = {{Parameter::Kind::input, 0, from, type},
                        {Parameter::Kind::output, 0, to, type}};
  for (const MergedDimension &dimension : dimensions) {
    std::vector<std::string> axes;
    for (AxisId axis : dimension.axes) axes.push_back(kernel.axes[axis].name);
    extents.push_back(names.reserve(fmt::format("{}", fmt::join(axes, "_"))));
  }
  for (const std::string &extent : extents) at.push_back(names.reserve("at_" + extent));
}

ConstantLine DimensionProgram::extentLine() const {
  ConstantLine line{.type = "int", .note = "extents", .subject = {ConstantSubject::Kind::extents}};
  for (size_t d = 0; d < dimensions.size(); ++d) {
    std::vector<ConstantValue> axes;
    for (AxisId axis : dimensions[d].axes) axes.push_back(kernel.axes[axis].extent);
    line.entries.emplace_back(extents[d], ConstantValue::product(axes));
  }
  return line;
}

void DimensionProgram::addStrides() {
  addStrides(from, &MergedDimension::from);
  addStrides(to, &MergedDimension::to);
}

void DimensionProgram::addStrides(const std::string &tensor, int64_t MergedDimension::*stride) {
  int64_t last = 0;
  for (const MergedDimension &dimension : dimensions)
    last += (dimension.extent - 1) * (dimension.*stride);
  wide |= last > mostIndex;
  ConstantLine line{.type = last > mostIndex ? "weft::Offset" : "int",
                    .note = fmt::format("strides of {}", tensor),
                    .subject = {ConstantSubject::Kind::strides, tensor}};
  for (size_t d = 0; d < dimensions.size(); ++d) {
    if (dimensions[d].*stride == 1) continue;
    strides[{tensor, d}] = names.reserve(fmt::format("{}_{}", tensor, extents[d]));
    line.entries.emplace_back(strides[{tensor, d}], dimensions[d].*stride);
  }
  program.constants.push_back(line);
}

std::string DimensionProgram::along(const std::string &tensor, size_t dimension,
                                    const std::string &coordinate) const {
  const auto stride = strides.find({tensor, dimension});
  return stride == strides.end() ? coordinate : fmt::format("{} * {}", coordinate, stride->second);
}

}  // namespace weft::codegen
