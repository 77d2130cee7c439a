// Words of op attributes that are enumerations: each has one name, which is read back, and a word
// that names nothing is no silent default.
#include "kernel/Attributes.h"
#include "kernel/AxisRole.h"
#include "kernel/CoordinateExpressions.h"
#include "kernel/Error.h"
#include "kernel/ReduceKind.h"
#include "kernel/RotaryStyle.h"
#include "kernel/reference/PointEvaluator.h"
#include "tests/unit/samples/SampleSoftmaxes.h"

#include <catch2/catch.hpp>

#include <set>

using namespace weft;

TEST_CASE("kinds of reductions and masks are read back from their names") {
  for (const ReduceKind kind : {ReduceKind::sum, ReduceKind::maximum})
    CHECK(reduceKindNamed(nameOf(kind)) == kind);
  using Kind = MaskShape::Kind;
  for (const Kind kind :
       {Kind::causal, Kind::window, Kind::padding, Kind::block, Kind::pattern, Kind::document})
    CHECK(maskKindNamed(nameOf(kind)) == kind);
  CHECK(nameOf(ReduceKind::maximum) == "max");
  CHECK_FALSE(reduceKindNamed("summ"));
  CHECK_FALSE(reduceKindNamed("maximum"));
  CHECK_FALSE(maskKindNamed("Causal"));
}

TEST_CASE("an attribute is read as the type that its name has, and another type is an error") {
  BodyOp op{.kind = OpKind::softmax, .attributes = {{"axis", int64_t(2)}, {"scale", int64_t(1)}}};
  CHECK(attributeOf(op, attribute::axis) == 2);
  CHECK(attributeOr(op, attribute::tile, 8) == 8);
  CHECK(findAttribute(op, attribute::into) == nullptr);
  CHECK_FALSE(hasAttribute(op, attribute::outer));
  CHECK_THROWS_WITH(findAttribute(op, attribute::scale), Catch::Contains("of another type"));
  CHECK_THROWS_WITH(attributeOf(op, attribute::tile), Catch::Contains("'softmax' lacks"));
  setAttribute(op, attribute::emptyRow, "zero");
  CHECK(op.attributes.at("empty_row") == Attribute(std::string("zero")));
  // An expression's numbers may be integers.
  CHECK(numberNamed(op, "scale") == 1);
  CHECK_THROWS_WITH(numberNamed(op, "p"), Catch::Contains("lacks the number attribute 'p'"));
}

TEST_CASE("every role of an axis has one letter, and other labels have no role") {
  std::set<std::string_view> letters;
  for (int role = 0; role <= int(AxisRole::pagePositions); ++role) {
    const std::string_view letter = letterOf(AxisRole(role));
    CHECK(letter.size() == 1);
    CHECK(letters.insert(letter).second);
    CHECK(axisRoleNamed(letter) == AxisRole(role));
  }
  CHECK(axisRoleNamed("h") == AxisRole::heads);
  CHECK_FALSE(axisRoleNamed("heads"));
  CHECK_FALSE(axisRoleNamed("H"));
  CHECK_FALSE(axisRoleNamed(""));
}

TEST_CASE("a rotary op's style is read from its word, and no other word is a style") {
  for (const RotaryStyle style : {RotaryStyle::halved, RotaryStyle::interleaved}) {
    CHECK(rotaryStyleNamed(nameOf(style)) == style);
    CHECK(rotaryStyleOf({.kind = OpKind::rotary,
                         .attributes = {{"style", std::string(nameOf(style))}}}) == style);
  }
  CHECK(rotaryStyleOf({.kind = OpKind::rotary}) == RotaryStyle::halved);
  CHECK_FALSE(rotaryStyleNamed("half"));
  CHECK_THROWS_WITH(
      rotaryStyleOf({.kind = OpKind::rotary, .attributes = {{"style", std::string("half")}}}),
      Catch::Contains("style 'half'"));
}

TEST_CASE("only a reduce op has a kind of reduction, though masks have an attribute of that name") {
  const std::map<std::string, Attribute> sum = {{"kind", std::string("sum")}};
  CHECK(reduceKind(OpKind::reduce, sum) == ReduceKind::sum);
  CHECK_FALSE(reduceKind(OpKind::mask, sum));
  CHECK_FALSE(reduceKind(OpKind::reduce, {}));
  CHECK_FALSE(reduceKind(OpKind::reduce, {{"kind", std::string("mean")}}));
  CHECK_THROWS_WITH(reduceKind(OpKind::reduce, {{"kind", int64_t(0)}}),
                    Catch::Contains("'kind' is of another type"));
}

TEST_CASE("a mask of an unknown kind has no reference evaluation") {
  Kernel kernel = samples::causalLocalSoftmax({.b = 1, .h = 1, .j = 2, .k = 2, .p = 1}, DType::f16);
  kernel.body[1].attributes["kind"] = std::string("diagonal");
  const auto one = [](std::span<const int64_t>) { return 1.0; };
  reference::PointEvaluator evaluator(kernel, {one, one}, {});
  CHECK_THROWS_WITH(evaluator.output(0, std::vector<int64_t>(4, 0)),
                    Catch::Contains("mask of kind 'diagonal' has no reference evaluation"));
}
