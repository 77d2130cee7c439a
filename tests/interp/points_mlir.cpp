// The point evaluator against the interpreter: every kernel of tests/emulate and of the families'
// tests, every element of every output. The two share the dropout bits and the rounding of stored
// types, nothing else. Then its error bounds: the interpreter's fp32 arithmetic must lie within
// them.
#include "ir/Weft.h"
#include "ir/interpreter/Interpreter.h"
#include "kernel/reference/PointEvaluator.h"
#include "passes/Passes.h"
#include "tests/support/NonEmpty.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
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
  mlir::DialectRegistry registry;
  registry.insert<WeftDialect>();
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  Counts counts;
  for (const std::filesystem::path &path : nonEmpty(kernelFiles()))
    for (const char *dtype : {"f32", "f16"}) {
      INFO(path);
      const std::string text = std::regex_replace(readFile(path), std::regex("FLOAT"), dtype);
      mlir::OwningOpRef<mlir::ModuleOp> module =
          mlir::parseSourceString<mlir::ModuleOp>(text, &context, path.string());
      REQUIRE(module);
      module->walk([&](KernelOp op) { compare(op, counts); });
    }
  CHECK(counts.kernels >= 60);
  CHECK(counts.elements >= 10000);
  WARN(counts.kernels << " kernels, " << counts.elements << " elements");
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
