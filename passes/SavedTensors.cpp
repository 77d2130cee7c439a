// Kept or recomputed tensors. Recomputation clones the op in front of its first backward reader;
// the operands of the clone are then read by the backward part instead.
#include "passes/SavedTensors.h"

#include "ir/LayerMarks.h"
#include "kernel/Nearest.h"
#include "passes/Describe.h"

#include "llvm/ADT/SetVector.h"

namespace weft {
namespace {

class Saver {
public:
  Saver(GraphOp graph, llvm::ArrayRef<mlir::Operation *> forward)
      : graph(graph), ordered(forward), forward(forward.begin(), forward.end()) {}

  mlir::LogicalResult recompute(const std::vector<std::string> &names) {
    std::map<int, mlir::Value> chosen;  // by position of the op
    for (const std::string &name : names) {
      const auto at = llvm::find_if(
          ordered, [&](mlir::Operation *op) { return writtenName(op->getResult(0)) == name; });
      if (at == ordered.end()) return unknown(name);
      mlir::Operation *op = *at;
      if (!isElementwise(op) && !isNorm(op))
        return op->emitOpError() << "recompute '" << name
                                 << "': only element-wise ops and norms are computed again, to "
                                 << "save the result of others costs less";
      chosen[static_cast<int>(at - ordered.begin())] = op->getResult(0);
    }
    // From last to first: a clone may read what another name recomputes.
    for (const auto &[position, value] : llvm::reverse(chosen))
      if (mlir::failed(cloneFor(value))) return mlir::failure();
    return mlir::success();
  }

  /// The chain that computes a result again from what is stored anyway; nothing if there is none,
  /// or if it cannot pay.
  std::optional<Recomputation> recomputationOf(mlir::Operation *op) const {
    if (!isElementwise(op) || !isSaved(op->getResult(0)) || isStoredForward(op->getResult(0)))
      return std::nullopt;
    llvm::SetVector<mlir::Operation *> chain;
    llvm::SetVector<mlir::Value> leaves;
    if (!collect(op, chain, leaves)) return std::nullopt;
    Recomputation found{.chain = {chain.begin(), chain.end()},
                        .bytesLess = 2 * bytesOf(op->getResult(0))};
    llvm::sort(found.chain,
               [](mlir::Operation *a, mlir::Operation *b) { return a->isBeforeInBlock(b); });
    for (mlir::Value leaf : leaves)
      if (!isReadWith(leaf, op->getResult(0))) found.bytesLess -= bytesOf(leaf);
    return found.bytesLess > 0 ? std::optional(found) : std::nullopt;
  }

  /// By name what may be computed again for its memory: the chains that may pay, and each norm.
  std::vector<std::vector<std::string>> names(llvm::ArrayRef<Recomputation> chains) const {
    std::vector<std::vector<std::string>> all;
    for (const Recomputation &one : chains) {
      std::vector<std::string> chain;
      for (mlir::Operation *op : one.chain) chain.push_back(writtenName(op->getResult(0)));
      all.push_back(std::move(chain));
    }
    for (mlir::Operation *op : ordered)
      if (isNorm(op) && isSaved(op->getResult(0))) all.push_back({writtenName(op->getResult(0))});
    std::erase_if(all, [](const auto &chain) { return llvm::is_contained(chain, ""); });
    return all;
  }

  std::vector<std::string> namesThatSaveMemory() const {
    std::vector<std::string> names;
    for (mlir::Operation *op : ordered) {
      const mlir::Value result = op->getResult(0);
      const bool isKept = isSaved(result) && llvm::none_of(result.getUsers(), [](auto *user) {
                            return mlir::isa<ReturnOp>(user);
                          });
      const bool isFree = llvm::all_of(op->getOperands(), [&](mlir::Value operand) {
        return !operand.getDefiningOp() || isSaved(operand);
      });
      if (isKept && isFree && (isElementwise(op) || isNorm(op)) && !writtenName(result).empty())
        names.push_back(writtenName(result));
    }
    return names;
  }

  void computeAgain(const Recomputation &recomputation) {
    for (mlir::Operation *op : llvm::reverse(recomputation.chain))
      if (isSaved(op->getResult(0))) (void)cloneFor(op->getResult(0));
    listSaved();
  }

