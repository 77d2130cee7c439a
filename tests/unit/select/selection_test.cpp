// Selection against an exhaustive search on random small problems, and its answers on problems made
// by hand.
#include "codegen/families/loop/LoopKnobs.h"
#include "codegen/families/transpose/TransposeKnobs.h"
#include "kernel/Error.h"
#include "passes/configure/Family.h"
#include "passes/select/FinishedOpLattice.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleProblems.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::samples;
using select::Options;
using select::Problem;
using select::Selection;
using select::SelectionResult;
using select::Step;

namespace {

Options everything() {
  Options options;
  options.nearBest = 1e9;
  options.beam = options.alternativeStates = 1 << 20;
  return options;
}

/// Every order of kernels, every layout, every transpose, with memory of what is left to do.
class ExhaustiveSearch {
public:
  ExhaustiveSearch(const Problem &problem, const CostModel &model)
      : problem(problem), model(model) {
    for (const auto &tensor : problem.tensors) {
      std::vector<int64_t> extents;
      for (const Axis &axis : tensor.axes) extents.push_back(axis.extent);
      layouts.push_back(distinctLayouts(extents));
    }
  }

  double best() {
    State start{0, std::vector<unsigned>(problem.tensors.size(), 0)};
    for (size_t t = 0; t < problem.tensors.size(); ++t)
      if (problem.tensors[t].isArgument) start.second[t] = 1;  // row-major is the first layout
    return remaining(start);
  }

private:
  using State = std::pair<unsigned, std::vector<unsigned>>;  ///< finished ops, layouts present

  double remaining(const State &state) {
    const auto found = memory.find(state);
    if (found != memory.end()) return found->second;
    double best = INFINITY;
    bool isDone = state.first + 1 == 1u << problem.ops.size();
    for (size_t t = 0; t < problem.tensors.size(); ++t)
      if (problem.tensors[t].isResult && !(state.second[t] & 1)) isDone = false;
    if (isDone) best = 0;
    for (const auto &candidate : problem.candidates)
      best = std::min(best, withKernel(state, candidate));
    for (size_t t = 0; t < problem.tensors.size(); ++t)
      best = std::min(best, withTranspose(state, t));
    return memory[state] = best;
  }

  double withTranspose(const State &state, size_t t) {
    double best = INFINITY;
    for (unsigned from = 0; from < layouts[t].size(); ++from)
      for (unsigned to = 0; to < layouts[t].size(); ++to) {
        if (!(state.second[t] >> from & 1) || (state.second[t] >> to & 1)) continue;
        State next = state;
        next.second[t] |= 1u << to;
        best = std::min(best, transposeSeconds(t, from, to) + remaining(next));
      }
    return best;
  }

  double withKernel(const State &state, const select::Candidate &candidate) {
    unsigned ops = 0;
    for (int op : candidate.ops) ops |= 1u << op;
    if (state.first & ops) return INFINITY;
    for (int input : candidate.inputs)
      if (!state.second[static_cast<size_t>(input)]) return INFINITY;
    double best = INFINITY;
    Configuration configuration{.knobs = LoopKnobs{}};
    const std::function<void(size_t, State)> choose = [&](size_t operand, State next) {
      const size_t inputs = candidate.inputs.size();
      if (operand == inputs + candidate.outputs.size()) {
        next.first |= ops;
        best =
            std::min(best, model.cost(candidate.kernel, configuration).seconds + remaining(next));
        return;
      }
      const bool isInput = operand < inputs;
      const auto tensor = static_cast<size_t>(isInput ? candidate.inputs[operand]
                                                      : candidate.outputs[operand - inputs]);
      for (unsigned l = 0; l < layouts[tensor].size(); ++l) {
        if (isInput && !(state.second[tensor] >> l & 1)) continue;
        State chosen = next;
        if (!isInput) chosen.second[tensor] = 1u << l;
        (isInput ? configuration.inputs : configuration.outputs).push_back(layouts[tensor][l]);
        choose(operand + 1, chosen);
        (isInput ? configuration.inputs : configuration.outputs).pop_back();
      }
    };
    choose(0, state);
    return best;
  }

