// Prices of transposes. If some transposes of a tensor were measured, only those are considered, as
// measured kernels are chosen among their measurements. Transposes of other tensors are priced by
// the model. If no plan exists without the pruned pairs of layouts, admitModelledTransposes() adds
// them all again and notes it.
#include "passes/select/Prices.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace weft::select {

Kernel transposeKernel(const Tensor &tensor) {
  Kernel kernel{.name = "transpose_" + tensor.name,
                .axes = tensor.axes,
                .values = {},
                .inputs = {0},
                .outputs = {1},
                .body = {}};
  std::vector<AxisId> axes(tensor.axes.size());
  std::iota(axes.begin(), axes.end(), 0);
  kernel.values = {{.name = tensor.name, .dtype = tensor.dtype, .axes = axes},
                   {.name = tensor.name + "_moved", .dtype = tensor.dtype, .axes = axes}};
  BodyOp identity;
  identity.kind = OpKind::identity;
  identity.operatorClass = OperatorClass::movement;
  identity.operands = {0};
  identity.results = {1};
  kernel.body = {identity};
  return kernel;
}

void Prices::priceTransposes(int tensor) {
  const size_t count = layouts(tensor).size();
  std::vector<TransposePrice> &prices = transposes.emplace_back(count * count);
  prunedPairs.push_back(0);
  if (freeToPack[static_cast<size_t>(tensor)]) {
    prices.assign(count * count, {.seconds = 0, .knobs = familyWith(&Family::isView).defaults()});
    return;
  }
  if (count < 2) return;
  statistics.legalConfigurations += legalTransposes(tensor);
  if (!offerMeasuredTransposes(tensor)) {
    if (!model.admitsModelled()) return;
    const int64_t pairs = offerModelledTransposes(tensor);
    if (model.hasMeasurements()) statistics.modelledTransposes += pairs;
    return;
  }
  const auto measured =
      std::count_if(prices.begin(), prices.end(),
                    [](const TransposePrice &price) { return price.seconds < infinite; });
  const auto pruned = static_cast<int64_t>(count * (count - 1)) - measured;
  if (pruned == 0) return;
  prunedPairs.back() = pruned;
  statistics.prunedTransposes += pruned;
  statistics.notes.push_back(
      fmt::format("tensor {}: {} of {} transposes between its {} layouts were not measured and are "
                  "not considered",
                  tensorOf(tensor).name, pruned, count * (count - 1), count));
}

/// Of the tensor between the layouts that it keeps: offered and counted beside those of candidates.
double Prices::legalTransposes(int tensor) const {
  const Kernel kernel = transposeKernel(tensorOf(tensor));
  const Expected<ConfigurationSpace, Reason> answer =
      familyWith(&Family::isTranspose).space(kernel, model.device());
  if (!answer) return 0;
  ConfigurationSpace space = *answer;
  space.tuples.clear();
  for (const Layout &from : layouts(tensor))
    for (const Layout &to : layouts(tensor))
      if (from != to) space.tuples.push_back({from, to});
  return countConfigurations(kernel, space);
}

/// False if no transpose of the tensor was measured.
bool Prices::offerMeasuredTransposes(int tensor) {
  const size_t count = layouts(tensor).size();
  const std::vector<PricedConfiguration> &measurements =
      model.measured(transposeKernel(tensorOf(tensor)));
  for (const PricedConfiguration &measurement : measurements) {
    const int from = numberOf(tensor, measurement.configuration.inputs[0]),
              to = numberOf(tensor, measurement.configuration.outputs[0]);
    if (from < 0 || to < 0 || from == to) continue;
    ++statistics.configurations;
    ++statistics.measured;
    TransposePrice &price = transposes[static_cast<size_t>(tensor)]
                                      [static_cast<size_t>(from) * count + static_cast<size_t>(to)];
    if (measurement.cost.seconds < price.seconds)
      price = {.seconds = measurement.cost.seconds, .knobs = measurement.configuration.knobs};
  }
  return !measurements.empty();
}

/// Prices the pairs that have no price yet; returns how many.
int64_t Prices::offerModelledTransposes(int tensor) {
  const Kernel kernel = transposeKernel(tensorOf(tensor));
  const Expected<ConfigurationSpace, Reason> answer =
      familyWith(&Family::isTranspose).space(kernel, model.device());
  if (!answer) return 0;
  const CostModel &pricer = model.modelled();
  const size_t count = layouts(tensor).size();
  int64_t pairs = 0;
  for (size_t from = 0; from < count; ++from)
    for (size_t to = 0; to < count; ++to) {
      TransposePrice &price = transposes[static_cast<size_t>(tensor)][from * count + to];
      if (from == to || price.seconds < infinite) continue;
      ++pairs;
      const LayoutTuple tuple = {layouts(tensor)[from], layouts(tensor)[to]};
      for (const Knobs &knobs : answer->knobs) {
        if (!isUseful(kernel, tuple, knobs)) continue;
        ++statistics.configurations;
        const double seconds = pricer.cost(kernel, toConfiguration(kernel, tuple, knobs)).seconds;
        if (seconds < price.seconds) price = {.seconds = seconds, .knobs = knobs};
      }
    }
  return pairs;
}

bool Prices::admitModelledTransposes() {
  if (statistics.prunedTransposes == 0 || !model.admitsModelled()) return false;
  for (size_t t = 0; t < prunedPairs.size(); ++t)
    if (prunedPairs[t] > 0)
      statistics.modelledTransposes += offerModelledTransposes(static_cast<int>(t));
  statistics.notes.push_back(
      fmt::format("no plan was found with measured transposes alone: the {} that were not measured "
                  "are priced by the model",
                  statistics.prunedTransposes));
  statistics.prunedTransposes = 0;
  cheapest.clear();
  prunedPairs.assign(prunedPairs.size(), 0);
  findRegrets();
  countCoverage();
  return true;
}

double Prices::transposeSeconds(int tensor, int from, int to) const {
  return from == to ? 0 : transpose(tensor, from, to).seconds;
}

const std::pair<int, double> &Prices::cheapestTranspose(int tensor, LayoutMask available,
                                                        int to) const {
  const size_t count = layouts(tensor).size();
  cheapest.resize(transposes.size());
  std::vector<std::pair<int, double>> &known = cheapest[static_cast<size_t>(tensor)];
  if (known.empty()) known.assign((size_t(1) << count) * count, {-1, -1});
  std::pair<int, double> &best = known[available * count + static_cast<size_t>(to)];
  if (best.second >= 0) return best;
  best = {-1, infinite};
  for (int from = 0; from < static_cast<int>(count); ++from) {
    if (!(available >> from & 1)) continue;
    if (const double seconds = transposeSeconds(tensor, from, to); seconds < best.second)
      best = {from, seconds};
  }
  return best;
}

Configuration Prices::transposeConfiguration(int tensor, int from, int to) const {
  return {.inputs = {layouts(tensor)[static_cast<size_t>(from)]},
          .outputs = {layouts(tensor)[static_cast<size_t>(to)]},
          .knobs = transpose(tensor, from, to).knobs};
}

}  // namespace weft::select
