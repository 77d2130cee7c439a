// The ops of the joint problem, in its order, are cloned from their variants, those of the forward
// pass first. What is the same in all variants is found by its name, other tensors by their site.
#include "passes/CombineVariants.h"

#include "ir/Weft.h"
#include "kernel/Error.h"
#include "passes/Describe.h"
#include "passes/Passes.h"
#include "passes/SavedTensors.h"

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
    const std::vector<int> siteOf = joined.siteOfOps();
    for (const bool isForward : {true, false})
      for (size_t op = 0; op < joined.origins.size(); ++op) {
        const int site = siteOf[op];
        auto [variant, number] = joined.origins[op];
        if (site >= 0) {
          const size_t chosen = variantOfSite[size_t(site)];
          const auto &alternatives = joined.alternativeOf[size_t(site)];
          if (alternatives[variant] != alternatives[chosen]) continue;
        }
        if (!sources.contains(variant)) sources.emplace(variant, graphOf(variants[variant]));
        const Source &source = sources.at(variant);
        if (source.isForward[size_t(number)] != isForward) continue;
        addOp(source, number, site, builder);
        combined.origins.emplace_back(variant,
                                      size_t(source.described.flow.ops[size_t(number)].number));
      }
    rewireRest(graph);
    listSavedTensors(graph);
    combined.module = std::move(result);
    return combined;
  }

private:
  struct Source {
    explicit Source(GraphOp graph) : described(describeGraph(graph)) {
      for (size_t tensor = 0; tensor < described.tensors.size(); ++tensor)
        names[described.tensors[tensor].getAsOpaquePointer()] = described.flow.tensors[tensor].name;
      mlir::Operation *last = graph->hasAttr(savedName) ? lastForwardOp(graph) : nullptr;
      for (mlir::Operation *op : described.ops)
        isForward.push_back(!last || op == last || op->isBeforeInBlock(last));
    }
    DescribedOps described;
    std::map<const void *, std::string> names;
    std::vector<bool> isForward;  ///< by op
  };

  mlir::Value named(const std::string &name) const {
    const auto found = values.find(name);
    if (found == values.end())
      throw Error::checkFailed("tensor '{}' is not the same in all variants that are combined",
                               name);
    return found->second;
  }

  void addOp(const Source &source, int number, int site, mlir::OpBuilder &builder) {
    mlir::Operation *op = source.described.ops[size_t(number)];
    mlir::IRMapping operands;
    const auto nameIn = [&](mlir::Value value) -> const std::string & {
      return source.names.at(value.getAsOpaquePointer());
    };
    for (const mlir::Value operand : op->getOperands()) {
      const auto own = ofSites.find({site, nameIn(operand)});
      operands.map(operand, own != ofSites.end() ? own->second : named(nameIn(operand)));
    }
    mlir::Operation *clone = builder.clone(*op, operands);
    for (size_t i = 0; i < op->getNumResults(); ++i) {
      const std::string &name = nameIn(op->getResult(unsigned(i)));
      const mlir::Value value = clone->getResult(unsigned(i));
      if (joined.shared.contains(name)) values[name] = value;
      else ofSites[{site, name}] = value, values.try_emplace(name, value);
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
  std::vector<mlir::Operation *> replaced;                     ///< the ops of the first variant
  std::map<const void *, std::string> nameOf;                  ///< of its tensors
  std::map<std::string, mlir::Value> values;                   ///< of the result, so far
  std::map<std::pair<int, std::string>, mlir::Value> ofSites;  ///< that are not the same in all
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