  double transposeSeconds(size_t t, unsigned from, unsigned to) const {
    Kernel kernel = identityKernel({{'j', 4}, {'i', 8}}, "ji");
    kernel.name = "transpose_" + problem.tensors[t].name;
    return model
        .cost(
            kernel,
            {.inputs = {layouts[t][from]}, .outputs = {layouts[t][to]}, .knobs = TransposeKnobs{}})
        .seconds;
  }

  const Problem &problem;
  const CostModel &model;
  std::vector<std::vector<Layout>> layouts;
  std::map<State, double> memory;
};

Problem randomProblem(std::mt19937_64 &random) {
  ProblemBuilder builder;
  const auto pick = [&](size_t count) { return static_cast<int>(random() % count); };
  std::vector<int> tensors = {builder.argument("x"), builder.argument("z")};
  const int ops = 3 + pick(2);
  for (int op = 0; op < ops; ++op) {
    std::set<int> inputs = {tensors[static_cast<size_t>(pick(tensors.size()))]};
    if (pick(2)) inputs.insert(tensors[static_cast<size_t>(pick(tensors.size()))]);
    tensors.push_back(builder.op("op" + std::to_string(op), {inputs.begin(), inputs.end()}));
  }
  std::set<int> used;
  for (const auto &inputs : builder.problem.opInputs) used.insert(inputs.begin(), inputs.end());
  for (int tensor : tensors)
    if (!used.contains(tensor) && !builder.problem.tensors[static_cast<size_t>(tensor)].isArgument)
      builder.result(tensor);
  builder.everyOpAlone();
  for (int extra = 0; extra < 3; ++extra) {
    std::set<int> members;
    for (int i = 0; i < 2 + pick(2); ++i) members.insert(pick(static_cast<size_t>(ops)));
    if (members.size() > 1) builder.candidate({members.begin(), members.end()});
  }
  return builder.problem;
}

/// Replays a plan: every operand is there in the layout that the kernel reads, every op runs once,
/// results end row-major.
void checkValid(const Problem &problem, const SelectionResult &plan) {
  std::vector<std::set<Layout>> present(problem.tensors.size());
  for (size_t t = 0; t < problem.tensors.size(); ++t)
    if (problem.tensors[t].isArgument) present[t].insert(rowMajor(problem.tensors[t].axes.size()));
  std::vector<int> timesRun(problem.ops.size(), 0);
  double seconds = 0;
  for (const Step &step : nonEmpty(plan.steps)) {
    seconds += step.cost.seconds;
    if (step.candidate < 0) {
      CHECK(present[static_cast<size_t>(step.tensor)].contains(step.configuration.inputs[0]));
      present[static_cast<size_t>(step.tensor)].insert(step.configuration.outputs[0]);
      continue;
    }
    const select::Candidate &candidate = problem.candidates[static_cast<size_t>(step.candidate)];
    for (size_t i = 0; i < candidate.inputs.size(); ++i)
      CHECK(
          present[static_cast<size_t>(candidate.inputs[i])].contains(step.configuration.inputs[i]));
    for (size_t o = 0; o < candidate.outputs.size(); ++o)
      present[static_cast<size_t>(candidate.outputs[o])].insert(step.configuration.outputs[o]);
    for (int op : candidate.ops) ++timesRun[static_cast<size_t>(op)];
  }
  for (int times : nonEmpty(timesRun)) CHECK(times == 1);
  for (size_t t = 0; t < problem.tensors.size(); ++t)
    if (problem.tensors[t].isResult) CHECK(present[t].contains(rowMajor(2)));
  CHECK(seconds == Approx(plan.seconds).epsilon(1e-12));
}

/// x -> a -> b -> c, each op alone.
Problem chain() {
  ProblemBuilder builder;
  const int x = builder.argument("x");
  const int a = builder.op("a", {x}), b = builder.op("b", {a});
  builder.result(builder.op("c", {b}));
  builder.everyOpAlone();
  builder.candidate({0, 1});
  builder.candidate({1, 2});
  return builder.problem;
}

}  // namespace

TEST_CASE("the shortest path is the exhaustive minimum, its plan is valid, the bound is below") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 30; ++round) {
    const Problem problem = randomProblem(random);
    const HashedPrices prices(random());
    const Selection selection = select::select(problem, prices, everything());
    INFO("round " << round);
    CHECK(selection.best().seconds ==
          Approx(ExhaustiveSearch(problem, prices).best()).epsilon(1e-12));
    checkValid(problem, selection.best());
    CHECK(selection.best().lowerBound <= selection.best().seconds * (1 + 1e-12));
    CHECK(selection.best().lowerBound > 0);
  }
}

