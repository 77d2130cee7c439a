// Concatenations of what a plan computes: where they are views, where they are copies, and that the
// whole plan computes the same either way.
#include "codegen/families/loop/LoopKnobs.h"
#include "codegen/families/view/ViewKnobs.h"
#include "passes/configure/StridedViews.h"
#include "passes/decide/ChunkSpace.h"
#include "passes/decide/PathPlan.h"
#include "plan/TensorLayout.h"
#include "runtime/system/Files.h"
#include "tests/support/NonEmpty.h"
#include "tests/support/TemporaryTestFolder.h"
#include "tests/unit/samples/PlanResults.h"
#include "tools/driver/Emission.h"

#include <fmt/ranges.h>
#include <catch2/catch.hpp>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::driver;

namespace {

bool ofOlderText(const ChosenKernel &chosen) { return isOfOlderText(chosen, "sm_90a"); }

const std::string stacked =
    "stack-q_product-k_product-v_product+stack-dX-wq-wk-wv+stack-dW-wq-wk-wv";

ChoiceFlags choices(const std::string &variant, const std::vector<std::string> &pins) {
  ChoiceFlags flags;
  flags.attention = AttentionChoice::unfused;
  flags.variant = variant;
  flags.pins = pins;
  return flags;
}

/// A compiled model.
struct Compiled {
  Compiled(const ModelFlags &model, const ChoiceFlags &flags, int parts,
           const std::string &profile = "none")
      : compilation(model, flags, {.profile = profile}) {
    compilation.import();
    const decision::Decision selected = compilation.decide(compilation.propose(Phase::import));
    planned = valueOrThrow(
        decision::planOf(compilation.planContext(), selected.best(), selected.path(), parts));
  }

  const PlanTensor &tensor(const std::string &name) const {
    const auto found = std::ranges::find(planned.plan.tensors, name, &PlanTensor::logical);
    REQUIRE(found != planned.plan.tensors.end());
    return *found;
  }
  const PlanKernel &joining() const {
    return *std::ranges::find_if(
        planned.plan.kernels, [](const auto &kernel) { return kernel.name.starts_with("concat"); });
  }
  bool isView() const { return joining().family.isView(); }

  Compilation compilation;
  PlannedKernels planned;
};

/// A training step of a small encoder with stacked projections, forward and backward.
struct Step : Compiled {
  Step(const std::string &length, const std::vector<std::string> &pins)
      : Compiled({.model = "paper-encoder",
                  .train = true,
                  .dims = {"b=2", "h=2", "p=4", "i=8", "u=12", length}},
                 choices(stacked, pins), 1) {}
};

/// A graph from text: its types, then arguments, body and result types as the text form has them.
struct Written : Compiled {
  explicit Written(const std::string &text, const std::vector<std::string> &pins = {},
                   int parts = 1, const Profile *profile = nullptr)
      : Written(test::TemporaryTestFolder(), text, pins, parts, profile) {}

private:
  Written(const test::TemporaryTestFolder &folder, const std::string &text,
          const std::vector<std::string> &pins, int parts, const Profile *profile)
      : Compiled({.model = written(folder.path() / "graph.mlir", text)}, choices("", pins), parts,
                 profile ? written(folder.path() / "rows.txt", printProfile(*profile)) : "none") {}
  static std::string written(const std::filesystem::path &path, const std::string &text) {
    runtime::writeFile(path, text);
    return path.string();
  }
};

void checkResults(const Compiled &compiled) {
  REQUIRE_NOTHROW(verify(compiled.planned.plan, "plan.json"));
  test::checkResults(compiled.compilation, compiled.planned, false);
  test::checkResults(compiled.compilation, compiled.planned, true);
}

/// Every element of the whole belongs to one part.
void checkTiling(const Step &step) {
  const PlanTensor &whole = step.tensor("d_q_d_k_d_v");
  std::multiset<int64_t> places;
  for (const char *name : {"d_q", "d_k", "d_v"}) {
    const PlanTensor &part = step.tensor(name);
    CHECK(part.buffer == whole.buffer);
    CHECK(part.offset * 2 % 16 == 0);
    for (int64_t a = 0; a < part.extents[0]; ++a)
      for (int64_t b = 0; b < part.extents[1]; ++b)
        for (int64_t c = 0; c < part.extents[2]; ++c)
          for (int64_t d = 0; d < part.extents[3]; ++d)
            places.insert(part.offset + a * part.strides[0] + b * part.strides[1] +
                          c * part.strides[2] + d * part.strides[3]);
  }
  CHECK(places.size() == size_t(whole.bytes / 2));
  CHECK(std::set<int64_t>(places.begin(), places.end()).size() == places.size());
  CHECK(*places.begin() == 0);
  CHECK(*places.rbegin() == whole.bytes / 2 - 1);
}

bool hasNote(const Compiled &step, const std::string &text) {
  return std::ranges::any_of(step.planned.plan.notes, [&](const PlanNote &note) {
    return note.text.find(text) != std::string::npos;
  });
}

}  // namespace

