// Stamps of verified kernels: as text and back, in files, and in plans.
#include "kernel/Error.h"
#include "runtime/Files.h"
#include "runtime/Stamps.h"
#include "tests/support/TemporaryTestFolder.h"

#include <catch2/catch.hpp>

#include <array>

#include <sys/wait.h>
#include <unistd.h>

using namespace weft;
using namespace weft::runtime;

namespace {

Stamp sample(char digit, const std::string &gpu = "NVIDIA H200") {
  return {.textHash = std::string(64, digit), .kernel = "softmax__h_b_j_k", .tool = "0.1.0", .gpu = gpu};
}

Stamps of(std::initializer_list<Stamp> list) {
  Stamps stamps;
  for (const Stamp &stamp : list) stamps[stamp.textHash] = stamp;
  return stamps;
}

BuildOptions headers(const std::string &text) {
  static std::string kept;
  kept = text;
  BuildOptions options;
  options.headers = {{"weft/a.cuh", kept}};
  return options;
}

}  // namespace

TEST_CASE("stamps survive their text, sorted by hash") {
  const Stamps stamps = of({sample('b'), sample('a', "NVIDIA GeForce RTX 4090")});
  const std::string text = printStamps(stamps);
  CHECK(parseStamps(text, "here") == stamps);
  CHECK(text.find("aaaa") < text.find("bbbb"));
}

TEST_CASE("what is no store of stamps is bad input that names the line") {
  CHECK_THROWS_WITH(parseStamps("# weft profile 1\n", "file"), Catch::Contains("file:1"));
  CHECK_THROWS_WITH(parseStamps(printStamps({}) + "abc softmax 0.1.0 NVIDIA H200\n", "file"), Catch::Contains("file:3"));
  CHECK_THROWS_WITH(parseStamps(printStamps({}) + std::string(64, 'a') + " softmax 0.1.0\n", "file"), Catch::Contains("GPU"));
}

TEST_CASE("adding to a file keeps what it held") {
  const weft::test::TemporaryTestFolder folder;
  const auto file = folder.path() / "below" / "verified.txt";
  CHECK(readStamps(file).empty());
  addStamps(of({sample('a')}), file);
  addStamps(of({sample('b')}), file);
  const std::string once = readFile(file);
  addStamps(of({sample('b')}), file);
  CHECK(readStamps(file) == of({sample('a'), sample('b')}));
  CHECK(readFile(file) == once);
}

TEST_CASE("a stamp belongs to one exact text") {
  PlanKernel kernel;
  stamp(kernel, std::string(64, 'a'), of({sample('a')}));
  CHECK(kernel.verifiedOn == "NVIDIA H200");
  stamp(kernel, std::string(64, 'a'), {});
  CHECK(kernel.verifiedOn == "NVIDIA H200");  // what the plan holds stays
  stamp(kernel, std::string(64, 'b'), of({sample('a')}));
  CHECK(kernel.verifiedOn == "");
}

TEST_CASE("the hash of a text follows its headers and its architecture") {
  const BuildRequest request{.name = "k", .text = "#include \"weft/a.cuh\"\nint x;", .entry = "k", .architecture = "sm_90a", .extraFlags = {}};
  const std::string hash = textHashOf(request, headers("one"));
  CHECK(hash == textHashOf(request, headers("one")));
  CHECK(hash != textHashOf(request, headers("two")));
  BuildRequest other = request;
  other.architecture = "sm_80";
  CHECK(hash != textHashOf(other, headers("one")));
  other = request;
  other.name = "another";
  CHECK(hash == textHashOf(other, headers("one")));
}

TEST_CASE("the shipped store is well-formed") { CHECK_NOTHROW(shippedStamps()); }

TEST_CASE("processes that add at once lose no stamp") {
  const test::TemporaryTestFolder folder;
  const std::filesystem::path file = folder.path() / "deep" / "verified.txt";
  constexpr std::array digits = {'1', '2', '3', '4', '5', '6', '7', '8'};
  constexpr int each = 20;
  const auto hashOf = [](char digit, int n) { return std::string(62, digit) + fmt::format("{:02}", n); };
  std::vector<pid_t> children;
  for (const char digit : digits) {
    children.push_back(fork());
    REQUIRE(children.back() >= 0);
    if (children.back() > 0) continue;
    for (int n = 0; n < each; ++n) {
      Stamp stamp = sample(digit);
      stamp.textHash = hashOf(digit, n);
      addStamps({{stamp.textHash, stamp}}, file);
    }
    _exit(0);
  }
  for (const pid_t child : children) {
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  const Stamps all = readStamps(file);
  CHECK(all.size() == digits.size() * each);
  for (const char digit : digits)
    for (int n = 0; n < each; ++n) CHECK(all.contains(hashOf(digit, n)));
  CHECK(std::distance(std::filesystem::directory_iterator(file.parent_path()), {}) == 1);
}
