// Figures of a plan; see PlanFigures.h.
#include "plan/PlanFigures.h"

#include "plan/GraphPrediction.h"
#include "plan/KernelPositions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace weft {

double sumOfKernels(const Plan &plan) {
  double sum = 0;
  for (const PlanKernel &kernel : plan.kernels) sum += kernel.seconds;
  return sum;
}

int chunkCount(const Plan &plan) {
  std::map<int, int> chunksOf;  // of a whole kernel
  int most = 1;
  for (const PlanKernel &kernel : plan.kernels)
    if (kernel.chunk) most = std::max(most, ++chunksOf[kernel.chunk->region]);
  return most;
}

bool isPipelined(const Plan &plan) {
  return std::ranges::any_of(
      plan.kernels, [](const PlanKernel &kernel) { return kernel.chunk && kernel.chunk->isSlice; });
}

std::string contractionPrecision(const Plan &plan) {
  size_t contractions = 0, rounded = 0;
  for (const PlanKernel &kernel : plan.kernels)
    for (const PlanOp &op : kernel.ops) {
      contractions += op.kind == OpKind::contract || op.kind == OpKind::subvectorContract ||
                      op.kind == OpKind::onlineSoftmaxContract;
      rounded += op.readsTf32;
    }
  return rounded == 0 ? "" : rounded == contractions ? "tf32" : "partly tf32";
}

std::string elementsText(const Plan &plan) {
  const std::string precision = contractionPrecision(plan);
  return precision.empty() ? std::string(nameOf(plan.dtype))
                           : fmt::format("{} (contractions {})", nameOf(plan.dtype), precision);
}

nlohmann::json planFigures(const Plan &plan) {
  std::vector<int> inOrder(plan.kernels.size());
  std::iota(inOrder.begin(), inOrder.end(), 0);
  std::vector<std::string> names;
  for (const PlanKernel &kernel : plan.kernels) names.push_back(kernel.name);
  return {{"variant", plan.variant},
          {"seconds", plan.predictedSeconds},
          {"graphSeconds", predictGraph(plan, inOrder).seconds()},
          {"workspaceBytes", plan.workspaceBytes},
          {"chunks", chunkCount(plan)},
          {"kernels", std::move(names)}};
}

}  // namespace weft