TEST_CASE("a search of few states that calls its plan proven has found the exhaustive minimum") {
  std::mt19937_64 random(29);
  int proven = 0, cut = 0;
  for (int round = 0; round < 120; ++round) {
    const Problem problem = randomProblem(random);
    const HashedPrices prices(random());
    Options options = everything();
    options.alternativeStates = options.states = 1;
    const Selection selection = select::select(problem, prices, options);
    const double best = ExhaustiveSearch(problem, prices).best();
    INFO("round " << round);
    checkValid(problem, selection.best());
    const select::Statistics &statistics = selection.statistics();
    CHECK(selection.best().seconds * (1 - statistics.mostGain) <= best * (1 + 1e-12));
    if (statistics.isProven) CHECK(selection.best().seconds == Approx(best).epsilon(1e-12));
    proven += statistics.isProven;
    cut += statistics.beamCut > 0;
  }
  CHECK(proven > 60);
  CHECK(cut > 40);
}

TEST_CASE("the k best plans are valid, distinct, sorted and begin with the best") {
  std::mt19937_64 random(11);
  for (int round = 0; round < 10; ++round) {
    const Problem problem = randomProblem(random);
    const HashedPrices prices(random());
    const Selection selection = select::select(problem, prices, everything());
    const std::vector<SelectionResult> plans = selection.kBest(8);
    REQUIRE(plans.size() >= 2);
    CHECK(plans.front().seconds == Approx(selection.best().seconds).epsilon(1e-12));
    for (const SelectionResult &plan : nonEmpty(plans)) checkValid(problem, plan);
    for (size_t i = 1; i < plans.size(); ++i) CHECK(plans[i - 1].seconds <= plans[i].seconds);
  }
}

TEST_CASE("what-if answers equal new selections under the same restriction") {
  std::mt19937_64 random(13);
  for (int round = 0; round < 10; ++round) {
    const HashedPrices prices(random());
    const Selection selection = select::select(chain(), prices, everything());
    for (const Layout &layout : nonEmpty(allDenseLayouts(2))) {
      Problem pinned = chain();
      pinned.tensors[1].pinned = layout;
      // The pin holds where the tensor exists; a plan that fuses it away meets it too, in both
      // answers.
      const double seconds = select::select(pinned, prices, everything()).best().seconds;
      const auto loss = selection.whatIfLayout(1, layout);
      REQUIRE(loss);
      CHECK(selection.best().seconds + *loss <=
            seconds * (1 + 1e-12));  // a pinned tensor may not be transposed either
    }
    for (bool fused : {false, true}) {
      Options options = everything();
      (fused ? options.forceFused : options.forbidFused).insert({0, 1});
      const auto loss = selection.whatIfFused(0, 1, fused);
      REQUIRE(loss);
      CHECK(selection.best().seconds + *loss ==
            Approx(select::select(chain(), prices, options).best().seconds).epsilon(1e-12));
    }
    const auto layouts = selection.layoutPrices(1);
    REQUIRE(!layouts.empty());
    CHECK(layouts.front().second == 0);
  }
}

