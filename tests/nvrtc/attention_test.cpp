// Fused attention compiles for its targets without spills and warnings, and the tensor cores are
// kept busy: in machine code no wait stands behind every WGMMA, and instructions are as wide as the
// tile.
#include "codegen/families/attention_sm80/Sm80AttentionKnobs.h"
#include "codegen/families/attention_sm90/Sm90AttentionKnobs.h"
#include "tests/nvrtc/KernelBatch.h"
#include "tests/nvrtc/WgmmaCode.h"
#include "tests/unit/samples/SampleAttentions.h"
#include "tests/unit/samples/SampleTf32.h"

using namespace weft;
using namespace weft::samples;
using nvrtctest::Batch;
using nvrtctest::WgmmaCode;
using nvrtctest::wgmmaCode;

namespace {

struct Case {
  std::string name;
  Kernel kernel;
};
std::vector<Case> cases(DType type) {
  std::vector<Case> result;
  for (const int64_t width : {32, 40, 64, 80, 96, 128, 192, 256}) {
    const AttentionExtents extents{.b = 2, .h = 6, .j = 777, .k = 777, .p = width, .w = width};
    result.push_back({fmt::format("attention {}", width), plainAttention(extents, type, true)});
    result.push_back({fmt::format("causal {}", width), causalAttention(extents, type)});
  }
  // One block of keys, and two: loops that the compiler could take apart.
  for (const int64_t keys : {64, 128, 256})
    for (const int64_t width : {64, 128}) {
      const AttentionExtents extents{.h = 12, .j = keys, .k = keys, .p = width, .w = width};
      result.push_back({fmt::format("{} keys of {}", keys, width), plainAttention(extents, type)});
      result.push_back({fmt::format("causal {} keys", keys), causalAttention(extents, type)});
    }
  const AttentionExtents extents{.b = 2, .h = 3, .g = 4, .j = 300, .k = 1000};
  result.push_back({"window", windowAttention(extents, type, 100, 30)});
  result.push_back({"padded", paddedAttention(extents, type, true)});
  result.push_back({"biased", biasedAttention(extents, type)});
  result.push_back({"sloped", slopedAttention(extents, type)});
  result.push_back({"slopes of heads", alibiAttention(extents, type)});
  AttentionExtents far = extents;
  far.distance = 128;
  result.push_back({"relative bias", relativeAttention(far, type)});
  result.push_back({"disentangled", disentangledAttention(far, type, true)});
  AttentionExtents farAndWide = far;
  farAndWide.p = farAndWide.w = 128;
  result.push_back({"disentangled, wide", disentangledAttention(farAndWide, type)});
  result.push_back({"documents", documentAttention(extents, type, true)});
  for (const int64_t width : {64, 128, 256}) {
    AttentionExtents bounded = extents;
    bounded.hasBounds = true, bounded.p = bounded.w = width;
    result.push_back({fmt::format("documents with bounds {}", width),
                      documentAttention(bounded, type, width == 64)});
  }
  result.push_back({"blocks", blockAttention(extents, type, "bigbird(block=64,seed=0)")});
  result.push_back({"blocks of heads",
                    blockAttention(extents, type, "random(block=16,density=0.2,seed=1,heads=each)",
                                   true, true)});
  AttentionExtents wide = extents;
  wide.p = wide.w = 128;
  result.push_back(
      {"wide blocks", blockAttention(wide, type, "bigbird(block=32,seed=0)", false, true)});
  result.push_back({"wide blocks of heads",
                    blockAttention(wide, type, "bigbird(block=64,seed=0,heads=each)", true)});
  result.push_back({"dropped", droppedAttention(extents, type, {.p = 0.1, .stream = 1})});
  for (const int64_t width : {64, 128}) {
    const AttentionExtents tokens{
        .b = 4, .h = 3, .g = 2, .j = 777, .k = 777, .p = width, .w = width, .tokens = 3108};
    result.push_back({fmt::format("packed with sums {}", width),
                      packedAttention(tokens, type, true, width == 64, std::nullopt, true)});
    if (width == 64) result.push_back({"ended", endedAttention(tokens, type, true, true)});
  }
  return result;
}

/// Few queries and many keys: packed heads, warps of keys, splits.
std::vector<Case> decoding() {
  std::vector<Case> result;
  for (const int64_t width : {64, 80, 128, 192, 256})
    for (const int64_t queries : {1, 7, 33}) {
      const AttentionExtents extents{
          .h = 5, .g = 4, .j = queries, .k = 7777, .p = width, .w = width};
      const bool isCausal = result.size() % 2 == 1;
      const DType type = result.size() / 2 % 2 == 0 ? DType::f16 : DType::bf16;
      result.push_back(
          {fmt::format("{} queries of {}", queries, width),
           isCausal ? causalAttention(extents, type) : plainAttention(extents, type, true)});
    }
  const AttentionExtents extents{.b = 2, .h = 3, .g = 3, .j = 5, .k = 4000};
  result.push_back({"few, window", windowAttention(extents, DType::f16, 100, 30)});
  result.push_back({"few, padded", paddedAttention(extents, DType::bf16, true)});
  result.push_back({"few, biased", biasedAttention(extents, DType::f16)});
  result.push_back({"few, sloped", slopedAttention(extents, DType::bf16)});
  result.push_back({"few, slopes of heads", alibiAttention(extents, DType::f16)});
  result.push_back({"few, documents", documentAttention(extents, DType::bf16, true)});
  AttentionExtents bounded = extents;
  bounded.hasBounds = true;
  result.push_back({"few, documents with bounds", documentAttention(bounded, DType::f16)});
  result.push_back({"few, capped", cappedAttention(extents, DType::f16, true)});
  result.push_back(
      {"few, dropped", droppedAttention(extents, DType::f16, {.p = 0.1, .stream = 1}, true)});
  for (const auto &[width, page] :
       {std::pair<int64_t, int64_t>{64, 64}, {80, 48}, {128, 16}, {128, 128}, {256, 16}})
    result.push_back(
        {fmt::format("few, of {} in pages of {}", width, page), cachedAttention({.b = 2,
                                                                                 .h = 3,
                                                                                 .g = 4,
                                                                                 .j = 1 + page % 5,
                                                                                 .k = 20 * page,
                                                                                 .p = width,
                                                                                 .w = width,
                                                                                 .page = page,
                                                                                 .pages = 30},
                                                                                DType::f16)});
  return result;
}

/// One configuration for every tile.
std::vector<Configuration> tilesOf(const Kernel &kernel) {
  std::vector<Configuration> found;
  std::set<std::string> seen;
  forEachConfiguration(kernel, findDevice("h200"), {}, [&](const Configuration &configuration) {
    if (configuration.knobs.is<Sm90AttentionKnobs>() &&
        seen.insert(describe(kernel, configuration.knobs)).second)
      found.push_back(configuration);
    return true;
  });
  return found;
}

struct Tiled {
  Case one;
  Configuration configuration;
  const Sm90AttentionKnobs &knobs() const { return configuration.knobs.get<Sm90AttentionKnobs>(); }
};
/// Every tile of every case, in f16 and bf16 by turns along tiles and along cases: registers of the
/// two are the same.
std::vector<Tiled> everyTile() {
  const std::vector<Case> halves = cases(DType::f16), bfloats = cases(DType::bf16);
  std::vector<Tiled> result;
  for (size_t i = 0; i < halves.size(); ++i) {
    size_t turn = i;
    for (const Configuration &configuration : tilesOf(halves[i].kernel))
      result.push_back({(turn++ % 2 == 0 ? halves : bfloats)[i], configuration});
  }
  return result;
}

}  // namespace

