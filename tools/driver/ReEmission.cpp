// From an artifact back to planned kernels; see ReEmission.h.
#include "tools/driver/ReEmission.h"

#include "kernel/Error.h"
#include "passes/decide/EditedPlan.h"
#include "plan/PlanChunks.h"
#include "plan/PlanConfiguration.h"
#include "runtime/artifact/Artifact.h"
#include "tools/driver/PlanConsistency.h"
#include "tools/driver/PlanWiring.h"
#include "tools/driver/ReportShape.h"
#include "tools/driver/SelectedGraph.h"

#include <algorithm>

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

/// The bound is selection's, over all variants: it holds for the prices by which it selected, and
/// no edit of the plan changes it. Plans from before do not say which prices these were.
double lowerBoundOf(const runtime::Artifact &artifact, const CostModel &costModel) {
  return artifact.plan.prices == costModel.identity() ? artifact.report.value("lowerBound", 0.0)
                                                      : 0;
}

/// The entry point that a kernel belongs to.
EntryPointKind entryPointOf(const Plan &plan, int kernel) {
  for (const auto &[kind, kernels] : plan.entryPoints)
    if (std::ranges::count(kernels, kernel) > 0) return kind;
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
                        .proposal = {},
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

Replanned replan(const runtime::Artifact &artifact, const CostModel &costModel,
                 const std::string &where) {
  Replanned result;
  PlannedKernels &planned = result.planned;
  SelectedGraph graph(artifact.graph, where + "/graph.mlir");
  planned = plannedKernels(artifact, graph, where);
  checkUnedited(artifact.plan, planned, where + "/plan.json");
  const std::vector<size_t> regions = regionsOf(planned.plan, graph.wiring().regions.size(), where);
  if (Expected<void> priced = decision::priceAgain(planned, costModel, where + "/plan.json");
      !priced)
    throw std::move(priced.error());
  for (size_t index = 0; index < planned.kernels.size(); ++index)
    if (!planned.plan.kernels[index].chunk)  // a graph has the whole
      graph.configure(regions[index], planned.kernels[index].configuration);
  planned.plan.lowerBoundSeconds = lowerBoundOf(artifact, costModel);
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
