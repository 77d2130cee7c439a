// Kernels of two plans paired by graph position: ops by name and by structure, groups of fusions
// and rewrites, folded chunks.
#include "codegen/families/loop/LoopKnobs.h"
#include "plan/KernelPositions.h"
#include "runtime/artifact/Artifact.h"
#include "tests/support/NonEmpty.h"
#include "tools/driver/PlanDifference.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::driver;
using runtime::Artifact;

namespace {

using Names = std::vector<std::string>;

/// A plan of element-wise kernels on tensors of one axis, whose names are their layouts' too.
struct SmallPlan {
  Artifact artifact;
  nlohmann::json labels = nlohmann::json::array();

  int tensor(const std::string &name) {
    auto &tensors = artifact.plan.tensors;
    for (size_t index = 0; index < tensors.size(); ++index)
      if (tensors[index].name == name) return int(index);
    PlanTensor added;
    added.name = added.logical = name;
    added.dtype = DType::f16;
    added.axes = {"i"};
    added.extents = {8};
    added.order = {0};
    added.strides = {1};
    added.bytes = 16;
    tensors.push_back(added);
    return int(tensors.size()) - 1;
  }

  /// `ops`: as printed; each defines the next number of the graph.
  SmallPlan &kernel(const std::string &name, const Names &reads, const Names &writes,
                    const Names &ops, double seconds = 1e-6) {
    PlanKernel kernel;
    kernel.name = name;
    kernel.family = loopFamily;
    kernel.source = "kernels/" + name + ".cu";
    for (const std::string &read : reads) kernel.inputs.push_back(tensor(read));
    for (const std::string &write : writes) kernel.outputs.push_back(tensor(write));
    kernel.inputLayouts.assign(reads.size(), NamedLayout{{"i"}});
    kernel.outputLayouts.assign(writes.size(), NamedLayout{{"i"}});
    for (const std::string &line : ops) kernel.ops.push_back(parsePlanOp(line).value());
    kernel.seconds = seconds;
    artifact.plan.kernels.push_back(kernel);
    return *this;
  }

  SmallPlan &named(const Names &names) {
    for (const std::string &name : names) labels.push_back(name);
    artifact.report = {{"opLabels", labels}};
    return *this;
  }
};

Names namesOf(const std::vector<PairedKernel> &kernels) {
  Names names;
  for (const PairedKernel &kernel : kernels) names.push_back(kernel.name);
  return names;
}

size_t countOf(const PlanDifference &difference) {
  size_t count = 0;
  for (const KernelGroup &group : difference.groups)
    count += group.before.size() + group.after.size();
  return count;
}

}  // namespace

TEST_CASE("an op of a plan is named by its first result") {
  const nlohmann::json names = {"a", "b", "c", "d", "e", "f", "g", "q", "scores"};
  const NamedOp softmax =
      namedOp(parsePlanOp("%8, %8, %8 = local_softmax %7 over k").value(), names);
  CHECK(softmax.number == 8);
  CHECK(softmax.value == "scores");
  const NamedOp argument = namedOp(parsePlanOp("%x = relu %7").value(), names);
  CHECK(argument.number == -1);
  CHECK(argument.value == "x");
}

TEST_CASE("values of other names are the same op of the same operands") {
  const auto ops = [](const Names &lines, const Names &names) {
    std::vector<NamedOp> parsed;
    for (const std::string &line : lines)
      parsed.push_back(namedOp(parsePlanOp(line).value(), nlohmann::json(names)));
    return parsed;
  };
  const Names lines = {"%0 = relu %x", "%1 = exp %0", "%2 = relu %1"};
  const Positions same =
      positionsOf(ops(lines, {"a", "b", "c"}), ops(lines, {"first", "second", "third"}));
  CHECK(same.before == same.after);
  const Positions other = positionsOf(
      ops(lines, {"a", "b", "c"}),
      ops({"%0 = relu %y", "%1 = exp %0", "%2 = relu %1"}, {"first", "second", "third"}));
  for (const int position : nonEmpty(other.after))
    CHECK(std::ranges::count(other.before, position) == 0);
}

