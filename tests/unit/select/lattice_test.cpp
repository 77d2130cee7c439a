// The layers of the selection graph: no partition of the ops into kernels is lost by the order in
// which kernels are taken, and independent work does not multiply them.
#include "passes/select/FinishedOpLattice.h"
#include "passes/select/LagrangianBound.h"
#include "passes/select/LayoutConflictBound.h"
#include "passes/select/OpOrder.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleProblems.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::samples;
using select::OpSet;
using select::Problem;

namespace {

/// Ops 0 to count - 1 with one or two inputs each, alone and in random sets, some of which no plan
/// can take.
Problem randomGraph(std::mt19937_64 &random, int count) {
  ProblemBuilder builder;
  const auto pick = [&](size_t below) { return static_cast<int>(random() % below); };
  std::vector<int> tensors = {builder.argument("x"), builder.argument("z")};
  for (int op = 0; op < count; ++op) {
    std::set<int> inputs = {tensors[static_cast<size_t>(pick(tensors.size()))]};
    if (pick(2)) inputs.insert(tensors[static_cast<size_t>(pick(tensors.size()))]);
    tensors.push_back(builder.op("op" + std::to_string(op), {inputs.begin(), inputs.end()}));
  }
  for (int tensor : tensors)
    if (!builder.problem.tensors[static_cast<size_t>(tensor)].isArgument) builder.result(tensor);
  builder.everyOpAlone();
  std::set<std::set<int>> fused;
  for (int extra = 0; extra < 2 * count; ++extra) {
    std::set<int> members;
    for (int i = 0; i < 2 + pick(3); ++i) members.insert(pick(static_cast<size_t>(count)));
    if (members.size() > 1 && fused.insert(members).second)
      builder.candidate({members.begin(), members.end()});
  }
  return builder.problem;
}

/// Gradients first, then the updates that read them, any of which may share a kernel with its
/// gradient or stand in two parts.
Problem updates(int count) {
  ProblemBuilder builder;
  const int x = builder.argument("x");
  std::vector<int> gradients;
  for (int i = 0; i < count; ++i)
    gradients.push_back(builder.op("gradient" + std::to_string(i), {x}));
  for (int i = 0; i < count; ++i) {
    const int mean = builder.op("mean" + std::to_string(i), {gradients[static_cast<size_t>(i)]});
    builder.result(
        builder.op("next" + std::to_string(i), {mean, gradients[static_cast<size_t>(i)]}));
  }
  builder.everyOpAlone();
  for (int i = 0; i < count; ++i) {
    const int mean = count + 2 * i, next = mean + 1;
    for (const std::vector<int> &ops : {std::vector{i, mean}, {i, mean, next}, {mean, next}})
      builder.candidate(ops);
  }
  return builder.problem;
}

select::Options everything() {
  select::Options options;
  options.nearBest = 1e9;
  return options;
}

using Partition = std::set<int>;  ///< candidates

/// All partitions by brute force: any candidate that is ready may come next.
class AllPartitions {
public:
  explicit AllPartitions(const Problem &problem) : problem(problem) {}
  std::set<Partition> find() {
    extend({}, {});
    return found;
  }

private:
  bool isReady(const select::Candidate &candidate, const std::set<int> &finished) const {
    const auto isDone = [&](int op) { return finished.contains(op); };
    if (std::ranges::any_of(candidate.ops, isDone)) return false;
    for (size_t op = 0; op < problem.ops.size(); ++op)
      for (int output : problem.opOutputs[op])
        if (std::ranges::count(candidate.inputs, output) > 0 && !isDone(static_cast<int>(op)))
          return false;
    return true;
  }
  void extend(const std::set<int> &finished, const Partition &partition) {
    if (!seen.insert(partition).second) return;
    if (finished.size() == problem.ops.size()) found.insert(partition);
    for (size_t c = 0; c < problem.candidates.size(); ++c) {
      if (!isReady(problem.candidates[c], finished)) continue;
      std::set<int> more = finished;
      more.insert(problem.candidates[c].ops.begin(), problem.candidates[c].ops.end());
      Partition longer = partition;
      longer.insert(static_cast<int>(c));
      extend(more, longer);
    }
  }

