// Interval arithmetic that prints C; see TileIntervals.h.
#include "codegen/families/attention/TileIntervals.h"

#include "codegen/Program.h"

namespace weft::codegen {
namespace {

using Kind = ExpressionNode::Kind;
using Operator = ScalarOperator;

Interval exact(Code text, bool isNonNegative) { return {text, text, isNonNegative}; }

/// "a + b" of two pieces that bind as tightly as they have to.
Code joinedBy(const Code &left, const char *operation, const Code &right) {
  return code("{} {} {}", asOperand(left), operation, asOperand(right));
}

Interval negated(const Interval &x) {
  return {code("0 - {}", asOperand(x.high)), code("0 - {}", asOperand(x.low))};
}

Interval times(const Interval &x, int64_t factor) {
  const Code low = joinedBy(x.low, "*", Code::plain(std::to_string(factor))),
             high = joinedBy(x.high, "*", Code::plain(std::to_string(factor)));
  return factor < 0 ? Interval{high, low} : Interval{low, high, x.isNonNegative};
}

/// C rounds quotients towards zero, which keeps their order.
Interval dividedBy(const Interval &x, int64_t divisor) {
  const Code text = Code::plain(std::to_string(divisor)), low = joinedBy(x.low, "/", text),
             high = joinedBy(x.high, "/", text);
  return divisor < 0 ? Interval{high, low} : Interval{low, high, x.isNonNegative};
}

/// Remainders have an order as long as the quotient does not change.
Interval modulo(const Interval &x, int64_t divisor) {
  const int64_t most = (divisor < 0 ? -divisor : divisor) - 1;
  const Code text = Code::plain(std::to_string(divisor));
  if (x.isExact()) return exact(joinedBy(x.low, "%", text), x.isNonNegative);
  const Code isOneQuotient =
      code("{} == {}", joinedBy(x.low, "/", text), joinedBy(x.high, "/", text));
  return {code("({} ? {} : {})", isOneQuotient, joinedBy(x.low, "%", text),
               x.isNonNegative ? 0 : -most),
          code("({} ? {} : {})", isOneQuotient, joinedBy(x.high, "%", text), most),
          x.isNonNegative};
}

/// The value of an integer literal.
std::optional<int64_t> literalOf(const ExpressionNode &node) {
  if (node.kind != Kind::literal || node.type != ScalarType::i32) return std::nullopt;
  return int64_t(node.value);
}

std::optional<Interval> binaryInterval(const Expression &expression, const ExpressionNode &node,
                                       const LeafInterval &leaf) {
  const auto left = intervalOf(expression, node.children[0], leaf),
             right = intervalOf(expression, node.children[1], leaf);
  if (!left || !right) return std::nullopt;
  const auto leftLiteral = literalOf(expression[node.children[0]]),
             rightLiteral = literalOf(expression[node.children[1]]);
  switch (node.operation) {
    case Operator::add:
      return Interval{joinedBy(left->low, "+", right->low), joinedBy(left->high, "+", right->high),
                      left->isNonNegative && right->isNonNegative};
    case Operator::subtract:
      return Interval{joinedBy(left->low, "-", right->high), joinedBy(left->high, "-", right->low)};
    case Operator::multiply:
      if (rightLiteral) return times(*left, *rightLiteral);
      if (leftLiteral) return times(*right, *leftLiteral);
      return std::nullopt;
    case Operator::divide:
      if (rightLiteral.value_or(0) == 0) return std::nullopt;
      return dividedBy(*left, *rightLiteral);
    case Operator::modulo:
      if (rightLiteral.value_or(0) == 0) return std::nullopt;
      return modulo(*left, *rightLiteral);
    default: return std::nullopt;
  }
}

std::optional<Code> bothOf(const std::optional<Code> &a, const std::optional<Code> &b,
                           const char *operation) {
  if (!a || !b) return std::nullopt;
  return code("({} {} {})", *a, operation, *b);
}

/// a < b, or a <= b.
TileCondition ordered(const Interval &a, const char *operation, const Interval &b) {
  return {.mayHold = joinedBy(a.low, operation, b.high),
          .holds = joinedBy(a.high, operation, b.low)};
}

TileCondition equal(const Interval &a, const Interval &b) {
  return {
      .mayHold = code("({} && {})", joinedBy(a.low, "<=", b.high), joinedBy(b.low, "<=", a.high)),
      .holds = code("({} && {})", joinedBy(a.low, "==", b.high), joinedBy(a.high, "==", b.low))};
}

TileCondition comparison(Operator operation, const Interval &a, const Interval &b) {
  switch (operation) {
    case Operator::less: return ordered(a, "<", b);
    case Operator::lessEqual: return ordered(a, "<=", b);
    case Operator::greater: return ordered(b, "<", a);
    case Operator::greaterEqual: return ordered(b, "<=", a);
    case Operator::equal: return equal(a, b);
    case Operator::notEqual: {
      const TileCondition same = equal(a, b);
      return {.mayHold = code("!{}", *same.holds), .holds = code("!{}", *same.mayHold)};
    }
    default: return {};
  }
}

}  // namespace

std::optional<Interval> intervalOf(const Expression &expression, int node,
                                   const LeafInterval &leaf) {
  const ExpressionNode &own = expression[node];
  switch (own.kind) {
    case Kind::literal:
      if (!literalOf(own)) return std::nullopt;
      return exact(Code::plain(std::to_string(*literalOf(own))), own.value >= 0);
    case Kind::coordinate: return leaf(own);
    case Kind::operand: return leaf(own);
    case Kind::unary: {
      const auto operand = intervalOf(expression, own.children[0], leaf);
      if (!operand || own.operation != Operator::negate) return std::nullopt;
      return negated(*operand);
    }
    case Kind::binary: return binaryInterval(expression, own, leaf);
    case Kind::attribute:
    case Kind::select:
    case Kind::call:
    case Kind::member: return std::nullopt;
  }
  return std::nullopt;
}

TileCondition conditionOf(const Expression &expression, int node, const LeafInterval &leaf,
                          const BlockCoverage &coverage) {
  const ExpressionNode &own = expression[node];
  if (own.calls(DeviceFunctionId::hasBlock)) {
    const auto head = intervalOf(expression, own.children[1], leaf),
               query = intervalOf(expression, own.children[2], leaf),
               key = intervalOf(expression, own.children[3], leaf);
    if (!head || !head->isExact() || !query || !key) return {};
    const Code name = coverage(head->low, *query, *key);
    return {.mayHold = code("{} != weft::TileCoverage::empty", name),
            .holds = code("{} == weft::TileCoverage::full", name)};
  }
  if (own.kind != Kind::binary) return {};
  const int left = own.children[0], right = own.children[1];
  if (own.operation == Operator::both || own.operation == Operator::either) {
    const TileCondition a = conditionOf(expression, left, leaf, coverage),
                        b = conditionOf(expression, right, leaf, coverage);
    if (own.operation == Operator::both)
      return {.mayHold = a.mayHold && b.mayHold ? bothOf(a.mayHold, b.mayHold, "&&")
                         : a.mayHold            ? a.mayHold
                                                : b.mayHold,
              .holds = bothOf(a.holds, b.holds, "&&")};
    return {.mayHold = bothOf(a.mayHold, b.mayHold, "||"),
            .holds = a.holds && b.holds ? bothOf(a.holds, b.holds, "||")
                     : a.holds          ? a.holds
                                        : b.holds};
  }
  const auto a = intervalOf(expression, left, leaf), b = intervalOf(expression, right, leaf);
  if (!a || !b) return {};
  return comparison(own.operation, *a, *b);
}

}  // namespace weft::codegen
