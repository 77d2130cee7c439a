// Building, reading and printing expressions; see Expression.h.
#include "kernel/Expression.h"

#include "kernel/Error.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace weft {
namespace {

using Node = ExpressionNode;
using Kind = ExpressionNode::Kind;

constexpr std::string_view mathHeader = "weft/math.cuh", slopeHeader = "weft/slope.cuh",
                           scalingHeader = "weft/rotary_scaling.cuh",
                           rotationHeader = "weft/short_rotation.cuh",
                           typesHeader = "weft/types.cuh", blocksHeader = "weft/block_mask.cuh";

constexpr auto f32 = ScalarType::f32;
using Id = DeviceFunctionId;
using ShortForms = DeviceFunction::ShortForms;
constexpr std::array functions = {
    DeviceFunction{Id::relu, "weft::relu", mathHeader, 1, f32},
    DeviceFunction{Id::gelu, "weft::gelu", mathHeader, 1, f32,
                   ShortForms{Id::geluForHalf, Id::geluForBfloat16}},
    DeviceFunction{Id::geluForHalf, "weft::geluForHalf", mathHeader, 1, f32},
    DeviceFunction{Id::geluForBfloat16, "weft::geluForBfloat16", mathHeader, 1, f32},
    DeviceFunction{Id::geluTanh, "weft::geluTanh", mathHeader, 1, f32},
    DeviceFunction{Id::silu, "weft::silu", mathHeader, 1, f32},
    DeviceFunction{Id::tanh, "weft::tanh", mathHeader, 1, f32},
    DeviceFunction{Id::sigmoid, "weft::sigmoid", mathHeader, 1, f32},
    DeviceFunction{Id::exp, "weft::exp", mathHeader, 1, f32},
    DeviceFunction{Id::rsqrt, "weft::rsqrt", mathHeader, 1, f32},
    DeviceFunction{Id::squareRoot, "weft::squareRoot", mathHeader, 1, f32},
    DeviceFunction{Id::geluSlope, "weft::slope::gelu", slopeHeader, 1, f32,
                   ShortForms{Id::geluSlopeForHalf, Id::geluSlopeForBfloat16}, true},
    DeviceFunction{Id::geluSlopeForHalf, "weft::slope::geluForHalf", slopeHeader, 1, f32},
    DeviceFunction{Id::geluSlopeForBfloat16, "weft::slope::geluForBfloat16", slopeHeader, 1, f32},
    DeviceFunction{Id::geluTanhSlope, "weft::slope::geluTanh", slopeHeader, 1, f32},
    DeviceFunction{Id::siluSlope, "weft::slope::silu", slopeHeader, 1, f32},
    DeviceFunction{Id::rotaryFrequency, "weft::rotaryFrequency", mathHeader, 2, f32},
    DeviceFunction{Id::scaledFrequency, "weft::scaledFrequency", scalingHeader, 5, f32},
    DeviceFunction{Id::rotation, "weft::rotation", mathHeader, 2, ScalarType::rotation},
    DeviceFunction{Id::shortRotation, "weft::shortRotation", rotationHeader, 2,
                   ScalarType::rotation},
    DeviceFunction{Id::clampedIndex, "weft::clampedIndex", typesHeader, 2, ScalarType::i32},
    DeviceFunction{Id::hasBlock, "weft::hasBlock", blocksHeader, 4, ScalarType::boolean},
};

constexpr bool areInOrder() {
  for (size_t index = 0; index < functions.size(); ++index)
    if (functions[index].id != Id(index)) return false;
  return true;
}
static_assert(areInOrder(), "a row of each function, in the order of DeviceFunctionId");

struct ScalarOperatorRow {
  ScalarOperator operation;
  std::string_view text;
  int precedence;  ///< higher binds tighter
};
constexpr int selectPrecedence = 1, unaryPrecedence = 10, leafPrecedence = 11;
/// Longer texts first: "<=" is not "<".
constexpr std::array binaryOperators = {
    ScalarOperatorRow{ScalarOperator::either, "||", 2},
    ScalarOperatorRow{ScalarOperator::both, "&&", 3},
    ScalarOperatorRow{ScalarOperator::equal, "==", 5},
    ScalarOperatorRow{ScalarOperator::notEqual, "!=", 5},
    ScalarOperatorRow{ScalarOperator::lessEqual, "<=", 6},
    ScalarOperatorRow{ScalarOperator::greaterEqual, ">=", 6},
    ScalarOperatorRow{ScalarOperator::less, "<", 6},
    ScalarOperatorRow{ScalarOperator::greater, ">", 6},
    ScalarOperatorRow{ScalarOperator::bitXor, "^", 4},
    ScalarOperatorRow{ScalarOperator::add, "+", 8},
    ScalarOperatorRow{ScalarOperator::subtract, "-", 8},
    ScalarOperatorRow{ScalarOperator::multiply, "*", 9},
    ScalarOperatorRow{ScalarOperator::divide, "/", 9},
    ScalarOperatorRow{ScalarOperator::modulo, "%", 9},
};
const ScalarOperatorRow &rowOf(ScalarOperator operation) {
  return *std::ranges::find(binaryOperators, operation, &ScalarOperatorRow::operation);
}

bool isNumber(ScalarType type) { return type == ScalarType::f32 || type == ScalarType::i32; }

/// The type of a binary node; throws where the operator does not take what it is between.
ScalarType typeOf(ScalarOperator operation, ScalarType left, ScalarType right) {
  const bool isLogical = operation == ScalarOperator::both || operation == ScalarOperator::either;
  const bool isInteger = operation == ScalarOperator::modulo || operation == ScalarOperator::bitXor;
  const bool fits = isLogical   ? left == ScalarType::boolean && right == ScalarType::boolean
                    : isInteger ? left == ScalarType::i32 && right == ScalarType::i32
                                : isNumber(left) && isNumber(right);
  if (!fits)
    throw Error::badInput("'{}' between {} and {}", rowOf(operation).text, nameOf(left),
                          nameOf(right));
  const bool isComparison = rowOf(operation).precedence == 5 || rowOf(operation).precedence == 6;
  if (isLogical || isComparison) return ScalarType::boolean;
  return left == right ? left : ScalarType::f32;
}

std::string literalText(const Node &node) {
  if (node.type == ScalarType::i32) return fmt::format("{}", static_cast<int64_t>(node.value));
  if (std::isinf(node.value))
    return node.value > 0 ? "-weft::negativeInfinity" : "weft::negativeInfinity";
  std::string text = fmt::format("{}", static_cast<float>(node.value));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text + "f";
}

}  // namespace

