// Gradients against finite differences in fp64, through the reference interpreter: every op that
// has a derivative, every preset; and what the pass says where there is none.
#include "ir/Weft.h"
#include "ir/interpreter/Interpreter.h"
#include "models/Models.h"
#include "models/Presets.h"
#include "models/Support.h"
#include "passes/Rewrites.h"
#include "tests/support/NonEmpty.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <random>

using namespace weft;
using weft::test::nonEmpty;

namespace {

using Tensors = std::vector<TensorValue>;

GraphOp graphOf(mlir::ModuleOp module) { return *module.getOps<GraphOp>().begin(); }

struct Loaded {
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<std::string> messages;
  GraphOp graph() { return graphOf(*module); }
};

std::unique_ptr<Loaded> parse(const std::string &text) {
  auto loaded = std::make_unique<Loaded>();
  loaded->context.loadDialect<WeftDialect>();
  loaded->module = mlir::parseSourceString<mlir::ModuleOp>(text, &loaded->context);
  REQUIRE(loaded->module);
  return loaded;
}

std::unique_ptr<Loaded> preset(const std::string &name,
                               const std::map<std::string, int64_t> &dims) {
  auto loaded = std::make_unique<Loaded>();
  models::Request request;
  request.model = name;
  request.dims = dims;
  request.dtype = DType::f32;
  loaded->module = models::build(request, loaded->context).module;
  return loaded;
}

Tensors evaluate(GraphOp graph, const Tensors &arguments) {
  const auto results = interpret(graph, arguments, {.seed = 5, .step = 3});
  REQUIRE(mlir::succeeded(results));
  return *results;
}

double dot(const TensorValue &a, const TensorValue &b) {
  REQUIRE(a.elements.size() == b.elements.size());
  double sum = 0;
  for (size_t n = 0; n < a.elements.size(); ++n) sum += a.elements[n] * b.elements[n];
  return sum;
}

/// The scalar whose gradients are compared: results weighted by what was given as their gradients.
/// Without any, the first.
double lossOf(GraphOp forward, const Tensors &arguments, const Tensors &weights) {
  const Tensors results = evaluate(forward, arguments);
  if (weights.empty()) return results.front().elements.front();
  double loss = 0;
  for (size_t n = 0; n < results.size(); ++n) loss += dot(results[n], weights[n]);
  return loss;
}

/// (8 (f(h) - f(-h)) - (f(2h) - f(-2h))) / 12 h: the error is h^4 f'''''/30, and rounding 1e-16 f /
/// h.
double slope(GraphOp forward, const Tensors &at, const Tensors &weights, size_t argument,
             const TensorValue &direction) {
  constexpr double step = 1e-4;
  const auto moved = [&](double steps) {
    Tensors arguments = at;
    for (size_t n = 0; n < direction.elements.size(); ++n)
      arguments[argument].elements[n] += steps * step * direction.elements[n];
    return lossOf(forward, arguments, weights);
  };
  return (8 * (moved(1) - moved(-1)) - (moved(2) - moved(-2))) / (12 * step);
}

TensorValue randomLike(const TensorValue &like, std::mt19937 &engine) {
  TensorValue value = like;
  for (double &element : value.elements) element = std::normal_distribution<double>()(engine);
  return value;
}

TensorValue unitLike(const TensorValue &like, size_t at) {
  TensorValue value = like;
  std::fill(value.elements.begin(), value.elements.end(), 0.0);
  value.elements[at] = 1;
  return value;
}

/// Relative to the larger of 1 and what the gradient's elements are like. NaN never passes.
void requireClose(double gradient, double difference, double scale, const std::string &what) {
  INFO(what << ": gradient " << gradient << ", finite difference " << difference);
  CHECK(std::abs(gradient - difference) <= 1e-7 * std::max(1.0, scale));
}

struct Checked {
  size_t gradients = 0;
};

/// Differentiates a copy and compares each gradient in a random direction and at some elements;
/// forward results stay the same.
Checked checkGradients(Loaded &loaded, const DifferentiateOptions &options = {},
                       uint64_t seed = 11) {
  mlir::OwningOpRef<mlir::ModuleOp> copy = loaded.module.get().clone();
  GraphOp forward = loaded.graph(), both = graphOf(*copy);
  REQUIRE(mlir::succeeded(differentiate(both, options)));
  REQUIRE(mlir::succeeded(mlir::verify(*copy)));

  const Tensors arguments = randomArguments(forward, seed), before = evaluate(forward, arguments);
  std::mt19937 engine(static_cast<unsigned>(seed));
  Tensors weights, all = arguments;
  for (unsigned argument = forward.getNumArguments(); argument < both.getNumArguments();
       ++argument) {
    weights.push_back(randomLike(before[weights.size()], engine));
    all.push_back(weights.back());
  }
  const Tensors after = evaluate(both, all);
  for (size_t n = 0; n < before.size(); ++n) CHECK(distance(after[n], before[n], 0, 1e-12) <= 1.0);

  Checked checked;
  for (unsigned result = static_cast<unsigned>(before.size()); result < both.getNumResults();
       ++result) {
    const auto of = both.getResultAttrOfType<mlir::StringAttr>(result, "weft.gradient_of");
    REQUIRE(of);
    size_t argument = 0;
    while (mlir::cast<mlir::NameLoc>(forward.getArgument(unsigned(argument)).getLoc()).getName() !=
           of)
      ++argument;
    const TensorValue &gradient = after[result];
    REQUIRE(gradient.shape == arguments[argument].shape);
    const TensorValue direction = randomLike(gradient, engine);
    double norm = 0;
    for (double element : gradient.elements) norm += std::abs(element);
    requireClose(dot(gradient, direction), slope(forward, arguments, weights, argument, direction),
                 norm, of.str() + ", a direction");
    const size_t size = gradient.elements.size(), samples = std::min<size_t>(size, 5);
    for (size_t sample = 0; sample < samples; ++sample) {
      const size_t at = samples == size ? sample : engine() % size;
      requireClose(gradient.elements[at],
                   slope(forward, arguments, weights, argument, unitLike(gradient, at)),
                   std::abs(gradient.elements[at]), of.str() + "[" + std::to_string(at) + "]");
    }
    ++checked.gradients;
  }
  return checked;
}

const std::string types = R"(
!bji = tensor<2x3x6xf64, #weft.axes<b, j, i>>
!bjk = tensor<2x3x5xf64, #weft.axes<b, j, k>>
!ji = tensor<3x6xf64, #weft.axes<j, i>>
!ib = tensor<6x2xf64, #weft.axes<i, b>>
!bj = tensor<2x3xf64, #weft.axes<b, j>>
!i = tensor<6xf64, #weft.axes<i>>
!stats = tensor<2x3xf32, #weft.axes<b, j>>
!flag = tensor<2x3x6xi1, #weft.axes<b, j, i>>
!lengths = tensor<2xi32, #weft.axes<b>>
!table = tensor<7x3xf64, #weft.axes<v, i>>
!tokens = tensor<2x5xi32, #weft.axes<b, j>>
!rows = tensor<2x5x3xf64, #weft.axes<b, j, i>>
!scalar = tensor<f64, #weft.axes<>>
!offsets = tensor<3xi32, #weft.axes<n>>
)";

