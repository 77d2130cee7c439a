// From MLIR ops to plain data: tensors with names, ops with the axis behind each of their
// dimensions.
#include "passes/Describe.h"

#include "ir/LayerMarks.h"
#include "ir/Weft.h"
#include "kernel/CoordinateExpressions.h"
#include "kernel/Error.h"
#include "passes/Passes.h"
#include "passes/SavedTensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

namespace weft {

std::string identifier(llvm::StringRef text) {
  std::string name = text.str();
  for (char &c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  if (!name.empty() && std::isdigit(static_cast<unsigned char>(name.front())))
    name.insert(name.begin(), 'v');
  return name;
}

namespace {

/// Of an op; nothing: nothing that is returned depends on it.
using EntryPoint = std::optional<EntryPointKind>;

/// The first of two.
EntryPoint firstOf(EntryPoint a, EntryPoint b) { return !a ? b : !b ? a : std::min(a, b); }

/// "y, mean, rstd" names three results.
std::string nameInLocation(mlir::Location location, unsigned index) {
  auto named = mlir::dyn_cast<mlir::NameLoc>(location);
  if (!named) return "";
  llvm::SmallVector<llvm::StringRef> names;
  named.getName().getValue().split(names, ',');
  return index < names.size() ? identifier(names[index].trim()) : "";
}

/// Whether a value is the logarithms of an attention's sums, in or behind a kernel.
bool areLogSums(mlir::Value value) {
  while (auto kernel = value.getDefiningOp<KernelOp>())
    value = kernel.getBody().front().getTerminator()->getOperand(
        mlir::cast<mlir::OpResult>(value).getResultNumber());
  auto fold = value.getDefiningOp<OnlineSoftmaxContractOp>();
  return fold && value != fold->getResult(0);
}

/// Whether an op packs them, or is a kernel that does so alone.
bool packsLogSums(mlir::Operation &op) {
  if (auto kernel = mlir::dyn_cast<KernelOp>(op)) {
    mlir::Block &body = kernel.getBody().front();
    return llvm::hasSingleElement(body.without_terminator()) && mlir::isa<PackOp>(body.front()) &&
           areLogSums(op.getOperand(0));
  }
  return mlir::isa<PackOp>(op) && areLogSums(op.getOperand(0));
}

/// An op belongs to the first entry point that returns what depends on it. A mask of tokens belongs
/// to what it masks, so that what forward saves is masked there, and what packs the logarithms of
/// an attention's sums to the attention.
llvm::DenseMap<mlir::Operation *, EntryPoint> entriesOf(GraphOp graph) {
  const auto entryOf = [&](unsigned result) {
    return graph.getResultAttr(result, updateOfName)     ? EntryPointKind::update
           : graph.getResultAttr(result, gradientOfName) ? EntryPointKind::backward
                                                         : EntryPointKind::forward;
  };
  llvm::DenseMap<mlir::Operation *, EntryPoint> entries;
  const auto reach = [&](mlir::Value value, EntryPoint entry) {
    if (mlir::Operation *op = value.getDefiningOp()) entries[op] = firstOf(entries[op], entry);
  };
  mlir::Block &body = graph.getBody().front();
  for (auto [result, value] : llvm::enumerate(body.getTerminator()->getOperands()))
    reach(value, entryOf(static_cast<unsigned>(result)));
  for (mlir::Operation &op : llvm::reverse(body.without_terminator())) {
    const EntryPoint entry = entries[&op];
    for (mlir::Value operand : op.getOperands()) reach(operand, entry);
  }
  for (MaskOp mask : body.getOps<MaskOp>())
    if (mlir::Operation *masked = mask.getX().getDefiningOp();
        masked && isTokensMask(std::string_view(mask.getKind())))
      entries[mask] = entries[masked];
  for (mlir::Operation &op : body.without_terminator())
    if (packsLogSums(op)) entries[&op] = entries[op.getOperand(0).getDefiningOp()];
  return entries;
}

/// In the order in which they are called.
std::set<EntryPointKind> presentIn(const llvm::DenseMap<mlir::Operation *, EntryPoint> &entries) {
  std::set<EntryPointKind> present;
  for (const auto &[op, entry] : entries)
    if (entry) present.insert(*entry);
  return present;
}

class Describer {
public:
  explicit Describer(const std::vector<mlir::Operation *> &chosen) {
    for (mlir::Operation *op : chosen)
      if (op->getNumResults() > 0) described.ops.push_back(op);
  }

  void addArguments(mlir::Block &block) {
    for (mlir::BlockArgument argument : block.getArguments()) tensorOf(argument);
  }

  void findEntryPoints(GraphOp graph) {
    const auto entries = entriesOf(graph);
    const std::set<EntryPointKind> present = presentIn(entries);
    if (present.size() >= 2) numberEntryPoints(entries, present);
  }

  DescribedOps describe() {
    for (size_t index = 0; index < described.ops.size(); ++index)
      opIndex[described.ops[index]] = static_cast<int>(index);
    for (mlir::Operation *op : described.ops) describeOp(op);
    for (size_t tensor = 0; tensor < described.tensors.size(); ++tensor)
      describeUses(static_cast<int>(tensor));
    markComputedParameters();
    return std::move(described);
  }

private:
  /// Numbers the entry points that there are. What nothing returned depends on stays with the ops
  /// before it.
  void numberEntryPoints(const llvm::DenseMap<mlir::Operation *, EntryPoint> &entries,
                         const std::set<EntryPointKind> &present) {
    described.flow.entryPoints.assign(present.begin(), present.end());
    int last = 0;
    for (mlir::Operation *op : described.ops) {
      const EntryPoint entry = entries.lookup(op);
      const int number =
          entry ? static_cast<int>(std::distance(present.begin(), present.find(*entry))) : last;
      if (number < last)
        throw Error::badInput(
            "op '{}' of entry point {} stands behind ops of {}; it must stand in front of them",
            writtenName(op->getResult(0)),
            nameOf(described.flow.entryPoints[static_cast<size_t>(number)]),
            nameOf(described.flow.entryPoints[static_cast<size_t>(last)]));
      entryOf[op] = last = number;
    }
  }

  int tensorOf(mlir::Value value) {
    auto [entry, isNew] =
        tensorIndex.try_emplace(value, static_cast<int>(described.tensors.size()));
    if (!isNew) return entry->second;
    FlowTensor tensor{.name = uniqueName(value),
                      .dtype = DType::f32,
                      .axes = {},
                      .producer = -1,
                      .consumers = {},
                      .initial = initialValue(value),
                      .isParameter = isParameter(value),
                      .isUpdated = isUpdated(value),
                      .training = trainingRole(value),
                      .layer = layerOf(value),
                      .leaves = false};
    if (const std::optional<DType> dtype = toDType(value.getType())) tensor.dtype = *dtype;
    const std::vector<std::string> names = axisNames(value.getType());
    const std::vector<int64_t> sizes = extents(value.getType());
    for (size_t dimension = 0; dimension < sizes.size(); ++dimension)
      tensor.axes.push_back(Axis{.name = identifier(names[dimension]), .extent = sizes[dimension]});
    if (const auto producer = opIndex.find(value.getDefiningOp()); producer != opIndex.end())
      tensor.producer = producer->second;
    described.flow.tensors.push_back(std::move(tensor));
    described.tensors.push_back(value);
    return entry->second;
  }

  static bool isParameter(mlir::Value value) {
    auto argument = mlir::dyn_cast<mlir::BlockArgument>(value);
    auto graph = argument ? mlir::dyn_cast<GraphOp>(argument.getOwner()->getParentOp()) : GraphOp();
    return graph && graph.isParameter(argument.getArgNumber());
  }

  static std::optional<InitialValue> initialValue(mlir::Value value) {
    auto argument = mlir::dyn_cast<mlir::BlockArgument>(value);
    auto graph = argument ? mlir::dyn_cast<GraphOp>(argument.getOwner()->getParentOp()) : GraphOp();
    return graph ? graph.initialValue(argument.getArgNumber()) : std::nullopt;
  }

  /// Of an argument; those of results relateTensors() gives.
  static TrainingRole trainingRole(mlir::Value value) {
    auto argument = mlir::dyn_cast<mlir::BlockArgument>(value);
    auto graph = argument ? mlir::dyn_cast<GraphOp>(argument.getOwner()->getParentOp()) : GraphOp();
    return graph ? graph.trainingRoleOfArgument(argument.getArgNumber()) : TrainingRole::none;
  }

  bool isUpdated(mlir::Value value) {
    auto argument = mlir::dyn_cast<mlir::BlockArgument>(value);
    auto graph = argument ? mlir::dyn_cast<GraphOp>(argument.getOwner()->getParentOp()) : GraphOp();
    if (!graph) return false;
    if (updatedIn != graph) {  // a training step has a thousand arguments, and results
      updatedIn = graph;
      updatedNames.clear();
      for (unsigned result = 0; result < graph.getNumResults(); ++result)
        if (auto name = graph.getResultAttrOfType<mlir::StringAttr>(result, updateOfName))
          updatedNames.insert(name.getValue().str());
    }
    return updatedNames.contains(writtenName(value));
  }

  std::string uniqueName(mlir::Value value) {
    std::string wanted = writtenName(value);
    if (wanted.empty()) {
      if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(value))
        wanted = "arg" + std::to_string(argument.getArgNumber());
      else wanted = identifier(value.getDefiningOp()->getName().stripDialect());
    }
    std::string name = wanted;
    for (int suffix = 2; !names.insert(name).second; ++suffix)
      name = wanted + "_" + std::to_string(suffix);
    return name;
  }

  void describeOp(mlir::Operation *op) {
    FlowOp flowOp;
    flowOp.kind = opKindNamed(op->getName().stripDialect()).value();
    flowOp.number = static_cast<int>(std::distance(op->getBlock()->begin(), op->getIterator()));
    flowOp.entry = entryOf.lookup(op);
    for (mlir::Value operand : op->getOperands()) flowOp.operands.push_back(tensorOf(operand));
    for (mlir::Value result : op->getResults()) flowOp.results.push_back(tensorOf(result));
    const std::string written = writtenName(op->getResult(0));
    flowOp.label = written.empty() ? std::string(nameOf(flowOp.kind)) : written;
    if (auto kernel = mlir::dyn_cast<KernelOp>(op)) {
      flowOp.region = std::make_shared<Kernel>(toKernel({op}, kernel.getName().str()));
      flowOp.operatorClass = flowOp.region->operatorClass();
      flowOp.flop = flowOp.region->flop();
    } else {
      describeSpace(mlir::cast<WeftOp>(op), flowOp);
    }
    described.flow.ops.push_back(std::move(flowOp));
  }

  /// Axes of the op in order: independent, reduced, then one for each dimension that the op indexes
  /// without walking it.
  static void describeSpace(WeftOp op, FlowOp &flowOp) {
    flowOp.operatorClass = op.operatorClass();
    flowOp.attributes = op.kernelAttributes();
    flowOp.expression = op.expression();
    flowOp.flop = op.flop();
    flowOp.reducesTiles = mlir::isa<LocalSoftmaxOp>(op);
    for (mlir::Value operand : op->getOperands())
      flowOp.operandAxes.emplace_back(extents(operand.getType()).size(), -1);
    for (mlir::Value result : op->getResults())
      flowOp.resultAxes.emplace_back(extents(result.getType()).size(), -1);
    const IterationSpace space = op.iterationSpace();
    int axes = 0;
    const auto place = [&](const SpaceAxis &axis, std::vector<int> &list) {
      for (const Place &at : axis.places) {
        const size_t tensor = static_cast<size_t>(at.tensor);
        auto &maps = tensor < flowOp.operandAxes.size()
                         ? flowOp.operandAxes[tensor]
                         : flowOp.resultAxes[tensor - flowOp.operandAxes.size()];
        maps[at.dimension] = axes;
      }
      list.push_back(axes++);
    };
    // Sub-vectors of a walked axis (results of local_softmax, factors of global_scaling) are
    // indexed, not walked.
    const auto isWalked = [&](const SpaceAxis &axis) {
      return flowOp.operatorClass == OperatorClass::movement ||
             flowOp.operatorClass == OperatorClass::contraction ||
             llvm::any_of(axis.places, [](const Place &at) { return at.tensor == 0; });
    };
    for (const SpaceAxis &axis : space.independent)
      if (isWalked(axis)) place(axis, flowOp.independent);
    for (const SpaceAxis &axis : space.reduced) place(axis, flowOp.reduced);
    std::vector<int> indexed;
    for (const SpaceAxis &axis : space.independent)
      if (!isWalked(axis)) place(axis, indexed);
    for (auto *maps : {&flowOp.operandAxes, &flowOp.resultAxes})
      for (std::vector<int> &map : *maps)
        for (int &axis : map)
          if (axis < 0) axis = axes++;
  }

  void describeUses(int tensor) {
    FlowTensor &flowTensor = described.flow.tensors[tensor];
    for (mlir::Operation *user : described.tensors[tensor].getUsers()) {
      const auto consumer = opIndex.find(user);
      if (consumer == opIndex.end()) flowTensor.leaves = true;
      else flowTensor.consumers.push_back(consumer->second);
    }
    std::sort(flowTensor.consumers.begin(), flowTensor.consumers.end());
    flowTensor.consumers.erase(
        std::unique(flowTensor.consumers.begin(), flowTensor.consumers.end()),
        flowTensor.consumers.end());
  }

  /// What only moves weights is a weight: it is packed once, at load, unless the graph updates it.
  void markComputedParameters() {
    std::vector<FlowTensor> &tensors = described.flow.tensors;
    for (const FlowOp &op : described.flow.ops) {
      if (op.operatorClass != OperatorClass::movement || op.operands.empty() || op.region) continue;
      for (bool FlowTensor::*mark : {&FlowTensor::isParameter, &FlowTensor::isUpdated})
        if (std::all_of(op.operands.begin(), op.operands.end(),
                        [&](int operand) { return tensors[operand].*mark; }))
          for (int result : op.results) tensors[result].*mark = true;
    }
  }

  DescribedOps described;
  std::map<mlir::Operation *, int> opIndex;
  llvm::DenseMap<mlir::Operation *, int> entryOf;  ///< empty: one entry point
  llvm::DenseMap<mlir::Value, int> tensorIndex;
  std::set<std::string> names;
  GraphOp updatedIn;                   ///< whose arguments `updatedNames` are
  std::set<std::string> updatedNames;  ///< those with a next value among the results
};

}  // namespace

std::string writtenName(mlir::Value value) {
  if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(value))
    return nameInLocation(argument.getLoc(), 0);
  return nameInLocation(value.getDefiningOp()->getLoc(),
                        mlir::cast<mlir::OpResult>(value).getResultNumber());
}