TEST_CASE("gradients are written into their stack as strided views") {
  const Step step("j=16", {"d_q_d_k_d_v=phbj"});
  REQUIRE(step.isView());
  CHECK(step.joining().bytesMoved == 0);
  CHECK(step.joining().bytesNecessary == 0);
  CHECK(step.joining().seconds == 0);
  CHECK(step.tensor("d_q").strides == std::vector<int64_t>{6 * 2 * 16, 2 * 16, 16, 1});
  CHECK(step.tensor("d_q").offset == 0);
  CHECK(step.tensor("d_k").offset == 2 * 2 * 16);
  CHECK(step.tensor("d_v").offset == 2 * 2 * 2 * 16);
  CHECK(spanBytes(step.tensor("d_q")) > logicalBytes(step.tensor("d_q")));
  checkTiling(step);
  checkResults(step);
}

TEST_CASE("gradients whose runs are no whole lines are copied into their stack") {
  const Step step("j=13", {"d_q_d_k_d_v=phbj"});
  REQUIRE_FALSE(step.isView());
  CHECK(step.tensor("d_q").buffer != step.tensor("d_q_d_k_d_v").buffer);
  CHECK(spanBytes(step.tensor("d_q")) == logicalBytes(step.tensor("d_q")));
  CHECK(hasNote(step, "V005 runs-not-whole-lines"));
  checkResults(step);
}

TEST_CASE("the plan computes the graph's results in all layouts that selection chooses") {
  const char *length = GENERATE("j=16", "j=32", "j=12");
  const Step step(length, {});
  INFO(length << ", " << (step.isView() ? "view" : "copy"));
  if (step.isView()) checkTiling(step);
  checkResults(step);
}

TEST_CASE("the best plan of every variant computes the graph's results") {
  const auto [model, dims] =
      GENERATE(std::pair<std::string, std::vector<std::string>>(
                   "paper-encoder", {"b=2", "h=2", "p=4", "i=8", "u=12", "j=16"}),
               std::pair<std::string, std::vector<std::string>>(
                   "llama-3-8b", {"b=1", "h=4", "g=2", "p=8", "i=32", "u=24", "j=16"}));
  Compilation compilation({.model = model, .train = true, .dims = dims}, choices("", {}),
                          {.profile = "none"});
  compilation.import();
  size_t views = 0;
  for (const decision::SelectedVariant &variant :
       nonEmpty(compilation.decide(compilation.propose(Phase::import)).variants)) {
    INFO(model << ": " << variant.selection.problem().name);
    const PlannedKernels planned =
        valueOrThrow(decision::planOf(compilation.planContext(), variant, variant.path(), 1));
    REQUIRE_NOTHROW(verify(planned.plan, "plan.json"));
    test::checkResults(compilation, planned, true);
    for (const ChosenKernel &chosen : planned.kernels)
      views += chosen.kernel.body[0].kind == OpKind::concat &&
               chosen.configuration.knobs.is<ViewKnobs>();
  }
  CHECK(views > 0);
}

