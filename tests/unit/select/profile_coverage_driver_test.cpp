// What selection from measurements is offered: all of a complete profile and nothing else; what was
// pruned and what had to be modelled is counted and named.
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "kernel/ContractionRegion.h"
#include "kernel/Error.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/ProfileMeasurements.h"
#include "tests/unit/samples/SampleContractions.h"
#include "tests/unit/samples/SampleProblems.h"

#include <catch2/catch.hpp>

#include <set>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::decision;
using namespace weft::samples;

namespace {

const Device &device() { return findDevice("h200"); }

/// y = c(b(a(x), z)); the layouts of a's and b's results are free.
select::Problem chain() {
  ProblemBuilder builder({{'j', 64}, {'i', 256}});
  const int x = builder.argument("x"), z = builder.argument("z");
  const int a = builder.op("a", {x}), b = builder.op("b", {a, z});
  builder.result(builder.op("c", {b}));
  builder.everyOpAlone();
  builder.candidate({0, 1, 2});
  return builder.problem;
}

/// y = add(relu(x)), no fusion: one tensor between two kernels.
select::Problem pair() {
  ProblemBuilder builder({{'j', 64}, {'i', 256}});
  const int x = builder.argument("x"), z = builder.argument("z");
  builder.result(builder.op("b", {builder.op("a", {x}), z}));
  builder.everyOpAlone();
  return builder.problem;
}

Profile profileOf(const select::Problem &problem) {
  return completeProfile(decision::profileSpace({problem}, {}, *analyticCostModel(device()), {}));
}

std::unique_ptr<CostModel> modelOf(Profile profile, bool strict = false) {
  return measuredCostModel(device(), std::move(profile), "profile p", strict);
}

ProfileKernel &rowsOf(Profile &profile, const Kernel &kernel) {
  return profile.kernels.at(profileHash(kernelSubject(kernel).text));
}

void keepMeasurements(ProfileKernel &kernel, std::string_view layouts) {
  std::erase_if(kernel.measurements,
                [&](const auto &entry) { return splitLine(entry.first).layouts != layouts; });
  REQUIRE_FALSE(kernel.measurements.empty());
}

bool mentions(const std::vector<std::string> &notes, const std::string &part) {
  return std::any_of(notes.begin(), notes.end(),
                     [&](const std::string &note) { return note.find(part) != std::string::npos; });
}

size_t transposesIn(const select::SelectionResult &plan) {
  return size_t(std::count_if(plan.steps.begin(), plan.steps.end(),
                              [](const select::Step &step) { return step.candidate < 0; }));
}

}  // namespace

TEST_CASE("every pair of layouts that a tensor keeps is an item of the space") {
  const decision::ProfileSpace space =
      decision::profileSpace({chain()}, {}, *analyticCostModel(device()),
                             {.layoutFactor = 1, .mostLayouts = 1, .mostKnobs = 1});
  const select::Problem problem = chain();
  const std::string subject =
      profileHash(kernelSubject(select::transposeKernel(problem.tensors.at(2))).text);
  std::set<std::string> pairs;
  for (const decision::ProfileItem &item : space.items)
    if (item.subject == subject) pairs.insert(std::string(splitLine(item.line).layouts));
  CHECK(pairs == std::set<std::string>{"01>10", "10>01"});
}

TEST_CASE("a complete profile leaves nothing to the model") {
  const select::Selection selection =
      select::select(chain(), *modelOf(profileOf(chain()), true), {});
  const select::Statistics &statistics = selection.statistics();
  CHECK(statistics.coverageMeasured == 1);
  CHECK(statistics.measured > 0);
  CHECK(statistics.unmeasuredKernels == 0);
  CHECK(statistics.prunedTransposes == 0);
  CHECK(statistics.modelledTransposes == 0);
  CHECK(statistics.prunedConfigurations > 0);
  CHECK(statistics.prunedConfigurations < statistics.legalConfigurations);
  CHECK(statistics.notes.empty());
}

