// What arithmetic alone does not hold to the plan (tests/cli/launch_constants_test.py does the
// rest): each member of a tile and each size of device memory, doubled, stops the compiler. But for
// the order of tiles, which moves no address.
#include <catch2/catch.hpp>

#include "codegen/Emit.h"
#include "runtime/build/Build.h"
#include "runtime/system/Files.h"
#include "tests/support/NonEmpty.h"

#include <fmt/format.h>

#include <filesystem>
#include <ranges>
#include <regex>

using namespace weft;

namespace {

struct Literal {
  std::string name;
  size_t at, length;
};

void addLiterals(const std::string &text, const std::string &definitions, const char *members,
                 std::vector<Literal> &literals) {
  const std::regex definition(definitions), member(members);
  const std::sregex_iterator end;
  for (std::sregex_iterator one(text.begin(), text.end(), definition); one != end; ++one) {
    const std::string code = one->str();
    for (std::sregex_iterator found(code.begin(), code.end(), member); found != end; ++found)
      literals.push_back({.name = found->str(1),
                          .at = size_t(one->position() + found->position(2)),
                          .length = size_t(found->length(2))});
  }
}

std::vector<Literal> literalsOf(const std::string &text) {
  std::vector<Literal> literals;
  addLiterals(text, R"(constexpr weft::\w+::(Narrow)?Tile \w+ = \{[^;]*;)", R"(\.(\w+) = (\d+))",
              literals);
  addLiterals(text, R"(__device__ weft::[^;]*;)", R"((<|, )(\d+))", literals);
  return literals;
}

}  // namespace

TEST_CASE("tiles and device memory are those of the launch") {
  std::vector<runtime::BuildRequest> requests;
  std::vector<bool> isOrder;
  size_t kernels = 0;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(WEFT_FAMILIES_FOLDER)) {
    if (entry.path().extension() != ".cu") continue;
    const std::string text = runtime::readFile(entry.path());
    const std::vector<Literal> literals = literalsOf(text);
    kernels += !literals.empty();
    std::smatch entryName;
    REQUIRE(std::regex_search(text, entryName, std::regex(R"(\n(\w+)\((const|weft|float))")));
    for (const Literal &literal : literals) {
      std::string edited = text;
      const int64_t value = std::stoll(text.substr(literal.at, literal.length));
      edited.replace(literal.at, literal.length, std::to_string(2 * value));
      requests.push_back({.name = fmt::format("{}: {}", entry.path().stem().string(), literal.name),
                          .text = edited,
                          .entry = entryName.str(1),
                          .architecture = "sm_90a",
                          .extraFlags = {}});
      isOrder.push_back(literal.name == "groupM");
    }
  }
  CHECK(kernels >= 20);
  runtime::BuildOptions options;
  options.useCache = false;
  options.headers = codegen::deviceHeaders();
  const std::vector<runtime::BuildResult> results = runtime::build(requests, options);
  REQUIRE(results.size() == requests.size());
  for (const size_t index : test::nonEmpty(std::views::iota(size_t(0), results.size()))) {
    INFO(requests[index].name << "\n" << results[index].error);
    if (isOrder[index]) CHECK(results[index].error.empty());
    else CHECK(results[index].error.find("static assertion failed") != std::string::npos);
  }
}
