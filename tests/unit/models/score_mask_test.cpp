// Words of --mask: what they mean, and every rejection's message.
#include "kernel/Error.h"
#include "models/ScoreMask.h"

#include <catch2/catch.hpp>

using namespace weft;
using namespace weft::models;

namespace {

using Words = std::vector<std::string>;

/// "badInput: text" of the error that parsing throws, or "no error".
std::string errorOf(const Words &words) {
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
  CHECK(errorOf({"causl"}) ==
        "badInput: --mask causl: unknown mask; nearest is 'causal' (known: causal, window=N, "
        "padding, document)");
  CHECK(errorOf({"windows=3"}) ==
        "badInput: --mask windows=3: unknown mask; nearest is 'window=N' (known: causal, "
        "window=N, padding, document)");
  CHECK(errorOf({"block"}) ==
        "badInput: --mask block: unknown mask (known: causal, window=N, padding, document)");
  CHECK(errorOf({""}) ==
        "badInput: --mask : unknown mask (known: causal, window=N, padding, document)");
  CHECK(errorOf({"causal=1"}) ==
        "badInput: --mask causal=1: unknown mask; nearest is 'causal' (known: causal, window=N, "
        "padding, document)");
}

TEST_CASE("windows that are none") {
  for (const std::string text : {"window", "window=", "window=many", "window=3x", "window= 3"})
    CHECK(errorOf({text}) ==
          "badInput: --mask " + text + ": expected a number of keys, e.g. window=128");
  for (const std::string text : {"window=0", "window=-1", "window=-99999999999999999999"})
    CHECK(errorOf({text}) ==
          "badInput: --mask " + text +
              ": a window is at least 1 key on each side of the query's own; nearest is window=1");
  for (const std::string text : {"window=2147483648", "window=99999999999999999999"})
    CHECK(errorOf({text}) ==
          "badInput: --mask " + text + ": a window is at most 2147483647 keys on each side");
}

TEST_CASE("a word that is given twice") {
  CHECK(errorOf({"causal", "padding", "causal"}) ==
        "badInput: --mask causal: 'causal' is given twice");
  CHECK(errorOf({"window=3", "window=4"}) == "badInput: --mask window=4: 'window' is given twice");
}
