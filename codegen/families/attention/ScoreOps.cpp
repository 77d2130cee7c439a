// Names, loads and texts; see ScoreOps.h.
#include "codegen/families/attention/ScoreOps.h"

#include "codegen/ExpressionText.h"
#include "codegen/families/attention/ScoreMasks.h"
#include "kernel/Error.h"

#include <algorithm>
#include <limits>

namespace weft::codegen {

using Kind = ExpressionNode::Kind;

namespace {

/// As asOperand() has it, but for one call: that needs no parentheses.
Code asTerm(const Code &code) {
  const std::string &text = code.str();
  const size_t open = text.find_first_of(" ()");
  if (open == std::string::npos || text[open] != '(') return asOperand(code);
  int depth = 0;
  size_t end = open;
  do depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
  while (++end < text.size() && depth > 0);
  return end == text.size() && depth == 0 ? code : asOperand(code);
}

}  // namespace

ScoreOps::Coordinate ScoreOps::coordinates(const Code &head, const Code &query,
                                           const Code &key) const {
  return [=, this](AxisId axis) {
    if (extent(axis) == 1) return Code::plain("0");
    return axis == problem.queryAxis ? query
           : axis == problem.keyAxis ? key
                                     : headCoordinate(problem, context.axes, head, axis);
  };
}

Code ScoreOps::insideOf(AxisId axis, const Coordinate &at) const {
  const bool isPosition = axis == problem.queryAxis || axis == problem.keyAxis;
  if (!isPosition || extent(axis) == 1) return at(axis);
  return code("weft::smaller({}, {} - 1)", asArgument(at(axis)), context.axes[size_t(axis)]);
}

/// The element's own coordinates.
std::vector<Code> ScoreOps::ownPlaces(ValueId value, const Coordinate &at) const {
  std::vector<Code> places;
  for (const AxisId axis : kernel.values[size_t(value)].axes) places.push_back(insideOf(axis, at));
  return places;
}

/// Those that an op computes. A clamped one lies inside its tensor anyway.
std::vector<Code> ScoreOps::computedPlaces(const Expression &expression,
                                           const ExpressionNode &element,
                                           const Coordinate &at) const {
  std::vector<Code> places;
  for (const int child : element.children) {
    const bool isClamped = expression[child].kind == Kind::call;
    places.push_back(codeOf(expression, child, [&](int index) -> std::optional<Code> {
      const ExpressionNode &node = expression[index];
      if (node.kind != Kind::coordinate) return std::nullopt;
      return asTerm(isClamped ? at(node.index) : insideOf(node.index, at));
    }));
  }
  return places;
}

/// A load of an input's element.
Statement ScoreOps::load(size_t input, const Code &name, const std::vector<Code> &places) const {
  const Value &value = kernel.values[size_t(kernel.inputs[input])];
  std::vector<int64_t> extents;
  for (const AxisId axis : value.axes) extents.push_back(extent(axis));
  const std::vector<int64_t> strides = stridesOf(context.configuration.inputs[input], extents);
  int64_t last = 0;
  for (size_t d = 0; d < extents.size(); ++d) last += (extents[d] - 1) * strides[d];
  const bool isLong = last > std::numeric_limits<int32_t>::max();
  Code pointer = context.inputs[input];
  for (size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] == 1) continue;
    const Code index = isLong ? code("weft::Offset({})", places[d]) : asTerm(places[d]);
    pointer += strides[d] == 1 ? code(" + {}", index) : code(" + {} * {}", index, strides[d]);
  }
  return {.kind = Statement::Kind::load, .name = name, .pointer = pointer};
}

Code ScoreOps::tileBounds(ValueId value, const std::vector<Code> &before, const Code &first,
                          const Code &last, Block &body) {
  const std::optional<size_t> input = inputOf(region, value);
  if (!input)
    throw Error::checkFailed("kernel '{}': '{}' bounds segments, and is no input of score ops",
                             kernel.name, kernel.values[size_t(value)].name);
  headers.insert("weft/tile_bounds.cuh");
  std::vector<int64_t> extents;
  for (const AxisId axis : kernel.values[size_t(value)].axes) extents.push_back(extent(axis));
  const std::vector<int64_t> strides = stridesOf(context.configuration.inputs[*input], extents);
  std::vector<Code> row;
  for (size_t d = 0; d < before.size(); ++d)
    if (extents[d] > 1) row.push_back(code("{} * {}", asOperand(before[d]), strides[d]));
  const Code name = context.names.reserve(kernel.values[size_t(value)].name + "_range");
  body.push_back(declareConstant(
      "weft::Bounds", name,
      code("weft::boundsOf({}, {}, {}, {}, {}, {})", context.inputs[*input],
           row.empty() ? Code::plain("0") : joined(row, " + "), strides[before.size()],
           strides[before.size() + 1], asArgument(first), asArgument(last))));
  return name;
}