/// An op alone: arguments, statements, results. A factor in front keeps what is differentiated from
/// being linear.
struct OpCase {
  std::string name, arguments, resultTypes, statements;
  size_t gradients;
};

OpCase unary(const std::string &text, const std::string &name = "") {
  return {name.empty() ? text : name, "%x: !bji", "!bji",
          "%s = weft.mul %x, %x : !bji\n %a = weft.add %s, %x : !bji\n %y = weft." + text +
              " : !bji\n weft.return %y : !bji",
          1};
}

OpCase statement(const std::string &name, const std::string &arguments, const std::string &result,
                 const std::string &statements, size_t gradients) {
  return {name, arguments, result, statements, gradients};
}

}  // namespace

TEST_CASE("the gradient of every element-wise op equals finite differences") {
  const std::vector<OpCase> cases = {
      unary("relu %a"),
      unary("gelu %a"),
      unary("gelu_tanh %a"),
      unary("silu %a"),
      unary("tanh %a"),
      unary("sigmoid %a"),
      unary("exp %a"),
      unary("scale %a {factor = -1.75}"),
      unary("dropout %a {p = 0.4, stream = 2}"),
      unary("rotary %a {position = j, dim = i, base = 100.0}"),
      unary("rotary %a {position = j, dim = i, base = 100.0, style = interleaved}"),
      unary("rotary %a {position = b, dim = i, base = 100.0, direction = reverse}"),
      unary("identity %a"),
      unary("mul %a, %a", "square"),
      unary("div %x, %a", "quotient of one tensor"),
      statement("rsqrt", "%x: !bji", "!bji",
                "%e = weft.exp %x : !bji\n %y = weft.rsqrt %e : !bji\n weft.return %y : !bji", 1),
      statement("sqrt", "%x: !bji", "!bji",
                "%e = weft.exp %x : !bji\n %y = weft.sqrt %e : !bji\n weft.return %y : !bji", 1),
      statement("cross_entropy", "%x: !bji, %l: tensor<2x3xi32, #weft.axes<b, j>>", "!stats",
                "%y, %n = weft.cross_entropy %x, %l over i : !bji, tensor<2x3xi32, #weft.axes<b, "
                "j>> -> !stats, !stats\n weft.return %y : !stats",
                1),
      statement("cast", "%x: !bji", "tensor<2x3x6xf32, #weft.axes<b, j, i>>",
                "%y = weft.cast %x : !bji -> tensor<2x3x6xf32, #weft.axes<b, j, i>>\n"
                "weft.return %y : tensor<2x3x6xf32, #weft.axes<b, j, i>>",
                1),
      statement("select", "%c: !flag, %x: !bji, %z: !bji", "!bji",
                "%y = weft.select %c, %x, %z : !flag, !bji, !bji -> !bji\n %s = weft.mul %y, %y : "
                "!bji\n weft.return %s : !bji",
                2),
      statement("keep_if, zero_if", "%c: !flag, %x: !bji, %z: !bji", "!bji",
                "%k = weft.keep_if %x, %c : !bji, !flag\n %l = weft.zero_if %z, %c : !bji, !flag\n"
                "%y = weft.mul %k, %k : !bji\n %w = weft.mul %l, %l : !bji\n %s = weft.add %y, %w "
                ": !bji\n weft.return %s : !bji",
                2)};
  for (const OpCase &one : cases) {
    INFO(one.name);
    auto loaded = parse(types + "weft.graph @op(" + one.arguments + ") -> " + one.resultTypes +
                        " {\n" + one.statements + "\n}");
    CHECK(checkGradients(*loaded).gradients == one.gradients);
  }
}

