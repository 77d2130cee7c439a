// Cases of contractions by WGMMA for the GPU: GEMMs alone (sm90_fused_gpu_cases.cpp has the
// others).
//   sm90             every tile in every orientation; sm90-views: with padded rows
//   split            with k over the blocks of a cluster
//   single-consumer  with one short side, or few tiles; single-consumer-views: with padded rows
//   strides          with several strides along a group of axes; strides-views: padded;
//                    strides-offered: layouts as they are offered; strides-fused,
//                    strides-fused-views: with what follows them
//   streamK          runs of k-tiles that end inside of tiles
//   summed-tokens    whole tiles that end with the last of packed tokens
//   multicastB       whose blocks load k-tiles of B for each other; multicastB-fused: with what
//                    follows them
//   float8           products of 8-bit floats: every tile, pair of formats and result; odd and tiny
//                    extents, with scales; float8-views: padded
//   float8-whole     the same on small whole numbers, exactly
//   float8-deep      k of 16384 and more, also over the blocks of a cluster
//   tf32             products of f32 read as tf32, as float8; tf32-views, tf32-whole, and
//   tf32-fused
//                    with what follows them; tf32-tiles: every tile
#include "codegen/families/contraction/GemmProblem.h"
#include "codegen/families/contraction/tests/ContractionCases.h"
#include "codegen/families/gemm_sm90/Sm90GemmFamily.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/gemm_sm90/Sm90Tile.h"
#include "codegen/families/gemm_sm90/tests/SingleConsumerTiles.h"
#include "tests/gpu/Collector.h"
#include "tests/unit/samples/SampleContractions.h"
#include "tests/unit/samples/SampleFloat8.h"
#include "tests/unit/samples/SampleStrides.h"
#include "tests/unit/samples/SampleTf32.h"
#include "tests/unit/samples/SampleTokens.h"

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace weft::gputest {
namespace {

/// Configurations that the family takes, and may not list.
bool isTaken(const Kernel &kernel, const Configuration &configuration) {
  return wgmmaProblem(kernel, configuration) &&
         sm90Rejection(kernel, configuration, configuration.knobs.get<Sm90GemmKnobs>(),
                       findDevice("h200").sharedMemoryPerBlock)
             .empty();
}

void addTensor(Collector &collect) {
  addTensorContractions(collect, "sm90", Sm90GemmKnobs{}, isTaken);
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
  // Over packed tokens, of which few, most or all are there, by the seed of the offsets.
  for (DType dtype : {DType::f16, DType::bf16})
    for (const auto &[extents, blocks] :
         {std::pair(samples::TokenExtents{.t = 4096, .i = 768, .u = 3072, .sequences = 8}, 132),
          {{.t = 4096, .i = 768, .u = 768, .sequences = 1}, 132},
          {{.t = 1000, .i = 136, .u = 520, .sequences = 3}, 13},
          {{.t = 200, .i = 264, .u = 200, .sequences = 1}, 7},
          {{.t = 16384, .i = 1024, .u = 4096, .sequences = 32}, 132}})
      for (const Sm90GemmKnobs &tile : tiles) {
        const Kernel kernel = samples::sumOverTokens(extents, dtype);
        add(kernel, dtype, samples::stridedConfiguration(kernel, tile), tile, blocks);
      }
  const std::map<char, int64_t> layer{{'b', 3},   {'h', 5},  {'i', 1000}, {'j', 192},
                                      {'k', 328}, {'p', 64}, {'w', 2}};
  for (const samples::StridedGemmCase &gemm : samples::stridedGemmCases) {
    const Kernel kernel = samples::stridedKernel(gemm, layer);
    for (const int blocks : {17, 132})
      add(kernel, DType::f16, samples::stridedConfiguration(kernel, tiles[0]), tiles[0], blocks);
  }
}

/// Blocks of a cluster load k-tiles of B for each other.
constexpr Sm90GemmKnobs multicastTiles[] = {{.schedule = Sm90Schedule::pingPong,
                                             .tileM = 128,
                                             .tileN = 128,
                                             .stages = 5,
                                             .epilogueStages = 4,
                                             .groupM = 4,
                                             .blocks = 132,
                                             .multicastB = 2},
                                            {.schedule = Sm90Schedule::pingPong,
                                             .tileM = 128,
                                             .tileN = 128,
                                             .stages = 6,
                                             .epilogueStages = 2,
                                             .groupM = 2,
                                             .blocks = 2,
                                             .multicastB = 2},
                                            {.schedule = Sm90Schedule::cooperative,
                                             .tileM = 128,
                                             .tileN = 256,
                                             .stages = 3,
                                             .epilogueStages = 4,
                                             .groupM = 8,
                                             .blocks = 6,
                                             .multicastB = 2},
                                            {.schedule = Sm90Schedule::cooperative,
                                             .tileM = 256,
                                             .tileN = 128,
                                             .stages = 4,
                                             .epilogueStages = 2,
                                             .groupM = 2,
                                             .blocks = 132,
                                             .multicastB = 2},
                                            {.schedule = Sm90Schedule::pingPong,
                                             .tileM = 64,
                                             .tileN = 256,
                                             .stages = 4,
                                             .epilogueStages = 4,
                                             .groupM = 4,
                                             .blocks = 4,
                                             .multicastB = 2},
                                            {.schedule = Sm90Schedule::pingPong,
                                             .tileM = 64,
                                             .tileN = 128,
                                             .stages = 8,
                                             .epilogueStages = 2,
                                             .groupM = 6,
                                             .blocks = 10,
                                             .multicastB = 2}};

/// Sums over packed tokens, of which few, most or all are there, by the seed of the offsets: tiles
/// as they are offered, whole ones and those whose k blocks of a cluster share, or whose B.
void addSummedTokens(Collector &collect) {
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const samples::TokenExtents &extents :
         {samples::TokenExtents{.t = 4096, .i = 768, .u = 3072, .sequences = 8},
          {.t = 4096, .i = 768, .u = 768, .sequences = 1},
          {.t = 1000, .i = 136, .u = 520, .sequences = 3},
          {.t = 200, .i = 264, .u = 200, .sequences = 1},
          {.t = 72, .i = 1000, .u = 136, .sequences = 2},
          {.t = 16384, .i = 136, .u = 4088, .sequences = 3},
          {.t = 8192, .i = 128, .u = 128, .sequences = 5}}) {
      const Kernel kernel = samples::sumOverTokens(extents, dtype);
      for (const Configuration &one : collect.drawFamily(kernel, Sm90GemmKnobs{}, 24))
        if (sm90GemmFamily.endsSums(kernel, one.knobs))
          collect.add("summed-tokens", kernel, dtype, one);
      std::vector<Sm90GemmKnobs> clusters(std::begin(multicastTiles), std::end(multicastTiles));
      for (const int splits : {2, 4})
        clusters.push_back({.schedule = Sm90Schedule::pingPong,
                            .tileM = 64,
                            .tileN = 128,
                            .stages = 4,
                            .epilogueStages = 2,
                            .splitK = splits});
      for (const Sm90GemmKnobs &tile : clusters) {
        Configuration one = samples::stridedConfiguration(kernel, tile);
        if (sm90Rejection(kernel, one, tile, collect.device.sharedMemoryPerBlock).empty())
          collect.add("summed-tokens", kernel, dtype, one);
      }
    }
}

/// Blocks that load k-tiles of B for each other: every such tile in every orientation, a cluster or
/// several, of one tile a block and of many, groups along m that are not whole, clipped
/// tiles, k of one k-tile and of more than the stages, batch elements, epilogues that read
/// subtiles, that make a second tensor and that sum; 8-bit floats and tf32.
void addMulticast(Collector &collect) {
  struct Extents {
    int64_t b, m, n, k;
  };
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
        for (const Sm90GemmKnobs &tile : multicastTiles)
          add("multicastB", kernel, nameOf(dtype), samples::stridedConfiguration(kernel, tile),
              tile);
      }
  for (const samples::ContractionExtents &extents :
       {samples::ContractionExtents{.b = 4, .j = 200, .i = 136, .u = 1032},
        {.b = 2, .j = 250, .i = 72, .u = 520}}) {
    for (const Kernel &kernel : samples::fusedContractions(extents, DType::f16))
      for (const Sm90GemmKnobs &tile : multicastTiles)
        for (const Configuration &one : collect.drawFamily(kernel, Sm90GemmKnobs{}, 2))
          add("multicastB-fused", kernel, nameOf(DType::f16), one, tile);
    for (const Kernel &kernel : samples::fusedReductions(extents, DType::bf16))
      for (const Sm90GemmKnobs &tile : multicastTiles)
        for (const Configuration &one : collect.drawFamily(kernel, Sm90GemmKnobs{}, 2))
          add("multicastB-fused", kernel, nameOf(DType::bf16), one, tile);
  }
  for (const Sm90GemmKnobs &tile : multicastTiles) {
    const Kernel bytes = samples::scaledFloat8Gemm({.b = 2, .m = 500, .n = 264, .k = 208},
                                                   samples::float8Types[1]),
                 words = samples::tf32Gemm({.b = 2, .m = 500, .n = 264, .k = 100});
    add("multicastB", bytes, nameOf(samples::float8Types[1]),
        samples::stridedConfiguration(bytes, tile), tile);
    add("multicastB", words, nameOf(samples::tf32Types), samples::stridedConfiguration(words, tile),
        tile);
  }
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
  for (const GemmTypes &types : samples::float8Types)
    for (const Float8Extents &extents : float8Extents) {
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
  for (const samples::ContractionExtents &extents : {samples::ContractionExtents{},
                                                     {.b = 3, .j = 50, .i = 71, .u = 331},
                                                     {.b = 1, .j = 1000, .i = 200, .u = 1032}})
    for (const Kernel &kernel : samples::fusedContractions(extents, DType::f32))
      for (const Configuration &one : collect.drawFamily(samples::inTf32(kernel), family, 3))
        collect.add("tf32-fused", samples::inTf32(kernel), nameOf(samples::tf32Types), one);
}

void addEveryTf32Tile(Collector &collect) { addTf32Tiles(collect, Sm90GemmKnobs{}, isTaken); }

const CaseRegistration registered("gemm-sm90", addTensor);
const CaseRegistration splitRegistered("gemm-sm90 split", addSplitK);
const CaseRegistration singleConsumerRegistered("gemm-sm90 single-consumer", addSingleConsumer);
const CaseRegistration stridesRegistered("gemm-sm90 strides", addStrides);
const CaseRegistration streamKRegistered("gemm-sm90 stream-K", addStreamK);
const CaseRegistration summedTokensRegistered("gemm-sm90 summed tokens", addSummedTokens);
const CaseRegistration multicastRegistered("gemm-sm90 multicast", addMulticast);
const CaseRegistration float8Registered("gemm-sm90 float8", addFloat8);
const CaseRegistration tf32Registered("gemm-sm90 tf32", addTf32);
const CaseRegistration tf32TilesRegistered("gemm-sm90 tf32 tiles", addEveryTf32Tile);

}  // namespace
}  // namespace weft::gputest
