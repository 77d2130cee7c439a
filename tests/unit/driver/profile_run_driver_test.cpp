// What a profile measures, and its run with a measurer that needs no GPU: order, resumption,
// failures, budget, lost GPUs; rank correlation; selection from what was measured.
#include "kernel/Error.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/ProfileSamples.h"
#include "tools/driver/ProfileReport.h"
#include "tools/driver/ProfileRun.h"
#include "tools/driver/RankCorrelation.h"

#include <catch2/catch.hpp>

#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::driver;
using namespace weft::samples;

namespace {

select::Problem chain() { return profiledChain(64, 256); }

ProfileSpace chainSpace() {
  return decision::profileSpace({chain(), chain()}, {}, *analyticCostModel(findDevice("h200")), {});
}

/// Times follow from the size of the cubin text; every 7th kernel fails, and every 5th of the
/// others is slow.
class FakeMeasurer : public runtime::Measurer {
public:
  explicit FakeMeasurer(size_t lives = std::numeric_limits<size_t>::max()) : lives(lives) {}
  const runtime::MeasureGreeting &greeting() const override { return hello; }
  runtime::MeasureReply measure(const runtime::MeasureGroup &group) override {
    if (lives-- == 0) throw Error::checkFailed("the GPU fell off the bus");
    runtime::MeasureReply reply{.bestFirstRun = 1e-6};
    for (size_t job = 0; job < group.kernels.size(); ++job) {
      runtime::MeasureResult result{
          .job = job, .knobs = {}, .seconds = 1e-6 * double(1 + count % 13), .n = 9};
      if (count % 7 == 6)
        result.status = MeasurementStatus::failed, result.reason = "illegal address";
      else if (count % 5 == 4) result.status = MeasurementStatus::slow;
      ++count;
      reply.results.push_back(result);
    }
    return reply;
  }
  size_t count = 0;

private:
  size_t lives;
  runtime::MeasureGreeting hello{.gpu = "NVIDIA H200", .architecture = "sm_90", .protocol = "fake"};
};

std::vector<runtime::BuildResult> pretendToBuild(const std::vector<runtime::BuildRequest> &requests,
                                                 const std::atomic<bool> &) {
  std::vector<runtime::BuildResult> results(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) results[i].cubin = requests[i].text;
  return results;
}

ProfileRunOptions fakeOptions(size_t lives = std::numeric_limits<size_t>::max()) {
  ProfileRunOptions options{.architecture = "sm_90a"};
  options.startMeasurer = [lives](int, const std::atomic<bool> &) {
    return std::make_unique<FakeMeasurer>(lives);
  };
  options.build = pretendToBuild;
  return options;
}

}  // namespace

TEST_CASE(
    "equal kernels of several variants are measured once, best first, and every kernel has "
    "something") {
  const ProfileSpace space = chainSpace();
  const ProfileSpace once =
      decision::profileSpace({chain()}, {}, *analyticCostModel(findDevice("h200")), {});
  CHECK(space.items.size() == once.items.size());
  REQUIRE(space.items.size() > 50);
  CHECK(std::is_sorted(space.items.begin(), space.items.end(),
                       [](const auto &a, const auto &b) { return a.rank < b.rank; }));
  std::set<std::string> lines;
  std::map<size_t, size_t> perKernel;
  for (const ProfileItem &item : nonEmpty(space.items)) {
    CHECK(lines.insert(item.subject + item.line).second);
    CHECK(item.rank >= 1);
    ++perKernel[item.kernel];
  }
  CHECK(perKernel.size() == space.kernels.size());
  for (const decision::ProfileKernelSpace &kernel : nonEmpty(space.kernels))
    CHECK(kernel.configurations <= kernel.legal);
  CHECK(describe(space, true).find("legal configurations") != std::string::npos);
}

TEST_CASE("narrower factors measure less, and the best is never pruned") {
  const auto model = analyticCostModel(findDevice("h200"));
  const ProfileSpace wide = decision::profileSpace(
      {chain()}, {}, *model,
      {.layoutFactor = 100, .mostLayouts = 1000, .knobFactor = 100, .mostKnobs = 100});
  const ProfileSpace narrow = decision::profileSpace(
      {chain()}, {}, *model,
      {.layoutFactor = 1.01, .mostLayouts = 1, .knobFactor = 1.01, .mostKnobs = 1});
  CHECK(narrow.items.size() < wide.items.size());
  for (size_t kernel = 0; kernel < wide.kernels.size(); ++kernel) {
    const auto best = [&](const ProfileSpace &space) {
      double seconds = std::numeric_limits<double>::infinity();
      for (const ProfileItem &item : space.items)
        if (item.kernel == kernel) seconds = std::min(seconds, item.modelled);
      return seconds;
    };
    CHECK(best(narrow) == Approx(best(wide)));
  }
}

