// Fused attention by mma.sync compiles for its targets without spills and warnings.
#include "codegen/families/attention/tests/AttentionKernels.h"
#include "codegen/families/attention_sm80/Sm80AttentionKnobs.h"
#include "tests/nvrtc/KernelBatch.h"
#include "tests/unit/samples/SampleTf32.h"

using namespace weft;
using namespace weft::samples;
using nvrtctest::Batch;

TEST_CASE("tiles of attention-sm80 whose queries are turned compile without spills") {
  Batch batch;
  size_t turn = 0;
  for (const NamedKernel &one : rotatedCases())
    for (const char *device : {"a100", "h200"}) {
      std::set<Knobs> seen;
      forEachConfiguration(one.kernel, findDevice(device), {}, [&](const Configuration &own) {
        if (own.knobs.is<Sm80AttentionKnobs>() && seen.insert(own.knobs).second)
          batch.add(one.name, one.kernel, own, turn++ % 2 == 0 ? "sm_80" : "sm_90a");
        return true;
      });
    }
  batch.buildAndCheck(40, 2);
}

TEST_CASE("every tile of fused attention by mma.sync compiles without spills") {
  Batch batch;
  size_t turn = 0;
  const std::vector<NamedKernel> halves = attentionCases(DType::f16),
                                 bfloats = attentionCases(DType::bf16);
  for (size_t i = 0; i < halves.size(); ++i) {  // the types in turn
    const NamedKernel &one = (i / 2 % 2 == 0 ? halves : bfloats)[i];
    std::set<Knobs> seen;
    forEachConfiguration(one.kernel, findDevice("a100"), {}, [&](const Configuration &own) {
      if (own.knobs.is<Sm80AttentionKnobs>() && seen.insert(own.knobs).second)
        batch.add(one.name, one.kernel, own,
                  nvrtctest::architectures[turn++ % nvrtctest::architectures.size()]);
      return true;
    });
  }
  batch.buildAndCheck(80);
}

TEST_CASE("every tile of fused attention of f32 read as tf32 compiles without spills") {
  Batch batch;
  size_t turn = 0;
  std::vector<NamedKernel> all = attentionCases(DType::f32);
  const AttentionExtents few{.h = 5, .g = 4, .j = 7, .k = 7777},
      wide{.h = 5, .g = 4, .j = 7, .k = 7777, .p = 128, .w = 128};
  all.push_back({"few, causal", causalAttention(few, DType::f32)});
  all.push_back({"few, wide", plainAttention(wide, DType::f32, true)});
  all.push_back({"few, biased", biasedAttention(few, DType::f32)});
  all.push_back({"few, dropped", droppedAttention(few, DType::f32, {.p = 0.1, .stream = 1}, true)});
  all.push_back({"many, dropped", droppedAttention({.j = 777, .k = 777}, DType::f32, {.p = 0.1})});
  for (size_t i = 0; i < all.size(); ++i) {
    const NamedKernel &one = all[i];
    if (i % 7 != 0 && i + 5 < all.size()) continue;  // widths, masks and score ops, some of each
    std::set<Knobs> seen;
    const Kernel kernel = inTf32(one.kernel);
    forEachConfiguration(kernel, findDevice("a100"), {}, [&](const Configuration &own) {
      if (own.knobs.is<Sm80AttentionKnobs>() && seen.insert(own.knobs).second)
        batch.add(one.name, kernel, own,
                  nvrtctest::architectures[turn++ % nvrtctest::architectures.size()]);
      return true;
    });
  }
  batch.buildAndCheck(20);
}

TEST_CASE("attention-sm80 over packed tokens compiles without spills") {
  Batch batch;
  size_t turn = 0;
  for (const int64_t width : {40, 64, 128, 256})
    for (const DType type : {DType::f16, DType::bf16, DType::f32}) {
      const AttentionExtents extents{
          .b = 4, .h = 3, .g = 2, .j = 500, .k = 500, .p = width, .w = width, .tokens = 1500};
      std::set<Knobs> seen;
      const bool isTf32 = type == DType::f32;
      const std::optional<Dropout> dropout =
          width == 64 ? std::optional(Dropout{.p = 0.1, .stream = 1}) : std::nullopt;
      const Kernel halves = packedAttention(extents, type, true, width % 128 == 0, dropout),
                   kernel = isTf32 ? inTf32(halves) : halves;
      forEachConfiguration(kernel, findDevice("a100"), {}, [&](const Configuration &own) {
        if (own.knobs.is<Sm80AttentionKnobs>() && seen.insert(own.knobs).second)
          batch.add(fmt::format("packed {}", width), kernel, own,
                    nvrtctest::architectures[turn++ % nvrtctest::architectures.size()]);
        return true;
      });
    }
  batch.buildAndCheck(40, 2);
}

TEST_CASE("tiles of few queries and many keys compile without spills") {
  Batch batch;
  size_t turn = 0;
  for (const NamedKernel &one : decodingCases()) {
    std::set<Knobs> seen;
    forEachConfiguration(one.kernel, findDevice("h200"), {}, [&](const Configuration &own) {
      if (own.knobs.is<Sm80AttentionKnobs>() && seen.insert(own.knobs).second)
        batch.add(one.name, one.kernel, own, turn++ % 4 == 0 ? "sm_80" : "sm_90a");
      return true;
    });
  }
  batch.buildAndCheck(100, 2);
}
