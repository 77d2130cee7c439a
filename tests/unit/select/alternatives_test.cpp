// Alternatives of sites in one problem: the search, its bounds and its lattice against a search of
// every combination by itself, and the joining of variants.
#include "passes/select/JoinVariants.h"
#include "passes/select/KernelSpaces.h"
#include "passes/select/LagrangianBound.h"
#include "passes/select/LayoutConflictBound.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleProblems.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::samples;
using select::Problem;

namespace {

select::Options keepingAll() {
  select::Options options;
  options.nearBest = 1e9;
  options.beam = options.alternativeStates = 1 << 20;
  return options;
}

/// A chain of layers, each in one of several forms: layer n reads what layer n - 1 wrote, and
/// perhaps the second argument or a second result of that layer, which is live beside it.
class Layers {
public:
  Layers(std::mt19937_64 &random, int layers, int forms) : random(random), layers(layers) {
    for (int layer = 0; layer < layers; ++layer) {
      isWide.push_back(pick(2) == 1);
      seeds.emplace_back();
      for (int form = 0; form < forms; ++form) seeds.back().push_back(random());
    }
  }

  /// `forms`: by layer.
  Problem with(const std::vector<int> &forms) const {
    ProblemBuilder builder;
    const int x = builder.argument("x"), z = builder.argument("z");
    std::vector<int> live = {x, x};
    std::vector<std::vector<int>> opsOf;
    for (int layer = 0; layer < layers; ++layer) {
      const size_t begin = builder.problem.ops.size();
      live = addLayer(builder, layer, forms[size_t(layer)], live, z);
      std::vector<int> &ops = opsOf.emplace_back();
      for (size_t op = begin; op < builder.problem.ops.size(); ++op) ops.push_back(int(op));
    }
    builder.result(live[0]);
    if (live[1] != live[0]) builder.result(live[1]);
    builder.everyOpAlone();
    for (size_t layer = 0; layer < opsOf.size(); ++layer) {
      std::mt19937_64 of(seeds[layer][size_t(forms[layer])] + 1);
      for (int extra = 0; extra < 3; ++extra) {
        std::set<int> members;
        for (int n = 0; n < 2; ++n) members.insert(opsOf[layer][of() % opsOf[layer].size()]);
        if (members.size() > 1) builder.candidate({members.begin(), members.end()});
      }
    }
    return builder.problem;
  }

  std::set<std::string> crossing() const {
    std::set<std::string> names;
    for (int layer = 0; layer < layers; ++layer)
      names.insert({fmt::format("y{}", layer), fmt::format("w{}", layer)});
    return names;
  }

private:
  int pick(size_t count) { return static_cast<int>(random() % count); }

  std::vector<int> addLayer(ProblemBuilder &builder, int layer, int form,
                            const std::vector<int> &live, int z) const {
    std::mt19937_64 of(seeds[size_t(layer)][size_t(form)]);
    const size_t inner = 1 + of() % 2;
    std::vector<int> own;
    for (size_t op = 0; op < inner; ++op) {
      std::set<int> inputs = {op == 0 ? live[1] : own.back()};
      if (of() % 3 == 0) inputs.insert(z);
      own.push_back(
          builder.op(fmt::format("t{}_{}_{}", layer, form, op), {inputs.begin(), inputs.end()}));
    }
    // What every form of the layer writes: of all inside, and of what the layer before wrote.
    const int y = builder.op(fmt::format("y{}", layer), {live[0], own.back()});
    if (!isWide[size_t(layer)]) return {y, y};
    return {y, builder.op(fmt::format("w{}", layer), {live[1], own[of() % inner]})};
  }

  std::mt19937_64 &random;
  int layers;
  std::vector<bool> isWide;
  std::vector<std::vector<uint64_t>> seeds;
};

/// Layers with a backward pass that reads what their forms have inside, and ops between them that
/// all forms have. Kernels hold ops of one layer, of both passes or of one, and ops between.
class Trained {
public:
  Trained(std::mt19937_64 &random, int layers, int forms) : layers(layers) {
    for (int layer = 0; layer < layers; ++layer) {
      seeds.emplace_back();
      for (int form = 0; form < forms; ++form) seeds.back().push_back(random());
    }
  }