TEST_CASE("operands that run along some axes get sums") {
  for (const std::string op : {"add", "sub", "mul", "div", "bias"})
    for (const auto &[along, type] :
         {std::pair<std::string, std::string>{"i", "!i"}, {"j, i", "!ji"}, {"i, b", "!ib"}}) {
      INFO(op << " along " << along);
      auto loaded = parse(types + "weft.graph @op(%x: !bji, %z: " + type +
                          ") -> !bji {\n %e = weft.exp %z : " + type + "\n %y = weft." + op +
                          " %x, %e along (" + along + ") : !bji, " + type +
                          "\n %s = weft.mul %y, %y : !bji\n weft.return %s : !bji\n}");
      CHECK(checkGradients(*loaded).gradients == 2);
    }
  for (const std::string op : {"add", "sub", "mul", "div", "residual"}) {
    INFO(op);
    auto loaded = parse(
        types +
        "weft.graph @op(%x: !bji, %z: !bji) -> !bji {\n %e = weft.exp %z : !bji\n %y = weft." + op +
        " %x, %e : !bji\n %s = weft.mul %y, %y : !bji\n weft.return %s : !bji\n}");
    CHECK(checkGradients(*loaded).gradients == 2);
  }
}

TEST_CASE("masks pass gradients where they pass values") {
  for (const std::string mask :
       {"causal %m {query = j, key = k}", "window %m {query = j, key = k, left = 1, right = 1}",
        "padding %m, %lengths along (b) {key = k}",
        "block %m, %blocks {query = j, key = k, size = 2}",
        "causal %m {query = j, key = k, fill = 0.0}"}) {
    INFO(mask);
    const std::string operands = mask.starts_with("padding") ? "!bjk, !lengths -> !bjk"
                                 : mask.starts_with("block")
                                     ? "!bjk, tensor<2x3xi1, #weft.axes<j, k>> -> !bjk"
                                     : "!bjk";
    auto loaded = parse(types +
                        "weft.graph @mask(%x: !bjk, %lengths: !lengths, %blocks: tensor<2x3xi1, "
                        "#weft.axes<j, k>>) -> !bjk {\n"
                        "%m = weft.mul %x, %x : !bjk\n %y = weft.mask " +
                        mask + " : " + operands +
                        "\n %p = weft.softmax %y over k : !bjk\n weft.return %p : !bjk\n}");
    CHECK(checkGradients(*loaded).gradients == 1);
  }
}

