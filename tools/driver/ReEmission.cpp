// From an artifact back to planned kernels; see ReEmission.h.
#include "tools/driver/ReEmission.h"

#include "ir/Weft.h"
#include "kernel/AmpereTile.h"
#include "kernel/ContractionRegion.h"
#include "kernel/Error.h"
#include "kernel/Nesting.h"
#include "kernel/HopperProduct.h"
#include "passes/ConfigurationAttributes.h"
#include "passes/Passes.h"
#include "passes/configure/Family.h"
#include "passes/configure/Gaps.h"
#include "passes/configure/Packing.h"
#include "runtime/PlanMemory.h"
#include "tools/driver/Compilation.h"
#include "tools/driver/Diagnostics.h"
#include "tools/driver/PlanConfiguration.h"
#include "tools/driver/PlanConsistency.h"
#include "tools/driver/PlanParts.h"

#include "mlir/Parser/Parser.h"

#include "llvm/ADT/DenseSet.h"

#include <set>

namespace weft::driver {
namespace {

using nlohmann::json;

/// A selected graph: its kernel regions in order, as ops and as plain data.
class SelectedGraph {
public:
  SelectedGraph(const std::string &text, const std::string &where)
      : context(mlir::MLIRContext::Threading::DISABLED), diagnostics(context) {
    context.loadDialect<WeftDialect>();
    checkMlirNesting(text, where);
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context, where);
    if (!module) throw diagnostics.error(ErrorKind::badInput, where + " is not a graph");
    for (GraphOp graph : module->getOps<GraphOp>())
      for (KernelOp region : graph.getBody().front().getOps<KernelOp>())
        if (!packsParameters(region, graph)) regions.push_back(region);
  }

  size_t size() const { return regions.size(); }
  Kernel kernel(size_t index) { return toKernel({regions[index].getOperation()}, regions[index].getName().str()); }
  void configure(size_t index, const Configuration &configuration) {
    setConfiguration(regions[index].getOperation(), kernel(index), configuration);
  }
  std::string print() { return Compilation::print(*module); }

private:
  /// Regions that only move parameters happen at load: the plan has no kernel for them (PlanBuilder.cpp, isPacking).
  bool packsParameters(KernelOp region, GraphOp graph) {
    const bool isView = std::holds_alternative<ViewKnobs>(weft::configurationOf(region.getOperation()).knobs);
    const bool packs = isView && isPackedAtLoad(toKernel({region.getOperation()}, "")) &&
                       llvm::all_of(region->getOperands(), [&](mlir::Value value) {
                         const auto argument = mlir::dyn_cast<mlir::BlockArgument>(value);
                         return argument ? graph.isParameter(argument.getArgNumber()) : packed.contains(value);
                       });
    if (packs) packed.insert(region->result_begin(), region->result_end());
    return packs;
  }

