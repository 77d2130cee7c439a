// A plan held to the values of its graph; see PlanWiring.h.
#include "tools/driver/PlanWiring.h"

#include "kernel/Error.h"
#include "kernel/Nearest.h"
#include "passes/configure/FamilyConfigurations.h"
#include "passes/configure/Packing.h"
#include "plan/PlanConfiguration.h"

#include <algorithm>
#include <map>
#include <set>

namespace weft::driver {
namespace {
using Origin = GraphValue::Origin;

/// What a tensor holds: a value, or of one dimension of it the indices from `start` on.
struct Content {
  int value = -1;
  int dimension = -1;  ///< -1: the whole
  int64_t start = 0, size = 0;
  bool isWhole() const { return dimension < 0; }
  bool operator==(const Content &) const = default;
};

/// Whether every element lies where these strides say; along one index no stride is ever taken.
bool isSamePlace(const PlanTensor &tensor, const std::vector<int64_t> &strides) {
  for (size_t dimension = 0; dimension < tensor.extents.size(); ++dimension)
    if (tensor.extents[dimension] > 1 && tensor.strides[dimension] != strides[dimension])
      return false;
  return true;
}

class WiringChecker {
public:
  WiringChecker(const Plan &plan, const GraphWiring &graph, const std::string &where)
      : plan(plan),
        graph(graph),
        where(where),
        regions(regionsOf(plan, graph.regions.size(), where)),
        holds(plan.tensors.size()) {}

  void run() {
    checkCoverage();
    checkGiven();
    for (size_t kernel = 0; kernel < plan.kernels.size(); ++kernel) checkKernel(int(kernel));
    checkResults();
    for (size_t tensor = 0; tensor < plan.tensors.size(); ++tensor)
      if (holds[tensor].value < 0 && !isUnreadWhole(plan.tensors[tensor]))
        fail(placeOf(int(tensor)), "it holds no value of graph.mlir: no kernel reads or writes it");
    checkEntryPoints();
  }

private:
  template <typename... Arguments>
  [[noreturn]] void fail(const std::string &place, fmt::format_string<Arguments...> text,
                         Arguments &&...arguments) const {
    throw Error::badInput("{}: {}: {}", where, place,
                          fmt::format(text, std::forward<Arguments>(arguments)...));
  }
  /// A temporary that chunks write and nobody reads as a whole; nothing else is of its extents.
  bool isUnreadWhole(const PlanTensor &whole) const {
    const auto isWritten = [&](const PlanKernel &kernel) {
      return kernel.chunk && std::ranges::any_of(kernel.outputs, [&](int output) {
               return tensorAt(output).buffer == whole.buffer && holds[size_t(output)].value >= 0;
             });
    };
    const auto isAlike = [&](const PlanTensor &other) {
      return other.buffer == whole.buffer && other.extents == whole.extents;
    };
    return whole.role == TensorRole::temporary && std::ranges::any_of(plan.kernels, isWritten) &&
           std::ranges::count_if(plan.tensors, isAlike) == 1;
  }
  const PlanTensor &tensorAt(int tensor) const { return plan.tensors[size_t(tensor)]; }
  const GraphValue &valueAt(int value) const { return graph.values[size_t(value)]; }
  const GraphRegion &regionOf(int kernel) const { return graph.regions[regions[size_t(kernel)]]; }
  std::string placeOf(int tensor) const {
    return fmt::format("tensors[{}] ({})", tensor, tensorAt(tensor).name);
  }
  std::string placeOfKernel(int kernel) const {
    return fmt::format("kernels[{}] ({})", kernel, plan.kernels[size_t(kernel)].name);
  }

  /// "'scores'", "'scores' from 4 on".
  std::string print(const Content &content) const {
    if (content.value < 0) return "nothing";
    const GraphValue &value = valueAt(content.value);
    if (content.isWhole()) return fmt::format("'{}'", value.name);
    return fmt::format("'{}' at {} = {} to {}", value.name, value.axes[size_t(content.dimension)],
                       content.start, content.start + content.size - 1);
  }

  // --- chunks
  // -----------------------------------------------------------------------------------------------

  static AxisId axisNamed(const Kernel &kernel, const std::string &name) {
    const auto found = std::ranges::find(kernel.axes, name, &Axis::name);
    return found == kernel.axes.end() ? -1 : int(found - kernel.axes.begin());
  }