std::string_view nameOf(ScalarType type) {
  constexpr std::array<std::string_view, 4> names = {"f32", "i32", "bool", "rotation"};
  return names[static_cast<size_t>(type)];
}

std::span<const DeviceFunction> deviceFunctions() { return functions; }

const DeviceFunction &deviceFunction(DeviceFunctionId id) { return functions.at(size_t(id)); }

const DeviceFunction *deviceFunction(std::string_view name) {
  const auto *found = std::ranges::find(functions, name, &DeviceFunction::name);
  return found == functions.end() ? nullptr : found;
}

//===-- Building ------------------------------------------------------------------------------===//

int Expression::append(const Expression &other) {
  if (other.empty()) throw Error::checkFailed("an expression is built from an empty one");
  const int first = static_cast<int>(nodes.size());
  for (Node node : other.nodes) {
    for (int &child : node.children) child += first;
    nodes.push_back(std::move(node));
  }
  return root();
}

Expression Expression::of(Node node, const std::vector<Expression> &children) {
  Expression expression;
  for (const Expression &child : children) node.children.push_back(expression.append(child));
  expression.nodes.push_back(std::move(node));
  return expression;
}

Expression Expression::operand(int index, ScalarType type) {
  return of({.kind = Kind::operand, .type = type, .index = index}, {});
}

Expression Expression::element(int index, const std::vector<Expression> &coordinates,
                               ScalarType type) {
  for (const Expression &coordinate : coordinates)
    if (coordinate[coordinate.root()].type != ScalarType::i32)
      throw Error::badInput("a coordinate of operand {} is {}, not i32", index,
                            nameOf(coordinate[coordinate.root()].type));
  return of({.kind = Kind::operand, .type = type, .index = index}, coordinates);
}

Expression Expression::attribute(std::string name) {
  return of({.kind = Kind::attribute, .name = std::move(name)}, {});
}

Expression Expression::coordinate(int axis) {
  return of({.kind = Kind::coordinate, .type = ScalarType::i32, .index = axis}, {});
}