  llvm::DenseSet<mlir::Value> packed;
  mlir::MLIRContext context;
  CapturedDiagnostics diagnostics;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<KernelOp> regions;
};

void setNumbers(Kernel &kernel, const json &numbers) {
  if (!numbers.is_object()) return;
  const json ops = numbers.value("ops", json::array()), values = numbers.value("values", json::array());
  const json names = numbers.value("names", json::array());
  if (ops.size() != kernel.body.size() || values.size() != kernel.values.size() || names.size() != values.size()) return;
  for (size_t index = 0; index < kernel.body.size(); ++index) kernel.body[index].number = ops[index].get<int>();
  for (size_t index = 0; index < kernel.values.size(); ++index) {
    kernel.values[index].number = values[index].get<int>();
    kernel.values[index].name = names[index].get<std::string>();
  }
}

/// Strides of tensors whose order was edited follow the order; the layouts printed on kernels follow the tensors.
void refreshLayouts(runtime::Plan &plan) {
  for (runtime::PlanTensor &tensor : plan.tensors) tensor.strides = stridesOf(layoutOf(tensor), tensor.extents);
  const auto print = [&](const std::vector<int> &tensors) {
    std::vector<std::string> layouts;
    for (const int tensor : tensors) layouts.push_back(printLayout(plan.tensors.at(size_t(tensor))));
    return layouts;
  };
  for (runtime::PlanKernel &kernel : plan.kernels) {
    kernel.inputLayouts = print(kernel.inputs);
    kernel.outputLayouts = print(kernel.outputs);
  }
}

/// A kernel whose knobs were edited to another family leaves its library's workspace.
void dropUnusedWorkspaces(runtime::Plan &plan) {
  for (runtime::PlanKernel &kernel : plan.kernels)
    if (kernel.workspaceBuffer >= 0 && kernel.family != familyOf(LibraryKnobs{})) {
      std::erase_if(plan.placements, [&](const runtime::PlanPlacement &one) { return one.buffer == kernel.workspaceBuffer; });
      kernel.workspaceBuffer = -1;
    }
}

/// The graph's kernel of every kernel of the plan: parts name theirs, the others take those that are left, in order.
std::vector<size_t> regionsOf(const runtime::Plan &plan, size_t inGraph, const std::string &where) {
  std::set<size_t> named;
  for (const runtime::PlanKernel &kernel : plan.kernels)
    if (kernel.part && kernel.part->region >= 0 && size_t(kernel.part->region) < inGraph) named.insert(size_t(kernel.part->region));
    else if (kernel.part)
      throw Error::badInput("{}: kernel '{}' is part of kernel {}, and graph.mlir holds {}", where, kernel.name, kernel.part->region, inGraph);
  std::vector<size_t> regions;
  size_t next = 0;
  for (const runtime::PlanKernel &kernel : plan.kernels) {
    while (!kernel.part && named.contains(next)) ++next;
    regions.push_back(kernel.part ? size_t(kernel.part->region) : next++);
  }
  while (named.contains(next)) ++next;
  if (next != inGraph)
    throw Error::badInput("{}: graph.mlir holds {} kernels, plan.json {}", where, inGraph, plan.kernels.size());
  return regions;
}

LayoutTuple tupleOf(const Configuration &configuration) {
  LayoutTuple tuple = configuration.inputs;
  tuple.insert(tuple.end(), configuration.outputs.begin(), configuration.outputs.end());
  return tuple;
}

/// "hpi bji -> bjhp".
std::string printLayouts(const Kernel &kernel, const LayoutTuple &tuple) {
  const std::vector<int> values = operandValues(kernel);
  std::vector<std::string> texts;
  for (size_t i = 0; i < tuple.size(); ++i) {
    if (i == kernel.inputs.size()) texts.emplace_back("->");
    Layout layout = tuple[i];
    layout.offset = 0;
    texts.push_back(layout.order.empty() ? "-" : print(layout, kernel, kernel.values[size_t(values[i])]));
  }
  return fmt::format("{}", fmt::join(texts, " "));
}

/// The legal layouts that differ in the fewest operands, three of them.
std::string nearestLegal(const Kernel &kernel, const Configuration &configuration, const Device &device) {
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

/// ": why", of the families that know; empty where the knobs are none of those that the family offers.
std::string knobsRefusal(const Kernel &kernel, const Configuration &configuration, const Device &device) {
  std::string reason;
  if (const auto *hopper = std::get_if<HopperContractionKnobs>(&configuration.knobs)) reason = hopperRefusal(kernel, configuration, *hopper, device.sharedMemoryPerBlock);
  if (const auto *ampere = std::get_if<AmpereContractionKnobs>(&configuration.knobs)) {
    reason = ampereKnobsRefusal(*ampere, device.sharedMemoryPerBlock, sizeOf(productTypes(kernel).a));
    const auto region = contractionRegion(kernel).region;
    if (reason.empty() && region) reason = ampereSoftmaxRefusal(*ampere, *region);
    if (reason.empty() && region) reason = ampereRegistersRefusal(*ampere, epilogueRegisters(kernel, *region));
  }
  return reason.empty() ? "" : ": " + reason;
}

void checkLegal(const Kernel &kernel, const Configuration &configuration, const Device &device) {
  const auto [isLegal, others] = legality(kernel, configuration, device);
  if (!isLegal && others.empty())
    throw Error::badInput("kernel '{}': no configuration of any family takes the layouts {}{}", kernel.name,
                          printLayouts(kernel, tupleOf(configuration)), nearestLegal(kernel, configuration, device));
  if (!isLegal)
    throw Error::badInput("kernel '{}': '{}' is not legal with these layouts{}; legal are, for example: {}", kernel.name,
                          describe(kernel, configuration.knobs), knobsRefusal(kernel, configuration, device), fmt::join(others, "; "));
}

void price(runtime::PlanKernel &entry, ChosenKernel &chosen, const CostModel &costModel) {
  chosen.cost = costWithGaps(costModel, chosen.kernel, chosen.configuration);
  if (std::holds_alternative<ViewKnobs>(chosen.configuration.knobs)) chosen.cost.bytesNecessary = 0;  // nothing runs
  entry.configuration = describe(chosen.kernel, chosen.configuration.knobs);
  entry.family = familyOf(chosen.configuration.knobs);
  entry.familyVersion = familyVersion(entry.family);
  entry.seconds = chosen.cost.seconds;
  entry.measured = chosen.cost.measured;
  entry.edited = false;
  entry.bytesMoved = chosen.cost.bytesMoved;
  entry.bytesNecessary = chosen.cost.bytesNecessary;
  entry.flop = chosen.cost.flop;
  entry.mue = chosen.cost.seconds > 0 ? memoryUsageEfficiency(chosen.cost, costModel.device()) : 0;
  entry.bound = nameOf(boundOf(chosen.cost, chosen.kernel, costModel.device()));
}

/// The bound is selection's, over all variants: it holds for the model that selected, and no edit of the plan changes it.
double lowerBoundOf(const runtime::Artifact &artifact, const std::string &prices) {
  return artifact.plan.costModel == prices ? artifact.report.value("lowerBound", 0.0) : 0;
}

}  // namespace

Replanned replan(const runtime::Artifact &artifact, const CostModel &costModel, const std::string &where) {
  Replanned result;
  PlannedKernels &planned = result.planned;
  planned.plan = artifact.plan;
  refreshLayouts(planned.plan);
  SelectedGraph graph(artifact.graph, where + "/graph.mlir");
  const std::vector<size_t> regions = regionsOf(planned.plan, graph.size(), where);
  const json numbers = artifact.report.value("numbers", json::object());
  planned.plan.predictedSeconds = 0;
  for (size_t index = 0; index < planned.plan.kernels.size(); ++index) {
    runtime::PlanKernel &entry = planned.plan.kernels[index];
    ChosenKernel chosen{.kernel = graph.kernel(regions[index]), .configuration = {}, .cost = {}, .proposedBy = {},
                        .graphOps = {}};
    if (entry.part) chosen.kernel = onPart(chosen.kernel, entry.part->axis, entry.part->start, entry.part->size);
    chosen.kernel.name = entry.name;
    setNumbers(chosen.kernel, numbers.value(entry.name, json()));
    if (chosen.kernel.inputs.size() != entry.inputs.size() || chosen.kernel.outputs.size() != entry.outputs.size())
      throw Error::badInput("{}: kernel '{}' has other operands in graph.mlir than in plan.json", where, entry.name);
    checkOperands(planned.plan, entry, chosen.kernel, where + "/plan.json");
    chosen.configuration = configurationOf(planned.plan, entry, chosen.kernel);
    checkLegal(chosen.kernel, chosen.configuration, costModel.device());
    price(entry, chosen, costModel);
    if (!entry.part) graph.configure(regions[index], chosen.configuration);  // a graph has the whole
    planned.plan.predictedSeconds += entry.seconds;
    planned.kernels.push_back(std::move(chosen));
  }
  noteCopies(planned);
  checkOverwriting(planned, where + "/plan.json");
  checkHeader(planned.plan, where + "/plan.json");
  dropUnusedWorkspaces(planned.plan);
  planned.plan.workspaceBytes = runtime::PlanMemory(planned.plan).bytes(runtime::BufferKind::temporary);
  planned.plan.costModel = pricesOf(planned.plan, costModel);
  planned.plan.lowerBoundSeconds = lowerBoundOf(artifact, planned.plan.costModel);
  result.graph = graph.print();
  return result;
}

json numbersReport(const PlannedKernels &planned) {
  json object = json::object();
  for (const ChosenKernel &chosen : planned.kernels) {
    json ops = json::array(), values = json::array(), names = json::array();
    for (const BodyOp &op : chosen.kernel.body) ops.push_back(op.number);
    for (const Value &value : chosen.kernel.values) values.push_back(value.number), names.push_back(value.name);
    object[chosen.kernel.name] = {{"ops", ops}, {"values", values}, {"names", names}};
  }
  return object;
}

}  // namespace weft::driver
