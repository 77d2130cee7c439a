// weft-run time on the stand-in for the driver, whose events are always a millisecond apart: what
// is measured, how it is reported, what is rejected.
#include "runtime/artifact/Artifact.h"
#include "runtime/system/Files.h"
#include "runtime/system/JsonText.h"
#include "tests/support/ExampleArtifact.h"
#include "tests/support/TemporaryTestFolder.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

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

/// An artifact x -> t -> y of two copies, `first` and `second`, and a driver beside it.
class Timing {
public:
  Timing() {
    std::filesystem::create_directory(folder / "driver");
    std::filesystem::create_symlink(WEFT_BINARY_DIR "/tests/fakecuda/libcuda.so.1",
                                    folder / "driver/libcuda.so.1");
    runtime::writeFile(folder / "driver/fakecuda.txt", "");
    runtime::Artifact artifact = exampleArtifact();
    const std::string cubin = "first copy 1024\nsecond copy 1024\n";
    artifact.plan.target = "sm_90a";
    artifact.cubins = {{runtime::cubinName(cubin), cubin}};
    for (PlanKernel &kernel : artifact.plan.kernels) kernel.cubin = runtime::cubinName(cubin);
    runtime::writeArtifact(artifact, folder / "out");
  }
  Outcome operator()(const std::string &flags) const {
    const std::string command =
        fmt::format("cd {} && LD_LIBRARY_PATH=driver {}/bin/weft-run time {} 2>&1",
                    folder.path().string(), WEFT_BINARY_DIR, flags);
    FILE *pipe = popen(command.c_str(), "r");
    REQUIRE(pipe);
    Outcome outcome;
    for (int character = fgetc(pipe); character != EOF; character = fgetc(pipe))
      outcome.output.push_back(char(character));
    outcome.code = WEXITSTATUS(pclose(pipe));
    INFO(outcome.output);
    return outcome;
  }
  nlohmann::json json(const std::string &flags) const {
    const Outcome outcome = (*this)(flags + " --json");
    INFO(outcome.output);
    REQUIRE(outcome.code == 0);
    return nlohmann::json::parse(outcome.output);
  }

  void edit(const std::string &file) const {
    runtime::writeFile(folder / "out" / file, "// tuned by hand\n");
  }

private:
  const TemporaryTestFolder folder;
};

}  // namespace

TEST_CASE("the whole and every kernel: medians over rounds of several calls") {
  const nlohmann::json report = Timing().json("out --warm --rounds 5");
  const nlohmann::json &plan = report["plans"].at(0);
  REQUIRE(plan["kernels"].size() == 2);
  CHECK(plan["kernels"][0]["name"] == "first");
  // A trial of 3 calls takes the stand-in's millisecond, a round should take two: 6 calls in its
  // millisecond.
  for (const nlohmann::json *one :
       {&plan["whole"], &plan["kernels"][0]["seconds"], &plan["kernels"][1]["seconds"]}) {
    CHECK((*one)["callsPerRound"] == 6);
    CHECK((*one)["median"].get<double>() == Approx(1e-3 / 6));
    CHECK((*one)["n"] == 5);
    CHECK((*one)["eviction"] == "none");
  }
  CHECK(plan["sumOfKernels"].get<double>() == Approx(2e-3 / 6));
}

TEST_CASE("one kernel alone, and against another artifact in the same rounds") {
  const Timing time;
  const nlohmann::json report = time.json("out --against out --kernel second --warm --rounds 3");
  REQUIRE(report["plans"].size() == 2);
  CHECK(report["plans"][1]["kernels"].size() == 1);
  CHECK(report["plans"][1]["whole"].is_null());
  CHECK(report["timesAsFast"]["median"].get<double>() == Approx(1));
  const Outcome text = time("out --against out --warm --rounds 3");
  CHECK_THAT(text.output, Catch::Contains("out is 1.000x as fast as out") &&
                              Catch::Contains("sum of kernels") && Catch::Contains("whole graph") &&
                              Catch::Contains("warm L2, n=3 rounds"));
}

TEST_CASE("cold calls of small kernels go around sets of operands") {
  const nlohmann::json report = Timing().json("out --kernel first --rounds 1");
  const nlohmann::json &seconds = report["plans"].at(0)["kernels"].at(0)["seconds"];
  // The stand-in has an L2 of 132 bytes; one set of two operands is larger than what must be
  // touched between two uses.
  CHECK(seconds["eviction"] == "rotation");
  CHECK(seconds["sets"] == 2);
}

TEST_CASE("cold calls of the whole go around copies of everything, warm ones stay") {
  const Timing time;
  const nlohmann::json cold = time.json("out --rounds 1")["plans"].at(0)["whole"];
  CHECK(cold["eviction"] == "rotation");
  CHECK(cold["sets"] == 2);
  CHECK(time.json("out --rounds 1 --warm")["plans"].at(0)["whole"]["sets"] == 1);
}

TEST_CASE("the price of a kernel's generated text is not held against the text that was edited") {
  const Timing time;
  time.edit("kernels/first.cu");
  const nlohmann::json kernels = time.json("out --warm --rounds 1")["plans"].at(0)["kernels"];
  REQUIRE(kernels.size() == 2);
  CHECK(kernels[0]["timeSource"] == "edited");
  CHECK(kernels[1]["timeSource"] == "estimated");
  const std::string text = time("out --warm --rounds 1").output;
  const std::string row =
      text.substr(text.find("\nfirst ") + 1, text.find("\nsecond ") - text.find("\nfirst "));
  CHECK_THAT(row, Catch::Contains(" edited "));
  CHECK_THAT(text.substr(text.find("\nsecond ")), !Catch::Contains("edited"));
}

TEST_CASE("what weft-run time rejects") {
  const Timing time;
  const auto fails = [&](const std::string &flags, const std::string &says) {
    const Outcome outcome = time(flags);
    INFO(outcome.output);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.output, Catch::Contains(says));
  };
  fails("", "DIR is required");
  fails("nowhere", "nowhere is no artifact");
  fails("out --against nowhere", "nowhere is no artifact");
  fails("out --cold --warm", "--cold and --warm exclude each other");
  fails("out --rounds 0", "--rounds 0: at least one round");
  fails("out --kernel frist", "out has no kernel 'frist'");
  fails("out --entry backward", "out has no entry point 'backward'");
  fails("out --gpu 3", "there is no GPU 3");
}
