// The backward pass of fused attention by mma.sync compiles for its targets without spills and
// warnings, at every tile that is offered.
#include "codegen/families/attention_backward/tests/BackwardKernels.h"
#include "codegen/families/attention_backward_sm80/Sm80AttentionBackwardKnobs.h"
#include "tests/nvrtc/KernelBatch.h"
#include "tests/unit/samples/SampleTf32.h"

using namespace weft;
using namespace weft::samples;
using nvrtctest::Batch;

TEST_CASE("every tile of backward attention by mma.sync compiles without spills") {
  Batch batch;
  size_t turn = 0;
  const std::vector<NamedKernel> halves = backwardCases(DType::f16),
                                 bfloats = backwardCases(DType::bf16);
  for (size_t i = 0; i < halves.size(); ++i) {  // the types in turn
    const NamedKernel &one = (i / 2 % 2 == 0 ? halves : bfloats)[i];
    std::set<Knobs> seen;
    forEachConfiguration(one.kernel, findDevice("a100"), {}, [&](const Configuration &own) {
      if (own.knobs.is<Sm80AttentionBackwardKnobs>() && seen.insert(own.knobs).second)
        batch.add(one.name, one.kernel, own,
                  nvrtctest::architectures[turn++ % nvrtctest::architectures.size()]);
      return true;
    });
  }
  batch.buildAndCheck(100, 1);
}

TEST_CASE("backward attention of f32 read as tf32 compiles without spills") {
  Batch batch;
  size_t turn = 0;
  const std::vector<NamedKernel> all = backwardCases(DType::f32);
  for (size_t i = 0; i < all.size(); ++i) {
    // Widths, masks and score ops, some of each; the one that takes most registers.
    if (i % 6 != 0 && all[i].name != "wide") continue;
    std::set<Knobs> seen;
    const Kernel kernel = samples::inTf32(all[i].kernel);
    forEachConfiguration(kernel, findDevice("a100"), {}, [&](const Configuration &own) {
      if (own.knobs.is<Sm80AttentionBackwardKnobs>() && seen.insert(own.knobs).second)
        batch.add(all[i].name, kernel, own,
                  nvrtctest::architectures[turn++ % nvrtctest::architectures.size()]);
      return true;
    });
  }
  batch.buildAndCheck(20, 1);
}
