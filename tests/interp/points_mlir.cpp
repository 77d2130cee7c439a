// The point evaluator against the interpreter: every kernel of tests/emulate and of the families'
// tests, every element of every output. The two share the dropout bits and the rounding of stored
// types, nothing else. Then its error bounds: the interpreter's fp32 arithmetic must lie within
// them.
#include "ir/Weft.h"
#include "ir/interpreter/Interpreter.h"
#include "kernel/reference/PointEvaluator.h"
#include "kernel/reference/Rounding.h"
#include "passes/Passes.h"
#include "tests/support/NonEmpty.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <random>
#include <regex>
#include <sstream>

using namespace weft;
using weft::test::nonEmpty;

namespace {

std::vector<std::filesystem::path> kernelFiles() {
  std::vector<std::filesystem::path> files;
  for (const char *folder : {WEFT_SOURCE_DIR "/tests/emulate", WEFT_SOURCE_DIR "/codegen/families"})
    for (const auto &entry : std::filesystem::recursive_directory_iterator(folder))
      if (entry.path().string().ends_with(".mlir.in")) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string readFile(const std::filesystem::path &path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::vector<reference::ElementReader> readersOf(const std::vector<TensorValue> &arguments) {
  std::vector<reference::ElementReader> readers;
  for (const TensorValue &argument : arguments)
    readers.push_back([&argument](std::span<const int64_t> at) {
      int64_t position = 0;
      for (size_t d = 0; d < at.size(); ++d) position = position * argument.shape[d] + at[d];
      return argument.elements[size_t(position)];
    });
  return readers;
}

std::unique_ptr<mlir::MLIRContext> newContext() {
  mlir::DialectRegistry registry;
  registry.insert<WeftDialect>();
  auto context = std::make_unique<mlir::MLIRContext>(registry);
  context->loadAllAvailableDialects();
  return context;
}

struct Counts {
  size_t kernels = 0, elements = 0;
};

void compare(KernelOp op, Counts &counts) {
  const Kernel kernel = toKernel({op}, "");
  const std::vector<TensorValue> arguments = randomArguments(op, 11);
  const InterpreterOptions options{.precision = Precision::f64,
                                   .roundToStorage = false,
                                   .roundFactors = true,
                                   .seed = 0x123456789abcdefull,
                                   .step = 5};
  InterpreterOptions inSingle = options;
  inSingle.precision = Precision::f32;
  const auto exact = interpret(op, arguments, options),
             rounded = interpret(op, arguments, inSingle);
  REQUIRE(mlir::succeeded(exact));
  REQUIRE(mlir::succeeded(rounded));
  reference::PointEvaluator points(kernel, readersOf(arguments),
                                   {.seed = options.seed, .step = options.step, .stream = 0});
  for (size_t output = 0; output < exact->size(); ++output) {
    const TensorValue &expected = (*exact)[output];
    for (size_t n = 0; n < expected.elements.size(); ++n) {
      const reference::Shape at = reference::coordinatesOf(int64_t(n), expected.shape);
      const reference::Point point = points.output(output, at);
      const double difference =
          reference::elementDistance(point.value, expected.elements[n], 1e-12, 1e-9);
      const double single = (*rounded)[output].elements[n];
      if (difference <= 1 && reference::agrees(single, point, DType::f32)) continue;
      FAIL(fmt::format("{} output {} at [{}]: {} instead of {}; fp32 gives {}, bound {}",
                       kernel.name, output, fmt::join(at, ", "), point.value, expected.elements[n],
                       single, point.error));
    }
    counts.elements += expected.elements.size();
  }
  ++counts.kernels;
}

}  // namespace

TEST_CASE("single elements agree with the interpreter") {
  const auto context = newContext();
  Counts counts;
  for (const std::filesystem::path &path : nonEmpty(kernelFiles()))
    for (const char *dtype : {"f32", "f16"}) {
      INFO(path);
      const std::string text = std::regex_replace(readFile(path), std::regex("FLOAT"), dtype);
      mlir::OwningOpRef<mlir::ModuleOp> module =
          mlir::parseSourceString<mlir::ModuleOp>(text, context.get(), path.string());
      REQUIRE(module);
      module->walk([&](KernelOp op) { compare(op, counts); });
    }
  CHECK(counts.kernels >= 60);
  CHECK(counts.elements >= 10000);
  WARN(counts.kernels << " kernels, " << counts.elements << " elements");
}

namespace {

constexpr const char *softmaxContractions = R"(
!bhjp = tensor<2x2x5x4xFLOAT, #weft.axes<b, h, j, p>>
!bhkp = tensor<2x2x9x4xFLOAT, #weft.axes<b, h, k, p>>
!whbk = tensor<3x2x2x9xFLOAT, #weft.axes<w, h, b, k>>
!bhjk = tensor<2x2x5x9xFLOAT, #weft.axes<b, h, j, k>>
!bhjw = tensor<2x2x5x3xFLOAT, #weft.axes<b, h, j, w>>
!bhj = tensor<2x2x5xf32, #weft.axes<b, h, j>>
!bhjwn = tensor<2x2x5x3x3xf32, #weft.axes<b, h, j, w, n>>
!b = tensor<2xi32, #weft.axes<b>>
weft.graph @softmax_contractions(%q: !bhjp, %k: !bhkp, %v: !whbk, %lengths: !b, %x: !bhjk) {
  %0, %1 = weft.kernel @attention (%a = %q : !bhjp, %b = %k : !bhkp, %c = %v : !whbk,
                                   %n = %lengths : !b) -> (!bhjw, !bhj) {
    %s = weft.contract "bhjp,bhkp->bhjk" %a, %b {scale = 0.5} : !bhjp, !bhkp -> !bhjk
    %t = weft.mask causal %s {query = j, key = k} : !bhjk
    %m = weft.mask padding %t, %n along (b) {key = k} : !bhjk, !b
    %y, %logs = weft.online_softmax_contract "bhjk,whbk->bhjw" %m, %c : !bhjk, !whbk -> !bhjw, !bhj
    weft.yield %y, %logs : !bhjw, !bhj
  }
  %2 = weft.kernel @subvectors (%e = %x : !bhjk, %c = %v : !whbk) -> (!bhjwn) {
    %p = weft.subvector_contract "bhjk,whbk->bhjw" %e, %c {tile = 4} : !bhjk, !whbk -> !bhjwn
    weft.yield %p : !bhjwn
  }
  %3, %4 = weft.kernel @dropped (%a = %q : !bhjp, %b = %k : !bhkp, %c = %v : !whbk)
                                -> (!bhjw, !bhj) {
    %s = weft.contract "bhjp,bhkp->bhjk" %a, %b {scale = 0.5} : !bhjp, !bhkp -> !bhjk
    %t = weft.mask causal %s {query = j, key = k} : !bhjk
    %y, %logs = weft.online_softmax_contract "bhjk,whbk->bhjw" %t, %c {p = 0.25, stream = 3}
        : !bhjk, !whbk -> !bhjw, !bhj
    weft.yield %y, %logs : !bhjw, !bhj
  }
  %5 = weft.kernel @dropped_subvectors (%e = %x : !bhjk, %c = %v : !whbk) -> (!bhjwn) {
    %p = weft.subvector_contract "bhjk,whbk->bhjw" %e, %c {tile = 4, p = 0.25, stream = 4}
        : !bhjk, !whbk -> !bhjwn
    weft.yield %p : !bhjwn
  }
  weft.return
}
)";

}  // namespace

TEST_CASE("single elements of contractions of a softmax agree with the interpreter") {
  const auto context = newContext();
  Counts counts;
  for (const char *dtype : {"f32", "f16", "bf16"}) {
    const std::string text = std::regex_replace(softmaxContractions, std::regex("FLOAT"), dtype);
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, context.get());
    REQUIRE(module);
    module->walk([&](KernelOp op) { compare(op, counts); });
  }
  CHECK(counts.kernels == 12);
  CHECK(counts.elements == 3 * 2 * (60 + 20 + 180));
}