  const Problem &problem;
  std::set<Partition> seen, found;
};

void follow(const select::FinishedOpLattice &lattice, const select::Layer &layer,
            const Partition &partition, std::multiset<Partition> &found) {
  if (lattice.isComplete(layer)) found.insert(partition);
  for (const select::Transition &transition : layer.next) {
    Partition longer = partition;
    longer.insert(transition.candidate);
    follow(lattice, lattice.layers()[static_cast<size_t>(transition.target)], longer, found);
  }
}

}  // namespace

TEST_CASE(
    "every partition into kernels is a path through the lattice, and the bound is the cheapest") {
  std::mt19937_64 random(5);
  size_t partitions = 0;
  for (int round = 0; round < 40; ++round) {
    INFO("round " << round);
    const Problem problem = randomGraph(random, 5 + round % 3);
    const HashedPrices model(random());
    select::Statistics statistics;
    const select::Options options = everything();
    const select::Prices prices(problem, model, options, statistics);
    const select::FinishedOpLattice lattice(problem, prices);
    std::multiset<Partition> ways;
    follow(lattice, lattice.layers().front(), {}, ways);
    const std::set<Partition> all = AllPartitions(problem).find();
    CHECK(std::set<Partition>(ways.begin(), ways.end()) == all);
    double cheapest = INFINITY;
    for (const Partition &partition : all) {
      double sum = 0;
      for (int candidate : partition) sum += prices.candidate(candidate).bestSeconds;
      cheapest = std::min(cheapest, sum);
    }
    CHECK(lattice.layers().front().after == Approx(cheapest).epsilon(1e-12));
    partitions += all.size();
  }
  CHECK(partitions > 400);
}

TEST_CASE("layers grow with the number of independent updates, not with its power") {
  const auto layersOf = [](int count) {
    const Problem problem = updates(count);
    const HashedPrices model(3);
    select::Statistics statistics;
    const select::Options options = everything();
    const select::Prices prices(problem, model, options, statistics);
    return select::FinishedOpLattice(problem, prices).layers().size();
  };
  const size_t two = layersOf(2), three = layersOf(3);
  CHECK(layersOf(400) == two + 398 * (three - two));  // 1,200 ops
}

TEST_CASE("a lattice of too many layers leaves out what gains least, and bounds all the same") {
  ProblemBuilder builder;
  const int x = builder.argument("x");
  constexpr int count = 24;
  for (int i = 0; i < count; ++i) builder.result(builder.op("op" + std::to_string(i), {x}));
  builder.everyOpAlone();
  for (int a = 0; a < count; ++a)
    for (int b = a + 1; b < count; ++b) builder.candidate({a, b});
  const HashedPrices model(3);
  select::Statistics statistics;
  const select::Options options = everything();
  const select::Prices prices(builder.problem, model, options, statistics);
  const select::FinishedOpLattice limited(builder.problem, prices, int64_t(1) << 40);
  CHECK(std::ssize(limited.layers()) <= select::FinishedOpLattice::mostLayers);
  CHECK(limited.leftOut() > 0);
  CHECK(limited.kept() > 0);
  CHECK(limited.kept() + limited.leftOut() <= count * (count - 1) / 2);
  CHECK(limited.boundOfAll() <= limited.layers().front().after * (1 + 1e-12));
  const select::FinishedOpLattice again(builder.problem, prices, int64_t(1) << 40, limited.kept());
  CHECK(again.kept() == limited.kept());
  CHECK(again.layers().size() == limited.layers().size());
}

