// Contractions without tensor cores compile for every target without spills and warnings (design
// rule 4).
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
