// weft-interpret FILE.mlir: evaluates graphs with the reference interpreter. Self-checking graphs
// (without arguments) are all run, and some weft.expect_close must be among them; with --against
// two files' graphs are compared on the same random arguments; with --inputs one graph's results
// are compared with those of a file (--expect) or written (--outputs), as `weft run` reads and
// writes them. Exit 1: a check failed; 2: usage, or nothing to check.
#include "ir/Weft.h"
#include "ir/interpreter/Interpreter.h"
#include "kernel/Error.h"
#include "kernel/Nesting.h"
#include "kernel/reference/StoredElement.h"
#include "passes/Describe.h"
#include "runtime/execute/Safetensors.h"
#include "runtime/system/Files.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace {

using namespace weft;

struct Options {
  std::string file, against, graph, inputs, expected, outputs, precision = "f64";
  uint64_t seed = 1;
  bool random = false;
  double absolute = 1e-4, relative = 1e-4;
  InterpreterOptions interpreter;
};

/// Graphs of a module, or the one that --graph names.
std::vector<GraphOp> graphsOf(mlir::ModuleOp module, const std::string &name) {
  std::vector<GraphOp> graphs;
  for (GraphOp graph : module.getOps<GraphOp>())
    if (name.empty() || graph.getSymName() == name) graphs.push_back(graph);
  return graphs;
}

/// The first elements of each result; a layer's would fill the screen.
void print(const std::vector<TensorValue> &values) {
  constexpr size_t shown = 16;
  for (size_t n = 0; n < values.size(); ++n) {
    const std::vector<double> &all = values[n].elements;
    const auto last = all.begin() + std::ptrdiff_t(std::min(shown, all.size()));
    fmt::print("result {} [{}]: {}{}\n", n, fmt::join(values[n].shape, ", "),
               fmt::join(all.begin(), last, " "), all.size() > shown ? " ..." : "");
  }
}

int compare(GraphOp before, GraphOp after, const Options &options) {
  const std::vector<TensorValue> arguments = randomArguments(before, options.seed);
  const auto expected = interpret(before, arguments, options.interpreter);
  const auto actual = interpret(after, arguments, options.interpreter);
  if (mlir::failed(expected) || mlir::failed(actual)) return 1;
  if (expected->size() != actual->size()) {
    fmt::print(stderr, "{}: {} results before, {} after\n", before.getSymName().str(),
               expected->size(), actual->size());
    return 1;
  }
  double worst = 0;
  for (size_t n = 0; n < expected->size(); ++n)
    worst =
        std::max(worst, distance((*actual)[n], (*expected)[n], options.absolute, options.relative));
  fmt::print("{}: eval {}: worst ratio {:.3g} of the tolerance (absolute {}, relative {})\n",
             before.getSymName().str(), worst <= 1 ? "equal" : "differs", worst, options.absolute,
             options.relative);
  return worst <= 1 ? 0 : 1;
}

int compareFiles(const std::vector<GraphOp> &before, const std::vector<GraphOp> &after,
                 const Options &options) {
  if (before.empty() || before.size() != after.size()) {
    fmt::print(stderr, "{} graphs against {}: nothing to compare one by one\n", before.size(),
               after.size());
    return 2;
  }
  int status = 0;
  for (size_t n = 0; n < before.size(); ++n)
    status = std::max(status, compare(before[n], after[n], options));
  return status;
}

/// Runs graphs by themselves: all that take no arguments, and with --random the others too.
int runAll(const std::vector<GraphOp> &graphs, const Options &options) {
  int status = 0, ran = 0, checks = 0;
  for (GraphOp graph : graphs) {
    const bool selfChecking = graph.getArgumentTypes().empty();
    if (!selfChecking && !options.random) continue;
    graph.walk([&](ExpectCloseOp) { ++checks; });
    const auto results =
        interpret(graph, randomArguments(graph, options.seed), options.interpreter);
    ++ran;
    if (mlir::failed(results)) status = 1;
    else print(*results);
  }
  if (ran == 0) {
    fmt::print(stderr, "no graph to run: give --random SEED for graphs with arguments\n");
    return 2;
  }
  if (checks == 0 && !options.random) {
    fmt::print(stderr,
               "no weft.expect_close in the graphs that ran: nothing was checked; --random SEED "
               "only evaluates\n");
    return 2;
  }
  if (status == 0)
    fmt::print("{} graph{} ran, {} check{} held\n", ran, ran == 1 ? "" : "s", checks,
               checks == 1 ? "" : "s");
  return status;
}

/// The tensor that a file holds for a value, by the name it was written with.
TensorValue read(const runtime::SafetensorsFile &file, mlir::Value value) {
  const std::string name = writtenName(value);
  const DType dtype = *toDType(value.getType());
  PlanTensor wanted{.name = name,
                    .logical = name,
                    .dtype = dtype,
                    .axes = axisNames(value.getType()),
                    .extents = extents(value.getType())};
  file.requireTensor(wanted);
  const std::vector<std::byte> stored = file.read(name);
  TensorValue result{.shape = wanted.extents, .elements = {}};
  for (size_t at = 0; at < stored.size(); at += size_t(sizeOf(dtype)))
    result.elements.push_back(reference::loadElement(dtype, stored.data() + at));
  return result;
}

