// A plan written into the graph: every step becomes one weft.kernel with `layouts` and `config`, in
// the order of the plan. A transpose is a kernel whose body is weft.identity: operand and result
// types are equal, their layouts differ.
#include "ir/Weft.h"
#include "kernel/Error.h"
#include "passes/ConfigurationAttributes.h"
#include "passes/Describe.h"
#include "passes/Passes.h"

#include "mlir/IR/IRMapping.h"

#include <map>
#include <set>

namespace weft {
namespace {

class Materializer {
public:
  Materializer(GraphOp graph, const select::Problem &problem)
      : graph(graph),
        problem(problem),
        described(describeGraph(graph)),
        builder(graph.getBody().front().getTerminator()),
        current(described.tensors) {
    if (described.tensors.size() != problem.tensors.size() ||
        described.ops.size() != problem.ops.size())
      throw Error::checkFailed(
          "graph '{}' has {} ops and {} tensors, the problem '{}' was made for {} and {}",
          graph.getName().str(), described.ops.size(), described.tensors.size(), problem.name,
          problem.ops.size(), problem.tensors.size());
  }

  void run(const select::SelectionResult &plan) {
    for (const select::Step &step : plan.steps)
      step.candidate < 0 ? addTranspose(step) : addKernel(step);
    rewireRest();
  }

private:
  std::string uniqueName(const std::string &wanted) {
    std::string name = wanted;
    for (int suffix = 2; !names.insert(name).second; ++suffix)
      name = wanted + "_" + std::to_string(suffix);
    return name;
  }

  KernelOp createKernel(const std::string &name, const std::vector<int> &inputs,
                        const std::vector<int> &outputs) {
    std::vector<mlir::Value> operands;
    std::vector<mlir::Type> types;
    std::vector<std::string> resultNames;
    for (int tensor : inputs) operands.push_back(current[tensor]);
    for (int tensor : outputs) {
      types.push_back(described.tensors[tensor].getType());
      resultNames.push_back(problem.tensors[tensor].name);
    }
    const auto location =
        mlir::NameLoc::get(builder.getStringAttr(fmt::format("{}", fmt::join(resultNames, ", "))));
    auto kernel = KernelOp::create(builder, location, uniqueName(name), operands, types);
    for (size_t i = 0; i < inputs.size(); ++i)
      kernel.getBlock()->getArgument(i).setLoc(
          mlir::NameLoc::get(builder.getStringAttr(problem.tensors[inputs[i]].name)));
    return kernel;
  }

  /// Fills the body by the kernel's own numbering, so that an input read under two index maps is
  /// two arguments.
  void fillBody(KernelOp op, const select::Candidate &candidate) {
    const Kernel &kernel = candidate.kernel;
    std::vector<mlir::Value> values(kernel.values.size());
    for (size_t i = 0; i < kernel.inputs.size(); ++i)
      values[kernel.inputs[i]] = op.getBlock()->getArgument(i);
    mlir::OpBuilder inside = mlir::OpBuilder::atBlockEnd(op.getBlock());
    std::map<int, mlir::Operation *>
        byNumber;  // the body's order may be another than the graph's: BindKernel's bodyOrder
    for (const int op : candidate.ops) byNumber[described.flow.ops[op].number] = described.ops[op];
    for (size_t i = 0; i < kernel.body.size(); ++i) {
      mlir::Operation *clone = inside.clone(*byNumber.at(kernel.body[i].number));
      for (size_t operand = 0; operand < kernel.body[i].operands.size(); ++operand)
        clone->setOperand(operand, values[kernel.body[i].operands[operand]]);
      for (size_t result = 0; result < kernel.body[i].results.size(); ++result)
        values[kernel.body[i].results[result]] = clone->getResult(result);
    }
    std::vector<mlir::Value> yielded;
    for (int output : kernel.outputs) yielded.push_back(values[output]);
    finishBody(op, yielded);
  }