  /// `forms`: by layer.
  Problem with(const std::vector<int> &forms) const {
    ProblemBuilder builder;
    std::vector<std::vector<int>> own{size_t(layers)};
    std::vector<std::vector<int>> inside = own, near = own;
    const auto add = [&](const std::string &name, std::vector<int> inputs, std::vector<int> &to) {
      to.push_back(int(builder.problem.ops.size()));
      return builder.op(name, std::move(inputs));
    };
    const int x = builder.argument("x");
    int live = x;
    std::vector<int> stored, beside;
    // Whether the kernel of two s keeps the first on chip, beside forms that do not read it.
    const bool keeps = seeds.front().front() % 3 == 0;
    std::vector<std::mt19937_64> of;
    for (int layer = 0; layer < layers; ++layer) {
      const auto n = size_t(layer);
      of.emplace_back(seeds[n][size_t(forms[n])]);
      int seen = live;
      if (!keeps) builder.result(seen = add(fmt::format("u{}", layer), {live}, beside));
      const auto input = [&] { return of[n]() % 2 ? seen : x; };  // some forms do not read it
      for (size_t op = 0, count = 1 + of[n]() % 2; op < count; ++op)
        inside[n].push_back(add(fmt::format("t{}_{}_{}", layer, forms[n], op),
                                {op == 0 ? input() : inside[n].back()}, own[n]));
      const int y = add(fmt::format("y{}", layer), {inside[n].back(), input()}, own[n]);
      stored.push_back(live = add(fmt::format("s{}", layer), {y, live}, near[n]));
    }
    builder.result(live);
    for (int layer = layers; layer-- > 0;) {
      const auto n = size_t(layer);
      std::vector<int> read = {live};
      if (!keeps) read.push_back(stored[n]);
      const int before = add(fmt::format("d{}", layer), read, near[n]);
      const int inner = add(fmt::format("b{}_{}", layer, forms[n]),
                            {before, inside[n][of[n]() % inside[n].size()]}, own[n]);
      live = add(fmt::format("g{}", layer), {inner, before}, own[n]);
    }
    builder.result(live);
    builder.everyOpAlone();
    for (size_t n = 0; n < own.size(); ++n)
      for (int extra = 0; extra < 4; ++extra) {
        std::set<int> members{own[n][of[n]() % own[n].size()]};
        const std::vector<int> &among = extra % 2 ? own[n] : near[n];
        members.insert(among[of[n]() % among.size()]);
        if (members.size() > 1) builder.candidate({members.begin(), members.end()});
      }
    for (size_t n = 1; n < near.size(); ++n)
      builder.candidate({near[n - 1].front(), near[n].front()});
    return builder.problem;
  }

  std::set<std::string> crossing() const {
    std::set<std::string> names;
    for (int layer = 0; layer < layers; ++layer)
      for (const char letter : {'u', 'y', 's', 'd', 'g'})
        names.insert(fmt::format("{}{}", letter, layer));
    return names;
  }

private:
  int layers;
  std::vector<std::vector<uint64_t>> seeds;
};

/// Of every layer the first form, the second, ..
std::vector<Problem> alike(const auto &layers, int count, int forms) {
  std::vector<Problem> variants;
  for (int form = 0; form < forms; ++form)
    variants.push_back(layers.with(std::vector<int>(size_t(count), form)));
  return variants;
}

std::optional<select::JoinedVariants> join(const std::vector<Problem> &variants,
                                           const std::set<std::string> &crossing) {
  std::vector<const Problem *> all;
  for (const Problem &variant : variants) all.push_back(&variant);
  return select::joinVariants(all, std::vector(variants.size(), crossing));
}

/// Calls `visit` for every combination of forms.
void forEachCombination(int layers, int forms,
                        const std::function<void(const std::vector<int> &)> &visit) {
  std::vector<int> chosen(static_cast<size_t>(layers), 0);
  for (;;) {
    visit(chosen);
    size_t layer = 0;
    while (layer < chosen.size() && ++chosen[layer] == forms) chosen[layer++] = 0;
    if (layer == chosen.size()) return;
  }
}

}  // namespace