TEST_CASE(
    "what must be stored is an operand of every kernel that computes it, in its pinned layout, as "
    "if the others were no candidates") {
  std::mt19937_64 random(19);
  int stored = 0, changed = 0;
  for (int round = 0; round < 30; ++round) {
    const HashedPrices prices(random());
    const Problem free = randomProblem(random);
    for (size_t t = 0; t < free.tensors.size(); ++t) {
      if (free.tensors[t].isArgument || free.tensors[t].isResult) continue;
      Problem pinned = free, filtered;
      pinned.tensors[t].pinned = Layout{.order = {1, 0}};
      filtered = pinned;
      pinned.tensors[t].mustBeStored = true;
      const auto writer = std::ranges::find_if(free.opOutputs,
                                               [&](const std::vector<int> &outputs) {
                                                 return outputs.front() == static_cast<int>(t);
                                               }) -
                          free.opOutputs.begin();
      std::erase_if(filtered.candidates, [&](const select::Candidate &candidate) {
        return std::ranges::count(candidate.ops, static_cast<int>(writer)) > 0 &&
               std::ranges::count(candidate.outputs, static_cast<int>(t)) == 0;
      });
      if (std::ranges::none_of(filtered.candidates, [&](const select::Candidate &one) {
            return std::ranges::count(one.outputs, static_cast<int>(t)) > 0;
          })) {
        CHECK_THROWS_AS(select::select(pinned, prices, everything()), Error);  // nobody reads it
        continue;
      }
      const Selection selection = select::select(pinned, prices, everything());
      CHECK(selection.best().seconds ==
            Approx(select::select(filtered, prices, everything()).best().seconds).epsilon(1e-12));
      int writers = 0;
      for (const Step &step : nonEmpty(selection.best().steps)) {
        if (step.candidate < 0) continue;
        const select::Candidate &candidate =
            selection.problem().candidates[static_cast<size_t>(step.candidate)];
        for (size_t n = 0; n < candidate.outputs.size(); ++n) {
          if (candidate.outputs[n] != static_cast<int>(t)) continue;
          ++writers;
          CHECK(step.configuration.outputs[n].order == std::vector<int>{1, 0});
        }
      }
      CHECK(writers == 1);
      stored += writers;
      Problem asBefore = pinned;
      asBefore.tensors[t].mustBeStored = false;
      changed += selection.best().seconds >
                 select::select(asBefore, prices, everything()).best().seconds * (1 + 1e-9);
    }
  }
  CHECK(stored > 10);
  CHECK(changed > 5);  // else it would have been stored anyway
}

TEST_CASE(
    "a search whose work is limited finds a plan, names the cut, and claims no more than is so") {
  std::mt19937_64 random(37);
  int cut = 0;
  for (int round = 0; round < 20; ++round) {
    const HashedPrices prices(random());
    const Problem problem = randomProblem(random);
    const Selection whole = select::select(problem, prices, everything());
    for (const int64_t work : {0, 1000, 10'000, 100'000}) {
      Options options = everything();
      options.searchWork = work;
      const Selection found = select::select(problem, prices, options);
      const select::Statistics &statistics = found.statistics();
      CHECK(found.best().seconds >= whole.best().seconds * (1 - 1e-12));
      CHECK(found.best().lowerBound <= whole.best().seconds * (1 + 1e-12));
      CHECK((!statistics.isProven || found.best().seconds <= whole.best().seconds * (1 + 1e-9)));
      CHECK(select::select(problem, prices, options).best().seconds == found.best().seconds);
      cut += !statistics.searchCuts.empty();
      if (statistics.searchCuts.empty())
        CHECK(found.best().seconds == Approx(whole.best().seconds).epsilon(1e-9));
      else CHECK_FALSE(statistics.isProven);
    }
  }
  CHECK(cut > 20);
}

TEST_CASE(
    "a search that is short of memory finds a plan, holds what it is given, and claims no more "
    "than is so") {
  std::mt19937_64 random(31);
  int cut = 0, worse = 0;
  for (int round = 0; round < 20; ++round) {
    const HashedPrices prices(random());
    const Problem problem = randomProblem(random);
    const Selection whole = select::select(problem, prices, everything());
    CHECK(whole.statistics().searchCuts.empty());
    for (const int64_t bytes : {int64_t(1), int64_t(10'000), int64_t(100'000), int64_t(1) << 40}) {
      Options options = everything();
      options.searchBytes = bytes;
      const Selection found = select::select(problem, prices, options);
      const select::Statistics &statistics = found.statistics();
      CHECK(found.best().seconds >= whole.best().seconds * (1 - 1e-12));
      CHECK(found.best().lowerBound <= whole.best().seconds * (1 + 1e-12));
      CHECK(found.best().seconds * (1 - statistics.mostGain) <= whole.best().seconds * (1 + 1e-12));
      CHECK((!statistics.isProven || found.best().seconds <= whole.best().seconds * (1 + 1e-9)));
      CHECK(select::select(problem, prices, options).best().seconds == found.best().seconds);
      cut += !statistics.searchCuts.empty();
      worse += found.best().seconds > whole.best().seconds * (1 + 1e-9);
      if (bytes == 1) CHECK_FALSE(statistics.searchCuts.empty());
      else if (bytes == int64_t(1) << 40) CHECK(statistics.searchCuts.empty());
    }
  }
  CHECK(cut > 20);
  CHECK(worse > 0);
}

