// Cubins, kernels, launches and captured graphs; see Cuda.h.
#include "runtime/cuda/CudaDriver.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weft::runtime::cuda {

Module::Module(std::string_view cubin) {
  const int result = driver().loadModule(&module, cubin.data());
  const bool isOfOtherVersion =
      result == invalidImage || result == noBinaryForGpu || result == unsupportedVersion;
  check(result,
        fmt::format("load a cubin of {} bytes{}", cubin.size(),
                    isOfOtherVersion
                        ? fmt::format(" with a driver for CUDA {}, which takes what an NVRTC of "
                                      "that major version built, and of older ones",
                                      versionText(driver().version))
                        : ""));
}

Module::~Module() {
  if (module) driver().unloadModule(module);
}

Module::Module(Module &&other) noexcept : module(std::exchange(other.module, nullptr)) {}

FunctionHandle *Module::function(const std::string &entry) const {
  FunctionHandle *function = nullptr;
  const int result = driver().moduleFunction(&function, module, entry.c_str());
  if (result == notFound) throw Error::badInput("the cubin has no kernel '{}'", entry);
  check(result, fmt::format("find kernel '{}' in its cubin", entry));
  return function;
}

void allowSharedMemory(FunctionHandle *function, int64_t bytes) {
  check(driver().setFunctionAttribute(function, maxDynamicShared, int(bytes)),
        fmt::format("give a kernel {} bytes of shared memory", bytes));
}

FunctionResources resourcesOf(FunctionHandle *function) {
  const auto read = [&](FunctionAttribute which) {
    int value = 0;
    check(driver().functionAttribute(&value, which, function), "read a kernel's attributes");
    return value;
  };
  return {.registers = read(registerCount),
          .localBytes = read(localBytes),
          .staticSharedBytes = read(staticShared),
          .threadsPerBlock = read(maxThreads)};
}

void launch(FunctionHandle *function, const LaunchShape &shape, std::span<void *const> arguments,
            StreamHandle *stream) {
  const auto &[grid, block, sharedBytes, startsEarly] = shape;
  const auto start = [&, &grid = grid, &block = block, sharedBytes = unsigned(sharedBytes),
                      startsEarly = startsEarly] {
    void **const pointers = const_cast<void **>(arguments.data());
    if (!startsEarly)
      return driver().launchKernel(function, unsigned(grid[0]), unsigned(grid[1]),
                                   unsigned(grid[2]), unsigned(block[0]), unsigned(block[1]),
                                   unsigned(block[2]), sharedBytes, stream, pointers, nullptr);
    LaunchAttribute attribute{.id = programmaticSerialization};
    attribute.value[0] = 1;
    const auto extents = [](const std::array<int64_t, 3> &of) {
      return std::array{unsigned(of[0]), unsigned(of[1]), unsigned(of[2])};
    };
    const LaunchConfiguration configuration{.grid = extents(grid),
                                            .block = extents(block),
                                            .sharedBytes = sharedBytes,
                                            .stream = stream,
                                            .attributes = &attribute,
                                            .attributeCount = 1};
    return driver().launchKernelEx(&configuration, function, pointers, nullptr);
  };
  check(start(), fmt::format("launch a kernel of {} x {} x {} blocks of {} x {} x {} threads",
                             grid[0], grid[1], grid[2], block[0], block[1], block[2]));
}

void Graph::beginCapture(const Stream &stream) {
  check(driver().beginCapture(stream.handle(), relaxedCapture), "start capturing a graph");
}

GraphHandle *Graph::endCapture(const Stream &stream) {
  GraphHandle *graph = nullptr;
  check(driver().endCapture(stream.handle(), &graph), "capture a graph");
  return graph;
}

void Graph::abandonCapture(const Stream &stream) {
  GraphHandle *graph = nullptr;
  driver().endCapture(stream.handle(), &graph);
  if (graph) driver().destroyGraph(graph);
}

Graph::Graph(GraphHandle *graph) {
  size_t count = 0;
  int result = driver().graphNodes(graph, nullptr, &count);
  if (result == success) result = driver().instantiate(&executable, graph, 0);
  driver().destroyGraph(graph);
  check(result, "instantiate a graph");
  nodes = int64_t(count);
}

Graph::~Graph() {
  if (executable) driver().destroyExecutable(executable);
}

Graph::Graph(Graph &&other) noexcept
    : executable(std::exchange(other.executable, nullptr)), nodes(other.nodes) {}

Graph &Graph::operator=(Graph &&other) noexcept {
  std::swap(executable, other.executable);
  std::swap(nodes, other.nodes);
  return *this;
}

void Graph::launch(StreamHandle *stream) const {
  check(driver().launchGraph(executable, stream), "launch a graph");
}

Nodes capturedEnds(StreamHandle *stream) {
  int status = 0;
  size_t count = 0;
  NodeHandle *const *nodes = nullptr;
  check(driver().captureInfo(stream, &status, nullptr, nullptr, &nodes, &count),
        "read where a captured graph ends");
  return {nodes, nodes + count};
}

void continueAfter(StreamHandle *stream, Nodes nodes) {
  constexpr unsigned replace = 1;  // CU_STREAM_SET_CAPTURE_DEPENDENCIES
  std::ranges::sort(nodes);
  const auto repeated = std::ranges::unique(nodes);
  nodes.erase(repeated.begin(), repeated.end());
  check(driver().updateCapture(stream, nodes.data(), nodes.size(), replace),
        "continue a captured graph elsewhere");
}

}  // namespace weft::runtime::cuda
