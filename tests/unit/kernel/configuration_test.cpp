// Families: which configurations a kernel has, against counts and properties that can be worked out
// by hand.
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"
#include "codegen/families/loop/ColumnScratch.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "codegen/families/transpose/TransposeKnobs.h"
#include "codegen/families/view/ViewKnobs.h"
#include "kernel/ConfigurationText.h"
#include "passes/configure/Families.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleKernels.h"

#include <catch2/catch.hpp>

#include <set>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::samples;

namespace {

const Device &device() { return findDevice("h200"); }

template <typename KnobsOfFamily>
std::vector<Configuration> only(const std::vector<Configuration> &configurations) {
  std::vector<Configuration> result;
  for (const Configuration &configuration : configurations)
    if (configuration.knobs.is<KnobsOfFamily>()) result.push_back(configuration);
  return result;
}

std::set<std::vector<Layout>> layoutTuples(const std::vector<Configuration> &configurations) {
  std::set<std::vector<Layout>> tuples;
  for (const Configuration &configuration : configurations) {
    std::vector<Layout> tuple = configuration.inputs;
    tuple.insert(tuple.end(), configuration.outputs.begin(), configuration.outputs.end());
    tuples.insert(tuple);
  }
  return tuples;
}

/// Element offset of a point under strides.
int64_t offsetOf(const std::vector<int64_t> &strides, const std::vector<int64_t> &point) {
  int64_t offset = 0;
  for (size_t i = 0; i < strides.size(); ++i) offset += strides[i] * point[i];
  return offset;
}

}  // namespace

TEST_CASE("a map takes every permutation of every operand") {
  const Kernel kernel = reluKernel({{'b', 2}, {'j', 8}, {'i', 16}}, "bji");
  const Configurations all = enumerate(kernel, device());
  CHECK(layoutTuples(all.legal).size() == 36);
  CHECK(std::is_sorted(all.legal.begin(), all.legal.end()));
  CHECK(std::adjacent_find(all.legal.begin(), all.legal.end()) == all.legal.end());
}

TEST_CASE("accesses have at most 16 bytes") {
  for (const auto &[type, widest] : std::map<DType, int>{{DType::f32, 4}, {DType::f16, 8}}) {
    int seen = 0;
    for (const Configuration &configuration :
         enumerate(reluKernel({{'j', 8}, {'i', 64}}, "ji", type), device()).legal)
      seen = std::max(seen, configuration.knobs.get<LoopKnobs>().vectorWidth);
    CHECK(seen == widest);
  }
}

TEST_CASE("an odd pitch leaves only scalar kernels") {
  // Along i the other stride is 33, along j it is 7: no layout keeps vectors aligned.
  for (const Configuration &configuration :
       nonEmpty(enumerate(reluKernel({{'j', 7}, {'i', 33}}, "ji"), device()).legal))
    CHECK(configuration.knobs.get<LoopKnobs>().vectorWidth == 1);
}

TEST_CASE("rows that start anywhere may be padded") {
  struct Case {
    std::vector<int> order;
    std::vector<int64_t> extents;
    int64_t bytes, unit;  // 1: not padded
    std::vector<int64_t> strides;
  };
  const Case cases[] = {
      {{0, 1, 2}, {2, 3, 9899}, 2, 64, {3 * 9920, 9920, 1}},  // to whole lines
      {{0, 1, 2}, {2, 3, 100}, 2, 8, {3 * 104, 104, 1}},      // lines would waste a third
      {{2, 1, 0}, {4095, 3, 2}, 2, 64, {1, 4096, 3 * 4096}},
      {{0, 1}, {5, 1001}, 4, 32, {1024, 1}},
      {{0, 1}, {5, 1001}, 1, 128, {1024, 1}},
      {{0, 1, 2}, {7, 99, 1}, 2, 8, {104, 1, 1}},  // the row is what is longer than 1
      {{0, 1}, {5, 1000}, 2, 1, {}},               // starts at multiples of 16 bytes
      {{0, 1}, {1, 9899}, 2, 1, {}},               // one row
      {{0}, {9899}, 2, 1, {}},
      {{0, 1}, {5, 33}, 2, 1, {}},  // a fifth of the memory
  };
  for (const Case &one : cases) {
    CAPTURE(one.extents, one.bytes);
    const Layout dense{.order = one.order};
    const std::optional<Layout> rows = padded(dense, one.extents, one.bytes);
    REQUIRE(rows.has_value() == (one.unit > 1));
    if (!rows) continue;
    CHECK(rows->pitchUnit == one.unit);
    CHECK(stridesOf(*rows, one.extents) == one.strides);
    CHECK(rows->order == one.order);
    CHECK_FALSE(padded(*rows, one.extents, one.bytes));  // not twice
  }
  CHECK_FALSE(padded({.order = {0, 1}, .strides = {200, 1}}, {5, 99}, 2));  // of a view
}