/// Where only one of both backward products is stacked, the others take the gradients one by one,
/// with p and h as one axis.
TEST_CASE("no plan of a training step copies gradients into a stack that all GEMMs read") {
  Compilation compilation({.model = "paper-encoder", .train = true, .dims = {"b=8", "j=512"}},
                          choices("", {}), {.profile = "none"});
  compilation.import();
  size_t joined = 0;
  for (const decision::SelectedVariant &variant :
       nonEmpty(compilation.decide(compilation.propose(Phase::import)).variants)) {
    const select::Problem &problem = variant.selection.problem();
    INFO(problem.name);
    if (problem.name.find("stack-dX") == std::string::npos ||
        problem.name.find("stack-dW") == std::string::npos)
      continue;
    for (const select::Step &step : nonEmpty(variant.path().steps))
      if (step.candidate >= 0 &&
          problem.candidates[size_t(step.candidate)].kernel.body[0].kind == OpKind::concat) {
        ++joined;
        CHECK(step.configuration.knobs.is<ViewKnobs>());
      }
  }
  CHECK(joined >= 4);
}

namespace {

const std::string types = R"(
!ji = tensor<16x64xf16, #weft.axes<j, i>>
!half = tensor<8x64xf16, #weft.axes<j, i>>
!quarter = tensor<4x64xf16, #weft.axes<j, i>>
!both = tensor<32x64xf16, #weft.axes<j, i>>
!wide = tensor<16x128xf16, #weft.axes<j, i>>
)";

struct Body {
  const char *name, *arguments, *results, *statements;
  bool isView;
  std::vector<std::string> pins = {};
};

const Body bodies[] = {
    {"two results of kernels", "%x: !ji", "!both", R"(%a = weft.relu %x : !ji
  %b = weft.gelu %a : !ji
  %c = weft.concat %a, %b {axis = j} : !ji, !ji -> !both
  %y = weft.tanh %c : !both
  weft.return %y : !both)",
     true},
    {"views of a part", "%x: !ji", "!both, !half, !quarter", R"(%a = weft.relu %x : !ji
  %b = weft.gelu %a : !ji
  %c = weft.concat %a, %b {axis = j} : !ji, !ji -> !both
  %d = weft.slice %b {axis = j, start = 8, size = 8} : !ji -> !half
  %e = weft.slice %d {axis = j, start = 4, size = 4} : !half -> !quarter
  %y = weft.tanh %c : !both
  %z = weft.tanh %d : !half
  %w = weft.sigmoid %e : !quarter
  weft.return %y, %z, %w : !both, !half, !quarter)",
     true},
    {"views of a part, along the inner axis",
     "%x: !ji",
     "!wide, !half",
     R"(%a = weft.relu %x : !ji
  %b = weft.gelu %a : !ji
  %c = weft.concat %a, %b {axis = i} : !ji, !ji -> !wide
  %d = weft.slice %b {axis = j, start = 8, size = 8} : !ji -> !half
  %y = weft.tanh %c : !wide
  %z = weft.tanh %d : !half
  weft.return %y, %z : !wide, !half)",
     false,
     {"c=ji", "b=ji"}},
    {"part of another view, along the inner axis",
     "%x: !ji",
     "!wide, !ji",
     R"(%a = weft.relu %x : !ji
  %b = weft.gelu %a : !ji
  %c = weft.concat %a, %b {axis = i} : !ji, !ji -> !wide
  %d = weft.identity %b : !ji
  %y = weft.tanh %c : !wide
  %z = weft.sigmoid %d : !ji
  weft.return %y, %z : !wide, !ji)",
     false,
     {"c=ji"}},
    {"along the inner axis",
     "%x: !ji",
     "!wide, !ji",
     R"(%a = weft.relu %x : !ji
  %b = weft.gelu %a : !ji
  %c = weft.concat %a, %b {axis = i} : !ji, !ji -> !wide
  %y = weft.tanh %c : !wide
  %z = weft.sigmoid %b : !ji
  weft.return %y, %z : !wide, !ji)",
     true,
     {"c=ji"}},
    {"an argument", "%x: !ji", "!both", R"(%a = weft.relu %x : !ji
  %c = weft.concat %a, %x {axis = j} : !ji, !ji -> !both
  %y = weft.tanh %c : !both
  weft.return %y : !both)",
     false},
    {"a result", "%x: !ji", "!both, !ji", R"(%a = weft.relu %x : !ji
  %b = weft.gelu %a : !ji
  %c = weft.concat %a, %b {axis = j} : !ji, !ji -> !both
  %y = weft.tanh %c : !both
  weft.return %y, %b : !both, !ji)",
     false},
    {"into a result", "%x: !ji", "!both", R"(%a = weft.relu %x : !ji
  %b = weft.gelu %a : !ji
  %c = weft.concat %a, %b {axis = j} : !ji, !ji -> !both
  weft.return %c : !both)",
     false},
    {"one tensor twice", "%x: !ji", "!both", R"(%a = weft.relu %x : !ji
  %c = weft.concat %a, %a {axis = j} : !ji, !ji -> !both
  %y = weft.tanh %c : !both
  weft.return %y : !both)",
     false},
    {"one tensor in two stacks", "%x: !ji", "!both, !both", R"(%a = weft.relu %x : !ji
  %b = weft.gelu %a : !ji
  %c = weft.concat %a, %b {axis = j} : !ji, !ji -> !both
  %d = weft.concat %b, %a {axis = j} : !ji, !ji -> !both
  %y = weft.tanh %c : !both
  %z = weft.sigmoid %d : !both
  weft.return %y, %z : !both, !both)",
     false},
    {"part of another tensor", "%x: !ji", "!ji, !both", R"(%a = weft.relu %x : !ji
  %l = weft.slice %a {axis = j, start = 0, size = 8} : !ji -> !half
  %h = weft.gelu %l : !half
  %b = weft.concat %l, %h {axis = j} : !half, !half -> !ji
  %y = weft.tanh %b : !ji
  %z = weft.concat %x, %x {axis = j} : !ji, !ji -> !both
  weft.return %y, %z : !ji, !both)",
     false},
};

