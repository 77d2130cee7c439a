// Outer axes that lie one after another in memory, in the order of rows, are addressed by one
// product: row * i.
#include "codegen/families/loop/LoopMemory.h"

#include "kernel/Error.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace weft::codegen {

Operand LoopMemory::operand(const Code &name, const Value &value, const Layout &layout,
                            std::vector<ConstantLine> &constants) const {
  Operand result{
      .name = name, .dtype = value.dtype, .axes = value.axes, .alignment = layout.alignment};
  for (AxisId axis : value.axes) result.extents.push_back(space.extent(axis));
  result.strides = stridesOf(layout, result.extents);
  if (result.strides.size() != result.extents.size())
    throw Error::checkFailed("'{}' has {} dimensions, its layout {} strides", name,
                             result.extents.size(), result.strides.size());
  int64_t last = 0;
  for (size_t d = 0; d < result.extents.size(); ++d)
    last += (result.extents[d] - 1) * result.strides[d];
  result.wide = last >= std::numeric_limits<int32_t>::max() - 64;
  for (size_t d = 0; d < result.strides.size(); ++d) {
    std::vector<Code> faster;
    const auto position = std::find(layout.order.begin(), layout.order.end(), static_cast<int>(d));
    if (layout.isDense())
      for (auto other = position == layout.order.end() ? position : position + 1;
           other != layout.order.end(); ++other)
        if (result.extents[*other] > 1) faster.push_back(space.axisName(value.axes[*other]));
    Code text = faster.empty() ? "1" : joined(faster, " * ");
    if (faster.size() > 1) text = code("({})", text);
    if (!layout.isDense()) text = Code::plain(std::to_string(result.strides[d]));
    if (!layout.isDense() && result.strides[d] != 1 && result.extents[d] > 1) {
      const std::string constant = fmt::format("{}_{}", name, space.axisName(value.axes[d]));
      const bool wide = result.strides[d] > std::numeric_limits<int32_t>::max();
      constants.push_back(
          {wide ? "weft::Offset" : "int",
           {{names.reserve(constant), result.strides[d]}},
           fmt::format("stride of {} along {}", name, space.axisName(value.axes[d])),
           {ConstantSubject::Kind::strides, name.str()}});
      text = Code::name(constants.back().entries[0].first);
    } else if (result.wide && faster.size() > 1) {
      text = code("(weft::Offset({}) * {})", faster[0],
                  joined({faster.begin() + 1, faster.end()}, " * "));
    }
    result.strideTexts.push_back(text);
  }
  return result;
}

Code LoopMemory::term(const Operand &operand, const Code &index, const Code &stride) const {
  const Code left = operand.wide ? code("weft::Offset({})", index) : index;
  return stride.str() == "1" ? left : code("{} * {}", left, stride);
}

/// `dimensions`: (position in outer, dimension), ascending. Merges runs that one stride serves.
Code LoopMemory::outerTerms(const Operand &operand,
                            const std::vector<std::pair<size_t, size_t>> &dimensions) {
  std::vector<Code> terms;
  const auto isVector = [&](size_t i) {
    return space.outer[dimensions[i].first] == space.knobs.vectorAxis && space.width > 1;
  };
  const auto unit = [&](size_t i) {
    return operand.strides[dimensions[i].second] * (isVector(i) ? space.width : 1);
  };
  for (size_t first = 0; first < dimensions.size();) {
    size_t last = first;
    while (last + 1 < dimensions.size() &&
           dimensions[last + 1].first == dimensions[last].first + 1 &&
           unit(last) == unit(last + 1) * space.countOf(dimensions[last + 1].first))
      ++last;
    const Code index = space.range(dimensions[first].first, dimensions[last].first);
    Code stride = operand.strideTexts[dimensions[last].second];
    if (isVector(last) && last != first)
      stride = stride.str() == "1" ? space.words.width : code("{} * {}", space.words.width, stride);
    terms.push_back(term(operand, index, stride));
    first = last + 1;
  }
  return joined(terms, " + ");
}