TEST_CASE(
    "with pins, variants that are slower without or by their bound are not searched, and the best "
    "plan is the same") {
  std::mt19937_64 random(17);
  int skipped = 0, byBound = 0;
  for (int round = 0; round < 20; ++round) {
    const HashedPrices prices(random());
    std::vector<select::VariantProblem> free, pinned;
    for (int variant = 0; variant < 4; ++variant)
      free.push_back({.problem = randomProblem(random), .options = everything()});
    pinned = free;
    for (size_t v = 0; v < free.size(); ++v) {
      pinned[v].withoutPins = select::select(free[v].problem, prices, everything()).best().seconds;
      const auto temporary = std::ranges::find_if(
          pinned[v].problem.tensors,
          [](const select::Tensor &one) { return !one.isArgument && !one.isResult; });
      if (temporary != pinned[v].problem.tensors.end()) temporary->pinned = Layout{.order = {1, 0}};
    }
    std::vector<double> bests;
    for (const select::VariantProblem &one : pinned)
      bests.push_back(select::select(one.problem, prices, everything()).best().seconds);
    const double best = std::ranges::min(bests);
    const select::VariantSelections selections = select::selectVariants(pinned, prices);
    double found = INFINITY;
    for (size_t v = 0; v < pinned.size(); ++v) {
      REQUIRE(selections.solved[v].has_value() == !selections.skipped[v]);
      skipped += selections.skipped[v];
      byBound += selections.skipped[v] && !(pinned[v].withoutPins > best);
      if (selections.skipped[v]) CHECK(bests[v] > best);
      else found = std::min(found, selections.solved[v]->best().seconds);
    }
    CHECK(found == Approx(best).epsilon(1e-12));
  }
  CHECK(skipped > 10);
  CHECK(byBound > 0);
}

TEST_CASE("selections that share what they find of kernels are what they are alone") {
  std::mt19937_64 random(29);
  for (int round = 0; round < 20; ++round) {
    INFO("round " << round);
    const HashedPrices prices(random());
    std::vector<select::VariantProblem> variants;
    for (int variant = 0; variant < 2; ++variant)
      variants.push_back({.problem = randomProblem(random), .options = everything()});
    select::SharedSpaces shared(prices);
    for (const Layout &pin : {Layout{.order = {0, 1}}, Layout{.order = {1, 0}}}) {
      std::vector<select::VariantProblem> asked = variants;
      for (select::VariantProblem &one : asked)
        for (select::Tensor &tensor : one.problem.tensors)
          if (!tensor.isArgument && !tensor.isResult) tensor.pinned = pin;
      const select::VariantSelections alone = select::selectVariants(asked, prices),
                                      beside = select::selectVariants(asked, shared);
      CHECK(beside.skipped == alone.skipped);
      CHECK(beside.lowerBound == alone.lowerBound);
      for (size_t v = 0; v < asked.size(); ++v) {
        REQUIRE(beside.solved[v].has_value() == alone.solved[v].has_value());
        if (!alone.solved[v]) continue;
        const select::Selection &one = *alone.solved[v], &other = *beside.solved[v];
        CHECK(other.best().seconds == one.best().seconds);
        CHECK(other.statistics().configurations == one.statistics().configurations);
        CHECK(other.statistics().states == one.statistics().states);
        REQUIRE(other.best().steps.size() == one.best().steps.size());
        for (size_t step = 0; step < one.best().steps.size(); ++step)
          CHECK(other.best().steps[step].configuration == one.best().steps[step].configuration);
      }
    }
  }
}