TEST_CASE("the plan of all alternatives is the best over every combination, and the bounds hold") {
  std::mt19937_64 random(3);
  int joined = 0, mixed = 0, cutSites = 0;
  for (int round = 0; round < 60; ++round) {
    INFO("round " << round);
    const int count = 2 + round % 2, forms = 2 + round % 2;
    const Layers layers(random, count, forms);
    const HashedPrices model(random());
    const std::vector<Problem> variants = alike(layers, count, forms);
    const std::optional<select::JoinedVariants> all = join(variants, layers.crossing());
    if (!all) continue;
    ++joined;
    cutSites += int(all->choices());
    double best = INFINITY, bound = INFINITY;
    forEachCombination(count, forms, [&](const std::vector<int> &chosen) {
      const select::Selection one = select::select(layers.with(chosen), model, keepingAll());
      best = std::min(best, one.best().seconds);
      bound = std::min(bound, one.best().lowerBound);
    });
    const select::Selection together = select::select(all->problem, model, keepingAll());
    CHECK(together.best().seconds == Approx(best).epsilon(1e-12));
    CHECK(together.best().lowerBound == Approx(bound).epsilon(1e-12));
    CHECK(together.statistics().isProven);
    select::SharedSpaces shared(model);
    const select::Selection narrowed =
        select::selectAmongAlternatives(all->problem, shared, keepingAll());
    CHECK(narrowed.best().seconds == Approx(best).epsilon(1e-12));
    // The combination by itself takes what the joint plan says.
    const std::vector<size_t> chosen = select::variantsIn(*all, narrowed);
    mixed += !select::variantWith(*all, chosen);

    select::Statistics statistics;
    const select::Options options = keepingAll();
    const select::Prices prices(all->problem, model, options, statistics);
    const select::FinishedOpLattice lattice(all->problem, prices);
    const select::Layer &first = lattice.layers().front();
    select::Masks arriving;
    for (int tensor : first.tracked)
      arriving.push_back(select::LayoutMask(1 << *prices.pinned(tensor)));
    CHECK(first.after + select::LayoutConflictBound(all->problem, prices).of(first).of(arriving) <=
          best * (1 + 1e-12));
    select::LagrangianBound lagrangian(all->problem, prices, lattice,
                                       std::numeric_limits<int64_t>::max());
    lagrangian.raise(best * 2);
    CHECK(lagrangian.bound() <= best * (1 + 1e-12));
    CHECK(lagrangian.bound() >= bound * (1 - 1e-12));
  }
  CHECK(joined > 40);
  CHECK(mixed > 20);
  CHECK(cutSites > 80);
}

