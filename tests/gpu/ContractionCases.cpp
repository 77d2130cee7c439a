// Cases of contractions: of every family, tile and orientation, with what precedes and follows
// them.
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"
#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/gemm_sm90/Sm90Tile.h"
#include "tests/gpu/Collector.h"

#include "codegen/families/contraction/GemmProblem.h"
#include "kernel/ContractionPrologue.h"
#include "kernel/Error.h"
#include "tests/golden/ExampleKernels.h"
#include "tests/unit/samples/SampleContractions.h"
#include "tests/unit/samples/SampleFloat8.h"
#include "tests/unit/samples/SamplePrologues.h"
#include "tests/unit/samples/SampleRotary.h"
#include "tests/unit/samples/SampleSoftmaxes.h"
#include "tests/unit/samples/SampleStrides.h"
#include "tests/unit/samples/SampleTf32.h"

#include <algorithm>
#include <span>

namespace weft::gputest {
namespace {

struct GemmCase {
  const char *a, *b, *c;
};

/// Every tile in every orientation: aligned and odd, one tile and many, one k-tile and many,
/// fewer tiles than a block of each consumer has, and batch elements; also as views with padded
/// rows.
void addTensorContractions(Collector &collect, const std::string &group, const Knobs &family,
                           std::span<const GemmCase> products) {
  const std::map<char, int64_t> aligned{{'b', 2},   {'h', 3},   {'i', 264}, {'j', 72},
                                        {'k', 136}, {'n', 520}, {'p', 64},  {'w', 8}},
      many{{'b', 3},   {'h', 4},    {'i', 1000}, {'j', 333},
           {'k', 200}, {'n', 1111}, {'p', 16},   {'w', 40}};
  for (DType dtype : {DType::f16, DType::bf16})
    for (const auto *extents : {&aligned, &many})
      for (const GemmCase &gemm : products) {
        std::map<char, int64_t> used;
        for (const char *term : {gemm.a, gemm.b, gemm.c})
          for (const char *letter = term; *letter; ++letter) used[*letter] = extents->at(*letter);
        Kernel kernel = typed(samples::contractKernel(used, gemm.a, gemm.b, gemm.c), dtype);
        const std::vector<Configuration> drawn =
            collect.drawFamily(kernel, family, dtype == DType::f16 ? 10 : 5);
        for (size_t n = 0; n < drawn.size(); ++n) {
          collect.add(group, kernel, dtype, drawn[n]);
          const Configuration views = emulate::asViews(kernel, drawn[n], n % 2 == 0 ? 8 : 3);
          if (!stridedBatchedGemm(kernel, views) || !wgmmaProblem(kernel, views)) continue;
          const auto *tile =
              views.knobs.getIf<Sm90GemmKnobs>();  // some take no operands that threads copy
          if (!tile ||
              sm90Rejection(kernel, views, *tile, findDevice("h200").sharedMemoryPerBlock).empty())
            collect.add(group + "-views", kernel, dtype, views);
        }
        kernel.body[0].attributes["scale"] = 0.125;
        for (const Configuration &one : collect.drawFamily(kernel, family, 2))
          collect.add(group, kernel, dtype, one);
      }
  for (int64_t m : {1, 9, 640})
    for (int64_t n : {1, 24, 257})
      for (int64_t k : {1, 16, 64, 72, 1003})
        for (const Configuration &one : collect.drawFamily(
                 samples::contractKernel({{'i', m}, {'k', k}, {'n', n}}, "ik", "kn", "in"), family,
                 1))
          collect.add(group,
                      samples::contractKernel({{'i', m}, {'k', k}, {'n', n}}, "ik", "kn", "in"),
                      DType::f16, one);
}

/// Few tiles whose k several blocks share: every such tile of each shape, with shares of unequal
/// length, copied operands, batch elements, and one epilogue of each kind.
void addSplitK(Collector &collect) {
  struct Extents {
    int64_t b, m, n, k;
  };
  for (DType dtype : {DType::f16, DType::bf16})
    for (const Extents &one : {Extents{1, 300, 1000, 520},
                               {1, 200, 600, 1024},
                               {1, 8, 512, 4096},
                               {1, 129, 200, 1003},
                               {3, 70, 100, 640},
                               {1, 520, 520, 840},
                               {1, 256, 512, 4096},
                               {1, 1024, 1024, 4096}}) {
      const Kernel kernel =
          typed(samples::contractKernel({{'b', one.b}, {'m', one.m}, {'n', one.n}, {'k', one.k}},
                                        "bmk", "bnk", "bmn"),
                dtype);
      for (const Configuration &configuration :
           collect.drawFamily(kernel, Sm90GemmKnobs{}, dtype == DType::f16 ? 14 : 6))
        if (configuration.knobs.get<Sm90GemmKnobs>().splitK > 1)
          collect.add("split", kernel, dtype, configuration);
    }
  for (const Kernel &kernel :
       samples::fusedContractions({.b = 2, .j = 72, .i = 1000, .u = 264}, DType::f16))
    for (const Configuration &configuration : collect.drawFamily(kernel, Sm90GemmKnobs{}, 12))
      if (configuration.knobs.get<Sm90GemmKnobs>().splitK > 1)
        collect.add("split", kernel, DType::f16, configuration);
}

/// One configuration of every single-consumer tile in every orientation: visit(configuration, how
/// many were seen, this one included).
template <typename Visit>
void forEachSingleConsumerTile(const Kernel &kernel, const Visit &visit) {
  std::set<std::string> seen;
  forEachConfiguration(kernel, findDevice("h200"), {}, [&](const Configuration &configuration) {
    const auto *knobs = configuration.knobs.getIf<Sm90GemmKnobs>();
    if (!knobs || knobs->schedule != Sm90Schedule::singleConsumer) return true;
    const GemmProblem gemm = *wgmmaProblem(kernel, configuration);
    const std::string text = fmt::format("{} {}{}{}", describe(kernel, *knobs), gemm.a.isAlongK(),
                                         gemm.b.isAlongK(), gemm.isSwapped);
    if (seen.insert(text).second) visit(configuration, seen.size());
    return true;
  });
}

/// Single-consumer tiles: all of each shape, in every orientation that takes them, of as many
/// widths as there are; clipped tiles on both sides, k of one slice, of fewer than the stages and
/// of more, of one block and of clusters, batch elements, a factor, results whose rows start
/// anywhere, padded rows.
void addSingleConsumer(Collector &collect) {
  struct Extents {
    int64_t b, m, n, k;
  };
  const Extents several[] = {
      {1, 8, 4096, 4096}, {1, 1, 1000, 1024},  {1, 3, 2056, 8192}, {1, 13, 509, 200},
      {1, 21, 331, 648},  {1, 32, 1024, 2048}, {1, 37, 1500, 72},  {1, 48, 777, 1032},
      {1, 520, 520, 520}, {1, 300, 1000, 520}, {1, 129, 67, 136},  {1, 200, 65, 8},
      {3, 5, 264, 640},   {2, 70, 90, 328},    {1, 1024, 8, 4096}, {1, 8, 12288, 1024}};
  for (DType dtype : {DType::f16, DType::bf16})
    for (const Extents &one : several) {
      Kernel kernel =
          typed(samples::contractKernel({{'b', one.b}, {'m', one.m}, {'n', one.n}, {'k', one.k}},
                                        "bmk", "bnk", "bmn"),
                dtype);
      for (const bool isScaled : {false, true}) {
        if (isScaled) kernel.body[0].attributes["scale"] = 0.125;
        size_t count = 0;
        forEachSingleConsumerTile(kernel, [&](const Configuration &configuration, size_t seen) {
          if (isScaled && seen % 4 > 0) return;
          collect.add("single-consumer", kernel, dtype, configuration);
          const Configuration views =
              emulate::asViews(kernel, configuration, ++count % 2 == 0 ? 8 : 3);
          const auto &tile = views.knobs.get<Sm90GemmKnobs>();
          if (sm90Rejection(kernel, views, tile, collect.device.sharedMemoryPerBlock).empty())
            collect.add("single-consumer-views", kernel, dtype, views);
        });
      }
    }
}

/// The same with what follows a GEMM: every tile of each shape, in every orientation of C and of
/// the instruction; rows and columns of C that no tile ends with, results whose rows start
/// anywhere, operands of every role, second outputs, batch elements.
void addSingleConsumerFused(Collector &collect) {
  const samples::ContractionExtents several[] = {
      {.b = 1, .j = 8, .i = 1024, .u = 4096}, {.b = 1, .j = 1, .i = 4096, .u = 1000},
      {.b = 1, .j = 3, .i = 520, .u = 331},   {.b = 1, .j = 13, .i = 200, .u = 509},
      {.b = 3, .j = 7, .i = 648, .u = 331},   {.b = 2, .j = 16, .i = 1024, .u = 1024},
      {.b = 1, .j = 37, .i = 72, .u = 777},   {.b = 2, .j = 24, .i = 1032, .u = 520},
      {.b = 1, .j = 520, .i = 520, .u = 520}, {.b = 1, .j = 1024, .i = 2048, .u = 8},
      {.b = 1, .j = 300, .i = 136, .u = 13},  {.b = 2, .j = 70, .i = 328, .u = 90}};
  for (DType dtype : {DType::f16, DType::bf16})
    for (const samples::ContractionExtents &extents : several)
      for (const Kernel &kernel : samples::singleConsumerEpilogues(extents, dtype)) {
        forEachSingleConsumerTile(kernel, [&](const Configuration &configuration, size_t seen) {
          if (dtype == DType::f16 || seen % 4 == 0)
            collect.add("single-consumer-fused", kernel, dtype, configuration);
        });
      }
}

/// What follows a contraction, on fragments: whole and clipped panels, copied and loaded operands,
/// results in both orders.
void addFused(Collector &collect) {
  const samples::ContractionExtents several[] = {{},
                                                 {.b = 3, .j = 50, .i = 72, .u = 331},
                                                 {.b = 1, .j = 1000, .i = 200, .u = 1032},
                                                 {.b = 2, .j = 24, .i = 19, .u = 40},
                                                 {.b = 1, .j = 7, .i = 64, .u = 9}};
  for (DType dtype : {DType::f16, DType::bf16})
    for (const samples::ContractionExtents &extents : several)
      for (const Kernel &kernel : samples::fusedContractions(extents, dtype))
        for (const Configuration &one :
             collect.drawFamily(kernel, Sm90GemmKnobs{}, dtype == DType::f16 ? 3 : 1))
          collect.add("fused", kernel, dtype, one);
  // Operands that are read where an op computes it: no fewer keys than queries.
  for (DType dtype : {DType::f16, DType::bf16})
    for (const samples::ContractionExtents &extents :
         {several[1], several[2], several[3], several[4]})
      for (const Kernel &kernel : samples::gatheredContractions(extents, dtype))
        for (const Knobs &family : {Knobs(Sm90GemmKnobs{}), Knobs(Sm80GemmKnobs{})})
          for (const Configuration &one : collect.drawFamily(kernel, family, 4))
            collect.add("fused-gathered", kernel, dtype, one);
}

/// Heads that a rotary embedding turns in registers: of one subtile, of parts of it and of several,
/// all of them and some, both styles and directions, positions of sequences that start anywhere,
/// and of packed tokens; rows and columns that no tile ends with.
void addRotary(Collector &collect) {
  const samples::RotaryExtents several[] = {{.b = 2, .j = 200, .g = 6, .p = 128, .i = 264},
                                            {.b = 3, .j = 50, .g = 5, .p = 64, .i = 72},
                                            {.b = 1, .j = 1000, .g = 7, .p = 32, .i = 136},
                                            {.b = 2, .j = 333, .g = 4, .p = 96, .i = 200},
                                            {.b = 1, .j = 64, .g = 4, .p = 64, .i = 4096}};
  const samples::RotaryForm forms[] = {{},
                                       {.isHalved = false, .isReverse = true},
                                       {.begin = 2, .end = 4, .hasResidual = true},
                                       {.end = 2, .hasStarts = true},
                                       {.turned = 32, .factor = 4, .isStretched = true}};
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const samples::RotaryExtents &extents : several) {
      for (const samples::RotaryForm &form : forms) {
        const Kernel kernel = samples::turnedProjection(extents, dtype, form);
        for (const Configuration &one :
             collect.drawFamily(kernel, Sm90GemmKnobs{}, dtype == DType::f16 ? 6 : 2))
          collect.add("fused-rotary", kernel, dtype, one);
      }
      const Kernel packed = samples::turnedTokens(extents, dtype, {.end = 2});
      for (const Configuration &one : collect.drawFamily(packed, Sm90GemmKnobs{}, 3))
        collect.add("fused-rotary", packed, dtype, one);
    }
}

/// The same on mma.sync: every tile, drawn orientations, aligned and odd rows, views; f32
/// that is read as tf32.
void addWarpsFused(Collector &collect) {
  const samples::ContractionExtents several[] = {{},
                                                 {.b = 3, .j = 50, .i = 72, .u = 331},
                                                 {.b = 1, .j = 1000, .i = 200, .u = 1032},
                                                 {.b = 2, .j = 24, .i = 19, .u = 40},
                                                 {.b = 1, .j = 7, .i = 64, .u = 9},
                                                 {.b = 8, .j = 512, .i = 200, .u = 1024},
                                                 {.b = 1, .j = 8, .i = 1024, .u = 4096}};
  const auto add = [&](const Kernel &kernel, std::string_view types, size_t count) {
    const std::vector<Configuration> drawn = collect.drawFamily(kernel, Sm80GemmKnobs{}, count);
    for (size_t n = 0; n < drawn.size(); ++n) {
      collect.add("warps-fused", kernel, types, drawn[n]);
      const Configuration views = emulate::asViews(kernel, drawn[n], n % 2 == 0 ? 8 : 3);
      if (n % 3 == 0 && mmaSyncProblem(kernel, views))
        collect.add("warps-fused-views", kernel, types, views);
    }
  };
  for (DType dtype : {DType::f16, DType::bf16})
    for (const samples::ContractionExtents &extents : several)
      for (const Kernel &kernel : samples::fusedContractions(extents, dtype))
        add(kernel, nameOf(dtype), dtype == DType::f16 ? 6 : 3);
  for (const samples::ContractionExtents &extents : {several[0], several[1], several[2]})
    for (const Kernel &kernel : samples::fusedContractions(extents, DType::f32))
      add(samples::inTf32(kernel), nameOf(samples::tf32Types), 3);
}

/// Accumulators of what follows a contraction: one tile and many in every direction, both
/// schedules, clipped rows and columns, results in both orders, rows that start anywhere, and tiles
/// taken in another order than that of the strips.
void addReductionOutputs(Collector &collect) {
  const samples::ContractionExtents several[] = {{},
                                                 {.b = 3, .j = 50, .i = 72, .u = 331},
                                                 {.b = 1, .j = 1000, .i = 200, .u = 1032},
                                                 {.b = 2, .j = 24, .i = 19, .u = 40},
                                                 {.b = 1, .j = 7, .i = 64, .u = 9},
                                                 {.b = 5, .j = 512, .i = 64, .u = 768},
                                                 {.b = 1, .j = 64, .i = 40, .u = 2056}};
  for (DType dtype : {DType::f16, DType::bf16})
    for (const samples::ContractionExtents &extents : several)
      for (const Kernel &kernel : samples::fusedReductions(extents, dtype))
        for (Configuration one :
             collect.drawFamily(kernel, Sm90GemmKnobs{}, dtype == DType::f16 ? 4 : 1)) {
          collect.add("fused-sums", kernel, dtype, one);
          auto &tile = one.knobs.get<Sm90GemmKnobs>();
          tile.groupM = 2, tile.blocks = tile.multicastB == 1 ? 7 : 6;
          collect.add("fused-sums", kernel, dtype, one);
        }
  using enum Sm90Schedule;
  constexpr Sm90GemmKnobs tiles[] = {{.schedule = pingPong,
                                      .tileM = 128,
                                      .tileN = 128,
                                      .stages = 5,
                                      .epilogueStages = 4,
                                      .groupM = 3,
                                      .blocks = 5},
                                     {.schedule = cooperative,
                                      .tileM = 128,
                                      .tileN = 256,
                                      .stages = 3,
                                      .epilogueStages = 4,
                                      .groupM = 2,
                                      .blocks = 9},
                                     {.schedule = cooperative,
                                      .tileM = 256,
                                      .tileN = 128,
                                      .stages = 4,
                                      .epilogueStages = 2,
                                      .groupM = 1,
                                      .blocks = 132},
                                     {.schedule = cooperative,
                                      .tileM = 256,
                                      .tileN = 64,
                                      .stages = 4,
                                      .epilogueStages = 2,
                                      .groupM = 8,
                                      .blocks = 3},
                                     {.schedule = pingPong,
                                      .tileM = 64,
                                      .tileN = 256,
                                      .stages = 4,
                                      .epilogueStages = 4,
                                      .groupM = 4,
                                      .blocks = 132},
                                     {.schedule = pingPong,
                                      .tileM = 64,
                                      .tileN = 192,
                                      .stages = 5,
                                      .epilogueStages = 3,
                                      .groupM = 2,
                                      .blocks = 2}};
  for (const samples::ContractionExtents &extents :
       {samples::ContractionExtents{.b = 3, .j = 200, .i = 136, .u = 1032},
        {.b = 2, .j = 331, .i = 72, .u = 513}})
    for (const Kernel &kernel : samples::fusedReductions(extents, DType::f16))
      for (const Sm90GemmKnobs &tile : tiles)
        for (Configuration one : collect.drawFamily(kernel, Sm90GemmKnobs{}, 2)) {
          one.knobs = tile;
          if (sm90Rejection(kernel, one, tile, collect.device.sharedMemoryPerBlock).empty())
            collect.add("fused-sums", kernel, DType::f16, one);
        }
}

/// Local softmax of what follows a contraction: sub-vectors of every length, whole and short, in
/// tiles of every kind of both families, results in both orders, rows that start anywhere, batch
/// elements; masks of -inf.
void addLocalSoftmaxes(Collector &collect) {
  const samples::ScoreExtents several[] = {
      {},
      {.b = 3, .h = 2, .j = 50, .k = 331, .p = 24, .length = 32},
      {.b = 1, .h = 5, .j = 500, .k = 1032, .p = 64},
      {.b = 2, .h = 1, .j = 24, .k = 40, .p = 19, .length = 16},
      {.b = 1, .h = 1, .j = 7, .k = 9, .p = 64},
      {.b = 8, .h = 4, .j = 512, .k = 512, .p = 64}};
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const samples::ScoreExtents &extents : several)
      for (const Kernel &kernel : samples::localSoftmaxes(extents, dtype)) {
        const Inputs inputs =
            kernel.name == "masked_local_softmax" ? Inputs::masked : Inputs::usual;
        for (const Configuration &one :
             collect.drawFamily(kernel, Sm90GemmKnobs{}, dtype == DType::f16 ? 6 : 3))
          collect.add("local-softmax", kernel, dtype, one, inputs);
        for (const Configuration &one :
             collect.drawFamily(kernel, Sm80GemmKnobs{}, dtype == DType::f16 ? 4 : 2))
          collect.add("local-softmax", kernel, dtype, one, inputs);
        if (const auto space = severalStridesSpace(kernel, collect.device))
          for (size_t n = 0; n < 2; ++n)
            collect.add("local-softmax", kernel, dtype,
                        toConfiguration(kernel, space->tuples[n * 7919 % space->tuples.size()],
                                        space->knobs[n % space->knobs.size()]),
                        inputs);
      }
  // One query, and one of one head; padded tensors; f32 that is read as tf32.
  for (const samples::ScoreExtents &extents :
       {samples::ScoreExtents{.b = 2, .h = 3, .j = 1, .k = 200},
        {.b = 1, .h = 1, .j = 1, .k = 520},
        {.b = 2, .h = 2, .j = 90, .k = 264}})
    for (const Kernel &kernel : samples::localSoftmaxes(extents, DType::f16))
      for (const Configuration &one : collect.drawFamily(kernel, Sm90GemmKnobs{}, 3)) {
        collect.add("local-softmax", kernel, DType::f16, one);
        const Configuration views = emulate::asViews(kernel, one, 8);
        if (sm90Rejection(kernel, views, one.knobs.get<Sm90GemmKnobs>(),
                          collect.device.sharedMemoryPerBlock)
                .empty())
          collect.add("local-softmax-views", kernel, DType::f16, views);
      }
  for (const Kernel &kernel :
       samples::localSoftmaxes({.b = 2, .h = 3, .j = 77, .k = 203}, DType::f32)) {
    const Kernel read = samples::inTf32(kernel);
    for (const Configuration &one : collect.drawFamily(read, Sm90GemmKnobs{}, 4))
      collect.add("local-softmax", read, nameOf(samples::tf32Types), one);
  }
}

