// Edit distance and the nearest known name.
#include "kernel/Nearest.h"

#include <catch2/catch.hpp>

using namespace weft;

TEST_CASE("edit distance counts inserts, deletes, replacements and swaps") {
  CHECK(editDistance("", "") == 0);
  CHECK(editDistance("abc", "") == 3);
  CHECK(editDistance("kitten", "sitting") == 3);
  CHECK(editDistance("bert", "bret") == 1);
  CHECK(editDistance("gpt2", "gtp") == 2);
}

TEST_CASE("nearest ignores case, keeps the first of equals and rejects far names") {
  const std::vector<std::string> names = {"attention", "bert-base", "bert-large", "gpt2"};
  CHECK(nearest("bert-larg", names) == "bert-large");
  CHECK(nearest("GPT-2", names) == "gpt2");
  CHECK(nearest("bert-lase", names) == "bert-base");
  CHECK(nearest("resnet", names).empty());
  CHECK(nearest("x", {}).empty());
  CHECK(nearestAndKnown("gtp2", names) ==
        "; nearest is 'gpt2' (known: attention, bert-base, bert-large, gpt2)");
  CHECK(nearestAndKnown("zzzzzz", {"a", "b"}) == " (known: a, b)");
}