std::string described(mlir::Operation *op) {
  const std::string kind = op->getName().stripDialect().str();
  const std::string name = op->getNumResults() > 0 ? writtenName(op->getResult(0)) : "";
  return name.empty() ? kind : fmt::format("{} '{}'", kind, name);
}

std::map<mlir::Operation *, std::optional<EntryPointKind>> entryPointsOf(mlir::Operation *graph) {
  const auto entries = entriesOf(mlir::cast<GraphOp>(graph));
  const bool isCut = presentIn(entries).size() >= 2;
  std::map<mlir::Operation *, std::optional<EntryPointKind>> kinds;
  for (const auto &[op, entry] : entries)
    kinds[op] = entry && !isCut ? EntryPointKind::forward : entry;
  return kinds;
}

namespace {

void relateTensors(GraphOp graph, DescribedOps &described) {
  ArgumentMarks marks(graph);
  llvm::DenseMap<mlir::Value, size_t> indexOf;
  for (size_t index = 0; index < described.tensors.size(); ++index)
    indexOf[described.tensors[index]] = index;
  for (mlir::BlockArgument argument : graph.getBody().front().getArguments())
    described.flow.tensors[indexOf.at(argument)].masterOf = marks.masterOf(argument.getArgNumber());
  const auto returned = graph.getBody().front().getTerminator()->getOperands();
  for (unsigned result = 0; result < returned.size(); ++result) {
    const auto at = indexOf.find(returned[result]);
    if (at == indexOf.end()) continue;
    FlowTensor &tensor = described.flow.tensors[at->second];
    if (std::string argument = marks.nextOf(result); !argument.empty())
      tensor.nextOf = std::move(argument);
    if (const TrainingRole role = graph.trainingRoleOfResult(result); role != TrainingRole::none)
      tensor.training = role;
  }
}

}  // namespace