  /// Of a region that runs in chunks, every index of one axis belongs to one kernel.
  void checkCoverage() const {
    std::map<size_t, std::vector<int>> chunks;
    for (size_t kernel = 0; kernel < plan.kernels.size(); ++kernel)
      if (plan.kernels[kernel].chunk) chunks[regions[kernel]].push_back(int(kernel));
    for (auto &[region, kernels] : chunks) {
      const auto chunkOf = [&](int kernel) -> const PlanChunk & {
        return *plan.kernels[size_t(kernel)].chunk;
      };
      std::ranges::stable_sort(kernels, {}, [&](int kernel) { return chunkOf(kernel).start; });
      const std::string &axis = chunkOf(kernels.front()).axis;
      const Kernel &whole = graph.regions[region].kernel;
      const int number = axisNamed(whole, axis);
      if (number < 0)
        fail(placeOfKernel(kernels.front()), "chunk: kernel '{}' of graph.mlir has no axis {}",
             whole.name, axis);
      const int64_t extent = whole.axes[size_t(number)].extent;
      int64_t next = 0;
      for (const int kernel : kernels) {
        const PlanChunk &chunk = chunkOf(kernel);
        if (chunk.axis != axis)
          fail(placeOfKernel(kernel), "chunk: axis {}, but {} runs on chunks of axis {}",
               chunk.axis, plan.kernels[size_t(kernels.front())].name, axis);
        if (chunk.start != next || chunk.size < 1 || chunk.size > extent - next)
          fail(
              placeOfKernel(kernel),
              "chunk: {} indices of axis {} from {} on, where {} of {} are not covered, from {} on",
              chunk.size, axis, chunk.start, extent - next, extent, next);
        next += chunk.size;
      }
      if (next != extent)
        fail(placeOfKernel(kernels.back()),
             "chunk: nothing covers axis {} of '{}' from {} on, of {} indices", axis, whole.name,
             next, extent);
    }
  }

  /// What a kernel reads or writes of a value, which is `number` of its kernel's values.
  Content contentOf(int kernel, int value, int number) const {
    const std::optional<PlanChunk> &chunk = plan.kernels[size_t(kernel)].chunk;
    if (!chunk) return {.value = value};
    const Kernel &whole = regionOf(kernel).kernel;
    const std::vector<AxisId> &axes = whole.values[size_t(number)].axes;
    const auto found = std::ranges::find(axes, axisNamed(whole, chunk->axis));
    if (found == axes.end()) return {.value = value};
    return {.value = value,
            .dimension = int(found - axes.begin()),
            .start = chunk->start,
            .size = chunk->size};
  }

  bool isPartOf(int chunk, int whole, const Content &content) const {
    const PlanTensor &one = tensorAt(chunk), &all = tensorAt(whole);
    return one.buffer == all.buffer && isSamePlace(one, all.strides) &&
           one.offset == all.offset + content.start * all.strides[size_t(content.dimension)];
  }

  // --- values
  // -----------------------------------------------------------------------------------------------

  void checkType(int index, const Content &content) const {
    const PlanTensor &tensor = tensorAt(index);
    const GraphValue &value = valueAt(content.value);
    std::vector<int64_t> extents = value.extents;
    if (!content.isWhole()) extents[size_t(content.dimension)] = content.size;
    if (tensor.extents != extents)
      fail(placeOf(index),
           "tensor '{}' has extents [{}], but [{}] in graph.mlir; extents are changed by compiling "
           "again with --dim",
           tensor.name, fmt::join(tensor.extents, ", "), fmt::join(extents, ", "));
    if (tensor.dtype != value.dtype)
      fail(placeOf(index),
           "tensor '{}' has dtype {}, but {} in graph.mlir; element types are changed by compiling "
           "again with --dtype",
           tensor.name, nameOf(tensor.dtype), nameOf(value.dtype));
    if (tensor.axes != value.axes)
      fail(placeOf(index), "tensor '{}' has axes {}, but {} in graph.mlir", tensor.name,
           fmt::join(tensor.axes, ","), fmt::join(value.axes, ","));
  }

  bool isNamed(const GraphValue &value, const std::string &name) const {
    if (value.name == name) return true;
    return isNumberedName(value.name, name) &&
           std::ranges::none_of(graph.values,
                                [&](const GraphValue &other) { return other.name == name; });
  }

