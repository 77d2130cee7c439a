// Kernels of the scaled graph with the plan's tensors and knobs; see ScaledPlan.h.
#include "tools/driver/ScaledPlan.h"

#include "kernel/AxisRole.h"
#include "kernel/Error.h"
#include "passes/decide/NearestConfiguration.h"
#include "plan/Buffers.h"
#include "plan/PlanChunks.h"
#include "plan/PlanMemory.h"
#include "plan/TensorLayout.h"
#include "runtime/artifact/Artifact.h"
#include "tools/driver/PlanWiring.h"
#include "tools/driver/ScaledTensors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace weft::driver {
namespace {

/// The most operations that the interpreter is asked for, some seconds of it; more where chunks and
/// boxes of rows leave no fewer.
constexpr std::array mostFlop = {4e8, 8e8, 1.6e9};

/// How many indices the whole of a chunked kernel has along the axis, by its region.
std::map<int, int64_t> chunkedExtents(const Plan &plan) {
  std::map<int, int64_t> extents;
  for (const PlanKernel &kernel : plan.kernels)
    if (kernel.chunk) extents[kernel.chunk->region] += kernel.chunk->size;
  return extents;
}

class PlanScaling {
public:
  PlanScaling(const runtime::Artifact &artifact, const Scaling &scaling)
      : scaling(scaling),
        device(findDevice(artifact.plan.device)),
        chunked(chunkedExtents(artifact.plan)) {
    result.planned.plan = artifact.plan;
    result.graph = scaledGraph(artifact.graph, scaling);
    result.dims = scaling.extents();
  }

  ScaledPlan run() {
    addKernels();
    scaleTensors(plan, extents());
    for (size_t index = 0; index < plan.kernels.size(); ++index) {
      checkAlignment(plan.kernels[index]);
      if (std::optional<decision::OtherKnobs> other =
              decision::configureAgain(result.planned, index, device, printDims(result.dims)))
        result.others.push_back(std::move(*other));
      resizeWorkspace(plan, plan.kernels[index],
                      workspaceBytesOf(result.planned.kernels[index].kernel,
                                       result.planned.kernels[index].configuration));
    }
    for (const auto &[name, extent] : result.dims) plan.dims[name] = extent;
    plan.measurement.reset();
    plan.workspaceBytes = PlanMemory(plan).bytes(BufferKind::temporary);
    if (Expected<void> apart = checkOverwriting(result.planned, "the plan on small extents");
        !apart)
      throw std::move(apart.error());
    return std::move(result);
  }

private:
  void addKernels() {
    const std::vector<size_t> regions = regionsOf(plan, result.graph.kernels.size(), "plan.json");
    for (size_t index = 0; index < plan.kernels.size(); ++index) {
      PlanKernel &entry = plan.kernels[index];
      ChosenKernel chosen{.kernel = result.graph.kernels[regions[index]],
                          .configuration = {},
                          .cost = {},
                          .proposal = {},
                          .graphOps = {}};
      if (entry.chunk) takeChunk(entry, chosen.kernel);
      if (chosen.kernel.inputs.size() != entry.inputs.size() ||
          chosen.kernel.outputs.size() != entry.outputs.size())
        throw Error::checkFailed("kernel '{}' has other operands in graph.mlir than in plan.json",
                                 entry.name);
      chosen.kernel.name = entry.name;
      entry.cubin.clear();
      for (const BodyOp &op : chosen.kernel.body) result.flop += op.flop;
      result.planned.kernels.push_back(std::move(chosen));
    }
  }

  /// The same chunk of the small axis.
  void takeChunk(PlanKernel &entry, Kernel &kernel) const {
    const auto axis = std::ranges::find(kernel.axes, entry.chunk->axis, &Axis::name);
    if (axis == kernel.axes.end())
      throw Error::checkFailed("kernel '{}' has no axis {}", entry.name, entry.chunk->axis);
    const int64_t whole = chunked.at(entry.chunk->region);
    const auto scaled = [&](int64_t index) {
      if (index * axis->extent % whole != 0)
        throw Error::unsupported(
            "chunk '{}' begins or ends within an index of the {} along axis {}", entry.name,
            axis->extent, axis->name);
      return index * axis->extent / whole;
    };
    entry.chunk->start = scaled(entry.chunk->start);
    entry.chunk->size = scaled(entry.chunk->size);
    kernel = onChunk(kernel, entry.chunk->axis, entry.chunk->start, entry.chunk->size);
    entry.name = wholeName(entry) + chunkSuffix(entry.chunk->axis, entry.chunk->start);
  }