ArgumentMarks::ArgumentMarks(GraphOp graph) : graph(graph) {
  const std::vector<std::string> names = argumentNames(graph);
  for (mlir::BlockArgument argument : graph.getBody().front().getArguments())
    nameOf.emplace(writtenName(argument), names[argument.getArgNumber()]);
}

std::string ArgumentMarks::masterOf(unsigned argument) {
  return named(graph.getArgAttr(argument, masterOfName));
}

std::string ArgumentMarks::nextOf(unsigned result) {
  return named(graph.getResultAttr(result, updateOfName));
}

std::string ArgumentMarks::named(mlir::Attribute mark) const {
  const auto written = mlir::dyn_cast_or_null<mlir::StringAttr>(mark);
  const auto found = written ? nameOf.find(written.getValue().str()) : nameOf.end();
  return found == nameOf.end() ? "" : found->second;
}

std::vector<std::string> argumentNames(mlir::Operation *graph) {
  Describer describer({});
  describer.addArguments(graph->getRegion(0).front());
  std::vector<std::string> names;
  for (const FlowTensor &tensor : describer.describe().flow.tensors) names.push_back(tensor.name);
  return names;
}

DescribedOps describeOps(const std::vector<mlir::Operation *> &ops) {
  return Describer(ops).describe();
}

DescribedOps describeGraph(mlir::Operation *graph) {
  Describer describer(numberedOps(graph));
  describer.addArguments(graph->getRegion(0).front());
  auto whole = mlir::dyn_cast<GraphOp>(graph);
  if (whole) describer.findEntryPoints(whole);
  DescribedOps described = describer.describe();
  if (whole) relateTensors(whole, described);
  return described;
}

}  // namespace weft
