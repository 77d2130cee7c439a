// The price of transforming an operand on load: by the instructions that the built loops have, and
// on sm_90a by accesses to shared memory beside WGMMA.
#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/Families.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SamplePrologues.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

using namespace weft;
using namespace weft::samples;
using weft::test::nonEmpty;

namespace {

/// Attention of bert-large at L=4096, as "Recomposing Softmax Layers" has it.
constexpr PrologueExtents longAttention = {.b = 1, .h = 16, .j = 4096, .k = 4096, .p = 64};

/// The cheapest configuration of a family.
template <typename Family>
double bestSeconds(const Kernel &kernel, const Device &device) {
  const auto model = analyticCostModel(device);
  double best = INFINITY;
  for (const Configuration &one : nonEmpty(enumerate(kernel, device).legal))
    if (one.knobs.is<Family>()) best = std::min(best, model->cost(kernel, one).seconds);
  REQUIRE(std::isfinite(best));
  return best;
}

Kernel plainContext(const PrologueExtents &e) {
  return contractKernel({{'b', e.b}, {'h', e.h}, {'j', e.j}, {'k', e.k}, {'p', e.p}}, "phbk",
                        "hbjk", "phbj");
}

Kernel scalingAlone(const PrologueExtents &e, int64_t tile) {
  TransformedContraction made("global_scaling",
                              {{'b', e.b}, {'h', e.h}, {'j', e.j}, {'k', e.k}, {'n', e.k / tile}},
                              DType::f16);
  const int x = made.input("exponentials", "hbjk"),
            factors = made.input("factors", "hbjn", DType::f32);
  return made.build(made.globalScaling(x, factors, "hbjk", tile));
}

/// With one flop an element for every op before the contraction, as graphs have them.
Kernel withFlop(Kernel kernel, int64_t elements) {
  for (size_t op = 0; op + 1 < kernel.body.size(); ++op) kernel.body[op].flop = double(elements);
  return kernel;
}

Kernel recomposed() {
  const PrologueExtents &e = longAttention;
  return withFlop(recomposedContext(e, DType::f16, 64), e.b * e.h * e.j * e.k);
}

}  // namespace

TEST_CASE("before sm_90 scaling an operand on load costs less than a kernel that scales it") {
  for (const char *name : {"a100", "rtx3090"}) {
    const Device &device = findDevice(name);
    const double apart = bestSeconds<Sm80GemmKnobs>(plainContext(longAttention), device) +
                         bestSeconds<LoopKnobs>(scalingAlone(longAttention, 64), device);
    CHECK(bestSeconds<Sm80GemmKnobs>(recomposed(), device) < 0.75 * apart);
  }
}

TEST_CASE("a multiplication on load takes six instructions an element before sm_90") {
  // 16 x 4096 x 4096 elements in 512 tiles on 108 multiprocessors, five waves: 4% to 30% over a
  // GEMM that waits for memory.
  const Device &a100 = findDevice("a100");
  const double share = bestSeconds<Sm80GemmKnobs>(recomposed(), a100) /
                           bestSeconds<Sm80GemmKnobs>(plainContext(longAttention), a100) -
                       1;
  CHECK(share > 0.04);
  CHECK(share < 0.3);
}

TEST_CASE("beside WGMMA accesses to shared memory keep their price") {
  // 71.13 and 141.12 us were measured on an H200 (docs/experiments/epilogues.md).
  const PrologueExtents e = {.b = 2, .h = 16, .j = 2048, .k = 2048, .p = 64};
  const Device &h200 = findDevice("h200");
  const double plain = bestSeconds<Sm90GemmKnobs>(plainContext(e), h200),
               scaled = bestSeconds<Sm90GemmKnobs>(
                   withFlop(scaledContext(e, DType::f16), e.b * e.h * e.j * e.k), h200);
  CHECK(scaled / plain > 141.12 / 71.13);
}

TEST_CASE("long expressions on load are costly before sm_90 too") {
  const PrologueExtents projection = {.b = 8, .j = 512, .i = 1024, .u = 4096};
  const Device &a100 = findDevice("a100");
  const Kernel plain =
      contractKernel({{'b', 8}, {'j', 512}, {'i', 1024}, {'u', 4096}}, "bji", "iu", "bju");
  const Kernel normalized = withFlop(normalizedProjection(projection, DType::f16), 8 * 512 * 1024);
  CHECK(bestSeconds<Sm80GemmKnobs>(normalized, a100) >
        1.5 * bestSeconds<Sm80GemmKnobs>(plain, a100));
}