/// Several strides along a group of axes: every sample in tiles of every kind, k in one block and
/// in clusters, with gaps; positions that a box of 64 rows holds several of, that hold several
/// boxes, and that are no multiple of a tile; clipped tiles on the other side. Then layouts as they
/// are offered, alone and with what follows a contraction.
void addStrides(Collector &collect) {
  using enum Sm90Schedule;
  constexpr Sm90GemmKnobs tiles[] = {
      {.schedule = pingPong,
       .tileM = 128,
       .tileN = 128,
       .stages = 6,
       .epilogueStages = 2,
       .groupM = 3,
       .blocks = 7},
      {.schedule = cooperative, .tileM = 128, .tileN = 256, .stages = 4, .epilogueStages = 2},
      {.schedule = cooperative,
       .tileM = 256,
       .tileN = 128,
       .stages = 4,
       .epilogueStages = 2,
       .groupM = 2},
      {.schedule = pingPong,
       .tileM = 64,
       .tileN = 192,
       .stages = 6,
       .epilogueStages = 2,
       .blocks = 5},
      {.schedule = pingPong, .tileM = 128, .tileN = 64, .stages = 8, .epilogueStages = 2},
      {.schedule = pingPong,
       .tileM = 64,
       .tileN = 128,
       .stages = 6,
       .epilogueStages = 2,
       .splitK = 2},
      {.schedule = cooperative,
       .tileM = 128,
       .tileN = 128,
       .stages = 4,
       .epilogueStages = 2,
       .splitK = 4}};
  const std::map<char, int64_t> several[] = {
      {{'b', 3}, {'h', 5}, {'i', 200}, {'j', 32}, {'k', 72}, {'p', 64}, {'w', 2}},
      {{'b', 2}, {'h', 3}, {'i', 136}, {'j', 192}, {'k', 200}, {'p', 128}, {'w', 4}},
      {{'b', 8}, {'h', 16}, {'i', 1024}, {'j', 512}, {'k', 512}, {'p', 64}, {'w', 2}},
      {{'b', 7}, {'h', 2}, {'i', 72}, {'j', 16}, {'k', 24}, {'p', 192}, {'w', 4}}};
  const auto isTaken = [&](const Kernel &kernel, const Configuration &one) {
    return sm90Rejection(kernel, one, one.knobs.get<Sm90GemmKnobs>(),
                         collect.device.sharedMemoryPerBlock)
        .empty();
  };
  size_t turn = 0;
  const auto addSamples = [&](const std::string &group, const Kernel &kernel, DType dtype,
                              size_t count) {
    for (size_t n = 0; n < count; ++n) {
      const Configuration one =
          samples::stridedConfiguration(kernel, tiles[turn++ % std::size(tiles)]);
      if (!isTaken(kernel, one)) continue;
      collect.add(group, kernel, dtype, one);
      if (const Configuration views = emulate::asViews(kernel, one, 8);
          n == 0 && isTaken(kernel, views))
        collect.add(group + "-views", kernel, dtype, views);
    }
  };
  const auto addOffered = [&](const std::string &group, const Kernel &kernel, DType dtype,
                              size_t count) {
    const auto space = severalStridesSpace(kernel, collect.device);
    if (!space) return;
    for (size_t n = 0; n < count; ++n, ++turn)
      collect.add(group, kernel, dtype,
                  toConfiguration(kernel, space->tuples[(n * 7919 + turn) % space->tuples.size()],
                                  space->knobs[turn % space->knobs.size()]));
  };
  for (DType dtype : {DType::f16, DType::bf16}) {
    for (const auto &extents : several) {
      for (const samples::StridedGemmCase &gemm : samples::stridedGemmCases) {
        Kernel kernel = samples::stridedKernel(gemm, extents, dtype);
        addSamples("strides", kernel, dtype, dtype == DType::f16 ? 5 : 2);
        addOffered("strides-offered", kernel, dtype, dtype == DType::f16 ? 6 : 2);
        kernel.body[0].attributes["scale"] = 0.125;
        addSamples("strides", kernel, dtype, 1);
      }
      addSamples("strides-fused", samples::stridedProjection(extents, dtype), dtype, 7);
      addOffered("strides-fused", samples::stridedProjection(extents, dtype), dtype, 6);
    }
    for (const samples::ContractionExtents &extents :
         {samples::ContractionExtents{.b = 3, .j = 64, .i = 136, .u = 1032},
          {.b = 2, .j = 192, .i = 72, .u = 520}})
      for (const Kernel &kernel : samples::fusedContractions(extents, dtype))
        addOffered("strides-fused", kernel, dtype, dtype == DType::f16 ? 3 : 1);
  }
}

