// Every constraint id of ir/SPEC.md has a negative test that breaks it, and every negative test
// names a real constraint.
#include "tests/support/NonEmpty.h"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

using weft::test::nonEmpty;

namespace {

std::string read(const std::filesystem::path &path) {
  std::ifstream file(path);
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

std::set<std::string> idsIn(const std::string &text) {
  const std::regex id("\\b([a-z]+(?:_[a-z]+)*_c[0-9]+)\\b");
  std::set<std::string> ids;
  for (std::sregex_iterator at(text.begin(), text.end(), id), end; at != end; ++at)
    ids.insert((*at)[1]);
  return ids;
}

}  // namespace

TEST_CASE("constraints of the specification and negative tests agree") {
  const std::filesystem::path source = WEFT_SOURCE_DIR;
  const std::set<std::string> specified = idsIn(read(source / "ir" / "SPEC.md"));
  std::set<std::string> tested;
  const std::regex message("expected-error(?:-re)? @\\+1 \\{\\{([a-z_]+_c[0-9]+): ");
  for (const auto &entry :
       std::filesystem::directory_iterator(source / "tests" / "lit" / "invalid")) {
    const std::string text = read(entry.path());
    for (std::sregex_iterator at(text.begin(), text.end(), message), end; at != end; ++at)
      tested.insert((*at)[1]);
  }
  CHECK(specified.size() > 80);
  for (const std::string &id : nonEmpty(specified)) {
    INFO(id << " has no negative test in tests/lit/invalid");
    CHECK(tested.count(id) == 1);
  }
  for (const std::string &id : nonEmpty(tested)) {
    INFO(id << " is not in ir/SPEC.md");
    CHECK(specified.count(id) == 1);
  }
}
