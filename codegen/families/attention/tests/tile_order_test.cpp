// Work lists of a block mask: what each tile of a consumer sees, and the order that follows.
#include "codegen/families/attention/AttentionProblem.h"
#include "codegen/families/attention/TileOrder.h"
#include "codegen/families/attention/VisibleScores.h"
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"
#include "passes/configure/Family.h"
#include "tests/unit/samples/SampleAttentions.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <ctime>

using namespace weft;
using samples::AttentionExtents;

namespace {

struct Masked {
  Kernel kernel;
  AttentionRegion region = attentionRegion(kernel).value();
  AttentionProblem problem = valueOrThrow(attentionProblem(kernel, region, rowMajorOf(kernel)));

  static Configuration rowMajorOf(const Kernel &kernel) {
    LayoutTuple tuple;
    for (const ValueId value : operandValues(kernel))
      tuple.push_back(rowMajor(kernel.values[size_t(value)].axes.size()));
    return toConfiguration(kernel, tuple, FmaGemmKnobs{});
  }
  std::vector<int64_t> seen(int64_t rows, int64_t columns, TilesOf of = TilesOf::queries) const {
    return seenByTiles(kernel, region, problem, rows, columns, of);
  }
};

}  // namespace

TEST_CASE("tiles that see most come first, those of more than twice the mean apart") {
  const Masked masked{samples::blockAttention({.j = 512, .k = 512}, DType::f16,
                                              "longformer(block=64,window=1,global=1)")};
  CHECK(masked.seen(64, 64) == std::vector<int64_t>{8, 2, 2, 2, 2, 2, 2, 2});
  CHECK(masked.seen(64, 64, TilesOf::keys) == masked.seen(64, 64));
  CHECK(masked.seen(128, 32) == std::vector<int64_t>{16, 6, 6, 6});
  const TileOrder order = longestTilesFirst(masked.seen(64, 64), true);
  CHECK(order.tiles == std::vector<int>{0, 7, 6, 5, 4, 3, 2, 1});
  CHECK(order.longTiles == 1);
  CHECK(longestTilesFirst(
            Masked{samples::causalAttention({.j = 512, .k = 512}, DType::f16)}.seen(64, 64), true)
            .tiles.empty());
}

TEST_CASE("work lists of 65,536 tokens are there in 50 ms, and at once when they are asked again") {
  const Masked masked{samples::blockAttention(
      {.h = 16, .j = 65536, .k = 65536}, DType::f16,
      "bigbird(block=64,window=3,global=2,random=3,seed=0,heads=each)", true)};
  // Of this process alone, whatever else the machine does.
  const auto seconds = [&](TilesOf of) {
    const std::clock_t begin = std::clock();
    const TileOrder order = longestTilesFirst(masked.seen(64, 64, of), true);
    const double taken = double(std::clock() - begin) / CLOCKS_PER_SEC;
    CHECK(order.tiles.size() == 1024);
    return taken;
  };
  for (const TilesOf of : {TilesOf::queries, TilesOf::keys}) {
    const double first = seconds(of), again = seconds(of);
    INFO(first << " and " << again << " s");
    CHECK(first < 0.05);
    CHECK(again < 0.01);
  }
}