void write(const std::string &path, mlir::ValueRange values,
           const std::vector<TensorValue> &results) {
  std::vector<runtime::TensorToWrite> tensors;
  for (const auto &[value, result] : llvm::zip(values, results)) {
    const DType dtype = *toDType(value.getType());
    const size_t size = size_t(sizeOf(dtype));
    tensors.push_back({.name = writtenName(value),
                       .dtype = dtype,
                       .shape = result.shape,
                       .elements = std::vector<std::byte>(result.elements.size() * size)});
    for (size_t at = 0; at < result.elements.size(); ++at)
      reference::storeElement(dtype, tensors.back().elements.data() + at * size,
                              result.elements[at]);
  }
  runtime::writeSafetensors(path, tensors);
}

/// One graph on the arguments of a file; its results go to a file, or are compared with those of
/// another.
int runOnFile(GraphOp graph, const Options &options) {
  const runtime::SafetensorsFile inputs(options.inputs);
  mlir::Block &body = graph->getRegion(0).front();
  std::vector<TensorValue> arguments;
  for (mlir::BlockArgument argument : body.getArguments())
    arguments.push_back(read(inputs, argument));
  const auto results = interpret(graph, arguments, options.interpreter);
  if (mlir::failed(results)) return 1;
  if (!options.outputs.empty())
    write(options.outputs, body.getTerminator()->getOperands(), *results);
  if (options.expected.empty()) return 0;
  const runtime::SafetensorsFile expected(options.expected);
  bool equal = true;
  for (const auto &[result, value] : llvm::zip(*results, body.getTerminator()->getOperands())) {
    const double worst =
        distance(read(expected, value), result, options.absolute, options.relative);
    equal &= worst <= 1;  // not a number is no agreement
    fmt::print("{}: {}: worst ratio {:.3g} of the tolerance (absolute {}, relative {})\n",
               writtenName(value), worst <= 1 ? "equal" : "differs", worst, options.absolute,
               options.relative);
  }
  return equal ? 0 : 1;
}

int run(const Options &options) {
  mlir::DialectRegistry registry;
  registry.insert<WeftDialect>();
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  const auto parse = [&](const std::string &file) {
    const std::string text = runtime::readFile(file);
    checkMlirNesting(text, file);
    return mlir::parseSourceString<mlir::ModuleOp>(text, &context, file);
  };
  const mlir::OwningOpRef<mlir::ModuleOp> module = parse(options.file);
  if (!module) return 2;
  const std::vector<GraphOp> graphs = graphsOf(*module, options.graph);
  if (!options.inputs.empty() && (options.outputs + options.expected).empty())
    throw Error::badInput("--inputs: nothing is asked of the results; give --expect or --outputs");
  if (!options.inputs.empty() && graphs.size() == 1) return runOnFile(graphs.front(), options);
  if (!options.inputs.empty())
    throw Error::badInput("{} graphs: --inputs belongs to one, name it with --graph",
                          graphs.size());
  if (options.against.empty()) return runAll(graphs, options);
  const mlir::OwningOpRef<mlir::ModuleOp> other = parse(options.against);
  return other ? compareFiles(graphs, graphsOf(*other, options.graph), options) : 2;
}

}  // namespace

int main(int argc, char **argv) {
  Options options;
  CLI::App app("Evaluates weft graphs with the reference interpreter");
  app.add_option("file", options.file, "a module with weft.graph ops")->required();
  app.add_option("--graph", options.graph, "only the graph of this name");
  CLI::Option *random = app.add_option("--random", options.seed, "seed of random arguments");
  app.add_option("--against", options.against,
                 "compare with the graphs of this file on the same arguments");
  CLI::Option *inputs = app.add_option("--inputs", options.inputs, "arguments, a safetensors file");
  CLI::Option *expected = app.add_option("--expect", options.expected,
                                         "compare the results with this safetensors file");
  CLI::Option *outputs =
      app.add_option("--outputs", options.outputs, "write the results to a safetensors file");
  inputs->excludes("--random")->excludes("--against");
  expected->needs(inputs);
  outputs->needs(inputs);
  app.add_option("--dropout-seed", options.interpreter.seed, "seed of dropout");
  app.add_option("--dropout-step", options.interpreter.step, "step of dropout");
  app.add_option("--precision", options.precision)->check(CLI::IsMember({"f32", "f64"}));
  app.add_flag("--round", options.interpreter.roundToStorage,
               "round every value to its element type");
  app.add_option("--absolute", options.absolute, "tolerance of --against");
  app.add_option("--relative", options.relative, "tolerance of --against");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  options.random = random->count() > 0;
  options.interpreter.precision = options.precision == "f32" ? Precision::f32 : Precision::f64;
  try {
    return run(options);
  } catch (const Error &error) {
    fmt::print(stderr, "weft-interpret: {}\n", error.what());
    return int(error.kind);
  } catch (const std::system_error &error) {
    fmt::print(stderr, "weft-interpret: {}\n", error.what());
    return int(ErrorKind::badInput);
  }
}
