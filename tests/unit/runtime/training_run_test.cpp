// The loop of training steps on a stand-in for the driver: a state that training cannot go on from
// never replaces one that it can, and a step whose gradients overflow changes nothing but the
// scale. No tensor has the name that weft's own models give it: what it is to a step its member
// "training" says alone.
#include <catch2/catch.hpp>

#include "kernel/Error.h"
#include "runtime/commands/TrainCommand.h"
#include "runtime/train/TrainingState.h"
#include "tests/support/ExampleArtifact.h"
#include "tests/support/TemporaryTestFolder.h"
#include "tests/support/fakecuda/FakeCuda.h"

#include <dlfcn.h>

#include <cmath>
#include <cstring>
#include <limits>

using namespace weft;
using namespace weft::runtime;

namespace {

/// Loaded first, by its path: the runtime's search for libcuda.so.1 then finds it by that name.
void *useStandIn() {
  static void *library =
      dlopen(WEFT_BINARY_DIR "/tests/fakecuda/libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  REQUIRE(library);
  return library;
}

PlanTensor tensorOf(const std::string &name, TensorRole role, int buffer, DType dtype,
                    std::vector<int64_t> extents) {
  PlanTensor tensor{.name = name,
                    .logical = name,
                    .dtype = dtype,
                    .axes = {},
                    .extents = std::move(extents),
                    .order = {},
                    .strides = {},
                    .role = role,
                    .buffer = buffer,
                    .offset = 0,
                    .bytes = 4};
  for (size_t axis = 0; axis < tensor.extents.size(); ++axis) {
    tensor.axes.push_back(std::string(1, char('a' + axis)));
    tensor.order.push_back(int(axis));
    tensor.strides.insert(
        tensor.strides.begin(),
        axis == 0 ? 1 : tensor.strides.front() * tensor.extents[tensor.extents.size() - axis]);
    tensor.bytes *= tensor.extents[axis];
  }
  if (dtype == DType::i32) tensor.range = {0, 255};
  return tensor;
}

/// All kernels of one cubin, in one entry point.
void buildFrom(Artifact &artifact, const std::string &cubin) {
  artifact.cubins = {{cubinName(cubin), cubin}};
  artifact.sources.clear();
  std::vector<int> step;
  for (PlanKernel &kernel : artifact.plan.kernels) {
    step.push_back(int(step.size()));
    kernel.cubin = cubinName(cubin);
    kernel.inputLayouts = kernel.outputLayouts = {NamedLayout()};
    artifact.sources[kernel.source] = "// " + kernel.name + "\n";
  }
  artifact.plan.entryPoints = {{EntryPointKind::update, step}};
}

int placeOf(const Plan &plan, TrainingRole role) {
  const int place = trainingTensor(plan, role);
  REQUIRE(place >= 0);
  return place;
}

/// loss = w, w's next value = epsilon: with an epsilon that is no number the first loss is finite,
/// the weight after it is not.
Artifact steppingOnto() {
  Artifact artifact = test::exampleArtifact();
  Plan &plan = artifact.plan;
  plan.target = "sm_90a";
  plan.workspaceBytes = 0;
  plan.tensors.clear();
  const auto add = [&](const char *name, TrainingRole training, DType dtype,
                       std::vector<int64_t> extents) {
    plan.tensors.push_back(
        tensorOf(name, isOfResult(training) ? TensorRole::result : TensorRole::argument,
                 int(plan.tensors.size()), dtype, std::move(extents)));
    plan.tensors.back().training = training;
    return int(plan.tensors.size()) - 1;
  };
  using enum TrainingRole;
  add("words", tokens, DType::i32, {2, 8});
  add("answers", labels, DType::i32, {2, 8});
  add("counts", weights, DType::f32, {2, 8});
  add("scale", lossGradient, DType::f32, {});
  add("shrink", keptShare, DType::f32, {});
  add("rate", stepSize, DType::f32, {});
  const int added = add("loss", epsilon, DType::f32, {}),  // of the root, whatever its name
      w = add("w", none, DType::f32, {});
  plan.tensors[size_t(w)].initial = InitialValue::normal(0.02);
  const int error = add("error", loss, DType::f32, {}), next = add("w2", loss, DType::f32, {});
  plan.tensors[size_t(next)].training = none;
  plan.tensors[size_t(next)].nextOf = "w";
  plan.kernels = {test::kernelOf("report", w, error), test::kernelOf("update", added, next)};
  buildFrom(artifact, "report copy 4\nupdate copy 4\n");
  return artifact;
}

/// Of f16, with gradients that overflow where the scale of the loss is above `limit`: loss = w,
/// the check of gradients = the scale or infinity, w's next value = the scale.
Artifact scaling() {
  Artifact artifact = steppingOnto();
  Plan &plan = artifact.plan;
  plan.dtype = DType::f16;
  for (const auto &[name, training] : {std::pair("unscale", TrainingRole::inverseLossScale),
                                       {"sum", TrainingRole::gradientCheck}}) {
    const TensorRole role = isOfResult(training) ? TensorRole::result : TensorRole::argument;
    plan.tensors.push_back(tensorOf(name, role, int(plan.tensors.size()), DType::f32, {}));
    plan.tensors.back().training = training;
  }
  const auto place = [&](const char *name) {
    return int(std::ranges::find(plan.tensors, name, &PlanTensor::logical) - plan.tensors.begin());
  };
  const int scale = placeOf(plan, TrainingRole::lossGradient);
  plan.kernels = {test::kernelOf("report", place("w"), placeOf(plan, TrainingRole::loss)),
                  test::kernelOf("check", scale, placeOf(plan, TrainingRole::gradientCheck)),
                  test::kernelOf("update", scale, place("w2"))};
  buildFrom(artifact, "host\n");
  return artifact;
}

void overflowAbove(float limit) {
  auto *kernels = reinterpret_cast<FakeCudaKernels *(*)()>(dlsym(useStandIn(), "fakeCudaKernels"));
  REQUIRE(kernels);
  *kernels() = [limit](const std::string &, const std::string &entry, void **arguments) {
    float *from = *static_cast<float **>(arguments[0]), *to = *static_cast<float **>(arguments[1]);
    const bool mayOverflow = entry == "check";
    return [=] {
      *to = mayOverflow && *from > limit ? std::numeric_limits<float>::infinity() : *from;
    };
  };
}

struct Run {
  test::TemporaryTestFolder folder;
  Artifact artifact;
  TrainRequest request;

  explicit Run(Artifact made = steppingOnto()) : artifact(std::move(made)) {
    useStandIn();
    writeArtifact(artifact, folder.path() / "plan");
    request.folder = (folder.path() / "plan").string();
    request.state = (folder.path() / "state.safetensors").string();
    request.json = true;
    request.epsilon = std::numeric_limits<double>::quiet_NaN();
  }
  std::string error() {
    try {
      trainArtifact(request);
    } catch (const Error &error) {
      CHECK(error.kind == ErrorKind::checkFailed);
      return error.what();
    }
    return "no error";
  }
  TrainingState kept() const { return readState(artifact.plan, request.state); }
};

float weightOf(const TrainingState &state) {
  float value = 0;
  std::memcpy(&value, state.tensors.at("w").data(), sizeof value);
  return value;
}
bool isFinite(const TrainingState &state) { return std::isfinite(weightOf(state)); }

/// What is wrong with the input, as the error says it; empty where it trains.
std::string rejectionOf(const TrainRequest &request) {
  try {
    trainArtifact(request);
  } catch (const Error &error) {
    CHECK(error.kind == ErrorKind::badInput);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE(
    "a NaN that an update wrote is told with the update's step, and the file keeps the last state "
    "without") {
  Run run;
  run.request.steps = 2;
  run.request.saveEvery = 0;
  const std::string error = run.error();
  CHECK_THAT(error, Catch::Contains("step 1: the loss is NaN; 'w' holds a NaN before the step, "
                                    "written by the update of step 0"));
  CHECK_THAT(error, Catch::Contains("holds the state after 0 steps"));
  CHECK(run.kept().step == 0);
  CHECK(isFinite(run.kept()));
}

TEST_CASE("a state with a NaN is not saved on the way either") {
  Run run;
  run.request.steps = 5;
  run.request.saveEvery = 1;
  CHECK_THAT(run.error(),
             Catch::Contains("after step 0: 'w' holds a NaN, written by the update of step 0"));
  CHECK(run.kept().step == 0);
  CHECK(isFinite(run.kept()));
}

TEST_CASE("finite steps go on, and are saved") {
  Run run;
  run.request.steps = 3;
  run.request.epsilon = 0.5;
  CHECK(trainArtifact(run.request) == 0);
  CHECK(run.kept().step == 3);
  CHECK(isFinite(run.kept()));
}

TEST_CASE("a scale of the loss is of plans that divide gradients by it, and a positive number") {
  Run run;
  run.request.steps = 1;
  const auto said = [&](const std::string &scale) {
    run.request.lossScale = scale;
    try {
      trainArtifact(run.request);
    } catch (const Error &error) {
      CHECK(error.kind == ErrorKind::badInput);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  CHECK_THAT(said("8"), Catch::Contains("--loss-scale 8: the plan of ") &&
                            Catch::Contains("--dtype f16 or bf16"));
  CHECK_THAT(said("0"), Catch::Contains("--loss-scale 0: a finite number above 0"));
  CHECK_THAT(said("inf"), Catch::Contains("--loss-scale inf"));
  CHECK_THAT(said("8x"), Catch::Contains("--loss-scale 8x: a finite number above 0, or dynamic"));
}

TEST_CASE("a step whose gradients overflow changes no weight and halves the scale, by default") {
  Run run(scaling());
  overflowAbove(20000);
  run.request.lossScale = GENERATE("", "dynamic");
  run.request.steps = 0;
  trainArtifact(run.request);
  const float first = weightOf(run.kept());
  run.request.steps = 2;  // at 65536 and 32768
  CHECK(trainArtifact(run.request) == 0);
  CHECK(run.kept().step == 2);
  CHECK(run.kept().skipped == 2);
  CHECK(run.kept().lossScale == 16384);
  CHECK(weightOf(run.kept()) == first);
  run.request.steps = 1;
  CHECK(trainArtifact(run.request) == 0);
  CHECK(run.kept().step == 3);
  CHECK(run.kept().skipped == 2);
  CHECK(run.kept().lossScale == 16384);
  CHECK(weightOf(run.kept()) == 16384);
}

TEST_CASE("steps taken in a row double the scale, and a run that is resumed counts on") {
  overflowAbove(100000);
  Run whole(scaling()), pieces(scaling());
  whole.request.lossScale = pieces.request.lossScale = "dynamic";
  whole.request.growthInterval = pieces.request.growthInterval = 3;
  whole.request.steps = 8;
  CHECK(trainArtifact(whole.request) == 0);
  for (const int64_t steps : {2, 1, 4, 1}) {
    pieces.request.steps = steps;
    CHECK(trainArtifact(pieces.request) == 0);
  }
  // 65536 three times, 131072 overflows, 65536 three times, 131072 overflows
  for (const Run *run : {&whole, &pieces}) {
    CHECK(run->kept().step == 8);
    CHECK(run->kept().skipped == 2);
    CHECK(run->kept().lossScale == 65536);
    CHECK(run->kept().takenAtScale == 0);
    CHECK(weightOf(run->kept()) == 65536);
  }
}

TEST_CASE("a fixed scale skips nothing; gradients that overflow at any scale end the run") {
  Run run(scaling());
  overflowAbove(1);
  run.request.lossScale = "4096";
  run.request.steps = 31;
  CHECK(trainArtifact(run.request) == 0);
  CHECK(run.kept().skipped == 0);
  CHECK(run.kept().lossScale == 4096);
  CHECK(weightOf(run.kept()) == 4096);
  overflowAbove(-1);
  run.request.lossScale = "dynamic";
  run.request.steps = 100;
  CHECK_THAT(run.error(),
             Catch::Contains("gradients overflow at any scale of the loss, at last at"));
}

TEST_CASE("a plan of an older weft keeps a fixed scale") {
  Artifact older = scaling();
  older.plan.tensors.back().training = TrainingRole::none;
  Run run(std::move(older));
  overflowAbove(20000);
  run.request.steps = 2;
  CHECK(trainArtifact(run.request) == 0);
  CHECK(weightOf(run.kept()) == 1024);
  run.request.lossScale = "dynamic";
  const std::string message = rejectionOf(run.request);
  CHECK_THAT(message, Catch::Contains("has no result with \"training\": \"gradientCheck\""));
}

TEST_CASE("a plan without roles is rejected, whatever its tensors are called") {
  Artifact older = steppingOnto();
  const TrainingRole lost = GENERATE(TrainingRole::tokens, TrainingRole::weights,
                                     TrainingRole::lossGradient, TrainingRole::loss);
  PlanTensor &tensor = older.plan.tensors[size_t(placeOf(older.plan, lost))];
  tensor.name = tensor.logical = lost == TrainingRole::lossGradient ? "d_loss" : nameOf(lost);
  tensor.training = TrainingRole::none;
  for (PlanTensor &other : older.plan.tensors)
    if (&other != &tensor && other.logical == "loss") other.name = other.logical = "added";
  Run run(std::move(older));
  run.request.steps = 1;
  const std::string message = rejectionOf(run.request);
  INFO(message);
  if (lost == TrainingRole::lossGradient)  // neither carried nor given
    CHECK_THAT(message, Catch::Contains("reads 'd_loss', which weft run --steps has no values of"));
  else
    CHECK_THAT(message, Catch::Contains(std::string("\"training\": \"") +
                                        std::string(nameOf(lost)) + "\"") &&
                            Catch::Contains("compile again"));
}

TEST_CASE("a state that cannot be written is told before the first step") {
  Run run;
  run.request.steps = 1;
  run.request.state = (run.folder.path() / "no" / "such" / "folder" / "state").string();
  std::string message;
  try {
    trainArtifact(run.request);
  } catch (const std::exception &error) {
    message = error.what();
  }
  CHECK_THAT(message, Catch::Contains("such"));
}
