// Cases of contractions by WGMMA for the GPU, with what precedes and follows them.
//   single-consumer-fused  with one short side, or few tiles
//   fused                  with what follows a contraction; fused-gathered: operands that are read
//                          where an op computes it; fused-rotary: heads that are turned
//   fused-sums             with sums of that down to rows or columns of the result
//   local-softmax          that end with one; with masks of -inf; local-softmax-views: padded
//   prologue               with operands that are transformed on load, in place and by threads that
//                          copy; prologue-views: padded
#include "codegen/families/contraction/GemmProblem.h"
#include "codegen/families/contraction/tests/ContractionCases.h"
#include "codegen/families/gemm_sm90/Sm90GemmFamily.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/gemm_sm90/Sm90Tile.h"
#include "codegen/families/gemm_sm90/tests/SingleConsumerTiles.h"
#include "kernel/ContractionPrologue.h"
#include "kernel/Error.h"
#include "tests/gpu/Collector.h"
#include "tests/unit/samples/SampleContractions.h"
#include "tests/unit/samples/SamplePrologues.h"
#include "tests/unit/samples/SampleRotary.h"
#include "tests/unit/samples/SampleSoftmaxes.h"
#include "tests/unit/samples/SampleTf32.h"

#include <utility>
#include <vector>

namespace weft::gputest {
namespace {

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
  for (DType dtype : {DType::f16, DType::bf16})
    for (const samples::ContractionExtents &extents : gatheredExtents)
      for (const Kernel &kernel : samples::gatheredContractions(extents, dtype))
        for (const Configuration &one : collect.drawFamily(kernel, Sm90GemmKnobs{}, 4))
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
        const Kernel kernel = samples::rotatedProjection(extents, dtype, form);
        for (const Configuration &one :
             collect.drawFamily(kernel, Sm90GemmKnobs{}, dtype == DType::f16 ? 6 : 2))
          collect.add("fused-rotary", kernel, dtype, one);
      }
      const Kernel packed = samples::rotatedTokens(extents, dtype, {.end = 2});
      for (const Configuration &one : collect.drawFamily(packed, Sm90GemmKnobs{}, 3))
        collect.add("fused-rotary", packed, dtype, one);
    }
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
/// tiles of every kind, results in both orders, rows that start anywhere, batch
/// elements; masks of -inf.
void addLocalSoftmaxes(Collector &collect) {
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const samples::ScoreExtents &extents : softmaxExtents)
      for (const Kernel &kernel : samples::localSoftmaxes(extents, dtype)) {
        const Inputs inputs = softmaxInputs(kernel);
        for (const Configuration &one :
             collect.drawFamily(kernel, Sm90GemmKnobs{}, dtype == DType::f16 ? 6 : 3))
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

/// Operands that are transformed on load: every role of what is read, both operands in every
/// orientation, casts from other widths, one tile and many, k that ends inside a slice where
/// functions are no number, tiny products, batch elements, rows that start anywhere, an epilogue
/// behind.
void addPrologues(Collector &collect) {
  size_t scaled = 0;
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const samples::PrologueExtents &extents : prologueExtents) {
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
    }
  if (scaled < 40)
    throw Error::checkFailed("only {} kernels scale sums of products in the place of an operand",
                             scaled);
}

const CaseRegistration singleConsumerRegistered("gemm-sm90 single-consumer fused",
                                                addSingleConsumerFused);
const CaseRegistration fusedRegistered("gemm-sm90 fused", addFused);
const CaseRegistration rotaryRegistered("gemm-sm90 rotary", addRotary);
const CaseRegistration reductionsRegistered("gemm-sm90 reductions", addReductionOutputs);
const CaseRegistration softmaxRegistered("gemm-sm90 softmax", addLocalSoftmaxes);
const CaseRegistration prologueRegistered("gemm-sm90 prologue", addPrologues);

}  // namespace
}  // namespace weft::gputest