  void hold(int index, const Content &content) {
    const PlanTensor &tensor = tensorAt(index);
    checkType(index, content);
    if (!isNamed(valueAt(content.value), tensor.logical))
      fail(placeOf(index), "it is named '{}', but holds {} of graph.mlir", tensor.logical,
           print(content));
    if (!tensor.name.starts_with(tensor.logical))
      fail(placeOf(index), "its name does not begin with that of '{}' in graph.mlir",
           tensor.logical);
    holds[size_t(index)] = content;
  }

  static std::string startOf(const std::optional<InitialValue> &initial) {
    return initial ? text(*initial) : "nothing";
  }

  /// Arguments and parameters are those of the graph that have their names.
  void checkGiven() {
    std::vector<std::string> names;
    for (const GraphValue &value : graph.values)
      if (value.origin == Origin::argument || value.origin == Origin::parameter)
        names.push_back(value.name);
    for (size_t index = 0; index < plan.tensors.size(); ++index) {
      const PlanTensor &tensor = plan.tensors[index];
      if (!isGiven(tensor.role)) continue;
      const Origin origin =
          tensor.role == TensorRole::argument ? Origin::argument : Origin::parameter;
      const auto value = std::ranges::find_if(graph.values, [&](const GraphValue &one) {
        return one.name == tensor.logical && one.origin == origin;
      });
      if (value == graph.values.end())
        fail(placeOf(int(index)), "graph.mlir has no {} '{}'{}", nameOf(tensor.role),
             tensor.logical, nearestAndKnown(tensor.logical, names));
      hold(int(index), {.value = int(value - graph.values.begin())});
      if (tensor.role == TensorRole::argument && tensor.initial != value->initial)
        fail(placeOf(int(index)),
             "tensor '{}' starts from {}, but from {} in graph.mlir; compile again with the "
             "attribute weft.initial changed",
             tensor.name, startOf(tensor.initial), startOf(value->initial));
      if (tensor.masterOf != value->masterOf)
        fail(placeOf(int(index)), "masterOf is '{}', but '{}' in graph.mlir", tensor.masterOf,
             value->masterOf);
      if (tensor.role == TensorRole::argument && tensor.training != value->training)
        fail(placeOf(int(index)), "training is '{}', but '{}' in graph.mlir",
             nameOf(tensor.training), nameOf(value->training));
      if (tensor.layer != value->layer)
        fail(placeOf(int(index)), "layer is {}, but {} in graph.mlir", tensor.layer, value->layer);
    }
    for (size_t value = 0; value < graph.values.size(); ++value)
      if (graph.values[value].origin == Origin::argument &&
          std::ranges::find(holds, Content{.value = int(value)}) == holds.end())
        fail("tensors", "none is the argument '{}' of graph.mlir", graph.values[value].name);
  }

  void checkKernel(int index) {
    const PlanKernel &kernel = plan.kernels[size_t(index)];
    const GraphRegion &region = regionOf(index);
    if (kernel.inputs.size() != region.operands.size() ||
        kernel.outputs.size() != region.results.size())
      fail(placeOfKernel(index),
           "kernel '{}' has {} inputs and {} outputs, but {} and {} in graph.mlir", kernel.name,
           kernel.inputs.size(), kernel.outputs.size(), region.operands.size(),
           region.results.size());
    for (size_t input = 0; input < kernel.inputs.size(); ++input)
      read(fmt::format("{}: input {}", placeOfKernel(index), input), kernel.inputs[input],
           contentOf(index, region.operands[input], region.kernel.inputs[input]));
    for (size_t output = 0; output < kernel.outputs.size(); ++output) {
      const Content content =
          contentOf(index, region.results[output], region.kernel.outputs[output]);
      const std::string place = fmt::format("{}: output {}", placeOfKernel(index), output);
      if (kernel.chunk && content.isWhole())
        fail(place, "every chunk would write {}", print(content));
      if (holds[size_t(kernel.outputs[output])].value >= 0)
        fail(place, "is tensor '{}', which holds {}, but {} in graph.mlir",
             tensorAt(kernel.outputs[output]).name, print(holds[size_t(kernel.outputs[output])]),
             print(content));
      hold(kernel.outputs[output], content);
    }
    if (kernel.knobs != PlanKnobs() && FamilyId(kernel.knobs.knobs.family()).isView())
      checkView(index);
  }