namespace {

/// A row of an online softmax as a kernel computes it: in fp32, tile by tile, exponentials rounded
/// to `rounded` against the running maximum.
struct FoldedRow {
  std::vector<float> outputs;
  float logSum = 0;
};
/// Which keys dropout keeps, and its factor: of each exponential before that is rounded, or of the
/// result.
struct Kept {
  std::vector<bool> keys;
  float before = 1, behind = 1;
};
FoldedRow foldedRow(const std::vector<double> &scores, const TensorValue &v, int64_t tile,
                    DType rounded, const Kept &kept) {
  const auto keys = int64_t(scores.size()), width = v.shape[1];
  constexpr float minusInfinity = -std::numeric_limits<float>::infinity();
  float maximum = minusInfinity, sum = 0;
  std::vector<float> sums(size_t(width), 0.0F);
  for (int64_t begin = 0; begin < keys; begin += tile) {
    const int64_t end = std::min(begin + tile, keys);
    float larger = maximum;
    for (int64_t k = begin; k < end; ++k) larger = std::max(larger, float(scores[size_t(k)]));
    if (larger == minusInfinity) continue;
    const float factor = std::exp(maximum - larger);
    sum *= factor;
    for (float &one : sums) one *= factor;
    maximum = larger;
    for (int64_t k = begin; k < end; ++k) {
      const float e = std::exp(float(scores[size_t(k)]) - maximum);
      sum += e;
      if (!kept.keys[size_t(k)]) continue;
      for (int64_t w = 0; w < width; ++w)
        sums[size_t(w)] += float(reference::roundTo(rounded, e * kept.before)) *
                           float(v.elements[size_t(k * width + w)]);
    }
  }
  if (maximum == minusInfinity) return {.outputs = sums, .logSum = minusInfinity};
  for (float &one : sums) one = one / sum * kept.behind;
  return {.outputs = sums, .logSum = maximum + std::log(sum)};
}

/// Scores of rows that are hard to get right, one kind a row.
TensorValue adversarialScores(int64_t keys, std::mt19937_64 &random) {
  std::normal_distribution<double> normal;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::vector<std::function<double(int64_t)>> kinds = {
      [&](int64_t) { return normal(random); },
      [&](int64_t) { return 6 * normal(random); },
      [](int64_t) { return 0.75; },
      [=](int64_t) { return -infinity; },
      [&](int64_t k) { return k == keys / 2 ? 40 : normal(random); },
      [](int64_t k) { return k == 0 ? 1.0 : 0.0; },  // exponentials that all round alike
      [](int64_t k) { return k % 2 == 0 ? 6e4 : -6e4; },
      [=](int64_t k) { return k == 3 ? 6e4 : -infinity; },
      [](int64_t k) { return double(k) / 16; },  // the maximum grows with every tile
      [&](int64_t k) {
        return k == 0 ? 0.0 : -16.0 - std::abs(normal(random));
      }};  // f16 subnormals
  TensorValue scores{.shape = {int64_t(kinds.size()), keys}, .elements = {}};
  for (const auto &kind : kinds)
    for (int64_t k = 0; k < keys; ++k) scores.elements.push_back(float(kind(k)));
  return scores;
}

}  // namespace