TEST_CASE("a map takes padded rows, and moves them in whole accesses") {
  const Kernel kernel = reluKernel({{'j', 96}, {'i', 1001}}, "ji");
  const std::vector<Configuration> legal = nonEmpty(enumerate(kernel, device()).legal);
  const Layout dense = rowMajor(2), rows = padded(dense, {96, 1001}, 2).value();
  // Each operand along i, along j, and along i with padded rows.
  CHECK(layoutTuples(legal).size() == 9);
  int widestDense = 0, widestPadded = 0;
  for (const Configuration &one : legal) {
    const int width = one.knobs.get<LoopKnobs>().vectorWidth;
    if (one.inputs[0] == dense && one.outputs[0] == dense)
      widestDense = std::max(widestDense, width);
    if (one.inputs[0] == rows && one.outputs[0] == rows)
      widestPadded = std::max(widestPadded, width);
  }
  CHECK(widestDense == 1);
  CHECK(widestPadded == 8);
}

TEST_CASE("extents of one have no separate layouts") {
  CHECK(layoutTuples(enumerate(reluKernel({{'b', 1}, {'j', 8}, {'i', 16}}, "bji"), device()).legal)
            .size() == 4);
}

TEST_CASE("a softmax is mapped to warps, blocks and threads") {
  std::set<ReductionMapping> mappings;
  for (const Configuration &configuration :
       nonEmpty(enumerate(softmaxKernel({{'j', 64}, {'k', 512}}, "jk"), device()).legal)) {
    const auto &knobs = configuration.knobs.get<LoopKnobs>();
    mappings.insert(knobs.reduction);
    if (knobs.reduction != ReductionMapping::sequential)
      CHECK((knobs.vectorAxis == knobs.laneAxis && knobs.laneAxis == 1));
    else CHECK(knobs.laneAxis == 0);
  }
  CHECK(mappings ==
        std::set{ReductionMapping::warp, ReductionMapping::block, ReductionMapping::sequential});
}

TEST_CASE(
    "sums over slow axes may be taken by columns: in a warp, a block, a grid, or a cluster where "
    "the device has them") {
  KernelBuilder builder("gradients", {{'b', 8}, {'j', 64}, {'i', 32}});
  const int x = builder.input("x", "bji"),
            r = builder.op("relu", OperatorClass::elementwise, {x}, "r", "bji");
  const int s = builder.op("reduce", OperatorClass::normalization, {r}, "s", "i", "bj");
  const Kernel kernel = builder.build({r, s});
  for (const char *name : {"h200", "a100"}) {
    std::set<ReductionMapping> mappings;
    for (const Configuration &configuration : nonEmpty(enumerate(kernel, findDevice(name)).legal)) {
      const auto &knobs = configuration.knobs.get<LoopKnobs>();
      mappings.insert(knobs.reduction);
      if (!isColumnMapping(knobs.reduction)) continue;
      CHECK(kernel.axes[size_t(knobs.laneAxis)].name == "i");
      CHECK(knobs.laneAxis == knobs.vectorAxis);
      CHECK(knobs.threadsPerRow * knobs.blocksPerRow <= 8 * 64);
      CHECK(columnScratchBytes(knobs, 1) <= staticSharedLimit);
      CHECK((knobs.blocksPerRow > 1) == (knobs.reduction == ReductionMapping::clusterColumns ||
                                         knobs.reduction == ReductionMapping::gridColumns));
    }
    CHECK(mappings.contains(ReductionMapping::warpColumns));
    CHECK(mappings.contains(ReductionMapping::blockColumns));
    CHECK(mappings.contains(ReductionMapping::clusterColumns) == (std::string(name) == "h200"));
    CHECK(mappings.contains(ReductionMapping::gridColumns));
  }
}

