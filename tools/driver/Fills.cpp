// A plan priced at fills; see Fills.h.
#include "tools/driver/Fills.h"

#include "passes/decide/KernelPrices.h"

namespace weft::driver {

using nlohmann::json;

json fillJson(const ExpectedFill &fill) {
  json object = {{"tokens", fill.tokens}, {"pairs", fill.pairs}};
  for (const FillLevel &level : fill.levels)
    object["levels"].push_back(
        {{"tokens", level.tokens}, {"pairs", level.pairs}, {"weight", level.weight}});
  return object;
}

ExpectedFill fillFrom(const json &object) {
  ExpectedFill fill{.tokens = object.value("tokens", 1.0), .pairs = object.value("pairs", 1.0)};
  for (const json &level : object.value("levels", json::array()))
    fill.levels.push_back(
        {.tokens = level.at("tokens"), .pairs = level.at("pairs"), .weight = level.at("weight")});
  return fill;
}

json fillsJson(const CostModel &unfilled, const ExpectedFill &fill, const PlannedKernels &planned) {
  json fills = json::array();
  for (const FillLevel &level : curveOf(fill)) {
    const auto prices = filledCostModel(unfilled, {.tokens = level.tokens, .pairs = level.pairs});
    fills.push_back({{"tokens", level.tokens},
                     {"pairs", level.pairs},
                     {"weight", level.weight},
                     {"graphSeconds", decision::graphSecondsBy(*prices, planned)}});
  }
  return fills;
}

}  // namespace weft::driver
