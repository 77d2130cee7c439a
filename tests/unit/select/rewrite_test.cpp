// Rewrites and the names of variants that are made of them.
#include "passes/select/Rewrite.h"
#include "tests/support/NonEmpty.h"

#include <catch2/catch.hpp>

using namespace weft;
using weft::test::nonEmpty;
using Kind = Rewrite::Kind;

TEST_CASE("a rewrite is read back from the name of its variant") {
  const std::vector<std::pair<Rewrite, std::string>> known = {
      {{Kind::stack, "q-k-v"}, "stack-q-k-v"},
      {{Kind::stackInputGradients, "wq-wk"}, "stack-dX-wq-wk"},
      {{Kind::stackWeightGradients, "wq-wk"}, "stack-dW-wq-wk"},
      {{Kind::recompute, "hidden"}, "recompute-hidden"},
      {{Kind::decomposeSoftmax, "64"}, "decompose-softmax-64"},
      {{Kind::recomposeSoftmax, "16"}, "recompose-softmax-16"},
      {{Kind::fuseAttention}, "fuse-attention"},
      {{Kind::allGradients}, "all-gradients"},
      {{Kind::decomposeNorms}, "decompose-norms"},
      {{Kind::deferNorms}, "defer-norms"},
      {{Kind::rotateInStack, "q-k-v"}, "turn-in-q-k-v"},
      {{Kind::rotateApart, "q-k-v"}, "turn-apart-q-k-v"},
      {{Kind::atSite, "layer2_probability"}, "for-layer2_probability"},
      {{Kind::other, "by-hand"}, "by-hand"},
      {{Kind::other, "recompute-"}, "recompute-"},
      {{Kind::other, "decompose-norms-2"}, "decompose-norms-2"}};
  for (const auto &[rewrite, words] : nonEmpty(known)) {
    CHECK(text(rewrite) == words);
    CHECK(parseRewrite(words) == rewrite);
  }
  CHECK(variantName({}) == "unchanged");
  CHECK(variantName({{Kind::recompute, "hidden"}, {Kind::deferNorms}}) ==
        "recompute-hidden+defer-norms");
}

TEST_CASE("a tensor that is called like another rewrite is recomputed all the same") {
  const Rewrite rewrite = parseRewrite("recompute-decompose-norms");
  CHECK(rewrite.kind == Kind::recompute);
  CHECK(rewrite.subject == "decompose-norms");
}