TEST_CASE(
    "the bound of several variants is the least of all, also where another variant has the best "
    "plan") {
  std::mt19937_64 random(23);
  int ofAnother = 0, skipped = 0, excluded = 0, byKernels = 0, byLayouts = 0;
  for (int round = 0; round < 40; ++round) {
    INFO("round " << round);
    const HashedPrices prices(random());
    std::vector<select::VariantProblem> variants;
    for (int variant = 0; variant < 3; ++variant)
      variants.push_back({.problem = randomProblem(random), .options = everything()});
    std::vector<SelectionResult> bests;
    for (select::VariantProblem &one : variants) {
      bests.push_back(select::select(one.problem, prices, everything()).best());
      if (round % 2) one.withoutPins = bests.back().seconds;  // then variants may be skipped
      else one.options.alternativeStates = 1;                 // a first pass proves little
    }
    const SelectionResult &best = std::ranges::min(bests, {}, &SelectionResult::seconds),
                          &lowest = std::ranges::min(bests, {}, &SelectionResult::lowerBound);
    const select::VariantSelections selections = select::selectVariants(variants, prices);
    for (size_t v = 0; v < variants.size(); ++v) {
      CHECK(selections.lowerBound <= bests[v].seconds * (1 + 1e-12));
      skipped += selections.skipped[v];
      if (selections.solved[v]) {
        CHECK(selections.solved[v]->best().lowerBound ==
              Approx(bests[v].lowerBound).epsilon(1e-12));  // each keeps its own
        CHECK(selections.lowerBound <= bests[v].lowerBound);
      }
    }
    if (round % 2) continue;
    double found = INFINITY;
    for (size_t v = 0; v < variants.size(); ++v) {
      REQUIRE(selections.solved[v]);
      const double seconds = selections.solved[v]->best().seconds;
      found = std::min(found, seconds);
      CHECK(seconds >= bests[v].seconds * (1 - 1e-12));
      const select::Statistics &statistics = selections.solved[v]->statistics();
      CHECK(seconds * (1 - statistics.mostGain) <= bests[v].seconds * (1 + 1e-12));
      checkValid(variants[v].problem, selections.solved[v]->best());
      excluded += statistics.isBeyondBest;
      if (!statistics.isBeyondBest) continue;
      CHECK(bests[v].seconds > best.seconds);
      CHECK_FALSE(statistics.isProven);
      byKernels += bests[v].lowerBound > best.seconds;
      byLayouts += !(bests[v].lowerBound > best.seconds);
    }
    CHECK(found == Approx(best.seconds).epsilon(1e-12));
    CHECK(selections.lowerBound == Approx(lowest.lowerBound).epsilon(1e-12));
    ofAnother += lowest.lowerBound < 0.99 * best.lowerBound;
  }
  CHECK(ofAnother > 0);
  CHECK(skipped > 0);
  CHECK(excluded > 0);
  CHECK(byKernels > 0);
  CHECK(byLayouts > 0);
}

TEST_CASE("problems with equal kernels share the tables of equal layouts, and no others") {
  std::mt19937_64 random(37);
  int shared = 0, different = 0;
  for (int round = 0; round < 10; ++round) {
    INFO("round " << round);
    const HashedPrices model(random());
    const Options options = everything();
    Problem one = randomProblem(random), other = one;
    const auto temporary = std::ranges::find_if(other.tensors, [](const select::Tensor &tensor) {
      return !tensor.isArgument && !tensor.isResult;
    });
    if (temporary != other.tensors.end()) temporary->pinned = Layout{.order = {1, 0}};
    select::SharedSpaces spaces(model);
    select::Statistics ofOne, ofOther, ofAlone;
    select::Prices first(one, model, options, ofOne, spaces),
        second(other, model, options, ofOther, spaces);
    first.buildTables();
    second.buildTables();
    const select::Prices alone(other, model, options, ofAlone);
    CHECK(ofOther.configurations == ofAlone.configurations);
    for (int c = 0; c < static_cast<int>(other.candidates.size()); ++c) {
      const select::CandidatePrices &table = second.candidate(c), &itself = alone.candidate(c);
      const bool isSame = table.table.data() == first.candidate(c).table.data();
      CHECK(isSame == (table.table.size() == first.candidate(c).table.size()));
      ++(isSame ? shared : different);
      REQUIRE(table.table.size() == itself.table.size());
      for (size_t entry = 0; entry < table.table.size(); ++entry) {
        CHECK(table.table[entry].seconds == itself.table[entry].seconds);
        CHECK(second.configuration(c, entry) == alone.configuration(c, entry));
      }
    }
  }
  CHECK(shared > 0);
  CHECK(different > 0);
}