/// Runs of slices that end inside of tiles: every tile in every orientation, one tile for all
/// blocks and several tiles a block, clipped tiles, batch elements, a factor, results whose
/// rows start anywhere, and operands with several strides along a group.
void addStreamK(Collector &collect) {
  using enum Sm90Schedule;
  struct Extents {
    int64_t b, m, n, k;
    int blocks;
  };
  constexpr Sm90GemmKnobs tiles[] = {
      {.schedule = cooperative, .tileM = 128, .tileN = 128, .stages = 6, .epilogueStages = 2},
      {.schedule = cooperative,
       .tileM = 128,
       .tileN = 256,
       .stages = 4,
       .epilogueStages = 2,
       .groupM = 2},
      {.schedule = cooperative, .tileM = 256, .tileN = 128, .stages = 4, .epilogueStages = 2},
      {.schedule = cooperative,
       .tileM = 128,
       .tileN = 64,
       .stages = 8,
       .epilogueStages = 2,
       .groupM = 3},
      {.schedule = cooperative, .tileM = 256, .tileN = 64, .stages = 4, .epilogueStages = 1}};
  const auto add = [&](const Kernel &kernel, DType dtype, Configuration one, Sm90GemmKnobs tile,
                       int blocks) {
    tile.streamK = 1, tile.blocks = blocks;
    one.knobs = tile;
    if (sm90Rejection(kernel, one, tile, collect.device.sharedMemoryPerBlock).empty())
      collect.add("streamK", kernel, dtype, one);
  };
  for (DType dtype : {DType::f16, DType::bf16})
    for (const Extents &one : {Extents{1, 1024, 3072, 4096, 132},
                               {1, 2640, 2304, 768, 132},
                               {1, 520, 520, 8192, 132},
                               {1, 300, 1000, 520, 13},
                               {1, 129, 200, 1003, 7},
                               {3, 200, 331, 640, 31},
                               {1, 100, 120, 4096, 29},
                               {5, 333, 264, 72, 11},
                               {1, 4096, 1024, 1024, 100}}) {
      for (const auto &[a, b, c] : {std::tuple("bmk", "bnk", "bmn"),
                                    {"bmk", "bkn", "bmn"},
                                    {"bkm", "bnk", "bnm"},
                                    {"bkm", "bkn", "bmn"}}) {
        Kernel kernel =
            typed(samples::contractKernel({{'b', one.b}, {'m', one.m}, {'n', one.n}, {'k', one.k}},
                                          a, b, c),
                  dtype);
        if (one.b == 3) kernel.body[0].attributes["scale"] = 0.125;
        for (const Sm90GemmKnobs &tile : tiles)
          add(kernel, dtype, samples::stridedConfiguration(kernel, tile), tile, one.blocks);
      }
    }
  const std::map<char, int64_t> layer{{'b', 3},   {'h', 5},  {'i', 1000}, {'j', 192},
                                      {'k', 328}, {'p', 64}, {'w', 2}};
  for (const samples::StridedGemmCase &gemm : samples::stridedGemmCases) {
    const Kernel kernel = samples::stridedKernel(gemm, layer);
    for (const int blocks : {17, 132})
      add(kernel, DType::f16, samples::stridedConfiguration(kernel, tiles[0]), tiles[0], blocks);
  }
}