TEST_CASE("every tile of fused attention compiles without spills") {
  Batch batch;
  for (const Tiled &tiled : everyTile())
    batch.add(tiled.one.name, tiled.one.kernel, tiled.configuration, "sm_90a");
  batch.buildAndCheck(200, 1);
}

TEST_CASE("tiles of attention-sm90 whose rows are of packed heads compile without spills") {
  Batch batch;
  const auto addPacked = [&](const Case &one) {
    for (const Configuration &configuration : tilesOf(one.kernel))
      if (configuration.knobs.get<Sm90AttentionKnobs>().packed != 0)
        batch.add(one.name, one.kernel, configuration, "sm_90a");
  };
  for (const Tiled &tiled : everyTile())
    if (tiled.knobs().packed != 0)
      batch.add(tiled.one.name, tiled.one.kernel, tiled.configuration, "sm_90a");
  for (const Case &one : decoding()) addPacked(one);
  // Groups that leave rows of none, and one that fills a consumer's rows with a query.
  for (const int64_t group : {3, 6, 64})
    for (const int64_t width : {64, 128}) {
      const AttentionExtents extents{
          .b = 16, .h = 4, .g = group, .j = 17, .k = 1000, .p = width, .w = width};
      addPacked({fmt::format("group of {}", group), causalAttention(extents, DType::bf16, true)});
    }
  batch.buildAndCheck(60, 1);
}

