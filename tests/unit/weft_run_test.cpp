// The command weft-run: checks, exit codes, and that it needs no GPU to say so.
#include <catch2/catch.hpp>

#include "runtime/Driver.h"
#include "runtime/Files.h"
#include "runtime/JsonText.h"
#include "tests/support/ExampleArtifact.h"
#include "tests/support/TemporaryTestFolder.h"

#include <fmt/format.h>

#include <cstdio>

#include <sys/wait.h>

using namespace weft;
using weft::test::exampleArtifact;
using weft::test::TemporaryTestFolder;

namespace {

struct Outcome {
  int code = -1;
  std::string output;  ///< both streams
};

Outcome weftRun(const std::string &arguments) {
  FILE *pipe = popen(fmt::format("{}/bin/weft-run {} 2>&1", WEFT_BINARY_DIR, arguments).c_str(), "r");
  REQUIRE(pipe);
  Outcome outcome;
  for (int character = fgetc(pipe); character != EOF; character = fgetc(pipe))
    outcome.output.push_back(char(character));
  outcome.code = WEXITSTATUS(pclose(pipe));
  return outcome;
}

}  // namespace

TEST_CASE("a good artifact passes --check and is listed") {
  const TemporaryTestFolder folder;
  runtime::writeArtifact(exampleArtifact(), folder / "out");
  const Outcome text = weftRun((folder / "out").string() + " --check");
  INFO(text.output);
  CHECK(text.code == 0);
  CHECK_THAT(text.output, Catch::Contains("first") && Catch::Contains("second") && Catch::Contains("checked"));
  const Outcome json = weftRun((folder / "out").string() + " --check --json");
  CHECK(json.code == 0);
  CHECK(runtime::parseJson(json.output, "output").at("kernels").size() == 2);
}

TEST_CASE("without a GPU it says why, and exits 3") {
  const std::string problem = runtime::inspectDriver().problem;
  if (problem.empty()) {
    WARN("this machine has a GPU");
    return;
  }
  const TemporaryTestFolder folder;
  runtime::writeArtifact(exampleArtifact(), folder / "out");
  const Outcome outcome = weftRun((folder / "out").string());
  CHECK(outcome.code == 3);
  CHECK_THAT(outcome.output, Catch::Contains("weft-run: ") && Catch::Contains(problem));
}

TEST_CASE("broken artifacts and bad usage") {
  const TemporaryTestFolder folder;
  runtime::writeArtifact(exampleArtifact(), folder / "out");
  CHECK(weftRun("").code == 2);
  CHECK(weftRun("--help").code == 0);
  CHECK(weftRun("--no-such-flag").code == 2);
  CHECK(weftRun((folder / "nowhere").string()).code == 2);
  runtime::writeFile(folder / "out" / runtime::cubinName("binary"), "tampered");
  const Outcome outcome = weftRun((folder / "out").string() + " --check");
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.output, Catch::Contains(runtime::cubinName("binary")));
}

TEST_CASE("the hidden worker mode refuses a person") {
  const Outcome outcome = weftRun("--weft-build-worker < /dev/null");
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.output, Catch::Contains("only weft itself"));
}