  /// relu_dx of a gradient that dropout masked may read the dropped activation instead of the
  /// activation: they differ in sign only where the gradient is zero. The forward pass stores that
  /// one anyway, for the GEMM that follows.
  void readDroppedActivations() {
    graph.walk([&](ReluDxOp gradient) {
      auto masked = gradient.getDy().getDefiningOp<DropoutOp>();
      if (!masked || forward.contains(masked)) return;
      for (mlir::Operation *user : gradient.getFrom().getUsers())
        if (auto dropped = mlir::dyn_cast<DropoutOp>(user);
            dropped && forward.contains(dropped) && dropped.getStream() == masked.getStream() &&
            dropped.getP() == masked.getP()) {
          gradient.getFromMutable().assign(dropped.getResult());
          return;
        }
    });
  }

  void listSaved() {
    llvm::SmallVector<mlir::Attribute> names;
    mlir::Builder builder(graph);
    for (auto [number, op] : llvm::enumerate(ordered))
      for (mlir::Value result : op->getResults())
        if (isSaved(result)) {
          const std::string name = writtenName(result);
          names.push_back(
              builder.getStringAttr(name.empty() ? "%" + std::to_string(number) : name));
        }
    graph->setAttr(savedName, builder.getArrayAttr(names));
  }

private:
  bool isBackward(mlir::Operation *op) const {
    return !forward.contains(op) && !mlir::isa<ReturnOp>(op);
  }
  bool isSaved(mlir::Value value) const {
    return llvm::any_of(value.getUsers(), [&](auto *user) { return isBackward(user); });
  }

  static bool isElementwise(mlir::Operation *op) {
    return op->getNumResults() == 1 &&
           mlir::cast<WeftOp>(op).operatorClass() == OperatorClass::elementwise &&
           op->getNumOperands() > 0;
  }
  static bool isNorm(mlir::Operation *op) { return mlir::isa<LayerNormOp, RmsNormOp>(op); }
  static int64_t bytesOf(mlir::Value value) {
    const auto type = mlir::cast<mlir::RankedTensorType>(value.getType());
    return type.getNumElements() * static_cast<int64_t>((type.getElementTypeBitWidth() + 7) / 8);
  }

  /// Whether the forward pass stores a value for itself: no kernel holds its producer together with
  /// all of its readers there.
  bool isStoredForward(mlir::Value value) const {
    mlir::Operation *producer = value.getDefiningOp();
    const auto standsAlone = [](mlir::Operation *op) {
      const OperatorClass kind = mlir::cast<WeftOp>(op).operatorClass();
      return kind == OperatorClass::contraction || kind == OperatorClass::movement;
    };
    return !producer || standsAlone(producer) ||
           llvm::any_of(value.getUsers(), [&](mlir::Operation *user) {
             return mlir::isa<ReturnOp>(user) || (forward.contains(user) && standsAlone(user));
           });
  }

  /// Adds an op and those element-wise ones whose results nothing stores; false if one needs
  /// another kind of op again.
  bool collect(mlir::Operation *op, llvm::SetVector<mlir::Operation *> &chain,
               llvm::SetVector<mlir::Value> &leaves) const {
    chain.insert(op);
    for (mlir::Value operand : op->getOperands()) {
      mlir::Operation *producer = operand.getDefiningOp();
      if (isStoredForward(operand) || isSaved(operand)) leaves.insert(operand);
      else if (!isElementwise(producer) || !collect(producer, chain, leaves)) return false;
    }
    return true;
  }

  /// Whether a backward reader of `value` reads `leaf` as well.
  bool isReadWith(mlir::Value leaf, mlir::Value value) const {
    return llvm::any_of(value.getUsers(), [&](mlir::Operation *user) {
      return isBackward(user) && llvm::is_contained(user->getOperands(), leaf);
    });
  }

  mlir::LogicalResult unknown(const std::string &name) {
    std::vector<std::string> known;
    for (mlir::Operation *op : ordered)
      if (isSaved(op->getResult(0))) known.push_back(writtenName(op->getResult(0)));
    return mlir::emitError(graph.getLoc())
           << "recompute '" << name << "': no such tensor" << nearestAndKnown(name, known);
  }

  /// Statistics of a norm are saved from the first time.
  static mlir::Operation *cloned(mlir::OpBuilder &builder, mlir::Operation *op) {
    auto norm = mlir::dyn_cast<LayerNormOp>(op);
    if (!norm) return builder.clone(*op);
    return LayerNormOp::create(builder, op->getLoc(), norm.getX(), norm.getGamma(), norm.getBeta(),
                               int64_t(norm.getAxis()), norm.getEpsilon().convertToDouble(), false);
  }