TEST_CASE("the bound of an online softmax admits rounded exponentials and no more") {
  const auto context = newContext();
  std::mt19937_64 random(3);
  for (const auto &[dtype, coarser] :
       {std::pair{DType::f16, DType::bf16}, {DType::bf16, DType::f8e4m3}, {DType::f32, DType::f16}})
    for (const int64_t keys : {1, 7, 1000})
      for (const int variant : {0, 1, 2, 3}) {
        const bool isPositive = variant % 2 == 1, isDropped = variant >= 2;
        INFO(nameOf(dtype) << " " << keys << " keys, " << (isPositive ? "positive" : "random")
                           << (isDropped ? ", dropped" : ""));
        const int64_t width = 16;
        const TensorValue scores = adversarialScores(keys, random);
        const int64_t length = keys, rows = scores.shape[0];
        TensorValue v{.shape = {length, width}, .elements = {}};
        std::normal_distribution<double> normal;
        for (int64_t n = 0; n < length * width; ++n) {
          const double element = normal(random);
          v.elements.push_back(reference::roundTo(dtype, isPositive ? std::abs(element) : element));
        }
        const std::string text = fmt::format(
            "weft.graph @g(%x: tensor<{0}x{1}xf32, #weft.axes<j, k>>, %v: tensor<{1}x{2}x{3}, "
            "#weft.axes<k, w>>) {{\n%0, %1 = weft.kernel @fold (%a = %x : tensor<{0}x{1}xf32, "
            "#weft.axes<j, k>>, %b = %v : tensor<{1}x{2}x{3}, #weft.axes<k, w>>) -> "
            "(tensor<{0}x{2}xf32, #weft.axes<j, w>>, tensor<{0}xf32, #weft.axes<j>>) {{\n%y, %l = "
            "weft.online_softmax_contract \"jk,kw->jw\" %a, %b {4}: tensor<{0}x{1}xf32, "
            "#weft.axes<j, "
            "k>>, tensor<{1}x{2}x{3}, #weft.axes<k, w>> -> tensor<{0}x{2}xf32, #weft.axes<j, w>>, "
            "tensor<{0}xf32, #weft.axes<j>>\nweft.yield %y, %l : tensor<{0}x{2}xf32, #weft.axes<j, "
            "w>>, tensor<{0}xf32, #weft.axes<j>>\n}}\nweft.return\n}}",
            rows, length, width, nameOf(dtype), isDropped ? "{p = 0.25, stream = 3} " : "");
        auto module = mlir::parseSourceString<mlir::ModuleOp>(text, context.get());
        REQUIRE(module);
        const std::vector<TensorValue> arguments{scores, v};
        module->walk([&](KernelOp op) {
          reference::PointEvaluator points(toKernel({op}, ""), readersOf(arguments), {});
          double closest = 0;
          size_t beyond = 0, failing = 0;
          for (int64_t j = 0; j < rows; ++j) {
            const std::vector<double> row(scores.elements.begin() + j * length,
                                          scores.elements.begin() + (j + 1) * length);
            Kept kept{.keys = std::vector<bool>(size_t(length), true)};
            for (int64_t k = 0; isDropped && k < length; ++k)
              kept.keys[size_t(k)] = reference::dropoutDraw({.stream = 3}, 0, j, k) >= 16384;
            if (isDropped) (j % 2 == 0 ? kept.before : kept.behind) = 1 / 0.75f;
            const FoldedRow exact = foldedRow(row, v, 64, dtype, kept),
                            coarse = foldedRow(row, v, 64, coarser, kept);
            const int64_t at[] = {j};
            failing += !reference::agrees(exact.logSum, points.output(1, at), DType::f32);
            for (int64_t w = 0; w < width; ++w) {
              const int64_t element[] = {j, w};
              const reference::Point point = points.output(0, element);
              const double error = std::abs(exact.outputs[size_t(w)] - point.value);
              failing += !reference::agrees(exact.outputs[size_t(w)], point, DType::f32);
              beyond += !reference::agrees(coarse.outputs[size_t(w)], point, DType::f32);
              if (point.error > 0) closest = std::max(closest, error / point.error);
            }
          }
          CHECK(failing == 0);
          if (keys == 1) return;  // an exponential is 1
          CHECK(beyond > 0);      // exponentials of fewer digits are found out
          // And the bound is not far from what may happen.
          if (dtype != DType::f32) CHECK(closest > 0.15);
        });
      }
}

