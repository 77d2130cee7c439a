#include "tools/driver/ScaledPlan.h"

#include "ir/Interpreter.h"
#include "ir/Weft.h"
#include "kernel/Error.h"
#include "kernel/reference/Rounding.h"
#include "kernel/reference/StoredElement.h"
#include "passes/Describe.h"
#include "models/Models.h"
#include "runtime/Executor.h"
#include "runtime/Files.h"
#include "tools/driver/Compilation.h"
#include "tools/driver/Diagnostics.h"
#include "tools/driver/Emission.h"
#include "tools/driver/PlanParts.h"
#include "tools/driver/ScaledGraph.h"

#include <algorithm>
#include <cmath>

namespace weft::driver {
namespace {

/// A graph argument as its plan tensor stores it, logical row-major.
std::vector<std::byte> stored(const TensorValue &value, const runtime::PlanTensor &tensor) {
  const DType dtype = *parseDType(tensor.dtype);
  std::vector<std::byte> bytes(value.elements.size() * size_t(sizeOf(dtype)));
  for (size_t n = 0; n < value.elements.size(); ++n)
    reference::storeElement(dtype, &bytes[n * size_t(sizeOf(dtype))], reference::roundTo(dtype, value.elements[n]));
  return bytes;
}

std::vector<double> loaded(const std::vector<std::byte> &bytes, DType dtype) {
  std::vector<double> values(bytes.size() / size_t(sizeOf(dtype)));
  for (size_t n = 0; n < values.size(); ++n) values[n] = reference::loadElement(dtype, &bytes[n * size_t(sizeOf(dtype))]);
  return values;
}

/// The names that plans give to a graph's values.
class ValueNames {
public:
  explicit ValueNames(mlir::Operation *graph) : described(describeGraph(graph)) {}
  const std::string &of(mlir::Value value) const {
    const auto at = std::ranges::find(described.tensors, value);
    if (at == described.tensors.end()) throw Error::checkFailed("a value of the graph has no name");
    return described.flow.tensors[size_t(at - described.tensors.begin())].name;
  }

private:
  DescribedOps described;
};

/// A model as it is compiled on small extents.
struct ScaledSource {
  ModelFlags model;
  ChoiceFlags choices;
  Phase first = Phase::import;
  std::map<std::string, int64_t> dims;
};

/// Whether the plan runs in parts, the artifact's says.
ChoiceFlags withoutParts(ChoiceFlags choices) {
  choices.parts = 1;
  return choices;
}

/// The model compiled anew, in memory.
class ScaledModel {
public:
  ScaledModel(const ScaledSource &source, const TargetFlags &target, bool inParts)
      : target(target), compilation(source.model, withoutParts(source.choices), target) {
    compilation.import(source.first);
    const Selected selected = compilation.select(compilation.propose(source.first));
    const select::Selection &selection = selected.best().selection;
    // A plan in parts is checked in parts: of 3 heads or batches one by one, where the small extents leave them aligned.
    for (const int count : {inParts ? 3 : 1, 1}) {
      const Parts parts{.count = count, .prices = &compilation.costModel()};
      try {
        planned = buildPlan(selection.problem(), selection.best(), compilation.costModel().device(), false, &parts);
        return;
      } catch (const Error &error) {
        if (count == 1 || error.kind != ErrorKind::unsupported) throw;
      }
    }
  }

