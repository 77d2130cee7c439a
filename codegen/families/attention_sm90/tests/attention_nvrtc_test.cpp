// Fused attention by WGMMA compiles without spills and warnings, and the tensor cores are kept
// busy: in machine code no wait stands behind every WGMMA, and instructions are as wide as the
// tile.
#include "codegen/families/attention/tests/AttentionKernels.h"
#include "codegen/families/attention_sm90/Sm90AttentionKnobs.h"
#include "tests/nvrtc/KernelBatch.h"
#include "tests/nvrtc/WgmmaCode.h"

using namespace weft;
using namespace weft::samples;
using nvrtctest::Batch;
using nvrtctest::WgmmaCode;
using nvrtctest::wgmmaCode;

namespace {

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
  NamedKernel one;
  Configuration configuration;
  const Sm90AttentionKnobs &knobs() const { return configuration.knobs.get<Sm90AttentionKnobs>(); }
};
/// Every tile of every case, in f16 and bf16 by turns along tiles and along cases: registers of the
/// two are the same.
std::vector<Tiled> everyTile() {
  const std::vector<NamedKernel> halves = attentionCases(DType::f16),
                                 bfloats = attentionCases(DType::bf16);
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
  const auto addPacked = [&](const NamedKernel &one) {
    for (const Configuration &configuration : tilesOf(one.kernel))
      if (configuration.knobs.get<Sm90AttentionKnobs>().packed != 0)
        batch.add(one.name, one.kernel, configuration, "sm_90a");
  };
  for (const Tiled &tiled : everyTile())
    if (tiled.knobs().packed != 0)
      batch.add(tiled.one.name, tiled.one.kernel, tiled.configuration, "sm_90a");
  for (const NamedKernel &one : decodingCases()) addPacked(one);
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
  std::vector<NamedKernel> subjects;
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
  for (const NamedKernel &one : subjects)
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

/// Of attention-sm90.
std::vector<Tiled> rotatedTiles() {
  std::vector<Tiled> result;
  for (const NamedKernel &one : rotatedCases())
    for (const Configuration &configuration : tilesOf(one.kernel))
      result.push_back({one, configuration});
  return result;
}

}  // namespace

TEST_CASE("tiles of attention-sm90 whose queries are turned compile without spills") {
  Batch batch;
  for (const Tiled &tiled : rotatedTiles())
    batch.add(tiled.one.name, tiled.one.kernel, tiled.configuration, "sm_90a");
  batch.buildAndCheck(30, 1);
}

TEST_CASE("fused attention whose queries are turned waits for WGMMAs where it says so alone") {
  checkWaits(rotatedTiles(), [](const Sm90AttentionKnobs &) { return true; });
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