namespace {

/// Of tiles of which `isChecked`.
void checkWaits(const std::vector<Tiled> &all, bool (*isChecked)(const Sm90AttentionKnobs &)) {
  runtime::BuildOptions options;
  options.headers = codegen::deviceHeaders();
  std::vector<runtime::BuildRequest> requests;
  std::vector<int> products;
  std::vector<bool> hasOneBlock;
  for (const Tiled &tiled : all) {
    const Kernel &kernel = tiled.one.kernel;
    const Sm90AttentionKnobs &knobs = tiled.knobs();
    if (!isChecked(knobs)) continue;
    codegen::EmittedKernel emitted = codegen::emit(kernel, tiled.configuration, "sm_90a");
    const auto columns = [&](const char *axis) {
      for (const Axis &own : kernel.axes)
        if (own.name == axis) return int(own.extent);
      return 0;
    };
    // Scores of the first block and of the others; the output's GEMM in the loop and behind it.
    products.push_back(2 * ((columns("p") + 15) / 16 + knobs.tileKeys / 16));
    hasOneBlock.push_back(columns("k") <= knobs.tileKeys);
    requests.push_back({.name = tiled.one.name + ", " + describe(kernel, tiled.configuration.knobs),
                        .text = std::move(emitted.text),
                        .entry = std::move(emitted.entry),
                        .architecture = "sm_90a",
                        .extraFlags = {}});
  }
  REQUIRE(requests.size() > 20);
  const std::vector<size_t> indices = nvrtctest::drawn(requests);
  const std::vector<runtime::BuildResult> results =
      runtime::build(nvrtctest::chosen(requests, indices), options);
  REQUIRE(results.size() == indices.size());
  for (size_t at = 0; at < results.size(); ++at) {
    const size_t i = indices[at];
    INFO(requests[i].name << "\n" << results[at].error);
    REQUIRE(results[at].failure().empty());
    const WgmmaCode code = wgmmaCode(results[at].cubin);
    // The compiler may see that a single block needs no loop.
    const bool hasNoLoop = hasOneBlock[i] && code.products * 2 == products[i];
    CHECK((hasNoLoop || code.products == products[i]));
    CHECK(code.starts <= 5);
    CHECK(code.waits <= 5);
  }
}

}  // namespace

TEST_CASE("fused attention waits for WGMMAs where it says so alone") {
  checkWaits(everyTile(), [](const Sm90AttentionKnobs &knobs) { return knobs.packed == 0; });
}

TEST_CASE("fused attention of packed heads waits for WGMMAs where it says so alone") {
  checkWaits(everyTile(), [](const Sm90AttentionKnobs &knobs) { return knobs.packed != 0; });
}