  /// A tensor that a kernel reads, or that is returned, holds this: because it was given or
  /// written, or since it is chunk or whole of what was.
  void read(const std::string &place, int tensor, const Content &content) {
    const Content &held = holds[size_t(tensor)];
    if (held.value >= 0 && held != content)
      fail(place, "is tensor '{}', which holds {}, but {} in graph.mlir", tensorAt(tensor).name,
           print(held), print(content));
    if (held.value >= 0) return;
    if (!isAlias(tensor, content))
      fail(place, "is tensor '{}', but {} in graph.mlir, of which it is neither written nor a view",
           tensorAt(tensor).name, print(content));
    hold(tensor, content);
  }

  bool isAlias(int tensor, const Content &content) {
    const bool isPacked = valueAt(content.value).origin == Origin::packed;
    if (!content.isWhole()) {
      const Content all{.value = content.value};
      for (size_t whole = 0; whole < holds.size(); ++whole) {
        const bool mayBeRead = holds[whole] == all || (isPacked && mayHoldPacked(whole, all));
        if (!mayBeRead || !isPartOf(tensor, int(whole), content)) continue;
        if (holds[whole].value < 0) read(placeOf(int(whole)), int(whole), all);
        return true;
      }
      return false;
    }
    if (isPacked) {
      checkType(tensor, content);
      const Layout layout{.order = tensorAt(tensor).order,
                          .strides = tensorAt(tensor).strides,
                          .offset = tensorAt(tensor).offset};
      checkPacked(tensor, content.value, layout);
      return true;
    }
    return isJoined(tensor, content);
  }

  /// Whether a tensor that nobody reads as a whole stands for a packed value whose chunks are read.
  bool mayHoldPacked(size_t tensor, const Content &all) const {
    const GraphValue &value = valueAt(all.value);
    const PlanTensor &one = plan.tensors[tensor];
    return holds[tensor].value < 0 && one.extents == value.extents && isNamed(value, one.logical);
  }

  /// Whether chunks that were written are all of a tensor.
  bool isJoined(int tensor, const Content &whole) const {
    std::map<int64_t, int64_t> sizes;  // by start
    int dimension = -1;
    for (size_t chunk = 0; chunk < holds.size(); ++chunk) {
      const Content &content = holds[chunk];
      if (content.value != whole.value || content.isWhole() ||
          !isPartOf(int(chunk), tensor, content))
        continue;
      if (dimension >= 0 && content.dimension != dimension) return false;
      dimension = content.dimension;
      sizes.emplace(content.start, content.size);
    }
    int64_t next = 0;
    for (const auto &[start, size] : sizes) {
      if (start != next) return false;
      next = start + size;
    }
    return dimension >= 0 && next == valueAt(whole.value).extents[size_t(dimension)];
  }

  /// Parameters lie where the packed value, which lies in `layout`, has them.
  void checkPacked(int tensor, int value, const Layout &layout) const {
    const GraphRegion &packing = graph.packings[size_t(valueAt(value).packing)];
    const std::vector<Layout> places = packedOperands(packing.kernel, layout);
    for (size_t operand = 0; operand < places.size(); ++operand) {
      const int source = packing.operands[operand];
      if (valueAt(source).origin == Origin::packed) {
        checkPacked(tensor, source, places[operand]);
        continue;
      }
      const auto isThere = [&](size_t chunk) {
        const PlanTensor &one = plan.tensors[chunk];
        return holds[chunk] == Content{.value = source} && one.buffer == tensorAt(tensor).buffer &&
               one.offset == places[operand].offset && isSamePlace(one, places[operand].strides);
      };
      bool isLoaded = false;
      for (size_t chunk = 0; chunk < plan.tensors.size() && !isLoaded; ++chunk)
        isLoaded = isThere(chunk);
      if (!isLoaded)
        fail(placeOf(tensor),
             "it is packed of parameters, but '{}' is not loaded where it is read (buffer {}, "
             "offset {})",
             valueAt(source).name, tensorAt(tensor).buffer, places[operand].offset);
    }
  }

  /// Nothing runs: what a view gives lies in the memory of what it is given, at the place that its
  /// op says.
  void checkView(int index) const {
    const PlanKernel &kernel = plan.kernels[size_t(index)];
    for (const std::vector<int> *tensors : {&kernel.inputs, &kernel.outputs})
      for (const int tensor : *tensors)
        if (const int first = kernel.inputs.front();
            tensorAt(tensor).buffer != tensorAt(first).buffer)
          fail(placeOfKernel(index),
               "a view of '{}', which lies in buffer {}, but '{}' lies in buffer {}",
               tensorAt(first).name, tensorAt(first).buffer, tensorAt(tensor).name,
               tensorAt(tensor).buffer);
    const Configuration configuration = configurationOf(plan, kernel, regionOf(index).kernel);
    if (!isLegal(regionOf(index).kernel, configuration, findDevice(plan.device)))
      fail(placeOfKernel(index),
           "a view, but '{}' does not lie where these offsets and strides have it",
           tensorAt(kernel.outputs.front()).name);
  }

