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
#include "tools/driver/PlanWiring.h"

#include "mlir/Parser/Parser.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

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
      : seed(seed), context(mlir::MLIRContext::Threading::DISABLED), diagnostics(context) {
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
    exact = interpreted(arguments, Arithmetic::exact);
    rounded.push_back(interpreted(arguments, Arithmetic::rounded));
  }

  std::vector<std::string> names;  ///< of arguments
  std::vector<DType> resultTypes;
  std::vector<TensorValue> arguments, exact;
  /// Results where every value is rounded to its stored type: of the arguments first, then of
  /// arguments next to them.
  std::vector<std::vector<TensorValue>> rounded;

  /// Rounds on other paths, too: of arguments that differ by up to a unit in the last place, with
  /// every value moved by about as much. What a graph makes of one such difference is what it makes
  /// of one rounding; and where terms cancel exactly, as in the gradient of a bias of keys, whose
  /// sum over a softmax is zero, no rounding that is alike in all of them shows what a plan leaves.
  void roundElsewhere() {
    constexpr int paths = 3;
    std::mt19937_64 random(seed);
    for (int path = 0; path < paths; ++path) {
      std::vector<TensorValue> moved = arguments;
      for (size_t n = 0; n < moved.size(); ++n) {
        const DType dtype = *toDType(op.getBody().getArgument(unsigned(n)).getType());
        if (dtype == DType::i32 || dtype == DType::i1) continue;
        for (double &element : moved[n].elements) {
          const double share = double(random() >> 11) * 0x1p-52 - 1;  // from -1 to 1
          element = reference::roundTo(
              dtype, element + 2 * share * reference::roundingError(dtype, element));
        }
      }
      rounded.push_back(interpreted(moved, Arithmetic::perturbed));
    }
  }

  /// Share of the largest result that sums of products of 8-bit floats or of tf32 may lose, which
  /// the interpreter computes in fp32: of some hundred terms (ir/SPEC.md, "Contraction"). What tf32
  /// rounds is in `rounded`.
  double gemmLoss() {
    double loss = 0;
    op.walk([&](OnlineSoftmaxContractOp fold) {
      if (fold.getPrecision()) loss = 0x1p-7;
    });
    op.walk([&](ContractOp contract) {
      const bool isOfFloat8 = isFloat8(*toDType(contract.getA().getType())) &&
                              isFloat8(*toDType(contract.getB().getType()));
      if (contract.getPrecision() || isOfFloat8) loss = 0x1p-7;
    });
    return loss;
  }

private:
  enum class Arithmetic { exact, rounded, perturbed };
  std::vector<TensorValue> interpreted(const std::vector<TensorValue> &arguments,
                                       Arithmetic arithmetic) {
    const bool isRounded = arithmetic != Arithmetic::exact;
    InterpreterOptions options{.precision = isRounded ? Precision::f32 : Precision::f64,
                               .roundToStorage = isRounded,
                               .seed = seed,
                               .step = 0};
    if (arithmetic == Arithmetic::perturbed) {
      options.perturbation = seed + rounded.size();
      options.rangeShare = 0.5;
    }
    auto results = interpret(op, arguments, options);
    if (mlir::failed(results))
      throw Error::unsupported("the graph on small extents cannot be interpreted: {}",
                               diagnostics.text());
    return std::move(*results);
  }

  uint64_t seed;
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

