// Residual streams in f32 of models whose elements are f16: the same mathematics, types where they
// belong, and results that are nearer to f32 of many layers; packed and trained as well.
#include "ir/Types.h"
#include "kernel/Error.h"
#include "models/Presets.h"
#include "passes/Rewrites.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleGraphs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

using namespace weft;
using namespace weft::test;

namespace {

std::unique_ptr<Loaded> built(models::Request request, bool isWide) {
  auto loaded = std::make_unique<Loaded>();
  request.dtype = DType::f16;
  if (isWide) request.residual = DType::f32;
  loaded->module = models::build(request, loaded->context).module;
  return loaded;
}

DType typeOf(mlir::Value value) { return *toDType(value.getType()); }

/// Tiny dimensions of a preset, with what its family has beside those of all.
Dims tinyDims(const models::LayerSpecification &specification) {
  Dims dims{{"b", 2}, {"j", 6}, {"h", 2}, {"p", 4}, {"i", 8}, {"u", 12}};
  const auto has = [&](const char *axis) {
    return std::ranges::count(models::settableDims(specification), axis) > 0;
  };
  if (specification.family == models::Family::llama) dims["g"] = 1;
  if (has("m")) dims["m"] = 4;
  if (has("a")) dims["a"] = 2;
  if (has("v")) dims["v"] = 11;
  return dims;
}

std::string namesOf(mlir::Operation *op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  op->print(stream);
  return text;
}

/// Sums of residuals, and what they skip, are f32; products read f16.
void checkTypes(GraphOp graph) {
  int sums = 0;
  graph.walk([&](ResidualOp sum) {
    INFO(namesOf(sum));
    CHECK(typeOf(sum.getResult()) == DType::f32);
    CHECK(typeOf(sum.getA()) == DType::f32);
    ++sums;
  });
  graph.walk([&](ContractOp product) {
    INFO(namesOf(product));
    CHECK(typeOf(product.getA()) == DType::f16);
    CHECK(typeOf(product.getB()) == DType::f16);
  });
  CHECK(sums >= 2);
}

std::vector<TensorValue> evaluated(Loaded &loaded, const std::vector<TensorValue> &arguments,
                                   bool rounds) {
  const auto results =
      interpret(loaded.graph(), arguments,
                {.precision = rounds ? Precision::f32 : Precision::f64, .roundToStorage = rounds});
  REQUIRE(mlir::succeeded(results));
  return *results;
}

double meanDifference(const TensorValue &a, const TensorValue &b) {
  double sum = 0;
  for (size_t n = 0; n < a.elements.size(); ++n) sum += std::pow(a.elements[n] - b.elements[n], 2);
  return std::sqrt(sum / double(a.elements.size()));
}

/// Matrices as small as those that models begin with, so that the stream is larger than what a
/// layer adds to it.
void shrinkMatrices(GraphOp graph, std::vector<TensorValue> &arguments) {
  for (mlir::BlockArgument argument : graph.getBody().getArguments())
    if (TensorValue &own = arguments[argument.getArgNumber()];
        graph.isParameter(argument.getArgNumber()) && own.shape.size() > 1)
      for (double &element : own.elements) element /= 8;  // exact
}

}  // namespace

TEST_CASE("layers of every preset compute the same by a residual stream in f32") {
  for (const models::PresetRow &row : nonEmpty(models::presetRows())) {
    if (row.specification.family == models::Family::attention || row.specification.attentionOnly)
      continue;
    INFO(row.specification.name);
    const models::Request request{.model = row.specification.name,
                                  .dims = tinyDims(row.specification)};
    const auto plain = built(request, false), wide = built(request, true);
    checkTypes(wide->graph());
    const std::vector<TensorValue> arguments = randomArguments(plain->graph(), 3);
    const std::vector<TensorValue> expected = evaluated(*plain, arguments, false),
                                   actual = evaluated(*wide, arguments, false);
    CHECK(distance(actual[0], expected[0], 1e-9, 1e-9) <= 1.0);
  }
}

TEST_CASE("what a layer reads and gives is the stream, of a whole model its states") {
  const Dims dims{{"b", 2}, {"j", 6}, {"h", 2}, {"i", 8}, {"u", 12}};
  for (const char *name : {"bert-base", "gpt2", "llama-3-8b"}) {
    INFO(name);
    Dims own = dims;
    if (std::string(name) == "llama-3-8b") own["g"] = 1;
    const auto layers = built({.model = name, .dims = own, .layers = 2}, true);
    CHECK(typeOf(layers->graph().getBody().getArgument(0)) == DType::f32);
    CHECK(typeOf(layers->graph().getBody().front().getTerminator()->getOperand(0)) == DType::f32);
    own["v"] = 11;
    const auto whole =
        built({.model = name, .dims = own, .part = models::Part::model, .layers = 2}, true);
    checkTypes(whole->graph());
    const bool hasLogits = std::string(name) != "bert-base";
    CHECK(typeOf(whole->graph().getBody().front().getTerminator()->getOperand(0)) ==
          (hasLogits ? DType::f16 : DType::f32));
  }
}

