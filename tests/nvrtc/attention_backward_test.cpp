// The backward pass of fused attention compiles for its targets without spills and warnings, at
// every tile that is offered.
#include "codegen/families/attention_backward_sm80/Sm80AttentionBackwardKnobs.h"
#include "tests/nvrtc/KernelBatch.h"
#include "tests/unit/samples/SampleAttentionBackwards.h"

using namespace weft;
using namespace weft::samples;
using nvrtctest::Batch;

namespace {

struct Case {
  std::string name;
  Kernel kernel;
};
std::vector<Case> cases(DType type) {
  constexpr Dropout dropout{.p = 0.1, .stream = 1};
  std::vector<Case> result;
  for (const int64_t width : {32, 40, 64, 80, 96, 128}) {
    const AttentionExtents extents{.b = 2, .h = 6, .j = 777, .k = 777, .p = width, .w = width};
    result.push_back({fmt::format("backward {}", width), plainBackward(extents, type)});
    result.push_back({fmt::format("causal {}", width), causalBackward(extents, type)});
    result.push_back({fmt::format("dropped {}", width), causalBackward(extents, type, dropout)});
  }
  result.push_back({"wide", plainBackward({.j = 300, .k = 1000, .p = 192, .w = 128}, type)});
  const AttentionExtents extents{.b = 2, .h = 3, .g = 4, .j = 300, .k = 1000};
  result.push_back({"window", windowBackward(extents, type, 100, 30)});
  result.push_back({"padded", paddedBackward(extents, type)});
  result.push_back({"biased", biasedBackward(extents, type)});
  result.push_back({"capped", cappedBackward(extents, type)});
  return result;
}

}  // namespace

TEST_CASE("every tile of backward attention by mma.sync compiles without spills") {
  Batch batch;
  size_t turn = 0;
  const std::vector<Case> halves = cases(DType::f16), bfloats = cases(DType::bf16);
  for (size_t i = 0; i < halves.size(); ++i) {  // the types in turn
    const Case &one = (i / 2 % 2 == 0 ? halves : bfloats)[i];
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
