// The backward pass of fused attention compiles for its targets without spills and warnings, at
// every tile that is offered.
#include "codegen/families/attention_backward_sm80/Sm80AttentionBackwardKnobs.h"
#include "codegen/families/attention_backward_sm90/Sm90AttentionBackwardKnobs.h"
#include "kernel/AttentionBackwardRegion.h"
#include "tests/nvrtc/KernelBatch.h"
#include "tests/nvrtc/WgmmaCode.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleAttentionBackwards.h"
#include "tests/unit/samples/SampleTf32.h"

using namespace weft;
using namespace weft::samples;
using nvrtctest::Batch;

namespace {

constexpr const char *mostRegisters = "stored scores";

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
  for (const int64_t width : {192, 256}) {
    const AttentionExtents widest{
        .b = 2, .h = 2, .g = 2, .j = 300, .k = 300, .p = width, .w = width};
    result.push_back({fmt::format("widest {}", width), plainBackward(widest, type)});
    result.push_back(
        {fmt::format("widest, causal, dropped {}", width), causalBackward(widest, type, dropout)});
  }
  // Parts of a group: few keys, so that tiles of all its heads are too few.
  for (const int64_t width : {32, 40, 80}) {
    const AttentionExtents groups{
        .b = 1, .h = 2, .g = 8, .j = 512, .k = 512, .p = width, .w = width};
    result.push_back(
        {fmt::format("parts, dropped {}", width), plainBackward(groups, type, dropout)});
    result.push_back({fmt::format("parts, causal {}", width), causalBackward(groups, type)});
    result.push_back(
        {fmt::format("parts, causal, dropped {}", width), causalBackward(groups, type, dropout)});
  }
  const AttentionExtents extents{.b = 2, .h = 3, .g = 4, .j = 300, .k = 1000};
  result.push_back({"window", windowBackward(extents, type, 100, 30)});
  result.push_back({"padded", paddedBackward(extents, type)});
  result.push_back({"blocks", blockBackward(extents, type, "bigbird(block=64,seed=0)")});
  result.push_back(
      {"blocks of heads",
       blockBackward(extents, type, "random(block=16,density=0.2,seed=1,heads=each)", true, true)});
  result.push_back({"documents", documentBackward(extents, type)});
  result.push_back({"biased", biasedBackward(extents, type)});
  // Most registers: of 96 columns with dropout, of 128 without.
  const bool drops = type == DType::f16;
  const int64_t width = drops ? 96 : 128;
  result.push_back(
      {mostRegisters,
       biasedBackward({.b = 2, .h = 3, .g = 4, .j = 300, .k = 1001, .p = width, .w = width}, type,
                      true, drops ? std::optional(dropout) : std::nullopt)});
  result.push_back({"capped", cappedBackward(extents, type)});
  for (const int64_t own : {64, 80, 128}) {
    const AttentionExtents tokens{
        .b = 4, .h = 3, .g = 2, .j = 777, .k = 777, .p = own, .w = own, .tokens = 3108};
    result.push_back({fmt::format("packed {}", own),
                      packedBackward(tokens, type, true, own == 80,
                                     own == 128 ? std::nullopt : std::optional(dropout))});
  }
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

TEST_CASE("backward attention of f32 read as tf32 compiles without spills") {
  Batch batch;
  size_t turn = 0;
  const std::vector<Case> all = cases(DType::f32);
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
/// Of every tile of a form and of every case, in f16 and bf16 by turns along tiles and along cases
/// (of both where the case of the type takes most registers) those that are drawn; there are at
/// least `least` in all.
std::vector<BuiltBackward> builtBackwards(BackwardGradients form, size_t least) {
  runtime::BuildOptions options;
  options.headers = codegen::deviceHeaders();
  std::vector<runtime::BuildRequest> requests;
  std::vector<BuiltBackward> built;
  for (const DType type : {DType::f16, DType::bf16}) {
    const std::vector<Case> all = cases(type);
    for (size_t i = 0; i < all.size(); ++i) {
      const Case &one = all[i];
      std::set<Sm90AttentionBackwardKnobs> seen;
      forEachConfiguration(one.kernel, findDevice("h200"), {}, [&](const Configuration &own) {
        const auto *knobs = own.knobs.getIf<Sm90AttentionBackwardKnobs>();
        if (!knobs || knobs->gradients != form || !seen.insert(alikeInRegisters(*knobs)).second)
          return true;
        const size_t tile = seen.size() - 1;
        if (((i + tile) % 2 == 0) != (type == DType::f16) && one.name != mostRegisters) return true;
        Configuration chosen = own;
        if (form == BackwardGradients::together && (i + tile / 2) % 2 == 1)
          chosen.knobs.get<Sm90AttentionBackwardKnobs>().sums = GradientSums::unordered;
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
  const std::vector<BuiltBackward> built = builtBackwards(BackwardGradients::apart, 20);
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
