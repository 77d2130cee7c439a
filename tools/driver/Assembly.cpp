// Kernel programs and lines about a whole graph; see Assembly.h.
#include "tools/driver/Assembly.h"

#include "kernel/Format.h"
#include "passes/decide/KernelPrices.h"

#include <fmt/format.h>

#include <cmath>

namespace weft::driver {

std::string lowered(const PlannedKernels &planned, const std::string &architecture) {
  std::string text;
  for (const ChosenKernel &chosen : planned.kernels)
    if (chosen.configuration.knobs.family().hasText())
      text += fmt::format("// {}\n{}\n", chosen.kernel.name,
                          codegen::lowerToText(chosen.kernel, chosen.configuration, architecture));
  return text;
}

std::string measurementLine(const Plan &plan) {
  if (!plan.measurement) return "";
  return fmt::format("whole graph {} (+-{:.1f}%), {:.3f}x of the predicted sum, on {}\n",
                     formatSeconds(plan.measurement->seconds), 50 * plan.measurement->spread,
                     plan.measurement->ratio, plan.measurement->gpu);
}

nlohmann::json graphJson(const Plan &plan) {
  const GraphPrediction graph = decision::graphOf(plan);
  return {{"seconds", graph.seconds()},
          {"reusedBytes", graph.reusedBytes},
          {"overwrittenBytes", graph.overwrittenBytes}};
}

std::string graphLine(const Plan &plan) {
  const GraphPrediction graph = decision::graphOf(plan);
  if (graph.reuseSeconds <= 0 && graph.overlapSeconds == 0) return "";
  const std::string overlap = graph.overlapSeconds == 0
                                  ? ""
                                  : fmt::format("slices that run at once {} {}, ",
                                                graph.overlapSeconds > 0 ? "save" : "add",
                                                formatSeconds(std::abs(graph.overlapSeconds)));
  return fmt::format(
      "as one graph {}: {}kernels find {} in L2 that others left there, and {} never leave it\n",
      formatSeconds(graph.seconds()), overlap, formatBytes(int64_t(graph.reusedBytes)),
      formatBytes(int64_t(graph.overwrittenBytes)));
}

}  // namespace weft::driver
