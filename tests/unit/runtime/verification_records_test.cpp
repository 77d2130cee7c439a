// Verification records: as text and back, merged, in files, and what is believed of them.
#include "kernel/Error.h"
#include "runtime/artifact/VerificationRecords.h"
#include "runtime/system/Files.h"
#include "tests/support/TemporaryTestFolder.h"

#include <catch2/catch.hpp>

#include <array>

#include <sys/wait.h>
#include <unistd.h>

using namespace weft;
using namespace weft::runtime;

namespace {

VerificationRecord sample(char digit, const std::string &gpu = "NVIDIA H200",
                          int64_t points = 8192) {
  return {
      .hash = std::string(64, digit), .gpu = gpu, .points = points, .kernel = "softmax__h_b_j_k"};
}

VerificationRecord sample(char digit, Verdict verdict) {
  VerificationRecord record = sample(digit);
  record.verdict = verdict;
  return record;
}

VerificationRecords of(std::initializer_list<VerificationRecord> list) {
  return merged({}, {.records = list});
}

VerificationRecord only(const VerificationRecords &records) {
  REQUIRE(records.size() == 1);
  return records.begin()->second;
}

BuildOptions headers(const std::string &text) {
  static std::string kept;
  kept = text;
  BuildOptions options;
  options.headers = {
      {"weft/a.cuh", "#include \"weft/b.cuh\""}, {"weft/b.cuh", kept}, {"weft/other.cuh", text}};
  return options;
}

const std::string format1 =
    "# weft verified 1\n" + std::string(64, 'a') + " softmax 0.1.0 NVIDIA GeForce RTX 4090\n";

}  // namespace

TEST_CASE("records survive their text, sorted by hash") {
  const VerificationRecords records =
      of({sample('b'), sample('a', "NVIDIA GeForce RTX 4090"), sample('b', "NVIDIA A100"),
          sample('c', Verdict::fails), sample('d', Verdict::planFails)});
  REQUIRE(records.size() == 5);
  const std::string text = printRecords(records);
  CHECK(parseRecords(text, "here") == records);
  CHECK(text.find("aaaa") < text.find("bbbb"));
}

TEST_CASE("records of format 1 are read as those of an older verifier, and printed again as such") {
  const VerificationRecord old = only(parseRecords(format1, "here"));
  CHECK(old.gpu == "NVIDIA GeForce RTX 4090");
  CHECK(old.verifier == 1);
  CHECK(parseRecords(printRecords(parseRecords(format1, "here")), "there") ==
        parseRecords(format1, "here"));
  const Verification known = BelievedRecords(parseRecords(format1, "here"), {}).of(old.hash);
  CHECK(known.state == Verification::State::older);
  CHECK_FALSE(known.agrees());
  CHECK_THAT(describe(known), Catch::Contains("older verifier") && Catch::Contains("RTX 4090"));
}

TEST_CASE("records of format 2 are read, and a stale one is kept and believed in nothing") {
  const std::string line = std::string(64, 'c') + " agrees 2 8 softmax NVIDIA H200\n";
  CHECK(parseRecords("# weft verified 2\n" + line, "here") ==
        parseRecords("# weft verified 3\n" + line, "here"));
  VerificationRecord stale = sample('d');
  stale.verdict = Verdict::stale;
  const std::string text = printRecords(of({stale}));
  CHECK(text.find(" stale ") != std::string::npos);
  CHECK(parseRecords(text, "here") == of({stale}));
  CHECK(BelievedRecords(of({stale}), {}).of(stale.hash).state == Verification::State::never);
  CHECK(
      BelievedRecords(merged(of({stale}), {.records = {sample('d')}}), {}).of(stale.hash).agrees());
}

TEST_CASE(
    "what is no store, of a newer format or of two formats is bad input that names the line") {
  const std::string head = printRecords({}), hash(64, 'a');
  CHECK_THROWS_WITH(parseRecords("# weft profile 1\n", "file"), Catch::Contains("file:1"));
  CHECK_THROWS_WITH(parseRecords("", "file"), Catch::Contains("file") && Catch::Contains("empty"));
  CHECK_THROWS_WITH(parseRecords("# weft verified 4\n", "file"), Catch::Contains("file:1") &&
                                                                     Catch::Contains("format 4") &&
                                                                     Catch::Contains("1 to 3"));
  CHECK_THROWS_WITH(parseRecords(head + "abc agrees 2 8 softmax NVIDIA H200\n", "file"),
                    Catch::Contains("file:3"));
  CHECK_THROWS_WITH(parseRecords(head + hash + " agrees 2 8 softmax\n", "file"),
                    Catch::Contains("GPU"));
  CHECK_THROWS_WITH(parseRecords(head + hash + " perhaps 2 8 softmax NVIDIA H200\n", "file"),
                    Catch::Contains("agrees, fails, plan-fails"));
  CHECK_THROWS_WITH(parseRecords(head + hash + " agrees 2 0 softmax NVIDIA H200\n", "file"),
                    Catch::Contains("file:3"));
  CHECK_THROWS_WITH(parseRecords(head + hash + " agrees 2 -8 softmax NVIDIA H200\n", "file"),
                    Catch::Contains("file:3"));
  CHECK_THROWS_WITH(parseRecords(head + hash + " softmax 0.1.0 NVIDIA H200\n", "file"),
                    Catch::Contains("file:3: a row of format 3"));
  CHECK_THROWS_WITH(parseRecords(head + format1, "file"),
                    Catch::Contains("file:3") && Catch::Contains("one format"));
}

