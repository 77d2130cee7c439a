// Steps as text; see StepText.h.
#include "passes/select/StepText.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace weft::select {

std::string printLayout(const Layout &layout, const Tensor &tensor) {
  std::vector<std::string> names;
  for (const int dimension : layout.order) names.push_back(tensor.axes[size_t(dimension)].name);
  const bool letters =
      std::all_of(names.begin(), names.end(), [](const auto &name) { return name.size() == 1; });
  if (names.empty()) return "-";
  const auto pitch = pitchOf(layout, tensor.extents());
  return fmt::format("{}{}", fmt::join(names, letters ? "" : ","),
                     pitch ? fmt::format(":{}", *pitch) : "");
}

int64_t layerOf(const Problem &problem, const Step &step) {
  if (step.candidate < 0) return problem.tensors[size_t(step.tensor)].layer;
  const int op = problem.candidates[size_t(step.candidate)].ops.front();
  return problem.tensors[size_t(problem.opOutputs[size_t(op)].front())].layer;
}

std::string printStep(const Problem &problem, const Step &step) {
  if (step.candidate < 0) {
    const Tensor &tensor = problem.tensors[size_t(step.tensor)];
    return fmt::format("transpose of {}: {} -> {}", tensor.name,
                       printLayout(step.configuration.inputs[0], tensor),
                       printLayout(step.configuration.outputs[0], tensor));
  }
  const Candidate &candidate = problem.candidates[size_t(step.candidate)];
  std::string text = candidate.name + ":";
  for (size_t index = 0; index < candidate.inputs.size(); ++index)
    text += " " + printLayout(step.configuration.inputs[index],
                              problem.tensors[size_t(candidate.inputs[index])]);
  text += " ->";
  for (size_t index = 0; index < candidate.outputs.size(); ++index)
    text += " " + printLayout(step.configuration.outputs[index],
                              problem.tensors[size_t(candidate.outputs[index])]);
  return text + ", " + describe(candidate.kernel, step.configuration.knobs);
}

}  // namespace weft::select
