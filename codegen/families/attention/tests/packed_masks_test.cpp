// Which masks of packed attention a kernel that ends at tokens leaves out.
#include "codegen/families/attention/PackedMasks.h"
#include "kernel/AttentionRegion.h"
#include "kernel/MaskKind.h"
#include "tests/unit/samples/SampleAttentions.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace weft;
using namespace weft::samples;

namespace {

const AttentionExtents extents{.b = 4, .h = 2, .j = 96, .k = 96, .p = 64, .w = 64, .tokens = 300};

int64_t masksOf(const Kernel &kernel) {
  return std::ranges::count(kernel.body, OpKind::mask, &BodyOp::kind);
}

}  // namespace

TEST_CASE("masks by the lengths that were packed are left out, others stay") {
  const Kernel kernel = endedAttention(extents, DType::f16, true, true);
  REQUIRE(masksOf(kernel) == 3);
  const auto ended = withoutMasksOfPacked(kernel);
  REQUIRE(ended);
  CHECK(ended->endsAtTokens);
  CHECK(masksOf(ended->kernel) == 1);
  CHECK(ended->kernel.inputs == kernel.inputs);
  CHECK(ended->kernel.outputs == kernel.outputs);
  const Expected<AttentionRegion, Reason> region = attentionRegion(ended->kernel);
  REQUIRE(region);
  CHECK(region->inputs.empty());
  CHECK(region->scoreOps.size() == 1);
  CHECK(withoutMasksOfPacked(kernel) == ended);  // found again
  CHECK_FALSE(withoutMasksOfPacked(ended->kernel));
}

TEST_CASE("a mask whose lengths may be others stays") {
  CHECK_FALSE(withoutMasksOfPacked(packedAttention(extents, DType::f16, true)));
  CHECK_FALSE(withoutMasksOfPacked(packedAttention(extents, DType::f16, false)));
}

TEST_CASE("a mask of keys that excludes none in the end stays, one of queries goes") {
  FusedAttention attention("capped_behind", extents, DType::f16);
  const int lengths = attention.input("lengths", "b", DType::i32),
            keys = attention.padding(attention.scores(), lengths),
            soft = attention.map("tanh", "weft::tanh({0})", {keys}, "soft");
  Kernel kernel = attention.build(attention.paddingOfQueries(soft, lengths));
  for (BodyOp &op : kernel.body)
    if (op.kind == OpKind::mask) op.attributes["packed"] = int64_t(1);
  const auto ended = withoutMasksOfPacked(kernel);
  REQUIRE(ended);
  CHECK_FALSE(ended->endsAtTokens);
  CHECK(masksOf(ended->kernel) == 1);
  const AttentionRegion region = attentionRegion(ended->kernel).value();
  CHECK(region.scoreOps.size() == 2);
  CHECK(region.inputs.size() == 1);
}

TEST_CASE("a mask along other sequences, or with a number for -inf, stays") {
  for (const bool hasFill : {false, true}) {
    Kernel kernel = endedAttention(extents, DType::f16, true);
    for (BodyOp &op : kernel.body) {
      if (op.kind != OpKind::mask) continue;
      if (hasFill) op.attributes["fill"] = -1e4;
      else op.attributes["along"] = std::vector<int64_t>{1};
    }
    CHECK_FALSE(withoutMasksOfPacked(kernel));
  }
}