  /// As the kernels have them; of the operands of a packed parameter, which no kernel touches, by
  /// their axes.
  TensorExtents extents() const {
    TensorExtents known(plan.tensors.size());
    const auto take = [&](int tensor, const Kernel &kernel, ValueId value) {
      std::vector<int64_t> asked;
      for (const AxisId axis : kernel.values[size_t(value)].axes)
        asked.push_back(kernel.axes[size_t(axis)].extent);
      std::vector<int64_t> &one = known[size_t(tensor)];
      if (one.empty()) one = asked;
      if (one != asked || asked.size() != plan.tensors[size_t(tensor)].extents.size())
        throw Error::checkFailed(
            "kernel '{}' takes '{}' with extents [{}], other kernels with [{}]", kernel.name,
            plan.tensors[size_t(tensor)].name, fmt::join(asked, ", "), fmt::join(one, ", "));
    };
    for (size_t index = 0; index < plan.kernels.size(); ++index) {
      const PlanKernel &entry = plan.kernels[index];
      const Kernel &kernel = result.planned.kernels[index].kernel;
      for (size_t n = 0; n < entry.inputs.size(); ++n)
        take(entry.inputs[n], kernel, kernel.inputs[n]);
      for (size_t n = 0; n < entry.outputs.size(); ++n)
        take(entry.outputs[n], kernel, kernel.outputs[n]);
    }
    for (size_t index = 0; index < known.size(); ++index)
      for (size_t d = known[index].size(); d < plan.tensors[index].extents.size(); ++d)
        known[index].push_back(
            scaling.extent(plan.tensors[index].axes[d], plan.tensors[index].extents[d]));
    return known;
  }

  /// Every kernel is promised operands that begin at multiples of 16 bytes.
  void checkAlignment(const PlanKernel &kernel) const {
    constexpr int64_t promised = 16;
    if (isView(kernel)) return;
    for (const std::vector<int> *tensors : {&kernel.inputs, &kernel.outputs})
      for (const int tensor : *tensors)
        if (const PlanTensor &one = plan.tensors[size_t(tensor)];
            one.offset * elementBytes(one) % promised != 0)
          throw Error::unsupported("'{}' begins at no multiple of {} bytes at {}", one.name,
                                   promised, printDims(result.dims));
  }

  const Scaling &scaling;
  const Device device;
  const std::map<int, int64_t> chunked;
  ScaledPlan result;
  Plan &plan = result.planned.plan;
};

/// The largest odd multiple of `step` up to `most` that is below the extent; the extent itself
/// where there is none.
int64_t oddMultiple(int64_t extent, int64_t step, int64_t most) {
  const int64_t limit = std::min(most, extent - 1) / step;
  return limit < 1 ? extent : (limit % 2 == 1 ? limit : limit - 1) * step;
}

/// Into how many chunks an axis is cut, and whether they have more than one index.
struct Chunks {
  int64_t count = 0;
  bool isLong = false;
};

std::map<std::string, Chunks> chunksByAxis(const Plan &plan) {
  std::map<std::string, std::map<int, Chunks>> byRegion;
  for (const PlanKernel &kernel : plan.kernels)
    if (kernel.chunk) {
      Chunks &chunks = byRegion[kernel.chunk->axis][kernel.chunk->region];
      ++chunks.count;
      chunks.isLong |= kernel.chunk->size > 1;
    }
  std::map<std::string, Chunks> result;
  for (const auto &[axis, regions] : byRegion)
    for (const auto &[region, chunks] : regions)
      if (chunks.count > result[axis].count) result[axis] = chunks;
  return result;
}

/// Whether the elements of a head run along the axis.
bool isInHead(std::string_view axis) {
  const std::optional<AxisRole> role = axisRoleNamed(axis);
  return role == AxisRole::headSize || role == AxisRole::valueSize;
}

}  // namespace

std::string printDims(const Dims &dims) {
  std::vector<std::string> texts;
  for (const auto &[name, extent] : dims) texts.push_back(fmt::format("{}={}", name, extent));
  return texts.empty() ? "its own extents" : fmt::format("{}", fmt::join(texts, " "));
}

ScaledPlan scaledPlan(const runtime::Artifact &artifact, const Scaling &scaling) {
  return PlanScaling(artifact, scaling).run();
}

