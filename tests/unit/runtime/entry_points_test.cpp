// Plans with several entry points on a stand-in for the driver: who saves what for whom, and the
// steps of dropout.
#include <catch2/catch.hpp>

#include "kernel/Error.h"
#include "runtime/execute/Executor.h"
#include "runtime/execute/RandomInputs.h"
#include "tests/support/ExampleArtifact.h"
#include "tests/support/fakecuda/FakeCuda.h"

#include <dlfcn.h>

using namespace weft;
using namespace weft::runtime;

namespace {

const cuda::Context &context() {
  static void *library =
      dlopen(WEFT_BINARY_DIR "/tests/fakecuda/libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  REQUIRE(library);
  static const cuda::Context one(0);
  return one;
}

/// forward: x -> t -> y; backward: t -> d_x. Every kernel copies.
Artifact forwardAndBackward() {
  Artifact artifact = weft::test::exampleArtifact();
  Plan &plan = artifact.plan;
  plan.target = "sm_90a";
  plan.workspaceBytes = 1024;
  plan.tensors.push_back(weft::test::tensorOf("d_x", TensorRole::result, 3));
  plan.kernels.push_back(weft::test::kernelOf("third", 1, 3));
  plan.kernels[2].after = {0};
  plan.entryPoints = {{EntryPointKind::forward, {0, 1}}, {EntryPointKind::backward, {2}}};
  const std::string cubin = "first copy 1024\nsecond copy 1024\nthird copy 1024\n";
  artifact.cubins = {{cubinName(cubin), cubin}};
  for (PlanKernel &kernel : plan.kernels) kernel.cubin = cubinName(cubin);
  return artifact;
}

std::string rejectionOf(const Plan &plan) {
  try {
    verify(plan, "plan.json");
  } catch (const Error &error) {
    CHECK(error.kind == ErrorKind::badInput);
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("entry points are listed in the order of their kernels, the whole one last") {
  const Artifact artifact = forwardAndBackward();
  REQUIRE_NOTHROW(verify(artifact.plan, "plan.json"));
  const std::vector<EntryPoint> entries = PlanMemory(artifact.plan).entryPoints();
  REQUIRE(entries.size() == 3);
  CHECK(entries[0].name == "forward");
  CHECK(entries[0].inputs == std::vector{0});
  CHECK(entries[0].outputs == std::vector{2});
  CHECK_FALSE(entries[0].continues);
  CHECK(entries[1].name == "backward");
  CHECK(entries[1].inputs.empty());
  CHECK(entries[1].outputs == std::vector{3});
  CHECK(entries[1].continues);
  CHECK(entries[2].name == "all");
  CHECK(entries[2].kernels == std::vector{0, 1, 2});
  CHECK_FALSE(entries[2].continues);
}

TEST_CASE("a result that a later entry point reads is its input") {
  Artifact artifact = forwardAndBackward();
  artifact.plan.kernels[2] = weft::test::kernelOf("third", 2, 3);
  artifact.plan.kernels[2].after = {1};
  const EntryPoint backward = PlanMemory(artifact.plan).entryPoints()[1];
  CHECK(backward.inputs == std::vector{2});
  CHECK(backward.outputs == std::vector{3});
  CHECK(backward.continues);
}

TEST_CASE("what one entry point saves is there when the next is called") {
  Executor executor(forwardAndBackward(), context());
  cuda::Stream stream;
  executor.poison();
  const std::vector<std::byte> input = randomElements(executor.plan().tensors[0], 5);
  executor.write(0, input);
  const EntryPoint &backward = executor.entryPoint("backward");
  const std::vector<const EntryPoint *> before = executor.entryPointsBefore(backward);
  REQUIRE(before.size() == 1);
  CHECK(before[0]->name == "forward");
  executor.launch(*before[0], stream.handle());
  CHECK(executor.read(2) == input);
  CHECK(executor.read(3) != input);
  executor.launch(backward, stream.handle());
  CHECK(executor.read(3) == input);

  executor.poison();
  CHECK(executor.entryPoint("").name == "all");
  CHECK(executor.entryPointsBefore(executor.entryPoint("")).empty());
  executor.launch(executor.entryPoint(""), stream.handle());
  CHECK(executor.read(2) == input);
  CHECK(executor.read(3) == input);
}

TEST_CASE("forward and backward of a call take one step of dropout") {
  Artifact artifact = forwardAndBackward();
  for (const int kernel : {0, 2})
    artifact.plan.kernels[size_t(kernel)].parameters.push_back(
        {.kind = ParameterKind::dropoutKey,
         .name = "key",
         .type = {ParameterType::Kind::dropoutKey}});
  const std::string cubin =
      "first key\nsecond copy 1024\nthird key\n";  // the key instead of what would be computed
  artifact.cubins = {{cubinName(cubin), cubin}};
  for (PlanKernel &kernel : artifact.plan.kernels) kernel.cubin = cubinName(cubin);
  Executor executor(artifact, context(), {.seed = 7, .step = 40, .advanceStep = true});
  cuda::Stream stream;
  const auto stepIn = [&](int tensor) {
    std::array<uint64_t, 2> key{};
    cuda::download(std::as_writable_bytes(std::span(key)),
                   executor.ownBindings().addressOf(executor.plan().tensors[size_t(tensor)]));
    CHECK(key[0] == 7);
    return key[1];
  };
  for (uint64_t step = 40; step < 43; ++step) {
    executor.launch(executor.entryPoint("forward"), stream.handle());
    CHECK(stepIn(1) == step);
    executor.launch(executor.entryPoint("backward"), stream.handle());
    CHECK(stepIn(3) == step);
  }
  executor.launch(executor.entryPoint("all"), stream.handle());
  CHECK(stepIn(1) == 43);
  CHECK(stepIn(3) == 43);
}

TEST_CASE("entry points of no known name are rejected, and that of all together is none") {
  const nlohmann::json json = toJson(forwardAndBackward().plan);
  CHECK(planFromJson(json, "plan.json") == forwardAndBackward().plan);
  for (const char *name : {"all", "onward", ""}) {
    nlohmann::json other = json;
    other["entryPoints"][name] = other["entryPoints"]["backward"];
    other["entryPoints"].erase("backward");
    CHECK_THROWS_WITH(
        planFromJson(other, "plan.json"),
        fmt::format("plan.json: entryPoints \"{}\" is none of forward, backward, update", name));
  }
}

TEST_CASE("cuts that callers could not live with are rejected") {
  Plan plan = forwardAndBackward().plan;
  SECTION("a kernel of two entry points") {
    plan.entryPoints[EntryPointKind::backward] = {1, 2};
    CHECK_THAT(rejectionOf(plan), Catch::Contains("kernel second belongs to forward already"));
  }
  SECTION("a saved tensor in a result that only the next entry point's caller brings") {
    plan.kernels[2] = weft::test::kernelOf("third", 1, 4);
    plan.kernels[2].after = {0};
    plan.kernels.push_back(weft::test::kernelOf("fourth", 4, 3));
    plan.kernels[3].after = {1, 2};
    plan.tensors.push_back(weft::test::tensorOf("u", TensorRole::temporary, 4));
    plan.entryPoints[EntryPointKind::backward] = {2, 3};
    REQUIRE(rejectionOf(plan) == "none");
    plan.memoryPlan = {{.buffer = 1, .in = {.result = 3}}};
    CHECK_THAT(
        rejectionOf(plan),
        Catch::Contains("buffer 1 lies in 'd_x', but entry points forward, backward use them"));
  }
}
