// From graphs to the plain data of the selector: numbered ops, canonical kernels, fusion
// candidates, selection problems.
#include "ir/Weft.h"
#include "kernel/Error.h"
#include "passes/Describe.h"
#include "passes/Passes.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace weft {
namespace {

std::vector<int> allOps(const DescribedOps &described) {
  std::vector<int> all(described.ops.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::vector<int> tensorsOf(const DescribedOps &described, mlir::ValueRange values) {
  std::vector<int> indices;
  for (mlir::Value value : values) {
    const auto at = std::find(described.tensors.begin(), described.tensors.end(), value);
    indices.push_back(static_cast<int>(at - described.tensors.begin()));
  }
  return indices;
}

/// A kernel region keeps the order of its arguments and of its yield, because layouts are
/// positional.
Kernel regionKernel(KernelOp region, const std::string &name) {
  const DescribedOps described = describeGraph(region);
  const KernelSignature signature{
      .inputs = tensorsOf(described, region.getBlock()->getArguments()),
      .outputs = tensorsOf(described, region.getBlock()->getTerminator()->getOperands())};
  return bindKernel(described.flow, allOps(described), name, &signature).kernel;
}

/// Tensors in the order of the description; arguments and results keep the caller's order unless
/// selection frees them.
std::vector<select::Tensor> problemTensors(const DescribedOps &described, mlir::Block &block) {
  std::vector<select::Tensor> tensors;
  for (size_t index = 0; index < described.tensors.size(); ++index) {
    const FlowTensor &flow = described.flow.tensors[index];
    const mlir::Value value = described.tensors[index];
    select::Tensor tensor;
    tensor.name = flow.name;
    tensor.dtype = flow.dtype;
    tensor.axes = flow.axes;
    tensor.isArgument = mlir::isa<mlir::BlockArgument>(value);
    tensor.isParameter = flow.isParameter;
    tensor.initial = flow.initial;
    tensor.masterOf = flow.masterOf;
    tensor.nextOf = flow.nextOf;
    tensor.training = flow.training;
    tensor.layer = flow.layer;
    tensor.isResult = llvm::is_contained(block.getTerminator()->getOperands(), value);
    if ((tensor.isArgument && !tensor.isParameter) || tensor.isResult)
      tensor.pinned = rowMajor(flow.axes.size());
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

/// "prob = softmax score".
std::string printable(const Dataflow &flow, const FlowOp &op) {
  std::vector<std::string> results, operands;
  for (int tensor : op.results) results.push_back(flow.tensors[tensor].name);
  for (int tensor : op.operands) operands.push_back(flow.tensors[tensor].name);
  return fmt::format("{} = {} {}", fmt::join(results, ", "), nameOf(op.kind),
                     fmt::join(operands, ", "));
}

/// Why the op, which has kernels only together with what it reads, is in no fused candidate:
/// of the attempts that end with it those that name more than the op, if any do.
std::vector<std::string> unfusedReasons(const FlowOp &op,
                                        const std::vector<FusionRecord> &records) {
  std::vector<std::string> named, others;
  for (const FusionRecord &record : records) {
    if (record.ops.empty() || record.ops.back() != op.number) continue;
    if (record.accepted) return {};
    std::vector<std::string> &reasons = record.rejectedOp == op.number ? others : named;
    const std::string reason = describe(record);
    if (std::ranges::find(reasons, reason) == reasons.end()) reasons.push_back(reason);
  }
  return named.empty() ? others : named;
}

select::Proposal proposalOf(const Dataflow &flow, const std::vector<int> &ops,
                            const FusionPatterns &patterns) {
  using By = select::Proposal::By;
  if (ops.size() > 1) return {.by = By::fusion, .patterns = patterns};
  const FlowOp &op = flow.ops[ops.front()];
  const bool packed =
      op.operatorClass == OperatorClass::movement && flow.tensors[op.results.front()].isParameter;
  return {.by = packed ? By::packing : By::op};
}

}  // namespace

std::vector<mlir::Operation *> numberedOps(mlir::Operation *graph) {
  std::vector<mlir::Operation *> ops;
  for (mlir::Operation &op : graph->getRegion(0).front().without_terminator()) ops.push_back(&op);
  return ops;
}

Kernel toKernel(const std::vector<mlir::Operation *> &ops, const std::string &name) {
  if (ops.size() == 1)
    if (auto region = mlir::dyn_cast<KernelOp>(ops.front()))
      return regionKernel(region, name.empty() ? region.getName().str() : name);
  const DescribedOps described = describeOps(ops);
  return bindKernel(described.flow, allOps(described), name).kernel;
}

FusionResult proposeFusions(mlir::Operation *graph, const FuseOptions &options) {
  return proposeFusions(describeGraph(graph).flow, options);
}

select::Problem toProblem(mlir::Operation *graph, const std::vector<Rewrite> &rewrites,
                          const FusionResult &fusions) {
  const DescribedOps described = describeGraph(graph);
  const Dataflow &flow = described.flow;
  select::Problem problem;
  problem.name = variantName(rewrites);
  problem.rewrites = rewrites;
  problem.tensors = problemTensors(described, graph->getRegion(0).front());
  std::map<int, int> indexOfNumber;
  for (size_t index = 0; index < flow.ops.size(); ++index) {
    indexOfNumber[flow.ops[index].number] = static_cast<int>(index);
    problem.ops.push_back(printable(flow, flow.ops[index]));
    problem.opInputs.push_back(flow.ops[index].operands);
    problem.opOutputs.push_back(flow.ops[index].results);
    problem.opEntries.push_back(flow.ops[index].entry);
  }
  for (size_t op = 0; op < flow.ops.size(); ++op)
    if (flow.ops[op].kind == OpKind::onlineSoftmaxContract)
      problem.unfusedReasons[static_cast<int>(op)] = unfusedReasons(flow.ops[op], fusions.records);
  problem.entryPoints = flow.entryPoints;
  for (const FusionCandidate &fusion : fusions.candidates) {
    select::Candidate candidate;
    for (int number : fusion.ops) candidate.ops.push_back(indexOfNumber.at(number));
    BoundKernel bound = bindKernel(flow, candidate.ops);
    candidate.name = bound.kernel.name;
    candidate.inputs = std::move(bound.inputs);
    candidate.outputs = std::move(bound.outputs);
    candidate.kernel = std::move(bound.kernel);
    candidate.proposal = proposalOf(flow, candidate.ops, fusion.patterns);
    problem.candidates.push_back(std::move(candidate));
  }
  return problem;
}

}  // namespace weft