TEST_CASE("a run keeps every measurement with its status, and a second run has nothing to do") {
  const ProfileSpace space = chainSpace();
  TestStore test;
  const ProfileOutcome first = runProfile(space, test.store, fakeOptions());
  CHECK(first.end == ProfileEnd::finished);
  CHECK(first.progress.done == space.items.size());
  CHECK(first.progress.measured + first.progress.slow + first.progress.failed ==
        space.items.size());
  CHECK(first.progress.slow > 0);
  CHECK(first.progress.failed > 0);
  const Profile profile = test.store.read();
  CHECK(profile.measurementCount() == space.items.size());
  CHECK(profile.protocols.begin()->second.find("NVIDIA H200") != std::string::npos);
  const ProfileOutcome second = runProfile(space, test.store, fakeOptions(0));
  CHECK(second.skipped == space.items.size());
  CHECK(second.progress.total == 0);
}

TEST_CASE("what is near the best of an older text is measured again where that is asked for") {
  const ProfileSpace space = chainSpace();
  TestStore test;
  runProfile(space, test.store, fakeOptions());
  Profile profile = test.store.read();
  size_t near = 0, older = 0;
  for (auto &[subject, kernel] : profile.kernels) {
    double best = std::numeric_limits<double>::infinity();
    for (const auto &[line, measurement] : kernel.measurements)
      if (measurement.status == MeasurementStatus::measured)
        best = std::min(best, measurement.seconds);
    for (auto &[line, measurement] : kernel.measurements) {
      const bool isNear =
          measurement.status == MeasurementStatus::measured && measurement.seconds <= 1.2 * best;
      if (++older % 2 == 0) continue;  // of the text that is emitted now
      measurement.source = "0123456789abcdef";
      near += isNear;
    }
  }
  REQUIRE(near > 3);
  test.store.merge(profile);
  CHECK(runProfile(space, test.store, fakeOptions()).progress.done == 0);
  ProfileRunOptions again = fakeOptions();
  again.again = true;
  CHECK(runProfile(space, test.store, again).progress.done == near);
}

TEST_CASE("a kernel that does not build is a failed measurement, and the others are measured") {
  const ProfileSpace space = chainSpace();
  TestStore test;
  ProfileRunOptions options = fakeOptions();
  options.build = [](const std::vector<runtime::BuildRequest> &requests,
                     const std::atomic<bool> &cancelled) {
    std::vector<runtime::BuildResult> results = pretendToBuild(requests, cancelled);
    for (size_t i = 0; i < results.size(); i += 3) results[i].error = "error: no\nmore lines";
    return results;
  };
  const ProfileOutcome outcome = runProfile(space, test.store, options);
  CHECK(outcome.end == ProfileEnd::finished);
  const ProfileReport report = reportOf(space, test.store.read());
  CHECK(report.failures.at("build: error: no") > 0);
  CHECK(test.store.read().measurementCount() == space.items.size());
}

TEST_CASE(
    "a GPU that is lost ends the run with its reason; measurements are kept and the next run goes "
    "on") {
  const ProfileSpace space = chainSpace();
  TestStore test;
  try {
    runProfile(space, test.store, fakeOptions(2));
    FAIL("the loss was not told");
  } catch (const Error &error) {
    CHECK(std::string(error.what()).find("fell off the bus") != std::string::npos);
  }
  const size_t kept = test.store.read().measurementCount();
  CHECK(kept > 0);
  CHECK(kept < space.items.size());
  const ProfileOutcome rest = runProfile(space, test.store, fakeOptions());
  CHECK(rest.skipped == kept);
  CHECK(test.store.read().measurementCount() == space.items.size());
}

