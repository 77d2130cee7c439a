// Cases of loop kernels for the GPU.
//   examples  every kind of loop kernel at tiny odd extents, each kind of configuration; views: as
//             views of larger tensors
//   scatter   gradients of gathers
//   extents   the same with rows of 1, 3, 5, 7, 17, 33, 65, 127 and 1000 elements
//   large     the same at the extents of a layer, on sampled elements
//   tokens    sums over packed tokens and of their rows, few and many, under every mapping
//   maps      every pair of layouts of an element-wise kernel
//   casts     to and from 8-bit floats, of all orders of magnitude
#include "codegen/families/loop/LoopKnobs.h"
#include "tests/golden/ExampleKernels.h"
#include "tests/gpu/Collector.h"
#include "tests/unit/samples/SampleFloat8.h"

#include <utility>
#include <vector>

namespace weft::gputest {
namespace {

void addExamples(Collector &collect) {
  for (DType dtype : floatTypes)
    for (const examples::Example &example : examples::loopExamples(dtype, 0)) {
      collect.addDrawn("examples", example.kernel, dtype, 20);
      const int64_t paddings[] = {3, 4, 8};
      const std::vector<Configuration> some = collect.draw(example.kernel, 3);
      for (size_t n = 0; n < some.size(); ++n)
        if (some[n].knobs.is<LoopKnobs>())
          collect.add("views", example.kernel, dtype,
                      emulate::asViews(example.kernel, some[n], paddings[n % 3]));
    }
}

/// Tables of fewer and of more rows than positions.
void addScatters(Collector &collect) {
  for (DType dtype : floatTypes)
    for (const int64_t tableRows : {1, 7, 33, 500, 30522})
      for (const int64_t columns : {13, 40, 1024})
        collect.addDrawn(
            "scatter",
            examples::scatterAdd(dtype, {.b = 3, .j = 211, .i = columns}, tableRows).kernel, dtype,
            3);
}

void addExtents(Collector &collect) {
  for (DType dtype : floatTypes)
    for (int64_t extent : {1, 3, 5, 7, 17, 33, 65, 127, 1000}) {
      const examples::Extents rows{
          .b = 2, .j = 5, .k = extent, .h = 3, .p = 8, .i = extent, .u = extent};
      for (const examples::Example &example : examples::loopExamples(dtype, rows, 8))
        collect.addDrawn("extents", example.kernel, dtype, 4);
      if (extent == 1000) continue;
      const examples::Extents columns{
          .b = 3, .j = extent, .k = 24, .h = 2, .p = 2 * extent, .i = 40, .u = 16};
      for (const examples::Example &example : examples::loopExamples(dtype, columns, 16))
        collect.addDrawn("extents", example.kernel, dtype, 2);
    }
}

void addLarge(Collector &collect) {
  const examples::Extents layer{.b = 2, .j = 512, .k = 512, .h = 8, .p = 64, .i = 1024, .u = 4096};
  for (DType dtype : floatTypes)
    for (const examples::Example &example : examples::loopExamples(dtype, layer, 64))
      collect.addDrawn("large", example.kernel, dtype, 2);
}

void addTokens(Collector &collect) {
  for (DType dtype : floatTypes)
    for (const int64_t longest : {1, 37, 1100}) {
      const examples::Extents extents{
          .b = 3, .j = longest, .k = 1, .h = 3, .p = 16, .i = 40, .u = 24};
      for (const examples::Example &example : examples::loopExamples(dtype, extents, 8))
        if (example.name.starts_with("token_"))
          collect.addDrawn("tokens", example.kernel, dtype, 16);
    }
}

void addMaps(Collector &collect) {
  const std::map<char, int64_t> small{{'a', 3}, {'b', 17}, {'c', 6}, {'d', 33}},
      aligned{{'a', 4}, {'b', 64}, {'c', 8}, {'d', 128}};
  for (DType dtype : floatTypes)
    for (const char *letters : {"ab", "abc", "abcd"}) {
      const bool all = std::string(letters).size() < 4 || dtype == DType::f16;
      for (const auto *extents : {&small, &aligned}) {
        const Kernel map = typed(samples::reluKernel(*extents, letters), dtype);
        if (all && extents == &small) collect.addLayoutPairs("maps", map, dtype);
        else collect.addDrawn("maps", map, dtype, 24);
      }
    }
}

void addCasts(Collector &collect) {
  for (const DType narrow : {DType::f8e4m3, DType::f8e5m2})
    for (const DType wide : {DType::f32, DType::f16, DType::bf16,
                             narrow == DType::f8e4m3 ? DType::f8e5m2 : DType::f8e4m3})
      for (const auto &extents : {std::map<char, int64_t>{{'a', 3}, {'b', 17}, {'c', 33}},
                                  {{'a', 4}, {'b', 64}, {'c', 128}}})
        for (const auto &[from, to] : {std::pair(wide, narrow), {narrow, wide}}) {
          const Kernel kernel = samples::castKernel(extents, "abc", from, to);
          const std::string types = fmt::format("{}->{}", nameOf(from), nameOf(to));
          for (const Configuration &one : collect.draw(kernel, 8))
            collect.add("casts", kernel, types, one, Inputs::spread);
        }
  for (const DType narrow : {DType::f8e4m3, DType::f8e5m2})
    for (const auto &extents : {std::map<char, int64_t>{{'a', 3}, {'b', 17}, {'c', 33}},
                                {{'a', 4}, {'b', 64}, {'c', 128}}}) {
      const Kernel map = typed(samples::reluKernel(extents, "abc"), narrow);
      for (const Configuration &one : collect.draw(map, 8))
        collect.add("casts", map, narrow, one, Inputs::spread);
    }
}

const CaseRegistration examplesRegistered("loop examples", addExamples);
const CaseRegistration scattersRegistered("loop scatters", addScatters);
const CaseRegistration extentsRegistered("loop extents", addExtents);
const CaseRegistration largeRegistered("loop large", addLarge);
const CaseRegistration tokensRegistered("loop tokens", addTokens);
const CaseRegistration mapsRegistered("loop maps", addMaps);
const CaseRegistration castsRegistered("loop casts", addCasts);

}  // namespace
}  // namespace weft::gputest