TEST_CASE("an online softmax of scores in closed form") {
  // Equal scores give the mean; a maximum far above the rest gives its value; masked rows give 0.
  const auto context = newContext();
  const char *text = R"(
!jk = tensor<3x4xf32, #weft.axes<j, k>>
!kw = tensor<4x1xf16, #weft.axes<k, w>>
!jw = tensor<3x1xf16, #weft.axes<j, w>>
!j = tensor<3xf32, #weft.axes<j>>
weft.graph @g(%x: !jk, %v: !kw) {
  %0, %1 = weft.kernel @fold (%a = %x : !jk, %b = %v : !kw) -> (!jw, !j) {
    %y, %l = weft.online_softmax_contract "jk,kw->jw" %a, %b : !jk, !kw -> !jw, !j
    weft.yield %y, %l : !jw, !j
  }
  weft.return
}
)";
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, context.get());
  REQUIRE(module);
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<TensorValue> arguments{
      {.shape = {3, 4},
       .elements = {5, 5, 5, 5, 6e4, -6e4, 0, -infinity, -infinity, -infinity, -infinity,
                    -infinity}},
      {.shape = {4, 1}, .elements = {1, 2, 4, 8}}};
  const double expected[] = {3.75, 1, 0}, logs[] = {5 + std::log(4.0), 6e4, -infinity};
  module->walk([&](KernelOp op) {
    reference::PointEvaluator points(toKernel({op}, ""), readersOf(arguments), {});
    for (int64_t j = 0; j < 3; ++j) {
      const int64_t element[] = {j, 0}, row[] = {j};
      CHECK(points.output(0, element).value == Approx(expected[j]).epsilon(1e-12));
      CHECK(points.output(0, element).error <= 0x1p-10 * expected[j]);
      CHECK((logs[j] == points.output(1, row).value ||
             points.output(1, row).value == Approx(logs[j]).epsilon(1e-12)));
    }
  });
}

TEST_CASE("NaN never agrees, infinities agree with themselves") {
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               infinity = std::numeric_limits<double>::infinity();
  CHECK_FALSE(reference::agrees(nan, {.value = nan, .error = infinity}, DType::f32));
  CHECK_FALSE(reference::agrees(nan, {.value = 1, .error = 1}, DType::f32));
  CHECK_FALSE(reference::agrees(1, {.value = 1, .error = nan}, DType::f32));
  CHECK_FALSE(reference::agrees(2, {.value = 1, .error = infinity}, DType::f32));
  CHECK_FALSE(reference::agrees(1, {.value = -infinity, .error = 0}, DType::f16));
  CHECK(reference::agrees(-infinity, {.value = -infinity, .error = 0}, DType::f16));
  CHECK(reference::agrees(infinity, {.value = 70000, .error = 0}, DType::f16));
  CHECK(reference::agrees(1.0009765625, {.value = 1.0005, .error = 0}, DType::f16));
  CHECK_FALSE(reference::agrees(1.001953125, {.value = 1.0005, .error = 0}, DType::f16));
}