  /// What is returned is a result, or an argument itself, and nothing else is a result.
  void checkResults() {
    std::set<int> found;
    for (size_t index = 0; index < plan.tensors.size(); ++index) {
      const PlanTensor &tensor = plan.tensors[index];
      if (tensor.role != TensorRole::result) continue;
      if (holds[index].value < 0)
        for (const int value : graph.returned)
          if (isNamed(valueAt(value), tensor.logical)) {
            read(placeOf(int(index)), int(index), {.value = value});
            break;
          }
      const Content &content = holds[index];
      if (!content.isWhole() || std::ranges::count(graph.returned, content.value) == 0)
        fail(placeOf(int(index)), "it is a result, but graph.mlir does not return {}",
             print(content));
      if (!found.insert(content.value).second)
        fail(placeOf(int(index)), "'{}' is a result already", valueAt(content.value).name);
      if (tensor.nextOf != valueAt(content.value).nextOf)
        fail(placeOf(int(index)), "nextOf is '{}', but '{}' in graph.mlir", tensor.nextOf,
             valueAt(content.value).nextOf);
      if (tensor.training != valueAt(content.value).training)
        fail(placeOf(int(index)), "training is '{}', but '{}' in graph.mlir",
             nameOf(tensor.training), nameOf(valueAt(content.value).training));
    }
    for (const int value : graph.returned)
      if (valueAt(value).origin == Origin::computed && !found.contains(value))
        fail("tensors", "none is the result '{}' of graph.mlir", valueAt(value).name);
  }

  /// A transpose may stand where its value is made or where it is read.
  void checkEntryPoints() const {
    for (const auto &[kind, kernels] : plan.entryPoints)
      for (const int kernel : kernels)
        if (const GraphRegion &region = regionOf(kernel);
            !region.isTranspose && region.entryPoint && *region.entryPoint != kind)
          fail(fmt::format("entryPoints.{}", nameOf(kind)),
               "kernel {} ({}) belongs to {} in graph.mlir", kernel,
               plan.kernels[size_t(kernel)].name, nameOf(*region.entryPoint));
  }

  const Plan &plan;
  const GraphWiring &graph;
  const std::string &where;
  const std::vector<size_t> regions;  ///< by kernel
  std::vector<Content> holds;         ///< by tensor
};

}  // namespace

bool isNumberedName(std::string_view inGraph, std::string_view inPlan) {
  return inGraph.size() > inPlan.size() + 1 && inGraph.starts_with(inPlan) &&
         inGraph[inPlan.size()] == '_' &&
         inGraph.find_first_not_of("0123456789", inPlan.size() + 1) == std::string_view::npos;
}

std::vector<size_t> regionsOf(const Plan &plan, size_t inGraph, const std::string &where) {
  std::set<size_t> named;
  for (const PlanKernel &kernel : plan.kernels)
    if (kernel.chunk && kernel.chunk->region >= 0 && size_t(kernel.chunk->region) < inGraph)
      named.insert(size_t(kernel.chunk->region));
    else if (kernel.chunk)
      throw Error::badInput("{}: kernel '{}' is a chunk of kernel {}, and graph.mlir holds {}",
                            where, kernel.name, kernel.chunk->region, inGraph);
  std::vector<size_t> regions;
  size_t next = 0;
  for (const PlanKernel &kernel : plan.kernels) {
    while (!kernel.chunk && named.contains(next)) ++next;
    regions.push_back(kernel.chunk ? size_t(kernel.chunk->region) : next++);
  }
  while (named.contains(next)) ++next;
  if (next != inGraph)
    throw Error::badInput("{}: graph.mlir holds {} kernels, plan.json {}", where, inGraph,
                          plan.kernels.size());
  return regions;
}

void checkWiring(const Plan &plan, const GraphWiring &graph, const std::string &where) {
  WiringChecker(plan, graph, where).run();
}

}  // namespace weft::driver