/// Operands that are transformed on load: every role of what is read, both operands in every
/// orientation, casts from other widths, one tile and many, k that ends inside a slice where
/// functions are no number, tiny products, batch elements, rows that start anywhere, an epilogue
/// behind.
void addPrologues(Collector &collect) {
  const samples::PrologueExtents several[] = {
      {},
      {.b = 3, .h = 2, .j = 50, .k = 203, .i = 203, .p = 40, .u = 331},
      {.b = 3, .h = 4, .j = 333, .k = 200, .i = 1000, .p = 16, .u = 1112},
      {.b = 2, .h = 2, .j = 256, .k = 512, .i = 512, .p = 128, .u = 768},
      {.b = 1, .h = 2, .j = 9, .k = 24, .i = 24, .p = 8, .u = 40},
      {.b = 1, .h = 1, .j = 1, .k = 7, .i = 1, .p = 1, .u = 3}};
  const auto isRead = [](const Kernel &kernel, const Configuration &configuration) {
    return prologueLayoutRejection(kernel, configuration,
                                   contractionPrologue(kernel).value().value())
        .empty();
  };
  size_t scaled = 0;
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const samples::PrologueExtents &extents : several) {
      std::vector<Kernel> kernels = samples::transformedContractions(extents, dtype);
      for (Kernel &kernel : samples::scaledKTiles(extents, dtype))
        kernels.push_back(std::move(kernel));  // sums of products are scaled in some layouts
      for (const Kernel &kernel : kernels) {
        const std::vector<Configuration> drawn =
            collect.drawFamily(kernel, Sm90GemmKnobs{}, dtype == DType::f16 ? 12 : 5);
        for (size_t n = 0; n < drawn.size(); ++n) {
          collect.add("prologue", kernel, dtype, drawn[n]);
          scaled += wgmmaProblem(kernel, drawn[n])->isScaled();
          const Configuration views = emulate::asViews(kernel, drawn[n], n % 2 == 0 ? 8 : 3);
          const auto &tile = views.knobs.get<Sm90GemmKnobs>();
          if (wgmmaProblem(kernel, views) &&
              sm90Rejection(kernel, views, tile, collect.device.sharedMemoryPerBlock).empty())
            collect.add("prologue-views", kernel, dtype, views);
        }
      }
      for (const Kernel &kernel : samples::transformedContractions(extents, dtype)) {
        const std::vector<Configuration> drawn =
            collect.drawFamily(kernel, Sm80GemmKnobs{}, dtype == DType::f16 ? 8 : 4);
        for (size_t n = 0; n < drawn.size(); ++n) {
          collect.add("prologue-warps", kernel, dtype, drawn[n]);
          const Configuration views = emulate::asViews(kernel, drawn[n], n % 2 == 0 ? 8 : 3);
          if (mmaSyncProblem(kernel, views) && isRead(kernel, views))
            collect.add("prologue-warps-views", kernel, dtype, views);
        }
      }
    }
  if (scaled < 40)
    throw Error::checkFailed("only {} kernels scale sums of products in the place of an operand",
                             scaled);
}

