// Launching: the first time kernel by kernel under a watchdog, then as a captured graph.
#include "runtime/execute/Executor.h"

#include "kernel/Error.h"
#include "plan/TensorLayout.h"
#include "runtime/cuda/Nvtx.h"

#include <algorithm>

namespace weft::runtime {

namespace {

constexpr cuda::DevicePointer pointerAlignment = 16;  // bytes; the widest load of a kernel
constexpr cuda::DevicePointer stepOffset = 8;         // of the step in weft::DropoutKey

std::vector<int> externalsOf(const EntryPoint &entry) {
  std::vector<int> tensors = entry.inputs;
  tensors.insert(tensors.end(), entry.outputs.begin(), entry.outputs.end());
  return tensors;
}

}  // namespace

void Executor::checkCall(const EntryPoint &entry,
                         std::span<const cuda::DevicePointer> pointers) const {
  if (!missingParameters.empty())
    throw Error::badInput("parameters that were never set: {}", fmt::join(missingParameters, ", "));
  const std::vector<int> tensors = externalsOf(entry);
  if (pointers.size() != tensors.size())
    throw Error::badInput("entry point {} takes {} inputs and {} outputs, {} pointers were given",
                          entry.name, entry.inputs.size(), entry.outputs.size(), pointers.size());
  for (size_t index = 0; index < tensors.size(); ++index)
    if (pointers[index] == 0 || pointers[index] % pointerAlignment != 0)
      throw Error::badInput("the pointer to '{}', {:#x}, is no multiple of {} bytes",
                            plan().tensors[size_t(tensors[index])].name, pointers[index],
                            pointerAlignment);
  for (size_t result = entry.inputs.size(); result < tensors.size(); ++result)
    for (size_t other = 0; other < result; ++other) {
      const PlanTensor &one = plan().tensors[size_t(tensors[result])],
                       &another = plan().tensors[size_t(tensors[other])];
      const auto end = [&](size_t index, const PlanTensor &tensor) {
        return pointers[index] + cuda::DevicePointer(spanBytes(tensor));
      };
      if (pointers[result] < end(other, another) && pointers[other] < end(result, one))
        throw Error::badInput("the memory of the result '{}' overlaps that of '{}'", one.name,
                              another.name);
    }
}

std::vector<cuda::DevicePointer> Executor::bind(
    const EntryPoint &entry, std::span<const cuda::DevicePointer> pointers) const {
  std::vector<cuda::DevicePointer> bound = ownBuffers;
  const std::vector<int> tensors = externalsOf(entry);
  for (size_t index = 0; index < tensors.size(); ++index)
    if (layout.isDirect(tensors[index]))
      bound[size_t(plan().tensors[size_t(tensors[index])].buffer)] = pointers[index];
  placeInResults(bound);
  return bound;
}

/// Arguments and results that share a buffer with others are copied, the others stay where the
/// caller has them.
void Executor::moveStaged(const EntryPoint &entry, std::span<const cuda::DevicePointer> pointers,
                          bool in, cuda::StreamHandle *stream) const {
  const std::vector<int> tensors = externalsOf(entry);
  for (size_t index = in ? 0 : entry.inputs.size();
       index < (in ? entry.inputs.size() : tensors.size()); ++index) {
    if (layout.isDirect(tensors[index])) continue;
    const PlanTensor &tensor = plan().tensors[size_t(tensors[index])];
    const cuda::DevicePointer own = ownPointer(tensors[index]), callers = pointers[index];
    if (own == callers) continue;
    if (spanBytes(tensor) != logicalBytes(tensor))
      throw Error::unsupported(
          "'{}' is a strided view in the plan's memory; a caller's buffer is contiguous",
          tensor.name);
    cuda::copyAsync(in ? own : callers, in ? callers : own, logicalBytes(tensor), stream);
  }
}

void Executor::enqueueNamed(int kernel, const Bindings &bound, cuda::StreamHandle *stream) const {
  const nvtx::Range range(plan().kernels[size_t(kernel)].name);
  kernels[size_t(kernel)]->enqueue(bound, stream);
}

void Executor::watch(int kernel, const Bindings &bound, cuda::StreamHandle *stream) {
  const std::string &name = plan().kernels[size_t(kernel)].name;
  const std::string replay =
      fmt::format("run it alone: weft-run {} --kernel {}", options.folder, name);
  try {
    enqueueNamed(kernel, bound, stream);
    awaitWithin(stream, options.firstLaunchLimit, [&] {
      options.onHang(fmt::format("weft: error: kernel {} hangs: not finished after {:.1f} s; {}",
                                 name, 1e-3 * double(options.firstLaunchLimit.count()), replay));
    });
  } catch (const cuda::DriverError &error) {
    throw cuda::DriverError(error.kind, error.result,
                            fmt::format("kernel {}: {}; {}", name, error.what(), replay));
  }
  watched.insert(kernel);
}

void Executor::enqueue(const EntryPoint &entry, std::span<const cuda::DevicePointer> pointers,
                       bool isWatched, cuda::StreamHandle *stream) {
  const std::vector<cuda::DevicePointer> bound = bind(entry, pointers);
  moveStaged(entry, pointers, true, stream);
  if (plan().concurrent && !isWatched) enqueueConcurrent(entry, bindings(bound), stream);
  else enqueueInOrder(entry, bindings(bound), isWatched, stream);
  moveStaged(entry, pointers, false, stream);
}

void Executor::enqueueInOrder(const EntryPoint &entry, const Bindings &bound, bool isWatched,
                              cuda::StreamHandle *stream) {
  Bindings own = bound;
  for (const int kernel : entry.kernels) {
    if (!kernels[size_t(kernel)]) continue;
    if (isWatched) watch(kernel, bound, stream);
    else enqueueNamed(kernel, own, stream);
    own.isBehindEarly =
        plan().kernels[size_t(kernel)].startsEarly;  // which lets the next one start, too
  }
}

/// On a stream that is captured. What comes behind waits for all of it, as it stood.
void Executor::enqueueConcurrent(const EntryPoint &entry, const Bindings &bound,
                                 cuda::StreamHandle *stream) const {
  const auto isLaunched = [&](int kernel) { return kernels[size_t(kernel)] != nullptr; };
  const cuda::Nodes start = cuda::capturedEnds(stream);
  std::vector<cuda::Nodes> ends;  // by launch
  cuda::Nodes all = start;
  for (const Launch &launch :
       launchesOf(plan(), entry.kernels, isLaunched, libraryWorkspaceUsers)) {
    cuda::Nodes before = launch.after.empty() ? start : cuda::Nodes();
    for (const int one : launch.after)
      before.insert(before.end(), ends[size_t(one)].begin(), ends[size_t(one)].end());
    cuda::continueAfter(stream, before);
    enqueueNamed(launch.kernel, bound, stream);
    ends.push_back(cuda::capturedEnds(stream));
    std::erase_if(all, [&](cuda::NodeHandle *node) {
      return std::ranges::find(before, node) != before.end();
    });
    all.insert(all.end(), ends.back().begin(), ends.back().end());
  }
  cuda::continueAfter(stream, all);
}

const cuda::Graph *Executor::findGraph(size_t entry,
                                       std::span<const cuda::DevicePointer> pointers) {
  for (auto one = graphs.begin(); one != graphs.end(); ++one) {
    if (one->key.front() != entry || !std::ranges::equal(std::span(one->key).subspan(1), pointers))
      continue;
    graphs.splice(graphs.begin(), graphs, one);
    return &graphs.front().graph;
  }
  return nullptr;
}

void Executor::captureGraph(const EntryPoint &entry,
                            std::span<const cuda::DevicePointer> pointers) {
  std::vector<cuda::DevicePointer> key{cuda::DevicePointer(&entry - entries.data())};
  key.insert(key.end(), pointers.begin(), pointers.end());
  cuda::Graph graph = cuda::Graph::capture(
      captureStream, [&](cuda::StreamHandle *stream) { enqueue(entry, pointers, false, stream); });
  graphs.push_front({.key = std::move(key), .graph = std::move(graph)});
  if (graphs.size() > std::max<size_t>(options.graphs, 1)) graphs.pop_back();
}

/// The kernels take the step modulo 2^32 (ir/SPEC.md): its low word is all that must change between
/// launches.
void Executor::takeStep(const EntryPoint &entry, cuda::StreamHandle *stream) {
  if (!usesDropout || !options.advanceStep || entry.continues) return;
  cuda::storeWordAsync(dropoutKey.address() + stepOffset, uint32_t(nextStep++), stream);
}

void Executor::launch(const EntryPoint &entry, std::span<const cuda::DevicePointer> pointers,
                      cuda::StreamHandle *stream) {
  // Inside the caller's own capture there is nothing to wait for, and kernels stand in their graph
  // as if they had launched them.
  const bool isCaptured = cuda::isCapturing(stream);
  if (const cuda::Graph *graph =
          isCaptured ? nullptr : findGraph(size_t(&entry - entries.data()), pointers)) {
    takeStep(entry, stream);
    graph->launch(stream);
    return;
  }
  checkCall(entry, pointers);
  const bool isFirst = std::ranges::any_of(entry.kernels, [&](int kernel) {
    return kernels[size_t(kernel)] && !watched.contains(kernel);
  });
  takeStep(entry, stream);
  if (isFirst || isCaptured) enqueue(entry, pointers, isFirst && !isCaptured, stream);
  if (isCaptured) return;
  captureGraph(entry, pointers);
  if (!isFirst) graphs.front().graph.launch(stream);
}

void Executor::launch(const EntryPoint &entry, cuda::StreamHandle *stream) {
  std::vector<cuda::DevicePointer> pointers;
  for (const int tensor : externalsOf(entry)) pointers.push_back(ownPointer(tensor));
  launch(entry, pointers, stream);
}

void Executor::launchKernel(int index, cuda::StreamHandle *stream) {
  if (!kernels[size_t(index)]) return;
  if (!watched.contains(index)) watch(index, ownBindings(), stream);
  else enqueueNamed(index, ownBindings(), stream);
}

}  // namespace weft::runtime