TEST_CASE("without all tables a problem has the bound that it has with them") {
  std::mt19937_64 random(41);
  for (int round = 0; round < 10; ++round) {
    INFO("round " << round);
    const HashedPrices model(random());
    const Options options = everything();
    const Problem problem = randomProblem(random);
    select::SharedSpaces spaces(model);
    select::Statistics statistics;
    const select::Prices bare(problem, model, options, statistics, spaces);
    CHECK_FALSE(bare.hasTables());
    CHECK(select::FinishedOpLattice(problem, bare).layers().front().after ==
          Approx(select::select(problem, model, options).best().lowerBound).epsilon(1e-12));
  }
}

TEST_CASE("with pins, no variant is left out that has one of the plans to be compared") {
  std::mt19937_64 random(31);
  const select::Compared compared{.plans = 3, .within = 0.5};
  int skipped = 0;
  for (int round = 0; round < 20; ++round) {
    INFO("round " << round);
    const HashedPrices prices(random());
    std::vector<select::VariantProblem> variants;
    std::vector<std::vector<SelectionResult>> plans;
    std::vector<double> all;
    for (int variant = 0; variant < 5; ++variant) {
      variants.push_back({.problem = randomProblem(random), .options = everything()});
      variants.back().withoutPins =
          select::select(variants.back().problem, prices, everything()).best().seconds;
      auto &tensors = variants.back().problem.tensors;
      const auto temporary = std::ranges::find_if(
          tensors, [](const select::Tensor &one) { return !one.isArgument && !one.isResult; });
      if (temporary != tensors.end()) temporary->pinned = Layout{.order = {1, 0}};
      plans.push_back(
          select::select(variants.back().problem, prices, everything()).kBest(compared.plans));
      for (const SelectionResult &plan : plans.back()) all.push_back(plan.seconds);
    }
    std::ranges::sort(all);
    const select::VariantSelections selections = select::selectVariants(variants, prices, compared);
    for (size_t v = 0; v < variants.size(); ++v) {
      skipped += selections.skipped[v];
      if (selections.skipped[v])
        CHECK(plans[v].front().seconds > std::min(all[2], all[0] * 1.5) * (1 - 1e-12));
    }
  }
  CHECK(skipped > 5);
}

TEST_CASE("ops that cannot be fused as asked are named") {
  const HashedPrices prices(1);
  Options options = everything();
  options.forceFused.insert({0, 2});
  try {
    select::select(chain(), prices, options);
    FAIL("a and c share no candidate");
  } catch (const Error &error) {
    CHECK(error.kind == ErrorKind::unsupported);
    CHECK(std::string(error.what()).find("'a'") != std::string::npos);
  }
}

TEST_CASE("a kernel that waits for a later independent op is found") {
  // a = relu(x), s = relu(z), r = a + s: the kernel {a, r} needs s first, though a comes first.
  ProblemBuilder builder;
  const int x = builder.argument("x"), z = builder.argument("z");
  const int a = builder.op("a", {x}), s = builder.op("s", {z});
  builder.result(builder.op("r", {a, s}));
  builder.everyOpAlone();
  builder.candidate({0, 2});
  Options options = everything();
  options.forceFused.insert({0, 2});
  const HashedPrices prices(3);
  const Selection selection = select::select(builder.problem, prices, options);
  REQUIRE(selection.best().steps.size() >= 2);
  checkValid(builder.problem, selection.best());
}

TEST_CASE("a parameter is packed at no cost, and the packing is in the plan") {
  ProblemBuilder builder;
  const int w = builder.argument("w");
  builder.result(builder.op("a", {w}));
  builder.everyOpAlone();
  size_t packings = 0;
  for (int seed = 1; seed <= 10; ++seed) {
    const HashedPrices prices(seed);
    builder.problem.tensors[0].isParameter = false;
    const double asArgument = select::select(builder.problem, prices, everything()).best().seconds;
    builder.problem.tensors[0].isParameter = true;
    const Selection selection = select::select(builder.problem, prices, everything());
    CHECK(selection.best().seconds <= asArgument);
    double cheapest = INFINITY;  // over all layouts of w; the result is row-major or transposed
    for (const Layout &layout : allDenseLayouts(2))
      cheapest = std::min(
          cheapest, prices
                        .cost(builder.problem.candidates[0].kernel,
                              {.inputs = {layout}, .outputs = {rowMajor(2)}, .knobs = LoopKnobs{}})
                        .seconds);
    CHECK(selection.best().seconds <= cheapest * (1 + 1e-12));
    for (const Step &step : nonEmpty(selection.best().steps)) {
      if (step.candidate >= 0 || step.tensor != 0) continue;
      CHECK(step.cost.seconds == 0);
      ++packings;
    }
    checkValid(builder.problem, selection.best());
  }
  CHECK(packings > 0);
}

