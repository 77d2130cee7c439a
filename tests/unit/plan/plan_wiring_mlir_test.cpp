// Plans held to their graphs: whatever is broken in plan.json is rejected by name before it runs,
// whatever tensors are exchanged.
#include "kernel/Error.h"
#include "passes/decide/PathPlan.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/system/Files.h"
#include "tests/support/NonEmpty.h"
#include "tests/support/PlanMutations.h"
#include "tests/support/TemporaryTestFolder.h"
#include "tests/unit/families/workspace/WorkspaceFamily.h"
#include "tools/driver/Compilation.h"
#include "tools/driver/Emission.h"
#include "tools/driver/ReEmission.h"
#include "tools/driver/SelectedGraph.h"

#include <catch2/catch.hpp>

using namespace weft;
using namespace weft::driver;
using nlohmann::json;
using weft::test::nonEmpty;

namespace {

const FamilyRegistration registered(test::workspaceFamily);

runtime::Artifact artifactOf(const ModelFlags &model, const ChoiceFlags &choices,
                             const std::string &device, int parts = 0) {
  Compilation compilation(model, choices, {.deviceName = device, .profile = "none"});
  compilation.import();
  const std::vector<ProposedVariant> proposed = compilation.propose(Phase::import);
  const decision::Decision selected = compilation.decide(proposed);
  PlannedKernels planned =
      parts ? valueOrThrow(decision::planOf(compilation.planContext(), selected.best(),
                                            selected.path(), parts))
            : selected.planned;
  const EmittedPlan emitted =
      emitKernels(planned, findDevice(device).architecture,
                  [](const ChosenKernel &) { return std::vector<std::string>(); });
  runtime::Artifact artifact{.plan = planned.plan,
                             .graph = compilation.materialized(proposed, selected),
                             .sources = emitted.sources,
                             .cubins = {},
                             .report = {}};
  artifact.report["numbers"] = numbersReport(planned);
  return artifact;
}

/// Two kernels of the family with a workspace, on either side of a softmax.
runtime::Artifact workspaceArtifact() {
  const test::TemporaryTestFolder folder;
  const std::string file = (folder.path() / "graph.mlir").string();
  runtime::writeFile(file, R"(!bj = tensor<8x512xf16, #weft.axes<b, j>>
module {
  weft.graph @relus(%x: !bj) -> !bj {
    %t = weft.relu %x : !bj
    %p = weft.softmax %t over j : !bj
    %y = weft.relu %p : !bj
    weft.return %y : !bj
  }
}
)");
  return artifactOf({.model = file}, {.fuseRules = FuseRules::none}, "h200");
}

/// Together they have packed parameters, views, a backward pass, parts, maps, dropout, library
/// GEMMs and workspaces of emitted kernels.
const std::vector<runtime::Artifact> &samples() {
  const std::vector<std::string> small = {"b=2", "j=16", "h=2", "p=16", "i=32", "u=64"},
                                 tiles = {"b=2", "j=64", "h=2", "p=64", "i=128", "u=256"};
  static const std::vector<runtime::Artifact> artifacts = {
      artifactOf({.model = "paper-encoder", .train = true, .dims = small},
                 {.attention = AttentionChoice::unfused, .stacking = StackingChoice::three},
                 "h200"),
      artifactOf({.model = "paper-encoder", .dims = small},
                 {.attention = AttentionChoice::unfused, .stacking = StackingChoice::separate},
                 "a100", 2),
      artifactOf({.model = "paper-encoder", .dims = tiles},
                 {.attention = AttentionChoice::unfused, .stacking = StackingChoice::three},
                 "h200"),
      workspaceArtifact()};
  return artifacts;
}

/// What `weft run` would say of an artifact with this plan; empty: it would run.
std::string rejectionOf(const runtime::Artifact &artifact, const json &plan) {
  try {
    runtime::Artifact broken = artifact;
    broken.plan = planFromJson(plan, "DIR/plan.json");
    verify(broken.plan, "DIR/plan.json");
    checkArtifact(broken, "DIR", Use::toRun);
    verifyDerived(broken.plan, "DIR/plan.json");
  } catch (const Error &error) {
    CHECK(error.kind == ErrorKind::badInput);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE(
    "plans as they are compiled are accepted, with and without parts, packed parameters and a "
    "backward pass") {
  for (const runtime::Artifact &artifact : nonEmpty(samples()))
    CHECK(rejectionOf(artifact, toJson(artifact.plan)) == "");
}

TEST_CASE("a graph's text numbers names, and no other ending is a number") {
  CHECK(isNumberedName("norm2_0", "norm2"));
  CHECK(isNumberedName("x_12", "x"));
  for (const auto &[inGraph, inPlan] : {std::pair("x", "x"),
                                        {"x_", "x"},
                                        {"x_0a", "x"},
                                        {"x0", "x"},
                                        {"x12", "x"},
                                        {"y_0", "x"},
                                        {"x_0", "x_0"}})
    CHECK_FALSE(isNumberedName(inGraph, inPlan));
}

TEST_CASE("a broken member of plan.json is rejected, and named") {
  std::set<std::string> applied;
  for (const test::PlanMutation &mutation : nonEmpty(test::planMutations()))
    for (const runtime::Artifact &artifact : nonEmpty(samples())) {
      json plan = toJson(artifact.plan);
      const json good = plan;
      const std::string named = mutation.apply(plan);
      if (plan == good) continue;
      applied.insert(mutation.member + ": " + mutation.name);
      INFO(mutation.member << ": " << mutation.name << " (" << named << ")");
      const std::string message = rejectionOf(artifact, plan);
      CHECK_THAT(message, Catch::StartsWith("DIR"));
      CHECK_THAT(message, Catch::Contains(named));
    }
  for (const test::PlanMutation &mutation : nonEmpty(test::planMutations())) {
    INFO(mutation.member << ": " << mutation.name);
    CHECK(applied.contains(mutation.member + ": " + mutation.name));
  }
}

TEST_CASE("a kernel's workspace follows its edited knobs when it is emitted again") {
  const runtime::Artifact &artifact = samples().back();
  json plan = toJson(artifact.plan);
  size_t works = 0, edited = 0;
  for (json &kernel : plan["kernels"])
    if (kernel.contains("workspaceBytes") && works++ == 0) kernel["knobs"]["rounds"] = 2;
  REQUIRE(works > 0);
  runtime::Artifact changed = artifact;
  changed.plan = planFromJson(plan, "DIR/plan.json");
  CHECK_THAT(rejectionOf(artifact, plan), Catch::Contains("edited after it was emitted"));
  PlannedKernels planned = replan(changed, *analyticCostModel(findDevice("h200")), "DIR").planned;
  emitKernels(planned, "sm_90a", [](const ChosenKernel &) { return std::vector<std::string>(); });
  for (const PlanKernel &kernel : planned.plan.kernels)
    edited += kernel.workspaceBytes == 2 * 4 * 8 * 512;
  CHECK(edited == 1);
  CHECK(planned.plan.workspaceBytes >= artifact.plan.workspaceBytes + 2 * 4 * 8 * 512);
  CHECK_NOTHROW(verify(planned.plan, "DIR/plan.json"));
  CHECK_NOTHROW(verifyDerived(planned.plan, "DIR/plan.json"));
}

TEST_CASE("every member of plan.json has a mutation, or is told and no more") {
  std::set<std::string> broken, members;
  for (const test::PlanMutation &mutation : nonEmpty(test::planMutations()))
    broken.insert(mutation.member);
  for (const runtime::Artifact &artifact : nonEmpty(samples())) {
    test::addMembers(toJson(artifact.plan), "", members);
    CHECK(std::ranges::all_of(artifact.plan.kernels, [](const PlanKernel &kernel) {
      return std::ranges::none_of(kernel.parameters, [](const PlanParameter &parameter) {
        return parameter.type.kind == ParameterType::Kind::unknown;
      });
    }));
  }
  REQUIRE(members.size() > 70);
  for (const std::string &member : members) {
    INFO(member);
    const bool isTold = test::toldMembers.contains(member);
    const bool hasPartsBroken = std::ranges::any_of(broken, [&](const std::string &other) {
      return other == member || other.starts_with(member + ".");
    });
    CHECK((isTold || hasPartsBroken));
    CHECK_FALSE((isTold && broken.contains(member)));
  }
}

TEST_CASE("a kernel that is given any other tensor is rejected, unless that holds the same value") {
  size_t rejected = 0, harmless = 0;
  for (const runtime::Artifact &artifact : nonEmpty(samples())) {
    const SelectedGraph graph(artifact.graph, "DIR/graph.mlir");
    const json good = toJson(artifact.plan);
    const auto isRejected = [&](const json &plan) {
      try {
        const Plan broken = planFromJson(plan, "DIR/plan.json");
        verify(broken, "DIR/plan.json");
        checkWiring(broken, graph.wiring(), "DIR/plan.json");
      } catch (const Error &) {
        return true;
      }
      return false;
    };
    REQUIRE_FALSE(isRejected(good));
    for (size_t kernel = 0; kernel < good["kernels"].size(); ++kernel)
      for (const char *list : {"inputs", "outputs"})
        for (size_t position = 0; position < good["kernels"][kernel][list].size(); ++position)
          for (size_t other = 0; other < good["tensors"].size(); ++other) {
            const size_t held = good["kernels"][kernel][list][position];
            if (other == held) continue;
            json plan = good;
            test::mutations::replaceTensor(plan["kernels"][kernel], list, position, int(other));
            if (isRejected(plan)) {
              ++rejected;
              continue;
            }
            INFO("kernel " << kernel << " " << list << "[" << position
                           << "]: " << good["tensors"][held]["name"] << " -> "
                           << good["tensors"][other]["name"]);
            CHECK(good["tensors"][other]["logical"] == good["tensors"][held]["logical"]);
            CHECK(std::string(list) == "inputs");
            ++harmless;
          }
  }
  CHECK(rejected > 1000);
  CHECK(harmless < rejected / 100);
}

TEST_CASE(
    "what is edited as the override path has it stays legal to look at, and to emit, but not to "
    "run") {
  const runtime::Artifact &artifact = samples()[1];
  json plan = toJson(artifact.plan);
  for (json &kernel : plan["kernels"])
    if (kernel["knobs"].contains("threads")) {
      kernel["knobs"]["threads"] = kernel["knobs"]["threads"] == 128 ? 256 : 128;
      break;
    }
  runtime::Artifact edited = artifact;
  edited.plan = planFromJson(plan, "DIR/plan.json");
  CHECK_NOTHROW(checkArtifact(edited, "DIR", Use::toLook));
  CHECK_NOTHROW(replan(edited, *analyticCostModel(findDevice("a100")), "DIR"));
  CHECK_THAT(rejectionOf(artifact, plan), Catch::Contains("edited after it was emitted"));
}