Dims smallDims(const Plan &plan, int64_t step, int64_t longest, int64_t sequences) {
  using enum AxisRole;
  const auto at = [&](const std::string &name) {
    return plan.dims.contains(name) ? plan.dims.at(name) : 0;
  };
  const auto own = [&](AxisRole role) { return at(std::string(letterOf(role))); };
  const int64_t repeat = own(keyHeads) > 0 ? own(heads) / own(keyHeads) : 1;
  Dims small;
  const auto of = [&](AxisRole role) -> int64_t & { return small[std::string(letterOf(role))]; };
  of(batch) = sequences;
  of(queries) = oddMultiple(own(queries), step, longest + 2 * step);
  of(headSize) = oddMultiple(own(headSize), step, std::max(step, longest / 5));
  of(heads) = repeat == 1 || own(keyHeads) == 1 ? 3 : 4;
  if (own(keyHeads) > 0) of(keyHeads) = repeat == 1 ? 3 : own(keyHeads) == 1 ? 1 : 2;
  if (own(keys) != own(queries)) of(keys) = oddMultiple(own(keys), step, longest + 4 * step);
  if (own(memoryPositions) != own(queries))
    of(memoryPositions) = oddMultiple(own(memoryPositions), step, longest + 2 * step);
  if (own(valueSize) != own(headSize))
    of(valueSize) = oddMultiple(own(valueSize), step, std::max(step, longest / 5));
  for (const auto &[axis, chunks] : chunksByAxis(plan))
    // Elements of a head lie next to each other: chunks of them begin at whole vectors.
    small[axis] = chunks.count * (!chunks.isLong   ? 1
                                  : isInHead(axis) ? std::max<int64_t>(2, step)
                                                   : 2);
  for (auto &[name, extent] : small) extent = std::min(extent, at(name));
  if (own(pagePositions) > 0) {  // caches of pages, which stay as long as they are
    of(pagesOfSequence) =
        std::min((of(keys) + own(pagePositions) - 1) / own(pagePositions), own(pagesOfSequence));
    of(keys) = of(pagesOfSequence) * own(pagePositions);
    of(pages) = std::min(of(batch) * of(pagesOfSequence), own(pages));
  }
  of(hidden) = own(hidden) == own(heads) * own(headSize)
                   ? of(heads) * of(headSize)
                   : oddMultiple(own(hidden), step, std::max(step, longest / 2));
  of(feedForward) = own(feedForward) == own(hidden)
                        ? of(hidden)
                        : oddMultiple(own(feedForward), step, std::max(step, longest * 3 / 2));
  if (own(globalPositions) > 0) {  // of the positions, the first ones that see all, and the others
    of(globalPositions) =
        std::min(oddMultiple(own(globalPositions), step, std::max(step, longest / 5)),
                 std::max<int64_t>(1, of(queries) - 1));
    of(otherPositions) = of(queries) - of(globalPositions);
  }
  // A vocabulary of a published model would be most of the work.
  constexpr int64_t shortVocabulary = 1024;
  if (own(vocabulary) > shortVocabulary)
    of(vocabulary) = oddMultiple(own(vocabulary), step, std::max(step, longest * 3 / 2));
  std::erase_if(small, [&](const auto &entry) { return !plan.dims.contains(entry.first); });
  return small;
}

ScaledPlan scaledPlan(const runtime::Artifact &artifact) {
  const Plan &plan = artifact.plan;
  std::optional<ScaledPlan> best;
  std::string reason;
  const auto attempt = [&](const Dims &small, double most) {
    try {
      ScaledPlan one = scaledPlan(artifact, Scaling(plan.dims, small));
      if (one.flop > most) {
        reason = fmt::format(
            "at {} it is {:.1e} operations, more than the {:.0e} that the interpreter is asked for",
            printDims(one.dims), one.flop, most);
        return false;
      }
      if (!best || one.others.size() < best->others.size()) best = std::move(one);
      return true;
    } catch (const Error &error) {
      if (error.kind == ErrorKind::checkFailed) throw;
      reason = error.what();
      return false;
    }
  };
  const auto attemptAll = [&](double most) {
    for (const int64_t step : {1, 8, 16, 32, 64}) {
      for (const int64_t batch :
           {3, 4, 8})  // boxes of rows of several strides are of whole batches
        for (const int64_t longest : {128, 40})  // beyond a tile of 128, or less work
          if (attempt(smallDims(plan, step, longest, batch), most)) break;
      if (best && best->others.empty()) return;
    }
  };
  for (const double most : mostFlop)
    if (!best) attemptAll(most);
  const std::string small = reason;
  if (!best && attempt({}, mostFlop.front())) best->unscaled = small;
  if (!best) throw Error::unsupported("on small extents: {}; {}", small, reason);
  return std::move(*best);
}

}  // namespace weft::driver
