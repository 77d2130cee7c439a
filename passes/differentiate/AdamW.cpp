// One step of AdamW (Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019,
// Algorithm 2) for every parameter whose gradient a graph returns. With t the step, from 1 on, and
// three scalars that the caller brings,
//
//   keep = 1 - rate * decay
//   step_size = rate * sqrt(1 - beta2^t) / (1 - beta1^t)
//   epsilon = eps * sqrt(1 - beta2^t),
//
// p_next = keep * p - step_size * mean_next / (sqrt(square_next) + epsilon) is the paper's line 12:
// both bias corrections are multiplied out of the fraction.
//
// A parameter of f16 or bf16 would lose steps that are smaller than half of its last bit, so the
// step updates a master copy of it in f32, and the parameter is the master's rounding (Micikevicius
// et al., "Mixed precision training", ICLR 2018, sections 3.1 and 3.2): p is the master, averages
// are f32, and the gradient is multiplied in f32 by the scalar inverse_loss_scale, which undoes the
// scale that the gradient of the loss brings. Scaled gradients may overflow; the scalar
// gradient_check is finite exactly if none did, and whoever trains takes the step only then.
//
// Invariant: a parameter is an ordinary argument afterwards, and results NAME_next have the types
// of the arguments NAME. All that a step computes with is f32.
#include "ir/LayerMarks.h"
#include "passes/Describe.h"
#include "passes/Rewrites.h"
#include "passes/SavedTensors.h"
#include "passes/differentiate/GradientCheck.h"

#include "llvm/ADT/SetVector.h"

namespace weft {
namespace {

class Updater {
public:
  Updater(GraphOp graph, const AdamWOptions &options)
      : graph(graph),
        body(graph.getBody().front()),
        options(options),
        builder(body.getTerminator(), 0),
        check(builder, graph.getLoc()) {}

  mlir::LogicalResult run() {
    const llvm::SmallVector<Update> updates = findUpdates();
    if (updates.empty())
      return mlir::emitError(graph.getLoc())
             << "no result is the gradient of a parameter; an optimizer has nothing to update";
    for (const Update &update : updates)
      if (mlir::failed(checkElements(update))) return mlir::failure();
    if (llvm::any_of(updates, hasMaster))
      inverseLossScale = addScalar("inverse_loss_scale", TrainingRole::inverseLossScale);
    keep = addScalar("keep", TrainingRole::keptShare);
    stepSize = addScalar("step_size", TrainingRole::stepSize);
    epsilon = addScalar("epsilon", TrainingRole::epsilon);
    for (const Update &update : updates) addUpdate(update);
    if (inverseLossScale) {
      constexpr const char *name = "gradient_check";
      addResult(check.sum(name), name);
      graph.setTrainingRoleOfResult(graph.getNumResults() - 1, TrainingRole::gradientCheck);
    }
    if (returnsGradients()) moveUpdatesBehind();
    return mlir::success();
  }

private:
  struct Update {
    mlir::BlockArgument parameter;
    unsigned gradient;  ///< result
  };

  llvm::SmallVector<Update> findUpdates() {
    llvm::SmallVector<Update> updates;
    for (mlir::BlockArgument argument : body.getArguments())
      for (unsigned result = 0;
           graph.isParameter(argument.getArgNumber()) && result < graph.getNumResults(); ++result)
        if (auto name = graph.getResultAttrOfType<mlir::StringAttr>(result, gradientOfName);
            name && name.getValue() == writtenName(argument))
          updates.push_back({argument, result});
    return updates;
  }

  /// Whether gradients are results beside the updates, as those of activations are.
  bool returnsGradients() {
    for (unsigned result = 0; result < graph.getNumResults(); ++result)
      if (graph.getResultAttr(result, gradientOfName)) return true;
    return false;
  }

  /// The ops that updates alone need go behind those of the backward pass, so that this can be
  /// called without them.
  void moveUpdatesBehind() {
    mlir::Operation *terminator = body.getTerminator();
    llvm::SetVector<mlir::Operation *> needed;
    for (unsigned result = 0; result < graph.getNumResults(); ++result)
      if (!graph.getResultAttr(result, updateOfName))
        if (mlir::Operation *op = terminator->getOperand(result).getDefiningOp()) needed.insert(op);
    for (size_t next = 0; next < needed.size(); ++next)
      for (mlir::Value operand : needed[next]->getOperands())
        if (mlir::Operation *op = operand.getDefiningOp()) needed.insert(op);
    std::vector<mlir::Operation *> behind;
    for (mlir::Operation &op : body.without_terminator())
      if (!needed.contains(&op)) behind.push_back(&op);
    for (mlir::Operation *op : behind) op->moveBefore(terminator);
  }

  static bool hasMaster(const Update &update) {
    return toDType(update.parameter.getType()) != DType::f32;
  }

  mlir::LogicalResult checkElements(const Update &update) const {
    const std::optional<DType> dtype = toDType(update.parameter.getType());
    if (dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16) return mlir::success();
    return mlir::emitError(update.parameter.getLoc())
           << "'" << writtenName(update.parameter) << "' holds "
           << mlir::getElementTypeOrSelf(update.parameter.getType())
           << "; an optimizer updates parameters of f32, f16 and bf16";
  }