/// Views have rows of operands and results that start anywhere, or at 16 bytes with gaps between
/// them.
void addFloat8View(Collector &collect, const Kernel &kernel, const std::string &types,
                   const Configuration &configuration, int64_t padding) {
  const Configuration views = emulate::asViews(kernel, configuration, padding);
  if (!wgmmaProblem(kernel, views)) return;
  if (sm90Rejection(kernel, views, views.knobs.get<Sm90GemmKnobs>(),
                    findDevice("h200").sharedMemoryPerBlock)
          .empty())
    collect.add("float8-views", kernel, types, views);
}

/// Products of 8-bit floats: aligned, odd and tiny extents, batch elements, results of every
/// type; the same exactly on whole numbers; long sums.
void addFloat8(Collector &collect) {
  using samples::Float8Extents;
  const Sm90GemmKnobs family;
  const Float8Extents several[] = {{.m = 512, .n = 768, .k = 512},
                                   {.m = 1000, .n = 784, .k = 560},
                                   {.b = 3, .m = 200, .n = 336, .k = 208},
                                   {.b = 2, .m = 129, .n = 65, .k = 77},
                                   {.m = 1, .n = 40, .k = 48},
                                   {.m = 9, .n = 1, .k = 33},
                                   {.m = 7, .n = 5, .k = 1},
                                   {.b = 5, .m = 3, .n = 2, .k = 3},
                                   {.m = 1, .n = 1, .k = 1000}};
  for (const GemmTypes &types : samples::float8Types)
    for (const Float8Extents &extents : several) {
      const Kernel plain = samples::float8Gemm(extents, types),
                   scaled = samples::scaledFloat8Gemm(extents, types);
      const std::string name = nameOf(types);
      const std::vector<Configuration> drawn = collect.drawFamily(plain, family, 8);
      for (size_t n = 0; n < drawn.size(); ++n) {
        collect.add("float8", plain, name, drawn[n]);
        collect.add("float8-whole", plain, name, drawn[n], Inputs::whole);
        addFloat8View(collect, plain, name, drawn[n], n % 2 == 0 ? 16 : 3);
      }
      for (const Configuration &one : collect.drawFamily(scaled, family, 4)) {
        collect.add("float8", scaled, name, one);
        collect.add("float8-whole", scaled, name, one, Inputs::whole);
      }
      for (const Configuration &one : collect.drawFamily(plain, FmaGemmKnobs{}, 2))
        collect.add("float8", plain, name, one);
    }
  for (const GemmTypes &types :
       {samples::float8Types[0], samples::float8Types[1], samples::float8Types[4]})
    for (const Float8Extents &extents : {Float8Extents{.m = 64, .n = 192, .k = 16384},
                                         {.m = 130, .n = 70, .k = 65536},
                                         {.m = 8, .n = 512, .k = 131072},
                                         {.m = 33, .n = 17, .k = 100003}})
      for (const Configuration &one :
           collect.drawFamily(samples::float8Gemm(extents, types), family, 4))
        collect.add("float8-deep", samples::float8Gemm(extents, types), nameOf(types), one);
}

