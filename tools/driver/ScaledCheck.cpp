// Inputs, launches and comparison; see ScaledCheck.h.
#include "tools/driver/ScaledCheck.h"

#include "ir/Weft.h"
#include "ir/interpreter/Interpreter.h"
#include "kernel/Error.h"
#include "kernel/reference/Rounding.h"
#include "kernel/reference/StoredElement.h"
#include "passes/Describe.h"
#include "runtime/execute/Executor.h"
#include "tools/driver/Diagnostics.h"

#include "mlir/Parser/Parser.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace weft::driver {
namespace {

/// A graph argument as its plan tensor stores it, logical row-major.
std::vector<std::byte> stored(const TensorValue &value, const PlanTensor &tensor) {
  const DType dtype = tensor.dtype;
  std::vector<std::byte> bytes(value.elements.size() * size_t(sizeOf(dtype)));
  for (size_t n = 0; n < value.elements.size(); ++n)
    reference::storeElement(dtype, &bytes[n * size_t(sizeOf(dtype))],
                            reference::roundTo(dtype, value.elements[n]));
  return bytes;
}

std::vector<double> loaded(const std::vector<std::byte> &bytes, DType dtype) {
  std::vector<double> values(bytes.size() / size_t(sizeOf(dtype)));
  for (size_t n = 0; n < values.size(); ++n)
    values[n] = reference::loadElement(dtype, &bytes[n * size_t(sizeOf(dtype))]);
  return values;
}

/// The scaled graph with its inputs and what the interpreter makes of them.
class Oracle {
public:
  Oracle(const ScaledGraph &graph, uint64_t seed)
      : context(mlir::MLIRContext::Threading::DISABLED), diagnostics(context) {
    context.loadDialect<WeftDialect>();
    module =
        mlir::parseSourceString<mlir::ModuleOp>(graph.ops, &context, "the graph on small extents");
    if (!module)
      throw diagnostics.error(ErrorKind::checkFailed, "the graph on small extents is none");
    op = *module->getOps<GraphOp>().begin();
    const DescribedOps described = describeGraph(op);
    for (mlir::Value argument : op.getBody().getArguments())
      names.push_back(described.flow
                          .tensors[size_t(std::ranges::find(described.tensors, argument) -
                                          described.tensors.begin())]
                          .name);
    for (mlir::Value result : op.getBody().front().getTerminator()->getOperands())
      resultTypes.push_back(*toDType(result.getType()));
    arguments = randomArguments(op, seed);
    exact = interpreted(seed, false);
    rounded = interpreted(seed, true);
  }

  std::vector<std::string> names;  ///< of arguments
  std::vector<DType> resultTypes;
  std::vector<TensorValue> arguments, exact, rounded;

  /// Share of the largest result that sums of products of 8-bit floats or of tf32 may lose, which
  /// the interpreter computes in fp32: of some hundred terms (ir/SPEC.md, "Contraction"). What tf32
  /// rounds is in `rounded`.
  double gemmLoss() {
    double loss = 0;
    op.walk([&](OnlineSoftmaxContractOp fold) {
      if (fold.getPrecision()) loss = 0x1p-7;
    });
    op.walk([&](ContractOp contract) {
      const bool isSingleConsumer = isFloat8(*toDType(contract.getA().getType())) &&
                                    isFloat8(*toDType(contract.getB().getType()));
      if (contract.getPrecision() || isSingleConsumer) loss = 0x1p-7;
    });
    return loss;
  }

private:
  std::vector<TensorValue> interpreted(uint64_t seed, bool isRounded) {
    const InterpreterOptions options{.precision = isRounded ? Precision::f32 : Precision::f64,
                                     .roundToStorage = isRounded,
                                     .seed = seed,
                                     .step = 0};
    auto results = interpret(op, arguments, options);
    if (mlir::failed(results))
      throw Error::unsupported("the graph on small extents cannot be interpreted: {}",
                               diagnostics.text());
    return std::move(*results);
  }

