// Cases of contractions without tensor cores for the GPU.
//   contractions  at odd extents in many layouts, of every family that is offered
//   tiles         every tile, of many tiles and of few, aligned and not, in many layouts
//   float8        products of 8-bit floats
#include "codegen/families/contraction/tests/ContractionCases.h"
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"
#include "tests/gpu/Collector.h"
#include "tests/unit/samples/SampleFloat8.h"
#include "tests/unit/samples/SampleKernels.h"

#include <array>
#include <map>

namespace weft::gputest {
namespace {

void addPlain(Collector &collect) {
  const std::map<char, int64_t> odd{{'b', 2},  {'h', 3},   {'i', 33}, {'j', 17},
                                    {'k', 65}, {'n', 127}, {'p', 5},  {'w', 9}};
  const auto extentsFor = [&](const GemmCase &gemm) {
    std::map<char, int64_t> used;
    for (const char *term : {gemm.a, gemm.b, gemm.c})
      for (const char *letter = term; *letter; ++letter) used[*letter] = odd.at(*letter);
    return used;
  };
  for (DType dtype : floatTypes) {
    for (const GemmCase &gemm : gemmCases) {
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

/// Products of 8-bit floats: aligned, odd and tiny extents, batch elements, results of every type.
void addFloat8(Collector &collect) {
  for (const GemmTypes &types : samples::float8Types)
    for (const samples::Float8Extents &extents : float8Extents) {
      const Kernel kernel = samples::float8Gemm(extents, types);
      for (const Configuration &one : collect.drawFamily(kernel, FmaGemmKnobs{}, 2))
        collect.add("float8", kernel, nameOf(types), one);
    }
}

/// Every tile in layouts that are drawn: extents of whole tiles, of aligned groups of four elements
/// that tiles do not divide, and odd ones; few tiles with long sums, and many.
void addTiles(Collector &collect) {
  for (const auto &[b, m, n, k] : {std::array<int64_t, 4>{2, 1024, 64, 1024},
                                   {1, 516, 132, 1100},
                                   {3, 131, 77, 999},
                                   {2, 1024, 1024, 64},
                                   {1, 2500, 2052, 180},
                                   {1, 1999, 2111, 67}})
    for (const DType dtype : floatTypes) {
      const Kernel kernel = typed(
          samples::contractKernel({{'b', b}, {'m', m}, {'n', n}, {'k', k}}, "bmk", "bnk", "bmn"),
          dtype);
      // 20 tiles are the most that the family offers; of f32 each twice.
      const size_t count = dtype == DType::f32 ? 40 : 20;
      for (const Configuration &one : collect.drawFamily(kernel, FmaGemmKnobs{}, count))
        collect.add("tiles", kernel, dtype, one);
    }
}

void addGemms(Collector &collect) {
  addPlain(collect);
  addTiles(collect);
}

const CaseRegistration registered("gemm-fma", addGemms);
const CaseRegistration float8Registered("gemm-fma float8", addFloat8);

}  // namespace
}  // namespace weft::gputest
