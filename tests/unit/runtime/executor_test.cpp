// The executor on a stand-in for the driver: layouts, graphs, memory, and every way to fail that
// needs no real GPU.
#include <catch2/catch.hpp>

#include "codegen/families/view/ViewKnobs.h"
#include "kernel/Error.h"
#include "plan/TensorLayout.h"
#include "runtime/execute/Executor.h"
#include "runtime/execute/RandomInputs.h"
#include "tests/support/ExampleArtifact.h"
#include "tests/support/fakecuda/FakeCuda.h"

#include <algorithm>
#include <cstring>

#include <dlfcn.h>

using namespace weft;
using namespace weft::runtime;
using weft::test::exampleArtifact;

namespace {

/// Loaded first, by its path: the runtime's search for libcuda.so.1 then finds it by that name.
struct StandIn {
  StandIn()
      : library(dlopen(WEFT_BINARY_DIR "/tests/fakecuda/libcuda.so.1", RTLD_NOW | RTLD_GLOBAL)) {
    REQUIRE(library);
  }
  template <typename Result>
  Result *call(const char *name) const {
    return reinterpret_cast<Result *(*)()>(dlsym(library, name))();
  }
  void *library;
};

struct Driver {
  Driver() {
    static const StandIn library;
    settings = library.call<FakeCudaSettings>("fakeCudaSettings");
    counters = library.call<FakeCudaCounters>("fakeCudaCounters");
    context.emplace(0);  // reads the settings' file, if any
    *settings = {};
    *counters = {.allocations = counters->allocations, .allocatedBytes = counters->allocatedBytes};
  }
  FakeCudaSettings *settings;
  FakeCudaCounters *counters;
  std::optional<cuda::Context> context;
};

/// x -> t -> y, every tensor f16 [8, 64] stored with b fastest; both kernels copy memory as it
/// lies.
Artifact copies(const std::string &first = "copy 1024", const std::string &second = "copy 1024") {
  Artifact artifact = exampleArtifact();
  artifact.plan.target = "sm_90a";
  artifact.plan.workspaceBytes = 1024;
  artifact.cubins.clear();
  const std::string cubin = "first " + first + "\nsecond " + second + "\n";
  artifact.cubins[cubinName(cubin)] = cubin;
  for (PlanKernel &kernel : artifact.plan.kernels) kernel.cubin = cubinName(cubin);
  return artifact;
}

std::vector<std::byte> inputFor(const Executor &executor, uint64_t seed) {
  return randomElements(executor.plan().tensors[0], seed);
}

template <typename Action>
std::string errorOf(ErrorKind kind, Action &&action) {
  try {
    action();
  } catch (const Error &error) {
    CHECK(error.kind == kind);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a run moves logical elements through every layout") {
  Driver driver;
  Artifact artifact = copies();
  artifact.plan.tensors[2].order = {
      0, 1};  // y is row-major: the copied bytes are another tensor's elements
  artifact.plan.tensors[2].strides = {64, 1};
  Executor executor(artifact, *driver.context);
  executor.poison();
  const std::vector<std::byte> input = inputFor(executor, 3);
  executor.write(0, input);
  cuda::Stream stream;
  executor.launch(executor.entryPoint("forward"), stream.handle());
  CHECK(executor.read(0) == input);
  CHECK(executor.read(1) == input);
  std::vector<std::byte> memory(1024);
  scatter(executor.plan().tensors[1], input, memory);
  CHECK(executor.read(2) == memory);  // row-major: memory as it lies
  CHECK(memory != input);
}

TEST_CASE(
    "the first launch runs kernel by kernel, later ones are a graph that neither allocates nor "
    "waits") {
  Driver driver;
  Executor executor(copies(), *driver.context);
  cuda::Stream stream;
  executor.write(0, inputFor(executor, 1));
  const EntryPoint &entry = executor.entryPoint("forward");
  *driver.counters = {.allocatedBytes = driver.counters->allocatedBytes};
  executor.launch(entry, stream.handle());
  CHECK(driver.counters->kernelLaunches == 2);
  CHECK(driver.counters->captures == 1);
  CHECK(driver.counters->graphLaunches == 0);
  const FakeCudaCounters before = *driver.counters;
  executor.poison();
  const int64_t waits = driver.counters->synchronizations;
  executor.launch(entry, stream.handle());
  CHECK(driver.counters->graphLaunches == 1);
  CHECK(driver.counters->kernelLaunches == 4);
  CHECK(driver.counters->captures == before.captures);
  CHECK(driver.counters->allocations == before.allocations);
  CHECK(driver.counters->synchronizations == waits);
  CHECK(executor.read(2) == inputFor(executor, 1));
}

TEST_CASE(
    "a kernel that may start early does so right behind another such kernel, and not on "
    "concurrent") {
  Driver driver;
  Artifact artifact = copies();
  artifact.plan.kernels[1].startsEarly = true;
  const bool isBehindEarly = artifact.plan.kernels[0].startsEarly = GENERATE(false, true);
  artifact.plan.concurrent = GENERATE(false, true);
  Executor executor(artifact, *driver.context);
  cuda::Stream stream;
  executor.write(0, inputFor(executor, 1));
  const EntryPoint &entry = executor.entryPoint("forward");
  executor.launch(entry, stream.handle());
  const int64_t first = driver.counters->earlyLaunches;  // none kernel by kernel, one captured
  CHECK(first == (isBehindEarly && !artifact.plan.concurrent ? 1 : 0));
  executor.poison();
  executor.launch(entry, stream.handle());
  CHECK(driver.counters->earlyLaunches == first);
  CHECK(executor.read(2) == inputFor(executor, 1));
}

TEST_CASE("a kernel is given the address of its workspace, which lies in the plan's") {
  Driver driver;
  Artifact artifact = copies();
  Plan &plan = artifact.plan;
  // The stand-in copies from the first argument to the second: from the workspace to y.
  PlanKernel &second = plan.kernels[1];
  second.workspaceBytes = 1024;
  second.workspaceBuffer = 3;
  second.parameters.insert(
      second.parameters.begin(),
      {.kind = ParameterKind::workspace, .name = "w", .type = elementsOf(DType::f32)});
  std::swap(second.parameters[1], second.parameters[2]);
  plan.workspaceBytes = 2048;
  REQUIRE_NOTHROW(verify(plan, "plan.json"));
  REQUIRE_NOTHROW(verifyDerived(plan, "plan.json"));
  Executor executor(artifact, *driver.context);
  CHECK(executor.memory().bytes(BufferKind::temporary) == 2048);
  const cuda::DevicePointer workspace = executor.ownBindings().buffers[3];
  CHECK(workspace - executor.ownBindings().buffers[1] == 1024);
  const std::vector<std::byte> there(1024, std::byte(0x5a));
  cuda::Stream stream;
  for (int launch = 0; launch < 2; ++launch) {  // kernel by kernel, then as a graph
    executor.poison();
    executor.write(0, inputFor(executor, 1));
    cuda::upload(workspace, there);
    executor.launch(executor.entryPoint("forward"), stream.handle());
    CHECK(executor.read(2) == there);
  }
}

namespace {

/// x -> a, x -> b, b -> c, (a, c) -> y as copies: y is c, the last of the kernels writes it.
Artifact twoPaths() {
  Artifact artifact = copies();
  Plan &plan = artifact.plan;
  plan.tensors = {weft::test::tensorOf("x", TensorRole::argument, 0)};
  for (const char *name : {"a", "b", "c"})
    plan.tensors.push_back(
        weft::test::tensorOf(name, TensorRole::temporary, int(plan.tensors.size())));
  plan.tensors.push_back(weft::test::tensorOf("y", TensorRole::result, 4));
  plan.kernels = {weft::test::kernelOf("toA", 0, 1), weft::test::kernelOf("toB", 0, 2),
                  weft::test::kernelOf("toC", 2, 3), weft::test::kernelOf("toY", 3, 4)};
  plan.kernels[2].after = {1};
  plan.kernels[3].inputs = {3, 1};
  plan.kernels[3].inputLayouts = {{{"i", "b"}}, {{"i", "b"}}};
  plan.kernels[3].parameters.push_back({.kind = ParameterKind::input,
                                        .name = "a",
                                        .type = elementsOf(DType::f16),
                                        .tensor = 1});  // waited for, and not copied
  plan.kernels[3].after = {0, 2};
  plan.entryPoints = {{EntryPointKind::forward, {0, 1, 2, 3}}};
  std::string cubin;
  for (PlanKernel &kernel : plan.kernels) cubin += kernel.name + " copy 1024\n";
  artifact.cubins = {{cubinName(cubin), cubin}};
  for (PlanKernel &kernel : plan.kernels) kernel.cubin = cubinName(cubin);
  return artifact;
}

}  // namespace

TEST_CASE(
    "a graph with concurrent kernels has exactly the dependencies that data and memory need") {
  Driver driver;
  Artifact artifact = twoPaths();
  artifact.plan.concurrent = GENERATE(true, false);
  const int64_t width = artifact.plan.concurrent ? 2 : 1;
  SECTION("every separate buffer") {}
  SECTION("memory that is used again orders what data leave open") {
    artifact.plan.tensors[3].buffer = 1;  // c over a: after its reader
    artifact.plan.tensors[4].buffer = 3;
    artifact.plan.kernels[3].inputs = {3};
    artifact.plan.kernels[3].inputLayouts = {{{"i", "b"}}};
    artifact.plan.kernels[3].parameters.pop_back();
    artifact.plan.kernels[3].after = {2};
    artifact.plan.kernels[2].after = {0, 1};
  }
  SECTION("through a kernel that is not launched") {
    PlanTensor view = weft::test::tensorOf("view", TensorRole::temporary, 2);
    artifact.plan.tensors.push_back(view);
    PlanKernel kernel = weft::test::kernelOf("view", 2, 5);
    kernel.family = viewFamily;
    kernel.source.clear(), kernel.cubin.clear();
    artifact.plan.kernels.insert(artifact.plan.kernels.begin() + 2, kernel);
    artifact.plan.kernels[2].after = {1};
    artifact.plan.kernels[3].inputs = {5};
    artifact.plan.kernels[3].parameters[0].tensor = 5;
    artifact.plan.kernels[3].after = {2};
    artifact.plan.kernels[4].after = {0, 3};
    artifact.plan.entryPoints = {{EntryPointKind::forward, {0, 1, 2, 3, 4}}};
  }
  REQUIRE_NOTHROW(verify(artifact.plan, "plan.json"));
  Executor executor(artifact, *driver.context);
  const int y = int(std::ranges::find(executor.plan().tensors, "y", &PlanTensor::name) -
                    executor.plan().tensors.begin());
  cuda::Stream stream;
  const std::vector<std::byte> input = inputFor(executor, 5);
  executor.write(0, input);
  for (int launch = 0; launch < 2; ++launch) {
    executor.poison();
    executor.launch(executor.entryPoint("forward"), stream.handle());
    CHECK(executor.read(y) == input);
  }
  CHECK(driver.counters->graphLaunches == 1);
  CHECK(driver.counters->mostReady == width);
}

TEST_CASE("captured calls of a graph with concurrent kernels run one after another") {
  Driver driver;
  Artifact artifact = twoPaths();
  artifact.plan.concurrent = true;
  Executor executor(artifact, *driver.context);
  executor.write(0, inputFor(executor, 1));
  cuda::Stream stream, capturing;
  executor.launch(executor.entryPoint("forward"),
                  stream.handle());  // the first of every kernel is not captured
  *driver.counters = {.allocatedBytes = driver.counters->allocatedBytes};
  const cuda::Graph graph = cuda::Graph::capture(capturing, [&](cuda::StreamHandle *on) {
    for (int call = 0; call < 3; ++call) executor.launch(executor.entryPoint("forward"), on);
  });
  CHECK(graph.nodeCount() == 12);
  executor.poison();
  graph.launch(stream.handle());
  CHECK(driver.counters->mostReady == 2);
  CHECK(executor.read(4) == inputFor(executor, 1));
}

TEST_CASE("graphs are kept by pointer tuple, the least recently used goes first") {
  Driver driver;
  Executor executor(copies(), *driver.context, {.ownExternals = false, .graphs = 2});
  const EntryPoint &entry = executor.entryPoint("forward");
  cuda::Stream stream;
  const cuda::Buffer x(1024);
  std::vector<cuda::Buffer> results;
  for (int n = 0; n < 3; ++n) results.emplace_back(1024);
  std::vector<std::byte> input(1024, std::byte(0x3c)), output(1024);
  cuda::upload(x.address(), input);
  const auto launchInto = [&](int n) {
    cuda::fill(results[size_t(n)].address(), 0xff, 1024);
    const std::vector<cuda::DevicePointer> pointers{x.address(), results[size_t(n)].address()};
    const int64_t captures = driver.counters->captures;
    executor.launch(entry, pointers, stream.handle());
    cuda::download(output, results[size_t(n)].address());
    CHECK(output == input);
    return driver.counters->captures - captures;
  };
  CHECK(launchInto(0) == 1);
  CHECK(launchInto(1) == 1);
  CHECK(launchInto(0) == 0);
  CHECK(launchInto(2) == 1);  // 1 goes
  CHECK(launchInto(0) == 0);
  CHECK(launchInto(1) == 1);
  CHECK_THAT(errorOf(ErrorKind::badInput, [&] { executor.launch(entry, stream.handle()); }),
             Catch::Contains("the caller brings the memory of 'x'"));
  const std::vector<cuda::DevicePointer> odd{x.address() + 2, results[0].address()},
      few{x.address()};
  CHECK_THAT(errorOf(ErrorKind::badInput, [&] { executor.launch(entry, odd, stream.handle()); }),
             Catch::Contains("'x'") && Catch::Contains("16"));
  CHECK_THAT(errorOf(ErrorKind::badInput, [&] { executor.launch(entry, few, stream.handle()); }),
             Catch::Contains("1 pointers"));
}

TEST_CASE("parameters are packed into the plan's layout, also as parts of a stacked buffer") {
  Driver driver;
  Artifact artifact = copies();
  PlanTensor part = artifact.plan.tensors[0];
  part.role = TensorRole::parameter;
  part.name = "weight__ib", part.logical = "weight";
  part.buffer = 3, part.offset = 0;
  PlanTensor other = part;
  other.name = other.logical = "value";
  other.offset = 512;
  artifact.plan.tensors.push_back(part);
  artifact.plan.tensors.push_back(other);
  Executor executor(artifact, *driver.context);
  CHECK(executor.parameters() == std::vector<std::string>{"weight", "value"});
  cuda::Stream stream;
  const auto launch = [&] { executor.launch(executor.entryPoint("forward"), stream.handle()); };
  CHECK_THAT(errorOf(ErrorKind::badInput, launch), Catch::Contains("value, weight"));
  const std::vector<std::byte> w = randomElements(part, 1), v = randomElements(other, 1);
  CHECK(w != v);
  executor.setParameter("weight", w);
  executor.setParameter("value", v);
  CHECK(executor.read(3) == w);
  CHECK(executor.read(4) == v);
  CHECK(executor.ownBindings().addressOf(executor.plan().tensors[4]) ==
        executor.ownBindings().addressOf(executor.plan().tensors[3]) + 1024);
  CHECK(errorOf(ErrorKind::badInput, launch) == "no error");
  CHECK_THAT(errorOf(ErrorKind::badInput, [&] { executor.setParameter("values", v); }),
             Catch::Contains("nearest is 'value'"));
  CHECK_THAT(errorOf(ErrorKind::badInput,
                     [&] { executor.setParameter("value", std::vector<std::byte>(7)); }),
             Catch::Contains("1024 bytes, 7"));
}

TEST_CASE("every launch takes the next step of dropout when asked") {
  Driver driver;
  const bool advance = GENERATE(true, false);
  Artifact artifact = copies("copy 1024", "key");
  artifact.plan.kernels[1].parameters.push_back({.kind = ParameterKind::dropoutKey,
                                                 .name = "key",
                                                 .type = {ParameterType::Kind::dropoutKey}});
  Executor executor(artifact, *driver.context,
                    {.seed = 0x1234567890, .step = 41, .advanceStep = advance});
  cuda::Stream stream;
  executor.write(0, inputFor(executor, 1));
  for (uint64_t launch = 0; launch < 3; ++launch) {
    executor.launch(executor.entryPoint("forward"), stream.handle());
    std::array<uint64_t, 2> key{};
    cuda::download(std::as_writable_bytes(std::span(key)),
                   executor.ownBindings().addressOf(executor.plan().tensors[2]));
    CHECK(key[0] == 0x1234567890);
    CHECK(key[1] == 41 + (advance ? launch : 0));
  }
}

TEST_CASE("what kernels say of an argument is an error once, that names the sequence") {
  Driver driver;
  const bool isMask = GENERATE(false, true);
  Artifact artifact = copies("report 5");
  artifact.plan.kernels[0].parameters.push_back({.kind = ParameterKind::status,
                                                 .name = "status",
                                                 .type = {ParameterType::Kind::argumentStatus},
                                                 .tensor = 0});
  PlanTensor &x = artifact.plan.tensors[0];
  x.dtype = isMask ? DType::i1 : DType::i32, x.range = {0, 40}, x.countsTokens = true;
  Executor executor(artifact, *driver.context);
  executor.checkReported();  // nothing ran
  cuda::Stream stream;
  for (int run = 0; run < 2; ++run) {
    executor.launch(executor.entryPoint("forward"), stream.handle());
    CHECK(errorOf(ErrorKind::badInput, [&] { executor.checkReported(); }) ==
          (isMask
               ? "after the run: row 5 of 'x' is no prefix: element -1 is 1 behind a 0 (tokens of "
                 "a sequence come first, and padding follows)"
               : "after the run: length -1 of sequence 5 of 'x' is negative (at least 0, at most "
                 "40)"));
    executor.checkReported();  // it was said
  }
}

TEST_CASE("what kernels say of indices is an error once, that names the argument and the place") {
  Driver driver;
  const bool isPacked = GENERATE(false, true);
  Artifact artifact =
      copies(isPacked ? "copy 1024" : "report 69", isPacked ? "report 69" : "copy 1024");
  const int reported = isPacked ? 1 : 0;
  artifact.plan.kernels[size_t(reported)].parameters.push_back(
      {.kind = ParameterKind::status,
       .name = "status",
       .type = {ParameterType::Kind::argumentStatus},
       .tensor = reported});
  for (PlanTensor &tensor : artifact.plan.tensors)
    tensor.dtype = DType::i32, tensor.range = {0, 23};
  if (isPacked)
    artifact.plan.kernels[0].ops = {{.kind = OpKind::pack, .results = {"1"}, .operands = {"x"}}};
  artifact.plan.kernels[1].ops = {
      {.kind = OpKind::gather, .results = {"2"}, .operands = {"x", "t"}}};
  if (!isPacked) std::swap(artifact.plan.kernels[0].ops, artifact.plan.kernels[1].ops);
  Executor executor(artifact, *driver.context);
  executor.checkReported();  // nothing ran
  cuda::Stream stream;
  for (int run = 0; run < 2; ++run) {
    executor.launch(executor.entryPoint("forward"), stream.handle());
    CHECK(errorOf(ErrorKind::badInput, [&] { executor.checkReported(); }) ==
          fmt::format("after the run: '{}' [1, 5]{} is -1, and its table has rows 0 to 23",
                      artifact.plan.tensors[size_t(reported)].logical,
                      isPacked ? " (packed from 'x')" : ""));
    executor.checkReported();  // it was said
  }
}

TEST_CASE("a kernel that hangs or fails is named, with the command that runs it alone") {
  Driver driver;
  const ExecutorOptions options{
      .folder = "out/bert",
      .firstLaunchLimit = std::chrono::milliseconds(20),
      .onHang = [](const std::string &text) { throw Error::checkFailed("{}", text); }};
  const auto run = [&](const std::string &second) {
    cuda::Stream stream;
    Executor executor(copies("copy 1024", second), *driver.context, options);
    return errorOf(ErrorKind::checkFailed,
                   [&] { executor.launch(executor.entryPoint("forward"), stream.handle()); });
  };
  CHECK_THAT(run("hang"), Catch::Contains("kernel second hangs") &&
                              Catch::Contains("weft-run out/bert --kernel second"));
  CHECK_THAT(run("fault"), Catch::Contains("kernel second") && Catch::Contains("ILLEGAL_ADDRESS") &&
                               Catch::Contains("weft-run out/bert --kernel second"));
}

TEST_CASE("an artifact for another architecture, or that was not built, is rejected") {
  Driver driver;
  const auto load = [&](const std::string &target, bool built = true) {
    Artifact artifact = copies();
    artifact.plan.target = target;
    if (!built) artifact.plan.kernels[1].cubin.clear();
    artifact.plan.notes = {{.kind = NoteKind::build, .text = "cubins: skipped, no NVRTC"},
                           {.kind = NoteKind::packing, .text = "parameter w is packed"}};
    return errorOf(ErrorKind::unsupported, [&] { Executor executor(artifact, *driver.context); });
  };
  CHECK(load("sm_90a") == "no error");
  CHECK_THAT(load("sm_80"), Catch::Contains("sm_80") && Catch::Contains("sm_90") &&
                                Catch::Contains("--target sm_90a"));
  CHECK_THAT(load("sm_100a"), Catch::Contains("sm_100a"));
  CHECK_THAT(load("sm_90a", false),
             Catch::Contains("kernel second was not built (cubins: skipped, no NVRTC)") &&
                 Catch::Contains("weft emit"));
}

TEST_CASE(
    "a GPU with less shared memory than a kernel asks for, or a driver that does not take its "
    "cubin, is told") {
  Driver driver;
  Artifact artifact = copies();
  artifact.plan.kernels[1].sharedBytes = 100000;
  CHECK(errorOf(ErrorKind::unsupported, [&] { Executor executor(artifact, *driver.context); }) ==
        "no error");
  artifact.plan.kernels[1].sharedBytes = 232449;
  CHECK_THAT(errorOf(ErrorKind::unsupported, [&] { Executor executor(artifact, *driver.context); }),
             Catch::Contains("kernel second asks for 232449 bytes of shared memory") &&
                 Catch::Contains("has 232448"));
  const auto load = [] { cuda::Module module(std::string_view("")); };
  CHECK_THAT(errorOf(ErrorKind::badInput, load),
             Catch::Contains("load a cubin of 0 bytes with a driver for CUDA 13.0, which takes"));
}

TEST_CASE("out of memory says what is needed, what is free and what would fit") {
  Driver driver;
  Artifact artifact = copies();
  const int64_t needed = PlanMemory(artifact.plan).bytes();
  CHECK(needed == 3 * 1024);
  driver.settings->memoryBytes = driver.counters->allocatedBytes + needed / 2;
  const std::string text =
      errorOf(ErrorKind::unsupported, [&] { Executor executor(artifact, *driver.context); });
  CHECK_THAT(text, Catch::Contains("3.07 kB") && Catch::Contains("1.54 kB") &&
                       Catch::Contains("--dim b=4 would fit"));
}

TEST_CASE("temporaries lie in the caller's result until it is written") {
  Driver driver;
  Artifact artifact = copies();
  Plan &plan = artifact.plan;  // x -> t -> u -> y, t in y
  plan.tensors.push_back(weft::test::tensorOf("u", TensorRole::temporary, 3));
  plan.kernels[1].outputs = {3};
  plan.kernels[1].parameters[1].tensor = 3;
  plan.kernels.push_back(weft::test::kernelOf("third", 3, 2));
  plan.kernels[2].after = {1};
  plan.entryPoints = {{EntryPointKind::forward, {0, 1, 2}}};
  plan.memoryPlan = {{.buffer = 1, .in = {.result = 2}}};
  const std::string cubin = "first copy 1024\nsecond copy 1024\nthird copy 1024\n";
  artifact.cubins = {{cubinName(cubin), cubin}};
  for (PlanKernel &kernel : plan.kernels) kernel.cubin = cubinName(cubin);
  REQUIRE_NOTHROW(verify(plan, "plan.json"));

  const int64_t before = driver.counters->allocatedBytes;
  Executor executor(artifact, *driver.context, {.ownExternals = false});
  CHECK(driver.counters->allocatedBytes - before < 2 * 1024);  // u alone, and the dropout key
  cuda::Stream stream;
  const cuda::Buffer x(1024), firstResult(1024), secondResult(1024);
  std::vector<std::byte> input(1024, std::byte(0x3c)), output(1024);
  cuda::upload(x.address(), input);
  for (const cuda::Buffer *result : {&firstResult, &secondResult, &firstResult}) {
    cuda::fill(result->address(), 0xff, 1024);
    const std::vector<cuda::DevicePointer> pointers{x.address(), result->address()};
    executor.launch(executor.entryPoint("forward"), pointers, stream.handle());
    cuda::download(output, result->address());
    CHECK(output == input);
  }
  const cuda::Buffer both(2048);
  const std::vector<cuda::DevicePointer> same{x.address(), x.address()},
      overlapping{both.address(), both.address() + 512};
  for (const auto &pointers : {same, overlapping})
    CHECK_THAT(errorOf(ErrorKind::badInput,
                       [&] {
                         executor.launch(executor.entryPoint("forward"), pointers, stream.handle());
                       }),
               Catch::Contains("the memory of the result 'y' overlaps that of 'x'"));
  Executor own(artifact, *driver.context);
  own.poison();
  own.write(0, inputFor(own, 1));
  own.launch(own.entryPoint("forward"), stream.handle());
  CHECK(own.read(2) == inputFor(own, 1));
}

TEST_CASE("random inputs of what must be positive are positive, and others have both signs") {
  PlanTensor tensor = exampleArtifact().plan.tensors[0];
  tensor.dtype = DType::f32;
  const auto leastOf = [&] {
    const std::vector<std::byte> bytes = randomElements(tensor, 1);
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return *std::ranges::min_element(values);
  };
  CHECK(leastOf() < 0);
  tensor.positive = true;
  CHECK(leastOf() > 0);
}
