// Sites in the order of the graph: the ops of each are cloned from its variant. What crosses from
// one site to another is found by its name, which all variants share.
#include "passes/CombineVariants.h"

#include "ir/Weft.h"
#include "kernel/Error.h"
#include "passes/Describe.h"
#include "passes/Passes.h"

#include "mlir/IR/IRMapping.h"

#include <map>

namespace weft {
namespace {

GraphOp graphOf(mlir::ModuleOp module) {
  auto graphs = module.getOps<GraphOp>();
  if (graphs.empty()) throw Error::badInput("module has no weft.graph");
  return *graphs.begin();
}

class Combiner {
public:
  Combiner(const std::vector<mlir::ModuleOp> &variants, const select::JoinedVariants &joined)
      : variants(variants), joined(joined), result(mlir::ModuleOp(variants.front()).clone()) {
    GraphOp graph = graphOf(*result);
    const DescribedOps described = describeGraph(graph);
    for (mlir::Operation &op : graph.getBody().front()) replaced.push_back(&op);
    for (size_t tensor = 0; tensor < described.tensors.size(); ++tensor) {
      const std::string &name = described.flow.tensors[tensor].name;
      if (mlir::isa<mlir::BlockArgument>(described.tensors[tensor]))
        values[name] = described.tensors[tensor];
      nameOf[described.tensors[tensor].getAsOpaquePointer()] = name;
    }
  }

  CombinedGraph run(const std::vector<size_t> &variantOfSite) {
    GraphOp graph = graphOf(*result);
    mlir::OpBuilder builder(graph.getBody().front().getTerminator());
    CombinedGraph combined;
    std::map<size_t, Source> sources;
    for (size_t site = 0; site < variantOfSite.size(); ++site) {
      const size_t variant = variantOfSite[site];
      if (!sources.contains(variant)) sources.emplace(variant, Source(graphOf(variants[variant])));
      addSite(sources.at(variant), joined.opsOf[site][variant], builder);
      for (const int op : joined.opsOf[site][variant])
        combined.origins.emplace_back(
            variant,
            static_cast<size_t>(sources.at(variant).described.flow.ops[size_t(op)].number));
    }
    rewireRest(graph);
    combined.module = std::move(result);
    return combined;
  }

private:
  struct Source {
    explicit Source(GraphOp graph) : described(describeGraph(graph)) {
      for (size_t tensor = 0; tensor < described.tensors.size(); ++tensor)
        names[described.tensors[tensor].getAsOpaquePointer()] = described.flow.tensors[tensor].name;
    }
    DescribedOps described;
    std::map<const void *, std::string> names;
  };

  mlir::Value named(const std::string &name) const {
    const auto found = values.find(name);
    if (found == values.end())
      throw Error::checkFailed("tensor '{}' crosses no cut of the variants that are combined",
                               name);
    return found->second;
  }

  void addSite(const Source &source, const std::vector<int> &ops, mlir::OpBuilder &builder) {
    mlir::IRMapping own;
    for (const int number : ops) {
      mlir::Operation *op = source.described.ops[static_cast<size_t>(number)];
      for (const mlir::Value operand : op->getOperands())
        if (!own.contains(operand))
          own.map(operand, named(source.names.at(operand.getAsOpaquePointer())));
      mlir::Operation *clone = builder.clone(*op, own);
      for (size_t i = 0; i < op->getNumResults(); ++i)
        values[source.names.at(op->getResult(i).getAsOpaquePointer())] = clone->getResult(i);
    }
  }

  /// The terminator and the ops that only look (expect_close) read the new values; the old ops go.
  void rewireRest(GraphOp graph) {
    mlir::Block &block = graph.getBody().front();
    std::vector<mlir::Operation *> old;
    for (mlir::Operation *op : replaced) {
      if (op != block.getTerminator() && op->getNumResults() > 0) {
        old.push_back(op);
        continue;
      }
      if (op != block.getTerminator()) op->moveBefore(block.getTerminator());
      for (mlir::OpOperand &operand : op->getOpOperands())
        operand.set(named(nameOf.at(operand.get().getAsOpaquePointer())));
    }
    for (mlir::Operation *op : llvm::reverse(old)) op->erase();
  }

  const std::vector<mlir::ModuleOp> &variants;
  const select::JoinedVariants &joined;
  mlir::OwningOpRef<mlir::ModuleOp> result;
  std::vector<mlir::Operation *> replaced;     ///< the ops of the first variant
  std::map<const void *, std::string> nameOf;  ///< of its tensors
  std::map<std::string, mlir::Value> values;   ///< of the result, so far
};

}  // namespace

std::set<std::string> namesThatMayCross(mlir::Operation *graph) {
  std::map<std::string, int> written;
  for (mlir::Operation *op : numberedOps(graph))
    for (const mlir::Value value : op->getResults()) ++written[writtenName(value)];
  std::set<std::string> names;
  for (const auto &[name, count] : written)
    if (count == 1 && !name.empty()) names.insert(name);
  return names;
}

CombinedGraph combineVariants(const std::vector<mlir::ModuleOp> &variants,
                              const select::JoinedVariants &joined,
                              const std::vector<size_t> &variantOfSite) {
  return Combiner(variants, joined).run(variantOfSite);
}

}  // namespace weft
