// From an artifact back to planned kernels; see ReEmission.h.
#include "tools/driver/ReEmission.h"

#include "kernel/ContractionRegion.h"
#include "kernel/Error.h"
#include "passes/configure/Family.h"
#include "passes/decide/KernelPrices.h"
#include "plan/Buffers.h"
#include "plan/PlanChunks.h"
#include "plan/PlanConfiguration.h"
#include "plan/PlanFigures.h"
#include "plan/PlanMemory.h"
#include "runtime/artifact/Artifact.h"
#include "tools/driver/PlanConsistency.h"
#include "tools/driver/PlanWiring.h"
#include "tools/driver/ReportShape.h"
#include "tools/driver/SelectedGraph.h"

#include <algorithm>
#include <set>

namespace weft::driver {
namespace {

using nlohmann::json;

void setNumbers(Kernel &kernel, const json &numbers) {
  if (!numbers.is_object()) return;
  const json ops = numbers.value("ops", json::array()),
             values = numbers.value("values", json::array());
  const json names = numbers.value("names", json::array());
  if (ops.size() != kernel.body.size() || values.size() != kernel.values.size() ||
      names.size() != values.size())
    return;
  for (size_t index = 0; index < kernel.body.size(); ++index)
    kernel.body[index].number = ops[index].get<int>();
  for (size_t index = 0; index < kernel.values.size(); ++index) {
    kernel.values[index].number = values[index].get<int>();
    kernel.values[index].name = names[index].get<std::string>();
  }
}

/// Strides of tensors whose order was edited follow the order; the layouts printed on kernels
/// follow the tensors.
void refreshLayouts(Plan &plan) {
  for (PlanTensor &tensor : plan.tensors)
    tensor.strides = stridesOf(layoutOf(tensor), tensor.extents);
  for (PlanKernel &kernel : plan.kernels) weft::refreshLayouts(plan.tensors, kernel);
}

/// Workspaces as large as the kernels, whose knobs may be edited, ask for.
void resizeWorkspaces(PlannedKernels &planned) {
  for (size_t index = 0; index < planned.kernels.size(); ++index) {
    const ChosenKernel &chosen = planned.kernels[index];
    resizeWorkspace(planned.plan, planned.plan.kernels[index],
                    workspaceBytesOf(chosen.kernel, chosen.configuration));
  }
}

LayoutTuple tupleOf(const Configuration &configuration) {
  LayoutTuple tuple = configuration.inputs;
  tuple.insert(tuple.end(), configuration.outputs.begin(), configuration.outputs.end());
  return tuple;
}

/// "hpi bji -> bjhp".
std::string printLayouts(const Kernel &kernel, const LayoutTuple &tuple) {
  const std::vector<ValueId> values = operandValues(kernel);
  std::vector<std::string> texts;
  for (size_t i = 0; i < tuple.size(); ++i) {
    if (i == kernel.inputs.size()) texts.emplace_back("->");
    Layout layout = tuple[i];
    layout.offset = 0;
    texts.push_back(layout.order.empty() ? "-"
                                         : print(layout, kernel, kernel.values[size_t(values[i])]));
  }
  return fmt::format("{}", fmt::join(texts, " "));
}

/// The legal layouts that differ in the fewest operands, three of them.
std::string nearestLegal(const Kernel &kernel, const Configuration &configuration,
                         const Device &device) {
  constexpr size_t shown = 3;
  const LayoutTuple wanted = tupleOf(configuration);
  std::set<std::pair<int, std::string>> ranked;  // operands that differ, layouts
  for (const ConfigurationSpace &space : everySpace(kernel, device))
    for (const LayoutTuple &tuple : space.tuples) {
      int differing = 0;
      for (size_t i = 0; i < tuple.size(); ++i) differing += tuple[i].order != wanted[i].order;
      ranked.emplace(differing, printLayouts(kernel, tuple));
      if (ranked.size() > shown) ranked.erase(std::prev(ranked.end()));
    }
  std::vector<std::string> texts;
  for (const auto &[differing, text] : ranked) texts.push_back(text);
  return texts.empty() ? "" : fmt::format("; legal and nearest: {}", fmt::join(texts, "; "));
}

void checkLegal(const Kernel &kernel, const Configuration &configuration, const Device &device) {
  const auto [isLegal, others] = legality(kernel, configuration, device);
  if (!isLegal && others.empty())
    throw Error::badInput("kernel '{}': no configuration of any family takes the layouts {}{}",
                          kernel.name, printLayouts(kernel, tupleOf(configuration)),
                          nearestLegal(kernel, configuration, device));
  if (!isLegal)
    throw Error::badInput(
        "kernel '{}': '{}' is not legal with these layouts{}; legal are, for example: {}",
        kernel.name, describe(kernel, configuration.knobs),
        knobsRejection(kernel, configuration, device), fmt::join(others, "; "));
}

/// The bound is selection's, over all variants: it holds for the model that selected, and no edit
/// of the plan changes it.
double lowerBoundOf(const runtime::Artifact &artifact, const std::string &prices) {
  return artifact.plan.costModel == prices ? artifact.report.value("lowerBound", 0.0) : 0;
}

/// The entry point that a kernel belongs to; in a plan with several, never "all".
std::string entryPointOf(const Plan &plan, int kernel) {
  for (const auto &[name, kernels] : plan.entryPoints)
    if (name != "all" && std::ranges::count(kernels, kernel) > 0) return name;
  throw Error::checkFailed("kernel '{}' belongs to no entry point",
                           plan.kernels[size_t(kernel)].name);  // PlanCheck.cpp lets none pass
}

/// The plan's kernels as the graph and the plan say, without prices; the plan's wiring is checked.
PlannedKernels plannedKernels(const runtime::Artifact &artifact, const SelectedGraph &graph,
                              const std::string &where) {
  PlannedKernels planned{.plan = artifact.plan, .kernels = {}};
  checkReport(artifact.report, where + "/report.json");
  refreshLayouts(planned.plan);
  const std::string file = where + "/plan.json";
  checkWiring(planned.plan, graph.wiring(), file);
  checkHeader(planned.plan, file);
  const std::vector<size_t> regions = regionsOf(planned.plan, graph.wiring().regions.size(), where);
  const json numbers = artifact.report.value("numbers", json::object());
  for (size_t index = 0; index < planned.plan.kernels.size(); ++index) {
    const PlanKernel &entry = planned.plan.kernels[index];
    ChosenKernel chosen{.kernel = graph.kernel(regions[index]),
                        .configuration = {},
                        .cost = {},
                        .proposedBy = {},
                        .graphOps = {}};
    if (entry.chunk)
      chosen.kernel =
          onChunk(chosen.kernel, entry.chunk->axis, entry.chunk->start, entry.chunk->size);
    chosen.kernel.name = entry.name;
    chosen.entryPoint = entryPointOf(planned.plan, int(index));
    setNumbers(chosen.kernel, numbers.value(entry.name, json()));
    try {
      chosen.configuration = configurationOf(planned.plan, entry, chosen.kernel);
    } catch (const Error &error) {
      throw Error(error.kind, file + ": " + error.what());
    }
    planned.kernels.push_back(std::move(chosen));
  }
  return planned;
}

}  // namespace

std::string knobsRejection(const Kernel &kernel, const Configuration &configuration,
                           const Device &device) {
  const auto rejection = configuration.knobs.family().rejection;
  const std::string reason = rejection ? rejection(kernel, configuration, device) : "";
  return reason.empty() ? "" : ": " + reason;
}

Replanned replan(const runtime::Artifact &artifact, const CostModel &costModel,
                 const std::string &where) {
  Replanned result;
  PlannedKernels &planned = result.planned;
  SelectedGraph graph(artifact.graph, where + "/graph.mlir");
  planned = plannedKernels(artifact, graph, where);
  checkUnedited(artifact.plan, planned, where + "/plan.json");
  const std::vector<size_t> regions = regionsOf(planned.plan, graph.wiring().regions.size(), where);
  for (size_t index = 0; index < planned.plan.kernels.size(); ++index) {
    PlanKernel &entry = planned.plan.kernels[index];
    ChosenKernel &chosen = planned.kernels[index];
    checkLegal(chosen.kernel, chosen.configuration, costModel.device());
    decision::priceAgain(entry, chosen, costModel);
    if (!entry.chunk)
      graph.configure(regions[index], chosen.configuration);  // a graph has the whole
  }
  planned.plan.predictedSeconds = sumOfKernels(planned.plan);
  noteCopies(planned);
  noteDeterminism(planned, costModel);
  checkOverwriting(planned, where + "/plan.json");
  resizeWorkspaces(planned);
  planned.plan.workspaceBytes = PlanMemory(planned.plan).bytes(BufferKind::temporary);
  planned.plan.costModel = pricesOf(planned.plan, costModel);
  planned.plan.lowerBoundSeconds = lowerBoundOf(artifact, planned.plan.costModel);
  result.graph = graph.print();
  return result;
}

void checkArtifact(const runtime::Artifact &artifact, const std::string &where, Use use) {
  if (use == Use::toRun) runtime::rejectForged(artifact, where + "/plan.json");
  if (runtime::isForged(artifact)) return;  // what was forged is shown by name (runtime::editLines)
  try {
    const SelectedGraph graph(artifact.graph, where + "/graph.mlir");
    const PlannedKernels planned = plannedKernels(artifact, graph, where);
    if (use == Use::toRun) checkEmitted(artifact.plan, planned, where + "/plan.json");
    checkUnedited(artifact.plan, planned, where + "/plan.json");
  } catch (const Error &error) {
    if (std::ranges::find(artifact.edited, "graph.mlir") == artifact.edited.end()) throw;
    throw Error(error.kind, fmt::format("{}/graph.mlir was edited by hand, and the plan does not "
                                        "follow from it any more: take the edit back, or compile "
                                        "the graph anew; {}",
                                        where, error.what()));
  }
}

json numbersReport(const PlannedKernels &planned) {
  json object = json::object();
  for (const ChosenKernel &chosen : planned.kernels) {
    json ops = json::array(), values = json::array(), names = json::array();
    for (const BodyOp &op : chosen.kernel.body) ops.push_back(op.number);
    for (const Value &value : chosen.kernel.values)
      values.push_back(value.number), names.push_back(value.name);
    object[chosen.kernel.name] = {{"ops", ops}, {"values", values}, {"names", names}};
  }
  return object;
}

}  // namespace weft::driver
