// The C interface on the stand-in for the driver: what a caller is told, launches on its pointers
// and in its captures, errors as text.
#include "runtime/api/weft_runtime.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/system/Files.h"
#include "tests/support/ExampleArtifact.h"
#include "tests/support/TemporaryTestFolder.h"
#include "tests/support/fakecuda/FakeCuda.h"

#include <catch2/catch.hpp>

#include <dlfcn.h>
#include <array>
#include <cstring>
#include <string>
#include <vector>

using namespace weft;
using weft::test::exampleArtifact;
using weft::test::TemporaryTestFolder;

namespace {

/// The stand-in, under the name by which the runtime asks for the driver.
template <typename Function>
Function driverFunction(const char *name) {
  static void *const library =
      dlopen(WEFT_BINARY_DIR "/tests/fakecuda/libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  REQUIRE(library);
  return reinterpret_cast<Function>(dlsym(library, name));
}

/// An artifact x -> t -> y of two copies of 1024 bytes.
std::string writeExample(const TemporaryTestFolder &folder) {
  runtime::Artifact artifact = exampleArtifact();
  const std::string cubin = "first copy 1024\nsecond copy 1024\n";
  artifact.plan.target = "sm_90a";
  artifact.cubins = {{runtime::cubinName(cubin), cubin}};
  for (PlanKernel &kernel : artifact.plan.kernels) kernel.cubin = runtime::cubinName(cubin);
  runtime::writeArtifact(artifact, folder / "out");
  return (folder / "out").string();
}

struct Opened {
  Opened() {
    driverFunction<void *>("cuInit");
    const int code = weft_open(writeExample(folder).c_str(), 0, &artifact);
    INFO(weft_last_error());
    REQUIRE(code == 0);
  }
  ~Opened() { weft_close(artifact); }
  const TemporaryTestFolder folder;
  weft_artifact *artifact = nullptr;
};

struct alignas(256) Elements {
  std::array<unsigned char, 1024> bytes;
};

}  // namespace

TEST_CASE("the C interface names tensors and launches on the caller's memory") {
  const Opened opened;
  REQUIRE(weft_tensor_count(opened.artifact, "forward", WEFT_INPUT) == 1);
  REQUIRE(weft_tensor_count(opened.artifact, "forward", WEFT_OUTPUT) == 1);
  CHECK(weft_tensor_count(opened.artifact, "backward", WEFT_INPUT) == -1);
  weft_tensor x{};
  REQUIRE(weft_describe_tensor(opened.artifact, "forward", WEFT_INPUT, 0, &x) == 0);
  CHECK(std::string(x.name) == "x");
  CHECK(std::string(x.dtype) == "f16");
  REQUIRE(x.rank == 2);
  CHECK(x.extents[0] * x.extents[1] == 512);
  CHECK(weft_describe_tensor(opened.artifact, "forward", WEFT_INPUT, 1, &x) == 2);

  Elements in, out;
  for (const unsigned char value : {0x11, 0x77}) {  // the second time as a captured graph
    in.bytes.fill(value);
    out.bytes.fill(0xff);
    void *const pointers[] = {in.bytes.data(), out.bytes.data()};
    REQUIRE(weft_launch(opened.artifact, "forward", pointers, 2, nullptr) == 0);
    CHECK(out.bytes == in.bytes);
  }
  CHECK(weft_device_bytes(opened.artifact) > 0);
}

TEST_CASE(
    "in the caller's capture kernels stand in its graph, also where a graph of ours is there "
    "already") {
  const Opened opened;
  const auto counters = driverFunction<FakeCudaCounters *(*)()>("fakeCudaCounters");
  Elements in, out;
  void *const pointers[] = {in.bytes.data(), out.bytes.data()};
  for (int launch = 0; launch < 2; ++launch)
    REQUIRE(weft_launch(opened.artifact, "forward", pointers, 2, nullptr) == 0);
  void *stream = nullptr, *graph = nullptr;
  driverFunction<int (*)(void **, unsigned)>("cuStreamCreate")(&stream, 0);
  driverFunction<int (*)(void *, int)>("cuStreamBeginCapture_v2")(stream, 0);
  const FakeCudaCounters before = *counters();
  REQUIRE(weft_launch(opened.artifact, "forward", pointers, 2, stream) == 0);
  CHECK(counters()->graphLaunches == before.graphLaunches);
  CHECK(counters()->kernelLaunches == before.kernelLaunches);
  driverFunction<int (*)(void *, void **)>("cuStreamEndCapture")(stream, &graph);
  size_t nodes = 0;
  driverFunction<int (*)(void *, void **, size_t *)>("cuGraphGetNodes")(graph, nullptr, &nodes);
  CHECK(nodes == 2);
}

TEST_CASE("errors of the C interface are codes with a text") {
  weft_artifact *artifact = nullptr;
  driverFunction<void *>("cuInit");
  CHECK(weft_open("/nowhere", 0, &artifact) == 2);
  CHECK(artifact == nullptr);
  CHECK_THAT(weft_last_error(), Catch::Contains("/nowhere is no artifact"));
  const Opened opened;
  void *const none[] = {nullptr, nullptr};
  CHECK(weft_launch(opened.artifact, "forward", none, 1, nullptr) == 2);
  CHECK_THAT(weft_last_error(),
             Catch::Contains("takes 1 inputs and 1 outputs, 1 pointers were given"));
  CHECK(weft_launch(opened.artifact, "forward", none, 2, nullptr) == 2);
  CHECK(weft_launch(opened.artifact, "backward", none, 2, nullptr) == 2);
  CHECK(weft_set_parameter(opened.artifact, "wq", none) == 2);
  CHECK_THAT(weft_last_error(), Catch::Contains("no parameter 'wq'"));
}

TEST_CASE("what cannot be opened is a code and a message that names the file, and no exception") {
  driverFunction<void *>("cuInit");
  const TemporaryTestFolder folder;
  const std::string artifact = writeExample(folder);
  const std::string good = runtime::readFile(folder / "out/plan.json");
  const auto codeOf = [&](const std::string &from, const std::string &to) {
    std::string text = good;
    const size_t at = text.find(from);
    REQUIRE(at != text.npos);
    runtime::writeFile(folder / "out/plan.json", text.replace(at, from.size(), to));
    weft_artifact *opened = nullptr;
    const int code = weft_open(artifact.c_str(), 0, &opened);
    CHECK(opened == nullptr);
    CHECK_THAT(weft_last_error(), Catch::Contains("out/plan.json"));
    return code;
  };
  CHECK(codeOf("\"workspaceBytes\": 1024", "\"workspaceBytes\": 1e999") == 2);
  CHECK(codeOf("\"offset\": 0", "\"offset\": -256") == 2);
  CHECK(codeOf("\"bytes\": 1024", "\"bytes\": 7") == 2);
  CHECK(codeOf("\"buffer\": 1", "\"buffer\": 2147483647") == 2);
}
