// Lines that hold constants against the launch: hashes leave out exactly them.
#include <catch2/catch.hpp>

#include "codegen/SourceHash.h"
#include "kernel/LaunchCheck.h"

#include <fmt/format.h>

using namespace weft;

TEST_CASE("a text with launch checks has the hash that it had without") {
  const std::string before = "void k() {\n  int a;\n}\n";
  const std::string check =
      launchCheck("(65536 + rowsPerBlock - 1) / rowsPerBlock == 16384", "16384 blocks");
  const std::string after = "void k() {\n  " + check + "\n  int a;\n}\n" + check;
  CHECK(after != before);
  CHECK(withoutLaunchChecks(after) == before);
  CHECK(codegen::sourceHash(after) == codegen::sourceHash(before));
  CHECK(withoutLaunchChecks("").empty());
}

TEST_CASE("an entry point says whether its text waits by itself") {
  CHECK(isWaitingEntry(waitingEntry("relu_f16_4x64")));
  CHECK(waitingEntry("relu_f16_4x64") == "relu_f16_4x64_early");
  CHECK_FALSE(isWaitingEntry("relu_f16_4x64"));
  CHECK_FALSE(isWaitingEntry("early_relu_f16_4x64"));
}

TEST_CASE("a line that does more than to check stays in the hash") {
  const std::string good = launchCheck("threads == 128", "128 threads a block");
  REQUIRE(withoutLaunchChecks(good).empty());
  for (const std::string &line :
       {good + " evil();", "evil(); " + good,
        std::string(
            "static_assert(true); evil(); static_assert(threads == 128, \"plan.json: x\");"),
        std::string("static_assert(true), evil(), (true, \"plan.json: x\");"),
        std::string("static_assert(true, \"other\"); x(1, \"plan.json: x\");"),
        std::string("static_assert(threads == 128);"),
        std::string("static_assert(threads == 128, \"mine\");"), good + "\\"}) {
    INFO(line);
    CHECK(withoutLaunchChecks(line + "\n") == line + "\n");
  }
}

namespace {

const std::string generated = R"(#include "weft/math.cuh"

namespace {
constexpr int rowsPerBlock = 2;  // rows
}  // namespace

extern "C" __global__ void __launch_bounds__(rowsPerBlock * 32)
norm(const weft::half *__restrict__ x,
     weft::half *__restrict__ y) {
  static_assert((64 + rowsPerBlock - 1) / rowsPerBlock == 32, "plan.json: 32 blocks");
  static_assert(weft::sharedBytes<float, 2>() == 128);
  const int row = blockIdx.x * rowsPerBlock;
  y[row] = x[row];
}
)";

