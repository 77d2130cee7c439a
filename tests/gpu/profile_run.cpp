// Profiling on a GPU: kernels are built, timed in measuring processes and kept; a kernel that
// crashes or hangs costs no other its measurement. Starts itself again as build worker and as
// measuring process.
#define CATCH_CONFIG_RUNNER
#include "codegen/Emit.h"
#include "kernel/Error.h"
#include "runtime/build/Build.h"
#include "runtime/cuda/Driver.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/ProfileSamples.h"
#include "tools/driver/ProfileReport.h"
#include "tools/driver/ProfileRun.h"

#include <catch2/catch.hpp>

#include <cstdio>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::driver;
using namespace weft::samples;

namespace {

std::string architecture() {
  return runtime::inspectDriver().gpus.front().architecture == "sm_90"
             ? "sm_90a"
             : runtime::inspectDriver().gpus.front().architecture;
}

std::vector<runtime::BuildResult> buildAll(const std::vector<runtime::BuildRequest> &requests) {
  runtime::BuildOptions options;
  options.headers = codegen::deviceHeaders();
  return runtime::build(requests, options);
}

ProfileRunOptions gpuOptions() {
  ProfileRunOptions options{.architecture = architecture()};
  options.startMeasurer = [](int gpu, const std::atomic<bool> &cancelled) {
    return runtime::startMeasureProcess({.gpu = gpu, .cancelled = &cancelled});
  };
  options.build = [](const auto &requests, const std::atomic<bool> &) {
    return buildAll(requests);
  };
  return options;
}

select::Problem chain() { return profiledChain(2048, 4096); }

runtime::KernelJob jobOf(const std::string &entry, const std::string &text) {
  const std::vector<runtime::BuildResult> built = buildAll({{.name = entry,
                                                             .text = text,
                                                             .entry = entry,
                                                             .architecture = architecture(),
                                                             .extraFlags = {}}});
  INFO(built[0].log);
  REQUIRE(built[0].error.empty());
  return {.cubin = built[0].cubin,
          .entry = entry,
          .arguments = {{.kind = ParameterKind::output, .index = 0}},
          .inputBytes = {},
          .outputBytes = {1024},
          .zeroInputs = {},
          .lengthInputs = {},
          .pageInputs = {}};
}

}  // namespace

TEST_CASE("a chain of kernels is profiled, plausibly and only once") {
  const Device &device = findDevice("h200");
  const ProfileSpace space = decision::profileSpace({chain()}, {}, *analyticCostModel(device), {});
  TestStore test;
  const ProfileOutcome outcome = runProfile(space, test.store, gpuOptions());
  const ProfileReport report = reportOf(space, test.store.read());
  std::printf("%s\n%zu measured, %zu slow, %zu failed in %.1f s\n%s", outcome.protocol.c_str(),
              outcome.progress.measured, outcome.progress.slow, outcome.progress.failed,
              outcome.progress.seconds, print(report).c_str());
  CHECK(outcome.end == ProfileEnd::finished);
  CHECK(report.failures.empty());
  CHECK(outcome.progress.measured > outcome.progress.slow);
  const Profile profile = test.store.read();
  for (const ProfileItem &item : nonEmpty(space.items)) {
    const ProfileMeasurement &measurement =
        profile.kernels.at(item.subject).measurements.at(item.line);
    if (measurement.status != MeasurementStatus::measured) continue;
    const auto bytes = double(space.kernels[item.kernel].kernel.necessaryBytes());
    INFO(item.line << " " << measurement.seconds);
    CHECK(bytes / measurement.seconds <
          1.1 * device.peakBandwidth);  // cold: nothing came out of L2
    CHECK(measurement.seconds < 1e-2);
  }
  CHECK(runProfile(space, test.store, gpuOptions()).progress.total == 0);
}

