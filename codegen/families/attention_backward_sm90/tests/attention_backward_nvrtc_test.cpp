// The backward pass of fused attention by WGMMA compiles at every tile that is offered, with few
// spills or none, and waits for WGMMAs where it says so alone.
#include "codegen/families/attention_backward/tests/BackwardKernels.h"
#include "codegen/families/attention_backward_sm90/Sm90AttentionBackwardKnobs.h"
#include "kernel/AttentionBackwardRegion.h"
#include "passes/configure/FamilyConfigurations.h"
#include "tests/nvrtc/KernelBatch.h"
#include "tests/nvrtc/WgmmaCode.h"
#include "tests/support/NonEmpty.h"

using namespace weft;
using namespace weft::samples;

namespace {

struct BuiltBackward {
  std::string name;
  Sm90AttentionBackwardKnobs knobs;
  runtime::BuildResult result;
};
/// The first of the tiles whose texts take other registers: of whole groups and of parts of them,
/// however many are taken together.
Sm90AttentionBackwardKnobs alikeInRegisters(Sm90AttentionBackwardKnobs knobs) {
  knobs.headGroup = 1;
  knobs.headsOfTile = std::min(knobs.headsOfTile, 1);
  return knobs;
}
using CasesOfType = std::function<std::vector<NamedKernel>(DType)>;
/// Every mask and score op of heads of more than 128 columns.
std::vector<NamedKernel> wideCases(DType type) {
  constexpr Dropout dropout{.p = 0.1, .stream = 1};
  std::vector<NamedKernel> result;
  for (const auto &[p, w] : {std::pair<int64_t, int64_t>{256, 256}, {192, 128}, {200, 24}}) {
    const AttentionExtents e{.b = 2, .h = 3, .g = 4, .j = 300, .k = 1001, .p = p, .w = w};
    const std::string of = fmt::format(" of {} and {}", p, w);
    result.push_back({"plain" + of, plainBackward(e, type)});
    result.push_back({"causal" + of, causalBackward(e, type)});
    result.push_back({"dropped" + of, plainBackward(e, type, dropout)});
    result.push_back({"causal, dropped" + of, causalBackward(e, type, dropout)});
    result.push_back({"window" + of, windowBackward(e, type, 100, 30)});
    result.push_back({"padded" + of, paddedBackward(e, type)});
    result.push_back({"blocks" + of, blockBackward(e, type, "bigbird(block=64,seed=0)")});
    result.push_back(
        {"blocks of heads" + of,
         blockBackward(e, type, "random(block=16,density=0.2,seed=1,heads=each)", true, true)});
    result.push_back({"documents" + of, documentBackward(e, type)});
    result.push_back({"biased" + of, biasedBackward(e, type)});
    result.push_back({"stored" + of, biasedBackward(e, type, true)});
    result.push_back({"stored, dropped" + of, biasedBackward(e, type, true, dropout)});
    result.push_back({"capped" + of, cappedBackward(e, type)});
    result.push_back({"capped, stored" + of, cappedBackward(e, type, true)});
  }
  return result;
}
/// Of every tile of a form and of every case, in f16 and bf16 by turns along tiles and along
/// cases (of both where the case of the type takes most registers) those that are drawn; there are
/// at least `least` in all.
std::vector<BuiltBackward> builtBackwards(BackwardGradients form, size_t least,
                                          const CasesOfType &casesOf = backwardCases) {
  Device device = findDevice("h200");
  device.mayBeNondeterministic = true;
  runtime::BuildOptions options;
  options.headers = codegen::deviceHeaders();
  std::vector<runtime::BuildRequest> requests;
  std::vector<BuiltBackward> built;
  for (const DType type : {DType::f16, DType::bf16}) {
    const std::vector<NamedKernel> all = casesOf(type);
    for (size_t i = 0; i < all.size(); ++i) {
      const NamedKernel &one = all[i];
      std::set<Sm90AttentionBackwardKnobs> seen;
      forEachConfiguration(one.kernel, findDevice("h200"), {}, [&](const Configuration &own) {
        const auto *knobs = own.knobs.getIf<Sm90AttentionBackwardKnobs>();
        if (!knobs || knobs->gradients != form || !seen.insert(alikeInRegisters(*knobs)).second)
          return true;
        const size_t tile = seen.size() - 1;
        if (((i + tile) % 2 == 0) != (type == DType::f16) && one.name != mostRegisters) return true;
        Configuration chosen = own;
        Configuration unordered = own;
        unordered.knobs.get<Sm90AttentionBackwardKnobs>().sums = GradientSums::unordered;
        if (form == BackwardGradients::together && (i + tile / 2) % 2 == 1 &&
            isLegal(one.kernel, unordered, device))
          chosen = unordered;
        codegen::EmittedKernel emitted = codegen::emit(one.kernel, chosen, "sm_90a");
        built.push_back({.name = one.name + ", " + describe(one.kernel, chosen.knobs),
                         .knobs = *knobs,
                         .result = {}});
        requests.push_back({.name = built.back().name,
                            .text = std::move(emitted.text),
                            .entry = std::move(emitted.entry),
                            .architecture = "sm_90a",
                            .extraFlags = {}});
        return true;
      });
    }
  }
  REQUIRE(requests.size() > least);
  const std::vector<size_t> indices = nvrtctest::drawn(requests);
  built = nvrtctest::chosen(built, indices);
  std::vector<runtime::BuildResult> results =
      runtime::build(nvrtctest::chosen(requests, indices), options);
  REQUIRE(results.size() == built.size());
  for (size_t i = 0; i < results.size(); ++i) built[i].result = std::move(results[i]);
  return built;
}

}  // namespace