  runtime::Artifact build() {
    planned.plan.model = compilation.description().name;
    planned.plan.device = compilation.costModel().device().name;
    const EmittedPlan emitted = emitKernels(planned, target.architecture(), [](const ChosenKernel &) { return std::vector<std::string>(); });
    BuildSummary summary;
    runtime::Artifact artifact;
    artifact.cubins = buildCubins(planned.plan, emitted, false, {}, summary).cubins;
    if (summary.skipped) throw Error::unsupported("no NVRTC, which the plan on small extents needs; 'weft env' says where it is looked for");
    artifact.plan = planned.plan;
    artifact.sources = emitted.sources;
    return artifact;
  }
  GraphOp graph() const { return *compilation.graph().getOps<GraphOp>().begin(); }

private:
  const TargetFlags &target;
  Compilation compilation;
  PlannedKernels planned;
};

std::vector<TensorValue> interpreted(GraphOp graph, const std::vector<TensorValue> &arguments, uint64_t seed, bool rounded) {
  const InterpreterOptions options{.precision = rounded ? Precision::f32 : Precision::f64, .roundToStorage = rounded, .seed = seed, .step = 0};
  auto results = interpret(graph, arguments, options);
  if (mlir::failed(results)) throw Error::checkFailed("the graph on small extents cannot be interpreted");
  return std::move(*results);
}

/// Share of the largest result that sums of products of 8-bit floats or of tf32 may lose, which the interpreter computes in fp32: of some
/// hundred terms, and of tf32 after some products (ir/SPEC.md, "Contraction").
double productLoss(GraphOp graph) {
  double loss = 0;
  graph.walk([&](ContractOp op) {
    if (op.getPrecision() || (isFloat8(*toDType(op.getA().getType())) && isFloat8(*toDType(op.getB().getType())))) loss = 0x1p-7;
  });
  return loss;
}

ResultCheck compare(const std::string &name, const std::vector<double> &got, const TensorValue &exact, const TensorValue &rounded, DType dtype,
                    double loss) {
  ResultCheck check{.name = name, .elements = int64_t(got.size()), .worst = 0, .bound = 0, .passed = true};
  for (size_t n = 0; n < exact.elements.size(); ++n) {
    const double unit = reference::roundingError(dtype, exact.elements[n]);
    check.bound = std::max({check.bound, 4 * std::abs(rounded.elements[n] - exact.elements[n]), 2 * unit, loss * std::abs(exact.elements[n])});
  }
  for (size_t n = 0; n < exact.elements.size(); ++n) {
    const double difference = got[n] == exact.elements[n] ? 0 : std::abs(got[n] - exact.elements[n]);
    check.passed &= difference <= check.bound;  // false for NaN
    check.worst = std::isnan(difference) || difference > check.worst ? difference : check.worst;
  }
  check.passed &= got.size() == exact.elements.size() && std::isfinite(check.bound);
  return check;
}

/// Which part of the model the plan is: the one that takes the same arguments.
std::string partOf(const runtime::Plan &plan, const TargetFlags &target) {
  std::set<std::string> wanted;
  for (const runtime::PlanTensor &tensor : plan.tensors)
    if (tensor.role == "argument" || tensor.role == "parameter") wanted.insert(tensor.logical);
  for (const char *part : {"layer", "attention"}) {
    ModelFlags flags;
    flags.model = plan.model;
    flags.part = part;
    flags.dtype = plan.dtype;
    Compilation compilation(flags, {}, target);
    compilation.import();
    std::set<std::string> names;
    GraphOp graph = *compilation.graph().getOps<GraphOp>().begin();
    const ValueNames nameOf(graph);
    for (mlir::Value argument : graph.getBody().getArguments()) names.insert(nameOf.of(argument));
    if (std::ranges::includes(names, wanted)) return part;
  }
  throw Error::unsupported("no part of '{}' takes the arguments of this plan", plan.model);
}

/// A preset is built with other dimensions.
ScaledSource presetSource(const runtime::Artifact &artifact, const TargetFlags &target) {
  const runtime::Plan &plan = artifact.plan;
  ScaledSource source{.model = {}, .choices = {}, .dims = scaledDims(plan.dims)};
  source.model.model = plan.model;
  source.model.part = partOf(plan, target);
  source.model.dtype = plan.dtype;
  source.model.tf32 = artifact.graph.find("precision = tf32") != std::string::npos;
  source.model.train = plan.entryPoints.contains("backward");
  for (const auto &[name, extent] : source.dims) source.model.dims.push_back(fmt::format("{}={}", name, extent));
  source.choices.variant = plan.variant;
  if (plan.variant.ends_with("decompose-norms")) source.choices.norms = "decomposed";
  if (plan.variant.ends_with("defer-norms")) source.choices.norms = "deferred";
  return source;
}

/// The most multiplications that the interpreter is asked for: some seconds of it.
constexpr double mostFlop = 4e8;

bool isPreset(const std::string &name) {
  return std::ranges::any_of(models::presets(), [&](const models::Preset &preset) { return preset.name == name; });
}

ScaledSource fileSource(const ScaledGraph &graph, const std::string &name, const runtime::TemporaryFolder &folder) {
  ScaledSource source{.model = {}, .choices = {}, .first = Phase::fuse, .dims = graph.dims};
  source.model.model = folder.path() / (name + ".mlir");
  runtime::writeFile(source.model.model, graph.text);
  return source;
}

/// The artifact's own graph on small extents. Where it holds on to its extents: the preset of that name, with other dimensions; or the
/// graph as it is, if it is small enough.
ScaledSource sourceOf(const runtime::Artifact &artifact, const TargetFlags &target, const runtime::TemporaryFolder &folder) {
  const runtime::Plan &plan = artifact.plan;
  std::string reason;
  try {
    return fileSource(scaledGraph(artifact.graph, plan.dims), plan.model, folder);
  } catch (const Error &error) {
    if (error.kind != ErrorKind::unsupported) throw;
    reason = error.what();
  }
  if (isPreset(plan.model)) return presetSource(artifact, target);
  double flop = 0;
  for (const runtime::PlanKernel &kernel : plan.kernels) flop += kernel.flop;
  if (flop > mostFlop)
    throw Error::unsupported("{}; on these it is {:.1e} operations, more than the {:.0e} that the interpreter is asked for", reason, flop, mostFlop);
  return fileSource(plainGraph(artifact.graph), plan.model, folder);
}

}  // namespace

std::map<std::string, int64_t> scaledDims(const std::map<std::string, int64_t> &dims) {
  const auto at = [&](const char *name) { return dims.contains(name) ? dims.at(name) : 0; };
  std::map<std::string, int64_t> small{{"b", 3}, {"j", 13}, {"p", 8}};
  const int64_t repeat = at("g") > 0 ? at("h") / at("g") : 1;
  small["h"] = repeat == 1 ? 3 : at("g") == 1 ? 3 : 4;
  if (at("g") > 0) small["g"] = repeat == 1 ? 3 : at("g") == 1 ? 1 : 2;
  if (at("k") != at("j")) small["k"] = 21;
  if (at("w") != at("p")) small["w"] = 16;
  if (at("i") > 0) small["i"] = at("i") == at("h") * at("p") ? small["h"] * small["p"] : 40;
  if (at("u") > 0) small["u"] = 56;
  std::erase_if(small, [&](const auto &entry) { return !dims.contains(entry.first); });
  return small;
}

ScaledCheck checkScaled(const runtime::Artifact &artifact, const TargetFlags &target, const runtime::cuda::Context &context, uint64_t seed) {
  const runtime::TemporaryFolder folder(std::filesystem::temp_directory_path() / "weft-verify");
  const ScaledSource source = sourceOf(artifact, target, folder);
  const bool inParts = std::ranges::any_of(artifact.plan.kernels, [](const runtime::PlanKernel &kernel) { return kernel.part.has_value(); });
  ScaledModel model(source, target, inParts);
  GraphOp graph = model.graph();
  const ValueNames nameOf(graph);
  const std::vector<TensorValue> arguments = randomArguments(graph, seed);
  runtime::Executor executor(model.build(), context, {.seed = seed, .step = 0, .folder = "the plan on small extents"});
  executor.poison();
  for (size_t n = 0; n < arguments.size(); ++n) {
    const std::string name = nameOf.of(graph.getBody().getArgument(unsigned(n)));
    for (size_t tensor = 0; tensor < executor.plan().tensors.size(); ++tensor) {
      const runtime::PlanTensor &one = executor.plan().tensors[tensor];
      if (one.logical != name) continue;
      if (one.role == "parameter") executor.setParameter(name, stored(arguments[n], one));
      if (one.role == "argument") executor.write(int(tensor), stored(arguments[n], one));
    }
  }
  const runtime::cuda::Stream stream;
  const runtime::EntryPoint &entry = executor.entryPoint("");
  executor.launch(entry, stream.handle());
  stream.synchronize();

  ScaledCheck check{.dims = source.dims, .kernels = executor.plan().kernels.size(), .results = {}};
  const std::vector<TensorValue> exact = interpreted(graph, arguments, seed, false), rounded = interpreted(graph, arguments, seed, true);
  mlir::Operation *terminator = graph.getBody().front().getTerminator();
  for (size_t n = 0; n < exact.size(); ++n) {
    const std::string name = nameOf.of(terminator->getOperand(unsigned(n)));
    const auto tensor = std::ranges::find_if(entry.outputs, [&](int output) { return executor.plan().tensors[size_t(output)].logical == name; });
    if (tensor == entry.outputs.end()) throw Error::checkFailed("the plan on small extents has no result '{}'", name);
    const DType dtype = *parseDType(executor.plan().tensors[size_t(*tensor)].dtype);
    check.results.push_back(compare(name, loaded(executor.read(*tensor), dtype), exact[n], rounded[n], dtype, productLoss(graph)));
  }
  return check;
}

}  // namespace weft::driver
