// The command weft-run: checks, exit codes, and that it needs no GPU to say so.
#include <catch2/catch.hpp>

#include "kernel/reference/StoredElement.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/cuda/Driver.h"
#include "runtime/execute/Safetensors.h"
#include "runtime/system/Files.h"
#include "runtime/system/JsonText.h"
#include "tests/support/ExampleArtifact.h"
#include "tests/support/TemporaryTestFolder.h"

#include <fmt/format.h>

#include <cstdio>
#include <functional>

#include <sys/wait.h>

using namespace weft;
using weft::test::exampleArtifact;
using weft::test::TemporaryTestFolder;

namespace {

struct Outcome {
  int code = -1;
  std::string output;  ///< both streams
};

Outcome weftRun(const std::string &arguments, const std::string &environment = "") {
  FILE *pipe = popen(
      fmt::format("{} {}/bin/weft-run {} 2>&1", environment, WEFT_BINARY_DIR, arguments).c_str(),
      "r");
  REQUIRE(pipe);
  Outcome outcome;
  for (int character = fgetc(pipe); character != EOF; character = fgetc(pipe))
    outcome.output.push_back(char(character));
  outcome.code = WEXITSTATUS(pclose(pipe));
  return outcome;
}

/// An artifact x -> t -> y of copies in a folder, and a stand-in for the driver beside it that
/// behaves as `settings` say.
class StandInRun {
public:
  explicit StandInRun(
      const std::string &settings = "", const std::string &second = "copy 1024",
      const std::function<void(Plan &)> &change = [](Plan &) {}) {
    std::filesystem::create_directory(folder / "driver");
    std::filesystem::create_symlink(WEFT_BINARY_DIR "/tests/fakecuda/libcuda.so.1",
                                    folder / "driver/libcuda.so.1");
    runtime::writeFile(folder / "driver/fakecuda.txt", settings);
    runtime::Artifact artifact = exampleArtifact();
    const std::string cubin = "first copy 1024\nsecond " + second + "\n";
    artifact.plan.target = "sm_90a";
    change(artifact.plan);
    artifact.cubins = {{runtime::cubinName(cubin), cubin}};
    for (PlanKernel &kernel : artifact.plan.kernels) kernel.cubin = runtime::cubinName(cubin);
    runtime::writeArtifact(artifact, folder / "out");
  }
  Outcome operator()(const std::string &flags = "") const {
    return weftRun((folder / "out").string() + " " + flags,
                   fmt::format("LD_LIBRARY_PATH={}", (folder / "driver").string()));
  }
  const TemporaryTestFolder folder;
};

}  // namespace

TEST_CASE("inputs of a file come out of the results' file; what is NaN stays NaN and is counted") {
  const StandInRun run;
  runtime::TensorToWrite x{.name = "x",
                           .dtype = DType::f16,
                           .shape = {8, 64},
                           .elements = std::vector<std::byte>(1024, std::byte(0x3c))};
  x.elements[6] = x.elements[7] = std::byte(0xff);
  const std::string in = (run.folder / "in.safetensors").string(),
                    out = (run.folder / "out.safetensors").string();
  runtime::writeSafetensors(in, std::span(&x, 1));
  const Outcome outcome = run(fmt::format("--inputs {} --outputs {} --repeat 3", in, out));
  INFO(outcome.output);
  CHECK(outcome.code == 0);
  CHECK_THAT(
      outcome.output,
      Catch::Contains("y f16 [8, 64]: min 1.05859 max 1.05859 mean 1.05859, 1 NaN, 0 infinite"));
  CHECK(runtime::SafetensorsFile(out).read("y") == x.elements);
}

TEST_CASE("random inputs are those of the stated generator") {
  const StandInRun run;
  const std::string out = (run.folder / "out.safetensors").string();
  REQUIRE(run("--seed 7 --outputs " + out).code == 0);
  // kernel/RandomValues.h for tensor "x", seed 7: computed apart, in another language, from the
  // description alone.
  const std::vector<std::byte> elements = runtime::SafetensorsFile(out).read("y");
  const std::vector<double> expected{1.4091796875, 0.13134765625, 1.1201171875, 1.107421875};
  for (size_t n = 0; n < expected.size(); ++n)
    CHECK(reference::loadElement(DType::f16, elements.data() + 2 * n) == expected[n]);
}

TEST_CASE("inputs that do not fit are named") {
  const StandInRun run;
  const std::string in = (run.folder / "in.safetensors").string();
  const auto with = [&](const std::string &name, DType dtype, std::vector<int64_t> shape) {
    const runtime::TensorToWrite tensor{
        .name = name, .dtype = dtype, .shape = shape, .elements = std::vector<std::byte>(1024)};
    runtime::writeSafetensors(in, std::span(&tensor, 1));
    const Outcome outcome = run("--inputs " + in);
    CHECK(outcome.code == 2);
    return outcome.output;
  };
  CHECK_THAT(with("xx", DType::f16, {8, 64}),
             Catch::Contains("'xx' is none that is read (known: x)"));
  CHECK_THAT(with("x", DType::f16, {64, 8}),
             Catch::Contains("F16 [64, 8]; expected: F16 [8, 64] (b, i)"));
  CHECK_THAT(with("x", DType::bf16, {8, 64}),
             Catch::Contains("BF16 [8, 64]; expected: F16 [8, 64]"));
  runtime::writeFile(in, "short");
  CHECK(run("--inputs " + in).code == 2);
  CHECK(run("--inputs " + in + ".none").code == 2);
}

