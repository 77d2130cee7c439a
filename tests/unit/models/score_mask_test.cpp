// Words of --mask: what they mean, and every rejection's message.
#include "kernel/Error.h"
#include "models/ScoreMask.h"

#include <catch2/catch.hpp>

using namespace weft;
using namespace weft::models;

namespace {

using Words = std::vector<std::string>;

/// "badInput: text" of the error that parsing throws, or "no error".
std::string maskError(const Words &words) {
  try {
    parseScoreMask(words);
  } catch (const Error &error) {
    return (error.kind == ErrorKind::badInput ? "badInput: " : "unsupported: ") +
           std::string(error.what());
  }
  return "no error";
}

}  // namespace

TEST_CASE("words of a mask in any order") {
  CHECK(parseScoreMask({}).isNone());
  CHECK(parseScoreMask({"causal"}) == ScoreMask{.causal = true});
  CHECK(parseScoreMask({"window=128"}) == ScoreMask{.window = 128});
  CHECK(parseScoreMask({"padding", "window=1", "causal"}) ==
        ScoreMask{.causal = true, .window = 1, .padding = true});
  CHECK(parseScoreMask({"document", "causal"}) == ScoreMask{.causal = true, .document = true});
  CHECK(parseScoreMask({"window=2147483647"}).window == 2147483647);
}

TEST_CASE("the text of a mask is read back") {
  for (const Words &words :
       {Words{}, Words{"causal"}, Words{"window=3"}, Words{"padding"},
        Words{"causal", "window=3", "padding"}, Words{"padding", "document"}}) {
    std::string text;
    for (const std::string &word : words) text += (text.empty() ? "" : ",") + word;
    CHECK(textOf(parseScoreMask(words)) == text);
  }
}

TEST_CASE("words that are no mask") {
  const std::string known =
      "causal, window=N, padding, attention-mask, document, bigbird(..), longformer(..), "
      "strided(..), fixed(..), butterfly(..), random(..), FILE.npy";
  CHECK(maskError({"causl"}) ==
        "badInput: --mask causl: unknown mask; nearest is 'causal' (known: " + known + ")");
  CHECK(maskError({"windows=3"}) ==
        "badInput: --mask windows=3: unknown mask; nearest is 'window=N' (known: " + known + ")");
  CHECK(maskError({"block"}) == "badInput: --mask block: unknown mask (known: " + known + ")");
  CHECK(maskError({""}) == "badInput: --mask : unknown mask (known: " + known + ")");
  CHECK(maskError({"causal=1"}) ==
        "badInput: --mask causal=1: unknown mask; nearest is 'causal' (known: " + known + ")");
}

TEST_CASE("windows that are none") {
  for (const std::string text : {"window", "window=", "window=many", "window=3x", "window= 3"})
    CHECK(maskError({text}) ==
          "badInput: --mask " + text + ": expected a number of keys, e.g. window=128");
  for (const std::string text : {"window=0", "window=-1", "window=-99999999999999999999"})
    CHECK(maskError({text}) ==
          "badInput: --mask " + text +
              ": a window is at least 1 key on each side of the query's own; nearest is window=1");
  for (const std::string text : {"window=2147483648", "window=99999999999999999999"})
    CHECK(maskError({text}) ==
          "badInput: --mask " + text + ": a window is at most 2147483647 keys on each side");
}

TEST_CASE("a word that is given twice") {
  CHECK(maskError({"causal", "padding", "causal"}) ==
        "badInput: --mask causal: 'causal' is given twice");
  CHECK(maskError({"window=3", "window=4"}) ==
        "badInput: --mask window=4: 'window' is given twice");
}

TEST_CASE("block masks, whose parameters commas separate, too") {
  const ScoreMask mask = parseScoreMask({"causal,bigbird(block=32,window=3,seed=4),window=9"});
  CHECK(mask.blocks == "bigbird(block=32,window=3,global=2,random=3,seed=4,heads=all)");
  CHECK(mask.causal);
  CHECK(mask.window == 9);
  CHECK(textOf(mask) ==
        "causal,window=9,bigbird(block=32,window=3,global=2,random=3,seed=4,heads=all)");
  CHECK(parseScoreMask({"butterfly"}).blocks == "butterfly(block=64)");
  CHECK(parseScoreMask({"tiles.npy"}).blocks == "tiles.npy");
  CHECK(parseScoreMask({"tiles.npy(block=32)"}).blocks == "tiles.npy(block=32)");
  CHECK(blockMaskOf("butterfly(block=64)", 4, 1, 100, 100) == "butterfly(block=64)");
}

TEST_CASE("paths of tables may hold commas and parentheses") {
  for (const std::string path : {"a,b.npy", "tiles (1).npy", "x(1,2)/y.npy", "./window,tiles.npy",
                                 "./random(0.1,7).npy", "a.npy.d/b.npy"})
    for (const std::string end : {"", "(block=32)"}) {
      const ScoreMask mask = parseScoreMask({"causal," + path + end + ",padding"});
      CHECK(mask.blocks == path + end);
      CHECK((mask.causal && mask.padding && !mask.window));
      CHECK(parseScoreMask({"causal", path + end}).blocks == path + end);
    }
  // A word of --mask is that, whatever follows.
  CHECK(maskError({"causal,random(density=2).npy"}) ==
        "badInput: --mask random(density=2).npy: ')' is expected at the end");
  CHECK(maskError({"a.npy,b.npy"}) ==
        "badInput: --mask b.npy: one block mask is taken, and a.npy is given");
  CHECK(maskError({"a,b.npy(block=7)"}).find("--mask a,b.npy(block=7): block=7: tiles have") !=
        std::string::npos);
}

TEST_CASE("block masks that are none") {
  CHECK(maskError({"bigbird(block=64"}) ==
        "badInput: --mask bigbird(block=64: ')' is expected at the end");
  CHECK(maskError({"random(density=0.1)"}) ==
        "badInput: --mask random(density=0.1): random draws tiles at random; it needs a seed, as "
        "seed=0");
  CHECK(maskError({"butterfly", "strided"}) ==
        "badInput: --mask strided: one block mask is taken, and butterfly(block=64) is given");
  CHECK(maskError({"tiles.npy(block=63)"}) ==
        "badInput: --mask tiles.npy(block=63): block=63: tiles have 16, 32, 64, 128 queries and as "
        "many keys");
  CHECK(maskError({"bigbrid(seed=0)"}).find("nearest is 'bigbird(..)'") != std::string::npos);
  const auto errorOfTable = [](const std::string &word) -> std::string {
    try {
      return blockMaskOf(word, 4, 1, 100, 100);
    } catch (const Error &error) {
      return error.what();
    }
  };
  CHECK(errorOfTable("none.npy") == "--mask none.npy: none.npy cannot be read");
  CHECK(errorOfTable("random(density=0.000001,seed=0)") ==
        "--mask random(density=0.000001,seed=0): the mask is empty: none of its 4 tiles exists");
}