/// Of the graph's result of that index.
ResultCheck compare(const std::string &name, const std::vector<double> &got, Oracle &oracle,
                    size_t index) {
  const TensorValue &exact = oracle.exact[index];
  const DType dtype = oracle.resultTypes[index];
  const double loss = oracle.gemmLoss();
  ResultCheck check{.name = name, .elements = int64_t(got.size())};
  const size_t count = exact.elements.size();
  for (size_t n = 0; n < count; ++n) {
    const double value = exact.elements[n];
    check.largest = std::max(check.largest, std::abs(value));
    for (const std::vector<TensorValue> &path : oracle.rounded)
      if (const double other = path[index].elements[n]; !leavesRange(dtype, value, other, 0))
        check.bound =
            std::max({check.bound, 4 * std::abs(other - value),
                      2 * reference::roundingError(dtype, value), loss * std::abs(value)});
  }
  check.passed = got.size() == count && std::isfinite(check.bound);
  struct Outside {
    size_t element;
    double rounded;
  };
  std::optional<Outside> outside;
  for (size_t n = 0; n < count && check.passed; ++n) {
    const double value = exact.elements[n], difference = std::abs(got[n] - value);
    // A finite result may come of a value on the way that a plan keeps and the interpreter rounds
    // to infinity, or the other way round: nothing bounds it then.
    if (!(difference <= check.bound)) {
      const auto path = std::ranges::find_if(oracle.rounded, [&](const auto &results) {
        return leavesRange(dtype, value, results[index].elements[n], check.bound);
      });
      if (path != oracle.rounded.end()) {
        if (!outside) outside = {n, (*path)[index].elements[n]};
        continue;
      }
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
        outside->element, exact.elements[outside->element], outside->rounded, check.bound,
        nameOf(dtype));
  }
  return check;
}

/// Of all results; `runs`: results of each run, of which the worst counts.
std::vector<ResultCheck> compareOnce(const std::vector<std::string> &names,
                                     const std::vector<std::vector<std::vector<double>>> &runs,
                                     Oracle &oracle) {
  std::vector<ResultCheck> checks;
  for (size_t n = 0; n < names.size(); ++n) {
    checks.push_back(compare(names[n], runs.front()[n], oracle, n));
    for (size_t run = 1; run < runs.size(); ++run) {
      ResultCheck check = compare(names[n], runs[run][n], oracle, n);
      if (check.failed() || checks[n].passed) checks[n] = std::move(check);
    }
  }
  return checks;
}

/// The same; where one path of roundings alone would fail a result, several say how much rounding
/// makes of it: a deep graph multiplies what its first ops round, and two paths through it may
/// differ by more than a factor.
std::vector<ResultCheck> compareAll(const std::vector<std::string> &names,
                                    const std::vector<std::vector<std::vector<double>>> &runs,
                                    Oracle &oracle) {
  std::vector<ResultCheck> checks = compareOnce(names, runs, oracle);
  if (std::ranges::none_of(checks, &ResultCheck::failed)) return checks;
  oracle.roundElsewhere();
  return compareOnce(names, runs, oracle);
}

/// The result tensor that a graph's text calls so.
int resultNamed(const std::string &name, const std::vector<int> &outputs, const Plan &plan) {
  const auto logical = [&](int output) { return plan.tensors[size_t(output)].logical; };
  auto found = std::ranges::find(outputs, name, logical);
  if (found == outputs.end())
    found = std::ranges::find_if(
        outputs, [&](const std::string &inPlan) { return isNumberedName(name, inPlan); }, logical);
  if (found == outputs.end())
    throw Error::checkFailed("the plan on small extents has no result '{}'", name);
  return *found;
}

}  // namespace

std::vector<ResultCheck> checkReference(
    const ScaledGraph &graph, uint64_t seed,
    const std::function<double(double exact, double rounded)> &resultOf) {
  Oracle oracle(graph, seed);
  std::vector<std::vector<double>> got;
  for (size_t n = 0; n < oracle.exact.size(); ++n) {
    got.push_back(oracle.rounded.front()[n].elements);
    if (!resultOf) continue;
    for (size_t element = 0; element < got[n].size(); ++element)
      got[n][element] = resultOf(oracle.exact[n].elements[element], got[n][element]);
  }
  return compareAll(graph.results, {got}, oracle);
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
  std::vector<int> tensors;
  std::vector<std::string> resultNames;
  for (const std::string &result : scaled.graph.results) {
    tensors.push_back(resultNamed(result, entry.outputs, plan));
    resultNames.push_back(plan.tensors[size_t(tensors.back())].logical);
  }
  std::vector<std::vector<std::vector<double>>> runs;
  for (int launch = 0; launch < 2; ++launch) {  // kernel by kernel, then as a graph
    executor.poison();
    executor.launch(entry, stream.handle());
    stream.synchronize();
    std::vector<std::vector<double>> &results = runs.emplace_back();
    for (const int tensor : tensors)
      results.push_back(loaded(executor.read(tensor), plan.tensors[size_t(tensor)].dtype));
  }
  return compareAll(resultNames, runs, oracle);
}

}  // namespace weft::driver