TEST_CASE("an interrupt and a spent budget keep what was measured") {
  const ProfileSpace space = chainSpace();
  for (const bool byInterrupt : {false, true}) {
    TestStore test;
    std::atomic<bool> interrupted = false;
    ProfileRunOptions options = fakeOptions();
    options.interrupted = &interrupted;
    if (!byInterrupt) options.budgetSeconds = 1e-9;
    options.progress = [&](const ProfileProgress &progress) {
      interrupted = byInterrupt && progress.done > 0;
    };
    const ProfileOutcome outcome = runProfile(space, test.store, options);
    if (outcome.progress.done < space.items.size())
      CHECK(outcome.end == (byInterrupt ? ProfileEnd::interrupted : ProfileEnd::budget));
    const ProfileProgress &progress = outcome.progress;
    CHECK(test.store.read().measurementCount() ==
          progress.measured + progress.slow + progress.failed);
  }
}

namespace {

/// Measures some groups, then hangs until it is cancelled.
class HangingMeasurer : public FakeMeasurer {
public:
  HangingMeasurer(size_t groups, const std::atomic<bool> &cancelled)
      : groups(groups), cancelled(cancelled) {}
  runtime::MeasureReply measure(const runtime::MeasureGroup &group) override {
    if (groups-- > 0) return FakeMeasurer::measure(group);
    while (!cancelled) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    throw runtime::MeasureCancelled();
  }

private:
  size_t groups;
  const std::atomic<bool> &cancelled;
};

}  // namespace

TEST_CASE(
    "a budget and an interrupt cancel compilers and measuring that would go on, and lose no "
    "measurement") {
  const ProfileSpace space = chainSpace();
  for (const bool byInterrupt : {false, true}) {
    TestStore test;
    std::atomic<bool> interrupted = false, buildWasCancelled = false;
    std::atomic<int> lots =
        0;  // a second one begins if the queue of the measurer has room for it by then
    ProfileRunOptions options = fakeOptions();
    options.interrupted = &interrupted;
    options.startMeasurer = [](int, const std::atomic<bool> &cancelled) {
      return std::make_unique<HangingMeasurer>(2, cancelled);
    };
    options.build = [&](const std::vector<runtime::BuildRequest> &requests,
                        const std::atomic<bool> &cancelled) {
      if (lots++ == 0) return pretendToBuild(requests, cancelled);
      while (!cancelled) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      buildWasCancelled = true;
      return std::vector<runtime::BuildResult>(requests.size(), {.error = runtime::cancelledError});
    };
    if (!byInterrupt) options.budgetSeconds = 0.5;
    options.progress = [&](const ProfileProgress &progress) {
      interrupted = byInterrupt && progress.done > 0;
    };
    const auto begin = std::chrono::steady_clock::now();
    const ProfileOutcome outcome = runProfile(space, test.store, options);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
    CHECK(outcome.end == (byInterrupt ? ProfileEnd::interrupted : ProfileEnd::budget));
    CHECK(outcome.lostGpus.empty());
    CHECK(buildWasCancelled == (lots > 1));
    const Profile profile = test.store.read();
    CHECK(profile.measurementCount() == outcome.progress.done);
    CHECK(outcome.measurementsOfGpu == std::vector<size_t>{outcome.progress.done});
    CHECK(profile.measurementCount() > 0);
    for (const auto &[hash, kernel] : nonEmpty(profile.kernels))
      for (const auto &[line, measurement] : nonEmpty(kernel.measurements))
        CHECK(measurement.reason.find(runtime::cancelledError) == std::string::npos);
    CHECK(runProfile(space, test.store, fakeOptions()).skipped == profile.measurementCount());
    CHECK(test.store.read().measurementCount() == space.items.size());
  }
}

TEST_CASE("no compiler is an error, not a failed measurement") {
  const ProfileSpace space = chainSpace();
  TestStore test;
  ProfileRunOptions options = fakeOptions();
  options.build = [](const auto &, const auto &) -> std::vector<runtime::BuildResult> {
    throw Error::unsupported("no NVRTC");
  };
  CHECK_THROWS_WITH(runProfile(space, test.store, options), Catch::Contains("no NVRTC"));
  CHECK(test.store.read().measurementCount() == 0);
}