  mlir::MLIRContext context;
  CapturedDiagnostics diagnostics;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  GraphOp op;
};

/// Whether a right plan, too, may store something that is not finite.
bool leavesRange(DType dtype, double exact, double rounded, double bound) {
  return std::isfinite(exact) && (!std::isfinite(rounded) || !std::isfinite(reference::roundTo(
                                                                 dtype, std::abs(exact) + bound)));
}

ResultCheck compare(const std::string &name, const std::vector<double> &got,
                    const TensorValue &exact, const TensorValue &rounded, DType dtype,
                    double loss) {
  ResultCheck check{.name = name, .elements = int64_t(got.size())};
  const size_t count = exact.elements.size();
  for (size_t n = 0; n < count; ++n) {
    const double value = exact.elements[n];
    check.largest = std::max(check.largest, std::abs(value));
    if (leavesRange(dtype, value, rounded.elements[n], 0)) continue;
    check.bound = std::max({check.bound, 4 * std::abs(rounded.elements[n] - value),
                            2 * reference::roundingError(dtype, value), loss * std::abs(value)});
  }
  check.passed = got.size() == count && std::isfinite(check.bound);
  std::optional<size_t> outside;
  for (size_t n = 0; n < count && check.passed; ++n) {
    const double value = exact.elements[n], difference = std::abs(got[n] - value);
    if (!std::isfinite(difference) && leavesRange(dtype, value, rounded.elements[n], check.bound)) {
      if (!outside) outside = n;
      continue;
    }
    check.worst = std::isnan(difference) || difference > check.worst ? difference : check.worst;
    if (std::isnan(difference)) break;
  }
  check.passed &= check.worst <= check.bound;  // false for NaN
  if (check.passed && outside) {
    check.passed = false;
    check.unchecked = fmt::format(
        "element {} is {:.3g} in fp64 and {:.3g} where the interpreter rounds to stored types, "
        "bound {:.3g}: the random inputs of the check leave the range of {} on the way to it",
        *outside, exact.elements[*outside], rounded.elements[*outside], check.bound, nameOf(dtype));
  }
  return check;
}

/// The result tensor of the name that a graph gives a value: "norm2", and "norm2_0" where the text
/// had to number it.
int resultNamed(const std::string &name, const std::vector<int> &outputs, const Plan &plan) {
  const size_t digits = name.find_last_not_of("0123456789");
  const std::string bare =
      digits != std::string::npos && digits + 1 < name.size() && name[digits] == '_'
          ? name.substr(0, digits)
          : name;
  for (const std::string &wanted : {name, bare})
    for (const int output : outputs)
      if (plan.tensors[size_t(output)].logical == wanted) return output;
  throw Error::checkFailed("the plan on small extents has no result '{}'", name);
}

}  // namespace

std::vector<ResultCheck> checkReference(const ScaledGraph &graph, uint64_t seed) {
  Oracle oracle(graph, seed);
  std::vector<ResultCheck> checks;
  for (size_t n = 0; n < oracle.exact.size(); ++n)
    checks.push_back(compare(graph.results[n], oracle.rounded[n].elements, oracle.exact[n],
                             oracle.rounded[n], oracle.resultTypes[n], oracle.gemmLoss()));
  return checks;
}

BuiltPlan buildScaled(ScaledPlan &scaled, const std::string &architecture) {
  BuiltPlan built;
  built.emitted = emitKernels(scaled.planned, architecture,
                              [](const ChosenKernel &) { return std::vector<std::string>(); });
  verify(scaled.planned.plan, "the plan on small extents");
  BuildSummary summary;
  built.artifact.cubins =
      buildCubins(scaled.planned.plan, built.emitted, false, {}, summary).cubins;
  if (summary.skipped)
    throw Error::unsupported(
        "no NVRTC, which the plan on small extents needs; 'weft env' says where it is looked for");
  built.artifact.plan = scaled.planned.plan;
  built.artifact.sources = built.emitted.sources;
  return built;
}

std::vector<ResultCheck> runScaled(const ScaledPlan &scaled, const BuiltPlan &built,
                                   const runtime::cuda::Context &context, uint64_t seed,
                                   std::vector<std::string> &warnings) {
  Oracle oracle(scaled.graph, seed);
  runtime::Executor executor(built.artifact, context,
                             {.seed = seed, .step = 0, .folder = "the plan on small extents"});
  warnings = executor.warnings();
  const Plan &plan = executor.plan();
  executor.poison();
  for (size_t n = 0; n < oracle.arguments.size(); ++n)
    for (size_t tensor = 0; tensor < plan.tensors.size(); ++tensor) {
      const PlanTensor &one = plan.tensors[tensor];
      if (one.logical != oracle.names[n]) continue;
      if (one.role == TensorRole::parameter)
        executor.setParameter(one.logical, stored(oracle.arguments[n], one));
      if (one.role == TensorRole::argument)
        executor.write(int(tensor), stored(oracle.arguments[n], one));
    }
  const runtime::cuda::Stream stream;
  const EntryPoint &entry = executor.entryPoint("");
  std::vector<ResultCheck> checks;
  for (int launch = 0; launch < 2; ++launch) {  // kernel by kernel, then as a graph
    executor.poison();
    executor.launch(entry, stream.handle());
    stream.synchronize();
    for (size_t n = 0; n < oracle.exact.size(); ++n) {
      const int tensor = resultNamed(scaled.graph.results[n], entry.outputs, plan);
      const DType dtype = plan.tensors[size_t(tensor)].dtype;
      ResultCheck check =
          compare(plan.tensors[size_t(tensor)].logical, loaded(executor.read(tensor), dtype),
                  oracle.exact[n], oracle.rounded[n], dtype, oracle.gemmLoss());
      if (launch == 0) checks.push_back(std::move(check));
      else if (check.failed() || checks[n].passed) checks[n] = std::move(check);
    }
  }
  return checks;
}

}  // namespace weft::driver