TEST_CASE("blocks of a grid share columns only where sums leave the kernel") {
  const auto takesGrid = [](const Kernel &kernel) {
    const auto legal = enumerate(kernel, findDevice("h200")).legal;
    return std::ranges::any_of(legal, [](const Configuration &one) {
      const auto *knobs = one.knobs.getIf<LoopKnobs>();
      return knobs && knobs->reduction == ReductionMapping::gridColumns;
    });
  };
  KernelBuilder leaves("leaves", {{'j', 512}, {'i', 32}});
  const int x = leaves.input("x", "ji"),
            s = leaves.op("reduce", OperatorClass::normalization, {x}, "s", "i", "j");
  CHECK(takesGrid(leaves.build({s})));
  KernelBuilder stays("stays", {{'j', 512}, {'i', 32}});
  const int y = stays.input("y", "ji"),
            t = stays.op("reduce", OperatorClass::normalization, {y}, "t", "i", "j");
  CHECK(!takesGrid(stays.build({stays.op("sub", OperatorClass::elementwise, {y, t}, "d", "ji")})));
}

TEST_CASE("rows that are read more than once, as of a softmax, are not taken by columns") {
  KernelBuilder builder("softmax", {{'j', 64}, {'k', 64}});
  const int x = builder.input("x", "jk");
  const Kernel kernel =
      builder.build({builder.op("softmax", OperatorClass::normalization, {x}, "p", "jk", "k")});
  for (const Configuration &configuration :
       nonEmpty(only<LoopKnobs>(enumerate(kernel, device()).legal)))
    CHECK(!isColumnMapping(configuration.knobs.get<LoopKnobs>().reduction));
}

TEST_CASE("columns are named in descriptions and keys, and other knobs keep theirs") {
  KernelBuilder builder("sum", {{'j', 4096}, {'i', 1024}});
  const int x = builder.input("x", "ji");
  const Kernel kernel =
      builder.build({builder.op("reduce", OperatorClass::normalization, {x}, "s", "i", "j")});
  LoopKnobs knobs{.vectorAxis = 0,
                  .vectorWidth = 8,
                  .laneAxis = 0,
                  .reduction = ReductionMapping::clusterColumns,
                  .threads = 256,
                  .threadsPerRow = 16,
                  .blocksPerRow = 8};
  CHECK(describe(kernel, knobs) ==
        "vector 8 x f16 along i, 16 threads a column, 16 columns a block, clusters of 8 blocks");
  const Configuration configuration{
      .inputs = {rowMajor(2)}, .outputs = {rowMajor(1)}, .knobs = knobs};
  CHECK(parseConfiguration(configurationLine(kernel, configuration), kernel) == configuration);
  const auto textOf = [&](LoopKnobs other) {
    return canonicalText(
        kernel, {.inputs = {rowMajor(2)}, .outputs = {rowMajor(1)}, .knobs = other}, "sm_90a");
  };
  CHECK(textOf(knobs).find("perRow 16 blocks 8") != std::string::npos);
  knobs.reduction = ReductionMapping::gridColumns, knobs.blocksPerRow = 33;
  CHECK(describe(kernel, knobs) ==
        "vector 8 x f16 along i, 16 threads a column, 16 columns a block, 33 blocks of the grid a "
        "column");
  knobs.reduction = ReductionMapping::blockColumns, knobs.blocksPerRow = 1;
  CHECK(textOf(knobs).find("reduction block-columns threads 256 perRow 16\n") != std::string::npos);
}

