// Cases of contractions by mma.sync for the GPU.
//   sm80            every tile in every orientation; sm80-views: with padded rows
//   warps-fused     with what follows them, also of f32 read as tf32; warps-fused-views: padded;
//                   fused-gathered: operands that are read where an op computes it
//   local-softmax   that end with one; with masks of -inf
//   prologue-warps  with operands that are transformed on load; prologue-warps-views: padded
//   tf32-warps      of f32 read as tf32, in every orientation; tf32-warps-views: padded;
//                   tf32-tiles: every tile
#include "codegen/families/contraction/GemmProblem.h"
#include "codegen/families/contraction/tests/ContractionCases.h"
#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"
#include "kernel/ContractionPrologue.h"
#include "tests/gpu/Collector.h"
#include "tests/unit/samples/SampleTf32.h"

#include <map>
#include <string_view>
#include <vector>

namespace weft::gputest {
namespace {

const DrawnFamily sm80 = DrawnFamily::fromSm80(Sm80GemmKnobs{});

void addTensor(Collector &collect) {
  addTensorContractions(collect, "sm80", sm80,
                        [](const Kernel &kernel, const Configuration &views) {
                          return bool(mmaSyncProblem(kernel, views));
                        });
}

/// What follows a contraction: every tile, drawn orientations, aligned and odd rows, views; f32
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
    const std::vector<Configuration> drawn = collect.drawFamily(kernel, sm80, count);
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

/// Operands that are read where an op computes it.
void addGathered(Collector &collect) {
  for (DType dtype : {DType::f16, DType::bf16})
    for (const samples::ContractionExtents &extents : gatheredExtents)
      for (const Kernel &kernel : samples::gatheredContractions(extents, dtype))
        for (const Configuration &one : collect.drawFamily(kernel, sm80, 4))
          collect.add("fused-gathered", kernel, dtype, one);
}

/// Local softmax of what follows a contraction: sub-vectors of every length, whole and short;
/// masks of -inf.
void addLocalSoftmaxes(Collector &collect) {
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const samples::ScoreExtents &extents : softmaxExtents)
      for (const Kernel &kernel : samples::localSoftmaxes(extents, dtype))
        for (const Configuration &one :
             collect.drawFamily(kernel, sm80, dtype == DType::f16 ? 4 : 2))
          collect.add("local-softmax", kernel, dtype, one, softmaxInputs(kernel));
}

/// Operands that are transformed on load: every role of what is read, both operands in every
/// orientation, casts from other widths, rows that start anywhere, an epilogue behind.
void addPrologues(Collector &collect) {
  const auto isRead = [](const Kernel &kernel, const Configuration &configuration) {
    return prologueLayoutRejection(kernel, configuration,
                                   contractionPrologue(kernel).value().value())
        .empty();
  };
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const samples::PrologueExtents &extents : prologueExtents)
      for (const Kernel &kernel : samples::transformedContractions(extents, dtype)) {
        const std::vector<Configuration> drawn =
            collect.drawFamily(kernel, sm80, dtype == DType::f16 ? 8 : 4);
        for (size_t n = 0; n < drawn.size(); ++n) {
          collect.add("prologue-warps", kernel, dtype, drawn[n]);
          const Configuration views = emulate::asViews(kernel, drawn[n], n % 2 == 0 ? 8 : 3);
          if (mmaSyncProblem(kernel, views) && isRead(kernel, views))
            collect.add("prologue-warps-views", kernel, dtype, views);
        }
      }
}

/// Products of f32 read as tf32, in every orientation: aligned, odd and tiny extents, batch
/// elements, views whose rows start anywhere or have gaps; half of them exactly on whole numbers.
void addTf32(Collector &collect) {
  using samples::Tf32Extents;
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
      const std::vector<Configuration> drawn = collect.drawFamily(kernel, sm80, 6);
      for (size_t n = 0; n < drawn.size(); ++n) {
        collect.add("tf32-warps", kernel, nameOf(samples::tf32Types), drawn[n],
                    n % 2 == 0 ? Inputs::usual : Inputs::whole);
        const Configuration views = emulate::asViews(kernel, drawn[n], n % 2 == 0 ? 4 : 3);
        if (mmaSyncProblem(kernel, views))
          collect.add("tf32-warps-views", kernel, nameOf(samples::tf32Types), views);
      }
      kernel.body[0].attributes["scale"] = 0.125;
      for (const Configuration &one : collect.drawFamily(kernel, sm80, 2))
        collect.add("tf32-warps", kernel, nameOf(samples::tf32Types), one);
    }
}

void addEveryTf32Tile(Collector &collect) {
  addTf32Tiles(collect, sm80, [](const Kernel &, const Configuration &) { return true; });
}

const CaseRegistration registered("gemm-sm80", addTensor);
const CaseRegistration fusedRegistered("gemm-sm80 fused", addWarpsFused);
const CaseRegistration gatheredRegistered("gemm-sm80 gathered", addGathered);
const CaseRegistration softmaxRegistered("gemm-sm80 softmax", addLocalSoftmaxes);
const CaseRegistration prologueRegistered("gemm-sm80 prologue", addPrologues);
const CaseRegistration tf32Registered("gemm-sm80 tf32", addTf32);
const CaseRegistration tf32TilesRegistered("gemm-sm80 tf32 tiles", addEveryTf32Tile);

}  // namespace
}  // namespace weft::gputest