TEST_CASE("12 layers whose stream is f32 differ less from f32 than those whose stream is f16") {
  for (const char *name : {"bert-base", "gpt2", "llama-3-8b"}) {
    INFO(name);
    Dims dims{{"b", 1}, {"j", 8}, {"h", 2}, {"i", 32}, {"u", 64}};
    if (std::string(name) == "llama-3-8b") dims["g"] = 1;
    const models::Request request{.model = name, .dims = dims, .layers = 12};
    const auto narrow = built(request, false), wide = built(request, true);
    std::vector<TensorValue> arguments = randomArguments(narrow->graph(), 5);
    shrinkMatrices(narrow->graph(), arguments);
    const TensorValue exact = evaluated(*narrow, arguments, false)[0];
    const double byNarrow = meanDifference(evaluated(*narrow, arguments, true)[0], exact),
                 byWide = meanDifference(evaluated(*wide, arguments, true)[0], exact);
    INFO(fmt::format("{} by f16, {} by f32", byNarrow, byWide));
    CHECK(byWide < 0.8 * byNarrow);
  }
}

TEST_CASE("a stream in f32 is packed as one of the elements' type is") {
  for (const char *name : {"bert-base", "gpt2"}) {
    INFO(name);
    models::Request request{
        .model = name, .dims = {{"b", 3}, {"j", 6}, {"h", 2}, {"i", 8}, {"u", 12}}, .layers = 2};
    request.ragged = true;
    const auto padded = built(request, true), packed = built(request, true);
    REQUIRE(packSequences(packed->graph(), "j") == "");
    REQUIRE(mlir::succeeded(mlir::verify(packed->graph())));
    int unpacked = 0;
    packed->graph().walk(
        [&](ResidualOp sum) { unpacked += dimensionOf(sum.getResult().getType(), "t") ? 0 : 1; });
    CHECK(unpacked == 0);
    std::vector<TensorValue> arguments = randomArguments(padded->graph(), 7);
    const std::vector<double> lengths = {6, 2, 0};
    for (mlir::BlockArgument argument : padded->graph().getBody().getArguments())
      if (typeOf(argument) == DType::i32) arguments[argument.getArgNumber()].elements = lengths;
    const TensorValue actual = evaluated(*packed, arguments, false)[0];
    TensorValue expected = evaluated(*padded, arguments, false)[0];
    for (size_t n = 0; n < expected.elements.size(); ++n)
      if (double(n / 8 % 6) >= lengths[n / 48]) expected.elements[n] = 0;
    CHECK(distance(actual, expected, 1e-9, 1e-9) <= 1.0);
  }
}

TEST_CASE("gradients of a stream in f32 are f32, and those of its layers the same") {
  for (const char *name : {"bert-base", "gpt2", "llama-3-8b"}) {
    INFO(name);
    Dims dims{{"b", 2}, {"j", 4}, {"h", 2}, {"i", 8}, {"u", 12}};
    if (std::string(name) == "llama-3-8b") dims["g"] = 1;
    models::Request request{.model = name, .dims = dims, .dropout = 0.0};
    request.training = true;
    const auto plain = built(request, false), wide = built(request, true);
    for (Loaded *one : {plain.get(), wide.get()}) {
      REQUIRE(mlir::succeeded(differentiate(one->graph(), {})));
      REQUIRE(mlir::succeeded(mlir::verify(one->graph())));
    }
    const std::vector<TensorValue> arguments = randomArguments(plain->graph(), 9);
    const std::vector<TensorValue> expected = evaluated(*plain, arguments, false),
                                   actual = evaluated(*wide, arguments, false);
    REQUIRE(actual.size() == expected.size());
    for (size_t n = 0; n < actual.size(); ++n) {
      INFO("result " << n);
      CHECK(distance(actual[n], expected[n], 1e-9, 1e-9) <= 1.0);
    }
  }
}

TEST_CASE("types that no residual stream has, and graphs without one") {
  const auto errorOf = [](models::Request request, DType residual) -> std::string {
    mlir::MLIRContext context;
    request.residual = residual;
    try {
      models::build(request, context);
    } catch (const Error &error) {
      CHECK(error.kind == ErrorKind::badInput);
      return error.what();
    }
    return "no error";
  };
  CHECK(errorOf({.model = "bert-base", .dtype = DType::f16}, DType::bf16) ==
        "bert-base: --residual bf16: the residual stream is f32 or has the elements' type, f16; "
        "nearest is --residual f32");
  CHECK(errorOf({.model = "bert-base", .dtype = DType::f16}, DType::f16) == "no error");
  CHECK(errorOf({.model = "bert-base", .dtype = DType::f16, .part = models::Part::attention},
                DType::f32) ==
        "bert-base: --residual f32: attention has no residual; nearest is --part layer");
  CHECK(errorOf({.model = "attention", .dtype = DType::f16}, DType::f32) ==
        "attention: --residual f32: attention has no residual; nearest is --part layer");
}
