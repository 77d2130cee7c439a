// The functions of libcuda.so.1 that the runtime uses, on host memory; see FakeCuda.h.
#include "tests/support/fakecuda/FakeCuda.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <unistd.h>

namespace {

constexpr int ok = 0, invalidValue = 1, outOfMemory = 2, noDevice = 100, invalidImage = 200,
              notFound = 500, notReady = 600, illegalAddress = 700, launchFailed = 719;

FakeCudaSettings settings;
FakeCudaCounters counters;
FakeCudaKernels kernels;
std::map<uint64_t, size_t> allocations;

struct Function {
  std::string behaviour;
  size_t bytes = 0;
  std::string entry = {};
  const std::string *cubin = nullptr;  ///< of kernels that a test brings
};
struct Module {
  std::map<std::string, Function> functions;
  bool isBinary = false;  ///< a real cubin: it has every function, and they do nothing
  std::string host;       ///< the cubin whose kernels a test brings: it has every function
};
struct Event {
  int64_t nanoseconds = 0;
};
bool hangs = false, isGone = false;
int64_t nanosecondsNow = 0;  ///< what launches took so far, where they take time at all
struct Node {
  std::function<void()> work;
  std::vector<size_t> after;  ///< nodes
};
struct Graph {
  std::vector<Node> nodes;
};
struct Capture {
  Graph graph;
  std::vector<size_t> ends;   ///< what the next node waits for
  std::vector<void *> shown;  ///< the same, as handles
};
struct Stream {
  Capture *captured = nullptr;
  int state = ok;  ///< what a query answers
};

void *handleOf(size_t node) { return reinterpret_cast<void *>(node + 1); }
size_t nodeOf(void *handle) { return reinterpret_cast<size_t>(handle) - 1; }
Stream defaultStream;

Stream &streamOf(void *handle) { return handle ? *static_cast<Stream *>(handle) : defaultStream; }

void enqueue(void *handle, std::function<void()> work) {
  Stream &stream = streamOf(handle);
  if (!stream.captured) return work();
  Capture &capture = *stream.captured;
  capture.graph.nodes.push_back({std::move(work), capture.ends});
  capture.ends = {capture.graph.nodes.size() - 1};
}

/// Of the nodes that may run always the one that was captured last: what does not wait for what it
/// needs runs too early.
void runLatestFirst(const Graph &graph) {
  std::vector<bool> done(graph.nodes.size(), false);
  const auto isReady = [&](size_t node) {
    return !done[node] && std::ranges::all_of(graph.nodes[node].after,
                                              [&](size_t before) { return done[before]; });
  };
  for (size_t finished = 0; finished < graph.nodes.size(); ++finished) {
    std::vector<size_t> ready;
    for (size_t node = 0; node < graph.nodes.size(); ++node)
      if (isReady(node)) ready.push_back(node);
    counters.mostReady = std::max(counters.mostReady, int64_t(ready.size()));
    graph.nodes[ready.back()].work();
    done[ready.back()] = true;
  }
}

std::filesystem::path besideTheLibrary(const char *name) {
  Dl_info info{};
  dladdr(reinterpret_cast<void *>(&besideTheLibrary), &info);
  return std::filesystem::path(info.dli_fname).parent_path() / name;
}

void readSettings() {
  std::ifstream file(besideTheLibrary("fakecuda.txt"));
  std::map<std::string, int64_t> values;
  std::string name;
  for (int64_t value = 0; file >> name >> value;) values[name] = value;
  const auto set = [&](const char *key, auto &member) {
    if (values.contains(key)) member = std::remove_reference_t<decltype(member)>(values[key]);
  };
  set("initResult", settings.initResult), set("version", settings.version),
      set("gpus", settings.gpus), set("sharedBytes", settings.sharedBytes);
  set("launchNanoseconds", settings.launchNanoseconds),
      set("blockNanoseconds", settings.blockNanoseconds);
  set("hangAtLaunch", settings.hangAtLaunch), set("vanishAtLaunch", settings.vanishAtLaunch);
  set("capability", settings.capability), set("memoryBytes", settings.memoryBytes);
}

void runKernel(const Function &function, int64_t blocks, const std::vector<uint64_t> &arguments,
               Stream &stream) {
  ++counters.kernelLaunches;
  nanosecondsNow += settings.launchNanoseconds + blocks * settings.blockNanoseconds;
  hangs |= counters.kernelLaunches == settings.hangAtLaunch;
  if (counters.kernelLaunches == settings.vanishAtLaunch) {
    isGone = true;
    std::ofstream(besideTheLibrary("gone")) << "no process finds the GPU any more\n";
  }
  if (function.behaviour == "hang") stream.state = notReady;
  if (function.behaviour == "fault") stream.state = illegalAddress;
  const auto pointer = [&](size_t index) { return reinterpret_cast<char *>(arguments.at(index)); };
  if (function.behaviour == "copy") std::memcpy(pointer(1), pointer(0), function.bytes);
  if (function.behaviour == "key") std::memcpy(pointer(1), pointer(2), 16);
  if (function.behaviour == "report")  // of sequence `bytes`: -1
    *reinterpret_cast<uint64_t *>(pointer(2)) = uint64_t(function.bytes) << 32 | 0xffffffffu;
}

/// What waiting for work answers; where the GPU hangs, it never does.
int waited(int state) {
  ++counters.synchronizations;
  while (hangs) pause();
  return isGone ? launchFailed : state;
}

}  // namespace