std::string textOf(const Body &body) {
  return types + "module {\n weft.graph @g(" + body.arguments + ") -> (" + body.results +
         ") {\n  " + body.statements + "\n }\n}\n";
}

}  // namespace

TEST_CASE(
    "a tensor is written into a stack unless it is an argument, a result or in another stack") {
  const Body &body = GENERATE(from_range(std::begin(bodies), std::end(bodies)));
  INFO(body.name);
  const Written written(textOf(body), body.pins);
  CHECK(written.isView() == body.isView);
  checkResults(written);
}

TEST_CASE("the result of attention is written into a stack as a view, in 1 or 2 chunks") {
  const int parts = GENERATE(1, 2);
  const Written written(R"(
!phbj = tensor<4x2x2x32xf16, #weft.axes<p, h, b, j>>
!phbk = tensor<4x2x2x32xf16, #weft.axes<p, h, b, k>>
!whbk = tensor<4x2x2x32xf16, #weft.axes<w, h, b, k>>
!whbj = tensor<4x2x2x32xf16, #weft.axes<w, h, b, j>>
!stack = tensor<4x4x2x32xf16, #weft.axes<w, h, b, j>>
!hbjk = tensor<2x2x32x32xf16, #weft.axes<h, b, j, k>>
!whi = tensor<4x4x8xf16, #weft.axes<w, h, i>>
!bji = tensor<2x32x8xf16, #weft.axes<b, j, i>>
module {
 weft.graph @g(%q: !phbj, %k: !phbk, %v: !whbk, %o: !whi {weft.parameter}) -> (!bji) {
  %score = weft.contract "phbk,phbj->hbjk" %k, %q : !phbk, !phbj -> !hbjk
  %probability = weft.softmax %score over k {empty_row = zero} : !hbjk
  %a = weft.contract "whbk,hbjk->whbj" %v, %probability : !whbk, !hbjk -> !whbj
  %d = weft.softmax %a over j {empty_row = zero} : !whbj
  %c = weft.concat %d, %a {axis = h} : !whbj, !whbj -> !stack
  %y = weft.contract "whi,whbj->bji" %o, %c : !whi, !stack -> !bji
  weft.return %y : !bji
 }
}
)",
                        {"c=whbj"}, parts);
  REQUIRE(written.isView());
  CHECK(spanBytes(written.tensor("a")) > logicalBytes(written.tensor("a")));
  const auto isPart = [](const PlanKernel &kernel) { return kernel.chunk.has_value(); };
  CHECK(std::ranges::count_if(written.planned.plan.kernels, isPart) ==
        (parts == 1 ? 0 : 3 * parts));
  checkResults(written);
}

