// Accumulators whose order is fixed by the kernel and not by the machine: columns that blocks of a
// grid share, and rows that are scattered by index. Both are compared with fp64, run twice in one
// module, and must give the same bits in both thread orders.
#include "codegen/Emit.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "tests/emulate/GuardedBuffer.h"
#include "tests/emulate/HostCompiler.h"
#include "tests/golden/ExampleKernels.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

using namespace weft;

namespace {

using Floats = std::vector<float>;

/// f32 and i32 tensors, row-major.
class Run {
public:
  Run(const std::string &name, const Kernel &kernel, const LoopKnobs &knobs)
      : kernel(kernel),
        emitted(codegen::emit(kernel, examples::rowMajorConfiguration(kernel, knobs), "sm_90a")),
        library(name, std::vector<emulate::Source>{{emitted.text, emitted.entry}}) {}

  /// The outputs; `inputs` are words of 4 bytes.
  std::vector<Floats> operator()(const std::vector<const void *> &inputs,
                                 emulate::Schedule schedule) {
    std::vector<std::unique_ptr<emulate::GuardedBuffer>> buffers;
    std::vector<void *> pointers, arguments;
    const auto add = [&](ValueId value) {
      buffers.push_back(std::make_unique<emulate::GuardedBuffer>(kernel.bytes(value)));
      pointers.push_back(buffers.back()->bytes().data());
    };
    for (size_t n = 0; n < inputs.size(); ++n) {
      add(kernel.inputs[n]);
      std::memcpy(pointers.back(), inputs[n], static_cast<size_t>(kernel.bytes(kernel.inputs[n])));
    }
    for (ValueId output : kernel.outputs) {
      add(output);
      std::memset(pointers.back(), 0xFF, static_cast<size_t>(kernel.bytes(output)));
    }
    for (void *&pointer : pointers) arguments.push_back(&pointer);
    const emulate::Grid grid{.blocks = emitted.launch.grid,
                             .threads = emitted.launch.block,
                             .shared = library.kernel(0).shared};
    CHECK(emulate::run(grid, schedule, [&] { library.kernel(0).call(arguments.data()); }) == "");
    std::vector<Floats> outputs;
    for (size_t n = 0; n < buffers.size(); ++n) {
      CHECK(buffers[n]->intact());
      if (n < inputs.size()) continue;
      outputs.emplace_back(buffers[n]->bytes().size() / 4);
      std::memcpy(outputs.back().data(), pointers[n], buffers[n]->bytes().size());
    }
    return outputs;
  }

private:
  const Kernel &kernel;
  codegen::EmittedKernel emitted;
  emulate::HostLibrary library;
};

Floats numbers(int64_t count, uint32_t seed) {
  Floats values(static_cast<size_t>(count));
  for (float &value : values)
    value = static_cast<float>((seed = seed * 1664525u + 1013904223u) >> 16) / 8192.0f - 4.0f;
  return values;
}

/// Equal bits in both orders and in a second launch; returns them.
std::vector<Floats> reproducible(Run &run, const std::vector<const void *> &inputs) {
  const std::vector<Floats> first = run(inputs, emulate::Schedule::ascending);
  for (const emulate::Schedule schedule :
       {emulate::Schedule::descending, emulate::Schedule::ascending}) {
    const std::vector<Floats> again = run(inputs, schedule);
    for (size_t n = 0; n < first.size(); ++n)
      CHECK(std::memcmp(first[n].data(), again[n].data(), first[n].size() * sizeof(float)) == 0);
  }
  return first;
}

}  // namespace