extern "C" {
FakeCudaKernels *fakeCudaKernels() { return &kernels; }
FakeCudaSettings *fakeCudaSettings() { return &settings; }
FakeCudaCounters *fakeCudaCounters() { return &counters; }

int cuInit(unsigned) {
  readSettings();
  if (settings.gpus == 0 || std::filesystem::exists(besideTheLibrary("gone"))) return noDevice;
  return settings.initResult;
}
int cuGetExportTable(const void **, const void *) {
  return notFound;
}  // NVRTC asks any driver that it finds
int cuDriverGetVersion(int *version) { return *version = settings.version, ok; }
int cuGetErrorName(int result, const char **name) {
  *name = result == launchFailed     ? "CUDA_ERROR_LAUNCH_FAILED"
          : result == illegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : result == invalidImage   ? "CUDA_ERROR_INVALID_IMAGE"
                                     : "CUDA_ERROR_OTHER";
  return ok;
}
int cuGetErrorString(int, const char **text) { return *text = "as the stand-in was told", ok; }
int cuDeviceGetCount(int *count) { return *count = settings.gpus, ok; }
int cuDeviceGetName(char *name, int length, int) {
  return std::strncpy(name, "Stand-in", size_t(length)), ok;
}
int cuDeviceGetAttribute(int *value, int attribute, int) {
  *value = attribute == 75   ? settings.capability / 10
           : attribute == 76 ? settings.capability % 10
           : attribute == 97 ? settings.sharedBytes
                             : 132;
  return ok;
}
int cuDeviceGetUuid_v2(unsigned char *uuid, int) { return std::memset(uuid, 7, 16), ok; }
int cuDeviceTotalMem_v2(size_t *bytes, int) { return *bytes = size_t(settings.memoryBytes), ok; }
int cuDevicePrimaryCtxRetain(void **context, int) { return *context = &settings, ok; }
int cuDevicePrimaryCtxRelease_v2(int) { return ok; }
int cuCtxSetCurrent(void *) { return ok; }
int cuCtxSynchronize() { return waited(ok); }
int cuMemGetInfo_v2(size_t *free, size_t *total) {
  *total = size_t(settings.memoryBytes);
  *free = size_t(settings.memoryBytes - counters.allocatedBytes);
  return ok;
}
int cuMemAlloc_v2(uint64_t *pointer, size_t bytes) {
  if (int64_t(bytes) > settings.memoryBytes - counters.allocatedBytes) return outOfMemory;
  void *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(memory, 0x5a, bytes);
  *pointer = reinterpret_cast<uint64_t>(memory);
  allocations[*pointer] = bytes;
  ++counters.allocations;
  counters.allocatedBytes += int64_t(bytes);
  return ok;
}
int cuMemFree_v2(uint64_t pointer) {
  counters.allocatedBytes -= int64_t(allocations.at(pointer));
  allocations.erase(pointer);
  return std::free(reinterpret_cast<void *>(pointer)), ok;
}
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
  return std::memcpy(reinterpret_cast<void *>(to), from, bytes), ok;
}
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
  return std::memcpy(to, reinterpret_cast<void *>(from), bytes), ok;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream) {
  return enqueue(stream,
                 [=] {
                   std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
                 }),
         ok;
}
int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t bytes) {
  return std::memset(reinterpret_cast<void *>(to), value, bytes), ok;
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *stream) {
  return enqueue(stream, [=] { std::memset(reinterpret_cast<void *>(to), value, bytes); }), ok;
}
int cuMemsetD32Async(uint64_t to, unsigned value, size_t words, void *stream) {
  return enqueue(stream, [=] { std::fill_n(reinterpret_cast<unsigned *>(to), words, value); }), ok;
}
int cuStreamCreate(void **stream, unsigned) { return *stream = new Stream, ok; }
int cuStreamDestroy_v2(void *stream) { return delete static_cast<Stream *>(stream), ok; }
int cuStreamSynchronize(void *stream) { return waited(streamOf(stream).state); }
int cuStreamQuery(void *stream) { return ++counters.synchronizations, streamOf(stream).state; }
int cuStreamWaitEvent(void *, void *, unsigned) { return ok; }
int cuStreamIsCapturing(void *stream, int *status) {
  return *status = streamOf(stream).captured != nullptr, ok;
}
int cuEventCreate(void **event, unsigned) { return *event = new Event, ok; }
int cuEventDestroy_v2(void *event) { return delete static_cast<Event *>(event), ok; }
int cuEventRecord(void *event, void *) {
  return static_cast<Event *>(event)->nanoseconds = nanosecondsNow, ok;
}
int cuEventRecordWithFlags(void *event, void *stream, unsigned) {
  return enqueue(stream, [event] { static_cast<Event *>(event)->nanoseconds = nanosecondsNow; }),
         ok;
}
int cuEventSynchronize(void *) { return waited(ok); }
int cuEventElapsedTime(float *milliseconds, void *start, void *end) {
  const int64_t elapsed =
      static_cast<Event *>(end)->nanoseconds - static_cast<Event *>(start)->nanoseconds;
  return *milliseconds = settings.launchNanoseconds > 0 ? float(double(elapsed) * 1e-6) : 1, ok;
}