TEST_CASE("slices of a stacked projection are read as strided views, in 1 or 2 chunks") {
  const int parts = GENERATE(1, 2);
  const Written written(R"(
!phi = tensor<64x6x8xf16, #weft.axes<p, h, i>>
!bji = tensor<1x32x8xf16, #weft.axes<b, j, i>>
!stack = tensor<64x6x1x32xf16, #weft.axes<p, h, b, j>>
!phbj = tensor<64x2x1x32xf16, #weft.axes<p, h, b, j>>
!phbk = tensor<64x2x1x32xf16, #weft.axes<p, h, b, k>>
!whbk = tensor<64x2x1x32xf16, #weft.axes<w, h, b, k>>
!whbj = tensor<64x2x1x32xf16, #weft.axes<w, h, b, j>>
!hbjk = tensor<2x1x32x32xf16, #weft.axes<h, b, j, k>>
module {
 weft.graph @g(%o: !phi {weft.parameter}, %x: !bji) -> (!whbj) {
  %s = weft.contract "phi,bji->phbj" %o, %x : !phi, !bji -> !stack
  %q = weft.slice %s {axis = h, start = 0, size = 2} : !stack -> !phbj
  %k = weft.slice %s {axis = h, start = 2, size = 2} : !stack -> !phbk
  %v = weft.slice %s {axis = h, start = 4, size = 2} : !stack -> !whbk
  %score = weft.contract "phbk,phbj->hbjk" %k, %q : !phbk, !phbj -> !hbjk
  %probability = weft.softmax %score over k {empty_row = zero} : !hbjk
  %a = weft.contract "whbk,hbjk->whbj" %v, %probability : !whbk, !hbjk -> !whbj
  %y = weft.tanh %a : !whbj
  weft.return %y : !whbj
 }
}
)",
                        {"s=bjhp"}, parts);
  for (const char *name : {"q", "k", "v"}) {
    CHECK(written.tensor(name).buffer == written.tensor("s").buffer);
    CHECK(spanBytes(written.tensor(name)) > logicalBytes(written.tensor(name)));
  }
  CHECK(written.tensor("v").strides == std::vector<int64_t>{1, 64, 32 * 6 * 64, 6 * 64});
  CHECK(written.tensor("v").offset == 4 * 64);
  const auto isSlice = [](const PlanKernel &kernel) { return kernel.name.starts_with("slice"); };
  for (const PlanKernel &kernel : nonEmpty(written.planned.plan.kernels, isSlice))
    CHECK(kernel.family == viewFamily);
  checkResults(written);
}

TEST_CASE("slices are copied where a reader rejects strided views or runs are no whole lines") {
  const auto [pin, reason] = GENERATE(std::pair("s=ji", "V001 strided-view-not-supported"),
                                      std::pair("s=ij", "V005 runs-not-whole-lines"));
  const Written written(R"(
!ji = tensor<64x128xf16, #weft.axes<j, i>>
!half = tensor<64x64xf16, #weft.axes<j, i>>
!rows = tensor<60x64xf16, #weft.axes<j, i>>
module {
 weft.graph @g(%x: !ji) -> (!rows) {
  %s = weft.relu %x : !ji
  %a = weft.slice %s {axis = i, start = 64, size = 64} : !ji -> !half
  %b = weft.slice %a {axis = j, start = 2, size = 60} : !half -> !rows
  %y = weft.tanh %b : !rows
  weft.return %y : !rows
 }
}
)",
                        {pin, std::string(pin) == "s=ji" ? "a=ji" : "a=ij",
                         std::string(pin) == "s=ji" ? "b=ji" : "b=ij"});
  INFO(pin << ' ' << fmt::format("{}", fmt::join(textsOf(written.planned.plan.notes), "; ")));
  CHECK(hasNote(written, reason));
  checkResults(written);
}