TEST_CASE("offsets of sequences that do not ascend from 0 are named") {
  const StandInRun run("", "copy 1024", [](Plan &plan) {
    PlanTensor &offsets = plan.tensors[0];
    offsets.dtype = DType::i32;
    offsets.axes = {"o"}, offsets.extents = {256}, offsets.order = {0}, offsets.strides = {1};
    offsets.range = {0, 2550}, offsets.initial = {};
    plan.kernels[0].ops = {{.kind = OpKind::unpack, .results = {"2"}, .operands = {"1", "x"}}};
    plan.kernels[0].inputLayouts = {{{"o"}}};
  });
  const std::string in = (run.folder / "in.safetensors").string();
  const auto with = [&](size_t place, int32_t offset) {
    std::vector<int32_t> offsets(256);
    for (size_t n = 0; n < offsets.size(); ++n) offsets[n] = int32_t(n * 7);
    offsets[place] = offset;
    const std::span<const std::byte> bytes = std::as_bytes(std::span(offsets));
    const runtime::TensorToWrite tensor{
        .name = "x", .dtype = DType::i32, .shape = {256}, .elements = {bytes.begin(), bytes.end()}};
    runtime::writeSafetensors(in, std::span(&tensor, 1));
    return run("--inputs " + in);
  };
  const auto rejects = [&](size_t place, int32_t offset, const char *says) {
    const Outcome outcome = with(place, offset);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.output, Catch::Contains(says));
  };
  rejects(2, 3, "'x' [2] is 3, less than 7 before it: offsets of sequences ascend");
  rejects(0, 4, "'x' [0] is 4: offsets of sequences begin at 0");
  rejects(255, 2551, "'x' [255] is 2551, and there are 2550 tokens at most");
  const Outcome empty = with(3, 14);  // a sequence without tokens
  CHECK(empty.code == 0);
}

TEST_CASE("what the driver cannot do is said, with exit code 3") {
  const auto fails = [](const std::string &settings) {
    const Outcome outcome = StandInRun(settings)();
    CHECK(outcome.code == 3);
    return outcome.output;
  };
  CHECK_THAT(fails("gpus 0"), Catch::Contains("finds no GPU"));
  CHECK_THAT(fails("version 11040"),
             Catch::Contains("too old: it supports CUDA 11.4, weft needs 12.0"));
  CHECK_THAT(fails("initResult 803"), Catch::Contains("different versions"));
  CHECK_THAT(fails("capability 80"),
             Catch::Contains("built for sm_90a") && Catch::Contains("Stand-in (sm_80)"));
  CHECK_THAT(fails("memoryBytes 2000"),
             Catch::Contains("out of GPU memory") && Catch::Contains("would fit"));
  const Outcome other = StandInRun()("--gpu 1");
  CHECK(other.code == 2);
  CHECK_THAT(other.output, Catch::Contains("there is no GPU 1"));
}

TEST_CASE("a hanging kernel ends the command with exit code 1, and its name") {
  const Outcome hang = StandInRun("", "hang")("--limit 0.05");
  CHECK(hang.code == 1);
  CHECK_THAT(hang.output,
             Catch::Contains("kernel second hangs") && Catch::Contains("--kernel second"));
  const Outcome fault = StandInRun("", "fault")("--kernel second");
  CHECK(fault.code == 1);
  CHECK_THAT(fault.output, Catch::Contains("kernel second") && Catch::Contains("ILLEGAL_ADDRESS"));
}

TEST_CASE("a good artifact passes --check and is listed") {
  const TemporaryTestFolder folder;
  runtime::writeArtifact(exampleArtifact(), folder / "out");
  const Outcome text = weftRun((folder / "out").string() + " --check");
  INFO(text.output);
  CHECK(text.code == 0);
  CHECK_THAT(text.output,
             Catch::Contains("first") && Catch::Contains("second") && Catch::Contains("checked"));
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

TEST_CASE("former flags are answered with the present ones") {
  for (const char *arguments : {"time out --branches on", "out --branches=on"}) {
    INFO(arguments);
    const Outcome outcome = weftRun(arguments);
    CHECK(outcome.code == 2);
    CHECK(outcome.output == "weft-run: --branches is now --concurrent\n");
  }
  CHECK(weftRun("time out --parts 2").output ==
        "weft-run: --parts is now --chunks, which weft-run time does not have (weft-run time "
        "--help lists all)\n");
}

TEST_CASE("the hidden worker mode rejects a person") {
  const Outcome outcome = weftRun("--weft-build-worker < /dev/null");
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.output, Catch::Contains("only weft itself"));
}