/// The knobs of a family that products of many shapes are offered on a device.
template <typename Family>
std::set<Knobs> tf32Knobs(const Device &device) {
  std::set<Knobs> found;
  for (const auto &[m, n] : {std::pair<int64_t, int64_t>{4096, 4096},
                             {1024, 3072},
                             {2640, 768},
                             {512, 3072},
                             {4096, 64},
                             {304, 1000},
                             {8, 4096},
                             {24, 24}})
    forEachConfiguration(samples::tf32Gemm({.m = m, .n = n, .k = 2048}), device, {},
                         [&](const Configuration &one) {
                           if (one.knobs.is<Family>()) found.insert(one.knobs);
                           return true;
                         });
  return found;
}

/// Every tile of both families on extents that cut it on both sides, with copied operands and with
/// rows that start anywhere, in every orientation that it takes.
void addTf32Tiles(Collector &collect) {
  const Device &device = findDevice("h200");
  std::set<Knobs> knobs = tf32Knobs<Sm90GemmKnobs>(device);
  knobs.merge(tf32Knobs<Sm80GemmKnobs>(findDevice("a100")));
  for (const int64_t k : {332, 203})
    for (const Knobs &one : knobs)
      for (const int orientation : {0, 1, 2, 3}) {
        const Kernel kernel = samples::tf32Gemm({.b = 2, .m = 333, .n = 517, .k = k});
        Configuration configuration{
            .inputs = {rowMajor(3), rowMajor(3)}, .outputs = {rowMajor(3)}, .knobs = one};
        for (const size_t input : {0, 1})
          if (orientation >> input & 1) configuration.inputs[input].order = {0, 2, 1};
        const auto *tile = one.getIf<Sm90GemmKnobs>();
        if (tile &&
            !sm90Rejection(kernel, configuration, *tile, device.sharedMemoryPerBlock).empty())
          continue;
        collect.add("tf32-tiles", kernel, nameOf(samples::tf32Types), configuration);
      }
}

