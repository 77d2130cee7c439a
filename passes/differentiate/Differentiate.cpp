// Reverse-mode differentiation: forward and backward in one graph. Ops are visited from last to
// first; when an op is reached, every reader of its results has contributed to their gradients.
// What an op's derivative is, the op says itself (ir/Derivation.h); here are activity,
// accumulation, names, and what the backward ops read of the forward ones.
//
// Invariant: forward ops stay as they are and in front, apart from statistics that norms now
// return; backward ops follow.
#include "ir/LayerMarks.h"
#include "kernel/Nearest.h"
#include "kernel/TrainingNames.h"
#include "passes/Describe.h"
#include "passes/Rewrites.h"
#include "passes/SavedTensors.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

namespace weft {
namespace {

bool isFloat(mlir::Value value) {
  return mlir::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(value.getType()));
}
bool isScalar(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType()).getRank() == 0;
}

class Differentiator {
public:
  Differentiator(GraphOp graph, const DifferentiateOptions &options)
      : graph(graph),
        body(graph.getBody().front()),
        options(options),
        builder(body.getTerminator(), 0) {}

  mlir::LogicalResult run(GradientOrigins *origins) {
    if (mlir::failed(checkGraph()) || mlir::failed(chooseArguments())) return mlir::failure();
    findActiveValues();
    keepStatistics();
    for (mlir::Operation &op : body.without_terminator()) forward.push_back(&op);
    if (mlir::failed(seedResults())) return mlir::failure();
    for (mlir::Operation *op : llvm::reverse(forward)) {
      mlir::Operation *before = body.getTerminator()->getPrevNode();
      if (mlir::failed(differentiateOp(op))) return mlir::failure();
      for (mlir::Operation *added = body.getTerminator()->getPrevNode(); origins && added != before;
           added = added->getPrevNode())
        origins->emplace(added, op);
    }
    returnGradients();
    nameOps();
    return saveTensors(graph, forward, options);
  }

private:
  // --- what is differentiated ---

  mlir::LogicalResult checkGraph() {
    if (graph->hasAttr(savedName))
      return mlir::emitError(graph.getLoc()) << "has a backward pass already";
    for (KernelOp kernel : body.getOps<KernelOp>())
      return kernel.emitOpError()
             << "cannot be differentiated: its ops are fused already; differentiate before fuse";
    return mlir::success();
  }

  mlir::LogicalResult chooseArguments() {
    std::vector<std::string> known;
    for (mlir::BlockArgument argument : body.getArguments()) {
      known.push_back(writtenName(argument));
      if (options.withRespectTo.empty() && isFloat(argument)) wanted.insert(argument);
    }
    for (const std::string &name : options.withRespectTo) {
      const auto at = std::find(known.begin(), known.end(), name);
      if (at == known.end())
        return mlir::emitError(graph.getLoc())
               << "gradient of '" << name << "': no such argument" << nearestAndKnown(name, known);
      mlir::BlockArgument argument = body.getArgument(static_cast<unsigned>(at - known.begin()));
      if (!isFloat(argument))
        return mlir::emitError(argument.getLoc())
               << "gradient of '" << name << "': its elements are "
               << mlir::getElementTypeOrSelf(argument.getType())
               << "; only tensors of floats have gradients" << floatArguments();
      wanted.insert(argument);
    }
    return mlir::success();
  }

  /// " (--gradients-of q,k,v)"; nothing where no argument has a gradient.
  std::string floatArguments() {
    std::string names;
    for (mlir::BlockArgument argument : body.getArguments())
      if (isFloat(argument)) names += (names.empty() ? "" : ",") + writtenName(argument);
    return names.empty() ? "" : " (--gradients-of " + names + ")";
  }

  /// What depends on a wanted argument through floats.
  void findActiveValues() {
    active.insert(wanted.begin(), wanted.end());
    for (mlir::Operation &op : body.without_terminator())
      if (llvm::any_of(op.getOperands(),
                       [&](mlir::Value operand) { return active.contains(operand); }))
        for (mlir::Value result : op.getResults())
          if (isFloat(result)) active.insert(result);
  }

  void keepStatistics() {
    for (mlir::Operation &op : llvm::make_early_inc_range(body.without_terminator())) {
      if (!llvm::any_of(op.getResults(),
                        [&](mlir::Value result) { return active.contains(result); }))
        continue;
      const int64_t layer = layerOf(&op);
      mlir::Operation *kept = mlir::cast<WeftOp>(op).keepForBackward();
      setLayer(kept, layer);
      active.insert(kept->result_begin(), kept->result_end());
    }
  }

  // --- seeds: an argument for each result, 1 for a loss ---

