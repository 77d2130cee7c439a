// Walks a graph in order and keeps each value until its last use. Kernels are walked like separate
// graphs. Errors of the numeric routines become diagnostics at the op, so that no exception
// crosses MLIR.
#include "ir/interpreter/Interpreter.h"

#include "ir/Weft.h"
#include "ir/interpreter/Evaluate.h"
#include "ir/interpreter/Rounding.h"
#include "kernel/Error.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <limits>
#include <memory>
#include <random>

namespace weft {
namespace {

using Shared = std::shared_ptr<const TensorValue>;
using mlir::failure;
using mlir::FailureOr;

/// A table of any element type as doubles.
FailureOr<TensorValue> valueOf(ConstantOp constant) {
  const auto table = mlir::dyn_cast<mlir::DenseElementsAttr>(constant.getValue());
  if (!table) return constant.emitOpError("only dense tables can be evaluated");
  TensorValue value{.shape = extents(constant.getType()), .elements = {}};
  value.elements.reserve(table.getNumElements());
  if (mlir::isa<mlir::FloatType>(table.getElementType())) {
    for (llvm::APFloat element : table.getValues<llvm::APFloat>())
      value.elements.push_back(element.convertToDouble());
  } else {
    for (const llvm::APInt &element : table.getValues<llvm::APInt>())
      value.elements.push_back(element.getBitWidth() == 1 ? double(element.getZExtValue())
                                                          : double(element.getSExtValue()));
  }
  return value;
}

std::string print(const std::vector<int64_t> &coordinates) {
  return fmt::format("[{}]", fmt::join(coordinates, ", "));
}

/// Names the element that is worst in units of the tolerance.
mlir::LogicalResult expectClose(ExpectCloseOp op, const TensorValue &a, const TensorValue &b) {
  const double absolute = op.getAbsolute().convertToDouble(),
               relative = op.getRelative().convertToDouble();
  if (a.shape != b.shape)
    return op.emitOpError("shapes differ: ") << print(a.shape) << " and " << print(b.shape);
  size_t worst = 0, failing = 0;
  double ratio = -1;
  for (size_t n = 0; n < a.elements.size(); ++n) {
    const double here =
        reference::elementDistance(a.elements[n], b.elements[n], absolute, relative);
    failing += here > 1;
    if (here > ratio) {
      ratio = here;
      worst = n;
    }
  }
  if (failing == 0) return mlir::success();
  return op.emitOpError() << fmt::format(
             "{} of {} elements differ; worst at {}: {} instead of {} (absolute {}, relative {})",
             failing, a.elements.size(), print(reference::coordinatesOf(int64_t(worst), a.shape)),
             a.elements[worst], b.elements[worst], absolute, relative);
}

class Interpreter {
public:
  explicit Interpreter(const InterpreterOptions &options)
      : options(options), random(options.perturbation.value_or(0)) {}

  /// Results of a block, in the order of its terminator.
  FailureOr<std::vector<Shared>> run(mlir::Block &block, llvm::ArrayRef<Shared> arguments) {
    for (auto [parameter, argument] : llvm::zip_equal(block.getArguments(), arguments))
      define(parameter, argument);
    for (mlir::Operation &op : block.without_terminator())
      if (mlir::failed(step(op))) return failure();
    return take(*block.getTerminator());
  }

  /// A value as its element type stores it, if the options ask for that; in fp32 otherwise, if they
  /// ask for that.
  Shared stored(mlir::Type type, TensorValue value) const {
    if (options.roundToStorage) {
      const DType dtype = *toDType(type);
      reference::roundTo(dtype, value);
      if (options.rangeShare < 1 && dtype != DType::i32 && dtype != DType::i1)
        for (double &element : value.elements)
          if (std::isinf(reference::roundTo(dtype, element / options.rangeShare)))
            element = std::copysign(std::numeric_limits<double>::infinity(), element);
    } else if (options.precision == Precision::f32) reference::roundTo(DType::f32, value);
    return std::make_shared<const TensorValue>(std::move(value));
  }

private:
  mlir::LogicalResult step(mlir::Operation &op) {
    const std::vector<Shared> operands = take(op);
    if (auto kernel = mlir::dyn_cast<KernelOp>(op)) {
      FailureOr<std::vector<Shared>> results = run(*kernel.getBlock(), operands);
      if (mlir::failed(results)) return failure();
      for (auto [result, value] : llvm::zip_equal(op.getResults(), *results)) define(result, value);
      return mlir::success();
    }
    if (auto constant = mlir::dyn_cast<ConstantOp>(op)) {
      FailureOr<TensorValue> value = valueOf(constant);
      if (mlir::failed(value)) return failure();
      define(op.getResult(0), stored(op.getResult(0).getType(), std::move(*value)));
      return mlir::success();
    }
    if (auto check = mlir::dyn_cast<ExpectCloseOp>(op))
      return expectClose(check, *operands[0], *operands[1]);
    return compute(op, operands);
  }

  static bool readsTf32(mlir::Operation &op) {
    return llvm::TypeSwitch<mlir::Operation *, bool>(&op)
        .Case<ContractOp, SubvectorContractOp, OnlineSoftmaxContractOp>(
            [](auto contraction) { return contraction.getPrecision().has_value(); })
        .Default(false);
  }

