// A family that weft does not know takes part in everything: with its folder (dummy/) and the one
// line that registers it.
#include "codegen/Emit.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "kernel/ConfigurationText.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/Family.h"
#include "passes/select/Selection.h"
#include "plan/PlanConfiguration.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/families/dummy/DummyFamily.h"
#include "tests/unit/samples/SampleKernels.h"

#include <catch2/catch.hpp>

using namespace weft;
using weft::test::dummyFamily;
using weft::test::DummyKnobs;
using weft::test::nonEmpty;

namespace {

const FamilyRegistration registered(dummyFamily);  // the one line

const Device &device() {
  static const Device h200 = findDevice("h200");
  return h200;
}

Kernel copy() { return samples::identityKernel({{'b', 3}, {'j', 5}}, "bj"); }

Configuration configurationOf(const Kernel &kernel, int threads) {
  return toConfiguration(kernel, {rowMajor(2), rowMajor(2)}, DummyKnobs{threads});
}

}  // namespace

TEST_CASE("a registered family is found by its name, behind the others") {
  CHECK(familyNamed("dummy") == &dummyFamily);
  CHECK(families().back() == &dummyFamily);
  CHECK(families().size() > 1);
}

TEST_CASE("its configurations are listed, priced, and told why not") {
  const Kernel kernel = copy();
  const auto model = analyticCostModel(device());
  size_t own = 0;
  for (const Configuration &one : nonEmpty(enumerate(kernel, device()).legal)) {
    if (!one.knobs.is<DummyKnobs>()) continue;
    ++own;
    CHECK(model->cost(kernel, one).seconds == 1e-9);
    CHECK(model->cost(kernel, one).bytesNecessary == kernel.necessaryBytes());
  }
  CHECK(own == 4);  // two layouts, two numbers of threads
  const Kernel other = samples::contractKernel({{'i', 4}, {'k', 4}, {'n', 4}}, "ik", "kn", "in");
  std::string reason;
  for (const Exclusion &one : nonEmpty(enumerate(other, device()).excluded))
    if (one.family == "dummy") reason = one.reason;
  CHECK(reason == "the body is not one copy");
}

TEST_CASE("its schedule comes back from plan.json and from a profile's line, and is in the key") {
  const Kernel kernel = copy();
  const Configuration configuration = configurationOf(kernel, 256);
  CHECK(knobsOf(planKnobsFromJson(toJson(planKnobs(configuration.knobs, kernel)), "a test"), kernel,
                "a test") == configuration.knobs);
  const std::string line = configurationLine(kernel, configuration);
  CHECK(line == "dummy 01>01 threads=256");
  CHECK(parseConfiguration(line, kernel) == configuration);
  CHECK_THAT(canonicalText(kernel, configuration, "sm_80"),
             Catch::Contains("family dummy 1\nknobs threads 256\n"));
  CHECK(describe(kernel, configuration.knobs) == "dense copy by 256 threads a block, threads 256");
  CHECK_THROWS_WITH(configuration.knobs.get<LoopKnobs>(),
                    "knobs of dummy where those of loop are needed");
  CHECK_THROWS_WITH(Knobs().family(), "a configuration without knobs");
}

TEST_CASE("it is emitted by its own lowering") {
  const Kernel kernel = copy();
  const codegen::EmittedKernel emitted =
      codegen::emit(kernel, configurationOf(kernel, 128), "sm_80");
  CHECK_THAT(emitted.readable, Catch::Contains("weft::copyElement(y, x, at, 15);"));
  CHECK(emitted.headers == std::vector<std::string>{"weft/dummy_copy.cuh"});
  CHECK(emitted.launch.block[0] == 128);
}

TEST_CASE("selection chooses it where it is the cheapest") {
  select::Problem problem{.name = "a copy"};
  for (const char *name : {"x", "y"}) {
    select::Tensor tensor;
    tensor.name = name;
    tensor.axes = {{"b", 3}, {"j", 5}};
    problem.tensors.push_back(tensor);
  }
  problem.tensors[0].isArgument = problem.tensors[1].isResult = true;
  problem.ops = {"identity"}, problem.opInputs = {{0}}, problem.opOutputs = {{1}};
  select::Candidate candidate;
  candidate.ops = {0}, candidate.inputs = {0}, candidate.outputs = {1};
  candidate.name = "identity", candidate.kernel = copy();
  problem.candidates = {candidate};
  const auto model = analyticCostModel(device());
  const select::Selection selection = select::select(problem, *model, {});
  REQUIRE(selection.best().steps.size() == 1);
  CHECK(selection.best().steps[0].configuration.knobs.is<DummyKnobs>());
}
