// Figures of a plan; see PlanFigures.h.
#include "tools/driver/PlanFigures.h"

#include "runtime/GraphPrediction.h"
#include "tools/driver/KernelPositions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace weft::driver {

int chunkCount(const runtime::Plan &plan) {
  std::map<int, int> chunksOf;  // of a whole kernel
  int most = 1;
  for (const runtime::PlanKernel &kernel : plan.kernels)
    if (kernel.chunk) most = std::max(most, ++chunksOf[kernel.chunk->region]);
  return most;
}

std::string contractionPrecision(const runtime::Plan &plan) {
  size_t contractions = 0, rounded = 0;
  for (const runtime::PlanKernel &kernel : plan.kernels)
    for (const std::string &op : kernel.ops) {
      contractions += op.find(" = contract \"") != std::string::npos;
      rounded += op.ends_with(printedTf32);
    }
  return rounded == 0 ? "" : rounded == contractions ? "tf32" : "partly tf32";
}

std::string elementsText(const runtime::Plan &plan) {
  const std::string precision = contractionPrecision(plan);
  return precision.empty() ? plan.dtype
                           : fmt::format("{} (contractions {})", plan.dtype, precision);
}

nlohmann::json planFigures(const runtime::Plan &plan) {
  std::vector<int> inOrder(plan.kernels.size());
  std::iota(inOrder.begin(), inOrder.end(), 0);
  std::vector<std::string> names;
  for (const runtime::PlanKernel &kernel : plan.kernels) names.push_back(kernel.name);
  return {{"variant", plan.variant},
          {"seconds", plan.predictedSeconds},
          {"graphSeconds", runtime::predictGraph(plan, inOrder).seconds()},
          {"workspaceBytes", plan.workspaceBytes},
          {"chunks", chunkCount(plan)},
          {"kernels", std::move(names)}};
}

}  // namespace weft::driver