  mlir::Location named(const std::string &name) {
    return mlir::NameLoc::get(builder.getStringAttr(name), graph.getLoc());
  }
  template <typename Op, typename... Arguments>
  mlir::Value make(const std::string &name, Arguments &&...arguments) {
    return Op::create(builder, named(name), std::forward<Arguments>(arguments)...)->getResult(0);
  }
  mlir::Value addArgument(const std::string &name, mlir::Type type) {
    const unsigned position = body.getNumArguments();
    (void)graph.insertArgument(position, type, builder.getDictionaryAttr({}), named(name));
    return body.getArgument(position);
  }
  /// Averages start at zero, which the bias corrections in step_size and epsilon assume.
  mlir::Value addAverage(const std::string &name, mlir::Type type, int64_t layer) {
    const mlir::Value average = addArgument(name, type);
    setLayer(graph, body.getNumArguments() - 1, layer);
    graph.setInitialValue(body.getNumArguments() - 1, InitialValue::zeros());
    return average;
  }
  mlir::Value addScalar(const std::string &name, TrainingRole role) {
    const mlir::Value scalar = addArgument(
        name,
        makeTensor(graph.getContext(), std::vector<std::pair<std::string, int64_t>>(), DType::f32));
    graph.setTrainingRoleOfArgument(body.getNumArguments() - 1, role);
    return scalar;
  }

  /// What the step changes: the parameter, or its master, which begins as what the parameter is the
  /// rounding of.
  mlir::Value addMaster(const Update &update) {
    if (!hasMaster(update)) return update.parameter;
    const std::string parameter = writtenName(update.parameter);
    const mlir::Value master =
        addArgument(parameter + "_master", withDType(update.parameter.getType(), DType::f32));
    graph.setArgAttr(body.getNumArguments() - 1, masterOfName, builder.getStringAttr(parameter));
    setLayer(graph, body.getNumArguments() - 1, layerOf(mlir::Value(update.parameter)));
    if (const std::optional<InitialValue> initial =
            graph.initialValue(update.parameter.getArgNumber()))
      graph.setInitialValue(body.getNumArguments() - 1, *initial);
    return master;
  }

  /// In f32 and without the scale of the loss, if the graph has one.
  mlir::Value trueGradient(const Update &update) {
    const std::string name = writtenName(update.parameter);
    const mlir::Value gradient = body.getTerminator()->getOperand(update.gradient);
    if (!inverseLossScale) return gradient;
    const mlir::Value unscaled = make<UnscaleOp>(name + "_unscaled", gradient, inverseLossScale);
    check.add({.name = name, .layer = layerOf(mlir::Value(update.parameter))}, gradient, unscaled);
    return unscaled;
  }

  void addUpdate(const Update &update) {
    const std::string name = writtenName(update.parameter);
    const int64_t layer = layerOf(mlir::Value(update.parameter));
    builder.setLayer(layer);
    const mlir::Value master = addMaster(update);
    const mlir::Type type = master.getType();
    const mlir::Value mean = addAverage(name + "_mean", type, layer),
                      square = addAverage(name + "_square", type, layer);
    const mlir::Value gradient = trueGradient(update);
    const mlir::Value nextMean =
        make<AverageOp>(name + "_mean_next", mean, gradient, 1 - options.beta1);
    const mlir::Value nextSquare =
        make<AverageSquareOp>(name + "_square_next", square, gradient, 1 - options.beta2);
    const std::string masterName = writtenName(master);
    const mlir::Value nextMaster = make<AdamWStepOp>(masterName + "_next", master, nextMean,
                                                     nextSquare, keep, stepSize, epsilon);
    const mlir::Value next = hasMaster(update) ? make<CastOp>(name + "_next", nextMaster,
                                                              *toDType(update.parameter.getType()))
                                               : nextMaster;
    body.getTerminator()->setOperand(update.gradient, next);
    graph.setResultAttrs(update.gradient, updateOf(name));
    addResult(nextMean, name + "_mean");
    addResult(nextSquare, name + "_square");
    if (hasMaster(update)) addResult(nextMaster, masterName);
    graph.removeArgAttr(update.parameter.getArgNumber(), GraphOp::parameterAttribute);
  }

  mlir::DictionaryAttr updateOf(const std::string &argument) {
    return builder.getDictionaryAttr(
        builder.getNamedAttr(updateOfName, builder.getStringAttr(argument)));
  }

  void addResult(mlir::Value value, const std::string &argument) {
    mlir::Operation *terminator = body.getTerminator();
    (void)graph.insertResult(graph.getNumResults(), value.getType(), updateOf(argument));
    terminator->insertOperands(terminator->getNumOperands(), value);
  }

  GraphOp graph;
  mlir::Block &body;
  const AdamWOptions &options;
  BuilderOfLayer builder;
  GradientCheck check;
  mlir::Value keep, stepSize, epsilon;
  mlir::Value inverseLossScale;  ///< null where all parameters are f32
};

}  // namespace

mlir::LogicalResult appendAdamW(GraphOp graph, const AdamWOptions &options) {
  return Updater(graph, options).run();
}

}  // namespace weft