TEST_CASE("transposes without measurements are pruned by name where the tensor has others") {
  Profile profile = profileOf(chain());
  keepMeasurements(rowsOf(profile, select::transposeKernel(chain().tensors.at(2))), "01>10");
  const auto model = modelOf(profile);
  const select::Selection selection = select::select(chain(), *model, {});
  CHECK(selection.statistics().coverageMeasured == 1);
  CHECK(selection.statistics().prunedTransposes > 0);
  CHECK(selection.statistics().modelledTransposes == 0);
  CHECK(mentions(selection.statistics().notes,
                 "1 of 2 transposes between its 2 layouts were not measured"));
}

TEST_CASE("transposes of a tensor that has no measurements at all are modelled and counted") {
  Profile profile = profileOf(chain());
  profile.kernels.erase(
      profileHash(kernelSubject(select::transposeKernel(chain().tensors.at(2))).text));
  const auto model = modelOf(profile);
  const select::Selection selection = select::select(chain(), *model, {});
  CHECK(selection.statistics().coverageMeasured < 1);
  CHECK(selection.statistics().modelledTransposes > 0);
  CHECK(selection.statistics().prunedTransposes == 0);
}

TEST_CASE(
    "a transpose that every plan needs is modelled although it has no measurement, and the plan "
    "says so") {
  Profile profile = profileOf(pair());
  // The first kernel leaves its result in one layout, the second reads the other; only the way back
  // was measured.
  keepMeasurements(rowsOf(profile, pair().candidates.at(0).kernel), "01>01");
  keepMeasurements(rowsOf(profile, pair().candidates.at(1).kernel), "01,10>01");
  keepMeasurements(rowsOf(profile, select::transposeKernel(pair().tensors.at(2))), "10>01");
  const auto model = modelOf(profile);
  const select::Selection selection = select::select(pair(), *model, {});
  CHECK(transposesIn(selection.best()) == 1);
  CHECK(selection.statistics().modelledTransposes > 0);
  CHECK(selection.statistics().prunedTransposes == 0);
  CHECK(selection.statistics().coverageMeasured < 1);
  CHECK(selection.statistics().coverageMeasured > 0);
  CHECK(mentions(selection.statistics().notes, "no plan was found with measured transposes alone"));
  for (const select::Step &step : nonEmpty(selection.best().steps))
    CHECK(step.cost.measured == (step.candidate >= 0));
  // Measured, it is taken from its measurement, and nothing is modelled.
  const auto complete = profileOf(pair());
  Profile whole = profile;
  rowsOf(whole, select::transposeKernel(pair().tensors.at(2))) = complete.kernels.at(
      profileHash(kernelSubject(select::transposeKernel(pair().tensors.at(2))).text));
  const auto wholeModel = modelOf(whole, true);
  const select::Selection measured = select::select(pair(), *wholeModel, {});
  CHECK(transposesIn(measured.best()) == 1);
  CHECK(measured.statistics().coverageMeasured == 1);
  CHECK_THROWS_AS(select::select(pair(), *modelOf(profile, true), {}), Error);
}

TEST_CASE(
    "layouts without measurements are not kept, and a pin to one of them brings the model back") {
  Profile profile = profileOf(pair());
  for (const size_t candidate : {0u, 1u})
    std::erase_if(rowsOf(profile, pair().candidates.at(candidate).kernel).measurements,
                  [](const auto &entry) {
                    return splitLine(entry.first).layouts.find("10") != std::string_view::npos;
                  });
  const auto model = modelOf(profile);
  const select::Selection selection = select::select(pair(), *model, {});
  CHECK(selection.layoutPrices(2).size() == 1);
  CHECK(selection.statistics().coverageMeasured == 1);
  select::Problem pinned = pair();
  pinned.tensors.at(2).pinned = Layout{.order = {1, 0}};
  const select::Selection forced = select::select(pinned, *model, {});
  CHECK(forced.statistics().unmeasuredKernels == 2);
  CHECK(forced.statistics().coverageMeasured < 1);
}