TEST_CASE("equal ops of one operand stay apart") {
  const std::vector<NamedOp> twice = {namedOp(parsePlanOp("%0 = relu %x").value(), {"a", "a"}),
                                      namedOp(parsePlanOp("%1 = relu %x").value(), {"a", "a"})};
  const Positions positions = positionsOf(twice, twice);
  CHECK(positions.before == positions.after);
  CHECK(positions.before[0] != positions.before[1]);
}

TEST_CASE("one kernel here against two there is a group, the rest is not in it") {
  SmallPlan a, b;
  a.kernel("both", {"x"}, {"t"}, {"%0 = relu %x", "%1 = exp %0"}, 3e-6)
      .kernel("last", {"t"}, {"y"}, {"%2 = relu %1"})
      .named({"s", "t", "y"});
  b.kernel("one", {"x"}, {"s"}, {"%0 = relu %x"}, 2e-6)
      .kernel("two", {"s"}, {"t"}, {"%1 = exp %0"}, 2e-6)
      .kernel("renamed", {"t"}, {"y"}, {"%2 = relu %1"})
      .named({"s", "t", "y"});
  const PlanDifference difference = differenceOf(a.artifact, b.artifact);
  CHECK(countOf(difference) == 5);
  REQUIRE(difference.groups.size() == 2);
  CHECK(namesOf(difference.groups[0].before) == Names{"both"});
  CHECK(namesOf(difference.groups[0].after) == Names{"one", "two"});
  CHECK(difference.groups[0].why == std::vector{Decision::fusion});
  CHECK(difference.groups[0].computes == "t");
  CHECK(difference.groups[0].secondsBefore() == Approx(3e-6));
  CHECK(difference.groups[0].secondsAfter() == Approx(4e-6));
  CHECK(difference.groups[1].why.empty());
  CHECK_FALSE(difference.isEqual);
}

TEST_CASE("kernels are paired by the positions of their ops, whatever their values are named") {
  SmallPlan a, b;
  a.kernel("sigma", {"x"}, {"s"}, {"%0 = relu %x"})
      .kernel("power", {"x"}, {"p"}, {"%1 = exp %x"})
      .named({"s", "p"});
  b.kernel("power", {"x"}, {"first"}, {"%0 = relu %x"})
      .kernel("sigma", {"x"}, {"second"}, {"%1 = exp %x"})
      .named({"first", "second"});
  const PlanDifference difference = differenceOf(a.artifact, b.artifact);
  REQUIRE(difference.groups.size() == 2);
  CHECK(namesOf(difference.groups[0].before) == Names{"sigma"});
  CHECK(namesOf(difference.groups[0].after) == Names{"power"});
  CHECK(namesOf(difference.groups[1].before) == Names{"power"});
  CHECK(namesOf(difference.groups[1].after) == Names{"sigma"});
}

TEST_CASE("kernels that exchange what the other graph lacks are one group") {
  SmallPlan a, b;
  a.kernel("stacked", {"x"}, {"qk"}, {"%0 = exp %x"})
      .kernel("slice q", {"qk"}, {"q"}, {"%1 = slice %0"})
      .kernel("slice k", {"qk"}, {"k"}, {"%2 = slice %0"})
      .named({"qk", "q", "k"});
  b.kernel("project q", {"x"}, {"q"}, {"%0 = relu %x"})
      .kernel("project k", {"x"}, {"k"}, {"%1 = relu %x"})
      .named({"q", "k"});
  const PlanDifference difference = differenceOf(a.artifact, b.artifact);
  REQUIRE(difference.groups.size() == 1);
  CHECK(difference.groups[0].why.front() == Decision::rewrite);
  CHECK(difference.groups[0].computes == "q, k");
  CHECK(countOf(difference) == 5);
}