TEST_CASE("adding to a file keeps what it held") {
  const weft::test::TemporaryTestFolder folder;
  const auto file = folder.path() / "below" / "verified.txt";
  CHECK(readRecords(file).empty());
  addRecords({.records = {sample('a')}}, file, RecordStore::machine);
  addRecords({.records = {sample('b')}}, file, RecordStore::machine);
  const std::string once = readFile(file);
  addRecords({.records = {sample('b')}}, file, RecordStore::machine);
  CHECK(readRecords(file) == of({sample('a'), sample('b')}));
  CHECK(readFile(file) == once);
}

TEST_CASE("adding to a store of format 1 keeps its records as old ones") {
  const weft::test::TemporaryTestFolder folder;
  const auto file = folder.path() / "verified.txt";
  writeFile(file, format1);
  addRecords({.records = {sample('b')}}, file, RecordStore::shipped);
  CHECK(readFile(file).starts_with("# weft verified 3\n"));
  const BelievedRecords believed(readRecords(file), {});
  CHECK(believed.of(std::string(64, 'a')).state == Verification::State::older);
  CHECK(believed.of(std::string(64, 'b')).agrees());
}

TEST_CASE(
    "a failure takes the record's place, in this machine's store as a failure, in one that ships "
    "as nothing") {
  const weft::test::TemporaryTestFolder folder;
  const Verdict verdict = GENERATE(Verdict::fails, Verdict::planFails);
  for (const RecordStore store : {RecordStore::machine, RecordStore::shipped}) {
    const auto file =
        folder.path() / (store == RecordStore::machine ? "machine" : "shipped") / "verified.txt";
    addRecords({.records = {sample('a'), sample('b')}}, file, store);
    addRecords({.records = {sample('a', verdict)}}, file, store);
    CHECK(readRecords(file) == (store == RecordStore::machine
                                    ? of({sample('a', verdict), sample('b')})
                                    : of({sample('b')})));
  }
}

TEST_CASE("a failure on this machine outweighs what ships, and is told") {
  const BelievedRecords believed(
      of({sample('a'), sample('b'), sample('c')}),
      of({sample('a', Verdict::fails), sample('b', Verdict::planFails)}));
  CHECK(believed.of(std::string(64, 'a')).state == Verification::State::fails);
  CHECK_THAT(describe(believed.of(std::string(64, 'a'))), Catch::Contains("FAILED on NVIDIA H200"));
  CHECK(believed.of(std::string(64, 'b')).state == Verification::State::planFails);
  CHECK(believed.of(std::string(64, 'c')).agrees());
  CHECK_THAT(describe(believed.of(std::string(64, 'c'))), Catch::Contains("8192 points"));
  CHECK(believed.of(std::string(64, 'd')).state == Verification::State::never);
  CHECK(believed.of("").state == Verification::State::never);
}

TEST_CASE(
    "of records that agree the newer verifier's stays, of one verifier that with more points") {
  const auto behind = [](const VerificationRecord &old, const VerificationRecord &found) {
    return only(merged(of({old}), {.records = {found}}));
  };
  const VerificationRecord few = sample('a', "GPU", 10), many = sample('a', "GPU", 20);
  CHECK(behind(few, many) == many);
  CHECK(behind(many, few) == many);
  VerificationRecord newer = sample('a', "GPU", 10);
  newer.verifier = verifierVersion + 1;
  CHECK(behind(newer, many) == newer);
  CHECK(behind(many, newer) == newer);
  CHECK(BelievedRecords(of({newer}), {}).of(newer.hash).agrees());
}

TEST_CASE("of several kernels of one text all must agree") {
  const VerificationRecord fails = sample('a', Verdict::fails);
  CHECK(only(of({fails, sample('a')})) == fails);
  CHECK(only(of({sample('a'), fails})) == fails);
  CHECK(only(of({sample('a', "GPU", 10), sample('a', "GPU", 20)})).points == 20);
}