  /// The builder of a kernel may or may not have put an empty terminator.
  static void finishBody(KernelOp op, const std::vector<mlir::Value> &yielded) {
    mlir::Block *block = op.getBlock();
    if (!block->empty() && mlir::isa<YieldOp>(block->back())) block->back().erase();
    mlir::OpBuilder inside = mlir::OpBuilder::atBlockEnd(block);
    YieldOp::create(inside, op.getLoc(), yielded);
  }

  void addKernel(const select::Step &step) {
    const select::Candidate &candidate = problem.candidates[step.candidate];
    mlir::Operation *first = described.ops[candidate.ops.front()];
    mlir::Operation *kernel = nullptr;
    if (mlir::isa<KernelOp>(first)) {
      kernel = builder.clone(*first);
      for (size_t i = 0; i < candidate.inputs.size(); ++i)
        kernel->setOperand(i, current[candidate.inputs[i]]);
      names.insert(candidate.name);
    } else {
      KernelOp fresh = createKernel(candidate.name, candidate.inputs, candidate.outputs);
      fillBody(fresh, candidate);
      kernel = fresh;
    }
    setConfiguration(kernel, candidate.kernel, step.configuration);
    for (size_t i = 0; i < candidate.outputs.size(); ++i)
      current[candidate.outputs[i]] = kernel->getResult(i);
  }

  void addTranspose(const select::Step &step) {
    const select::Tensor &tensor = problem.tensors[step.tensor];
    KernelOp kernel = createKernel("transpose_" + tensor.name, {step.tensor}, {step.tensor});
    mlir::OpBuilder inside = mlir::OpBuilder::atBlockEnd(kernel.getBlock());
    auto copy = IdentityOp::create(inside, kernel.getLoc(), kernel.getBlock()->getArgument(0));
    finishBody(kernel, {copy.getResult()});
    kernel->setAttr(transposeName, builder.getUnitAttr());
    setConfiguration(kernel, toKernel({kernel}, kernel.getName().str()), step.configuration);
    current[step.tensor] = kernel->getResult(0);
  }

  /// The terminator and the ops that only look (expect_close) read the new values; the old ops go.
  void rewireRest() {
    mlir::Block &block = graph.getBody().front();
    mlir::IRMapping values;
    for (size_t tensor = 0; tensor < current.size(); ++tensor)
      values.map(described.tensors[tensor], current[tensor]);
    std::vector<mlir::Operation *> readers{block.getTerminator()};
    for (mlir::Operation &op : block.without_terminator())
      if (op.getNumResults() == 0) readers.push_back(&op);
    for (mlir::Operation *op : readers) {
      if (op != block.getTerminator()) op->moveBefore(block.getTerminator());
      for (mlir::OpOperand &operand : op->getOpOperands())
        operand.set(values.lookupOrDefault(operand.get()));
    }
    for (mlir::Operation *op : llvm::reverse(described.ops)) {
      if (!op->use_empty())
        throw Error::checkFailed("plan of '{}' leaves op '{}' without a kernel", problem.name,
                                 op->getName().getStringRef().str());
      op->erase();
    }
  }

  GraphOp graph;
  const select::Problem &problem;
  DescribedOps described;
  mlir::OpBuilder builder;
  std::vector<mlir::Value>
      current;  ///< per tensor: its value in the layout that the plan last gave it
  std::set<std::string> names;
};

}  // namespace

mlir::OwningOpRef<mlir::ModuleOp> materialize(mlir::ModuleOp module, const select::Problem &problem,
                                              const select::SelectionResult &plan) {
  mlir::OwningOpRef<mlir::ModuleOp> result(module.clone());
  const auto graphs = result->getOps<GraphOp>();
  if (graphs.empty())
    throw Error::badInput("module has no weft.graph to write the plan '{}' into", problem.name);
  Materializer(*graphs.begin(), problem).run(plan);
  return result;
}

}  // namespace weft
