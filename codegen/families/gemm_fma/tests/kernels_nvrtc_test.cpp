// Contractions without tensor cores compile for every target without spills and warnings (design
// rule 4).
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"
#include "kernel/StridedBatchedGemm.h"
#include "tests/nvrtc/KernelBatch.h"
#include "tests/unit/samples/SampleKernels.h"

using namespace weft;
using nvrtctest::Batch;

namespace {

const std::map<char, int64_t> attentionExtents{
    {'b', 8}, {'h', 16}, {'j', 512}, {'k', 512}, {'p', 64}};

}  // namespace

TEST_CASE("plain contractions") {
  Batch batch;
  const Device &device = findDevice("h200");
  batch.addSamples("scores", samples::contractKernel(attentionExtents, "phbk", "phbj", "hbjk"),
                   device, 12);
  batch.addSamples(
      "projection",
      samples::contractKernel({{'b', 8}, {'h', 16}, {'i', 1024}, {'j', 512}, {'p', 64}}, "phi",
                              "bji", "phbj"),
      device, 12);
  batch.addSamples("odd gemm",
                   samples::contractKernel({{'i', 33}, {'k', 7}, {'n', 65}}, "ik", "kn", "in"),
                   device, 8);
  batch.buildAndCheck(20);
}

TEST_CASE("every tile of plain contractions in every order of operands and result") {
  Batch batch;
  std::set<std::string> seen;
  // Of many tiles and of few; aligned and not.
  for (const auto &[m, n, k] :
       {std::array<int64_t, 3>{4096, 4096, 1024}, {1024, 64, 1024}, {1001, 77, 555}})
    for (const DType type : {DType::f32, DType::f16}) {
      Kernel kernel = samples::contractKernel({{'m', m}, {'n', n}, {'k', k}}, "mk", "nk", "mn");
      for (Value &value : kernel.values) value.dtype = type;
      forEachConfiguration(kernel, findDevice("h200"), {}, [&](const Configuration &one) {
        if (!one.knobs.is<FmaGemmKnobs>()) return true;
        const auto gemm = stridedBatchedGemm(kernel, one);
        const std::string order =
            fmt::format("{} {} {}{}{} {}", nameOf(type), k, gemm->strideAk == 1,
                        gemm->strideBk == 1, gemm->strideCn == 1, describe(kernel, one.knobs));
        if (seen.insert(order).second)
          batch.add(order, kernel, one, nvrtctest::architectures[seen.size() % 4]);
        return true;
      });
    }
  CHECK(seen.size() == size_t(2 * 8 * (11 + 20 + 9)));
  batch.buildAndCheck(2 * 8 * (11 + 20 + 9));
}
