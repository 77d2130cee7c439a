// Depth of texts, found before a parser recurses: what counts as a level, what hides a bracket, and
// where the error points.
#include "kernel/Nesting.h"
#include "kernel/Error.h"

#include <catch2/catch.hpp>

#include <string>

using namespace weft;

namespace {

std::string repeated(const std::string &text, int times) {
  std::string all;
  for (int n = 0; n < times; ++n) all += text;
  return all;
}

template <typename Check>
std::string rejection(Check check, const std::string &text) {
  try {
    check(text, "file");
  } catch (const Error &error) {
    CHECK(error.kind == ErrorKind::badInput);
    return error.what();
  }
  return "";
}

std::string ofJson(const std::string &text) { return rejection(checkJsonNesting, text); }
std::string ofMlir(const std::string &text) { return rejection(checkMlirNesting, text); }

/// Aliases of which each nests the one before, so many.
std::string chain(int length, const std::string &opening = "tuple<",
                  const std::string &closing = ">") {
  std::string text = "!a0 = f32\n";
  for (int n = 1; n < length; ++n)
    text +=
        "!a" + std::to_string(n) + " = " + opening + "!a" + std::to_string(n - 1) + closing + "\n";
  return text;
}

}  // namespace

TEST_CASE("as many levels as the limit are read, one more is rejected where it opens") {
  for (const std::string bracket : {"[", "{"}) {
    CHECK(ofJson(repeated(bracket, deepestNesting)) == "");
    CHECK(ofJson("\n\n  " + repeated(bracket, deepestNesting + 1)) ==
          "file:3:1003: nests 1001 levels deep; at most 1000 are read");
  }
  for (const std::string bracket : {"(", "[", "{", "<"}) {
    CHECK(ofMlir(repeated(bracket, deepestNesting)) == "");
    CHECK(ofMlir("\n\n  " + repeated(bracket, deepestNesting + 1)) ==
          "file:3:1003: nests 1001 levels deep; at most 1000 are read");
  }
  CHECK(ofMlir(repeated("([{<", deepestNesting)).starts_with("file:1:1001: "));
}

TEST_CASE("what is closed is no level any more, and nothing else closes it") {
  CHECK(ofJson(repeated("[[]]", 3 * deepestNesting)) == "");
  CHECK(ofMlir(repeated("(<[{}]>)", 3 * deepestNesting)) == "");
  CHECK(ofJson(repeated("[}", 3 * deepestNesting)) != "");
  CHECK(ofMlir(repeated("(>", 3 * deepestNesting)) != "");
}

TEST_CASE("strings and comments hold no levels") {
  const std::string many = repeated("[", 2 * deepestNesting);
  CHECK(ofJson("{\"a\": \"" + many + "\\\"" + many + "\"}") == "");
  CHECK(ofMlir("\"" + many + "\\\"" + many + "\"") == "");
  CHECK(ofMlir("// " + many + "\nmodule {}") == "");
  CHECK(ofJson("\"a\"" + many) != "");
  CHECK(ofMlir("// comment\n" + many) != "");
}

TEST_CASE("arrows and comparisons are no brackets") {
  CHECK(ofMlir(repeated("(f32) -> f32 ", 3 * deepestNesting)) == "");
  CHECK(ofMlir(repeated("(", deepestNesting - 1) +
               repeated("d0 <= 1, d0 >= 0, d0 == 0, ", 3 * deepestNesting)) == "");
}

TEST_CASE("an alias has the levels of what it stands for") {
  CHECK(ofMlir(chain(deepestNesting)) == "");
  CHECK(ofMlir(chain(deepestNesting + 2)).starts_with("file:1002:16: nests 1001 levels deep"));
  CHECK(ofMlir(chain(3 * deepestNesting, "tuple\n<", "\n>")) != "");
  CHECK(ofMlir(chain(3 * deepestNesting, "() -> tuple<", ">")) != "");
  CHECK(ofMlir(chain(deepestNesting - 10) + repeated("(", 20) + "!a989") != "");
  CHECK(ofMlir(chain(deepestNesting - 10) + repeated("(", 20) + "!a5") == "");
}

TEST_CASE("using the same alias often is no depth") {
  CHECK(ofMlir("!a = tensor<2xf32, #weft.axes<i>>\nmodule {\n" +
               repeated("  %x = weft.relu %y : !a\n", 3 * deepestNesting) + "}\n") == "");
}

TEST_CASE("each operator of an affine expression is a level") {
  for (const std::string text : {"d0 + ", "-", "d0 mod ", "d0 floordiv ", "d0 *\n"}) {
    INFO(text);
    CHECK(ofMlir("#m = affine_map<(d0) -> (" + repeated(text, deepestNesting + 1) + "d0)>") != "");
    CHECK(ofMlir("#m = affine_map<(d0) -> (" + repeated(text, deepestNesting - 10) + "d0)>") == "");
  }
  CHECK(ofMlir("#m = affine_map<(d0) -> (" + repeated("d0 + (", deepestNesting / 2 + 1) + ")>") !=
        "");
  CHECK(ofMlir("dense<[" + repeated("-1, ", 3 * deepestNesting) + "]>") == "");
  CHECK(ofMlir(repeated("  %a = weft.scale %b {factor = -1.0e+3}\n", 3 * deepestNesting)) == "");
}

TEST_CASE("an op names at most a million results") {
  CHECK(ofMlir("%s:2 = weft.op\n%t:0000000000000000000001000000 = weft.op") == "");
  CHECK(ofMlir("\n  %s.a:1000001 = weft.op") ==
        "file:2:3: '%s.a' names 1000001 results; at most 1000000 are read");
  CHECK(ofMlir("%s:18446744073709551615 = weft.op").find("at most 1000000") != std::string::npos);
  CHECK(ofMlir("(%x: !f32_9999999999)") == "");
}

TEST_CASE("bytecode is no text") {
  CHECK(ofMlir("ML\xefR\x06") ==
        "file: is MLIR bytecode; weft reads the text form, which mlir-opt prints");
}