  mlir::LogicalResult seedResults() {
    const llvm::SmallVector<mlir::Value> results(body.getTerminator()->getOperands());
    const auto isMarked = [&](size_t result) {
      return graph.getResultAttr(static_cast<unsigned>(result), lossName) != nullptr;
    };
    bool hasLoss = false;
    size_t floats = 0;
    for (size_t result = 0; result < results.size(); ++result) {
      hasLoss |= isMarked(result);
      floats += active.contains(results[result]);
    }
    if (floats == 0)
      return mlir::emitError(graph.getLoc())
             << "no result depends on an argument that has a gradient";
    for (size_t result = 0; result < results.size(); ++result) {
      if (!active.contains(results[result])) {
        if (isMarked(result))
          return mlir::emitError(results[result].getLoc())
                 << "the loss does not depend on an argument that has a gradient";
        continue;
      }
      if (isMarked(result) || (!hasLoss && floats == 1 && isScalar(results[result]))) {
        if (mlir::failed(seedLoss(results[result]))) return mlir::failure();
        if (!hasRole(TrainingRole::loss) && toDType(results[result].getType()) == DType::f32)
          graph.setTrainingRoleOfResult(unsigned(result), TrainingRole::loss);
      } else if (!hasLoss) {
        addUpstream(results[result]);
      }
    }
    return mlir::success();
  }

  /// Whether an argument or a result has the role already.
  bool hasRole(TrainingRole role) {
    for (unsigned argument = 0; argument < graph.getNumArguments(); ++argument)
      if (graph.trainingRoleOfArgument(argument) == role) return true;
    for (unsigned result = 0; result < graph.getNumResults(); ++result)
      if (graph.trainingRoleOfResult(result) == role) return true;
    return false;
  }

  mlir::LogicalResult seedLoss(mlir::Value loss) {
    const auto type = mlir::cast<mlir::RankedTensorType>(loss.getType());
    if (type.getRank() == 0 && options.scalesLoss) {
      addUpstream(loss);
      if (!hasRole(TrainingRole::lossGradient) && toDType(loss.getType()) == DType::f32)
        graph.setTrainingRoleOfArgument(graph.getNumArguments() - 1, TrainingRole::lossGradient);
      return mlir::success();
    }
    if (type.getRank() != 0)
      return mlir::emitError(loss.getLoc())
             << "the loss is " << type << ", not a scalar; sum or average it with weft.reduce";
    const auto one =
        mlir::DenseElementsAttr::get(type, builder.getFloatAttr(type.getElementType(), 1.0));
    contribute(loss, ConstantOp::create(builder, graph.getLoc(), type, one), nullptr);
    return mlir::success();
  }

  /// The name, or the first of NAME_2, NAME_3, .. that no argument has: a value may be returned
  /// twice, and callers tell arguments by their names.
  std::string nameForArgument(const std::string &name) {
    llvm::StringSet<> taken;
    for (mlir::BlockArgument argument : body.getArguments()) taken.insert(writtenName(argument));
    std::string unique = name;
    for (int number = 2; taken.contains(unique); ++number)
      unique = name + "_" + std::to_string(number);
    return unique;
  }

  void addUpstream(mlir::Value result) {
    const std::string written = writtenName(result), of = written.empty() ? "result" : written;
    const auto attributes =
        builder.getDictionaryAttr(builder.getNamedAttr(gradientOfName, builder.getStringAttr(of)));
    const std::string name = nameForArgument(gradientName(of));
    const unsigned position = body.getNumArguments();
    (void)graph.insertArgument(position, result.getType(), attributes,
                               mlir::NameLoc::get(builder.getStringAttr(name), graph.getLoc()));
    contribute(result, body.getArgument(position), nullptr);
  }

  // --- the walk ---

  mlir::LogicalResult differentiateOp(mlir::Operation *op) {
    builder.setLayer(layerOf(op));
    llvm::SmallVector<mlir::Value> upstream;
    llvm::SmallVector<bool> isWanted;
    for (mlir::Value result : op->getResults()) upstream.push_back(gradientOf(result));
    for (mlir::Value operand : op->getOperands()) isWanted.push_back(active.contains(operand));
    if (!llvm::any_of(upstream, [](mlir::Value gradient) { return gradient != nullptr; }) ||
        !llvm::is_contained(isWanted, true))
      return mlir::success();
    Derivation derivation(op, builder, upstream, isWanted);
    if (mlir::failed(mlir::cast<WeftOp>(op).differentiate(derivation))) return mlir::failure();
    for (auto [operand, gradient] : llvm::zip_equal(op->getOperands(), derivation.given()))
      if (gradient) contribute(operand, gradient, op);
    return mlir::success();
  }

