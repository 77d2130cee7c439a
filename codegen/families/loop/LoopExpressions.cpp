// Element-wise ops in loop kernels: the tree of the op (kernel/Expression.h) over nodes of the
// graph. A coordinate becomes the index of the loop nest along its axis, an element read elsewhere
// a load or a computation at other coordinates, a rotation a node for both of its members.
#include "codegen/ExpressionText.h"
#include "codegen/families/loop/LoopOps.h"
#include "kernel/Attributes.h"
#include "kernel/CoordinateExpressions.h"
#include "kernel/Error.h"

#include <algorithm>
#include <cmath>

namespace weft::codegen {
namespace {

using Kind = ExpressionNode::Kind;

/// The nodes below one, itself included.
void collect(const Expression &expression, int node, std::vector<int> &below) {
  below.push_back(node);
  for (const int child : expression[node].children) collect(expression, child, below);
}

}  // namespace

/// The text of a node that reads coordinates and literals alone; adds what it reads to `uses`.
Code GraphBuilder::coordinateText(const Expression &expression, int node,
                                  const Coordinates &coordinates, std::vector<Index> &uses) {
  return codeOf(expression, node, [&](int index) -> std::optional<Code> {
    if (expression[index].kind != Kind::coordinate) return std::nullopt;
    const Index &at = coordinates.at.at(expression[index].index);
    uses.push_back(at);
    return elementText(at);
  });
}

/// A coordinate that no literal multiple of one other gives: of several coordinates, as [3] - [2],
/// or of a function. Each element has its own.
Index GraphBuilder::computedIndex(const Expression &expression, int node,
                                  const Coordinates &coordinates) {
  std::vector<Index> uses;
  Index computed{.text = code("({})", coordinateText(expression, node, coordinates, uses))};
  for (const Index &index : uses) {
    if (index.node >= 0)
      throw Error::unsupported("kernel '{}': arithmetic on a gathered coordinate", kernel.name);
    computed.irregular |= index.varies();
    computed.step |= index.step;
  }
  return computed;
}

/// A coordinate of an element that is read elsewhere: [2], [2] / 64, or what moves [2] by literals,
/// such as [2] < 32 ? [2] + 32 : [2] - 32 and [2] ^ 1.
Index GraphBuilder::movedIndex(const Expression &expression, int node, int64_t extent,
                               const Coordinates &coordinates) {
  std::vector<int> below;
  collect(expression, node, below);
  const auto first =
      std::ranges::find(below, Kind::coordinate, [&](int index) { return expression[index].kind; });
  if (first == below.end()) return {.text = Code::plain(expression.textOf(node)), .multipleOf = 1};
  const bool isComputed = std::ranges::any_of(below, [&](int index) {
    const ExpressionNode &one = expression[index];
    return one.kind == Kind::call ||
           (one.kind == Kind::coordinate && one.index != expression[*first].index);
  });
  if (isComputed) return computedIndex(expression, node, coordinates);
  const Index at = coordinates.at.at(expression[*first].index);
  const ExpressionNode &root = expression[node];
  if (root.kind == Kind::coordinate) return at;
  if (at.node >= 0)
    throw Error::unsupported("kernel '{}': arithmetic on a gathered coordinate", kernel.name);
  if (root.kind == Kind::binary && root.operation == ScalarOperator::divide)
    return divided(at, static_cast<int64_t>(expression[root.children[1]].value), extent);
  if (root.kind == Kind::binary && root.operation == ScalarOperator::add &&
      root.children[0] == *first && expression[root.children[1]].kind == Kind::literal)
    return scaled(at, 1, static_cast<int64_t>(expression[root.children[1]].value));
  int64_t step = at.multipleOf;  // every literal moves by whole multiples of it
  bool isWhole = at.multipleOf % space.width == 0 && !at.irregular;
  for (const int index : below) {
    const ExpressionNode &one = expression[index];
    if (one.kind != Kind::literal) continue;
    const auto literal = static_cast<int64_t>(one.value);
    step = std::gcd(step, literal);
    isWhole = isWhole && literal % space.width == 0;
  }
  const bool isLinear = !at.varies() || isWhole;
  const Code own = isLinear ? baseText(at) : elementText(at);
  Index moved = at;
  moved.outer = -1;
  moved.text = code("({})", codeOf(expression, node, [&](int index) -> std::optional<Code> {
                      if (expression[index].kind != Kind::coordinate) return std::nullopt;
                      return own;
                    }));
  moved.multipleOf = step;
  moved.irregular = !isLinear;
  if (!isLinear) moved.perElement = 0;
  return moved;
}

/// Cosine and sine of one angle, once for both.
/// By how many pairs element e of a vector lies behind the first one, where all of a vector have
/// the same distances: "e" or "e / 2".
std::optional<Code> GraphBuilder::elementsPair(const Expression &expression, int frequency,
                                               const Coordinates &coordinates) const {
  const ExpressionNode &call = expression[frequency];
  if (!call.calls(DeviceFunctionId::rotaryFrequency)) return std::nullopt;
  const ExpressionNode &pair = expression[call.children[0]];
  if (pair.kind != Kind::binary || expression[pair.children[0]].kind != Kind::coordinate ||
      expression[pair.children[1]].kind != Kind::literal)
    return std::nullopt;
  const Index &at = coordinates.at.at(expression[pair.children[0]].index);
  if (at.node >= 0 || at.irregular || at.perElement != 1 || at.multipleOf % space.width != 0)
    return std::nullopt;
  const bool isHalved = pair.operation == ScalarOperator::modulo;
  if (isHalved && static_cast<int64_t>(expression[pair.children[1]].value) % space.width != 0)
    return std::nullopt;
  return isHalved ? space.words.element : code("{} / 2", space.words.element);
}

int GraphBuilder::rotation(const BodyOp &op, int node, const Coordinates &coordinates) {
  const Expression &expression = op.expression;
  const int frequency = expression[node].children[1], exponent = expression[frequency].children[1];
  const double base = attributeOr(op, attribute::base, 10000.0);
  const ExpressionNode &scale = expression[exponent];
  const Code name =
      constant("float", "frequencyScale", ConstantValue::text(floatLiteral(scale.value)),
               code("-2 log2({}) / {}", base, std::llround(-2.0 * std::log2(base) / scale.value)));
  std::vector<Index> uses;
  std::vector<int> operands;
  // The frequencies of a vector are one, times powers of a ratio that the compiler knows.
  const std::optional<Code> pair = hasShortRotations(expression)
                                       ? elementsPair(expression, frequency, coordinates)
                                       : std::nullopt;
  Code frequencies;
  if (pair) {
    std::vector<Index> ofFirst;
    const Code first = codeOf(expression, frequency, [&](int index) -> std::optional<Code> {
      if (index == exponent) return name;
      if (expression[index].kind != Kind::coordinate) return std::nullopt;
      ofFirst.push_back(coordinates.at.at(expression[index].index));
      ofFirst.back().perElement = 0;
      return baseText(ofFirst.back());
    });
    operands.push_back(pointwise(first, {}, "frequency", ofFirst));
    const Code ratio =
        constant("double", "frequencyRatio",
                 ConstantValue::text(code("{}", std::exp2(scale.value))), "of neighbouring pairs");
    frequencies = code("{{0}} * weft::powerOf({}, {})", ratio, *pair);
  }
  const Code text = codeOf(expression, node, [&](int index) -> std::optional<Code> {
    if (pair && index == frequency) {
      coordinateText(expression, expression[expression[frequency].children[0]].children[0],
                     coordinates, uses);  // differs between elements
      return frequencies;
    }
    if (index == exponent) return name;
    if (expression[index].kind == Kind::operand) {  // of sequences, from which positions count
      operands.push_back(evaluate(op.operands[size_t(expression[index].index)], coordinates));
      return code("{{{}}}", operands.size() - 1);
    }
    if (expression[index].kind != Kind::coordinate) return std::nullopt;
    return coordinateText(expression, index, coordinates, uses);
  });
  const int turn = pointwise(text, operands, "turn", uses);
  graph.nodes[size_t(turn)].type = ScalarType::rotation;
  return turn;
}

int GraphBuilder::elementwise(const BodyOp &op, const std::string &name,
                              const Coordinates &coordinates) {
  if (isUnreadMask(op)) return evaluate(op.operands[0], coordinates);
  const Expression &expression = op.expression;
  const std::map<std::string, Code> constants =
      attributeConstants(op, [&](const std::string &wish, const Code &value) {
        return constant("float", wish, ConstantValue::text(value));
      });
  graph.headers.merge(expression.headers());
  std::map<std::string, Coordinates> elsewhere;  // by the text of the node
  std::map<std::string, int> placeOf;            // among the operands of the graph's node
  std::optional<int> turn;
  for (int index = 0; index <= expression.root(); ++index) {
    const ExpressionNode &node = expression[index];
    if (node.kind == Kind::call && node.type == ScalarType::rotation && !turn) turn = index;
    if (node.kind != Kind::operand || node.children.empty()) continue;
    Coordinates other = coordinates;
    const std::vector<AxisId> &axes = kernel.values[op.operands[size_t(node.index)]].axes;
    std::map<AxisId, Index> moved;
    for (size_t dimension = 0; dimension < axes.size(); ++dimension)
      moved[axes[dimension]] = movedIndex(expression, node.children[dimension],
                                          kernel.axes[axes[dimension]].extent, coordinates);
    for (const auto &[axis, at] : moved) other.at[axis] = at;
    elsewhere.try_emplace(expression.textOf(index), other);
  }
  const int turned = turn ? rotation(op, *turn, coordinates) : -1;
  std::vector<int> operands;
  const auto add = [&](const std::string &key, int node) {
    if (placeOf.try_emplace(key, static_cast<int>(operands.size())).second)
      operands.push_back(node);
  };
  for (int index = 0; index < std::ssize(op.operands); ++index) {
    const std::string key = fmt::format("{{{}}}", index);
    const bool isRead = std::ranges::any_of(expression.all(), [&](const ExpressionNode &node) {
      return node.kind == Kind::operand && node.index == index && node.children.empty();
    });
    if (isRead) add(key, evaluate(op.operands[size_t(index)], coordinates));
  }
  for (int index = 0; index <= expression.root(); ++index) {
    const ExpressionNode &node = expression[index];
    if (node.kind != Kind::operand || node.children.empty()) continue;
    const std::string key = expression.textOf(index);
    if (!placeOf.contains(key))
      add(key, evaluate(op.operands[size_t(node.index)], elsewhere.at(key)));
  }
  if (turn) add(expression.textOf(*turn), turned);
  std::vector<Index> uses;
  const Code text = codeOf(expression, expression.root(), [&](int index) -> std::optional<Code> {
    const ExpressionNode &node = expression[index];
    if (node.kind == Kind::operand || node.type == ScalarType::rotation)
      return code("{{{}}}", placeOf.at(expression.textOf(index)));
    if (node.kind == Kind::attribute) return constants.at(node.name);
    if (node.kind != Kind::coordinate) return std::nullopt;
    return coordinateText(expression, index, coordinates, uses);
  });
  return pointwise(text, operands, name, uses);
}

}  // namespace weft::codegen
