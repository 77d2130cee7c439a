// From factors to the skeleton's product and to maps; see HopperStrides.h.
#include "kernel/HopperStrides.h"

#include "kernel/Error.h"

#include <algorithm>
#include <limits>

namespace weft {
namespace {

constexpr int64_t panelSide = 64;  // elements of 16 bits in a row of 128 bytes, and rows of a panel
constexpr int64_t unit = 8;        // elements of 16 bytes
constexpr int64_t longestStride = int64_t(1) << 39;  // elements, of a tensor map
constexpr size_t mostDimensions = 5;                 // of a tensor map
constexpr int64_t mostElements = std::numeric_limits<int32_t>::max() - 512;

HopperProductAnswer refused(std::string reason) { return {.refusal = std::move(reason)}; }

std::string axesText(const Kernel &kernel, const StrideFactor &factor) {
  std::string text;
  for (const int axis : factor.axes)
    text += (text.empty() ? "" : ",") + kernel.axes[size_t(axis)].name;
  return text;
}

/// Why the copy engine does not move a tensor with these strides in boxes of 128 bytes and 64 rows.
/// `name`: of the tensor.
std::string mapRefusal(const Kernel &kernel, std::string_view name, const MapGroups &groups,
                       const Layout &layout) {
  if (const size_t dimensions = groups.columns.size() + groups.rows.size() + groups.batch.size();
      dimensions > mostDimensions)
    return fmt::format("{} has {} strides; a tensor map has {} dimensions", name, dimensions,
                       mostDimensions);
  if (layout.alignment % tensorMapAlignment != 0)
    return fmt::format(
        "{} has several strides along a group and starts at a multiple of {} bytes; {} are taken",
        name, layout.alignment, tensorMapAlignment);
  for (const GroupFactors *group : {&groups.columns, &groups.rows, &groups.batch})
    for (const StrideFactor &factor : *group) {
      const bool isInnermost = group == &groups.columns && &factor == &group->front();
      if (!isInnermost && (factor.stride % unit != 0 || factor.stride >= longestStride))
        return fmt::format(
            "{}: stride {} of {}; a tensor map with several strides along a group takes multiples "
            "of {} below {}",
            name, factor.stride, axesText(kernel, factor), unit, longestStride);
    }
  if (const StrideFactor &fastest = groups.columns.front();
      groups.columns.size() > 1 && fastest.extent % panelSide != 0)
    return fmt::format(
        "{}: {} of {} in a row; with several strides along that group rows of whole {} are taken",
        name, fastest.extent, axesText(kernel, fastest), panelSide);
  if (!boxSides(groups.rows, panelSide))
    return fmt::format(
        "{}: {} rows along {} are no box; factors that divide them or that they divide are taken",
        name, panelSide, axesText(kernel, groups.rows.front()));
  return "";
}

int64_t fastestOf(const GroupFactors &group) { return group.empty() ? 0 : group.front().stride; }

class Derivation {
public:
  Derivation(const Kernel &kernel, const Configuration &configuration,
             const FactoredProduct &factored)
      : kernel(kernel),
        configuration(configuration),
        factored(factored),
        inputs(productInputs(kernel)) {}

