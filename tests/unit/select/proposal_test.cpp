// What proposed a candidate: the words of its patterns, and back.
#include "passes/select/Proposal.h"

#include <catch2/catch.hpp>

#include <set>

using namespace weft;
using By = select::Proposal::By;

TEST_CASE("every set of fusion patterns is read back from its words") {
  std::set<std::string> words;
  for (unsigned set = 0; set < 16; ++set) {
    const FusionPatterns patterns{.producerConsumer = (set & 1) != 0,
                                  .reductionConsumer = (set & 2) != 0,
                                  .sharedInput = (set & 4) != 0,
                                  .launchMerging = (set & 8) != 0};
    words.insert(text(patterns));
    CHECK(parseFusionPatterns(text(patterns)) == patterns);
  }
  CHECK(words.size() == 16);
  CHECK(text(FusionPatterns{.producerConsumer = true, .sharedInput = true}) ==
        "producer-consumer + shared-input");
}

TEST_CASE("words that no patterns print are none") {
  for (const char *words :
       {"producer", "producer-consumer + ", "producer-consumershared-input", " + launch-merging",
        "shared-input + producer-consumer", "fuse: shared-input", "shared-input + shared-input"})
    CHECK_FALSE(parseFusionPatterns(words));
}

TEST_CASE("a proposal is told as its pass, and a fusion with its patterns") {
  CHECK(text(select::Proposal{}) == "alone");
  CHECK(text(select::Proposal{.by = By::packing}) == "pack: at load");
  CHECK(text(select::Proposal{.by = By::fusion, .patterns = {.launchMerging = true}}) ==
        "fuse: launch-merging");
}
