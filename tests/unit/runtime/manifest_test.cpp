// What weft wrote into an artifact: edits are found without emitting, by file and by member of
// plan.json, and nothing else in a folder is ever replaced.
#include <catch2/catch.hpp>

#include "kernel/Error.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/artifact/VerificationRecords.h"
#include "runtime/system/Files.h"
#include "runtime/system/JsonText.h"
#include "runtime/system/Sha256.h"
#include "tests/support/ExampleArtifact.h"
#include "tests/support/NonEmpty.h"
#include "tests/support/TemporaryTestFolder.h"

#include <set>

#include <sys/stat.h>

using namespace weft;
using namespace weft::runtime;
using nlohmann::json;
using weft::test::exampleArtifact;
using weft::test::TemporaryTestFolder;
namespace fs = std::filesystem;

namespace {

std::map<std::string, std::string> contentOf(const fs::path &folder) {
  std::map<std::string, std::string> content;
  for (const fs::directory_entry &entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      content[fs::relative(entry.path(), folder)] = readFile(entry.path());
  return content;
}

template <typename Call>
std::string errorOf(Call &&call) {
  try {
    call();
  } catch (const Error &error) {
    CHECK(int(error.kind) == int(ErrorKind::badInput));
    return error.what();
  }
  FAIL("no error");
  return {};
}

/// An artifact in a folder, and its plan.json to be edited.
struct Written {
  TemporaryTestFolder folder;
  fs::path out = folder / "out";
  json plan;
  Written() {
    writeArtifact(exampleArtifact(), out);
    plan = json::parse(readFile(out / "plan.json"));
  }
  void writePlan() const { writeFile(out / "plan.json", prettyText(plan)); }
};

}  // namespace

TEST_CASE(
    "the manifest holds the hash of every file, and nothing is edited in what was just written") {
  const Written written;
  const Manifest manifest = parseManifest(readFile(written.out / manifestFile), "m");
  std::map<std::string, std::string> hashes;
  for (const auto &[name, content] : contentOf(written.out))
    if (name != manifestFile) hashes[name] = sha256(content);
  REQUIRE(hashes.size() == 6);
  CHECK(manifest.files == hashes);
  CHECK(manifest.plan == written.plan);
  const Artifact read = readArtifact(written.out);
  CHECK(read.edited.empty());
  CHECK(read.planEdits.empty());
  CHECK(editLines(read).empty());
  CHECK(parseManifest(printManifest(manifest), "m") == manifest);
}

TEST_CASE("malformed manifests are rejected by name") {
  const std::string good =
      printManifest({.files = {{"plan.json", sha256("")}}, .plan = json::object()});
  REQUIRE_NOTHROW(parseManifest(good, "m"));
  for (const std::string &bad :
       {std::string("[]"), std::string("{"), good.substr(0, good.size() / 2), good + "x"})
    CHECK_THAT(errorOf([&] { parseManifest(bad, "some/manifest.json"); }),
               Catch::StartsWith("some/manifest.json"));
  for (const auto &[member, value] : std::map<std::string, json>{
           {"formatVersion", "0"}, {"files", {{"a", "12"}}}, {"plan", 1}, {"more", 1}}) {
    json broken = json::parse(good);
    broken[member] = value;
    CHECK_THAT(errorOf([&] { parseManifest(broken.dump(), "some/manifest.json"); }),
               Catch::StartsWith("some/manifest.json"));
  }
}

TEST_CASE("edited, added and missing files are named without emitting") {
  const Written written;
  writeFile(written.out / "kernels/first.cu", "// tuned\n");
  writeFile(written.out / "graph.mlir", "module { }\n");
  writeFile(written.out / "report.json", "{}\n");
  const Artifact read = readArtifact(written.out);
  CHECK(read.edited == std::vector<std::string>{"graph.mlir", "kernels/first.cu", "report.json"});
  CHECK(editLines(read).size() == 3);
}

TEST_CASE(
    "a kernel whose text was edited is not measured, before any emit and after it is written "
    "again") {
  const TemporaryTestFolder folder;
  Artifact artifact = exampleArtifact();
  for (PlanKernel &kernel : artifact.plan.kernels) kernel.measured = true;
  artifact.plan.measurement =
      PlanMeasurement{.seconds = 1, .spread = 0, .ratio = 1, .gpu = "a GPU", .protocol = "p"};
  writeArtifact(artifact, folder / "out");
  writeFile(folder / "out/kernels/first.cu", "// tuned\n");
  Artifact read = readArtifact(folder / "out");
  for (int round = 0; round < 2; ++round) {
    const PlanKernel &first = read.plan.kernels[0], &second = read.plan.kernels[1];
    CHECK((first.edited && !first.measured));
    CHECK(std::string(nameOf(timeSourceOf(first))) == "edited");
    CHECK((!second.edited && second.measured));
    CHECK(std::string(nameOf(timeSourceOf(second))) == "measured");
    CHECK_FALSE(read.plan.measurement);
    CHECK(read.edited == std::vector<std::string>{"kernels/first.cu"});
    writeArtifact(read, folder / "again");
    read = readArtifact(folder / "again");
  }
}

TEST_CASE(
    "every member of a plan that a person does not choose is told with what was written, and not "
    "believed where it is a claim") {
  const json plan = toJson(exampleArtifact().plan);
  const std::set<std::string> choices{"device",     "target", "memoryPlan",     "entryPoints",
                                      "concurrent", "order",  "buffer",         "offset",
                                      "knobs",      "after",  "workspaceBuffer"};
  size_t derived = 0;
  const json flat = plan.flatten();
  for (const auto &[place, value] : flat.items()) {  // may be empty: what was seen is counted below
    json edited = plan;
    const json::json_pointer pointer(place);
    edited[pointer] = value.is_number()    ? json(value.get<double>() + 1)
                      : value.is_boolean() ? json(!value.get<bool>())
                                           : json("forged");
    const std::vector<PlanEdit> edits = planEdits(plan, edited);
    INFO(place);
    REQUIRE_FALSE(edits.empty());
    const bool isChoice = std::ranges::any_of(choices, [&](const std::string &choice) {
      return (place + "/").find("/" + choice + "/") != std::string::npos;
    });
    CHECK(std::ranges::all_of(edits,
                              [&](const PlanEdit &edit) { return edit.isDerived == !isChoice; }));
    derived += !isChoice;
    if (edits.front().isClaim) CHECK(withoutEditedClaims(edited, edits) == plan);
    if (place == "/kernels/1/seconds") {
      CHECK(edits.front().isClaim);
      CHECK_THAT(describe(edits.front()),
                 Catch::StartsWith("kernel 'second': member \"seconds\" is 1.3") &&
                     Catch::Contains("weft wrote 0.3"));
    }
  }
  CHECK(derived > 50);
  CHECK(planEdits(plan, plan).empty());
}

TEST_CASE(
    "kernels are paired by name: one that is gone, is new or moved does not shift the others") {
  const json plan = toJson(exampleArtifact().plan);
  json edited = plan;
  edited["kernels"].erase(0);
  std::vector<PlanEdit> edits = planEdits(plan, edited);
  REQUIRE(edits.size() == 1);
  CHECK(describe(edits[0]) == "kernel 'first' is gone");
  edited = plan;
  edited["kernels"].insert(edited["kernels"].begin(), plan["kernels"][1]);
  edited["kernels"][0]["name"] = "third";
  edits = planEdits(plan, edited);
  REQUIRE(edits.size() == 1);
  CHECK(describe(edits[0]) == "kernel 'third' is not of weft");
}

TEST_CASE("what an edit says follows from its members, whatever names and values read like") {
  const json kernel = {{"name", "k: member x"}, {"note", "weft wrote it"}},
             other = {{"name", "k: member x"}, {"note", "a person"}};
  const json none = {{"kernels", json::array()}}, one = {{"kernels", {kernel}}},
             edited = {{"kernels", {other}}};
  CHECK(describe(planEdits(one, none).at(0)) == "kernel 'k: member x' is gone");
  CHECK(describe(planEdits(none, one).at(0)) == "kernel 'k: member x' is not of weft");
  CHECK(
      describe(planEdits(edited, one).at(0), "weft derives") ==
      "kernel 'k: member x': member \"note\" is \"weft wrote it\", and weft derives \"a person\"");
}

TEST_CASE(
    "who looks at a plan sees what weft wrote in place of forged claims, and who runs it is "
    "rejected by name") {
  Written written;
  written.plan["kernels"][0]["seconds"] = 4.1e-7;
  written.plan["kernels"][0]["measured"] = true;
  written.writePlan();
  const Artifact read = readArtifact(written.out, Cubins::left);
  CHECK(read.plan == exampleArtifact().plan);
  CHECK(editLines(read).size() == 2);  // both claims
  CHECK_THAT(errorOf([&] { readArtifact(written.out); }),
             Catch::Contains("plan.json") && Catch::Contains("kernel 'first': member") &&
                 Catch::Contains("weft wrote"));
}

TEST_CASE("a launch that was edited is not run; a choice is") {
  Written written;
  SECTION("grid") {
    written.plan["kernels"][1]["grid"] = {7, 1, 1};
    written.writePlan();
    CHECK_THAT(
        errorOf([&] { readArtifact(written.out); }),
        Catch::Contains("kernel 'second': member \"grid\" is [7,1,1], and weft wrote [1,1,1]"));
  }
  SECTION("dependencies") {
    written.plan["concurrent"] = true;
    written.writePlan();
    CHECK(readArtifact(written.out).plan.concurrent);
  }
}

TEST_CASE(
    "an artifact without a manifest is readable, is not believed, and is not replaced unless "
    "asked to") {
  Written written;
  for (auto &kernel : written.plan["kernels"]) kernel["measured"] = true;
  written.writePlan();
  fs::remove(written.out / manifestFile);
  writeFile(written.out / "notes.txt", "mine");
  const Artifact read = readArtifact(written.out);
  CHECK_FALSE(read.manifest);
  REQUIRE(editLines(read).size() == 1);
  CHECK_THAT(editLines(read).front(), Catch::Contains("no manifest.json: edits cannot be told"));
  CHECK_FALSE(read.plan.measurement);
  for (const PlanKernel &kernel : test::nonEmpty(read.plan.kernels)) {
    CHECK_FALSE(kernel.measured);
    CHECK(timeSourceOf(kernel) == (isView(kernel) ? TimeSource::none : TimeSource::unknown));
    if (!isView(kernel))
      CHECK(BelievedRecords({}, {}).of(kernel).state == Verification::State::unknown);
  }
  const auto before = contentOf(written.out);
  CHECK_THAT(errorOf([&] { writeArtifact(exampleArtifact(), written.out); }),
             Catch::Contains("no manifest.json") && Catch::Contains("--overwrite"));
  CHECK(contentOf(written.out) == before);
  writeArtifact(exampleArtifact(), written.out, {.everything = true});
  CHECK(readArtifact(written.out).manifest);
  CHECK(readFile(written.out / "notes.txt") == "mine");
}

TEST_CASE("a folder that merely holds a plan.json is not replaced, also when asked to") {
  const TemporaryTestFolder folder;
  fs::create_directory(folder / "travel");
  writeFile(folder / "travel/plan.json", "{\"monday\": \"Rome\"}");
  writeFile(folder / "travel/tickets.txt", "paid");
  const auto before = contentOf(folder.path());
  for (const bool everything : {false, true})
    CHECK_THAT(errorOf([&] {
                 writeArtifact(exampleArtifact(), folder / "travel", {.everything = everything});
               }),
               Catch::Contains("plan.json, tickets.txt") && Catch::Contains("not overwritten"));
  CHECK(contentOf(folder.path()) == before);
}

TEST_CASE("files that weft did not write are kept: the same files, links, empty folders and all") {
  const Written written;
  writeFile(written.out / "notes.txt", "mine");
  fs::create_directories(written.out / "runs/empty");
  writeFile(written.out / "runs/log", "1 2 3");
  writeFile(written.out / "kernels/mine.cu", "// not of the plan\n");
  fs::create_symlink("/nowhere/at/all", written.out / "link");
  REQUIRE(chmod((written.out / "runs").c_str(), 0700) == 0);
  struct stat before {
  }, after{};
  REQUIRE(stat((written.out / "notes.txt").c_str(), &before) == 0);
  Artifact next = exampleArtifact();
  next.plan.model = "next";
  writeArtifact(next, written.out);
  CHECK(readArtifact(written.out).plan.model == "next");
  CHECK(readArtifact(written.out).edited.empty());
  REQUIRE(stat((written.out / "notes.txt").c_str(), &after) == 0);
  CHECK(before.st_ino == after.st_ino);
  CHECK(readFile(written.out / "notes.txt") == "mine");
  CHECK(readFile(written.out / "runs/log") == "1 2 3");
  CHECK(readFile(written.out / "kernels/mine.cu") == "// not of the plan\n");
  CHECK(fs::is_directory(written.out / "runs/empty"));
  CHECK((fs::status(written.out / "runs").permissions() & fs::perms::others_all) ==
        fs::perms::none);
  CHECK(fs::read_symlink(written.out / "link") == "/nowhere/at/all");
}

TEST_CASE("a file that weft would write over one that it did not write is rejected by name") {
  const Written written;
  Artifact next = exampleArtifact();
  next.listings["ptx/first.ptx"] = "// ptx\n";
  fs::create_directory(written.out / "ptx");
  writeFile(written.out / "ptx/first.ptx", "// my own\n");
  const auto before = contentOf(written.out);
  CHECK_THAT(errorOf([&] { writeArtifact(next, written.out, {.everything = true}); }),
             Catch::Contains("ptx/first.ptx") && Catch::Contains("not weft's"));
  CHECK(contentOf(written.out) == before);
}

TEST_CASE("edited files are replaced only by who was asked to, or who has read them") {
  const Written written;
  writeFile(written.out / "kernels/first.cu", "// tuned\n");
  const auto before = contentOf(written.out);
  CHECK_THAT(errorOf([&] { checkOutputFolder(written.out); }),
             Catch::Contains("kernels/first.cu") && Catch::Contains("--overwrite"));
  CHECK_THAT(errorOf([&] { writeArtifact(exampleArtifact(), written.out); }),
             Catch::Contains("kernels/first.cu"));
  CHECK_THAT(
      errorOf([&] { writeArtifact(exampleArtifact(), written.out, {.edited = {"plan.json"}}); }),
      Catch::Contains("kernels/first.cu"));
  CHECK(contentOf(written.out) == before);
  SECTION("asked") { writeArtifact(exampleArtifact(), written.out, {.everything = true}); }
  SECTION("read") {
    writeArtifact(exampleArtifact(), written.out, {.edited = {"kernels/first.cu"}});
  }
  CHECK(readFile(written.out / "kernels/first.cu") == "// first\n");
}

TEST_CASE(
    "a symbolic link as output is followed, one to nothing rejected, and neither is replaced") {
  const Written written;
  fs::create_directory_symlink(written.out, written.folder / "latest");
  Artifact next = exampleArtifact();
  next.plan.model = "next";
  writeArtifact(next, written.folder / "latest");
  CHECK(fs::is_symlink(written.folder / "latest"));
  CHECK(readArtifact(written.out).plan.model == "next");
  fs::create_symlink(written.folder / "gone", written.folder / "dangling");
  CHECK_THAT(errorOf([&] { writeArtifact(next, written.folder / "dangling"); }),
             Catch::Contains("symbolic link to nothing"));
  CHECK(fs::is_symlink(written.folder / "dangling"));
}
