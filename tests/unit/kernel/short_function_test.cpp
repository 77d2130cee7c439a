// Which ops of a fused contraction are computed in their short forms, and that the reference grants
// their errors to these alone.
#include "kernel/ShortFunction.h"
#include "kernel/reference/PointEvaluator.h"
#include "tests/unit/samples/SampleContractions.h"

#include <catch2/catch.hpp>

using namespace weft;

namespace {

constexpr samples::ContractionExtents extents{.b = 2, .j = 3, .i = 4, .u = 8};

/// The short form of the first op that calls a GELU.
std::optional<std::string> shortForm(const Kernel &kernel) {
  for (const BodyOp &op : kernel.body)
    if (!op.expression.empty() && op.expression.text().find("gelu(") != std::string::npos) {
      const auto found = shortExpression(kernel, op);
      return found ? std::optional(found->text()) : std::nullopt;
    }
  FAIL("no GELU");
  return {};
}

}  // namespace

TEST_CASE("16-bit results that only reductions read have the short form") {
  CHECK(shortForm(samples::gemmBiasGelu(extents, DType::f16, true)) == "weft::geluForHalf({0})");
  CHECK(shortForm(samples::gemmBiasGelu(extents, DType::bf16, false)) ==
        "weft::geluForBfloat16({0})");
  CHECK_FALSE(shortForm(samples::gemmBiasGelu(extents, DType::f32, false)));
  CHECK(shortForm(samples::gemmGeluGradient(extents, DType::f16)) ==
        "{0} * weft::slope::geluForHalf({1})");
  CHECK(shortForm(samples::gemmGeluGradientColumnReduction(extents, DType::bf16)) ==
        "{0} * weft::slope::geluForBfloat16({1})");
  CHECK_FALSE(shortForm(samples::gemmGeluGradient(extents, DType::f32)));

  // A gate behind it reads more than 16 bits of it.
  samples::FusedContraction gated("gated", extents, DType::f16);
  const int gate = gated.input("gate", "bju"), active = gated.gelu(gated.gemm());
  CHECK_FALSE(
      shortForm(gated.build({gated.map("mul", "{0} * {1}", {active, gate}, "gated"), active})));

  // A derivative at what is not stored may be at any number of fp32, which a short form of f16 does
  // not hold.
  samples::FusedContraction recomputed("recomputed", extents, DType::f16);
  const int dy = recomputed.input("dy", "bju");
  CHECK_FALSE(shortForm(recomputed.build({recomputed.map("gelu_dx", "{0} * weft::slope::gelu({1})",
                                                         {dy, recomputed.gemm()}, "d_biased")})));

  Kernel other = samples::gemmGeluGradient(extents, DType::f16);
  other.values[size_t(other.body.back().operands[1])].dtype = DType::f32;
  CHECK_FALSE(shortForm(other));
}

TEST_CASE("what dropout and a mask of tokens hand on has the short form") {
  samples::FusedContraction dropped("dropped", extents, DType::f16);
  const int kept = dropped.dropout(dropped.gelu(dropped.gemm()));
  CHECK(shortForm(dropped.build({kept})) == "weft::geluForHalf({0})");

  // Dropped for one reader, and read whole by another.
  samples::FusedContraction both("both", extents, DType::f16);
  const int active = both.gelu(both.gemm());
  CHECK_FALSE(shortForm(both.build(
      {both.dropout(active), both.map("relu", "weft::relu({0})", {active}, "positive")})));
}

TEST_CASE(
    "without a contraction, and of sums that leave in more bits, nothing comes in short form") {
  samples::KernelBuilder loop("loop", {{'b', 2}, {'u', 8}});
  const int x = loop.input("x", "bu", DType::f16),
            active =
                loop.op("gelu", OperatorClass::elementwise, {x}, "active", "bu", "", DType::f16);
  loop.last().expression = Expression::parse("weft::gelu({0})");
  CHECK_FALSE(shortForm(loop.build({active})));

  samples::FusedContraction summed("summed", extents, DType::f16);
  const int result = summed.gelu(summed.gemm());
  CHECK_FALSE(shortForm(summed.build({result, summed.sum(result, "total", "u", DType::f32)})));
}

TEST_CASE("the reference grants short forms their errors, and nothing else") {
  const auto errorOf = [&](const Kernel &kernel) {
    std::vector<reference::ElementReader> readers(kernel.inputs.size(),
                                                  [](std::span<const int64_t>) { return 0.5; });
    reference::PointEvaluator evaluator(kernel, readers, {.seed = 1, .step = 0, .stream = 0});
    const std::array<int64_t, 3> at = {0, 0, 0};
    return evaluator.output(0, at);
  };
  const reference::Point half = errorOf(samples::gemmGeluGradient(extents, DType::f16)),
                         whole = errorOf(samples::gemmGeluGradient(extents, DType::f32));
  CHECK(half.value == whole.value);
  const double granted = shortError(DType::f16, half.value, 0.5);  // times the GEMM, which is 1
  CHECK(half.error - whole.error == Approx(granted));
  CHECK(granted > 10 * whole.error);

  samples::FusedContraction gated("gated", extents, DType::f16),
      alone("alone", extents, DType::f16);
  const int active = gated.gelu(gated.gemm());
  const reference::Point long16 =
      errorOf(gated.build({active, gated.map("mul", "{0} * {1}", {active, active}, "square")}));
  const reference::Point short16 = errorOf(alone.build({alone.gelu(alone.gemm())}));
  CHECK(short16.value == long16.value);
  CHECK(short16.error - long16.error == Approx(shortError(DType::f16, short16.value, 0)));
}