Expression Expression::literal(double value) {
  return of({.kind = Kind::literal, .value = value}, {});
}

Expression Expression::integer(int64_t value) {
  return of({.kind = Kind::literal, .type = ScalarType::i32, .value = static_cast<double>(value)},
            {});
}

Expression Expression::unary(ScalarOperator operation, const Expression &operand) {
  const ScalarType type = operand[operand.root()].type;
  if (operation != ScalarOperator::negate || !isNumber(type))
    throw Error::badInput("no unary operator takes {}", nameOf(type));
  return of({.kind = Kind::unary, .type = type, .operation = operation}, {operand});
}

Expression Expression::binary(ScalarOperator operation, const Expression &left,
                              const Expression &right) {
  const ScalarType type = typeOf(operation, left[left.root()].type, right[right.root()].type);
  return of({.kind = Kind::binary, .type = type, .operation = operation}, {left, right});
}

Expression Expression::select(const Expression &condition, const Expression &first,
                              const Expression &second) {
  const ScalarType type = first[first.root()].type;
  if (condition[condition.root()].type != ScalarType::boolean)
    throw Error::badInput("the condition of '?' is {}, not bool",
                          nameOf(condition[condition.root()].type));
  if (second[second.root()].type != type)
    throw Error::badInput("'?' chooses between {} and {}", nameOf(type),
                          nameOf(second[second.root()].type));
  return of({.kind = Kind::select, .type = type}, {condition, first, second});
}

Expression Expression::call(std::string_view name, const std::vector<Expression> &operands) {
  const DeviceFunction *function = deviceFunction(name);
  if (!function)
    throw Error::badInput("the device library has no function '{}' (kernel/Expression.cpp)", name);
  return call(function->id, operands);
}

Expression Expression::call(DeviceFunctionId id, const std::vector<Expression> &operands) {
  const DeviceFunction &function = deviceFunction(id);
  if (std::ssize(operands) != function.operands)
    throw Error::badInput("'{}' takes {} operands, {} are given", function.name, function.operands,
                          operands.size());
  return of({.kind = Kind::call, .type = function.result, .function = &function}, operands);
}

Expression Expression::member(std::string name, const Expression &rotation) {
  if (rotation[rotation.root()].type != ScalarType::rotation ||
      (name != "cosine" && name != "sine"))
    throw Error::badInput("'.{}' of {}; a rotation has .cosine and .sine", name,
                          nameOf(rotation[rotation.root()].type));
  return of({.kind = Kind::member, .name = std::move(name)}, {rotation});
}

//===-- Printing ------------------------------------------------------------------------------===//

namespace {

int precedenceOf(const Node &node) {
  if (node.kind == Kind::select) return selectPrecedence;
  if (node.kind == Kind::unary) return unaryPrecedence;
  return node.kind == Kind::binary ? rowOf(node.operation).precedence : leafPrecedence;
}

class Printer {
public:
  Printer(const Expression &expression, const Expression::Replace &replace)
      : expression(expression), replace(replace) {}

  std::string print(int index) const {
    if (replace)
      if (std::optional<std::string> text = replace(index)) return *std::move(text);
    const Node &node = expression[index];
    switch (node.kind) {
      case Kind::operand: return printOperand(node);
      case Kind::attribute: return "{" + node.name + "}";
      case Kind::coordinate: return fmt::format("[{}]", node.index);
      case Kind::literal: return literalText(node);
      case Kind::unary: return printUnary(node);
      case Kind::binary: return printBinary(node);
      case Kind::select:
        return fmt::format("{} ? {} : {}", child(node, 0, selectPrecedence + 1),
                           child(node, 1, selectPrecedence), child(node, 2, selectPrecedence));
      case Kind::call: return fmt::format("{}({})", node.function->name, list(node));
      case Kind::member: return fmt::format("{}.{}", child(node, 0, leafPrecedence), node.name);
    }
    return "";
  }

private:
  /// In parentheses if it binds less tightly than asked.
  std::string child(const Node &node, size_t n, int precedence) const {
    const int index = node.children[n];
    const std::string text = print(index);
    const bool isReplaced = replace && replace(index).has_value();
    return isReplaced || precedenceOf(expression[index]) >= precedence ? text
                                                                       : fmt::format("({})", text);
  }