  mlir::LogicalResult cloneFor(mlir::Value value) {
    mlir::Operation *first = nullptr;
    for (mlir::Operation *user : value.getUsers())
      if (isBackward(user) && (!first || user->isBeforeInBlock(first))) first = user;
    if (!first)
      return value.getDefiningOp()->emitOpError()
             << "recompute '" << writtenName(value) << "': the backward pass does not read it";
    BuilderOfLayer builder(first, layerOf(value));
    mlir::Operation *clone = cloned(builder, value.getDefiningOp());
    if (const std::string name = writtenName(value); !name.empty())
      clone->setLoc(mlir::NameLoc::get(builder.getStringAttr(name + "_again"), graph.getLoc()));
    value.replaceUsesWithIf(clone->getResult(0), [&](mlir::OpOperand &use) {
      return isBackward(use.getOwner()) && use.getOwner() != clone;
    });
    return mlir::success();
  }

  GraphOp graph;
  llvm::ArrayRef<mlir::Operation *> ordered;
  llvm::DenseSet<mlir::Operation *> forward;
};

}  // namespace

mlir::LogicalResult saveTensors(GraphOp graph, llvm::ArrayRef<mlir::Operation *> forward,
                                const DifferentiateOptions &options) {
  Saver saver(graph, forward);
  saver.readDroppedActivations();
  if (mlir::failed(saver.recompute(options.recompute))) return mlir::failure();
  saver.listSaved();
  return mlir::success();
}

std::string Recomputation::name() const {
  mlir::Operation *op = chain.back();
  const std::string name = writtenName(op->getResult(0));
  const auto number = std::distance(op->getBlock()->begin(), op->getIterator());
  return name.empty() ? op->getName().stripDialect().str() + std::to_string(number) : name;
}

mlir::Operation *lastForwardOp(GraphOp graph) {
  mlir::Operation *last = nullptr;
  mlir::Operation *terminator = graph.getBody().front().getTerminator();
  for (auto [result, value] : llvm::enumerate(terminator->getOperands())) {
    mlir::Operation *op = value.getDefiningOp();
    const auto position = static_cast<unsigned>(result);
    if (!op || graph.getResultAttr(position, gradientOfName) ||
        graph.getResultAttr(position, updateOfName))
      continue;
    if (!last || last->isBeforeInBlock(op)) last = op;
  }
  return last;
}

namespace {

std::vector<mlir::Operation *> forwardOps(GraphOp graph) {
  std::vector<mlir::Operation *> forward;
  const mlir::Operation *last = lastForwardOp(graph);
  for (mlir::Operation &op : graph.getBody().front().without_terminator()) {
    if (!last) break;
    forward.push_back(&op);
    if (&op == last) break;
  }
  return forward;
}

}  // namespace

void listSavedTensors(GraphOp graph) {
  const std::vector<mlir::Operation *> forward = forwardOps(graph);
  Saver(graph, forward).listSaved();
}

std::vector<Recomputation> findRecomputations(GraphOp graph) {
  std::vector<Recomputation> found;
  if (!graph->hasAttr(savedName) || !graph.getBody().front().getOps<KernelOp>().empty())
    return found;
  const std::vector<mlir::Operation *> forward = forwardOps(graph);
  const Saver saver(graph, forward);
  for (mlir::Operation *op : forward)
    if (std::optional<Recomputation> one = saver.recomputationOf(op))
      found.push_back(std::move(*one));
  llvm::stable_sort(found, [](const Recomputation &a, const Recomputation &b) {
    return a.bytesLess > b.bytesLess;
  });
  return found;
}

std::vector<std::vector<std::string>> recomputableNames(GraphOp graph) {
  const std::vector<Recomputation> chains = findRecomputations(graph);
  const std::vector<mlir::Operation *> forward = forwardOps(graph);
  return graph->hasAttr(savedName) ? Saver(graph, forward).names(chains)
                                   : std::vector<std::vector<std::string>>();
}

std::vector<std::string> namesThatSaveMemory(GraphOp graph) {
  const std::vector<mlir::Operation *> forward = forwardOps(graph);
  return Saver(graph, forward).namesThatSaveMemory();
}

mlir::LogicalResult recompute(GraphOp graph, const std::vector<std::string> &names) {
  const std::vector<mlir::Operation *> forward = forwardOps(graph);
  Saver saver(graph, forward);
  if (mlir::failed(saver.recompute(names))) return mlir::failure();
  saver.listSaved();
  return mlir::success();
}

void recompute(GraphOp graph, const Recomputation &recomputation) {
  const std::vector<mlir::Operation *> forward = forwardOps(graph);
  Saver(graph, forward).computeAgain(recomputation);
}

}  // namespace weft