TEST_CASE("gradients of normalizations and reductions equal finite differences") {
  const std::vector<OpCase> cases = {
      statement("softmax", "%x: !bji", "!bji",
                "%y = weft.softmax %x over j : !bji\n weft.return %y : !bji", 1),
      statement("layer_norm", "%x: !bji, %g: !i, %b: !i", "!bji",
                "%y = weft.layer_norm %x, %g, %b over i {epsilon = 0.1} : !bji, !i, !i -> !bji\n"
                "%s = weft.mul %y, %y : !bji\n weft.return %s : !bji",
                3),
      statement("layer_norm over the middle",
                "%x: !bji, %g: tensor<3xf64, #weft.axes<j>>, %b: tensor<3xf64, #weft.axes<j>>",
                "!bji",
                "%y, %m, %r = weft.layer_norm %x, %g, %b over j : !bji, tensor<3xf64, "
                "#weft.axes<j>>, tensor<3xf64, #weft.axes<j>>"
                " -> !bji, tensor<2x6xf32, #weft.axes<b, i>>, tensor<2x6xf32, #weft.axes<b, i>>\n "
                "weft.return %y : !bji",
                3),
      statement("rms_norm", "%x: !bji, %g: !i", "!bji",
                "%y = weft.rms_norm %x, %g over i {epsilon = 0.1} : !bji, !i -> !bji\n"
                "%s = weft.mul %y, %y : !bji\n weft.return %s : !bji",
                2),
      statement("rms_norm over the first axis", "%x: !bji, %g: tensor<2xf64, #weft.axes<b>>",
                "!bji",
                "%y = weft.rms_norm %x, %g over b : !bji, tensor<2xf64, #weft.axes<b>> -> !bji\n "
                "weft.return %y : !bji",
                2),
      statement("sum", "%x: !bji", "!i",
                "%e = weft.exp %x : !bji\n %y = weft.reduce sum %e over b, j : !bji -> !i\n"
                "%s = weft.mul %y, %y : !i\n weft.return %s : !i",
                1),
      statement("sum of everything", "%x: !bji", "!scalar",
                "%e = weft.exp %x : !bji\n %y = weft.reduce sum %e over b, j, i : !bji -> "
                "!scalar\n weft.return %y : !scalar",
                1),
      statement("max", "%x: !bji", "!bj",
                "%y = weft.reduce max %x over i : !bji -> !bj\n %s = weft.mul %y, %y : !bj\n "
                "weft.return %s : !bj",
                1)};
  for (const OpCase &one : cases) {
    INFO(one.name);
    auto loaded = parse(types + "weft.graph @op(" + one.arguments + ") -> " + one.resultTypes +
                        " {\n" + one.statements + "\n}");
    CHECK(checkGradients(*loaded).gradients == one.gradients);
  }
}

