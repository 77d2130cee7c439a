// The loop family: element-wise, normalization, reduction and movement kernels in any layout. Puts
// the pieces together: axes, loop nest, graph, addresses, passes.
#include "codegen/families/loop/Loop.h"
#include "codegen/EntryName.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "codegen/families/loop/LoopPasses.h"
#include "kernel/Append.h"
#include "kernel/UnusedTokens.h"

#include <algorithm>

namespace weft::codegen {
namespace {

/// Strides of the tensor with most elements, by kernel axis: the order in which axes are walked.
std::map<AxisId, int64_t> leadingStrides(const IterationAxes &axes,
                                         const Configuration &configuration) {
  const Kernel &kernel = axes.kernel;
  std::map<AxisId, int64_t> strides;
  int64_t most = 0;
  const auto consider = [&](ValueId value, const Layout &layout) {
    const bool isGathered = std::ranges::any_of(kernel.body, [&](const BodyOp &op) {
      return op.kind == OpKind::gatherPages && op.operands.front() == value;
    });
    if (isGathered || kernel.elements(value) <= most) return;  // pages are not walked
    most = kernel.elements(value);
    strides.clear();
    std::vector<int64_t> extents;
    for (AxisId axis : kernel.values[value].axes) extents.push_back(kernel.axes[axis].extent);
    const std::vector<int64_t> own = stridesOf(layout, extents);
    for (size_t d = 0; d < own.size(); ++d) strides[kernel.values[value].axes[d]] = own[d];
  };
  for (size_t i = 0; i < kernel.outputs.size(); ++i)
    consider(kernel.outputs[i], configuration.outputs[i]);
  for (size_t i = 0; i < kernel.inputs.size(); ++i)
    consider(kernel.inputs[i], configuration.inputs[i]);
  if (const BodyOp *const append = appendOf(kernel)) {
    // Tokens lie as the cache's positions do, and sequences as pages.
    const ValueId result = append->results.front();
    for (size_t d = 0; d < walkedAxes(kernel, result).size(); ++d)
      strides[walkedAxes(kernel, result)[d]] = strides[kernel.values[result].axes[d]];
  }
  if (axes.splitAxis >= 0 && strides.count(axes.splitAxis)) {
    strides[axes.tileAxis] = strides[axes.splitAxis];
    strides[axes.subVectorAxis] = strides[axes.splitAxis] * kernel.axes[axes.tileAxis].extent;
  }
  return strides;
}

/// Tokens are rows, or summed along: a thread has one of them, or a vector of neighbours. Every
/// mapping leaves out those behind the last one, as prices have it (passes/configure/FilledCost.h).
void findUnusedRows(const IterationAxes &axes, LoopSpace &space, Names &names, LoopGraph &graph) {
  const std::optional<UnusedTokens> unused = unusedTokens(axes.kernel);
  if (!unused) return;
  const auto row = std::ranges::find(space.outer, unused->axis),
             step = std::ranges::find(space.reduced, unused->axis);
  if (row == space.outer.end() && step == space.reduced.end()) return;
  const bool isRow = row != space.outer.end();
  const auto position = size_t(row - space.outer.begin());
  graph.unused = {
      .input =
          int(std::ranges::find(axes.kernel.inputs, unused->offsets) - axes.kernel.inputs.begin()),
      .element = unused->element,
      .areUnread = areUnusedUnread(axes.kernel),
      .mayLeave = isRow && space.mayLeave(),
      .reduced = isRow ? -1 : int(step - space.reduced.begin()),
      .name = names.reserve("tokens"),
      .token = isRow ? space.range(position, position) : space.coordinate(unused->axis).text};
}

}  // namespace

Program lowerLoop(const Kernel &original, const Configuration &configuration,
                  const LoopKnobs &knobs) {
  if (isScatter(original)) return lowerScatter(original, configuration, knobs);
  Names names;
  const IterationAxes axes = iterationAxes(original, knobs);
  const Kernel &kernel = axes.kernel;
  LoopSpace space(kernel, axes.knobs, axes.outer, axes.reduced, leadingStrides(axes, configuration),
                  names);
  Program program{.entry = names.reserve(entryName(original))};
  std::vector<Code> tensorNames;
  for (ValueId value : kernel.inputs)
    tensorNames.push_back(names.reserve(kernel.values[value].name));
  for (ValueId value : kernel.outputs)
    tensorNames.push_back(names.reserve(kernel.values[value].name));
  LoopGraph graph = buildLoopGraph(axes, space, names);
  findUnusedRows(axes, space, names, graph);
  LoopMemory memory(space, names, graph.valid);
  program.constants = space.constants();
  program.constants.insert(program.constants.end(), graph.constants.begin(), graph.constants.end());
  std::vector<Operand> inputs, outputs;
  for (size_t i = 0; i < kernel.inputs.size(); ++i) {
    const Value &value = kernel.values[kernel.inputs[i]];
    inputs.push_back(
        memory.operand(tensorNames[i], value, configuration.inputs[i], program.constants));
    program.parameters.push_back({Parameter::Kind::input, static_cast<int>(i), tensorNames[i],
                                  std::string(cudaNameOf(value.dtype))});
  }
  for (size_t i = 0; i < kernel.outputs.size(); ++i) {
    const Value &value = kernel.values[kernel.outputs[i]];
    const Code &name = tensorNames[kernel.inputs.size() + i];
    outputs.push_back(memory.operand(name, value, configuration.outputs[i], program.constants));
    program.parameters.push_back(
        {Parameter::Kind::output, static_cast<int>(i), name, std::string(cudaNameOf(value.dtype))});
  }
  program.parameters.insert(program.parameters.end(), graph.parameters.begin(),
                            graph.parameters.end());
  LoopPasses passes(graph, space, memory, names, inputs, outputs);
  program.body = passes.run();
  program.globals = passes.globals();
  if (memory.hasParts()) graph.headers.insert("weft/vector_part.cuh");
  program.headers.assign(graph.headers.begin(), graph.headers.end());
  if (space.isCluster()) program.clusterBlocks = space.words.blocksPerColumn;
  const bool shared = space.threadsPerRow > 1 || space.isColumns();
  program.launchBounds = shared
                             ? code("{} * {}", space.words.rowsPerBlock, space.words.threadsPerRow)
                             : space.words.threads;
  program.launch = space.launch();
  const Block checks = space.launchChecks(program.launchBounds);
  program.body.insert(program.body.begin(), checks.begin(), checks.end());
  if (passes.fillsRegisters()) program.launchBounds += ", 1";
  program.mapping = describe(original, knobs);
  pruneUnused(program);
  return program;
}

}  // namespace weft::codegen
