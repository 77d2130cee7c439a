// Expressions as texts: what parse() reads and with which precedence, that text() prints it back,
// the messages about what it does not read, and what follows from a tree.
#include "kernel/Expression.h"
#include "kernel/Error.h"
#include "tests/support/NonEmpty.h"

#include <catch2/catch.hpp>

#include <limits>

using namespace weft;
using weft::test::nonEmpty;

namespace {

using enum ScalarOperator;

Expression x() { return Expression::operand(0); }
Expression y() { return Expression::operand(1); }
Expression z() { return Expression::operand(2); }
Expression axis(int index) { return Expression::coordinate(index); }

std::string rejection(const std::string &text) {
  try {
    Expression::parse(text);
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

ScalarType typeOf(const std::string &text) {
  const Expression expression = Expression::parse(text);
  return expression[expression.root()].type;
}

}  // namespace

TEST_CASE("operators bind as in C, and those of one precedence from left to right") {
  const auto of = [](const char *text) { return Expression::parse(text); };
  CHECK(of("{0} + {1} * {2}") ==
        Expression::binary(add, x(), Expression::binary(multiply, y(), z())));
  CHECK(of("({0} + {1}) * {2}") ==
        Expression::binary(multiply, Expression::binary(add, x(), y()), z()));
  CHECK(of("{0} - {1} - {2}") ==
        Expression::binary(subtract, Expression::binary(subtract, x(), y()), z()));
  CHECK(of("{0} - ({1} - {2})") ==
        Expression::binary(subtract, x(), Expression::binary(subtract, y(), z())));
  CHECK(of("{0} / {1} * {2}") ==
        Expression::binary(multiply, Expression::binary(divide, x(), y()), z()));
  CHECK(of("-{0} * {1}") == Expression::binary(multiply, Expression::unary(negate, x()), y()));
  CHECK(of("[0] ^ [1] + 1") ==
        Expression::binary(bitXor, axis(0),
                           Expression::binary(add, axis(1), Expression::integer(1))));
  const Expression first = Expression::binary(less, x(), y()),
                   second = Expression::binary(greaterEqual, y(), z());
  CHECK(of("{0} < {1} && {1} >= {2}") == Expression::binary(both, first, second));
  CHECK(of("{0} < {1} || {1} >= {2} && {0} < {1}") ==
        Expression::binary(either, first, Expression::binary(both, second, first)));
  CHECK(of("{0} < {1} ? {0} : {1} >= {2} ? {1} : {2}") ==
        Expression::select(first, x(), Expression::select(second, y(), z())));
}

TEST_CASE("a text comes back from its tree, and the tree from its text") {
  for (const char *text : {
           "{0}",
           "{epsilon}",
           "[3]",
           "0.5f",
           "-0.5f",
           "7",
           "-7",
           "1e-07f",
           "2.5e+20f",
           "1.0f",
           "weft::negativeInfinity",
           "-weft::negativeInfinity",
           "{0} + {1} * {2}",
           "({0} + {1}) * {2}",
           "{0} - ({1} - {2})",
           "{0} / ({1} / {2})",
           "{0} - -1.0f",
           "-({0} + {1})",
           "-{0} * -{1}",
           "-(-{0})",
           "[0] % 2 == 1 ? -{0} : {0}",
           "({0} < {1} ? {0} : {1}) * {2}",
           "{0} < {1} ? {0} : {1} >= {2} ? {1} : {2}",
           "({0} < {1} || {1} != {2}) && {0} <= {2}",
           "[0] ^ [1] + 1",
           "([0] ^ [1]) + 1",
           "{0}[[0], [1] + 2]",
           "{1}[weft::clampedIndex({0}, 8), [1]] * {0}",
           "weft::gelu({0} + {1})",
           "weft::rotation({0}, {1}).cosine * {2}",
           "weft::hasBlock({0}, [0], [1], [2]) ? {1} : weft::negativeInfinity",
       }) {
    INFO(text);
    const Expression expression = Expression::parse(text);
    CHECK(expression.text() == text);
    CHECK(Expression::parse(expression.text()) == expression);
  }
  CHECK(Expression::parse("").empty());
  CHECK(Expression().text().empty());
}

TEST_CASE("spaces and parentheses that change nothing are not kept") {
  for (const auto &[written, printed] : {std::pair("{0}*{1}+{2}", "{0} * {1} + {2}"),
                                         {"(({0}))", "{0}"},
                                         {"  ( {0} * {1} )  + {2} ", "{0} * {1} + {2}"},
                                         {"{0} + ({1} * {2})", "{0} + {1} * {2}"},
                                         {"weft::gelu( {0} )", "weft::gelu({0})"},
                                         {"2f", "2.0f"},
                                         {".5f", "0.5f"}})
    CHECK(Expression::parse(written).text() == printed);
}

TEST_CASE("a literal that a tree is built with comes back from its text") {
  for (const double value : {0.0, 1.0, -1.0, 0.1, 1e-6, 1e-20, -3e-8, 1e6, 3e38, 16777217.0})
    for (const Expression &literal :
         {Expression::literal(value),
          Expression::binary(multiply, x(), Expression::literal(value))}) {
      INFO(literal.text());
      const Expression read = Expression::parse(literal.text());
      CHECK(read.text() == literal.text());
      CHECK(float(read[read.root()].kind == ExpressionNode::Kind::binary
                      ? read[1].value
                      : read[0].value) == float(value));
    }
}

TEST_CASE("types follow from the operands") {
  CHECK(typeOf("{0} * {1}") == ScalarType::f32);
  CHECK(typeOf("[0] * 2") == ScalarType::i32);
  CHECK(typeOf("[0] * {0}") == ScalarType::f32);
  CHECK(typeOf("[0] < [1]") == ScalarType::boolean);
  CHECK(typeOf("[0] < [1] ? [0] : 3") == ScalarType::i32);
  CHECK(typeOf("weft::rotation({0}, {1})") == ScalarType::rotation);
  CHECK(typeOf("weft::rotation({0}, {1}).sine") == ScalarType::f32);
}

TEST_CASE("what cannot be read is rejected with the text, the column and what is expected") {
  for (const auto &[text, says] : std::vector<std::pair<std::string, std::string>>{
           {"{0} +", "column 6: an operand is expected"},
           {"{0} {1}", "column 5: an operator is expected"},
           {"({0}", "column 5: ')' is expected"},
           {"{0", "column 3: '}' is expected"},
           {"{}", "an operand's number or an attribute is expected"},
           {"[x]", "a number is expected"},
           {"[0", "']' is expected"},
           {"1.5", "a literal of float, such as 0.5f, is expected"},
           {"1.5.2f", "a literal of float, such as 0.5f, is expected"},
           {"99999999999999999999", "a number is expected"},
           {"{0} < {1} ? {0}", "':' is expected"},
           {"gelu({0})", "the device library has no function 'gelu'"},
           {"weft::gelu({0}, {1})", "'weft::gelu' takes 1 operands, 2 are given"},
           {"weft::gelu", "'(' is expected"},
           {"{0} % {1}", "'%' between f32 and f32"},
           {"{0} && {1}", "'&&' between f32 and f32"},
           {"{0} < {1} < {2}", "'<' between bool and f32"},
           {"-({0} < {1})", "no unary operator takes bool"},
           {"{0} ? {0} : {1}", "the condition of '?' is f32, not bool"},
           {"{0} < {1} ? {0} : {0} < {1}", "'?' chooses between f32 and bool"},
           {"{0}.cosine", "'.cosine' of f32; a rotation has .cosine and .sine"},
           {"{0}[{1}]", "a coordinate of operand 0 is f32, not i32"}}) {
    INFO(text);
    const std::string said = rejection(text);
    CHECK_THAT(said, Catch::StartsWith("expression '" + text + "', column "));
    CHECK_THAT(said, Catch::Contains(says));
  }
}

TEST_CASE("headers, operands, coordinates and rounding follow from the tree") {
  const Expression plain = Expression::parse("{2} * [1] + {epsilon}"),
                   rotated = Expression::parse("weft::slope::gelu({0}) * weft::relu({3})");
  CHECK(plain.headers().empty());
  CHECK(rotated.headers() == std::set<std::string>{"weft/math.cuh", "weft/slope.cuh"});
  CHECK(plain.operands() == std::set<int>{2});
  CHECK(rotated.operands() == std::set<int>{0, 3});
  CHECK((plain.usesCoordinates() && !rotated.usesCoordinates()));
  CHECK((plain.usesAttribute("epsilon") && !plain.usesAttribute("scale")));
  CHECK((!plain.callsFunction() && rotated.callsFunction()));
  CHECK((plain.roundsOnTheWay() && !rotated.roundsOnTheWay()));
  const Expression elsewhere = Expression::parse("{1}[[0], [1] + 1] + {0}");
  CHECK(elsewhere.readsElsewhere());
  CHECK(elsewhere.readsElsewhere(1));
  CHECK_FALSE(elsewhere.readsElsewhere(0));
  CHECK(elsewhere.withAxes({2, 5}).text() == "{1}[[2], [5] + 1] + {0}");
}

TEST_CASE("a call is known by its function, however that is spelled") {
  const Expression masked = Expression::call(
      DeviceFunctionId::hasBlock, {Expression::attribute("pattern"), Expression::integer(0),
                                   Expression::coordinate(0), Expression::coordinate(1)});
  CHECK(masked[masked.root()].calls(DeviceFunctionId::hasBlock));
  CHECK_FALSE(masked[masked.root()].calls(DeviceFunctionId::clampedIndex));
  CHECK_FALSE(masked[0].calls(DeviceFunctionId::hasBlock));
  CHECK(Expression::parse(masked.text()) == masked);
  size_t shortened = 0;
  for (const DeviceFunction &function : nonEmpty(deviceFunctions())) {
    CHECK(&deviceFunction(function.id) == &function);
    CHECK(deviceFunction(function.name) == &function);
    if (!function.shortForms) continue;
    ++shortened;
    for (const DeviceFunctionId form :
         {function.shortForms->forHalf, function.shortForms->forBfloat16}) {
      CHECK(deviceFunction(form).operands == function.operands);
      CHECK(deviceFunction(form).result == function.result);
      CHECK_FALSE(deviceFunction(form).shortForms);
    }
  }
  CHECK(shortened == 2);
}

TEST_CASE("every function of the device library is read with as many operands as it takes") {
  for (const DeviceFunction &function : nonEmpty(deviceFunctions())) {
    std::string text = std::string(function.name) + "(";
    for (int operand = 0; operand < function.operands; ++operand)
      text += (operand ? ", {" : "{") + std::to_string(operand) + "}";
    text += ")";
    INFO(text);
    const Expression expression = Expression::parse(text);
    CHECK(expression.text() == text);
    CHECK(expression[expression.root()].type == function.result);
    CHECK(expression.headers() == std::set<std::string>{std::string(function.header)});
  }
}