TEST_CASE("a GEMM's candidates are measured in every orientation") {
  Kernel kernel = contractKernel({{'m', 1024}, {'n', 1024}, {'k', 512}}, "mk", "kn", "mn");
  select::Problem problem;
  problem.name = "gemm";
  for (const char *name : {"a", "b", "c"}) {
    const Value &value = kernel.values[problem.tensors.size()];
    select::Tensor tensor;
    tensor.name = name;
    tensor.dtype = value.dtype;
    for (const AxisId axis : value.axes) tensor.axes.push_back(kernel.axes[size_t(axis)]);
    problem.tensors.push_back(tensor);
  }
  problem.tensors[0].isArgument = problem.tensors[1].isArgument = problem.tensors[2].isResult =
      true;
  problem.ops = {"contract"};
  problem.opInputs = {{0, 1}};
  problem.opOutputs = {{2}};
  problem.candidates = {
      {.name = "contract", .ops = {0}, .inputs = {0, 1}, .outputs = {2}, .kernel = kernel}};
  select::Options options;
  options.free = true;
  const ProfileSpace space =
      decision::profileSpace({problem}, options, *analyticCostModel(findDevice("h200")), {});
  CHECK(space.gemms.size() == 8);
  TestStore test;
  const ProfileOutcome outcome = runProfile(space, test.store, gpuOptions());
  std::printf("GEMMs: %zu measured, %zu slow, %zu failed in %.1f s\n%s", outcome.progress.measured,
              outcome.progress.slow, outcome.progress.failed, outcome.progress.seconds,
              print(reportOf(space, test.store.read())).c_str());
  CHECK(outcome.progress.measured >= 8 * 4);
  const Profile profile = test.store.read();
  const auto model = measuredCostModel(findDevice("h200"), profile, "test", false);
  CHECK(model->measured(kernel).size() >= 8);
  const select::Selection selection = select::select(problem, *model, options);
  CHECK(selection.best().steps.back().cost.measured);
  CHECK(2.0 * 1024 * 1024 * 512 / selection.best().seconds > 50e12);
  CHECK(runProfile(space, test.store, gpuOptions()).skipped ==
        space.items.size() + space.gemms.size());
}

TEST_CASE("a kernel that crashes fails alone") {
  const std::string good = "extern \"C\" __global__ void good(float *x) { x[threadIdx.x] = 1; }";
  const std::string bad =
      "extern \"C\" __global__ void bad(float *x) { *reinterpret_cast<volatile int *>(16) = 1; }";
  const auto measurer = runtime::startMeasureProcess({.gpu = 0});
  runtime::MeasureGroup group;
  group.kernels = {jobOf("good", good), jobOf("bad", bad), jobOf("good", good)};
  const runtime::MeasureReply reply = measurer->measure(group);
  REQUIRE(reply.results.size() == 3);
  CHECK(reply.results[0].status == MeasurementStatus::measured);
  CHECK(reply.results[1].status == MeasurementStatus::failed);
  CHECK(reply.results[2].status == MeasurementStatus::measured);
  std::printf("crash: %s\n", reply.results[1].reason.c_str());
  CHECK(reply.results[1].reason.find("CUDA_ERROR") != std::string::npos);
}

TEST_CASE("a kernel that hangs is given up") {
  const std::string text =
      "extern \"C\" __global__ void hang(float *x) { while (*reinterpret_cast<volatile float *>(x) "
      "!= 3) {} }";
  const std::string good = "extern \"C\" __global__ void good(float *x) { x[threadIdx.x] = 1; }";
  const auto measurer = runtime::startMeasureProcess({.gpu = 0, .timeoutSeconds = 5});
  runtime::MeasureGroup group;
  group.kernels = {jobOf("hang", text)};
  const runtime::MeasureReply reply = measurer->measure(group);
  REQUIRE(reply.results.size() == 1);
  CHECK(reply.results[0].status == MeasurementStatus::failed);
  CHECK(reply.results[0].reason.find("did not finish") != std::string::npos);
  group.kernels = {jobOf("good", good)};
  CHECK(measurer->measure(group).results[0].status == MeasurementStatus::measured);
}

int main(int argumentCount, char **arguments) {
  if (const auto exitCode = runtime::serveAsBuildWorker(argumentCount, arguments)) return *exitCode;
  if (const auto exitCode = runtime::serveAsMeasureWorker(argumentCount, arguments))
    return *exitCode;
  const runtime::DriverReport driver = runtime::inspectDriver();
  constexpr int skipped = 77;
  if (driver.gpus.empty() || runtime::findNvrtc().library.empty()) {
    std::printf("skipped: %s\n", driver.gpus.empty() ? driver.problem.c_str() : "no NVRTC");
    return skipped;
  }
  return Catch::Session().run(argumentCount, arguments);
}