TEST_CASE("the memory limit filters plans and names the smallest peak") {
  const HashedPrices prices(9);
  Options options = everything();
  const int64_t tensorBytes = chain().tensors[0].bytes();
  // Fused as {a, b}, c only one temporary lives at a time; alone, two.
  options.maxMemory = tensorBytes;
  const Selection selection = select::select(chain(), prices, options);
  CHECK(selection.best().peakTemporaryBytes <= tensorBytes);
  options.maxMemory = tensorBytes - 1;
  try {
    select::select(chain(), prices, options);
    FAIL("one temporary is always needed");
  } catch (const Error &error) {
    CHECK(error.kind == ErrorKind::unsupported);
    CHECK(std::string(error.what()).find(fmt::format("{} bytes", tensorBytes)) !=
          std::string::npos);
  }
}

TEST_CASE("pins that contradict are rejected") {
  Problem problem = chain();
  problem.tiedTensors = {{0, 3}};
  problem.tensors[0].pinned = Layout{.order = {1, 0}};
  problem.tensors[3].pinned = rowMajor(2);
  const HashedPrices prices(1);
  try {
    select::select(problem, prices, everything());
    FAIL("x and c are tied");
  } catch (const Error &error) {
    CHECK(error.kind == ErrorKind::badInput);
  }
}

TEST_CASE("free tied tensors get one layout") {
  Problem problem = chain();
  problem.tiedTensors = {{0, 3}};
  Options options = everything();
  options.free = true;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const HashedPrices prices(seed);
    const Selection selection = select::select(problem, prices, options);
    const Step &first = selection.best().steps.front();
    const Layout arrives = first.configuration.inputs[0],
                 leaves = selection.best().steps.back().configuration.outputs[0];
    CHECK(arrives == leaves);
  }
}

TEST_CASE("selection is deterministic, drawing included") {
  const HashedPrices prices(17);
  const Selection a = select::select(chain(), prices, everything()),
                  b = select::select(chain(), prices, everything());
  CHECK(a.dot() == b.dot());
  REQUIRE(a.best().steps.size() == b.best().steps.size());
  for (size_t i = 0; i < a.best().steps.size(); ++i)
    CHECK(a.best().steps[i].configuration == b.best().steps[i].configuration);
  CHECK(a.dot().find("digraph") == 0);
}

TEST_CASE("every kernel step has a runner-up that loses time") {
  const HashedPrices prices(19);
  const Selection selection = select::select(chain(), prices, everything());
  for (const Step &step :
       nonEmpty(selection.best().steps, [](const Step &one) { return one.candidate >= 0; })) {
    CHECK(!step.runnerUp.empty());
    CHECK(step.runnerUpLoss >= 0);
  }
}

TEST_CASE("the analytic model agrees with itself when it is asked one configuration at a time") {
  /// The same prices without the promise that they may be added up.
  class OneByOne : public CostModel {
  public:
    Cost cost(const Kernel &kernel, const Configuration &configuration) const override {
      return model->cost(kernel, configuration);
    }
    const Device &device() const override { return model->device(); }
    PriceSource source() const override { return {.name = "one by one"}; }
    std::string identity() const override { return model->identity(); }
    std::unique_ptr<CostModel> model = analyticCostModel(findDevice("h200"));
  };
  ProblemBuilder builder({{'j', 64}, {'i', 256}});
  const int x = builder.argument("x"), z = builder.argument("z");
  const int a = builder.op("a", {x}), b = builder.op("b", {a, z});
  builder.result(builder.op("c", {b}));
  builder.everyOpAlone();
  builder.candidate({0, 1, 2});
  const OneByOne slow;
  const auto fast = analyticCostModel(findDevice("h200"));
  const double bySum = select::select(builder.problem, *fast, everything()).best().seconds;
  CHECK(bySum ==
        Approx(select::select(builder.problem, slow, everything()).best().seconds).epsilon(1e-9));
}