TEST_CASE("rank correlation: order counts, ties share ranks") {
  CHECK(*spearman({{1, 10}, {2, 20}, {3, 300}}) == Approx(1));
  CHECK(*spearman({{1, 3}, {2, 2}, {3, 1}}) == Approx(-1));
  CHECK(*spearman({{1, 1}, {1, 2}, {2, 3}, {3, 4}}) ==
        Approx(0.9486832981));  // Pearson of ranks 0.5, 0.5, 2, 3 and 0..3
  CHECK_FALSE(spearman({{1, 1}}));
  CHECK_FALSE(spearman({{1, 1}, {1, 2}}));
  CHECK_FALSE(spearman({{1, std::nan("")}, {2, 2}}));
}

TEST_CASE("selection chooses among measured configurations alone, and says what was not measured") {
  const ProfileSpace space = chainSpace();
  TestStore test;
  runProfile(space, test.store, fakeOptions());
  const auto model = measuredCostModel(findDevice("h200"), test.store.read(), "profile a.db", true);
  const select::Selection selection = select::select(chain(), *model, {});
  CHECK(selection.statistics().coverageMeasured == 1);
  CHECK(selection.best().lowerBound <= selection.best().seconds);
  const Profile profile = test.store.read();
  for (const select::Step &step : nonEmpty(selection.best().steps)) {
    CHECK(step.cost.measured);
    CHECK_FALSE(step.cost.stale);
    const Kernel &kernel = step.candidate < 0
                               ? Kernel{}
                               : selection.problem().candidates[size_t(step.candidate)].kernel;
    if (step.candidate < 0) continue;
    const ProfileMeasurement &measurement =
        profile.kernels.at(profileHash(subjectOf(kernel, step.configuration).text))
            .measurements.at(configurationLine(kernel, step.configuration));
    CHECK(measurement.seconds == step.cost.seconds);
    CHECK(measurement.status != MeasurementStatus::failed);
  }
}

TEST_CASE(
    "pins without measured measurements and kernels without any fall back to the model, or are "
    "rejected by "
    "--strict") {
  const ProfileSpace space = chainSpace();
  TestStore test;
  runProfile(space, test.store, fakeOptions());
  Profile profile = test.store.read();
  // Rows of one layout only, so that a pin to the other has none.
  for (auto &[hash, kernel] : profile.kernels)
    std::erase_if(kernel.measurements, [](const auto &entry) {
      return splitLine(entry.first).layouts.find("10") != std::string_view::npos;
    });
  select::Problem pinned = chain();
  pinned.tensors.at(2).pinned = Layout{.order = {1, 0}};
  const auto lenient = measuredCostModel(findDevice("h200"), profile, "profile p", false);
  const select::Selection selection = select::select(pinned, *lenient, {});
  CHECK(selection.statistics().unmeasuredKernels > 0);
  CHECK(selection.statistics().notes.size() > 0);
  CHECK(selection.statistics().coverageMeasured < 1);
  const auto strict = measuredCostModel(findDevice("h200"), profile, "profile p", true);
  CHECK_THROWS_AS(select::select(pinned, *strict, {}), Error);
  const auto empty = measuredCostModel(findDevice("h200"),
                                       Profile{.device = "h200", .protocols = {}, .kernels = {}},
                                       "profile p", false);
  CHECK(select::select(chain(), *empty, {}).best().seconds ==
        Approx(select::select(chain(), *analyticCostModel(findDevice("h200")), {}).best().seconds));
  CHECK_THROWS_AS(measuredCostModel(findDevice("a100"), profile, "profile p", false), Error);
}

TEST_CASE("measurements of an older family version are used, marked stale, and measured again") {
  const ProfileSpace space = chainSpace();
  TestStore test;
  runProfile(space, test.store, fakeOptions());
  Profile profile = test.store.read();
  for (auto &[hash, kernel] : profile.kernels)
    for (auto &[line, measurement] : kernel.measurements) measurement.familyVersion = 0;
  const auto model = measuredCostModel(findDevice("h200"), profile, "profile p", false);
  const select::Selection selection = select::select(chain(), *model, {});
  for (const select::Step &step : nonEmpty(selection.best().steps)) CHECK(step.cost.stale);
  const auto strict = measuredCostModel(findDevice("h200"), profile, "profile p", true);
  CHECK_THROWS_AS(select::select(chain(), *strict, {}), Error);
  TestStore old;
  old.store.merge(profile);
  CHECK(runProfile(space, old.store, fakeOptions()).skipped == 0);
}