TEST_CASE("gradients through movement equal finite differences") {
  const std::string square = "\n %s = weft.mul %y, %y : ";
  const auto moved = [&](const std::string &statementText, const std::string &type) {
    return "%y = weft." + statementText + " -> " + type + square + type +
           "\n weft.return %s : " + type;
  };
  const std::string ijb = "tensor<6x3x2xf64, #weft.axes<i, j, b>>",
                    slice = "tensor<2x3x4xf64, #weft.axes<b, j, i>>",
                    wide = "tensor<2x3x12xf64, #weft.axes<b, j, i>>",
                    split = "tensor<2x3x2x3xf64, #weft.axes<b, j, m, n>>",
                    merged = "tensor<6x6xf64, #weft.axes<t, i>>",
                    padded = "tensor<2x3x9xf64, #weft.axes<b, j, i>>",
                    spread = "tensor<3x4x2xf64, #weft.axes<j, n, b>>";
  const std::vector<OpCase> cases = {
      statement("transpose", "%x: !bji", ijb,
                moved("transpose %x {permutation = [i, j, b]} : !bji", ijb), 1),
      statement("slice", "%x: !bji", slice,
                moved("slice %x {axis = i, start = 1, size = 4} : !bji", slice), 1),
      statement("concat", "%x: !bji, %z: !bji", wide,
                moved("concat %x, %z {axis = i} : !bji", wide), 2),
      statement("concat of one tensor", "%x: !bji", wide,
                moved("concat %x, %x {axis = i} : !bji", wide), 1),
      statement("split_axis", "%x: !bji", split,
                moved("split_axis %x {axis = i, sizes = [2, 3]} : !bji", split), 1),
      statement("merge_axes", "%x: !bji", merged,
                moved("merge_axes %x {axis = b, count = 2} : !bji", merged), 1),
      statement("pad", "%x: !bji", padded,
                moved("pad %x {axis = i, start = 2, size = 9} : !bji", padded), 1),
      statement("broadcast", "%x: !bj", spread, moved("broadcast %x {into = [2, 0]} : !bj", spread),
                1),
      statement("gather", "%t: !table, %n: !tokens", "!rows",
                moved("gather %t, %n : !table, !tokens", "!rows"), 1),
      statement("pack", "%x: !bji, %o: !offsets", merged,
                moved("pack %x, %o over b, j : !bji, !offsets", merged), 1),
      statement(
          "unpack", "%x: " + merged + ", %o: !offsets", "!bji",
          moved("unpack %x, %o {axis = t, into = [0, 1], fill = 2.0} : " + merged + ", !offsets",
                "!bji"),
          1)};
  for (const OpCase &one : cases) {
    INFO(one.name);
    auto loaded = parse(types + "weft.graph @op(" + one.arguments + ") -> " + one.resultTypes +
                        " {\n" + one.statements + "\n}");
    CHECK(checkGradients(*loaded).gradients == one.gradients);
  }
}

TEST_CASE("contractions of any letters have einsums as gradients") {
  struct GemmProblem {
    std::string spec, a, b, result, attributes;
  };
  const auto tensor = [](const std::string &extents, const std::string &axes) {
    return "tensor<" + extents + "xf64, #weft.axes<" + axes + ">>";
  };
  for (const GemmProblem &gemm :
       {GemmProblem{"phi,bji->phbj", tensor("2x3x4", "p, h, i"), tensor("2x5x4", "b, j, i"),
                    tensor("2x3x2x5", "p, h, b, j"), ""},
        GemmProblem{"phbk,phbj->hbjk", tensor("2x3x2x5", "p, h, b, k"),
                    tensor("2x3x2x4", "p, h, b, j"), tensor("3x2x4x5", "h, b, j, k"),
                    " {scale = 0.3}"},
        GemmProblem{"pgbk,pgrbj->grbjk", tensor("2x3x2x5", "p, g, b, k"),
                    tensor("2x3x4x2x4", "p, g, r, b, j"), tensor("3x4x2x4x5", "g, r, b, j, k"), ""},
        GemmProblem{"ab,b->a", tensor("3x4", "a, b"), tensor("4", "b"), tensor("3", "a"), ""},
        GemmProblem{"a,b->ab", tensor("3", "a"), tensor("4", "b"), tensor("3x4", "a, b"), ""},
        GemmProblem{"ab,ab->", tensor("3x4", "a, b"), tensor("3x4", "a, b"), "!scalar", ""},
        GemmProblem{"ab,ba->ab", tensor("3x4", "a, b"), tensor("4x3", "b, a"),
                    tensor("3x4", "a, b"), ""}}) {
    INFO(gemm.spec);
    auto loaded = parse(types + "weft.graph @gemm(%a: " + gemm.a + ", %b: " + gemm.b + ") -> " +
                        gemm.result + " {\n %y = weft.contract \"" + gemm.spec + "\" %a, %b" +
                        gemm.attributes + " : " + gemm.a + ", " + gemm.b + " -> " + gemm.result +
                        "\n weft.return %y : " + gemm.result + "\n}");
    CHECK(checkGradients(*loaded).gradients == 2);
  }
}

