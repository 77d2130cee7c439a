// The backward pass of fused attention compiles for its targets without spills and warnings, at
// every tile that is offered.
#include "codegen/families/attention_backward_sm80/Sm80AttentionBackwardKnobs.h"
#include "codegen/families/attention_backward_sm90/Sm90AttentionBackwardKnobs.h"
#include "kernel/AttentionBackwardRegion.h"
#include "tests/nvrtc/KernelBatch.h"
#include "tests/nvrtc/WgmmaCode.h"
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
  result.push_back({"blocks", blockBackward(extents, type, "bigbird(block=64,seed=0)")});
  result.push_back(
      {"blocks of heads",
       blockBackward(extents, type, "random(block=16,density=0.2,seed=1,heads=each)", true, true)});
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

TEST_CASE("every tile of backward attention by WGMMA compiles, and waits where it says so alone") {
  // 128 queries of 64 columns take all registers: scalars of dropout and of tables of tiles leave
  // them, stored and loaded once a block.
  constexpr int mostSpilledBytes = 96;
  runtime::BuildOptions options;
  options.headers = codegen::deviceHeaders();
  std::vector<runtime::BuildRequest> requests;
  std::vector<bool> isFull;
  for (const DType type : {DType::f16, DType::bf16})
    for (const Case &one : cases(type)) {
      std::set<Knobs> seen;
      forEachConfiguration(one.kernel, findDevice("h200"), {}, [&](const Configuration &own) {
        if (!own.knobs.is<Sm90AttentionBackwardKnobs>() || !seen.insert(own.knobs).second)
          return true;
        codegen::EmittedKernel emitted = codegen::emit(one.kernel, own, "sm_90a");
        requests.push_back({.name = one.name + ", " + describe(one.kernel, own.knobs),
                            .text = std::move(emitted.text),
                            .entry = std::move(emitted.entry),
                            .architecture = "sm_90a",
                            .extraFlags = {}});
        isFull.push_back(own.knobs.get<Sm90AttentionBackwardKnobs>().tileQueries == 128);
        return true;
      });
    }
  REQUIRE(requests.size() > 40);
  const std::vector<runtime::BuildResult> results = runtime::build(requests, options);
  for (size_t i = 0; i < results.size(); ++i) {
    INFO(requests[i].name << "\n" << results[i].error << "\n" << results[i].log);
    REQUIRE(results[i].error.empty());
    CHECK(results[i].spillBytes <= (isFull[i] ? mostSpilledBytes : 0));
    const nvrtctest::WgmmaCode code = nvrtctest::wgmmaCode(results[i].cubin);
    CHECK(code.products >= 16);
    // Products of a tile's first block, of the next one, and of a part behind the first; sums of
    // keys and values of both parts; sums of queries, whose last panel may be narrower and is
    // followed by the next block's products as the other one is, and stands behind the loop again.
    CHECK(code.starts <= 11);
    CHECK(code.waits <= 8);
  }
}
