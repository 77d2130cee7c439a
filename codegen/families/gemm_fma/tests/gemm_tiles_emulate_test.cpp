// Contractions by FMA in every tile that the family offers, and in tiles that a hand-edited plan
// may name: operands of every type that lie along k or along their rows, results in both orders,
// extents whose groups of four elements are aligned and others, each cut by tiles and k-tiles.
#include "codegen/families/contraction/ContractionLayouts.h"
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"
#include "kernel/Device.h"
#include "kernel/Error.h"
#include "kernel/StridedBatchedGemm.h"
#include "passes/configure/Families.h"
#include "tests/emulate/EmittedRun.h"
#include "tests/unit/samples/SampleKernels.h"

#include <fmt/format.h>

#include <map>
#include <set>

using namespace weft;

namespace {

struct Subject {
  Kernel kernel;
  Configuration configuration;
  codegen::EmittedKernel emitted;
};

Kernel gemm(int64_t b, int64_t m, int64_t n, int64_t k, DType type) {
  Kernel kernel =
      samples::contractKernel({{'b', b}, {'m', m}, {'n', n}, {'k', k}}, "bmk", "bnk", "bmn");
  for (Value &value : kernel.values) value.dtype = type;
  kernel.body[0].attributes["scale"] = 0.5;
  return kernel;
}

/// All tiles that the family offers, for many tiles or for few.
std::set<Knobs> offered() {
  std::set<Knobs> found;
  for (const int64_t m : {512, 8192})
    forEachConfiguration(gemm(1, m, m, 512, DType::f32), findDevice("h200"), {},
                         [&](const Configuration &one) {
                           if (one.knobs.is<FmaGemmKnobs>()) found.insert(one.knobs);
                           return true;
                         });
  return found;
}

/// One configuration of each of the eight orders in which A and B lie along k or along their rows,
/// and C along n or along m.
std::vector<LayoutTuple> orientations(const Kernel &kernel) {
  std::map<std::array<bool, 3>, LayoutTuple> found;
  for (const LayoutTuple &tuple : contractionTuples(kernel)) {
    const auto gemm = stridedBatchedGemm(kernel, toConfiguration(kernel, tuple, FmaGemmKnobs{}));
    found.try_emplace({gemm->strideAk == 1, gemm->strideBk == 1, gemm->strideCn == 1}, tuple);
  }
  std::vector<LayoutTuple> all;
  for (const auto &[order, tuple] : found) all.push_back(tuple);
  return all;
}

void add(std::vector<Subject> &subjects, const Kernel &kernel, const LayoutTuple &tuple,
         const Knobs &knobs) {
  const Configuration configuration = toConfiguration(kernel, tuple, knobs);
  subjects.push_back({kernel, configuration, codegen::emit(kernel, configuration, "sm_90a")});
}

void checkAll(const std::string &library, const std::vector<Subject> &subjects) {
  std::vector<emulate::Source> sources;
  for (const Subject &subject : subjects)
    sources.push_back({subject.emitted.text, subject.emitted.entry});
  const emulate::HostLibrary built(library, sources);
  for (size_t i = 0; i < subjects.size(); ++i) {
    const auto &[kernel, configuration, emitted] = subjects[i];
    INFO(emitted.readable);
    emulate::checkEmitted(kernel, configuration, emitted, built.kernel(i), emitted.launch.grid,
                          emitted.launch.block);
  }
}

/// Whether A, B and C are said to have aligned groups of four elements.
std::array<bool, 3> aligned(const std::string &text) {
  std::array<bool, 3> found{};
  for (size_t i = 0; i < 3; ++i)
    found[i] = text.find(fmt::format(".isAligned{} = true", "ABC"[i])) != std::string::npos;
  return found;
}

}  // namespace

TEST_CASE("every tile, in every order of operands and result, of aligned and of odd extents") {
  const std::set<Knobs> tiles = offered();
  CHECK(tiles.size() == 11 + 9);  // of one group of threads, of several
  std::vector<Subject> subjects;
  std::set<std::array<bool, 3>> alignments;
  size_t turn = 0;
  for (const DType type : {DType::f32, DType::f16})
    for (const auto &[b, m, n, k] : {std::array<int64_t, 4>{2, 132, 72, 100}, {3, 41, 135, 67}}) {
      const Kernel kernel = gemm(b, m, n, k, type);
      const std::vector<LayoutTuple> orders = orientations(kernel);
      REQUIRE(orders.size() == 8);
      for (const Knobs &tile : tiles) {
        add(subjects, kernel, orders[turn++ % 8], tile);
        alignments.insert(aligned(subjects.back().emitted.text));
      }
    }
  // Each order of one tile of each kind, of every type.
  for (const DType type : {DType::f32, DType::bf16})
    for (const FmaGemmKnobs &tile :
         {FmaGemmKnobs{.threadM = 8, .threadN = 8, .stages = 3},
          {.tileM = 32, .tileN = 64, .tileK = 32, .threadM = 8, .threadN = 4, .kGroups = 4}}) {
      const Kernel kernel = gemm(2, 68, 100, 72, type);
      for (const LayoutTuple &order : orientations(kernel)) add(subjects, kernel, order, tile);
    }
  CHECK(alignments == std::set<std::array<bool, 3>>{{false, false, false}, {true, true, true}});
  checkAll("fma_tiles", subjects);
}