TEST_CASE("the fastest measurement of every kernel and layouts is enough for the same plan") {
  const Profile profile = profileOf(chain());
  const Profile thin = parseProfile(printProfile(thinned(profile, 1)), "thin.txt");
  CHECK(thin.measurementCount() < profile.measurementCount());
  const auto whole = modelOf(profile), small = modelOf(thin);
  const select::Selection a = select::select(chain(), *whole, {}),
                          b = select::select(chain(), *small, {});
  CHECK(b.best().seconds == Approx(a.best().seconds).epsilon(1e-9));
  CHECK(b.best().lowerBound == Approx(a.best().lowerBound).epsilon(1e-9));
  CHECK(b.statistics().coverageMeasured == 1);
  CHECK(b.statistics().prunedTransposes == 0);
}

TEST_CASE("measurements of a tile that is not emitted any more are no offer") {
  const Kernel kernel = gemmBiasGelu({.b = 8, .j = 512, .i = 1024, .u = 4096}, DType::f16, true);
  Configuration configuration;
  for (const Configuration &one : enumerate(kernel, device()).legal)
    if (one.knobs.is<Sm90GemmKnobs>()) configuration = one;
  Configuration rejected = configuration;  // 192 accumulators a thread leave no registers for an
                                           // epilogue with two results
  rejected.knobs = Sm90GemmKnobs{.schedule = Sm90Schedule::pingPong,
                                 .tileM = 128,
                                 .tileN = 192,
                                 .stages = 4,
                                 .epilogueStages = 4,
                                 .blocks = 132};
  Profile profile{.device = "h200", .protocols = {{1, "pretended"}}, .kernels = {}};
  for (const Configuration &one : {configuration, rejected})
    addMeasurement(
        profile, kernel, one,
        {.seconds = 1e-5, .n = 9, .spread = 0.01, .familyVersion = one.knobs.family().version});
  CHECK(rowsOf(profile, kernel).measurements.size() == 2);
  const auto model = modelOf(profile);
  const std::vector<PricedConfiguration> &offered = model->measured(kernel);
  CHECK(offered.size() >= 1);
  for (const PricedConfiguration &one : nonEmpty(offered))
    CHECK(one.configuration.knobs == configuration.knobs);
}

TEST_CASE("measurements of a fused contraction serve every layout of the same form, and no other") {
  const Kernel kernel = gemmBias({.b = 8, .j = 512, .i = 1024, .u = 4096}, DType::f16);
  std::vector<Configuration> all;
  for (const Configuration &one : enumerate(kernel, device()).legal)
    if (one.knobs.is<Sm90GemmKnobs>()) all.push_back(one);
  REQUIRE(all.size() > 2);
  Profile profile{.device = "h200", .protocols = {{1, "pretended"}}, .kernels = {}};
  const Configuration &measurement = all.front();
  addMeasurement(profile, kernel, measurement,
                 {.seconds = 7e-5,
                  .n = 9,
                  .spread = 0.01,
                  .familyVersion = measurement.knobs.family().version});
  const auto model = modelOf(profile);
  size_t same = 0, others = 0;
  for (const Configuration &one : nonEmpty(all)) {
    if (one.knobs != measurement.knobs) continue;
    const bool isSame = contractionForm(kernel, one) == contractionForm(kernel, measurement);
    const Cost cost = model->cost(kernel, one);
    CHECK(cost.measured == isSame);
    CHECK((cost.seconds == 7e-5) == isSame);
    (isSame ? same : others) += 1;
  }
  CHECK(same > 1);  // b and j merge in either order where x has them in the same one
  CHECK(others > 1);
  std::set<std::string> offered;
  for (const PricedConfiguration &one : model->measured(kernel))
    offered.insert(contractionForm(kernel, one.configuration));
  CHECK(offered == std::set{contractionForm(kernel, measurement)});
  CHECK(model->measured(kernel).size() == same);
}
