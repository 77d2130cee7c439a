// Words of --score: what they mean, and every rejection's message.
#include "kernel/Error.h"
#include "models/ScoreForm.h"

#include <catch2/catch.hpp>

#include <sstream>

using namespace weft;
using namespace weft::models;

namespace {

using Words = std::vector<std::string>;

/// The text of the error that parsing throws, which must be bad input, or "no error".
std::string formError(const Words &words) {
  try {
    parseScoreForm(words);
  } catch (const Error &error) {
    CHECK(error.kind == ErrorKind::badInput);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("words of a score form in any order, and its text") {
  CHECK(parseScoreForm({}).isNone());
  CHECK(parseScoreForm({"alibi"}) == ScoreForm{.alibi = 8});
  CHECK(parseScoreForm({"softcap=2.5", "relative=128"}) ==
        ScoreForm{.softcap = 2.5, .relative = 128});
  CHECK(parseScoreForm({"relative=1048576"}).relative == 1048576);
  for (const std::string text : {"", "alibi", "softcap=50", "alibi,relative=3,softcap=2.5"}) {
    Words words;
    std::istringstream stream(text);
    for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
    CHECK(textOf(parseScoreForm(words)) == text);
  }
}

TEST_CASE("words that are no score form") {
  CHECK(formError({"alibis"}) ==
        "--score alibis: unknown form; nearest is 'alibi' (known: alibi, relative=N, softcap=C)");
  CHECK(formError({"alibi=8"}).find("--score alibi=8: unknown form") == 0);
  for (const std::string text : {"softcap", "softcap=", "softcap=0", "softcap=-1", "softcap=nan",
                                 "softcap=inf", "softcap=3x"})
    CHECK(formError({text}) ==
          "--score " + text + ": expected a positive bound of scores, e.g. softcap=50");
  for (const std::string text :
       {"relative", "relative=", "relative=0", "relative=-4", "relative=1048577", "relative=2.5"})
    CHECK(formError({text}) ==
          "--score " + text +
              ": expected the farthest distance that is told apart, 1 to 1048576, e.g. "
              "relative=128");
  CHECK(formError({"softcap=1", "softcap=2"}) == "--score softcap=2: 'softcap' is given twice");
}