TEST_CASE("the gradient of every preset equals finite differences") {
  const std::map<std::string, int64_t> encoder{{"b", 2}, {"j", 5}, {"h", 2},
                                               {"p", 3}, {"i", 6}, {"u", 7}};
  const std::map<std::string, int64_t> attention{{"b", 2}, {"j", 3}, {"k", 5},
                                                 {"h", 2}, {"p", 4}, {"w", 3}};
  const std::map<std::string, int64_t> grouped{{"b", 1}, {"j", 3}, {"k", 5}, {"h", 6},
                                               {"g", 2}, {"p", 3}, {"w", 2}};
  const std::map<std::string, int64_t> llama{{"b", 2}, {"j", 5}, {"h", 6}, {"g", 2},
                                             {"p", 4}, {"i", 7}, {"u", 9}};
  std::set<std::string> seen;
  const auto check = [&](const std::string &name, const std::map<std::string, int64_t> &dims,
                         size_t gradients) {
    INFO(name);
    seen.insert(name);
    auto loaded = preset(name, dims);
    CHECK(checkGradients(*loaded).gradients == gradients);
  };
  check("attention", attention, 3);
  check("attention", grouped, 3);
  std::map<std::string, int64_t> projected = encoder;
  projected.erase("u");
  check("paper-attention", projected, 9);
  check("paper-encoder", encoder, 17);
  check("bert-base", encoder, 17);
  check("bert-large", encoder, 17);
  check("albert-base", encoder, 17);
  check("distilbert", encoder, 17);
  check("gpt2", encoder, 17);
  check("llama-3-8b", llama, 10);
  check("gpt2-medium", encoder, 17);
  check("gpt-neo-1.3b", encoder, 14);
  check("gpt-neo-1.3b-local", encoder, 14);
  check("bigbird-large", encoder, 17);
  std::map<std::string, int64_t> withGlobal = encoder;
  withGlobal["a"] = 2;
  check("longformer-large", withGlobal, 23);
  check("bloom-560m", encoder, 17);
  check("mpt-7b", encoder, 9);
  std::map<std::string, int64_t> overMemory = encoder;
  overMemory["m"] = 4;
  check("transformer-decoder", overMemory, 28);
  check("masked-token", {{"b", 2}, {"j", 3}, {"h", 2}, {"p", 3}, {"i", 6}, {"u", 7}, {"v", 5}}, 71);
  for (const models::Preset &one : nonEmpty(models::presets()))
    if (models::isTrained(models::findPreset(one.name)->specification))
      CHECK(seen.contains(one.name));
}