  mlir::LogicalResult compute(mlir::Operation &op, const std::vector<Shared> &operands) {
    std::vector<const TensorValue *> plain;
    std::vector<TensorValue> factors;
    const bool isTf32 = options.roundToStorage && readsTf32(op);
    if (isTf32 || (options.roundFactors &&
                   mlir::isa<ContractOp, SubvectorContractOp, OnlineSoftmaxContractOp>(op))) {
      factors.reserve(operands.size());
      for (auto [value, operand] : llvm::zip_equal(op.getOperands(), operands)) {
        // The scores of an online softmax are no factors: its exponentials are.
        const bool isFactor = (!mlir::isa<OnlineSoftmaxContractOp>(op) || !factors.empty()) &&
                              mlir::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(value));
        factors.push_back(*operand);
        if (isFactor) reference::roundTo(*toDType(value.getType()), factors.back());
        if (isTf32 && isFactor)
          for (double &element : factors.back().elements) element = reference::roundToTf32(element);
        plain.push_back(&factors.back());
      }
    } else {
      for (const Shared &operand : operands) plain.push_back(operand.get());
    }
    try {
      std::vector<TensorValue> values = reference::evaluate(&op, plain, options);
      for (auto [result, value] : llvm::zip_equal(op.getResults(), values)) {
        assert(value.shape == extents(result.getType()) &&
               "a routine returned another shape than its op's type");
        if (options.perturbation) perturb(op, plain, result.getType(), value);
        define(result, stored(result.getType(), std::move(value)));
      }
      return mlir::success();
    } catch (const Error &error) {
      return op.emitOpError() << error.what();
    }
  }

  /// See InterpreterOptions::perturbation. Integers and predicates stay.
  void perturb(mlir::Operation &op, const std::vector<const TensorValue *> &operands,
               mlir::Type type, TensorValue &value) {
    const DType dtype = *toDType(type);
    if (dtype == DType::i32 || dtype == DType::i1) return;
    constexpr double fp32Loss = 0x1p-22;  // of the sum of the magnitudes of some terms
    const std::vector<double> magnitudes = termMagnitudes(op, operands);
    for (size_t n = 0; n < value.elements.size(); ++n) {
      const double share = double(random() >> 11) * 0x1p-52 - 1;  // from -1 to 1
      const double error = 2 * reference::roundingError(dtype, value.elements[n]) +
                           (magnitudes.empty() ? 0 : fp32Loss * magnitudes[n]);
      if (std::isfinite(error)) value.elements[n] += share * error;
    }
  }

  /// Of each result of a contraction or reduction the sum of its terms' magnitudes; of other ops
  /// empty.
  std::vector<double> termMagnitudes(mlir::Operation &op,
                                     const std::vector<const TensorValue *> &operands) const {
    if (!mlir::isa<ContractOp, ReduceOp>(op)) return {};
    std::vector<TensorValue> magnitudes;
    std::vector<const TensorValue *> plain;
    magnitudes.reserve(operands.size());
    for (const TensorValue *operand : operands) {
      TensorValue &magnitude = magnitudes.emplace_back(*operand);
      for (double &element : magnitude.elements) element = std::abs(element);
      plain.push_back(&magnitude);
    }
    return reference::evaluate(&op, plain, options).front().elements;
  }

  void define(mlir::Value value, Shared tensor) {
    if (!value.use_empty())
      live[value] = {std::move(tensor), std::distance(value.use_begin(), value.use_end())};
  }

  /// The operands of an op; a value whose last use this is leaves the table.
  std::vector<Shared> take(mlir::Operation &op) {
    std::vector<Shared> operands;
    for (mlir::Value operand : op.getOperands()) {
      const auto found = live.find(operand);
      assert(found != live.end() && "operands are defined before their uses");
      operands.push_back(found->second.tensor);
      if (--found->second.uses == 0) live.erase(found);
    }
    return operands;
  }

  struct Live {
    Shared tensor;
    int64_t uses = 0;
  };
  const InterpreterOptions &options;
  std::mt19937_64 random;  ///< of perturbations
  llvm::DenseMap<mlir::Value, Live> live;
};

mlir::LogicalResult checkArguments(mlir::Operation *graph, mlir::Block &block,
                                   const std::vector<TensorValue> &arguments) {
  if (block.getNumArguments() != arguments.size())
    return graph->emitError() << fmt::format("takes {} arguments, {} were given",
                                             block.getNumArguments(), arguments.size());
  for (size_t n = 0; n < arguments.size(); ++n) {
    const std::vector<int64_t> expected = extents(block.getArgument(unsigned(n)).getType());
    if (arguments[n].shape != expected)
      return graph->emitError() << fmt::format("argument {} has extents {} instead of {}", n,
                                               print(arguments[n].shape), print(expected));
  }
  return mlir::success();
}

}  // namespace

FailureOr<std::vector<TensorValue>> interpret(mlir::Operation *graph,
                                              const std::vector<TensorValue> &arguments,
                                              const InterpreterOptions &options) {
  mlir::Block &block = graph->getRegion(0).front();
  if (mlir::failed(checkArguments(graph, block, arguments))) return failure();
  Interpreter interpreter(options);
  std::vector<Shared> given;
  for (auto [parameter, argument] : llvm::zip_equal(block.getArguments(), arguments))
    given.push_back(interpreter.stored(parameter.getType(), argument));
  FailureOr<std::vector<Shared>> shared = interpreter.run(block, given);
  if (mlir::failed(shared)) return failure();
  std::vector<TensorValue> results;
  for (const Shared &result : *shared) results.push_back(*result);
  return results;
}

}  // namespace weft
