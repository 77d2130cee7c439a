// What makes a measurement stale: a change of the code that a compiler sees, and nothing else.
#include <catch2/catch.hpp>

#include "codegen/Emit.h"
#include "codegen/SourceHash.h"
#include "tests/support/NonEmpty.h"

using namespace weft;
using codegen::sourceHash;

namespace {

using Headers = std::map<std::string, std::string_view>;

const std::string text = R"(// made for a person
#include "weft/outer.cuh"

extern "C" __global__ void k(float *x) {
  x[0] = weft::twice(x[1]);  // %1
}
)";
const Headers headers = {{"weft/outer.cuh",
                          "#pragma once\n#include \"weft/inner.cuh\"\n"
                          "namespace weft { inline float twice(float x) { return two() * x; } }\n"},
                         {"weft/inner.cuh",
                          "#pragma once\n#if __CUDA_ARCH__ >= 890\n#define TWO 2.0f\n#else\n"
                          "#define TWO 2.f\n#endif\n"
                          "namespace weft { inline float two() { return TWO; } }\n"},
                         {"weft/other.cuh", "namespace weft { int other; }\n"}};

Headers with(const std::string &name, std::string_view code) {
  Headers changed = headers;
  changed[name] = code;
  return changed;
}

}  // namespace

TEST_CASE("code of a header that a kernel includes through another is part of its hash") {
  const std::string before = sourceHash(text, headers);
  CHECK(before.size() == 16);
  CHECK(sourceHash(text, with("weft/inner.cuh",
                              "namespace weft { inline float two() { return "
                              "2.0001f; } }\n")) != before);
  CHECK(sourceHash(text, with("weft/other.cuh", "namespace weft { int another; }\n")) == before);
  CHECK(sourceHash(text, {}) != before);
}

TEST_CASE("a directive that changes in a header changes the hash") {
  std::string inner(headers.at("weft/inner.cuh"));
  inner.replace(inner.find("890"), 3, "900");
  CHECK(sourceHash(text, with("weft/inner.cuh", inner)) != sourceHash(text, headers));
}

TEST_CASE("comments, line breaks and the spread over headers do not change the hash") {
  const std::string before = sourceHash(text, headers);
  CHECK(sourceHash("/* another\n head */\n#include \"weft/outer.cuh\"\nextern \"C\" __global__\n"
                   "    void k(float *x) { x[0] =\n      weft::twice( x[1] ); }",
                   headers) == before);
  Headers joined = with("weft/outer.cuh",
                        "#pragma once\n// all of it\n#if __CUDA_ARCH__ >= 890\n#define TWO 2.0f\n"
                        "#else\n#define TWO 2.f\n#endif\n"
                        "namespace weft { inline float two() { return TWO; } }\n"
                        "namespace weft { inline float twice(float x) { return two() * x; } }\n");
  joined.erase("weft/inner.cuh");
  CHECK(sourceHash(text, joined) == before);
}

TEST_CASE("white space in a string and between words counts") {
  CHECK(sourceHash("asm(\"a b\");") != sourceHash("asm(\"ab\");"));
  CHECK(sourceHash("int a;") != sourceHash("inta;"));
  CHECK(sourceHash("a // comment\nb") == sourceHash("a b"));
}

TEST_CASE("a header that stands twice in the includes counts once") {
  CHECK(sourceHash("#include \"weft/inner.cuh\"\n" + text, headers) ==
        sourceHash("#include \"weft/inner.cuh\"\n#include \"weft/inner.cuh\"\n" + text, headers));
}

TEST_CASE("every device header can be part of a hash, and no text has none") {
  CHECK(sourceHash("") == "-");
  for (const auto &[name, code] : test::nonEmpty(codegen::deviceHeaders())) {
    INFO(name);
    CHECK(sourceHash("#include \"" + name + "\"\n") != sourceHash("#include \"none\"\n"));
  }
}