TEST_CASE("T5 trains beside the biases of its scores, whose gradient is rejected where it stands") {
  for (const char *name : {"t5-base-encoder", "t5-base-decoder"}) {
    INFO(name);
    std::map<std::string, int64_t> dims = {{"b", 2}, {"j", 3}, {"h", 2},
                                           {"p", 3}, {"i", 6}, {"u", 7}};
    if (std::string_view(name).ends_with("decoder")) dims["m"] = 4;
    auto loaded = preset(name, dims);
    DifferentiateOptions options;
    for (mlir::BlockArgument argument : loaded->graph().getBody().getArguments())
      if (const std::string own = mlir::cast<mlir::NameLoc>(argument.getLoc()).getName().str();
          own != "relative_table")
        options.withRespectTo.push_back(own);
    CHECK(checkGradients(*loaded, options).gradients == options.withRespectTo.size());
    std::string message;
    mlir::ScopedDiagnosticHandler handler(&loaded->context, [&](mlir::Diagnostic &diagnostic) {
      message += diagnostic.str();
      return mlir::success();
    });
    CHECK(mlir::failed(differentiate(loaded->graph(), {})));
    CHECK_THAT(message, Catch::Contains("'weft.relative_bias' op has no derivative by its table"));
  }
}

TEST_CASE("a fully masked row has zero gradients") {
  auto loaded = parse(types + R"(weft.graph @attention(%x: !bjk, %lengths: !lengths) -> !bjk {
    %m = weft.mask padding %x, %lengths along (b) {key = k} : !bjk, !lengths -> !bjk
    %p = weft.softmax %m over k : !bjk
    weft.return %p : !bjk
  })");
  REQUIRE(mlir::succeeded(differentiate(loaded->graph(), {})));
  Tensors arguments = randomArguments(loaded->graph(), 3);
  arguments[1].elements = {0, 4};
  const Tensors results = evaluate(loaded->graph(), arguments);
  for (size_t n = 0; n < 30; ++n) {
    const bool isMasked = n < 15 || n % 5 == 4;
    INFO(n);
    CHECK((results[1].elements[n] == 0) == isMasked);
  }
}

TEST_CASE("equal maxima share their gradient") {
  auto loaded = parse(
      types +
      "weft.graph @max(%x: !bj) -> !scalar {\n %y = weft.reduce max %x over b, j : !bj -> !scalar\n"
      "weft.return %y : !scalar\n}");
  REQUIRE(mlir::succeeded(differentiate(loaded->graph(), {})));
  const Tensors results =
      evaluate(loaded->graph(), {{.shape = {2, 3}, .elements = {1, 4, 4, -2, 4, 0}}});
  REQUIRE(results.size() == 2);
  const double third = 1.0 / 3;
  CHECK(distance(results[1], {.shape = {2, 3}, .elements = {0, third, third, 0, third, 0}}, 1e-12,
                 0) <= 1);
}

TEST_CASE("recomputed tensors are not saved and change no gradient") {
  const std::map<std::string, int64_t> dims{{"b", 2}, {"j", 5}, {"h", 2},
                                            {"p", 3}, {"i", 6}, {"u", 7}};
  auto loaded = preset("bert-base", dims);
  CHECK(checkGradients(*loaded, {.withRespectTo = {}, .recompute = {"active", "hidden", "norm1"}})
            .gradients == 17);
  REQUIRE(mlir::succeeded(
      differentiate(loaded->graph(), {.withRespectTo = {"w1"}, .recompute = {"hidden"}})));
  std::vector<std::string> saved;
  for (mlir::Attribute name : loaded->graph()->getAttrOfType<mlir::ArrayAttr>("weft.saved"))
    saved.push_back(mlir::cast<mlir::StringAttr>(name).str());
  CHECK(std::count(saved.begin(), saved.end(), "hidden") == 0);
  CHECK(std::count(saved.begin(), saved.end(), "hidden_product") == 1);
  CHECK(loaded->graph().getNumResults() == 2);
}