  std::string printOperand(const Node &node) const {
    return node.children.empty() ? fmt::format("{{{}}}", node.index)
                                 : fmt::format("{{{}}}[{}]", node.index, list(node));
  }

  /// "-(-x)": "--x" would count x down.
  std::string printUnary(const Node &node) const {
    const std::string text = child(node, 0, unaryPrecedence);
    return text.starts_with('-') ? fmt::format("-({})", text) : "-" + text;
  }

  std::string printBinary(const Node &node) const {
    const ScalarOperatorRow &row = rowOf(node.operation);
    return fmt::format("{} {} {}", child(node, 0, row.precedence), row.text,
                       child(node, 1, row.precedence + 1));
  }

  std::string list(const Node &node) const {
    std::vector<std::string> texts;
    for (const int child : node.children) texts.push_back(print(child));
    return fmt::format("{}", fmt::join(texts, ", "));
  }

  const Expression &expression;
  const Expression::Replace &replace;
};

}  // namespace

std::string Expression::textOf(int node, const Replace &replace) const {
  return empty() ? "" : Printer(*this, replace).print(node);
}

//===-- Reading -------------------------------------------------------------------------------===//

/// Recursive descent, by precedence.
class ExpressionParser {
public:
  explicit ExpressionParser(std::string_view text) : text(text) {}

  Expression run() {
    try {
      Expression expression = select();
      if (at < text.size()) throw Error::badInput("an operator is expected");
      return expression;
    } catch (const Error &error) {
      throw Error::badInput("expression '{}', column {}: {}", text, at + 1, error.what());
    }
  }

private:
  void skip() {
    while (at < text.size() && text[at] == ' ') ++at;
  }
  bool take(std::string_view token) {
    skip();
    if (!text.substr(at).starts_with(token)) return false;
    at += token.size();
    skip();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) throw Error::badInput("'{}' is expected", token);
  }
  std::string_view takeWhile(auto &&holds) {
    const size_t begin = at;
    while (at < text.size() && holds(text[at])) ++at;
    return text.substr(begin, at - begin);
  }

  Expression select() {
    Expression condition = binary(selectPrecedence + 1);
    if (!take("?")) return condition;
    const Expression first = select();
    expect(":");
    return Expression::select(condition, first, select());
  }

  /// Left to right: operators of at least this precedence.
  Expression binary(int precedence) {
    Expression left = unary();
    while (const ScalarOperatorRow *row = operatorHere(precedence)) {
      expect(row->text);
      const Expression right = binary(row->precedence + 1);
      left = Expression::binary(row->operation, left, right);
    }
    return left;
  }
  const ScalarOperatorRow *operatorHere(int precedence) {
    skip();
    const auto *found = std::ranges::find_if(binaryOperators, [&](const ScalarOperatorRow &row) {
      return text.substr(at).starts_with(row.text);
    });
    return found != binaryOperators.end() && found->precedence >= precedence ? found : nullptr;
  }

  Expression unary() {
    if (!take("-")) return postfix(primary());
    const Expression operand = unary();
    const Node &node = operand[operand.root()];
    // A sign belongs to its literal.
    if (node.kind == Kind::literal && node.value > 0)
      return node.type == ScalarType::i32 ? Expression::integer(-static_cast<int64_t>(node.value))
                                          : Expression::literal(-node.value);
    if (node.kind == Kind::literal && std::isinf(node.value))
      return Expression::literal(-node.value);
    return Expression::unary(ScalarOperator::negate, operand);
  }

  Expression postfix(Expression expression) {
    while (take(".")) expression = Expression::member(std::string(word()), expression);
    return expression;
  }

  Expression primary() {
    skip();
    if (take("(")) {
      Expression inner = select();
      expect(")");
      return inner;
    }
    if (take("[")) {
      const int axis = number<int>();
      expect("]");
      return Expression::coordinate(axis);
    }
    if (take("{")) return hole();
    if (at < text.size() && ((text[at] >= '0' && text[at] <= '9') || text[at] == '.'))
      return literal();
    const std::string_view name = word();
    if (name.empty()) throw Error::badInput("an operand is expected");
    if (name == "weft::negativeInfinity")
      return Expression::literal(-std::numeric_limits<double>::infinity());
    expect("(");
    std::vector<Expression> operands = {select()};
    while (take(",")) operands.push_back(select());
    expect(")");
    return Expression::call(name, operands);
  }

  /// {0}, {0}[coordinates] or {attribute}.
  Expression hole() {
    if (at < text.size() && text[at] >= '0' && text[at] <= '9') {
      const int index = number<int>();
      expect("}");
      if (!take("[")) return Expression::operand(index);
      std::vector<Expression> coordinates = {select()};
      while (take(",")) coordinates.push_back(select());
      expect("]");
      return Expression::element(index, coordinates);
    }
    const std::string_view name = word();
    if (name.empty()) throw Error::badInput("an operand's number or an attribute is expected");
    expect("}");
    return Expression::attribute(std::string(name));
  }

  /// 3, 0.5f, 2f, 1e-07f.
  Expression literal() {
    const size_t begin = at;
    const auto isDigit = [](char c) { return c >= '0' && c <= '9'; };
    takeWhile([&](char c) { return isDigit(c) || c == '.'; });
    if (text.substr(at, 1) == "e") {
      ++at;
      if (text.substr(at, 1) == "+" || text.substr(at, 1) == "-") ++at;
      takeWhile(isDigit);
    }
    const std::string_view digits = text.substr(begin, at - begin);
    if (digits.find_first_of(".e") == std::string_view::npos && text.substr(at, 1) != "f") {
      at = begin;
      return Expression::integer(number<int64_t>());
    }
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || !take("f"))
      throw Error::badInput("a literal of float, such as 0.5f, is expected");
    return Expression::literal(value);
  }

  template <typename Integer>
  Integer number() {
    skip();
    Integer value = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (error != std::errc()) throw Error::badInput("a number is expected");
    at = static_cast<size_t>(end - text.data());
    skip();
    return value;
  }

  std::string_view word() {
    skip();
    return takeWhile([](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == ':';
    });
  }

  std::string_view text;
  size_t at = 0;
};

