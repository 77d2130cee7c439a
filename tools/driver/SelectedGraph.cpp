// From the text of a selected graph to its wiring; see SelectedGraph.h.
#include "tools/driver/SelectedGraph.h"

#include "ir/LayerMarks.h"
#include "kernel/Error.h"
#include "kernel/Nesting.h"
#include "passes/ConfigurationAttributes.h"
#include "passes/Describe.h"
#include "passes/Passes.h"
#include "passes/configure/Packing.h"
#include "tools/driver/Compilation.h"

#include "mlir/Parser/Parser.h"

namespace weft::driver {
SelectedGraph::SelectedGraph(const std::string &text, const std::string &where)
    : context(mlir::MLIRContext::Threading::DISABLED), diagnostics(context) {
  context.loadDialect<WeftDialect>();
  checkMlirNesting(text, where);
  module = mlir::parseSourceString<mlir::ModuleOp>(text, &context, where);
  if (!module) throw diagnostics.error(ErrorKind::badInput, where + " is not a graph");
  for (GraphOp graph : module->getOps<GraphOp>()) addGraph(graph);
}

void SelectedGraph::addGraph(GraphOp graph) {
  mlir::Block &block = graph.getBody().front();
  const std::vector<std::string> names = argumentNames(graph);
  ArgumentMarks marks(graph);
  for (mlir::BlockArgument argument : block.getArguments()) {
    GraphValue &value = wires.values[size_t(valueOf(argument))];
    value.name = names[argument.getArgNumber()];
    value.origin = graph.isParameter(argument.getArgNumber()) ? GraphValue::Origin::parameter
                                                              : GraphValue::Origin::argument;
    value.initial = graph.initialValue(argument.getArgNumber());
    value.masterOf = marks.masterOf(argument.getArgNumber());
    value.training = graph.trainingRoleOfArgument(argument.getArgNumber());
    value.layer = layerOf(mlir::Value(argument));
  }
  const auto entryPoints = entryPointsOf(graph);
  for (KernelOp op : block.getOps<KernelOp>()) {
    GraphRegion region{.kernel = toKernel({op.getOperation()}, op.getName().str()),
                       .operands = {},
                       .results = {},
                       .entryPoint = entryPoints.at(op)};
    for (mlir::Value operand : op->getOperands()) region.operands.push_back(valueOf(operand));
    region.isTranspose = isTranspose(op);
    if (region.isTranspose) values[op->getResult(0)] = region.operands.front();
    const bool isPacking = packsParameters(op, region.kernel);
    if (isPacking && !region.isTranspose)
      if (const std::optional<int> same = packedAlike(region)) {
        values[op->getResult(0)] = *same;
        continue;
      }
    for (mlir::Value result : op->getResults()) region.results.push_back(valueOf(result));
    if (isPacking && !region.isTranspose) {
      GraphValue &packed = wires.values[size_t(region.results.front())];
      packed.origin = GraphValue::Origin::packed;
      packed.packing = int(wires.packings.size());
    }
    (isPacking ? wires.packings : wires.regions).push_back(std::move(region));
    if (!isPacking) regions.push_back(op);
  }
  for (const auto &[result, value] : llvm::enumerate(block.getTerminator()->getOperands())) {
    wires.returned.push_back(valueOf(value));
    GraphValue &returned = wires.values[size_t(wires.returned.back())];
    if (std::string argument = marks.nextOf(unsigned(result)); !argument.empty())
      returned.nextOf = std::move(argument);
    if (const TrainingRole role = graph.trainingRoleOfResult(unsigned(result));
        role != TrainingRole::none)
      returned.training = role;
  }
}

std::optional<int> SelectedGraph::packedAlike(const GraphRegion &region) const {
  const std::string text = canonicalText(region.kernel);
  const auto found = std::ranges::find_if(wires.packings, [&](const GraphRegion &other) {
    return !other.isTranspose && other.operands == region.operands &&
           canonicalText(other.kernel) == text;
  });
  return found == wires.packings.end() ? std::nullopt : std::optional(found->results.front());
}

int SelectedGraph::valueOf(mlir::Value value) {
  const auto [found, isNew] = values.try_emplace(value, int(wires.values.size()));
  if (!isNew) return found->second;
  GraphValue described{.name = writtenName(value),
                       .dtype = toDType(value.getType()).value_or(DType::f32),
                       .axes = {},
                       .extents = extents(value.getType())};
  for (const std::string &axis : axisNames(value.getType()))
    described.axes.push_back(identifier(axis));
  wires.values.push_back(std::move(described));
  return found->second;
}

bool SelectedGraph::packsParameters(KernelOp region, const Kernel &kernel) const {
  const bool isView = weft::configurationOf(region.getOperation()).knobs.isView();
  return isView && isPackedAtLoad(kernel) &&
         llvm::all_of(region->getOperands(), [&](mlir::Value operand) {
           const GraphValue::Origin origin = wires.values[size_t(values.lookup(operand))].origin;
           return origin == GraphValue::Origin::parameter || origin == GraphValue::Origin::packed;
         });
}

void SelectedGraph::configure(size_t region, const Configuration &configuration) {
  setConfiguration(regions[region].getOperation(), kernel(region), configuration);
}

std::string SelectedGraph::print() { return Compilation::print(*module); }

}  // namespace weft::driver