  struct Contribution {
    mlir::Value gradient;
    mlir::Operation *reader;  ///< the forward op that it comes through; null for seeds
  };

  void contribute(mlir::Value value, mlir::Value gradient, mlir::Operation *reader) {
    contributions[value].push_back({gradient, reader});
  }

  /// The sum of all contributions, the last reader's first; null without any. Asked once for each
  /// value.
  mlir::Value gradientOf(mlir::Value value) {
    const auto found = contributions.find(value);
    if (found == contributions.end()) return {};
    const std::vector<Contribution> &parts = found->second;
    const std::string name = gradientNameOf(value);
    if (parts.size() == 1) {
      suggestName(parts.front().gradient, name);
      return parts.front().gradient;
    }
    for (const Contribution &part : parts)
      if (part.reader && !name.empty())
        if (const std::string reader = writtenName(part.reader->getResult(0)); !reader.empty())
          suggestName(part.gradient, name + "_" + reader);
    mlir::Value sum = parts.front().gradient;
    for (const Contribution &part : llvm::drop_begin(parts)) {
      sum = AddOp::create(builder, graph.getLoc(), sum, part.gradient);
      suggestName(sum, &part == &parts.back() || name.empty() ? name : name + "_sum");
    }
    return sum;
  }

  // --- names ---

  /// Empty for what has no name itself.
  static std::string gradientNameOf(mlir::Value value) {
    const std::string name = writtenName(value);
    return name.empty() ? "" : gradientName(name);
  }

  /// The first suggestion holds: a gradient that is passed on unchanged keeps the name it got where
  /// it was made.
  void suggestName(mlir::Value value, const std::string &name) {
    if (!name.empty() && value.getDefiningOp()) nameOf.try_emplace(value, name);
  }

  void nameOps() {
    const mlir::Block::iterator begin =
        forward.empty() ? body.begin() : std::next(forward.back()->getIterator());
    for (mlir::Operation &op : llvm::make_range(begin, body.getTerminator()->getIterator())) {
      std::vector<std::string> all;
      for (mlir::Value result : op.getResults()) {
        const auto found = nameOf.find(result);
        all.push_back(found == nameOf.end() ? "" : found->second);
      }
      if (all.empty() || llvm::all_of(all, [](const std::string &name) { return name.empty(); }))
        continue;
      for (size_t n = 0; n < all.size(); ++n)
        if (all[n].empty()) all[n] = op.getName().stripDialect().str() + "_" + std::to_string(n);
      op.setLoc(mlir::NameLoc::get(builder.getStringAttr(llvm::join(all, ", ")), op.getLoc()));
    }
  }

  // --- results ---

  /// One gradient for each wanted argument, in their order. No two results are one value, and none
  /// is an argument.
  void returnGradients() {
    mlir::Operation *terminator = body.getTerminator();
    llvm::SmallVector<mlir::Value> results(terminator->getOperands());
    for (mlir::BlockArgument argument : body.getArguments()) {
      if (!wanted.contains(argument)) continue;
      builder.setLayer(layerOf(mlir::Value(argument)));
      mlir::Value gradient = gradientOf(argument);
      const std::string name = writtenName(argument);
      if (!gradient) {
        mlir::emitWarning(argument.getLoc())
            << "no result depends on '" << name << "'; it has no gradient";
        continue;
      }
      if (mlir::isa<mlir::BlockArgument>(gradient) || llvm::is_contained(results, gradient)) {
        gradient = IdentityOp::create(builder, graph.getLoc(), gradient);
        suggestName(gradient, gradientNameOf(argument));
      }
      const auto attributes = builder.getDictionaryAttr(
          builder.getNamedAttr(gradientOfName, builder.getStringAttr(name)));
      (void)graph.insertResult(static_cast<unsigned>(results.size()), gradient.getType(),
                               attributes);
      results.push_back(gradient);
    }
    terminator->setOperands(results);
  }

  GraphOp graph;
  mlir::Block &body;
  const DifferentiateOptions &options;
  BuilderOfLayer builder;
  llvm::SetVector<mlir::Value> wanted;
  llvm::DenseSet<mlir::Value> active;
  std::vector<mlir::Operation *> forward;
  llvm::DenseMap<mlir::Value, std::vector<Contribution>> contributions;
  llvm::DenseMap<mlir::Value, std::string> nameOf;  ///< of results of backward ops
};

}  // namespace

mlir::LogicalResult differentiate(GraphOp graph, const DifferentiateOptions &options,
                                  GradientOrigins *origins) {
  return Differentiator(graph, options).run(origins);
}

}  // namespace weft
