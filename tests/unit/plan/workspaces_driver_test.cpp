// Workspaces of emitted kernels in plans: of the size that the family names, packed with the
// temporaries for one launch, in chunks and in concurrent plans, and what of them is rejected.
#include "kernel/Error.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/Family.h"
#include "passes/decide/Decide.h"
#include "passes/decide/PathPlan.h"
#include "plan/Buffers.h"
#include "plan/PlanMemory.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/families/workspace/WorkspaceFamily.h"
#include "tests/unit/samples/SampleKernels.h"
#include "tools/driver/Emission.h"
#include "tools/driver/MemoryReport.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

using namespace weft;
using weft::test::nonEmpty;

namespace {

const FamilyRegistration registered(test::workspaceFamily);

const Device &device() { return findDevice("h200"); }

constexpr int64_t rows = 8, columns = 512, elements = rows * columns;
constexpr int64_t tensorBytes = 2 * elements, workspaceBytes = 4 * elements;

/// x -> t0 -> ... -> y by relu, all f16 [b=8, j=512]; or x -> y0, x -> y1, ....
select::Problem relus(int count, bool isChain) {
  select::Problem problem{.name = "relus"};
  const auto add = [&](const std::string &name) {
    select::Tensor tensor;
    tensor.name = name;
    tensor.axes = {{"b", rows}, {"j", columns}};
    problem.tensors.push_back(tensor);
    return int(problem.tensors.size()) - 1;
  };
  int from = add("x");
  problem.tensors[0].isArgument = true;
  for (int op = 0; op < count; ++op) {
    const bool isLast = op + 1 == count;
    const int to = add(isLast && isChain ? "y" : fmt::format("t{}", op));
    problem.tensors.back().isResult = isLast || !isChain;
    problem.ops.push_back("relu");
    problem.opInputs.push_back({from}), problem.opOutputs.push_back({to});
    select::Candidate candidate;
    candidate.ops = {op}, candidate.inputs = {from}, candidate.outputs = {to};
    candidate.name = "relu";
    candidate.kernel = samples::reluKernel({{'b', rows}, {'j', columns}}, "bj");
    problem.candidates.push_back(candidate);
    if (isChain) from = to;
  }
  return problem;
}

PlannedKernels planned(int count, bool isChain, int chunks = 1, bool concurrent = false) {
  const select::Problem problem = relus(count, isChain);
  const auto prices = analyticCostModel(device());
  const decision::Chunking chunking{
      .count = chunks, .prices = prices.get(), .concurrent = concurrent};
  PlannedKernels result =
      decision::planOfPath(problem, select::select(problem, *prices, {}).best(), chunking, false);
  driver::emitKernels(result, "sm_90a",
                      [](const ChosenKernel &) { return std::vector<std::string>(); });
  return result;
}

std::string rejectionOf(const Plan &plan) {
  try {
    verify(plan, "plan.json");
    verifyDerived(plan, "plan.json");
  } catch (const Error &error) {
    CHECK(error.kind == ErrorKind::badInput);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("kernels one after the other share their workspace") {
  const Plan plan = planned(3, true).plan;
  REQUIRE(plan.kernels.size() == 3);
  CHECK(rejectionOf(plan) == "");
  const PlanMemory memory(plan);
  std::set<int> buffers;
  for (const PlanKernel &kernel : nonEmpty(plan.kernels)) {
    CHECK(kernel.family == test::workspaceFamily);
    CHECK(kernel.workspaceBytes == workspaceBytes);
    CHECK(workspaceBytesOf(kernel) == workspaceBytes);
    CHECK(kernel.parameters.back().kind == ParameterKind::workspace);
    buffers.insert(kernel.workspaceBuffer);
    const MemoryRange range = memory.rangeOf(kernel.workspaceBuffer);
    CHECK((range.memory == MemoryRange::workspace && range.end - range.begin == workspaceBytes));
  }
  CHECK(buffers.size() == 3);
  // Of the two temporaries one lies in y; no workspace does, which is aligned to 256 bytes.
  CHECK(plan.workspaceBytes == workspaceBytes + tensorBytes);
  CHECK(memory.bytes(BufferKind::temporary) == plan.workspaceBytes);
}

TEST_CASE("a limit of memory takes kernels that work in less, or in nothing") {
  const auto prices = analyticCostModel(device());
  select::Problem chain = relus(3, true);
  for (select::Tensor &tensor : chain.tensors)  // no other layouts, which dummy-workspace lacks
    tensor.pinned = rowMajor(2);
  const decision::Problem problem{
      .variants = {{.problem = chain, .notes = {}}},
      .context = {.prices = prices.get(), .model = "relus", .dims = {}, .dtype = DType::f16},
      .everyVariant = [] { return std::vector<select::Problem>(); }};
  const auto decided = [&](int64_t limit) {
    return decision::decide(problem, {.maxMemory = limit, .maxMemoryText = "it"});
  };
  const auto free = decision::decide(problem, {});
  REQUIRE(free);
  CHECK(free->planned.plan.workspaceBytes == workspaceBytes + tensorBytes);
  CHECK(free->path().peakTemporaryBytes == workspaceBytes + 2 * tensorBytes);
  const auto roomy = decided(workspaceBytes + tensorBytes);
  REQUIRE(roomy);
  CHECK(roomy->planned.plan.kernels == free->planned.plan.kernels);
  for (const int64_t limit : {workspaceBytes + tensorBytes - 1, workspaceBytes - 1, tensorBytes}) {
    CAPTURE(limit);
    const auto limited = decided(limit);
    INFO((limited ? std::string() : limited.error().what()));
    REQUIRE(limited);
    const Plan &plan = limited->planned.plan;
    CHECK(plan.workspaceBytes <= limit);
    CHECK(plan.predictedSeconds > free->planned.plan.predictedSeconds);
    CHECK(std::ranges::any_of(plan.kernels,
                              [](const PlanKernel &one) { return one.workspaceBytes == 0; }));
  }
  const auto tooSmall = decided(tensorBytes - 1);
  REQUIRE_FALSE(tooSmall);
  CHECK_THAT(tooSmall.error().what(), Catch::Contains(fmt::format("{}", tensorBytes)));
}

TEST_CASE("the search counts what launches work in among live temporaries") {
  const auto prices = analyticCostModel(device());
  select::Options options;
  options.maxMemory = workspaceBytes + 2 * tensorBytes;
  CHECK(select::select(relus(3, true), *prices, options).best().peakTemporaryBytes ==
        *options.maxMemory);
  options.maxMemory = *options.maxMemory - 1;
  const select::SelectionResult other = select::select(relus(3, true), *prices, options).best();
  CHECK(other.peakTemporaryBytes <= *options.maxMemory);
  CHECK(other.seconds > select::select(relus(3, true), *prices, {}).best().seconds);
  options.mostWorkspace = workspaceBytes - 1;
  CHECK(select::select(relus(3, true), *prices, options).best().peakTemporaryBytes ==
        2 * tensorBytes);
}

TEST_CASE("kernels that may run at once have separate workspaces") {
  const Plan plan = planned(2, false, 1, true).plan;
  CHECK(rejectionOf(plan) == "");
  CHECK(plan.kernels[1].after.empty());
  CHECK(plan.workspaceBytes == 2 * workspaceBytes);
  CHECK(planned(2, false).plan.workspaceBytes == workspaceBytes);
  Plan shared = plan;
  shared.memoryPlan.back().offset = 0;
  CHECK_THAT(rejectionOf(shared), Catch::Contains("it shares memory of") &&
                                      Catch::Contains("'s workspace") &&
                                      Catch::Contains("does not wait for it"));
}

TEST_CASE("a chunk works in a chunk's workspace") {
  const Plan plan = planned(2, true, 2).plan;
  REQUIRE(plan.kernels.size() == 4);
  CHECK(rejectionOf(plan) == "");
  for (const PlanKernel &kernel : nonEmpty(plan.kernels)) {
    CHECK(kernel.chunk);
    CHECK(kernel.workspaceBytes == workspaceBytes / 2);
  }
  CHECK(plan.workspaceBytes == workspaceBytes / 2 + tensorBytes / 2);
}

TEST_CASE("a kernel's workspace is named among the temporaries") {
  const Plan plan = planned(2, true).plan;
  const nlohmann::json peak = driver::memoryReport(plan)["peak"];
  CHECK(std::ranges::any_of(peak["tensors"], [&](const nlohmann::json &one) {
    return one["name"] == peak["kernel"].get<std::string>() + "'s workspace" &&
           one["bytes"] == workspaceBytes && one["in"] == "workspace";
  }));
  CHECK(peak["temporaries"] == workspaceBytes + tensorBytes);
  CHECK_THAT(driver::memoryLine(plan), Catch::Contains(", which works in 16.4 kB of them\n"));
}

TEST_CASE("plan.json keeps a kernel's workspace, and nothing of a kernel without") {
  const Plan plan = planned(2, true).plan;
  nlohmann::json json = toJson(plan);
  CHECK(json["kernels"][0]["workspaceBytes"] == workspaceBytes);
  CHECK(planFromJson(json, "plan.json") == plan);
  Plan none = plan;
  none.kernels[0].workspaceBytes = 0;
  CHECK_FALSE(toJson(none)["kernels"][0].contains("workspaceBytes"));
}

TEST_CASE("a workspace that is not what the kernel takes is rejected") {
  const Plan good = planned(2, true).plan;
  const auto rejected = [&](const auto &change) {
    Plan plan = good;
    change(plan.kernels[1], plan);
    return rejectionOf(plan);
  };
  CHECK_THAT(rejected([](PlanKernel &one, Plan &) { one.workspaceBytes = -1; }),
             Catch::Contains("workspaceBytes: -1 are less than none"));
  CHECK_THAT(rejected([](PlanKernel &one, Plan &) { one.workspaceBytes = int64_t(1) << 62; }),
             Catch::Contains("more than any memory"));
  CHECK_THAT(rejected([](PlanKernel &one, Plan &) { one.workspaceBuffer = -1; }),
             Catch::Contains("has no workspaceBuffer"));
  CHECK_THAT(rejected([](PlanKernel &one, Plan &) { one.workspaceBytes = 0; }),
             Catch::Contains("1 parameters take a workspace, and its workspaceBytes are 0"));
  CHECK_THAT(rejected([](PlanKernel &one, Plan &) { one.parameters.pop_back(); }),
             Catch::Contains("0 parameters take a workspace"));
  CHECK_THAT(
      rejected([](PlanKernel &one, Plan &) { one.parameters.push_back(one.parameters.back()); }),
      Catch::Contains("2 parameters take a workspace"));
  CHECK_THAT(rejected([](PlanKernel &one, Plan &) { one.workspaceBytes += 256; }),
             Catch::Contains("but its temporaries take") ||
                 Catch::Contains("its workspace shares memory with 't0'"));
  CHECK_THAT(rejected([](PlanKernel &one, Plan &plan) {
               for (BufferAllocation &place : plan.memoryPlan)
                 if (place.buffer == one.workspaceBuffer)
                   place.offset = PlanMemory(plan).rangeOf(plan.tensors[1]).begin;
             }),
             Catch::Contains("its workspace shares memory with 't0'"));
  CHECK_THAT(rejected([](PlanKernel &one, Plan &plan) {
               for (BufferAllocation &place : plan.memoryPlan)
                 if (place.buffer == one.workspaceBuffer)
                   place.in = {.result = 2}, place.offset = 0;
             }),
             Catch::Contains("works in: it lies in the workspace"));
}

TEST_CASE("a workspace that has grown lies behind all temporaries; one that is gone, nowhere") {
  Plan plan = planned(2, true).plan;
  const int64_t before = plan.workspaceBytes;
  const auto resize = [&](int64_t bytes) {
    resizeWorkspace(plan, plan.kernels[1], bytes);
    plan.workspaceBytes = PlanMemory(plan).bytes(BufferKind::temporary);
  };
  const int buffer = plan.kernels[1].workspaceBuffer;
  resize(workspaceBytes / 2);  // stays where it is
  CHECK(rejectionOf(plan) == "");
  CHECK(plan.workspaceBytes == before);
  resize(2 * workspaceBytes);
  CHECK(rejectionOf(plan) == "");
  CHECK(plan.kernels[1].workspaceBuffer == buffer);
  CHECK(plan.workspaceBytes == before + 2 * workspaceBytes);
  resize(0);
  plan.kernels[1].parameters.pop_back();
  CHECK(rejectionOf(plan) == "");
  CHECK(plan.kernels[1].workspaceBuffer == -1);
  CHECK(plan.workspaceBytes == before);
  plan.kernels[1].parameters.push_back(plan.kernels[0].parameters.back());
  resize(256);
  CHECK(rejectionOf(plan) == "");
  CHECK(plan.kernels[1].workspaceBuffer == buffer);
  CHECK(plan.workspaceBytes == before + 256);
}

TEST_CASE("a library GEMM names its workspace by its knobs alone") {
  PlanKernel gemm;
  gemm.family = libraryFamily;
  gemm.knobs = {LibraryKnobs{.workspaceBytes = 4096}};
  gemm.workspaceBuffer = 3;
  CHECK(workspaceBytesOf(gemm) == 4096);
  Plan plan;
  resizeWorkspace(plan, gemm, 77);
  CHECK((gemm.workspaceBytes == 0 && gemm.workspaceBuffer == 3));
}