/// Columns walk their reduced axes by one index; where one stride serves all of them, the
/// dimensions, slowest first.
std::vector<size_t> LoopMemory::mergedStep(const Operand &operand,
                                           const std::vector<Index> &at) const {
  if (!space.isColumns()) return {};
  std::vector<size_t> dimensions;
  for (AxisId axis : space.reduced) {
    if (space.extent(axis) == 1) continue;
    const auto dimension =
        std::find(operand.axes.begin(), operand.axes.end(), axis) - operand.axes.begin();
    if (dimension == std::ssize(operand.axes) || at[size_t(dimension)] != space.coordinate(axis))
      return {};
    dimensions.push_back(size_t(dimension));
  }
  for (size_t i = 0; i + 1 < dimensions.size(); ++i)
    if (operand.strides[dimensions[i]] !=
        operand.strides[dimensions[i + 1]] * operand.extents[dimensions[i + 1]])
      return {};
  return dimensions.size() > 1 ? dimensions : std::vector<size_t>{};
}

Address LoopMemory::address(const Operand &operand, const std::vector<Index> &at, bool perElement,
                            const std::function<Code(int)> &nodeText) {
  std::vector<std::pair<size_t, size_t>> outer;
  std::vector<Code> inner;
  int64_t stride = 0, multiple = 0;
  bool irregular = false;
  Code strideText;
  const std::vector<size_t> merged = mergedStep(operand, at);
  if (!merged.empty())
    inner.push_back(term(operand, space.flatStep(), operand.strideTexts[merged.back()]));
  for (size_t d = 0; d < at.size(); ++d) {
    const Index &index = at[d];
    if (operand.extents[d] == 1 ||
        (index.multipleOf == 0 && index.node < 0 && index.perElement == 0))
      continue;
    irregular |= index.irregular;
    stride += index.perElement * operand.strides[d];
    if (index.perElement != 0)
      strideText = index.perElement == 1
                       ? operand.strideTexts[d]
                       : code("{} * {}", operand.strideTexts[d], index.perElement);
    multiple = std::gcd(multiple, index.multipleOf * operand.strides[d]);
    if (std::find(merged.begin(), merged.end(), d) != merged.end()) continue;
    if (index.outer >= 0) {
      outer.emplace_back(index.outer, d);
    } else {
      Index spelled = index;
      if (index.node >= 0) spelled.text = nodeText(index.node);
      Code text = perElement ? space.atElement(spelled) : spelled.text;
      if (text.str().find(' ') != std::string::npos && text.str().front() != '(')
        text = code("({})", text);
      inner.push_back(term(operand, text, operand.strideTexts[d]));
    }
    if (index.outer >= 0 && perElement && index.perElement != 0)
      inner.push_back(term(operand, space.words.element, operand.strideTexts[d]));
  }
  std::sort(outer.begin(), outer.end());
  Code pointer = operand.name;
  if (!outer.empty()) {
    const Code text = outerTerms(operand, outer);
    const Code type = operand.wide ? "weft::Offset" : "int";
    Code &name = offsetNames[type + text];
    if (name.empty() && text.str().find(' ') == std::string::npos && !operand.wide) name = text;
    if (name.empty()) {
      name = names.reserve("start");
      offsets.push_back(declareConstant(type, name, text));
    }
    pointer += " + " + name;
  }
  for (const Code &text : inner) pointer += " + " + text;
  Address result{.pointer = pointer};
  if (perElement || (stride == 0 && !irregular)) return result;
  if (irregular)
    throw Error::checkFailed("'{}': an irregular coordinate was addressed as a vector",
                             operand.name);
  const int64_t size = sizeOf(operand.dtype), granule = std::min<int64_t>(space.width * size, 16);
  const bool aligned = (multiple * size) % granule == 0 && operand.alignment % granule == 0;
  const bool isPacked = stride == 1 && aligned;
  result.access = !isPacked ? Access::strided : valid.empty() ? Access::packed : Access::part;
  someParts = someParts || result.access == Access::part;
  result.stride = operand.wide ? code("weft::Offset({})", strideText) : strideText;
  result.count = valid;
  return result;
}

}  // namespace weft::codegen