Expression Expression::parse(std::string_view text) {
  return text.empty() ? Expression() : ExpressionParser(text).run();
}

//===-- What follows from a tree --------------------------------------------------------------===//

std::set<std::string> Expression::headers() const {
  std::set<std::string> found;
  for (const Node &node : nodes)
    if (node.function) found.emplace(node.function->header);
  return found;
}

bool Expression::usesAttribute(std::string_view name) const {
  return std::ranges::any_of(
      nodes, [&](const Node &node) { return node.kind == Kind::attribute && node.name == name; });
}

bool Expression::usesCoordinates() const {
  return std::ranges::any_of(nodes, [](const Node &node) { return node.kind == Kind::coordinate; });
}

bool Expression::readsElsewhere(std::optional<int> operand) const {
  return std::ranges::any_of(nodes, [&](const Node &node) {
    return node.kind == Kind::operand && !node.children.empty() &&
           node.index == operand.value_or(node.index);
  });
}

bool Expression::readsOperand(int node) const {
  const Node &own = nodes[size_t(node)];
  return own.kind == Kind::operand ||
         std::ranges::any_of(own.children, [&](int child) { return readsOperand(child); });
}

bool Expression::callsFunction() const {
  return std::ranges::any_of(nodes, [](const Node &node) { return node.function != nullptr; });
}

bool Expression::roundsOnTheWay() const {
  const auto has = [&](ScalarOperator one, ScalarOperator other) {
    return std::ranges::any_of(nodes, [&](const Node &node) {
      return node.kind == Kind::binary && node.type == ScalarType::f32 &&
             (node.operation == one || node.operation == other);
    });
  };
  return has(ScalarOperator::add, ScalarOperator::subtract) &&
         has(ScalarOperator::multiply, ScalarOperator::divide);
}

std::set<int> Expression::operands() const {
  std::set<int> found;
  for (const Node &node : nodes)
    if (node.kind == Kind::operand) found.insert(node.index);
  return found;
}

Expression Expression::withAxes(const std::vector<AxisId> &axes) const {
  Expression other = *this;
  for (Node &node : other.nodes)
    if (node.kind == Kind::coordinate) node.index = axes.at(static_cast<size_t>(node.index));
  return other;
}

Expression Expression::withFunction(const DeviceFunction &from, const DeviceFunction &to) const {
  Expression other = *this;
  for (Node &node : other.nodes)
    if (node.function == &from) node.function = &to;
  return other;
}

}  // namespace weft