TEST_CASE("alternatives span both passes, and kernels reach across their borders") {
  std::mt19937_64 random(41);
  int joined = 0, mixed = 0, across = 0, spanning = 0, exact = 0, proven = 0;
  for (int round = 0; round < 18; ++round) {
    INFO("round " << round);
    const int count = 2 + round % 2, forms = 2 + round % 2;
    const Trained layers(random, count, forms);
    const HashedPrices model(random());
    const std::vector<Problem> variants = alike(layers, count, forms);
    const std::optional<select::JoinedVariants> all = join(variants, layers.crossing());
    if (!all) continue;
    ++joined;
    const std::vector<int> siteOf = all->siteOfOps();
    // Layers of which a kernel keeps what another form reads are in one site: alike in all plans.
    std::vector<size_t> siteOfLayer;
    for (int layer = 0; layer < count; ++layer) {
      const auto op = std::ranges::find(variants.front().ops, fmt::format("y{}", layer));
      siteOfLayer.push_back(
          size_t(siteOf[size_t(all->numbers[0][size_t(op - variants.front().ops.begin())])]));
    }
    // A kernel over the border of two sites is known of forms that some variant has together.
    const bool isExact = std::ranges::all_of(nonEmpty(all->problem.ops), [&](const auto &op) {
      const auto number = size_t(&op - all->problem.ops.data());
      return (op.front() != 's' && op.front() != 'd') || siteOf[number] < 0;
    });
    exact += isExact;
    double best = INFINITY, bestAlike = INFINITY;
    forEachCombination(count, forms, [&](const std::vector<int> &chosen) {
      for (size_t a = 0; a < chosen.size(); ++a)
        for (size_t b = 0; b < a; ++b)
          if (siteOfLayer[a] == siteOfLayer[b] && chosen[a] != chosen[b]) return;
      const double seconds =
          select::select(layers.with(chosen), model, keepingAll()).best().seconds;
      best = std::min(best, seconds);
      // What is one of the joined variants has all its kernels in the joint problem.
      if (std::ranges::adjacent_find(chosen, std::not_equal_to()) == chosen.end())
        bestAlike = std::min(bestAlike, seconds);
    });
    REQUIRE(bestAlike < INFINITY);
    const select::Selection together = select::select(all->problem, model, keepingAll());
    CHECK(together.best().seconds >= best * (1 - 1e-12));
    CHECK(together.best().seconds <= (isExact ? best : bestAlike) * (1 + 1e-12));
    best = together.best().seconds;
    CHECK(together.best().lowerBound <= best * (1 + 1e-12));
    proven += together.statistics().isProven;
    select::SharedSpaces shared(model);
    const select::Selection narrowed =
        select::selectAmongAlternatives(all->problem, shared, keepingAll());
    CHECK(narrowed.best().seconds == Approx(best).epsilon(1e-12));
    mixed += !select::variantWith(*all, select::variantsIn(*all, narrowed));
    for (const select::Step &step : together.best().steps) {
      if (step.candidate < 0) continue;
      std::set<int> sites;
      for (const int op : together.problem().candidates[size_t(step.candidate)].ops)
        sites.insert(siteOf[size_t(op)]);
      across += sites.size() > 1;
    }
    for (const auto &alternatives : all->problem.sites)
      spanning += alternatives.front().back() - alternatives.front().front() >
                  int(alternatives.front().size());

    select::Statistics statistics;
    const select::Options options = keepingAll();
    const select::Prices prices(all->problem, model, options, statistics);
    const select::FinishedOpLattice lattice(all->problem, prices);
    select::Masks arriving;
    for (int tensor : lattice.layers().front().tracked)
      arriving.push_back(select::LayoutMask(1 << *prices.pinned(tensor)));
    const select::Layer &first = lattice.layers().front();
    CHECK(first.after + select::LayoutConflictBound(all->problem, prices).of(first).of(arriving) <=
          best * (1 + 1e-12));
    select::LagrangianBound lagrangian(all->problem, prices, lattice,
                                       std::numeric_limits<int64_t>::max());
    lagrangian.raise(best * 2);
    CHECK(lagrangian.bound() <= best * (1 + 1e-12));
  }
  CHECK(joined > 12);
  CHECK(exact > 5);
  CHECK(proven > 10);
  CHECK(exact < joined);
  CHECK(mixed > 5);
  CHECK(across > 8);
  CHECK(spanning > 20);
}

TEST_CASE("a search of few states among alternatives proves nothing that is not so") {
  std::mt19937_64 random(17);
  int proven = 0;
  for (int round = 0; round < 60; ++round) {
    INFO("round " << round);
    const Layers layers(random, 3, 2);
    const HashedPrices model(random());
    const auto all = join(alike(layers, 3, 2), layers.crossing());
    if (!all) continue;
    const double best = select::select(all->problem, model, keepingAll()).best().seconds;
    select::Options options = keepingAll();
    options.alternativeStates = options.states = 1;
    const select::Selection few = select::select(all->problem, model, options);
    CHECK(few.best().seconds * (1 - few.statistics().mostGain) <= best * (1 + 1e-12));
    if (few.statistics().isProven) CHECK(few.best().seconds == Approx(best).epsilon(1e-12));
    proven += few.statistics().isProven;
  }
  CHECK(proven > 15);
}

TEST_CASE("the lattice of a chain grows with its layers, not with the combinations") {
  std::mt19937_64 random(31);
  const auto layersOf = [&](int count) {
    std::mt19937_64 same(77);
    const Layers layers(same, count, 3);
    const HashedPrices model(1);
    const auto all = join(alike(layers, count, 3), layers.crossing());
    REQUIRE(all);
    select::Statistics statistics;
    const select::Options options = keepingAll();
    const select::Prices prices(all->problem, model, options, statistics);
    return select::FinishedOpLattice(all->problem, prices).layers().size();
  };
  const size_t five = layersOf(5), twenty = layersOf(20);
  CHECK(twenty < 6 * five);
  CHECK(twenty > five);
}
