// weft-interpret FILE.mlir: evaluates graphs with the reference interpreter. Self-checking graphs (without arguments) are
// all run, and some weft.expect_close must be among them; with --against two files' graphs are compared on the same
// random arguments. Exit 1: a check failed; 2: usage, or nothing to check.
#include "ir/Interpreter.h"
#include "ir/Weft.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/SourceMgr.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace {

using namespace weft;

struct Options {
  std::string file, against, graph, precision = "f64";
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
    fmt::print("result {} [{}]: {}{}\n", n, fmt::join(values[n].shape, ", "), fmt::join(all.begin(), last, " "),
               all.size() > shown ? " ..." : "");
  }
}

int compare(GraphOp before, GraphOp after, const Options &options) {
  const std::vector<TensorValue> arguments = randomArguments(before, options.seed);
  const auto expected = interpret(before, arguments, options.interpreter);
  const auto actual = interpret(after, arguments, options.interpreter);
  if (mlir::failed(expected) || mlir::failed(actual)) return 1;
  if (expected->size() != actual->size()) {
    fmt::print(stderr, "{}: {} results before, {} after\n", before.getSymName().str(), expected->size(), actual->size());
    return 1;
  }
  double worst = 0;
  for (size_t n = 0; n < expected->size(); ++n)
    worst = std::max(worst, distance((*actual)[n], (*expected)[n], options.absolute, options.relative));
  fmt::print("{}: eval {}: worst ratio {:.3g} of the tolerance (absolute {}, relative {})\n", before.getSymName().str(),
             worst <= 1 ? "equal" : "differs", worst, options.absolute, options.relative);
  return worst <= 1 ? 0 : 1;
}

int compareFiles(const std::vector<GraphOp> &before, const std::vector<GraphOp> &after, const Options &options) {
  if (before.empty() || before.size() != after.size()) {
    fmt::print(stderr, "{} graphs against {}: nothing to compare one by one\n", before.size(), after.size());
    return 2;
  }
  int status = 0;
  for (size_t n = 0; n < before.size(); ++n) status = std::max(status, compare(before[n], after[n], options));
  return status;
}

/// Runs graphs by themselves: all that take no arguments, and with --random the others too.
int runAll(const std::vector<GraphOp> &graphs, const Options &options) {
  int status = 0, ran = 0, checks = 0;
  for (GraphOp graph : graphs) {
    const bool selfChecking = graph.getArgumentTypes().empty();
    if (!selfChecking && !options.random) continue;
    graph.walk([&](ExpectCloseOp) { ++checks; });
    const auto results = interpret(graph, randomArguments(graph, options.seed), options.interpreter);
    ++ran;
    if (mlir::failed(results)) status = 1;
    else print(*results);
  }
  if (ran == 0) {
    fmt::print(stderr, "no graph to run: give --random SEED for graphs with arguments\n");
    return 2;
  }
  if (checks == 0 && !options.random) {
    fmt::print(stderr, "no weft.expect_close in the graphs that ran: nothing was checked; --random SEED only evaluates\n");
    return 2;
  }
  if (status == 0)
    fmt::print("{} graph{} ran, {} check{} held\n", ran, ran == 1 ? "" : "s", checks, checks == 1 ? "" : "s");
  return status;
}

int run(const Options &options) {
  mlir::DialectRegistry registry;
  registry.insert<WeftDialect>();
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  const auto parse = [&](const std::string &file) { return mlir::parseSourceFile<mlir::ModuleOp>(file, &context); };
  const mlir::OwningOpRef<mlir::ModuleOp> module = parse(options.file);
  if (!module) return 2;
  const std::vector<GraphOp> graphs = graphsOf(*module, options.graph);
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
  app.add_option("--against", options.against, "compare with the graphs of this file on the same arguments");
  app.add_option("--precision", options.precision)->check(CLI::IsMember({"f32", "f64"}));
  app.add_flag("--round", options.interpreter.roundToStorage, "round every value to its element type");
  app.add_option("--absolute", options.absolute, "tolerance of --against");
  app.add_option("--relative", options.relative, "tolerance of --against");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  options.random = random->count() > 0;
  options.interpreter.precision = options.precision == "f32" ? Precision::f32 : Precision::f64;
  return run(options);
}
