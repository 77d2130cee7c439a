// The reference of single elements on fused contractions: one kernel says what the chain of its ops
// says, one by one.
#include "kernel/ContractionRegion.h"
#include "kernel/reference/PointEvaluator.h"
#include "tests/unit/samples/SampleKernels.h"

#include <catch2/catch.hpp>

#include <memory>

using namespace weft;
using namespace weft::reference;
using samples::KernelBuilder;

namespace {

const std::map<char, int64_t> extents = {{'b', 2}, {'j', 5}, {'i', 7}, {'u', 6}};
constexpr DropoutSource source{.seed = 7, .step = 2};

/// One op of the chain: its name, spelling and attributes, and whether it reads a tensor of the
/// result's shape or a vector.
struct Link {
  const char *name, *spelling, *other;
  std::map<std::string, Attribute> attributes = {};
};
const std::vector<Link> chain = {{"bias", "{0} + {1}", "u"},
                                 {"gelu", "weft::gelu({0})", nullptr},
                                 {"dropout", "", nullptr, {{"p", 0.5}, {"stream", int64_t(1)}}},
                                 {"residual", "{0} + {1}", "bju"},
                                 {"scale", "{0} * {factor}", nullptr, {{"factor", 3.0}}}};

double elementOf(size_t tensor, std::span<const int64_t> at) {
  int64_t place = int64_t(tensor) * 3;
  for (int64_t index : at) place = place * 7 + index;
  return double(place % 23 - 11) / 8;
}
ElementReader tensor(size_t number) {
  return [number](std::span<const int64_t> at) { return elementOf(number, at); };
}

int add(KernelBuilder &builder, const Link &link, int x, int other) {
  std::vector<ValueId> operands = {x};
  if (other >= 0) operands.push_back(other);
  const ValueId value = builder.op(link.name, OperatorClass::elementwise, operands,
                                   std::string(link.name) + "_y", "bju");
  builder.last().expression = Expression::parse(link.spelling);
  builder.last().attributes = link.attributes;
  return value;
}

int addContraction(KernelBuilder &builder, int x, int w) {
  const int c = builder.op("contract", OperatorClass::contraction, {x, w}, "c", "bju", "i");
  builder.last().attributes = {{"spec", std::string("bji,iu->bju")}, {"scale", 0.25}};
  return c;
}

}  // namespace

TEST_CASE("what a function computes on the way may be flushed to zero, and nothing else") {
  const auto at = [](const char *name, const char *spelling, double x) {
    KernelBuilder builder("function", extents);
    const int input = builder.input("x", "u"),
              y = builder.op(name, OperatorClass::elementwise, {input}, "y", "u");
    builder.last().expression = Expression::parse(spelling);
    const Kernel kernel = builder.build({y});
    PointEvaluator evaluator(kernel, {[x](std::span<const int64_t>) { return x; }}, source);
    return evaluator.output(0, std::array<int64_t, 1>{0});
  };
  // 1 / (1 + exp(-x)) of fp32 is zero where exp(-x) overflows.
  for (const Point &tail :
       {at("silu", "weft::silu({0})", -95.0), at("gelu_tanh", "weft::geluTanh({0})", -10.2)}) {
    CHECK(tail.value < 0);
    CHECK(-tail.value < 0x1p-126);
    CHECK(tail.error >= -tail.value);
    CHECK(tail.error < 0x1p-118);
  }
  CHECK(at("silu", "weft::silu({0})", 1.0).error < 2e-6);
  // The tanh form has no cancellation to hide behind: far left of zero its digits are right.
  const Point left = at("gelu_tanh", "weft::geluTanh({0})", -6.0);
  CHECK(left.value ==
        Approx(-6 / (1 + std::exp(2 * std::sqrt(2 / M_PI) * (6 + 0.044715 * 216)))).epsilon(1e-12));
}

TEST_CASE("a fused contraction has the elements of its ops one by one") {
  KernelBuilder fused("fused", extents);
  const int x = fused.input("x", "bji"), w = fused.input("w", "iu");
  std::vector<ValueId> others;
  std::vector<ElementReader> readers = {tensor(0), tensor(1)};
  for (const Link &link : chain) {
    others.push_back(link.other ? fused.input(std::string(link.name) + "_other", link.other)
                                : ValueId());
    if (link.other) readers.push_back(tensor(readers.size()));
  }
  int value = addContraction(fused, x, w);
  std::vector<ValueId> outputs;
  for (size_t i = 0; i < chain.size(); ++i)
    outputs.push_back(value = add(fused, chain[i], value, others[i]));
  const Kernel kernel = fused.build({outputs.back(), outputs.front()});
  REQUIRE(contractionRegion(kernel));
  PointEvaluator whole(kernel, readers, source);

  KernelBuilder first("first", extents);
  const int x1 = first.input("x", "bji"), w1 = first.input("w", "iu");
  std::vector<std::shared_ptr<PointEvaluator>> apart;
  apart.push_back(std::make_shared<PointEvaluator>(first.build({addContraction(first, x1, w1)}),
                                                   std::vector<ElementReader>{tensor(0), tensor(1)},
                                                   source));
  size_t next = 2;
  for (const Link &link : chain) {
    KernelBuilder one(link.name, extents);
    std::vector<ElementReader> own = {[before = apart.back()](std::span<const int64_t> at) {
      return before->output(0, at).value;
    }};
    const int from = one.input("from", "bju"),
              other = link.other ? one.input("other", link.other) : ValueId();
    if (link.other) own.push_back(tensor(next++));
    apart.push_back(
        std::make_shared<PointEvaluator>(one.build({add(one, link, from, other)}), own, source));
  }
  int64_t kept = 0;
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t j = 0; j < 5; ++j)
      for (int64_t u = 0; u < 6; ++u) {
        const int64_t at[] = {b, j, u};
        const Point end = whole.output(0, at), expected = apart.back()->output(0, at);
        CHECK(end.value == Approx(expected.value).epsilon(1e-12).margin(1e-12));
        CHECK(end.error >= expected.error);  // of all ops, not of the last alone
        CHECK(whole.output(1, at).value ==
              Approx(apart[1]->output(0, at).value).epsilon(1e-12).margin(1e-12));
        kept += apart[3]->output(0, at).value != 0 ? 1 : 0;
      }
  CHECK(kept > 0);
  CHECK(kept < 60);
}