TEST_CASE("every tile of backward attention by WGMMA compiles, and waits where it says so alone") {
  // 128 queries of 64 columns take all registers: scalars of dropout and of tables of tiles leave
  // them, stored and loaded once a block.
  constexpr int mostSpilledBytes = 96;
  const std::vector<BuiltBackward> built = builtBackwards(BackwardGradients::together, 40);
  for (const BuiltBackward &one : test::nonEmpty(built)) {
    INFO(one.name << "\n" << one.result.error << "\n" << one.result.log);
    REQUIRE(one.result.failure().empty());
    CHECK(one.result.spillBytes <= (one.knobs.tileQueries == 128 ? mostSpilledBytes : 0));
    const nvrtctest::WgmmaCode code = nvrtctest::wgmmaCode(one.result.cubin);
    CHECK(code.products >= 16);
    // Products of a tile's first block, of the next one, and of a part behind the first; sums of
    // keys and values of both parts; sums of queries, whose last panel may be narrower and is
    // followed by the next block's products as the other one is, and stands behind the loop again.
    CHECK(code.starts <= 11);
    CHECK(code.waits <= 8);
  }
}

TEST_CASE("every tile of gradients apart compiles, and waits where it says so alone") {
  std::vector<BuiltBackward> built = builtBackwards(BackwardGradients::apart, 20);
  std::ranges::move(builtBackwards(BackwardGradients::apart, 20, wideCases),
                    std::back_inserter(built));
  for (const BuiltBackward &one : test::nonEmpty(built)) {
    INFO(one.name << "\n" << one.result.error << "\n" << one.result.log);
    REQUIRE(one.result.failure().empty());
    CHECK(one.result.spillBytes == 0);
    const nvrtctest::WgmmaCode code = nvrtctest::wgmmaCode(one.result.cubin);
    CHECK(code.products >= 14);
    // Of either kind of tile: products of the first block and of the next one, perhaps one of them
    // later; sums. Waits for products, for sums, and behind the last block.
    CHECK(code.starts <= 8);
    CHECK(code.waits <= 6);
  }
}

TEST_CASE("every tile of one gradient compiles, and waits where it says so alone") {
  const std::vector<BuiltBackward> built = builtBackwards(BackwardGradients::single, 30, wideCases);
  for (const BuiltBackward &one : test::nonEmpty(built)) {
    INFO(one.name << "\n" << one.result.error << "\n" << one.result.log);
    REQUIRE(one.result.failure().empty());
    CHECK(one.result.spillBytes == 0);
    const nvrtctest::WgmmaCode code = nvrtctest::wgmmaCode(one.result.cubin);
    // Sums of each kind of tile, a step for 16 queries; products of scores and of what is kept.
    CHECK(code.products >= 60 + 3 * one.knobs.tileQueries / 16);
    // Of each kind of tile: products of the first block, of the next one, and one later, which
    // tiles of values lack; sums. Waits for products, for sums, and behind the last block.
    CHECK(code.starts <= 11);
    CHECK(code.waits <= 9);
  }
}