/// Products of f32 read as tf32: aligned, odd and tiny extents, batch elements, shared and long
/// k, results of every type, views whose rows start anywhere or have gaps; the same exactly on
/// whole numbers; and with what follows a contraction.
void addTf32(Collector &collect) {
  using samples::Tf32Extents;
  const Sm90GemmKnobs family;
  for (const DType result : {DType::f32, DType::f16, DType::bf16})
    for (const Tf32Extents &extents : {Tf32Extents{.m = 512, .n = 768, .k = 512},
                                       {.m = 1000, .n = 784, .k = 560},
                                       {.b = 3, .m = 200, .n = 336, .k = 204},
                                       {.b = 2, .m = 129, .n = 65, .k = 77},
                                       {.m = 1, .n = 40, .k = 48},
                                       {.m = 9, .n = 1, .k = 33},
                                       {.m = 7, .n = 5, .k = 1},
                                       {.b = 5, .m = 3, .n = 2, .k = 3},
                                       {.m = 1, .n = 1, .k = 1000},
                                       {.m = 128, .n = 256, .k = 4096},
                                       {.m = 33, .n = 17, .k = 10003}}) {
      const Kernel kernel = samples::tf32Gemm(extents, result);
      const std::string name = nameOf(GemmTypes{DType::tf32, DType::tf32, result});
      const std::vector<Configuration> drawn =
          collect.drawFamily(kernel, family, result == DType::f32 ? 10 : 4);
      for (size_t n = 0; n < drawn.size(); ++n) {
        collect.add("tf32", kernel, name, drawn[n]);
        collect.add("tf32-whole", kernel, name, drawn[n], Inputs::whole);
        const Configuration views = emulate::asViews(kernel, drawn[n], n % 2 == 0 ? 4 : 3);
        if (wgmmaProblem(kernel, views) &&
            sm90Rejection(kernel, views, views.knobs.get<Sm90GemmKnobs>(),
                          findDevice("h200").sharedMemoryPerBlock)
                .empty())
          collect.add("tf32-views", kernel, name, views);
      }
    }
  for (const auto &[a, b] :
       {std::pair("bmk", "bnk"), {"bmk", "bkn"}, {"bkm", "bnk"}, {"bkm", "bkn"}})
    for (const Tf32Extents &extents : {Tf32Extents{.m = 512, .n = 768, .k = 512},
                                       {.b = 3, .m = 200, .n = 336, .k = 204},
                                       {.b = 2, .m = 129, .n = 65, .k = 77},
                                       {.m = 1, .n = 40, .k = 48},
                                       {.m = 9, .n = 1, .k = 33},
                                       {.m = 33, .n = 17, .k = 10003}}) {
      const std::map<char, int64_t> used{
          {'b', extents.b}, {'m', extents.m}, {'n', extents.n}, {'k', extents.k}};
      Kernel kernel =
          samples::inTf32(typed(samples::contractKernel(used, a, b, "bmn"), DType::f32));
      const std::vector<Configuration> drawn = collect.drawFamily(kernel, Sm80GemmKnobs{}, 6);
      for (size_t n = 0; n < drawn.size(); ++n) {
        collect.add("tf32-warps", kernel, nameOf(samples::tf32Types), drawn[n],
                    n % 2 == 0 ? Inputs::usual : Inputs::whole);
        const Configuration views = emulate::asViews(kernel, drawn[n], n % 2 == 0 ? 4 : 3);
        if (mmaSyncProblem(kernel, views))
          collect.add("tf32-warps-views", kernel, nameOf(samples::tf32Types), views);
      }
      kernel.body[0].attributes["scale"] = 0.125;
      for (const Configuration &one : collect.drawFamily(kernel, Sm80GemmKnobs{}, 2))
        collect.add("tf32-warps", kernel, nameOf(samples::tf32Types), one);
    }
  for (const samples::ContractionExtents &extents : {samples::ContractionExtents{},
                                                     {.b = 3, .j = 50, .i = 71, .u = 331},
                                                     {.b = 1, .j = 1000, .i = 200, .u = 1032}})
    for (const Kernel &kernel : samples::fusedContractions(extents, DType::f32))
      for (const Configuration &one : collect.drawFamily(samples::inTf32(kernel), family, 3))
        collect.add("tf32-fused", samples::inTf32(kernel), nameOf(samples::tf32Types), one);
}

