#include "codegen/families/contraction/tests/ContractionCases.h"

#include "kernel/StridedBatchedGemm.h"
#include "tests/unit/samples/SampleKernels.h"
#include "tests/unit/samples/SampleTf32.h"

#include <array>
#include <map>
#include <set>
#include <vector>

namespace weft::gputest {
namespace {

/// The knobs of the family that products of many shapes are offered on its device.
std::set<Knobs> tf32Knobs(const DrawnFamily &drawn) {
  std::set<Knobs> found;
  for (const auto &[m, n] : {std::pair<int64_t, int64_t>{4096, 4096},
                             {1024, 3072},
                             {2640, 768},
                             {512, 3072},
                             {4096, 64},
                             {304, 1000},
                             {8, 4096},
                             {24, 24}})
    forEachConfiguration(samples::tf32Gemm({.m = m, .n = n, .k = 2048}), findDevice(drawn.device),
                         {}, [&](const Configuration &one) {
                           if (one.knobs.family() == drawn.family.family()) found.insert(one.knobs);
                           return true;
                         });
  return found;
}

}  // namespace

void addTensorContractions(Collector &collect, const std::string &group, const DrawnFamily &family,
                           ViewTest takesView) {
  const std::map<char, int64_t> aligned{{'b', 2},   {'h', 3},   {'i', 264}, {'j', 72},
                                        {'k', 136}, {'n', 520}, {'p', 64},  {'w', 8}},
      many{{'b', 3},   {'h', 4},    {'i', 1000}, {'j', 333},
           {'k', 200}, {'n', 1111}, {'p', 16},   {'w', 40}};
  for (DType dtype : {DType::f16, DType::bf16})
    for (const auto *extents : {&aligned, &many})
      for (const GemmCase &gemm : gemmCases) {
        std::map<char, int64_t> used;
        for (const char *term : {gemm.a, gemm.b, gemm.c})
          for (const char *letter = term; *letter; ++letter) used[*letter] = extents->at(*letter);
        Kernel kernel = typed(samples::contractKernel(used, gemm.a, gemm.b, gemm.c), dtype);
        const std::vector<Configuration> drawn =
            collect.drawFamily(kernel, family, dtype == DType::f16 ? 10 : 5);
        for (size_t n = 0; n < drawn.size(); ++n) {
          collect.add(group, kernel, dtype, drawn[n]);
          const Configuration views = emulate::asViews(kernel, drawn[n], n % 2 == 0 ? 8 : 3);
          if (stridedBatchedGemm(kernel, views) && takesView(kernel, views))
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

void addTf32Tiles(Collector &collect, const DrawnFamily &drawn, ViewTest takesView) {
  const std::set<Knobs> knobs = tf32Knobs(drawn);
  for (const int64_t k : {332, 203})
    for (const Knobs &one : knobs)
      for (const int orientation : {0, 1, 2, 3}) {
        const Kernel kernel = samples::tf32Gemm({.b = 2, .m = 333, .n = 517, .k = k});
        Configuration configuration{
            .inputs = {rowMajor(3), rowMajor(3)}, .outputs = {rowMajor(3)}, .knobs = one};
        for (const size_t input : {0, 1})
          if (orientation >> input & 1) configuration.inputs[input].order = {0, 2, 1};
        if (takesView(kernel, configuration))
          collect.add("tf32-tiles", kernel, nameOf(samples::tf32Types), configuration);
      }
}

}  // namespace weft::gputest