TEST_CASE(
    "blocks of a grid share columns: whole and cut batches, columns beyond the last, one and "
    "several quads a thread") {
  struct Shape {
    int64_t batch, length;
    int width, threads, threadsPerColumn, blocks;
  };
  // 469 points: 59 steps in batches of 4; 30 steps of 1; 8 columns in vectors of 4 beyond the last;
  // one step. 352 points: every thread takes 22 steps, in batches of 4, also where columns lie
  // beyond the last and their guard says nothing of the step.
  for (const Shape &shape : {Shape{7, 67, 4, 64, 4, 2},
                             {7, 67, 8, 64, 8, 2},
                             {7, 67, 4, 128, 16, 3},
                             {7, 67, 1, 128, 4, 9},
                             {7, 67, 4, 64, 16, 29},
                             {7, 67, 2, 256, 8, 5},
                             {11, 32, 4, 64, 4, 4},
                             {11, 32, 8, 32, 4, 4}}) {
    INFO(shape.batch << " x " << shape.length << " points, " << shape.width << " wide, "
                     << shape.threads << " threads, " << shape.threadsPerColumn << " a column, "
                     << shape.blocks << " blocks");
    const int64_t points = shape.batch * shape.length, columns = 40;
    Kernel kernel;
    for (const examples::Example &example : examples::loopExamples(
             DType::f32,
             {.b = shape.batch, .j = shape.length, .k = 8, .h = 2, .p = 8, .i = columns, .u = 8},
             8))
      if (example.name == "scale_bias") kernel = example.kernel;
    const Floats dy = numbers(points * columns, 1), x = numbers(points * columns, 2),
                 mean = numbers(points, 3), rstd = numbers(points, 4);
    const int axis = 2;
    Run run(fmt::format("grid_{}_{}_{}_{}", points, shape.width, shape.threads, shape.blocks),
            kernel,
            {.vectorAxis = axis,
             .vectorWidth = shape.width,
             .laneAxis = axis,
             .reduction = ReductionMapping::gridColumns,
             .threads = shape.threads,
             .threadsPerRow = shape.threadsPerColumn,
             .blocksPerRow = shape.blocks});
    const std::vector<Floats> sums =
        reproducible(run, {dy.data(), x.data(), mean.data(), rstd.data()});
    for (int64_t column = 0; column < columns; ++column) {
      double dgamma = 0, dbeta = 0, magnitude = 0;
      for (int64_t point = 0; point < points; ++point) {
        const double term = dy[size_t(point * columns + column)];
        dbeta += term;
        dgamma += term * (x[size_t(point * columns + column)] - mean[size_t(point)]) *
                  rstd[size_t(point)];
        magnitude += 128;  // 4 (4 + 4) 4
      }
      CHECK(std::abs(sums[0][size_t(column)] - dgamma) <= 1e-6 * magnitude);
      CHECK(std::abs(sums[1][size_t(column)] - dbeta) <= 1e-6 * magnitude);
    }
  }
}

TEST_CASE("blocks of a grid reject to use what they share") {
  const examples::Example example = examples::findLoopExample("row_maximum", DType::f32, 0);
  const LoopKnobs knobs{.vectorAxis = 1,
                        .vectorWidth = 1,
                        .laneAxis = 1,
                        .reduction = ReductionMapping::gridColumns,
                        .threads = 64,
                        .threadsPerRow = 8,
                        .blocksPerRow = 2};
  CHECK_THROWS_WITH(codegen::emit(example.kernel,
                                  examples::rowMajorConfiguration(example.kernel, knobs), "sm_80"),
                    Catch::Contains("joined by sums alone"));
}

TEST_CASE(
    "scattered rows: repeated indices, crowded rows, indices outside the table, rows that nothing "
    "reaches") {
  struct Shape {
    int64_t batch, length, columns, tableRows;
    int width, threads;
  };
  // The third has more positions of one row than a warp has room for; the last three have columns
  // in several blocks of lanes.
  for (const Shape &shape : {Shape{3, 37, 24, 50, 4, 256},
                             {3, 37, 13, 33, 1, 256},
                             {9, 700, 8, 5, 8, 128},
                             {2, 90, 132, 3, 2, 256},
                             {1, 300, 264, 70, 8, 256},
                             {5, 130, 136, 16500, 4, 256}}) {
    INFO(shape.batch << " x " << shape.length << " positions, " << shape.tableRows << " rows of "
                     << shape.columns);
    const examples::Example example = examples::scatterAdd(
        DType::f32, {.b = shape.batch, .j = shape.length, .i = shape.columns}, shape.tableRows);
    const int64_t positions = shape.batch * shape.length;
    const Floats rows = numbers(positions * shape.columns, 5);
    std::vector<int32_t> indices(static_cast<size_t>(positions));
    uint32_t random = 7;
    for (int32_t &index : indices) {
      random = random * 1664525u + 1013904223u;
      index = random >> 30 == 0 ? 1
                                : int32_t((random >> 8) % uint32_t(shape.tableRows + 2)) -
                                      1;  // a quarter in row 1; some outside
    }
    indices[2] = std::numeric_limits<int32_t>::max(),
    indices[3] = std::numeric_limits<int32_t>::min();
    Run run(fmt::format("scatter_{}_{}", shape.columns, shape.tableRows), example.kernel,
            {.vectorAxis = example.vectorAxis,
             .vectorWidth = shape.width,
             .laneAxis = example.vectorAxis,
             .reduction = ReductionMapping::warp,
             .threads = shape.threads,
             .threadsPerRow = 32});
    const Floats table = reproducible(run, {rows.data(), indices.data()})[0];
    std::vector<double> sums(table.size(), 0), magnitudes(table.size(), 0);
    for (int64_t at = 0; at < positions * shape.columns; ++at) {
      const int64_t row = indices[size_t(at / shape.columns)];
      if (row < 0 || row >= shape.tableRows) continue;
      sums[size_t(row * shape.columns + at % shape.columns)] += rows[size_t(at)];
      magnitudes[size_t(row * shape.columns + at % shape.columns)] += 4;
    }
    size_t wrong = 0;
    for (size_t at = 0; at < table.size(); ++at)
      wrong += !(std::abs(table[at] - sums[at]) <= 1e-6 * magnitudes[at]);
    CHECK(wrong == 0);
  }
}