TEST_CASE("two different reductions do not share a kernel, and the reason names the op") {
  KernelBuilder builder("both", {{'j', 4}, {'k', 8}});
  const int x = builder.input("x", "jk");
  const int p = builder.op("softmax", OperatorClass::normalization, {x}, "p", "jk", "k");
  const int s = builder.op("reduce", OperatorClass::normalization, {p}, "s", "k", "j");
  const Configurations all = enumerate(builder.build({s}), device());
  CHECK(all.legal.empty());
  const auto loop = std::find_if(all.excluded.begin(), all.excluded.end(),
                                 [](const Exclusion &e) { return e.family == "loop"; });
  REQUIRE(loop != all.excluded.end());
  CHECK(loop->reason.find("'reduce'") != std::string::npos);
}

TEST_CASE("constraints keep only the asked layouts") {
  const Kernel kernel = reluKernel({{'j', 8}, {'i', 16}}, "ji");
  const Layout columnMajor{.order = {1, 0}};
  const Configurations all =
      enumerate(kernel, device(), {.inputs = {rowMajor(2)}, .outputs = {columnMajor}});
  REQUIRE(!all.legal.empty());
  for (const Configuration &configuration : nonEmpty(all.legal)) {
    CHECK(configuration.inputs[0] == rowMajor(2));
    CHECK(configuration.outputs[0] == columnMajor);
  }
}

TEST_CASE("lazy enumeration stops when asked") {
  int visited = 0;
  forEachConfiguration(reluKernel({{'j', 8}, {'i', 16}}, "ji"), device(), {},
                       [&](const Configuration &) { return ++visited < 5; });
  CHECK(visited == 5);
}

TEST_CASE("a projection has 2 orders of m, 2 of n, and 2 arrangements an operand") {
  // phi,bji->phbj: m = {p,h}, n = {b,j}, k = {i}.
  const Kernel kernel =
      contractKernel({{'p', 4}, {'h', 2}, {'i', 16}, {'b', 3}, {'j', 5}}, "phi", "bji", "phbj");
  CHECK(layoutTuples(enumerate(kernel, device()).legal).size() == 2 * 2 * 2 * 2 * 2);
}

TEST_CASE("a batch axis is never fastest") {
  // phbk,phbj->hbjk: batch {h,b} in 2 orders; 4 of 6 arrangements an operand.
  const Kernel kernel =
      contractKernel({{'p', 4}, {'h', 2}, {'b', 3}, {'k', 6}, {'j', 5}}, "phbk", "phbj", "hbjk");
  const auto configurations = enumerate(kernel, device()).legal;
  CHECK(layoutTuples(configurations).size() == 2 * 4 * 4 * 4);
  for (const Configuration &configuration : nonEmpty(configurations)) {
    const int fastest = configuration.inputs[0].order.back();  // p h b k
    CHECK((fastest == 0 || fastest == 3));
  }
}

TEST_CASE("every legal layout of a contraction is one strided GEMM of the right elements") {
  const std::map<char, int64_t> extents = {{'p', 2}, {'h', 3}, {'b', 2}, {'k', 4}, {'j', 5}};
  const Kernel kernel = contractKernel(extents, "phbk", "phbj", "hbjk");
  for (const Configuration &configuration : nonEmpty(enumerate(kernel, device()).legal)) {
    const auto gemm = stridedBatchedGemm(kernel, configuration);
    REQUIRE(gemm);
    CHECK((gemm->batch == 6 && gemm->m == 4 && gemm->n == 5 && gemm->k == 2));
    // The elements that the GEMM addresses are those that the layouts place: compare the
    // multiset of addresses that each result element reads.
    const auto a = stridesOf(configuration.inputs[0], {2, 3, 2, 4}),
               c = stridesOf(configuration.outputs[0], {3, 2, 5, 4});
    std::set<std::pair<int64_t, int64_t>> placed, addressed;
    for (int64_t p = 0; p < 2; ++p)
      for (int64_t h = 0; h < 3; ++h)
        for (int64_t b = 0; b < 2; ++b)
          for (int64_t k = 0; k < 4; ++k)
            for (int64_t j = 0; j < 5; ++j)
              placed.insert({offsetOf(a, {p, h, b, k}), offsetOf(c, {h, b, j, k})});
    for (int64_t batch = 0; batch < 6; ++batch)
      for (int64_t m = 0; m < 4; ++m)
        for (int64_t n = 0; n < 5; ++n)
          for (int64_t k = 0; k < 2; ++k)
            addressed.insert(
                {batch * gemm->batchStrideA + m * gemm->strideAm + k * gemm->strideAk,
                 batch * gemm->batchStrideC + m * gemm->strideCm + n * gemm->strideCn});
    CHECK(placed == addressed);
  }
}

