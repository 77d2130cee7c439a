// Tensors of more than 2^31 elements: the last blocks of emitted kernels find and write the last
// elements. The tensors are address space without memory behind it, of which only the touched pages
// exist; an index that lost its upper bits leaves them, and faults.
#include "codegen/Emit.h"
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "codegen/families/transpose/TransposeKnobs.h"
#include "kernel/reference/StoredElement.h"
#include "tests/emulate/GuardedBuffer.h"
#include "tests/emulate/HostCompiler.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleKernels.h"

#include <catch2/catch.hpp>

#include <cmath>

#include <sys/mman.h>

using namespace weft;
using weft::test::nonEmpty;

namespace {

/// Zeros between two protected ranges as large as 32-bit offsets reach.
class SparseBuffer {
public:
  explicit SparseBuffer(size_t bytes) : size(bytes) {
    mapping = static_cast<std::byte *>(mmap(nullptr, size + 2 * guard, PROT_NONE,
                                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    REQUIRE(mapping != MAP_FAILED);
    REQUIRE(mprotect(start(), size, PROT_READ | PROT_WRITE) == 0);
  }
  ~SparseBuffer() { munmap(mapping, size + 2 * guard); }
  SparseBuffer(const SparseBuffer &) = delete;
  SparseBuffer &operator=(const SparseBuffer &) = delete;
  std::byte *start() const { return mapping + guard; }

private:
  static constexpr size_t guard = size_t(1) << 34;
  std::byte *mapping;
  size_t size;
};

/// A matrix of f16 in one layout.
struct Matrix {
  Matrix(const Kernel &kernel, ValueId value, const Layout &layout)
      : buffer(size_t(kernel.elements(value)) * 2) {
    for (AxisId axis : kernel.values[value].axes) extents.push_back(kernel.axes[axis].extent);
    strides = stridesOf(layout, extents);
  }
  std::byte *at(int64_t row, int64_t column) const {
    return buffer.start() + 2 * (row * strides[0] + column * strides[1]);
  }
  void set(int64_t row, int64_t column, double value) {
    reference::storeElement(DType::f16, at(row, column), value);
  }
  double get(int64_t row, int64_t column) const {
    return reference::loadElement(DType::f16, at(row, column));
  }

  SparseBuffer buffer;
  std::vector<int64_t> extents, strides;
};

struct Case {
  std::string name;
  Kernel kernel;
  Configuration configuration;
};

constexpr int64_t rows = 131073, columns = 16384;  // 2^31 + 2^14 elements
constexpr int64_t corner =
    64;  // the last rows and columns, of which each case's last blocks write some

double pattern(int64_t row, int64_t column) {
  return double((row * 31 + column * 7) % 61 + 1) / 64;
}

const Layout byRows{.order = {0, 1}}, byColumns{.order = {1, 0}};

Case movement(const std::string &name, Kernel kernel, Layout from, Layout to, Knobs knobs) {
  return {name,
          std::move(kernel),
          {.inputs = {std::move(from)}, .outputs = {std::move(to)}, .knobs = knobs}};
}

std::vector<Case> cases() {
  const std::map<char, int64_t> extents{{'i', columns}, {'j', rows}};
  const Kernel relu = samples::reluKernel(extents, "ji");
  const LoopKnobs scalar{.vectorAxis = 0, .vectorWidth = 1, .laneAxis = 0, .threads = 128};
  const LoopKnobs wide{.vectorAxis = 0, .vectorWidth = 8, .laneAxis = 0, .threads = 256};
  const LoopKnobs across{.vectorAxis = 0, .vectorWidth = 1, .laneAxis = 1, .threads = 128};
  const LoopKnobs row{.vectorAxis = 1,
                      .vectorWidth = 8,
                      .laneAxis = 1,
                      .reduction = ReductionMapping::block,
                      .threads = 256,
                      .threadsPerRow = 256};
  return {movement("one element a thread", relu, byRows, byRows, scalar),
          movement("eight elements a thread", relu, byRows, byRows, wide),
          movement("other layouts", relu, byRows, byColumns, across),
          movement("softmax", samples::softmaxKernel({{'j', rows}, {'k', columns}}, "jk"), byRows,
                   byRows, row),
          movement("transpose", samples::identityKernel(extents, "ji"), byRows, byColumns,
                   TransposeKnobs{.vectorWidth = 1})};
}

std::string run(const Case &example, const emulate::HostKernel &host, const codegen::Launch &launch,
                std::vector<std::byte *> operands) {
  std::vector<void *> arguments;
  for (std::byte *&operand : operands) arguments.push_back(&operand);
  const auto last = unsigned(launch.grid[0] - 1);
  INFO(example.name);
  REQUIRE((launch.grid[1] == 1 && launch.grid[2] == 1));
  const emulate::GuardedBuffer dynamic(size_t(launch.sharedBytes));
  const emulate::Grid grid{.blocks = launch.grid,
                           .threads = launch.block,
                           .shared = host.shared,
                           .dynamicShared = dynamic.bytes(),
                           .only = {{last - 1, 0, 0}, {last, 0, 0}}};
  return emulate::run(grid, emulate::Schedule::ascending, [&] { host.call(arguments.data()); });
}

/// What stands in the last rows and columns of the output, where anything was written, is as
/// expected; so the very last element.
template <typename Expected>
void checkCorner(const Matrix &output, Expected expected) {
  int64_t written = 0;
  for (int64_t row = rows - corner; row < rows; ++row)
    for (int64_t column = columns - corner; column < columns; ++column)
      if (const double value = output.get(row, column); value != 0) {
        ++written;
        if (!(std::abs(value - expected(row, column)) <= 2e-3 * std::abs(expected(row, column))))
          FAIL_CHECK("row " << row << ", column " << column << ": " << value << ", not "
                            << expected(row, column));
      }
  CHECK(written > 0);
  CHECK(output.get(rows - 1, columns - 1) != 0);
}

}  // namespace

TEST_CASE("elements beyond 2^31 are read and written where they are") {
  const std::vector<Case> examples = cases();
  std::vector<emulate::Source> sources;
  std::vector<codegen::EmittedKernel> emitted;
  for (const Case &example : nonEmpty(examples)) {
    emitted.push_back(codegen::emit(example.kernel, example.configuration, "sm_90a"));
    sources.push_back({emitted.back().text, emitted.back().entry});
  }
  const emulate::HostLibrary library("large_tensors", sources);
  for (size_t n = 0; n < examples.size(); ++n) {
    const Case &example = examples[n];
    INFO(example.name);
    const bool isSoftmax = example.name == "softmax";
    Matrix input(example.kernel, example.kernel.inputs[0], example.configuration.inputs[0]);
    Matrix output(example.kernel, example.kernel.outputs[0], example.configuration.outputs[0]);
    for (int64_t row = rows - corner; row < rows; ++row)
      for (int64_t column = isSoftmax ? 0 : columns - corner; column < columns; ++column)
        input.set(row, column, pattern(row, column));
    CHECK(run(example, library.kernel(n), emitted[n].launch,
              {input.buffer.start(), output.buffer.start()}) == "");
    const auto rowSum = [&](int64_t row) {
      double sum = 0;
      for (int64_t column = 0; column < columns; ++column) sum += std::exp(pattern(row, column));
      return sum;
    };
    const double sums[] = {rowSum(rows - 2), rowSum(rows - 1)};
    checkCorner(output, [&](int64_t row, int64_t column) {
      return isSoftmax ? std::exp(pattern(row, column)) / sums[row - (rows - 2)]
                       : pattern(row, column);
    });
  }
}

TEST_CASE("a GEMM of more than 2^31 elements is written where it is") {
  constexpr int64_t depth = 3;
  const Kernel kernel =
      samples::contractKernel({{'m', rows}, {'n', columns}, {'k', depth}}, "mk", "kn", "mn");
  const Case example{"contraction",
                     kernel,
                     {.inputs = {byRows, byRows}, .outputs = {byRows}, .knobs = FmaGemmKnobs{}}};
  const codegen::EmittedKernel emitted = codegen::emit(kernel, example.configuration, "sm_90a");
  const emulate::HostLibrary library("large_product", {{emitted.text, emitted.entry}});
  Matrix a(kernel, kernel.inputs[0], byRows), b(kernel, kernel.inputs[1], byRows),
      c(kernel, kernel.outputs[0], byRows);
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t m = rows - 2 * corner; m < rows; ++m) a.set(m, k, pattern(m, k));
    for (int64_t n = columns - 2 * corner; n < columns; ++n) b.set(k, n, pattern(k, n));
  }
  CHECK(run(example, library.kernel(0), emitted.launch,
            {a.buffer.start(), b.buffer.start(), c.buffer.start()}) == "");
  checkCorner(c, [](int64_t row, int64_t column) {
    double sum = 0;
    for (int64_t k = 0; k < depth; ++k) sum += pattern(row, k) * pattern(k, column);
    return sum;
  });
}