TEST_CASE("the order of ops is topological, and without kernels to share the given one") {
  std::mt19937_64 random(9);
  const Problem problem = randomGraph(random, 30);
  std::vector<OpSet> kernels, alone, producers(problem.ops.size());
  for (const select::Candidate &candidate : problem.candidates)
    (candidate.ops.size() > 1 ? kernels : alone).emplace_back(candidate.ops);
  for (size_t op = 0; op < problem.ops.size(); ++op)
    for (size_t before = 0; before < op; ++before)
      if (std::ranges::count(problem.opInputs[op], problem.opOutputs[before].front()) > 0)
        producers[op].insert(static_cast<int>(before));
  OpSet finished;
  for (int op : nonEmpty(select::compactOrder(kernels, producers))) {
    CHECK(finished.containsAll(producers[static_cast<size_t>(op)]));
    CHECK(!finished.contains(op));
    finished.insert(op);
  }
  CHECK(finished.size() == 30);
  const std::vector<int> order = select::compactOrder(alone, producers);
  CHECK(std::ranges::is_sorted(order));
}

TEST_CASE(
    "the layout-conflict bound never exceeds the best plan, and often exceeds the kernels alone") {
  std::mt19937_64 random(21);
  int tighter = 0;
  for (int round = 0; round < 60; ++round) {
    INFO("round " << round);
    Problem problem = randomGraph(random, 4 + round % 4);
    if (round % 2)
      std::erase_if(problem.candidates,
                    [](const select::Candidate &candidate) { return candidate.ops.size() > 1; });
    const HashedPrices model(random());
    select::Statistics statistics;
    select::Options options = everything();
    options.beam = options.alternativeStates = 1 << 20;
    const select::Prices prices(problem, model, options, statistics);
    const select::FinishedOpLattice lattice(problem, prices);
    const select::Layer &first = lattice.layers().front();
    select::Masks arriving;
    for (int tensor : first.tracked)
      arriving.push_back(select::LayoutMask(1 << *prices.pinned(tensor)));
    const double least = select::LayoutConflictBound(problem, prices).of(first).of(arriving);
    const select::Selection selection = select::select(problem, model, options);
    REQUIRE(selection.statistics().isProven);
    CHECK(first.after + least <= selection.best().seconds * (1 + 1e-12));
    tighter += least > 0;
  }
  CHECK(tighter > 40);
}

TEST_CASE(
    "the Lagrangian bound never falls when raised, stops at the value asked for, and never exceeds "
    "the best plan") {
  std::mt19937_64 random(23);
  int risen = 0, reached = 0, obeyed = 0;
  for (int round = 0; round < 60; ++round) {
    INFO("round " << round);
    const Problem problem = randomGraph(random, 4 + round % 4);
    const HashedPrices model(random());
    select::Statistics statistics;
    select::Options options = everything();
    options.beam = options.alternativeStates = 1 << 20;
    const select::Prices prices(problem, model, options, statistics);
    const select::FinishedOpLattice lattice(problem, prices);
    select::LagrangianBound lagrangianBound(problem, prices, lattice,
                                            std::numeric_limits<int64_t>::max());
    const double before = lagrangianBound.bound(),
                 best = select::select(problem, model, options).best().seconds;
    CHECK(before >=
          lattice.layers().front().after * (1 - 1e-12));  // each kernel among its kept layouts
    lagrangianBound.raise((before + best) / 2);
    const double halfway = lagrangianBound.bound();
    CHECK(halfway >= before);
    obeyed += halfway >= (before + best) / 2;
    lagrangianBound.raise(best * 2);  // more than there is
    CHECK(lagrangianBound.bound() >= halfway);
    CHECK(lagrangianBound.bound() <= best * (1 + 1e-12));
    risen += lagrangianBound.bound() > before * (1 + 1e-9);
    reached += lagrangianBound.bound() > best * 0.99;
    select::Masks arriving;
    for (int tensor : lattice.layers().front().tracked)
      arriving.push_back(select::LayoutMask(1 << *prices.pinned(tensor)));
    CHECK(lagrangianBound.after(0) + lagrangianBound.of(0, arriving) ==
          Approx(lagrangianBound.bound()).epsilon(1e-12));
  }
  CHECK(risen > 40);
  CHECK(obeyed > 40);
  CHECK(reached > 40);
}