TEST_CASE("what a whole plan put in doubt, only a whole plan clears") {
  const VerificationRecords doubted = of({sample('a', Verdict::planFails)});
  CHECK(merged(doubted, {.records = {sample('a')}, .isWhole = false}) == doubted);
  CHECK(merged(doubted, {.records = {sample('a')}, .isWhole = true}) == of({sample('a')}));
  const VerificationRecords failed = of({sample('a', Verdict::fails)});
  CHECK(merged(failed, {.records = {sample('a', Verdict::planFails)}, .isWhole = true}) == failed);
  CHECK(merged(failed, {.records = {sample('a')}, .isWhole = false}) == of({sample('a')}));
}

TEST_CASE("a record binds text, every header that it includes, flags and architecture") {
  const BuildRequest request{.name = "k",
                             .text = "#include \"weft/a.cuh\"\nint x;",
                             .entry = "k",
                             .architecture = "sm_90a",
                             .extraFlags = {}};
  const std::string hash = textHashOf(request, headers("one"));
  CHECK(hash == textHashOf(request, headers("one")));
  CHECK(hash != textHashOf(request, headers("two")));  // which a.cuh includes
  BuildRequest other = request;
  other.architecture = "sm_80";
  CHECK(hash != textHashOf(other, headers("one")));
  other = request;
  other.text += " ";
  CHECK(hash != textHashOf(other, headers("one")));
  other = request;
  other.extraFlags = {"-G"};
  CHECK(hash != textHashOf(other, headers("one")));
  other = request;
  other.name = "another";
  CHECK(hash == textHashOf(other, headers("one")));
}

TEST_CASE("a record is of a text and its launch; one of verifier 1 is of the text alone") {
  PlanKernel kernel;
  kernel.textHash = std::string(64, 'a');
  kernel.grid = {132, 1, 1};
  kernel.block = {384, 1, 1};
  kernel.sharedBytes = 4096;
  VerificationRecord found = sample('a');
  found.hash = recordHashOf(kernel);
  const BelievedRecords believed({}, of({found}));
  CHECK(believed.of(kernel).agrees());
  const auto changed = [&](const auto &change) {
    PlanKernel other = kernel;
    change(other);
    return believed.of(other).state;
  };
  using State = Verification::State;
  CHECK(changed([](PlanKernel &other) { other.grid[0] = 64; }) == State::never);
  CHECK(changed([](PlanKernel &other) { other.block[0] = 256; }) == State::never);
  CHECK(changed([](PlanKernel &other) { other.sharedBytes = 8192; }) == State::never);
  CHECK(changed([](PlanKernel &other) { other.workspaceBytes = 8192; }) == State::never);
  CHECK(changed([](PlanKernel &other) { other.textHash[0] = 'b'; }) == State::never);
  CHECK(changed([](PlanKernel &other) { other.edited = true; }) == State::never);
  CHECK(recordHashOf(PlanKernel()).empty());
  // A record of the text counts only as what it is: an older verifier's.
  CHECK(BelievedRecords({}, of({sample('a')})).of(kernel).state == State::never);
  VerificationRecord old = sample('a');
  old.verifier = 1;
  CHECK(BelievedRecords(of({old}), {}).of(kernel).state == State::older);
  const BelievedRecords failed({}, of({sample('a', Verdict::fails)}));
  CHECK(failed.of(kernel).state == State::fails);
}

TEST_CASE("the shipped store is well-formed and not empty") {
  CHECK(shippedRecords().size() > 100);
}

TEST_CASE("processes that add at once lose no record") {
  const test::TemporaryTestFolder folder;
  const std::filesystem::path file = folder.path() / "deep" / "verified.txt";
  constexpr std::array digits = {'1', '2', '3', '4', '5', '6', '7', '8'};
  constexpr int each = 20;
  const auto hashOf = [](char digit, int n) {
    return std::string(62, digit) + fmt::format("{:02}", n);
  };
  std::vector<pid_t> children;
  for (const char digit : digits) {
    children.push_back(fork());
    REQUIRE(children.back() >= 0);
    if (children.back() > 0) continue;
    for (int n = 0; n < each; ++n) {
      VerificationRecord record = sample(digit);
      record.hash = hashOf(digit, n);
      addRecords({.records = {record}}, file, RecordStore::machine);
    }
    _exit(0);
  }
  for (const pid_t child : children) {
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  const VerificationRecords all = readRecords(file);
  CHECK(all.size() == digits.size() * each);
  for (const char digit : digits)
    for (int n = 0; n < each; ++n) CHECK(all.contains({hashOf(digit, n), "NVIDIA H200"}));
  CHECK(std::distance(std::filesystem::directory_iterator(file.parent_path()), {}) == 1);
}