int cuModuleLoadData(void **module, const void *image) {
  std::istringstream text{std::string(static_cast<const char *>(image))};
  auto loaded = new Module;
  if (text.view().starts_with("\x7f"
                              "ELF") ||
      text.view().find(".entry") != std::string_view::npos)
    return loaded->isBinary = true, *module = loaded, ok;
  if (text.view().starts_with("host\n")) return loaded->host = text.str(), *module = loaded, ok;
  std::string line;
  while (std::getline(text, line)) {
    std::istringstream words(line);
    std::string entry;
    Function function;
    words >> entry >> function.behaviour >> function.bytes;
    loaded->functions[entry] = function;
  }
  return *module = loaded, loaded->functions.empty() ? invalidImage : ok;
}
int cuModuleUnload(void *module) { return delete static_cast<Module *>(module), ok; }
int cuModuleGetFunction(void **function, void *module, const char *name) {
  auto &functions = static_cast<Module *>(module)->functions;
  if (static_cast<Module *>(module)->isBinary) functions[name].behaviour = "nothing";
  if (const std::string &host = static_cast<Module *>(module)->host; !host.empty())
    functions[name] = {.behaviour = "host", .entry = name, .cubin = &host};
  const auto found = functions.find(name);
  return found == functions.end() ? notFound : (*function = &found->second, ok);
}
int cuFuncGetAttribute(int *value, int, void *) { return *value = 0, ok; }
int cuFuncSetAttribute(void *, int, int) { return ok; }
int cuTensorMapEncodeTiled(void *map, int, uint32_t, void *address, const uint64_t *,
                           const uint64_t *, const uint32_t *, const uint32_t *, int, int, int,
                           int) {
  return std::memcpy(map, &address, sizeof address),
         ok;  // enough for a kernel that is given the address
}
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned, unsigned, unsigned,
                   unsigned, void *stream, void **arguments, void **) {
  const Function chosen = *static_cast<Function *>(function);
  std::vector<uint64_t> values;
  const int64_t blocks = int64_t(x) * y * z;
  if (chosen.cubin) {
    const std::function<void()> work = kernels(*chosen.cubin, chosen.entry, arguments);
    return enqueue(
               stream,
               [=, runsOn = &streamOf(stream)] { runKernel(chosen, blocks, {}, *runsOn), work(); }),
           ok;
  }
  for (int index = 0; index < (chosen.behaviour == "key" || chosen.behaviour == "report" ? 3
                               : chosen.behaviour == "nothing"                           ? 0
                                                                                         : 2);
       ++index)
    values.push_back(*static_cast<uint64_t *>(arguments[index]));
  Stream *runsOn = &streamOf(stream);
  return enqueue(stream, [=] { runKernel(chosen, blocks, values, *runsOn); }), ok;
}
/// As CUlaunchConfig has them; the one attribute that is used says that a kernel may start early.
struct LaunchConfiguration {
  unsigned grid[3], block[3], sharedBytes;
  void *stream, *attributes;
  unsigned attributeCount;
};
int cuLaunchKernelEx(const LaunchConfiguration *given, void *function, void **arguments,
                     void **extra) {
  fakeCudaCounters()->earlyLaunches += given->attributeCount;
  return cuLaunchKernel(function, given->grid[0], given->grid[1], given->grid[2], given->block[0],
                        given->block[1], given->block[2], given->sharedBytes, given->stream,
                        arguments, extra);
}
int cuStreamBeginCapture_v2(void *stream, int) {
  return streamOf(stream).captured = new Capture, ok;
}
int cuStreamGetCaptureInfo_v2(void *stream, int *status, uint64_t *, void **, void *const **nodes,
                              size_t *count) {
  Capture &capture = *streamOf(stream).captured;
  capture.shown.clear();
  for (const size_t node : capture.ends) capture.shown.push_back(handleOf(node));
  return *status = 1, *nodes = capture.shown.data(), *count = capture.shown.size(), ok;
}
int cuStreamUpdateCaptureDependencies(void *stream, void **nodes, size_t count, unsigned flags) {
  std::vector<size_t> &ends = streamOf(stream).captured->ends;
  if (flags == 1) ends.clear();
  for (size_t index = 0; index < count; ++index) {
    if (std::ranges::count(ends, nodeOf(nodes[index])) > 0) return invalidValue;
    ends.push_back(nodeOf(nodes[index]));
  }
  return ok;
}
int cuStreamEndCapture(void *stream, void **graph) {
  Stream &captured = streamOf(stream);
  auto made = new Graph(std::move(captured.captured->graph));
  delete std::exchange(captured.captured, nullptr);
  return ++counters.captures, *graph = made, ok;
}
int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long) {
  return *executable = new Graph(*static_cast<Graph *>(graph)), ok;
}
int cuGraphGetNodes(void *graph, void **, size_t *count) {
  return *count = static_cast<Graph *>(graph)->nodes.size(), ok;
}
int cuGraphDestroy(void *graph) { return delete static_cast<Graph *>(graph), ok; }
int cuGraphExecDestroy(void *graph) { return delete static_cast<Graph *>(graph), ok; }
int cuGraphLaunch(void *graph, void *) {
  ++counters.graphLaunches;
  return runLatestFirst(*static_cast<Graph *>(graph)), ok;
}
}