TEST_CASE("what has no gradient is named where it stands") {
  const auto messageOf = [](const std::string &text, const DifferentiateOptions &options = {}) {
    auto loaded = parse(types + text);
    std::string message;
    mlir::ScopedDiagnosticHandler handler(&loaded->context, [&](mlir::Diagnostic &diagnostic) {
      const auto location = diagnostic.getLocation()->findInstanceOf<mlir::FileLineColLoc>();
      const auto before = unsigned(std::ranges::count(types, '\n'));
      message += location ? std::to_string(location.getLine() - before) + ": " + diagnostic.str()
                          : diagnostic.str();
      return mlir::success();
    });
    CHECK(mlir::failed(differentiate(loaded->graph(), options)));
    return message;
  };
  CHECK_THAT(messageOf("weft.graph @g(%x: !bj) -> !bj {\n%e, %m, %s = weft.local_softmax %x over j "
                       "{tile = 2} : !bj -> !bj,"
                       " tensor<2x2xf32, #weft.axes<b, n>>, tensor<2x2xf32, #weft.axes<b, "
                       "n>>\nweft.return %e : !bj\n}"),
             Catch::StartsWith("2: 'weft.local_softmax' op has no derivative"));
  const std::string gather =
      "weft.graph @g(%t: !table,\n%n: !tokens) -> !rows {\n%y = weft.gather %t, %n : !table, "
      "!tokens -> !rows\n"
      "weft.return %y : !rows\n}";
  CHECK(messageOf(gather, {.withRespectTo = {"n"}, .recompute = {}}) ==
        "2: gradient of 'n': its elements are 'i32'; only tensors of floats have gradients "
        "(--gradients-of t)");
  CHECK_THAT(messageOf(gather, {.withRespectTo = {"tt"}, .recompute = {}}),
             Catch::Contains("no such argument (known: t, n)"));
  CHECK_THAT(messageOf(gather, {.withRespectTo = {}, .recompute = {"y"}}),
             Catch::Contains("'weft.gather' op recompute 'y': only"));
  CHECK_THAT(messageOf("weft.graph @g(%x: !bj) -> (!bj {weft.loss}) {\n%y = weft.exp %x : "
                       "!bj\nweft.return %y : !bj\n}"),
             Catch::StartsWith("2: the loss is 'tensor<2x3xf64, #weft.axes<b, j>>', not a scalar"));
  CHECK_THAT(messageOf("weft.graph @g(%x: !tokens) -> !tokens {\nweft.return %x : !tokens\n}"),
             Catch::Contains("no result depends on an argument that has a gradient"));
  CHECK_THAT(messageOf("weft.graph @g(%x: !bji, %g: !i, %b: !i) -> !stats {\n%y, %m, %r = "
                       "weft.layer_norm %x, %g, %b over i : "
                       "!bji, !i, !i -> !bji, !stats, !stats\nweft.return %r : !stats\n}"),
             Catch::StartsWith("2: 'weft.layer_norm' op statistic 2 of a norm has no derivative"));
}

TEST_CASE("a loss among other results is what is differentiated") {
  auto loaded = parse(types + R"(weft.graph @g(%x: !bj) -> (!bj, !scalar {weft.loss}) {
    %y = weft.exp %x : !bj
    %s = weft.reduce sum %y over b, j : !bj -> !scalar
    weft.return %y, %s : !bj, !scalar
  })");
  REQUIRE(mlir::succeeded(differentiate(loaded->graph(), {})));
  CHECK(loaded->graph().getNumArguments() == 1);
  const Tensors arguments = randomArguments(loaded->graph(), 3),
                results = evaluate(loaded->graph(), arguments);
  REQUIRE(results.size() == 3);
  CHECK(distance(results[2], results[0], 1e-12, 1e-12) <= 1);
}

TEST_CASE("an upstream gradient is marked by the result that it is of, whatever that is called") {
  for (const auto &[written, marked] :
       {std::pair("y", "y"), {"d_y", "d_y"}, {"d_", "d_"}, {"0", "result"}}) {
    auto loaded = parse(types + "weft.graph @g(%x: !bj) -> !bj {\n%" + written +
                        " = weft.exp %x : !bj\nweft.return %" + written + " : !bj\n}");
    REQUIRE(mlir::succeeded(differentiate(loaded->graph(), {})));
    REQUIRE(loaded->graph().getNumArguments() == 2);
    CHECK(loaded->graph().getArgAttrOfType<mlir::StringAttr>(1, "weft.gradient_of").str() ==
          marked);
    CHECK(mlir::cast<mlir::NameLoc>(loaded->graph().getArgument(1).getLoc()).getName().str() ==
          std::string("d_") + marked);
  }
}
