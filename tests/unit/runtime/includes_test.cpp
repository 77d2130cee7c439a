// What kernels may include: however a directive is spelled it is found, and what is not available
// never reaches the file system.
#include <catch2/catch.hpp>

#include "runtime/build/Includes.h"

using namespace weft::runtime;

namespace {

std::string nameIn(const std::string &text) {
  const std::vector<Include> found = includesOf(text);
  REQUIRE(found.size() == 1);
  return found[0].name;
}

}  // namespace

TEST_CASE("a directive is found in every spelling") {
  for (const char *text :
       {"#include \"/etc/passwd\"\n", "  #  include </etc/passwd>", "\t#\tinclude\t\"/etc/passwd\"",
        "#inc\\\nlude \"/etc/passwd\"\n", "#inc\\  \nlude \"/etc/passwd\"\n",
        "#/**/include/* a\nb */\"/etc/passwd\"", "/* x\n*/ #include \"/etc/passwd\"",
        "%:include \"/etc/passwd\"", "?\?=include \"/etc/passwd\"",
        "\?\?=inc?\?/\nlude \"/etc/pas\\\nswd\"", "int x;\r\n#include \"/etc/passwd\"\r\n",
        "#if 0\n#include \"/etc/passwd\"\n#endif",
        "const char *s = R\"(/*\n)\";\n#include \"/etc/passwd\"\n"}) {
    INFO(text);
    CHECK(nameIn(text) == "/etc/passwd");
  }
  const std::vector<Include> found = includesOf("\n\\\n\n#include \"a\"\n  #import <b>\n");
  REQUIRE(found.size() == 2);
  CHECK(found[0] == Include{4, "include", "a"});
  CHECK(found[1] == Include{5, "import", "b"});
}

TEST_CASE("what begins no line, or is another word, is no directive") {
  for (const char *text : {"// #include \"a\"\n", "int x; #include \"a\"", "#included \"a\"",
                           "#pragma unroll", "include \"a\"", ""}) {
    INFO(text);
    CHECK(includesOf(text).empty());
  }
}

TEST_CASE(
    "headers are followed through headers, and unavailable names become headers that stop the "
    "compiler") {
  const std::map<std::string, std::string_view> available{
      {"weft/a.cuh", "#include \"weft/b.cuh\"\n#include \"weft/a.cuh\"\n"},
      {"weft/b.cuh", "#include \"../secret\"\n"},
      {"weft/c.cuh", ""}};
  const std::string text = "#include \"weft/a.cuh\"\n#include </etc/passwd>\n";
  const auto headers = includedHeaders(text, available);
  CHECK(headers.size() == 2);
  CHECK((headers.contains("weft/a.cuh") && headers.contains("weft/b.cuh")));
  const auto rejected = rejectedHeaders(text, headers);
  REQUIRE(rejected.size() == 2);
  for (const char *name : {"/etc/passwd", "../secret"}) {
    INFO(name);
    REQUIRE(rejected.contains(name));
    CHECK(rejected.at(name).starts_with("#error "));
    CHECK(rejectedIn("x(1): " + rejected.at(name)) == std::vector<std::string>{name});
  }
  CHECK(rejectedIn("x(1): error: no such thing").empty());
}

TEST_CASE("asking for a file is held to the files that may be included, however it is spelled") {
  const std::map<std::string, std::string> headers{{"weft/a.cuh", ""}};
  CHECK(includeRejection("#if __has_include(\"weft/a.cuh\")\n#endif\n", headers).empty());
  for (const char *text :
       {"#if __has_include(\"/etc/passwd\")\n", "#if __has_include ( <weft/b.cuh> )\n",
        "#if __has_\\\ninclude(\"/etc/passwd\")\n", "#define ASKS __has_include\n",
        "#if __has_include(NAME)\n", "#if __has_include_next(\"weft/a.cuh\")\n",
        "#if __has_embed(\"weft/a.cuh\")\n", "#define P(a, b) a##b\n", "#define P(b) __has_##b\n",
        "#define P(a, b) a /*\n*/ ## b\n", "#define P(a, b) a%:%:b\n"}) {
    INFO(text);
    CHECK(includeRejection(text, headers).starts_with("kernel.cu(1): error: "));
  }
  CHECK(includeRejection("#define NUMBERED(n) NUMBER_##n\n#if __has_builtin(f)\n#endif\n", headers)
            .empty());
  const std::map<std::string, std::string_view> available{{"weft/a.cuh", "int a;"}};
  CHECK(includedHeaders("#if __has_include(\"weft/a.cuh\")\n", available).size() ==
        1);  // its text is part of the key
}

TEST_CASE("names that only the compiler could compute are rejected with their line") {
  const std::map<std::string, std::string> none;
  CHECK(includeRejection("#include \"a\"\n", none).empty());
  for (const char *text : {"\n#include HEADER\n", "\n#include L\"a\"\n", "\n#include \"a\n",
                           "\n#include_next <a>\n", "\n#embed \"a\"\n"}) {
    INFO(text);
    CHECK_THAT(includeRejection(text, none), Catch::StartsWith("kernel.cu(2): error: #"));
  }
  CHECK_THAT(includeRejection("#include \"weft/a.cuh\"", {{"weft/a.cuh", "#include X\n"}}),
             Catch::StartsWith("weft/a.cuh(1): error: "));
}