std::string replaced(const std::string &from, const std::string &to) {
  std::string text = generated;
  const size_t at = text.find(from);
  REQUIRE(at != text.npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("an edited kernel keeps its launch through every edit of its work") {
  for (const std::string &text :
       {generated, replaced("y[row] = x[row];", "if (row < 64) { y[row] = x[row]; }"),
        replaced("norm(const", "norm(\n\n  /* in */ const"),
        replaced("rowsPerBlock * 32)", "rowsPerBlock * 32, 16)"),
        replaced("namespace {", "#define TWICE(a) (2 * (a))\nnamespace {"),
        replaced(" static_assert((64", " const char brace[] = \"}//\";\n  static_assert( (64"),
        replaced("extern", "// extern \"C\" before\nextern")}) {
    INFO(text);
    CHECK(lostLaunch(generated, text).empty());
  }
}

TEST_CASE("what an edited kernel lacks of its launch is named as weft wrote it") {
  const std::string signature =
      "extern \"C\" __global__ void __launch_bounds__(rowsPerBlock * 32) norm(const weft::half "
      "*__restrict__ x, weft::half *__restrict__ y)";
  for (const std::string &text :
       {replaced("norm(", "evil("), replaced("extern \"C\" ", ""),
        replaced("const weft::half *", "const float *"),
        replaced("weft::half *__restrict__ y", "int y"),
        replaced("__launch_bounds__(rowsPerBlock * 32)\n", ""),
        replaced("rowsPerBlock * 32)", "32)"), replaced("extern", "#if 0\nextern") + "#endif\n",
        "/*" + generated + "*/", std::string()}) {
    INFO(text);
    CHECK(lostLaunch(generated, text) == std::vector<std::string>{signature});
  }
  const std::string check =
      "static_assert((64 + rowsPerBlock - 1) / rowsPerBlock == 32, \"plan.json: 32 blocks\");";
  for (const std::string &text :
       {replaced("  static_assert((64", "  // static_assert((64"), replaced("== 32, ", "== 16, "),
        replaced(check, ""), replaced(check, "#ifdef CHECKED\n" + check + "\n#endif"),
        replaced(check, "const auto never = [](auto rowsPerBlock) { " + check + " };")}) {
    INFO(text);
    CHECK(lostLaunch(generated, text) == std::vector<std::string>{check});
  }
  CHECK(lostLaunch(generated, replaced("static_assert(weft", "assert(weft")) ==
        std::vector<std::string>{"static_assert(weft::sharedBytes<float, 2>() == 128);"});
  for (const char *macro : {"rowsPerBlock", "static_assert", "half"}) {
    INFO(macro);
    CHECK(lostLaunch(generated,
                     replaced("namespace {", fmt::format("#define {} 2\nnamespace {{", macro))) ==
          std::vector<std::string>{fmt::format("{} without #define", macro)});
  }
}

TEST_CASE("a check within a raw string is none") {
  const std::string check =
      "static_assert((64 + rowsPerBlock - 1) / rowsPerBlock == 32, \"plan.json: 32 blocks\");";
  for (const char *prefix : {"R", "LR", "u8R", "R\\\n"})
    for (const char *inner : {"", "\n", ")\" ", ")x\\\n\" "}) {
      const std::string text = replaced(
          check, fmt::format("constexpr auto *no = {}\"x({}{})x\";", prefix, inner, check));
      INFO(text);
      CHECK(lostLaunch(generated, text) == std::vector<std::string>{check});
    }
  // Without an end, it is the rest of the text; with an end, the text goes on behind it.
  CHECK(lostLaunch(generated, replaced("namespace {", "auto *no = R\"x(\nnamespace {")).size() ==
        1);
  for (const char *harmless : {"auto *no = R\"x(}}\" /* )x\";\n", "auto *no = YOUR\"x(\";\n"})
    CHECK(lostLaunch(generated, harmless + generated).empty());
}

TEST_CASE("a header that weft did not write may make no word of the checks a macro") {
  const auto lost = [](std::string_view header) {
    return lostLaunch(generated, generated, {{"mine.cuh", header}});
  };
  CHECK(lost("#pragma once\n#define MINE 1\n// #define static_assert(...)\n").empty());
  for (const char *macro : {"static_assert", "rowsPerBlock", "half"})
    for (const char *form : {"#define {}(...)\n", "# /**/ define {}\n", "%:define {}\n",
                             "#if 1\n#undef {}\n#endif\n", "#def\\\nine {} 2\n"}) {
      const std::string header = fmt::format(fmt::runtime(form), macro);
      INFO(header);
      CHECK(lost(header) ==
            std::vector<std::string>{fmt::format("{} without #define in mine.cuh", macro)});
    }
  CHECK(lost("// \\ \n#define half\n").size() == 2);
  CHECK(lostLaunch(generated, "// \\ \n" + generated).size() == 1);
}

TEST_CASE("code is told from comments and white space") {
  CHECK(sameCode(generated, replaced("// rows", "// of a block")));
  CHECK(sameCode(generated, replaced("namespace {", "/* mine */\n\n  namespace {")));
  CHECK_FALSE(sameCode(generated, replaced("y[row] = x[row]", "y[row] = x[0]")));
  CHECK_FALSE(sameCode(generated, replaced("constexpr int rows", "constexpr i/**/nt rows")));
  CHECK_FALSE(sameCode("auto a = R\"(//1)\";", "auto a = R\"(//2)\";"));
  CHECK_FALSE(sameCode("auto a = \"//1\";", "auto a = \"//2\";"));
}

TEST_CASE("a failed launch check is told from other errors") {
  CHECK(hasFailedLaunchCheck(
      "kernel.cu(3): error: static assertion failed with \"plan.json: 128 threads a block\""));
  CHECK_FALSE(hasFailedLaunchCheck("kernel.cu(3): error: static assertion failed with \"mine\""));
}