namespace {

/// The analytic model, for people who want nothing modelled.
struct Strict : CostModel {
  explicit Strict(const CostModel &model) : model(model) {}
  Cost cost(const Kernel &kernel, const Configuration &configuration) const override {
    return model.cost(kernel, configuration);
  }
  const Device &device() const override { return model.device(); }
  PriceSource source() const override { return {.name = "strict"}; }
  std::string identity() const override { return model.identity(); }
  bool admitsModelled() const override { return false; }
  const CostModel &model;
};

/// How the plan of two joined results of kernels joins them, the joined tensor in the caller's
/// order.
template <typename Change>
Knobs joiningOf(const Body &body, const CostModel &model, Change &&change) {
  const test::TemporaryTestFolder folder;
  runtime::writeFile(folder.path() / "graph.mlir", textOf(body));
  Compilation compilation({.model = (folder.path() / "graph.mlir").string()}, choices("", {}), {});
  compilation.import();
  select::Problem problem = compilation.problems(compilation.propose(Phase::import)).front();
  for (select::Tensor &tensor : problem.tensors)
    if (tensor.name == "c") tensor.pinned = rowMajor(2);
  change(problem);
  const select::Selection selection = select::select(problem, model, {});
  for (const select::Step &step : selection.best().steps)
    if (step.candidate >= 0 &&
        problem.candidates[size_t(step.candidate)].kernel.body[0].kind == OpKind::concat)
      return step.configuration.knobs;
  throw std::runtime_error("no concatenation");
}

bool isView(const Knobs &knobs) { return knobs.is<ViewKnobs>(); }

}  // namespace

TEST_CASE("a tensor saved for another entry point is not written into a stack") {
  const auto model = analyticCostModel(findDevice("h200"));
  const auto inTwo = [&](std::vector<int> entries) {
    return isView(joiningOf(bodies[0], *model, [&](select::Problem &problem) {
      REQUIRE(problem.ops.size() == entries.size());
      problem.entryPoints = {EntryPointKind::forward, EntryPointKind::backward};
      problem.opEntries = entries;
      std::erase_if(problem.candidates, [&](const select::Candidate &candidate) {
        return std::ranges::any_of(candidate.ops, [&](int op) {
          return entries[size_t(op)] != entries[size_t(candidate.ops.front())];
        });
      });
    }));
  };
  CHECK(inTwo({0, 0, 0, 0}));
  CHECK(inTwo({0, 0, 0, 1}));
  CHECK_FALSE(inTwo({0, 0, 1, 1}));
  CHECK_FALSE(inTwo({0, 1, 1, 1}));
}

TEST_CASE("a strict cost model admits contiguous views and no strided ones") {
  const auto model = analyticCostModel(findDevice("h200"));
  const auto unchanged = [](select::Problem &) {};
  const Body &inner = *std::ranges::find(bodies, std::string("along the inner axis"), &Body::name),
             &outer = bodies[0];
  CHECK(isView(joiningOf(inner, *model, unchanged)));
  CHECK(isView(joiningOf(outer, *model, unchanged)));
  CHECK_FALSE(isView(joiningOf(inner, Strict(*model), unchanged)));
  CHECK(isView(joiningOf(outer, Strict(*model), unchanged)));
}

TEST_CASE("a plan uses the measurements of strided views that a profile of its chunk space has") {
  const Body &body = *std::ranges::find(bodies, std::string("along the inner axis"), &Body::name);
  const Written before(textOf(body), body.pins);
  const decision::ProfileSpace space = decision::chunkSpace(
      {before.planned}, *analyticCostModel(findDevice("h200")), {}, ofOlderText);
  REQUIRE_FALSE(space.items.empty());
  Profile profile{.device = "h200", .protocols = {{1, "pretended"}}, .kernels = {}};
  for (const decision::ProfileItem &item : nonEmpty(space.items)) {
    const Kernel &kernel = space.kernels[item.kernel].kernel;
    CHECK(hasStridedView(kernel, item.configuration));
    addMeasurement(profile, kernel, item.configuration,
                   {.seconds = 5e-5, .n = 9, .spread = 0.01, .familyVersion = loopFamily.version});
  }
  const Written after(textOf(body), body.pins, 1, &profile);
  double sum = 0;
  int measured = 0, strided = 0;
  REQUIRE(!after.planned.kernels.empty());
  for (size_t index = 0; index < after.planned.kernels.size(); ++index) {
    const PlanKernel &entry = after.planned.plan.kernels[index];
    const bool isStrided =
        !entry.family.isView() && hasStridedView(after.planned.kernels[index].kernel,
                                                 after.planned.kernels[index].configuration);
    CHECK(entry.measured == isStrided);
    CHECK((entry.seconds == 5e-5) == isStrided);
    measured += entry.measured;
    strided += isStrided;
    sum += entry.seconds;
  }
  CHECK(strided > 0);
  CHECK(measured == strided);
  CHECK(after.planned.plan.predictedSeconds == Approx(sum));
  checkResults(after);
}