namespace {

/// Whether this warp is the last of a strip, as simple as can be; in front of the kernels below.
/// How shipped kernels arrive is tested with whole kernels (contraction_epilogue.cpp).
constexpr const char *arrival = R"(#include "weft/fragment_reductions.cuh"
namespace {
template <typename Partials> __device__ bool isLastOfStrip(Partials &partials, int strip) {
  weft::ptx::warpBarrier();
  unsigned before = 0;
  if (threadIdx.x % 32 == 0) before = weft::ptx::count(&partials.arrived[strip],
      Partials::slots - 1);
  weft::ptx::warpBarrier();
  return weft::ptx::fromLane(before, 0) == Partials::slots - 1;
}
}
)";

/// Warps of 16 rows x 64 columns each, `across` blocks along columns and `down` along rows; a tile
/// of a block has four warps, one below the other. As epilogues of tensor-core kernels sum, but for
/// the shared memory in between.
constexpr const char *fragmentReductions = R"(
namespace {
struct At { int row, column; };
constexpr int rows = ROWS, columns = COLUMNS, across = (columns + 63) / 64, down = (rows + 63) / 64;
__device__ weft::StripPartials<across, down * 4, 64> column_partials;
__device__ weft::StripPartials<down * 4, across, 16> row_partials;
}
extern "C" __global__ void __launch_bounds__(128) fragment_reductions(const float *x,
    float *of_columns, float *of_rows) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, tileM = blockIdx.x / across,
      tileN = blockIdx.x % across;
  weft::SubtileColumnReduction panel;
  weft::FragmentRowReduction row;
  for (int step = 0; step < 4; ++step) {
    const At at{tileM * 64 + warp * 16 + lane / 4, tileN * 64 + step * 16 + lane % 4 * 2};
    float values[8];
    for (int e = 0; e < 8; ++e) {
      const int r = at.row + weft::rowInFragment(e), c = at.column + weft::columnInFragment(e);
      values[e] = r < rows && c < columns ? x[r * columns + c] : 0.0f / 0.0f;
    }
    panel.add<rows % 64 != 0>(step, values, at, rows);
    row.add<columns % 64 != 0>(values, at, columns);
  }
  float total[2] = {};
  panel.addTo(total);
  row.join();
  unsigned *to =
      column_partials.of[tileN][tileM * 4 + warp] + weft::SubtileColumnReduction::columnOf(lane);
  for (int e = 0; e < 2; ++e) weft::ptx::storeForGrid(to + e, weft::wordOf(total[e]));
  if (lane % 4 < 2) weft::ptx::storeForGrid(&row_partials.of[tileM * 4 + warp][tileN][lane % 4 *
      8 + lane / 4], weft::wordOf(row.of[lane % 4]));
  if (isLastOfStrip(column_partials, tileN))
    weft::sumStrip(column_partials, tileN, [&](int e, float sum) {
      if (tileN * 64 + e < columns) of_columns[tileN * 64 + e] = sum;
    });
  if (isLastOfStrip(row_partials, tileM * 4 + warp))
    weft::sumStrip(row_partials, tileM * 4 + warp, [&](int e, float sum) {
      if (tileM * 64 + warp * 16 + e < rows) of_rows[tileM * 64 + warp * 16 + e] = sum;
    });
}
)";

/// Every width of a strip, with as many slots as leave some lanes without one and as need several
/// rounds; one warp. `remainder`: what is left of words and counters for the next launch, and
/// whether a sum was left as the word that says there is none.
constexpr const char *strips = R"(
namespace {
__device__ weft::StripPartials<2, SLOTS, WIDTH> partials;
}
extern "C" __global__ void __launch_bounds__(32) strips(const float *x, float *sums,
    float *remainder) {
  const int strip = blockIdx.x % 2, slot = blockIdx.x / 2;
  for (int at = threadIdx.x; at < WIDTH; at += 32) partials.of[strip][slot][at] =
      weft::wordOf(x[(strip * SLOTS + slot) * WIDTH + at]);
  if (!isLastOfStrip(partials, strip)) return;
  weft::sumStrip(partials, strip, [&](int at, float sum) { sums[strip * WIDTH + at] = sum; });
  weft::ptx::warpBarrier();
  unsigned left = partials.arrived[strip] + (weft::wordOf(weft::ptx::floatFromBits(~0u)) == 0);
  for (int at = threadIdx.x; at < SLOTS * WIDTH; at += 32) left +=
      partials.of[strip][at / WIDTH][at % WIDTH] != 0;
  remainder[strip * 32 + threadIdx.x] = float(left);
}
)";

