// Cases of transposes for the GPU.
//   transposes  every pair of layouts of tensors of two to four axes
//   casts       the same of 8-bit floats, of all orders of magnitude
//   row-copies  rows whose pitch allows no access wider than an element, padded on one side
#include "codegen/families/transpose/TransposeKnobs.h"
#include "tests/gpu/Collector.h"
#include "tests/unit/samples/SampleKernels.h"

#include <map>
#include <string>

namespace weft::gputest {
namespace {

void addTransposes(Collector &collect) {
  const std::map<char, int64_t> small{{'a', 3}, {'b', 17}, {'c', 6}, {'d', 33}},
      aligned{{'a', 4}, {'b', 64}, {'c', 8}, {'d', 128}};
  for (DType dtype : floatTypes)
    for (const char *letters : {"ab", "abc", "abcd"}) {
      const bool all = std::string(letters).size() < 4 || dtype == DType::f16;
      for (const auto *extents : {&small, &aligned}) {
        const Kernel transpose = typed(samples::identityKernel(*extents, letters), dtype);
        if (all && extents == &small) collect.addLayoutPairs("transposes", transpose, dtype);
        else collect.addDrawn("transposes", transpose, dtype, 40);
      }
    }
}

void addNarrowTransposes(Collector &collect) {
  for (const DType narrow : {DType::f8e4m3, DType::f8e5m2})
    for (const auto &extents : {std::map<char, int64_t>{{'a', 3}, {'b', 17}, {'c', 33}},
                                {{'a', 4}, {'b', 64}, {'c', 128}}}) {
      const Kernel transpose = typed(samples::identityKernel(extents, "abc"), narrow);
      for (const Configuration &one : collect.draw(transpose, 16))
        collect.add("casts", transpose, narrow, one, Inputs::spread);
    }
}

void addRowCopies(Collector &collect) {
  const Layout dense = rowMajor(3), padded{.order = {0, 1, 2}, .pitchUnit = 64};
  for (const DType dtype : floatTypes)
    for (const int64_t length : {33, 3333, 50257}) {
      const Kernel copy =
          typed(samples::identityKernel({{'a', 3}, {'b', 17}, {'c', length}}, "abc"), dtype);
      for (const int tile : {32, 64})
        for (const bool isPacked : {false, true})
          collect.add("row-copies", copy, dtype,
                      {.inputs = {isPacked ? dense : padded},
                       .outputs = {isPacked ? padded : dense},
                       .knobs = TransposeKnobs{.tile = tile, .vectorWidth = 1, .threads = 256}});
    }
}

const CaseRegistration registered("transpose", addTransposes);
const CaseRegistration rowsRegistered("transpose of odd rows", addRowCopies);
const CaseRegistration narrowRegistered("transpose of 8-bit floats", addNarrowTransposes);

}  // namespace
}  // namespace weft::gputest