TEST_CASE("chunks of a kernel are one") {
  SmallPlan a, b;
  a.kernel("work", {"x"}, {"y"}, {"%0 = relu %x"}, 4e-6).named({"y"});
  b.named({"y"});
  for (int chunk = 0; chunk < 2; ++chunk) {
    b.kernel("work__i" + std::to_string(4 * chunk), {"x"}, {"y"}, {"%0 = relu %x"}, 3e-6);
    b.artifact.plan.kernels.back().chunk =
        PlanChunk{.region = 0, .axis = "i", .start = 4 * chunk, .size = 4, .whole = "work"};
  }
  const PlanDifference difference = differenceOf(a.artifact, b.artifact);
  REQUIRE(difference.groups.size() == 1);
  CHECK(namesOf(difference.groups[0].after) == Names{"work"});
  CHECK(difference.groups[0].why == std::vector{Decision::chunks});
  CHECK(difference.groups[0].secondsAfter() == Approx(6e-6));
}

TEST_CASE("prices of one description are told apart by what they follow from") {
  SmallPlan a, b;
  for (SmallPlan *plan : {&a, &b}) plan->kernel("one", {"x"}, {"y"}, {"%0 = relu %x"}).named({"y"});
  const auto pricesOf = [&] {
    const std::vector<Change> decisions = differenceOf(a.artifact, b.artifact).decisions;
    const auto found = std::ranges::find(decisions, "prices", &Change::what);
    return found == decisions.end() ? Names{} : Names{found->before, found->after};
  };
  a.artifact.plan.costModel = b.artifact.plan.costModel =
      PriceSource::of("profile p.txt (h200, 9 measurements)");
  b.artifact.plan.prices = "0123456789abcdef";
  CHECK(pricesOf().empty());  // a is of a plan that does not say
  a.artifact.plan.prices = b.artifact.plan.prices;
  CHECK(pricesOf().empty());
  a.artifact.plan.prices = "fedcba9876543210";
  CHECK(pricesOf() == Names{"profile p.txt (h200, 9 measurements), fedcba9876543210",
                            "profile p.txt (h200, 9 measurements), 0123456789abcdef"});
  b.artifact.plan.costModel = {.name = "analytic model of h200"};
  CHECK(pricesOf() == Names{"profile p.txt (h200, 9 measurements)", "analytic model of h200"});
}

TEST_CASE("what differs always has a reason, or stands among the others") {
  const auto one = [] {
    return SmallPlan().kernel("work", {"x"}, {"y"}, {"%0 = relu %x"}).named({"y"});
  };
  SmallPlan a = one();
  CHECK(differenceOf(a.artifact, one().artifact).isEqual);
  const auto decisions = [&](auto change) {
    SmallPlan b = one();
    change(b.artifact);
    const PlanDifference difference = differenceOf(a.artifact, b.artifact);
    CHECK_FALSE(difference.isEqual);
    CHECK(difference.groups[0].why.size() + difference.others.size() + difference.decisions.size() +
              difference.graph.size() >
          0);
    return difference.groups[0].why;
  };
  using enum Decision;
  CHECK(decisions([](Artifact &b) { b.plan.kernels[0].configuration = "another"; }) ==
        std::vector{schedule});
  CHECK(decisions([](Artifact &b) { b.plan.kernels[0].seconds = 9; }) == std::vector{prices});
  CHECK(decisions([](Artifact &b) { b.plan.device = "a100", b.plan.kernels[0].seconds = 9; }) ==
        std::vector{device});
  CHECK(decisions([](Artifact &b) { b.plan.dims["j"] = 3, b.plan.kernels[0].seconds = 9; }) ==
        std::vector{graph});
  CHECK(decisions([](Artifact &b) { b.plan.kernels[0].textHash = "1234"; }) == std::vector{text});
  CHECK(decisions([](Artifact &b) { b.plan.kernels[0].registers = 9; }).empty());
  a.artifact.sources["kernels/work.cu"] = "text";
  CHECK(decisions([](Artifact &b) {
          b.sources["kernels/work.cu"] = "edited", b.plan.kernels[0].edited = true;
        }) == std::vector{edit});
  CHECK(decisions([](Artifact &b) {
          b.sources["kernels/work.cu"] = "text", b.plan.notes = {{.text = "a note"}};
        }).empty());
  a = one();
  CHECK(decisions([](Artifact &b) { b.plan.notes = {{.text = "a note"}}; }).empty());
  CHECK(decisions([](Artifact &b) { b.graph = "other"; }).empty());
  CHECK(decisions([](Artifact &b) { b.plan.tensors[0].scale = 9; }).empty());
}