std::string filled(std::string text, const std::vector<std::pair<std::string, int64_t>> &words) {
  for (const auto &[word, value] : words)
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word))
      text.replace(at, word.size(), std::to_string(value));
  return text;
}

/// Results of `counts` floats each, poisoned before; equal bits in both thread orders and in a
/// launch after others.
std::vector<Floats> launched(const emulate::HostKernel &kernel, const Floats &input,
                             const std::vector<size_t> &counts, int64_t blocks, int64_t threads) {
  std::vector<Floats> first;
  for (const emulate::Schedule schedule :
       {emulate::Schedule::ascending, emulate::Schedule::descending,
        emulate::Schedule::ascending}) {
    std::vector<Floats> outputs;
    for (const size_t count : counts)
      outputs.emplace_back(count, std::numeric_limits<float>::quiet_NaN());
    std::vector<const void *> pointers = {input.data()};
    for (const Floats &output : outputs) pointers.push_back(output.data());
    std::vector<void *> arguments;
    for (const void *&pointer : pointers) arguments.push_back(&pointer);
    CHECK(emulate::run(
              {.blocks = {blocks, 1, 1}, .threads = {threads, 1, 1}, .shared = kernel.shared},
              schedule, [&] { kernel.call(arguments.data()); }) == "");
    if (first.empty()) first = outputs;
    for (size_t n = 0; n < counts.size(); ++n)
      CHECK(std::memcmp(first[n].data(), outputs[n].data(), 4 * counts[n]) == 0);
  }
  return first;
}

}  // namespace

TEST_CASE(
    "fragments are summed down to columns and rows: whole and clipped tiles, one strip and "
    "several") {
  const std::vector<std::pair<int64_t, int64_t>> shapes = {{64, 64}, {128, 192}, {200, 70},
                                                           {9, 300}, {1, 1},     {1000, 40}};
  std::vector<emulate::Source> sources;
  for (const auto &[rows, columns] : shapes)
    sources.push_back(
        {filled(std::string(arrival) + fragmentReductions, {{"ROWS", rows}, {"COLUMNS", columns}}),
         "fragment_reductions"});
  const emulate::HostLibrary library("fragment_reductions", sources);
  for (size_t shape = 0; shape < shapes.size(); ++shape) {
    const auto [rows, columns] = shapes[shape];
    INFO(rows << " x " << columns);
    const Floats x = numbers(rows * columns, uint32_t(shape) + 3);
    const std::vector<Floats> sums =
        launched(library.kernel(shape), x, {size_t(columns), size_t(rows)},
                 ((rows + 63) / 64) * ((columns + 63) / 64), 128);
    size_t wrong = 0;
    for (int64_t column = 0; column < columns; ++column) {
      double sum = 0;
      for (int64_t row = 0; row < rows; ++row) sum += x[size_t(row * columns + column)];
      wrong += !(std::abs(sums[0][size_t(column)] - sum) <= 4e-6 * double(rows));
    }
    CHECK(wrong == 0);
    for (int64_t row = 0; row < rows; ++row) {
      double sum = 0;
      for (int64_t column = 0; column < columns; ++column) sum += x[size_t(row * columns + column)];
      wrong += !(std::abs(sums[1][size_t(row)] - sum) <= 4e-6 * double(columns));
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("strips of every width and any number of slots") {
  std::vector<std::pair<int64_t, int64_t>> shapes;  // slots, width
  for (const int64_t width : {16, 32, 48, 64})
    for (const int64_t slots : {1, 2, 7, 33, 130}) shapes.emplace_back(slots, width);
  std::vector<emulate::Source> sources;
  for (const auto &[slots, width] : shapes)
    sources.push_back(
        {filled(std::string(arrival) + strips, {{"SLOTS", slots}, {"WIDTH", width}}), "strips"});
  const emulate::HostLibrary library("strips", sources);
  for (size_t shape = 0; shape < shapes.size(); ++shape) {
    const auto [slots, width] = shapes[shape];
    INFO(slots << " slots of " << width);
    const Floats x = numbers(2 * slots * width, uint32_t(shape) + 11);
    const std::vector<Floats> results =
        launched(library.kernel(shape), x, {size_t(2 * width), 64}, 2 * slots, 32);
    const Floats &sums = results[0];
    CHECK(results[1] == Floats(64, 0.0f));
    size_t wrong = 0;
    for (int64_t at = 0; at < 2 * width; ++at) {
      double sum = 0;
      for (int64_t slot = 0; slot < slots; ++slot)
        sum += x[size_t((at / width * slots + slot) * width + at % width)];
      wrong += !(std::abs(sums[size_t(at)] - sum) <= 4e-6 * double(slots));
    }
    CHECK(wrong == 0);
  }
}