TEST_CASE("operands of which some have aligned groups of four elements") {
  std::vector<Subject> subjects;
  std::set<std::array<bool, 3>> alignments;
  for (const DType type : {DType::f32, DType::f16})
    for (const auto &[m, n, k] :
         {std::array<int64_t, 3>{36, 50, 20}, {50, 36, 20}, {36, 36, 21}, {35, 50, 20}}) {
      const Kernel kernel = gemm(1, m, n, k, type);
      for (const LayoutTuple &order : orientations(kernel)) {
        add(subjects, kernel, order, FmaGemmKnobs{});
        alignments.insert(aligned(subjects.back().emitted.text));
      }
    }
  CHECK(alignments.size() == 8);
  // What is known of addresses counts too.
  const Kernel kernel = gemm(1, 36, 36, 20, DType::f32);
  LayoutTuple tuple = orientations(kernel)[0];
  tuple[1].alignment = 8;
  add(subjects, kernel, tuple, FmaGemmKnobs{});
  CHECK(aligned(subjects.back().emitted.text) == std::array{true, false, true});
  // And from a row, or a batch element, to the next.
  const Kernel views = gemm(2, 36, 36, 20, DType::f32);
  for (const auto &[strides, isAligned] :
       {std::pair<std::vector<int64_t>, bool>{{36 * 37, 37, 1}, false},
        {{36 * 20 + 2, 20, 1}, false},
        {{36 * 24, 24, 1}, true}}) {
    LayoutTuple ofViews(3, rowMajor(3));
    ofViews[0].strides = strides;
    add(subjects, views, ofViews, FmaGemmKnobs{});
    CHECK(aligned(subjects.back().emitted.text) == std::array{isAligned, true, true});
  }
  checkAll("fma_alignments", subjects);
}

TEST_CASE("tiles of hand-edited plans") {
  std::vector<Subject> subjects;
  for (const auto &[m, n, k] : {std::array<int64_t, 3>{37, 21, 19}, {40, 24, 28}, {1, 5, 3}})
    for (const FmaGemmKnobs &tile :
         {FmaGemmKnobs{.tileM = 4, .tileN = 4, .tileK = 4, .threadM = 1, .threadN = 1},
          {.tileM = 8, .tileN = 8, .tileK = 8, .threadM = 1, .threadN = 1},
          {.tileM = 32, .tileN = 32, .tileK = 32, .threadM = 1, .threadN = 1},
          {.tileM = 24, .tileN = 36, .tileK = 16, .threadM = 2, .threadN = 6},
          {.tileM = 12, .tileN = 4, .tileK = 4, .threadM = 3, .threadN = 4, .stages = 5},
          {.tileM = 20, .tileN = 28, .tileK = 64, .threadM = 20, .threadN = 4, .kGroups = 16},
          {.tileM = 24, .tileN = 40, .tileK = 8, .threadM = 4, .threadN = 8, .kGroups = 2}}) {
      const Kernel kernel = gemm(1, m, n, k, subjects.size() % 2 ? DType::f16 : DType::f32);
      const std::vector<LayoutTuple> orders = orientations(kernel);
      add(subjects, kernel, orders[subjects.size() % orders.size()], tile);
      CHECK(subjects.back().emitted.launch.block[0] == fmaThreads(tile));
      CHECK(subjects.back().emitted.launch.sharedBytes == fmaSharedBytes(tile));
    }
  checkAll("fma_edited", subjects);
}

TEST_CASE("tiles that no block covers are rejected with the reason") {
  const Kernel kernel = gemm(1, 37, 21, 19, DType::f16);
  const std::pair<FmaGemmKnobs, const char *> rejected[] = {
      {{.tileM = 7, .tileN = 8, .tileK = 8, .threadM = 1, .threadN = 1}, "multiples of 4 rows"},
      {{.tileM = 64, .tileN = 64, .tileK = 8, .threadM = 1, .threadN = 1}, "1024 threads"},
      {{.tileM = 8, .tileN = 8, .tileK = 8, .threadM = 0, .threadN = 1}, "1024 threads"},
      {{.tileM = 8, .tileN = 8, .tileK = 12, .threadM = 1, .threadN = 1}, "powers of two"},
      {{.tileK = 8, .kGroups = 4}, "8 for 4 groups"},
      {{.tileM = 32, .threadM = 2, .kGroups = 2}, "2 x 4 elements a thread"},
      {{.tileM = 128, .tileN = 128, .threadM = 8, .threadN = 8, .stages = 8}, "131072 bytes"},
      {{.tileK = 32, .threadM = 8, .threadN = 8, .kGroups = 8}, "131072 bytes"}};
  for (const auto &[knobs, reason] : rejected) {
    INFO(reason);
    const Configuration configuration = toConfiguration(kernel, orientations(kernel)[0], knobs);
    CHECK_THROWS_AS(codegen::emit(kernel, configuration, "sm_90a"), Error);
    CHECK_THROWS_WITH(codegen::emit(kernel, configuration, "sm_90a"), Catch::Contains(reason));
  }
}