namespace {

/// Tiles whose keys several blocks share.
std::vector<Tiled> splitTiles() {
  std::vector<Case> subjects;
  for (const int64_t width : {64, 80, 128, 160, 192}) {
    const AttentionExtents extents{
        .b = 1, .h = 5, .g = 3, .j = 65, .k = 7777, .p = width, .w = width};
    const DType type = width % 128 == 0 ? DType::bf16 : DType::f16;
    subjects.push_back({fmt::format("split {}", width), plainAttention(extents, type, true)});
    subjects.push_back({fmt::format("split, causal {}", width), causalAttention(extents, type)});
  }
  const AttentionExtents extents{.b = 1, .h = 3, .g = 2, .j = 64, .k = 8192};
  subjects.push_back({"split, padded", paddedAttention(extents, DType::bf16, true)});
  subjects.push_back({"split, biased", biasedAttention(extents, DType::f16)});
  subjects.push_back({"split, capped", cappedAttention(extents, DType::bf16, true)});
  subjects.push_back({"split, window", windowAttention(extents, DType::f16, 5000, 30)});
  subjects.push_back({"split, slopes of heads", alibiAttention(extents, DType::bf16)});
  subjects.push_back({"split, documents", documentAttention(extents, DType::f16, true)});
  AttentionExtents bounded = extents;
  bounded.hasBounds = true;
  for (const int64_t width : {64, 128}) {
    bounded.p = bounded.w = width;
    subjects.push_back({fmt::format("split, documents with bounds {}", width),
                        documentAttention(bounded, DType::bf16)});
  }
  subjects.push_back({"split, of pages", cachedAttention({.b = 1,
                                                          .h = 3,
                                                          .g = 4,
                                                          .j = 64,
                                                          .k = 8192,
                                                          .p = 128,
                                                          .w = 128,
                                                          .page = 16,
                                                          .pages = 600},
                                                         DType::f16)});
  std::vector<Tiled> result;
  for (const Case &one : subjects)
    for (const Configuration &configuration : tilesOf(one.kernel))
      if (configuration.knobs.get<Sm90AttentionKnobs>().splits > 1)
        result.push_back({one, configuration});
  return result;
}

}  // namespace

TEST_CASE("tiles whose keys several blocks share compile without spills") {
  Batch batch;
  for (const Tiled &tiled : splitTiles())
    batch.add(tiled.one.name, tiled.one.kernel, tiled.configuration, "sm_90a");
  batch.buildAndCheck(20, 1);
}

TEST_CASE("fused attention of split keys waits for WGMMAs where it says so alone") {
  checkWaits(splitTiles(), [](const Sm90AttentionKnobs &) { return true; });
}

namespace {

/// Queries that are turned: heads of every number of panels, both styles, parts of heads, starts of
/// sequences, packed tokens.
std::vector<Case> turnedCases() {
  std::vector<Case> result;
  for (const int64_t width : {64, 80, 128, 256})
    for (const bool isHalved : {true, false}) {
      const DType type = isHalved ? DType::f16 : DType::bf16;
      const AttentionExtents extents{
          .b = 2, .h = 3, .g = 4, .j = 300, .k = 777, .p = width, .w = width};
      result.push_back({fmt::format("turned {}", width),
                        turnedAttention(extents, type, {.isHalved = isHalved}, isHalved)});
    }
  const AttentionExtents few{.b = 2, .h = 4, .g = 4, .j = 16, .k = 4096, .p = 128, .w = 128};
  result.push_back({"turned, few", turnedCachedAttention(few, DType::f16, {})});
  AttentionExtents paged = few;
  paged.page = 16, paged.pages = 600;
  result.push_back({"turned, pages", turnedCachedAttention(paged, DType::bf16, {})});
  result.push_back(
      {"turned, stretched", turnedAttention(few, DType::f16, {.turned = 64, .isStretched = true})});
  const AttentionExtents tokens{
      .b = 4, .h = 3, .g = 2, .j = 500, .k = 500, .p = 128, .w = 128, .tokens = 1500};
  result.push_back({"turned, packed", turnedPackedAttention(tokens, DType::f16, {}, true)});
  return result;
}
/// Of attention-sm90.
std::vector<Tiled> turnedTiles() {
  std::vector<Tiled> result;
  for (const Case &one : turnedCases())
    for (const Configuration &configuration : tilesOf(one.kernel))
      result.push_back({one, configuration});
  return result;
}

}  // namespace

