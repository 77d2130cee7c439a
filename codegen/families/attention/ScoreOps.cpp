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
  if (behindEnds != BehindEnds::last || !isPosition(axis) || extent(axis) == 1) return at(axis);
  return code("weft::smaller({}, {} - 1)", asArgument(at(axis)), context.axes[size_t(axis)]);
}

/// The element's own coordinates.
std::vector<ScoreOps::Place> ScoreOps::ownPlaces(ValueId value, const Coordinate &at) const {
  std::vector<Place> places;
  for (const AxisId axis : kernel.values[size_t(value)].axes) {
    places.push_back({insideOf(axis, at), {}});
    if (isPosition(axis)) places.back().guarded = {axis};
  }
  return places;
}

/// Those that an op computes. A clamped one lies inside its tensor anyway.
std::vector<ScoreOps::Place> ScoreOps::computedPlaces(const Expression &expression,
                                                      const ExpressionNode &element,
                                                      const Coordinate &at) const {
  std::vector<Place> places;
  for (const int child : element.children) {
    Place place;
    const bool isClamped = expression[child].kind == Kind::call;
    place.index = codeOf(expression, child, [&](int index) -> std::optional<Code> {
      const ExpressionNode &node = expression[index];
      if (node.kind != Kind::coordinate) return std::nullopt;
      if (isPosition(node.index) && !isClamped) place.guarded.push_back(node.index);
      return asTerm(isClamped ? at(node.index) : insideOf(node.index, at));
    });
    places.push_back(std::move(place));
  }
  return places;
}

/// A load of an input's element that reads nothing outside the tensor.
Statement ScoreOps::load(size_t input, const Code &name, const std::vector<Place> &places,
                         const Coordinate &at) const {
  const Value &value = kernel.values[size_t(kernel.inputs[input])];
  std::vector<int64_t> extents;
  for (const AxisId axis : value.axes) extents.push_back(extent(axis));
  const std::vector<int64_t> strides = stridesOf(context.configuration.inputs[input], extents);
  int64_t last = 0;
  for (size_t d = 0; d < extents.size(); ++d) last += (extents[d] - 1) * strides[d];
  const bool isLong = last > std::numeric_limits<int32_t>::max();
  Code pointer = context.inputs[input];
  std::vector<Code> guards;
  for (size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] == 1) continue;
    const Code &coordinate = places[d].index;
    const Code index = isLong ? code("weft::Offset({})", coordinate) : asTerm(coordinate);
    pointer += strides[d] == 1 ? code(" + {}", index) : code(" + {} * {}", index, strides[d]);
    if (behindEnds != BehindEnds::nothing) continue;
    for (const AxisId axis : places[d].guarded)
      if (Code guard = code("{} < {}", at(axis), context.axes[size_t(axis)]);
          std::ranges::find(guards, guard) == guards.end())
        guards.push_back(std::move(guard));
  }
  Statement statement{.kind = Statement::Kind::load,
                      .name = name,
                      .value = value.dtype == DType::i32 ? "0" : "0.0f",
                      .pointer = pointer};
  statement.condition = joined(guards, " && ");
  return statement;
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
  body.push_back(load(*input, name, ownPlaces(value, at), at));
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
  body.push_back(load(*input, name, computedPlaces(op.expression, node, at), at));
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
