// emulate_kernels FILE.mlir.in: every weft.kernel of the file, in f32, f16 and bf16 (the word
// FLOAT, if it is there, stands for the type), in a sample of its configurations: emits, compiles
// for the host, runs in two thread orders, also in place of operands, and compares with the
// interpreter.
#include "ir/Weft.h"
#include "ir/interpreter/Interpreter.h"
#include "kernel/Append.h"
#include "kernel/ContractionPrologue.h"
#include "kernel/Error.h"
#include "kernel/reference/Rounding.h"
#include "passes/Passes.h"
#include "tests/emulate/Launch.h"
#include "tests/emulate/Sampling.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <fmt/format.h>

#include <fstream>
#include <optional>
#include <regex>
#include <set>
#include <sstream>

namespace weft::emulate {
namespace {

constexpr size_t configurationsPerKernel = 24, viewsPerKernel = 4;

/// One kernel of the file in one element type.
struct Subject {
  std::string name;  ///< "scaled_softmax in f16"
  Kernel kernel;
  std::vector<TensorValue> arguments, expected;
  std::vector<TensorValue> onTensorCores;  ///< expected of what rounds its operands: see asRead
};
/// One configuration of a subject.
struct Case {
  const Subject *subject = nullptr;
  Configuration configuration;
  codegen::EmittedKernel emitted;
};

std::string readFile(const std::string &path) {
  std::ifstream file(path);
  if (!file) throw Error::badInput("cannot read '{}'", path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Of the stored result: its rounding, and fp32 arithmetic against the interpreter's fp64.
double relativeTolerance(DType type) {
  switch (type) {
    case DType::f16: return 0x1p-10;
    case DType::bf16: return 0x1p-7;
    case DType::f8e4m3: return 0x1p-4;
    case DType::f8e5m2: return 0x1p-3;
    default: return 1e-5;
  }
}
/// And of results near zero: half of the smallest 8-bit float.
double absoluteTolerance(DType type) {
  return type == DType::f8e4m3 ? 0x1p-10 : 1e-5 + (type == DType::f8e5m2 ? 0x1p-17 : 0);
}

/// What tensor cores see of a kernel's arguments: of precision tf32 A and B rounded to it, for
/// which the results are then as exact as those of fp32.
std::vector<TensorValue> asRead(const Kernel &kernel, std::vector<TensorValue> arguments) {
  if (!contractionValues(kernel) || !gemmTypes(kernel).areTf32()) return arguments;
  const GemmInputs operands = gemmInputs(kernel);
  for (const size_t input : {operands.a, operands.b})
    for (double &element : arguments[input].elements)
      element = reference::roundTo(DType::tf32, element);
  return arguments;
}

std::vector<Subject> subjectsOf(mlir::ModuleOp module, const std::string &dtype) {
  std::vector<Subject> subjects;
  module.walk([&](KernelOp op) {
    Subject subject{.name = fmt::format("{} in {}", op.getName().str(), dtype),
                    .kernel = toKernel({op}, ""),
                    .arguments = randomArguments(op, 7),
                    .expected = {},
                    .onTensorCores = {}};
    // An operand that the kernel makes in fp32 is rounded as fp32 has it: near a tie fp64 may have
    // the other neighbour.
    const bool transformsOperand = contractionIndex(subject.kernel).value_or(0) > 0;
    const InterpreterOptions options{
        .precision = transformsOperand ? Precision::f32 : Precision::f64,
        .roundFactors = transformsOperand};
    auto expected = interpret(op, subject.arguments, {}),
         onTensorCores = interpret(op, asRead(subject.kernel, subject.arguments), options);
    if (mlir::failed(expected) || mlir::failed(onTensorCores))
      throw Error::checkFailed("{} cannot be interpreted", subject.name);
    subject.expected = std::move(*expected);
    subject.onTensorCores = std::move(*onTensorCores);
    subjects.push_back(std::move(subject));
  });
  return subjects;
}

std::string describeCase(const Case &one) {
  const Kernel &kernel = one.subject->kernel;
  std::string layouts;
  for (size_t n = 0; n < kernel.inputs.size(); ++n)
    layouts += print(one.configuration.inputs[n], kernel, kernel.values[kernel.inputs[n]]) + " ";
  layouts += "->";
  for (size_t n = 0; n < kernel.outputs.size(); ++n)
    layouts += " " + print(one.configuration.outputs[n], kernel, kernel.values[kernel.outputs[n]]);
  return fmt::format("{}, {}, {}", one.subject->name, layouts,
                     describe(kernel, one.configuration.knobs));
}

bool takesViews(const Kernel &kernel, const Configuration &views) {
  const FamilySampling &sampling = samplingOf(views.knobs);
  return sampling.takesViews && sampling.takesViews(kernel, views);
}

/// Some of the configurations again, with every tensor a view: unaligned, aligned to 4 elements,
/// and to 8. Matrix products need axes that merge, which views break.
void addViews(const Kernel &kernel, std::vector<Configuration> &configurations) {
  const size_t count = configurations.size(), some = std::max<size_t>(1, count / viewsPerKernel);
  const int64_t paddings[] = {3, 4, 8};
  for (size_t n = 0; n < count; n += some)
    if (const Configuration views = asViews(kernel, configurations[n], paddings[n / some % 3]);
        !contractionValues(kernel) || takesViews(kernel, views))
      configurations.push_back(views);
}

/// Contractions of families that an H200 is offered for few layouts (FamilySampling::otherDevice).
std::vector<Configuration> otherContractions(const Kernel &kernel) {
  std::vector<Configuration> configurations;
  if (!contractionValues(kernel)) return configurations;
  for (const FamilySampling &sampling : samplings()) {
    if (!sampling.otherDevice) continue;
    for (Configuration &one :
         sample(kernel, findDevice(sampling.otherDevice), {}, configurationsPerKernel))
      if (one.knobs.family() == *sampling.family) configurations.push_back(std::move(one));
  }
  return configurations;
}

/// Every configuration of a subject's sample that emits; one that does not is a failure, since
/// enumeration offered it.
std::vector<Case> casesOf(const std::vector<Subject> &subjects, int &failures) {
  std::vector<Case> cases;
  for (const Subject &subject : subjects) {
    auto configurations = sample(subject.kernel, findDevice("h200"), {}, configurationsPerKernel);
    for (Configuration &one : otherContractions(subject.kernel))
      configurations.push_back(std::move(one));
    if (configurations.empty())
      throw Error::checkFailed("{} has no configuration to run", subject.name);
    addViews(subject.kernel, configurations);
    for (const Configuration &configuration : configurations) {
      Case one{&subject, configuration, {}};
      try {
        one.emitted = codegen::emit(subject.kernel, configuration, "sm_90a");
        cases.push_back(std::move(one));
      } catch (const Error &error) {
        fmt::print("FAILED {}: {}\n", describeCase(one), error.what());
        ++failures;
      }
    }
  }
  return cases;
}

/// Empty, or what is wrong with the result.
std::string check(const Case &one, const HostKernel &host, Schedule schedule,
                  std::optional<size_t> overwritten) {
  const Subject &subject = *one.subject;
  const LaunchResult result = launch(subject.kernel, one.configuration, one.emitted, host,
                                     subject.arguments, {}, schedule, overwritten);
  if (!result.error.empty()) return result.error;
  for (size_t n = 0; n < result.outputs.size(); ++n) {
    const bool isOnTensorCores = samplingOf(one.configuration.knobs).isOnTensorCores;
    const TensorValue &actual = result.outputs[n],
                      &expected = (isOnTensorCores ? subject.onTensorCores : subject.expected)[n];
    const DType type = subject.kernel.values[subject.kernel.outputs[n]].dtype;
    const double relative = relativeTolerance(type), absolute = absoluteTolerance(type);
    for (size_t at = 0; at < expected.elements.size(); ++at)
      if (!(reference::elementDistance(actual.elements[at],
                                       reference::saturated(type, expected.elements[at]), absolute,
                                       relative) <= 1))
        return fmt::format("output {} at [{}]: {} instead of {}", n,
                           fmt::join(reference::coordinatesOf(int64_t(at), expected.shape), ", "),
                           actual.elements[at], expected.elements[at]);
  }
  return {};
}

/// Output 0 in separate memory, then over every input that it may be written over
/// (Family::overwritableInputs). What is appended is written over the cache alone.
std::vector<std::optional<size_t>> placesOf(const Case &one) {
  std::vector<std::optional<size_t>> places;
  if (!appendOf(one.subject->kernel)) places.emplace_back(std::nullopt);
  for (const size_t input : overwritableInputs(one.subject->kernel, one.configuration))
    places.emplace_back(input);
  return places;
}

/// In every place of the result and both orders of threads: empty, or what is wrong.
std::string checkAll(const Case &one, const HostKernel &host, size_t &inPlace) {
  for (const std::optional<size_t> &overwritten : placesOf(one)) {
    inPlace += overwritten.has_value();
    for (Schedule schedule : {Schedule::ascending, Schedule::descending})
      if (const std::string wrong = check(one, host, schedule, overwritten); !wrong.empty())
        return fmt::format("({} threads{}): {}",
                           schedule == Schedule::ascending ? "ascending" : "descending",
                           overwritten ? fmt::format(", over input {}", *overwritten) : "", wrong);
  }
  return {};
}

/// All cases in one shared object; returns how many fail.
int runAll(const std::string &name, const std::vector<Case> &cases, size_t &inPlace) {
  std::vector<Source> sources;
  for (const Case &one : cases) sources.push_back({one.emitted.text, one.emitted.entry});
  const HostLibrary library(name, sources);
  int failures = 0;
  for (size_t n = 0; n < cases.size(); ++n) {
    const std::string wrong = checkAll(cases[n], library.kernel(n), inPlace);
    if (wrong.empty()) continue;
    fmt::print("FAILED {} {}\n", describeCase(cases[n]), wrong);
    ++failures;
  }
  return failures;
}

int runFile(const std::string &file) {
  mlir::DialectRegistry registry;
  registry.insert<WeftDialect>();
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  const std::string text = readFile(file);
  const std::string name = std::filesystem::path(file).stem().stem();
  int failures = 0;
  size_t count = 0, inPlace = 0;
  std::set<std::string> classes;
  for (const std::string dtype : {"f32", "f16", "bf16"}) {
    if (dtype != "f32" && text.find("FLOAT") == std::string::npos) break;  // its types are its own
    const std::string typed = std::regex_replace(text, std::regex("FLOAT"), dtype);
    const auto module = mlir::parseSourceString<mlir::ModuleOp>(typed, &context, file);
    if (!module) return 2;
    const std::vector<Subject> subjects = subjectsOf(*module, dtype);
    int rejected = 0;
    const std::vector<Case> cases = casesOf(subjects, rejected);
    failures +=
        rejected + (cases.empty() ? 0 : runAll(fmt::format("{}.{}", name, dtype), cases, inPlace));
    count += cases.size() + rejected;
    for (const Case &one : cases) classes.insert(coarseClass(one.configuration.knobs));
  }
  if (count == 0) throw Error::checkFailed("{}: holds no kernel to run", file);
  fmt::print(
      "{} of {} kernels agree with the interpreter; {} kinds of configuration; {} runs over an "
      "operand\n",
      count - failures, count, classes.size(), inPlace);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace weft::emulate

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  try {
    return weft::emulate::runFile(argv[1]);
  } catch (const weft::Error &error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
