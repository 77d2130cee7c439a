// Figures of a plan; see PlanFigures.h.
#include "tools/driver/PlanFigures.h"

#include "runtime/GraphPrediction.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace weft::driver {

int chunkCount(const runtime::Plan &plan) {
  std::map<int, int> chunksOf;  // of a whole kernel
  int most = 1;
  for (const runtime::PlanKernel &kernel : plan.kernels)
    if (kernel.part) most = std::max(most, ++chunksOf[kernel.part->region]);
  return most;
}

nlohmann::json planFigures(const runtime::Plan &plan) {
  std::vector<int> inOrder(plan.kernels.size());
  std::iota(inOrder.begin(), inOrder.end(), 0);
  std::vector<std::string> names;
  for (const runtime::PlanKernel &kernel : plan.kernels) names.push_back(kernel.name);
  return {{"variant", plan.variant},       {"seconds", plan.predictedSeconds}, {"graphSeconds", runtime::predictGraph(plan, inOrder).seconds()},
          {"workspaceBytes", plan.workspaceBytes}, {"chunks", chunkCount(plan)}, {"kernels", std::move(names)}};
}

}  // namespace weft::driver
