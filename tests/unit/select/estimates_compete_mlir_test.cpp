// A profile takes nothing away: over layers drawn at random, which it mostly has no measurements
// of, the plan chosen with it is never slower, by its own prices, than the plan chosen without.
#include "tests/support/NonEmpty.h"
#include "tools/driver/Compilation.h"
#include "tools/driver/ProfileModel.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <random>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::driver;

namespace {

struct Layer {
  int64_t heads = 12, headDim = 64, batch = 1, length = 128;
  bool isBrain = false;  ///< bf16
  std::string name() const {
    return fmt::format("{} heads of {}, B={} L={} {}", heads, headDim, batch, length,
                       isBrain ? "bf16" : "f16");
  }
};

/// As in bench/weftbench/transfer_draws.py: lengths and tokens by their logarithms, half of the
/// lengths multiples of 64.
std::vector<Layer> draws(size_t count) {
  std::mt19937_64 random(23);
  const auto upTo = [&](int64_t limit) { return int64_t(random() % uint64_t(limit)); };
  const auto logUniform = [&](double least, double most) {
    return least * std::pow(most / least, double(upTo(1 << 20)) / (1 << 20));
  };
  std::vector<Layer> layers;
  while (layers.size() < count) {
    Layer layer{.heads = 8 + upTo(25), .isBrain = upTo(2) == 1};
    layer.headDim = upTo(2) == 0 ? 64 : std::array{80, 96, 128}[size_t(upTo(3))];
    const double length = logUniform(64, 8192), tokens = logUniform(512, 32768);
    layer.length = upTo(2) == 0 ? 64 * std::lround(length / 64) : std::lround(length);
    layer.batch = std::max<int64_t>(1, std::lround(tokens / double(layer.length)));
    layers.push_back(layer);
  }
  return layers;
}

/// The cheapest path of all variants, as the search adds it up.
struct Chosen {
  std::unique_ptr<Compilation> compilation;
  std::vector<ProposedVariant> proposed;
  decision::Decision decision;
};

Chosen choose(const Layer &layer, const std::string &profile) {
  const auto path = std::filesystem::temp_directory_path() / "weft-estimates-compete.json";
  std::ofstream(path) << fmt::format(
      R"({{"model_type": "bert", "hidden_size": {}, "num_attention_heads": {},
           "intermediate_size": {}, "hidden_act": "gelu", "layer_norm_eps": 1e-12,
           "max_position_embeddings": {}, "torch_dtype": "{}"}})",
      layer.heads * layer.headDim, layer.heads, 4 * layer.heads * layer.headDim, layer.length,
      layer.isBrain ? "bfloat16" : "float16");
  ModelFlags model;
  model.model = path.string();
  model.dropout = "0";
  model.dims = {fmt::format("b={}", layer.batch), fmt::format("j={}", layer.length)};
  TargetFlags target;
  target.profile = profile;
  auto compilation = std::make_unique<Compilation>(model, ChoiceFlags(), target);
  compilation->import();
  std::vector<ProposedVariant> proposed = compilation->propose(Phase::import);
  decision::Decision decision = compilation->decide(proposed);
  return {.compilation = std::move(compilation),
          .proposed = std::move(proposed),
          .decision = std::move(decision)};
}

/// As the search adds it up, transposes like all kernels by these prices; packing parameters when
/// they are loaded takes nothing.
double pricedBy(const CostModel &prices, const Chosen &chosen) {
  const select::Selection &selection = chosen.decision.variants.front().selection;
  const select::Problem &problem = selection.problem();
  double sum = 0;
  for (const select::Step &step : selection.best().steps) {
    if (step.cost.seconds <= 0) continue;
    const Kernel kernel = step.candidate < 0
                              ? select::transposeKernel(problem.tensors[size_t(step.tensor)])
                              : problem.candidates[size_t(step.candidate)].kernel;
    sum += prices.cost(kernel, step.configuration).seconds;
  }
  return sum;
}

}  // namespace

TEST_CASE("with a profile no plan is slower than without, priced by the profile") {
  const std::shared_ptr<CostModel> prices = costModelOf(TargetFlags());
  REQUIRE(prices->hasMeasurements());
  for (const Layer &layer : nonEmpty(draws(60))) {
    INFO(layer.name());
    const double with = pricedBy(*prices, choose(layer, "")),
                 without = pricedBy(*prices, choose(layer, "none"));
    CHECK(with <= without * (1 + 1e-9));  // sums of the same prices in another order
  }
}