TEST_CASE("tiles of attention-sm90 whose queries are turned compile without spills") {
  Batch batch;
  for (const Tiled &tiled : turnedTiles())
    batch.add(tiled.one.name, tiled.one.kernel, tiled.configuration, "sm_90a");
  batch.buildAndCheck(30, 1);
}

TEST_CASE("fused attention whose queries are turned waits for WGMMAs where it says so alone") {
  checkWaits(turnedTiles(), [](const Sm90AttentionKnobs &) { return true; });
}

TEST_CASE("tiles of attention-sm80 whose queries are turned compile without spills") {
  Batch batch;
  size_t turn = 0;
  for (const Case &one : turnedCases())
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
  const std::vector<Case> halves = cases(DType::f16), bfloats = cases(DType::bf16);
  for (size_t i = 0; i < halves.size(); ++i) {  // the types in turn
    const Case &one = (i / 2 % 2 == 0 ? halves : bfloats)[i];
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
  std::vector<Case> all = cases(DType::f32);
  const AttentionExtents few{.h = 5, .g = 4, .j = 7, .k = 7777},
      wide{.h = 5, .g = 4, .j = 7, .k = 7777, .p = 128, .w = 128};
  all.push_back({"few, causal", causalAttention(few, DType::f32)});
  all.push_back({"few, wide", plainAttention(wide, DType::f32, true)});
  all.push_back({"few, biased", biasedAttention(few, DType::f32)});
  all.push_back({"few, dropped", droppedAttention(few, DType::f32, {.p = 0.1, .stream = 1}, true)});
  all.push_back({"many, dropped", droppedAttention({.j = 777, .k = 777}, DType::f32, {.p = 0.1})});
  for (size_t i = 0; i < all.size(); ++i) {
    const Case &one = all[i];
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
  for (const Case &one : decoding()) {
    std::set<Knobs> seen;
    forEachConfiguration(one.kernel, findDevice("h200"), {}, [&](const Configuration &own) {
      if (own.knobs.is<Sm80AttentionKnobs>() && seen.insert(own.knobs).second)
        batch.add(one.name, one.kernel, own, turn++ % 4 == 0 ? "sm_80" : "sm_90a");
      return true;
    });
  }
  batch.buildAndCheck(100, 2);
}

TEST_CASE("attention of keys in pages compiles without spills") {
  Batch batch;
  for (const int64_t page : {16, 128}) {
    const Kernel paged = cachedAttention({.b = 4,
                                          .h = 2,
                                          .g = 4,
                                          .j = 256,
                                          .k = 8 * page,
                                          .p = 128,
                                          .w = 128,
                                          .page = page,
                                          .pages = 20},
                                         DType::f16);
    for (const Configuration &own : tilesOf(paged))
      batch.add(fmt::format("pages of {}", page), paged, own, "sm_90a");
  }
  batch.buildAndCheck(4, 1);
}

TEST_CASE("attention of sequences whose queries are padding, too, compiles without spills") {
  Batch batch;
  for (const bool withLogSums : {false, true}) {
    const Kernel kernel =
        attentionOfTokens({.b = 16, .h = 12, .j = 256, .k = 256}, DType::f16, withLogSums);
    for (const Configuration &configuration : tilesOf(kernel))
      batch.add("tokens", kernel, configuration, "sm_90a");
  }
  batch.buildAndCheck(10, 1);
}