/// Blocks that load k-tiles of B for each other: every such tile in every orientation, a cluster or
/// several, of one tile a block and of many, groups along m that are not whole, clipped
/// tiles, k of one k-tile and of more than the stages, batch elements, epilogues that read
/// subtiles, that make a second tensor and that sum; 8-bit floats and tf32.
void addMulticast(Collector &collect) {
  using enum Sm90Schedule;
  struct Extents {
    int64_t b, m, n, k;
  };
  constexpr Sm90GemmKnobs tiles[] = {{.schedule = pingPong,
                                      .tileM = 128,
                                      .tileN = 128,
                                      .stages = 5,
                                      .epilogueStages = 4,
                                      .groupM = 4,
                                      .blocks = 132,
                                      .multicastB = 2},
                                     {.schedule = pingPong,
                                      .tileM = 128,
                                      .tileN = 128,
                                      .stages = 6,
                                      .epilogueStages = 2,
                                      .groupM = 2,
                                      .blocks = 2,
                                      .multicastB = 2},
                                     {.schedule = cooperative,
                                      .tileM = 128,
                                      .tileN = 256,
                                      .stages = 3,
                                      .epilogueStages = 4,
                                      .groupM = 8,
                                      .blocks = 6,
                                      .multicastB = 2},
                                     {.schedule = cooperative,
                                      .tileM = 256,
                                      .tileN = 128,
                                      .stages = 4,
                                      .epilogueStages = 2,
                                      .groupM = 2,
                                      .blocks = 132,
                                      .multicastB = 2},
                                     {.schedule = pingPong,
                                      .tileM = 64,
                                      .tileN = 256,
                                      .stages = 4,
                                      .epilogueStages = 4,
                                      .groupM = 4,
                                      .blocks = 4,
                                      .multicastB = 2},
                                     {.schedule = pingPong,
                                      .tileM = 64,
                                      .tileN = 128,
                                      .stages = 8,
                                      .epilogueStages = 2,
                                      .groupM = 6,
                                      .blocks = 10,
                                      .multicastB = 2}};
  const auto add = [&](const std::string &group, const Kernel &kernel, std::string_view types,
                       Configuration one, const Sm90GemmKnobs &tile) {
    one.knobs = tile;
    if (sm90Rejection(kernel, one, tile, collect.device.sharedMemoryPerBlock).empty())
      collect.add(group, kernel, types, one);
  };
  for (DType dtype : {DType::f16, DType::bf16})
    for (const Extents &one : {Extents{1, 256, 136, 200},
                               {1, 500, 1016, 1032},
                               {3, 200, 264, 72},
                               {2, 1500, 328, 24},
                               {1, 4096, 4088, 1000}})
      for (const auto &[a, b, c] : {std::tuple("bmk", "bnk", "bmn"),
                                    {"bmk", "bkn", "bmn"},
                                    {"bkm", "bnk", "bnm"},
                                    {"bkm", "bkn", "bmn"}}) {
        Kernel kernel =
            typed(samples::contractKernel({{'b', one.b}, {'m', one.m}, {'n', one.n}, {'k', one.k}},
                                          a, b, c),
                  dtype);
        if (one.b == 3) kernel.body[0].attributes["scale"] = 0.125;
        for (const Sm90GemmKnobs &tile : tiles)
          add("multicastB", kernel, nameOf(dtype), samples::stridedConfiguration(kernel, tile),
              tile);
      }
  for (const samples::ContractionExtents &extents :
       {samples::ContractionExtents{.b = 4, .j = 200, .i = 136, .u = 1032},
        {.b = 2, .j = 250, .i = 72, .u = 520}}) {
    for (const Kernel &kernel : samples::fusedContractions(extents, DType::f16))
      for (const Sm90GemmKnobs &tile : tiles)
        for (const Configuration &one : collect.drawFamily(kernel, Sm90GemmKnobs{}, 2))
          add("multicastB-fused", kernel, nameOf(DType::f16), one, tile);
    for (const Kernel &kernel : samples::fusedReductions(extents, DType::bf16))
      for (const Sm90GemmKnobs &tile : tiles)
        for (const Configuration &one : collect.drawFamily(kernel, Sm90GemmKnobs{}, 2))
          add("multicastB-fused", kernel, nameOf(DType::bf16), one, tile);
  }
  for (const Sm90GemmKnobs &tile : tiles) {
    const Kernel bytes = samples::scaledFloat8Gemm({.b = 2, .m = 500, .n = 264, .k = 208},
                                                   samples::float8Types[1]),
                 words = samples::tf32Gemm({.b = 2, .m = 500, .n = 264, .k = 100});
    add("multicastB", bytes, nameOf(samples::float8Types[1]),
        samples::stridedConfiguration(bytes, tile), tile);
    add("multicastB", words, nameOf(samples::tf32Types), samples::stridedConfiguration(words, tile),
        tile);
  }
}

}  // namespace

void addContractions(Collector &collect) {
  const std::map<char, int64_t> odd{{'b', 2},  {'h', 3},   {'i', 33}, {'j', 17},
                                    {'k', 65}, {'n', 127}, {'p', 5},  {'w', 9}};
  const GemmCase products[] = {{"ik", "kn", "in"},
                               {"phi", "bji", "phbj"},
                               {"phbk", "phbj", "hbjk"},
                               {"hbjk", "whbk", "whbj"},
                               {"bik", "bkn", "bin"}};
  const auto extentsFor = [&](const GemmCase &gemm) {
    std::map<char, int64_t> used;
    for (const char *term : {gemm.a, gemm.b, gemm.c})
      for (const char *letter = term; *letter; ++letter) used[*letter] = odd.at(*letter);
    return used;
  };
  addTensorContractions(collect, "sm90", Sm90GemmKnobs{}, products);
  addTensorContractions(collect, "sm80", Sm80GemmKnobs{}, products);
  addSplitK(collect);
  addSingleConsumer(collect);
  addSingleConsumerFused(collect);
  addFused(collect);
  addRotary(collect);
  addWarpsFused(collect);
  addReductionOutputs(collect);
  addLocalSoftmaxes(collect);
  addPrologues(collect);
  addStrides(collect);
  addStreamK(collect);
  addMulticast(collect);
  addFloat8(collect);
  addTf32(collect);
  addTf32Tiles(collect);
  for (DType dtype : floatTypes) {
    for (const GemmCase &gemm : products) {
      Kernel kernel =
          typed(samples::contractKernel(extentsFor(gemm), gemm.a, gemm.b, gemm.c), dtype);
      collect.addDrawn("contractions", kernel, dtype, 20);
      kernel.body[0].attributes["scale"] = 0.125;
      collect.addDrawn("contractions", kernel, dtype, 4);
    }
    for (int64_t m : {1, 7, 127})
      for (int64_t n : {1, 5, 65})
        for (int64_t k : {1, 3, 33, 1000})
          collect.addDrawn(
              "contractions",
              typed(samples::contractKernel({{'i', m}, {'k', k}, {'n', n}}, "ik", "kn", "in"),
                    dtype),
              dtype, 1);
  }
}

}  // namespace weft::gputest