TEST_CASE("layouts that do not merge are no GEMM") {
  const Kernel kernel =
      contractKernel({{'p', 4}, {'h', 2}, {'i', 16}, {'j', 5}}, "phi", "ji", "phj");
  Configuration configuration{.inputs = {Layout{.order = {0, 2, 1}}, rowMajor(2)},
                              .outputs = {rowMajor(3)},
                              .knobs = FmaGemmKnobs{}};
  CHECK(!stridedBatchedGemm(kernel, configuration));  // p and h have i between them
  configuration.inputs[0] = rowMajor(3);
  CHECK(stridedBatchedGemm(kernel, configuration));
}

TEST_CASE("transposes go between different layouts") {
  const auto all =
      enumerate(identityKernel({{'h', 4}, {'j', 16}, {'p', 8}}, "hjp"), device()).legal;
  const auto transposes = only<TransposeKnobs>(all);
  CHECK(layoutTuples(transposes).size() == 30);
  for (const Configuration &configuration : nonEmpty(transposes))
    CHECK(configuration.inputs[0] != configuration.outputs[0]);
}

TEST_CASE("every family describes its knobs") {
  KernelBuilder builder("softmax", {{'i', 8}, {'j', 4}});
  const int x = builder.input("x", "ji");
  const Kernel kernel =
      builder.build({builder.op("softmax", OperatorClass::normalization, {x}, "y", "ji", "i")});
  const LoopKnobs scalar{.vectorAxis = -1};
  CHECK(describe(kernel, scalar) == "scalar, 128 threads a block");
  LoopKnobs loop{.vectorAxis = 0,
                 .vectorWidth = 8,
                 .laneAxis = 0,
                 .reduction = ReductionMapping::warp,
                 .threads = 128,
                 .threadsPerRow = 32};
  CHECK(describe(kernel, loop) == "vector 8 x f16 along i, one warp a row, 4 rows a block");
  loop.threadsPerRow = 16;
  CHECK(describe(kernel, loop) ==
        "vector 8 x f16 along i, 16 lanes of a warp a row, 8 rows a block");
  loop.reduction = ReductionMapping::block, loop.threadsPerRow = 128;
  CHECK(
      describe(kernel, loop).starts_with("vector 8 x f16 along i, one block of 128 threads a row"));
  loop.reduction = ReductionMapping::sequential, loop.vectorWidth = 1, loop.laneAxis = 1;
  CHECK(describe(kernel, loop) ==
        "one element a thread along i, lanes along j, one thread a row, 128 threads a block");
  CHECK(describe(kernel, TransposeKnobs{.tile = 64, .vectorWidth = 4, .threads = 256}) ==
        "tile 64 x 64, vector 4, 256 threads a block");
  CHECK(describe(kernel, FmaGemmKnobs{}) ==
        "plain FMA, tile 64 x 64 x 16, 4 x 4 a thread, 2 stages");
  CHECK(describe(kernel, ViewKnobs{}) == "view, no kernel");
  // Whatever families there are: the texts tell them apart.
  std::set<std::string> texts;
  for (const Family *family : nonEmpty(families()))
    texts.insert(describe(kernel, family->defaults()));
  CHECK(texts.size() == families().size());
}