Code ScoreOps::constant(const std::string &wish, const Code &value) {
  const auto [found, isNew] = constantNames.try_emplace(fmt::format("{} {}", wish, value));
  if (isNew) {
    found->second = context.names.reserve(wish);
    constants.push_back({"float", {{found->second, ConstantValue::text(value)}}, ""});
  }
  return found->second;
}

Code ScoreOps::operandName(const BodyOp &op, int operand, std::map<ValueId, Code> &names,
                           Block &body, const Coordinate &at) {
  const ValueId value = op.operands[size_t(operand)];
  const auto known = names.find(value);
  if (known != names.end()) return known->second;
  const std::optional<size_t> input = inputOf(region, value);
  if (!input)
    throw Error::checkFailed("kernel '{}': '{}' is neither a score nor an input of score ops",
                             kernel.name, kernel.values[size_t(value)].name);
  const Code name = context.names.reserve(kernel.values[size_t(value)].name + "_v");
  body.push_back(load(*input, name, ownPlaces(value, at)));
  return names[value] = name;
}

/// The name of an input's element at coordinates that the op computes, loaded at its first use
/// there.
Code ScoreOps::elementName(const BodyOp &op, int index, std::map<std::string, Code> &elements,
                           Block &body, const Coordinate &at) {
  const ExpressionNode &node = op.expression[index];
  const ValueId value = op.operands[size_t(node.index)];
  Code &name = elements[op.expression.textOf(index)];
  if (!name.empty()) return name;
  const std::optional<size_t> input = inputOf(region, value);
  if (!input)
    throw Error::checkFailed("kernel '{}': '{}' is read elsewhere, and no input of score ops",
                             kernel.name, kernel.values[size_t(value)].name);
  name = context.names.reserve(kernel.values[size_t(value)].name + "_v");
  body.push_back(load(*input, name, computedPlaces(op.expression, node, at)));
  return name;
}

Code ScoreOps::attributeName(const BodyOp &op, const std::string &attribute) {
  headers.merge(op.expression.headers());
  return attributeConstants(
             op, [&](const std::string &wish, const Code &value) { return constant(wish, value); })
      .at(attribute);
}

Code ScoreOps::text(const BodyOp &op, int root, std::map<ValueId, Code> &names, Block &body,
                    const Coordinate &at) {
  headers.merge(op.expression.headers());
  const std::map<std::string, Code> attributes = attributeConstants(
      op, [&](const std::string &wish, const Code &value) { return constant(wish, value); });
  std::map<std::string, Code> elements;  // by the text of the node
  return codeOf(op.expression, root, [&](int index) -> std::optional<Code> {
    const ExpressionNode &node = op.expression[index];
    if (node.kind == Kind::operand && !node.children.empty())
      return elementName(op, index, elements, body, at);
    if (node.kind == Kind::operand) return operandName(op, node.index, names, body, at);
    if (node.kind == Kind::attribute) return attributes.at(node.name);
    if (node.kind == Kind::coordinate) return asOperand(at(node.index));
    return std::nullopt;
  });
}

Code headCoordinate(const AttentionProblem &problem, const std::vector<std::string> &axes,
                    const Code &head, AxisId axis) {
  const auto found = std::ranges::find(problem.headAxes, axis);
  if (found == problem.headAxes.end()) return Code::plain("0");
  Code text = head;
  std::vector<Code> faster;
  for (auto other = found + 1; other != problem.headAxes.end(); ++other)
    faster.push_back(axes[size_t(*other)]);
  if (faster.size() == 1) text = code("{} / {}", text, faster[0]);
  if (faster.size() > 1) text = code("{} / ({})", text, joined(faster, " * "));
  if (found != problem.headAxes.begin()) text = code("{} % {}", text, axes[size_t(axis)]);
  return text;
}

}  // namespace weft::codegen