  HopperProductAnswer answer() {
    const ProductTypes types = productTypes(kernel);
    if (!types.isUniform() || sizeOf(types.a) != 2)
      return refused(fmt::format(
          "a group of axes has several strides; products of {} take one, of f16 and bf16 several",
          nameOf(types)));
    const auto &[batch, m, n, k] = factored.extents;
    if (batch < 1 || std::min({m, n, k}) < 2)
      return refused(
          "a group of axes has several strides, and a side of the product or k is less than 2");
    if (std::max({batch, m, n, k}) > mostElements)
      return refused(fmt::format("an extent is more than {}", mostElements));
    product = {
        .isSwapped = fastestOf(factored.c[nGroup]) != 1, .batch = batch, .m = m, .n = n, .k = k};
    product.operandType = types.a;
    if (product.isSwapped && fastestOf(factored.c[mGroup]) != 1)
      return refused("the result is contiguous along neither of its axes");
    product.a.input = inputs.a, product.b.input = inputs.b;
    if (std::string refusal = placeOperand(product.a, factored.a, mGroup, "operand A");
        !refusal.empty())
      return refused(std::move(refusal));
    if (std::string refusal = placeOperand(product.b, factored.b, nGroup, "operand B");
        !refusal.empty())
      return refused(std::move(refusal));
    if (product.isSwapped) std::swap(product.a, product.b), std::swap(product.m, product.n);
    if (std::string refusal = placeResult(); !refusal.empty()) return refused(std::move(refusal));
    return {.product = std::move(product)};
  }

private:
  std::string placeOperand(HopperOperand &operand, const TensorFactors &factors,
                           ContractionGroup outer, std::string_view name) {
    const Layout &layout = configuration.inputs[operand.input];
    operand.outer = fastestOf(factors[outer]), operand.k = fastestOf(factors[kGroup]),
    operand.batch = fastestOf(factors[batchGroup]);
    if (operand.k != 1 && operand.outer != 1)
      return fmt::format("{} is contiguous along neither of its axes", name);
    if (hasSeveralStrides(factors)) {
      operand.outerFactors = factors[outer], operand.kFactors = factors[kGroup],
      operand.batchFactors = factors[batchGroup];
      return mapRefusal(kernel, name, mapGroups(operand), layout);
    }
    operand.isByEngine = isByEngine(operand.pitch(), operand.batch, layout);
    return "";
  }

  std::string placeResult() {
    const GroupFactors &rows = factored.c[product.isSwapped ? nGroup : mGroup];
    product.strideCm = fastestOf(rows), product.batchStrideC = fastestOf(factored.c[batchGroup]);
    if (!hasSeveralStrides(factored.c)) {
      product.isByEngine =
          isByEngine(product.strideCm, product.batchStrideC, configuration.outputs[0]);
      return "";
    }
    product.mFactors = rows, product.nFactors = factored.c[product.isSwapped ? mGroup : nGroup],
    product.batchFactors = factored.c[batchGroup];
    if (product.n % unit != 0)
      return fmt::format(
          "the result has several strides along a group and rows of {}; multiples of {} are taken",
          product.n, unit);
    return mapRefusal(kernel, "the result", mapGroups(product), configuration.outputs[0]);
  }

  bool isByEngine(int64_t pitch, int64_t batchStride, const Layout &layout) const {
    const auto fits = [](int64_t stride) { return stride % unit == 0 && stride < longestStride; };
    return layout.alignment % tensorMapAlignment == 0 && fits(pitch) &&
           (product.batch == 1 || fits(batchStride));
  }

  const Kernel &kernel;
  const Configuration &configuration;
  const FactoredProduct &factored;
  const ProductInputs inputs;
  HopperProduct product;
};

void addDimensions(TensorMap &map, const GroupFactors &group, int64_t side) {
  const std::vector<int> sides = boxSides(group, side).value();
  for (size_t i = 0; i < group.size(); ++i) {
    if (!map.extents.empty()) map.strides.push_back(group[i].stride);
    map.extents.push_back(group[i].extent);
    map.box.push_back(sides[i]);
  }
}

}  // namespace

MapGroups mapGroups(const HopperOperand &operand) {
  if (operand.isAlongK())
    return {
        .columns = operand.kFactors, .rows = operand.outerFactors, .batch = operand.batchFactors};
  return {.columns = operand.outerFactors, .rows = operand.kFactors, .batch = operand.batchFactors};
}

MapGroups mapGroups(const HopperProduct &product) {
  return {.columns = product.nFactors, .rows = product.mFactors, .batch = product.batchFactors};
}

int boxRows(const MapGroups &groups, int side) {
  return boxSides(groups.rows, side) ? side : int(panelSide);
}

TensorMap mapOf(DType dtype, const MapGroups &groups, int rows) {
  TensorMap map{.dtype = dtype};
  addDimensions(map, groups.columns, panelSide);
  addDimensions(map, groups.rows, rows);
  addDimensions(map, groups.batch, 1);
  return map;
}

HopperProductAnswer productOfSeveralStrides(const Kernel &kernel,
                                            const Configuration &configuration) {
  const auto factored = factoredProduct(kernel, configuration);
  if (!factored) return refused("the layouts map to no batched strided matrix product");
  return Derivation(kernel, configuration, *factored).answer();
}

}  // namespace weft
