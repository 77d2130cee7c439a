// The driver's functions, found once in libcuda.so.1, and the owners of its handles. Declarations are our own; names with
// _v2 are those that the driver's public header maps the plain names to.
#include "runtime/Driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <dlfcn.h>
#include <utility>

namespace weft::runtime::cuda {

namespace {

// Values of CUresult and CUdevice_attribute: part of the driver's stable interface.
enum Result : int {
  success = 0,
  outOfMemory = 2,
  noDevice = 100,
  invalidDevice = 101,
  invalidImage = 200,
  noBinaryForGpu = 209,
  notFound = 500,
  notReady = 600,
  illegalAddress = 700,
  launchTimeout = 702,
  firstContextLost = 700,
  lastContextLost = 719,
  systemDriverMismatch = 803,
};
enum Attribute : int { multiprocessorCount = 16, l2CacheBytes = 38, capabilityMajor = 75, capabilityMinor = 76, sharedMemoryPerBlockOptin = 97 };
enum FunctionAttribute : int { maxThreads = 0, staticShared = 1, localBytes = 3, registerCount = 4, maxDynamicShared = 8 };
constexpr unsigned nonBlockingStream = 1;
constexpr int relaxedCapture = 2;  // other threads may allocate meanwhile
constexpr int oldestDriver = 12000;

struct Driver {
  void *library = nullptr;
  std::string problem;
  int version = 0;

  int (*init)(unsigned) = nullptr;
  int (*driverVersion)(int *) = nullptr;
  int (*errorName)(int, const char **) = nullptr;
  int (*errorString)(int, const char **) = nullptr;
  int (*deviceCount)(int *) = nullptr;
  int (*deviceName)(char *, int, int) = nullptr;
  int (*deviceAttribute)(int *, int, int) = nullptr;
  int (*deviceUuid)(unsigned char *, int) = nullptr;
  int (*totalMemory)(size_t *, int) = nullptr;
  int (*retainContext)(void **, int) = nullptr;
  int (*releaseContext)(int) = nullptr;
  int (*setContext)(void *) = nullptr;
  int (*synchronizeContext)() = nullptr;
  int (*memoryInfo)(size_t *, size_t *) = nullptr;
  int (*allocate)(DevicePointer *, size_t) = nullptr;
  int (*release)(DevicePointer) = nullptr;
  int (*copyToDevice)(DevicePointer, const void *, size_t) = nullptr;
  int (*copyToHost)(void *, DevicePointer, size_t) = nullptr;
  int (*copyOnDevice)(DevicePointer, DevicePointer, size_t, StreamHandle *) = nullptr;
  int (*fillBytes)(DevicePointer, unsigned char, size_t) = nullptr;
  int (*fillBytesAsync)(DevicePointer, unsigned char, size_t, StreamHandle *) = nullptr;
  int (*fillWordsAsync)(DevicePointer, unsigned, size_t, StreamHandle *) = nullptr;
  int (*captureStatus)(StreamHandle *, int *) = nullptr;
  int (*createStream)(StreamHandle **, unsigned) = nullptr;
  int (*destroyStream)(StreamHandle *) = nullptr;
  int (*synchronizeStream)(StreamHandle *) = nullptr;
  int (*queryStream)(StreamHandle *) = nullptr;
  int (*streamWait)(StreamHandle *, EventHandle *, unsigned) = nullptr;
  int (*createEvent)(EventHandle **, unsigned) = nullptr;
  int (*destroyEvent)(EventHandle *) = nullptr;
  int (*recordEvent)(EventHandle *, StreamHandle *) = nullptr;
  int (*synchronizeEvent)(EventHandle *) = nullptr;
  int (*elapsed)(float *, EventHandle *, EventHandle *) = nullptr;
  int (*loadModule)(ModuleHandle **, const void *) = nullptr;
  int (*unloadModule)(ModuleHandle *) = nullptr;
  int (*moduleFunction)(FunctionHandle **, ModuleHandle *, const char *) = nullptr;
  int (*functionAttribute)(int *, int, FunctionHandle *) = nullptr;
  int (*setFunctionAttribute)(FunctionHandle *, int, int) = nullptr;
  int (*launchKernel)(FunctionHandle *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, StreamHandle *, void **, void **) = nullptr;
  int (*beginCapture)(StreamHandle *, int) = nullptr;
  int (*endCapture)(StreamHandle *, GraphHandle **) = nullptr;
  int (*instantiate)(ExecutableHandle **, GraphHandle *, unsigned long long) = nullptr;
  int (*graphNodes)(GraphHandle *, void **, size_t *) = nullptr;
  int (*destroyGraph)(GraphHandle *) = nullptr;
  int (*destroyExecutable)(ExecutableHandle *) = nullptr;
  int (*launchGraph)(ExecutableHandle *, StreamHandle *) = nullptr;

  Driver() : library(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {
    if (!library) {
      problem = fmt::format("no CUDA driver: {}", dlerror());
      return;
    }
    findAll();
    if (!problem.empty()) return;
    const int result = init(0);
    driverVersion(&version);
    if (result == noDevice) problem = "the CUDA driver finds no GPU";
    else if (result == systemDriverMismatch) problem = "the CUDA driver's library and kernel module are of different versions";
    else if (result != success) problem = fmt::format("the CUDA driver does not start: {}", text(result));
    else if (version < oldestDriver)
      problem = fmt::format("the CUDA driver is too old: it supports CUDA {}.{}, weft needs 12.0", version / 1000, version % 1000 / 10);
  }

  std::string text(int result) const {
    const char *name = nullptr, *description = nullptr;
    if (errorName(result, &name) != success || !name) return fmt::format("CUDA error {}", result);
    return errorString(result, &description) == success && description ? fmt::format("{}: {}", name, description) : name;
  }

private:
  void findAll() {
    find("cuInit", init), find("cuDriverGetVersion", driverVersion);
    find("cuGetErrorName", errorName), find("cuGetErrorString", errorString);
    find("cuDeviceGetCount", deviceCount), find("cuDeviceGetName", deviceName);
    find("cuDeviceGetAttribute", deviceAttribute), find("cuDeviceGetUuid_v2", deviceUuid);
    find("cuDeviceTotalMem_v2", totalMemory);
    find("cuDevicePrimaryCtxRetain", retainContext), find("cuDevicePrimaryCtxRelease_v2", releaseContext);
    find("cuCtxSetCurrent", setContext), find("cuCtxSynchronize", synchronizeContext);
    find("cuMemGetInfo_v2", memoryInfo), find("cuMemAlloc_v2", allocate), find("cuMemFree_v2", release);
    find("cuMemcpyHtoD_v2", copyToDevice), find("cuMemcpyDtoH_v2", copyToHost);
    find("cuMemcpyDtoDAsync_v2", copyOnDevice);
    find("cuMemsetD8_v2", fillBytes), find("cuMemsetD8Async", fillBytesAsync);
    find("cuMemsetD32Async", fillWordsAsync), find("cuStreamIsCapturing", captureStatus);
    find("cuStreamCreate", createStream), find("cuStreamDestroy_v2", destroyStream);
    find("cuStreamSynchronize", synchronizeStream), find("cuStreamQuery", queryStream);
    find("cuStreamWaitEvent", streamWait);
    find("cuEventCreate", createEvent), find("cuEventDestroy_v2", destroyEvent), find("cuEventRecord", recordEvent);
    find("cuEventSynchronize", synchronizeEvent), find("cuEventElapsedTime", elapsed);
    find("cuModuleLoadData", loadModule), find("cuModuleUnload", unloadModule);
    find("cuModuleGetFunction", moduleFunction), find("cuFuncGetAttribute", functionAttribute);
    find("cuFuncSetAttribute", setFunctionAttribute), find("cuLaunchKernel", launchKernel);
    find("cuStreamBeginCapture_v2", beginCapture), find("cuStreamEndCapture", endCapture);
    find("cuGraphInstantiateWithFlags", instantiate), find("cuGraphGetNodes", graphNodes);
    find("cuGraphDestroy", destroyGraph), find("cuGraphExecDestroy", destroyExecutable);
    find("cuGraphLaunch", launchGraph);
  }

  template <typename Function>
  void find(const char *name, Function &function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (!function && problem.empty()) problem = fmt::format("the CUDA driver is too old: it has no {}", name);
  }
};

const Driver &driver() {
  static const Driver instance;  // never closed: handles outlive any order of destruction
  return instance;
}

ErrorKind kindOf(int result) {
  switch (result) {
  case outOfMemory:
  case noDevice:
  case invalidDevice:
  case noBinaryForGpu: return ErrorKind::unsupported;
  case invalidImage: return ErrorKind::badInput;
  default: return ErrorKind::checkFailed;
  }
}

/// `what` completes "cannot ...".
void check(int result, std::string_view what) {
  if (result == success) return;
  throw DriverError(kindOf(result), result, fmt::format("cannot {}: {}", what, driver().text(result)));
}

int attribute(Attribute which, int gpu) {
  int value = 0;
  check(driver().deviceAttribute(&value, which, gpu), "read the GPU's attributes");
  return value;
}

std::string versionText(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

GpuProperties propertiesOf(int gpu) {
  const Driver &cuda = driver();
  char name[256] = {};
  unsigned char uuid[16] = {};
  size_t memory = 0;
  check(cuda.deviceName(name, sizeof(name) - 1, gpu), "read the GPU's name");
  check(cuda.totalMemory(&memory, gpu), "read the GPU's memory");
  check(cuda.deviceUuid(uuid, gpu), "read the GPU's identifier");
  GpuProperties properties = {.index = gpu,
                              .name = name,
                              .architecture = fmt::format("sm_{}{}", attribute(capabilityMajor, gpu), attribute(capabilityMinor, gpu)),
                              .driverVersion = versionText(cuda.version),
                              .uuid = {},
                              .multiprocessors = attribute(multiprocessorCount, gpu),
                              .memoryBytes = int64_t(memory),
                              .l2Bytes = attribute(l2CacheBytes, gpu),
                              .sharedMemoryPerBlock = attribute(sharedMemoryPerBlockOptin, gpu)};
  for (const unsigned char byte : uuid) properties.uuid += fmt::format("{:02x}", byte);
  return properties;
}

}  // namespace

bool DriverError::isSticky() const { return result >= firstContextLost && result <= lastContextLost; }

Context::Context(int gpu) {
  const Driver &cuda = driver();
  if (!cuda.problem.empty()) throw Error::unsupported("{}", cuda.problem);
  int count = 0;
  check(cuda.deviceCount(&count), "count the GPUs");
  if (gpu < 0 || gpu >= count)
    throw Error::badInput("there is no GPU {}: the driver lists {}, numbered from 0", gpu, count);
  properties = propertiesOf(gpu);
  check(cuda.retainContext(&handle, gpu), fmt::format("use GPU {} ({})", gpu, properties.name));
  makeCurrent();
}

Context::~Context() {
  driver().setContext(nullptr);
  driver().releaseContext(properties.index);
}

std::pair<int64_t, int64_t> Context::memory() const {
  size_t free = 0, total = 0;
  check(driver().memoryInfo(&free, &total), "read the free memory");
  return {int64_t(free), int64_t(total)};
}

void Context::synchronize() const { check(driver().synchronizeContext(), "finish the work on the GPU"); }
void Context::makeCurrent() const { check(driver().setContext(handle), "use the GPU on this thread"); }

Buffer::Buffer(int64_t bytes) : size(bytes) {
  if (bytes == 0) return;
  const int result = driver().allocate(&pointer, size_t(bytes));
  size_t free = 0, total = 0;
  if (result == outOfMemory && driver().memoryInfo(&free, &total) == success)
    throw DriverError(ErrorKind::unsupported, result,
                      fmt::format("out of GPU memory: {} bytes were asked for, {} of {} are free", bytes, free, total));
  check(result, fmt::format("allocate {} bytes on the GPU", bytes));
}

Buffer::~Buffer() {
  if (pointer) driver().release(pointer);
}

Buffer::Buffer(Buffer &&other) noexcept : pointer(std::exchange(other.pointer, 0)), size(std::exchange(other.size, 0)) {}

Buffer &Buffer::operator=(Buffer &&other) noexcept {
  std::swap(pointer, other.pointer);
  std::swap(size, other.size);
  return *this;
}

namespace {

/// Copies and fills of the default stream: our streams do not wait for it, so whoever says "done" must.
void finishDefaultStream() { check(driver().synchronizeStream(nullptr), "finish a copy or fill on the GPU"); }

}  // namespace

// The driver's copy returns once pageable host memory may be reused: its last part may still be on the way.
void upload(DevicePointer to, std::span<const std::byte> from) {
  if (from.empty()) return;
  check(driver().copyToDevice(to, from.data(), from.size()), fmt::format("copy {} bytes to the GPU", from.size()));
  finishDefaultStream();
}

void download(std::span<std::byte> to, DevicePointer from) {
  if (!to.empty()) check(driver().copyToHost(to.data(), from, to.size()), fmt::format("copy {} bytes from the GPU", to.size()));
}

void fill(DevicePointer to, uint8_t value, int64_t bytes) {
  if (bytes == 0) return;
  check(driver().fillBytes(to, value, size_t(bytes)), fmt::format("fill {} bytes on the GPU", bytes));
  finishDefaultStream();
}

void fillAsync(DevicePointer to, uint8_t value, int64_t bytes, StreamHandle *stream) {
  if (bytes > 0) check(driver().fillBytesAsync(to, value, size_t(bytes), stream), fmt::format("fill {} bytes on the GPU", bytes));
}

void copyAsync(DevicePointer to, DevicePointer from, int64_t bytes, StreamHandle *stream) {
  if (bytes > 0) check(driver().copyOnDevice(to, from, size_t(bytes), stream), fmt::format("copy {} bytes on the GPU", bytes));
}

Stream::Stream() { check(driver().createStream(&stream, nonBlockingStream), "create a stream"); }
Stream::~Stream() { driver().destroyStream(stream); }
void Stream::synchronize() const { check(driver().synchronizeStream(stream), "finish the work of a stream"); }

bool Stream::isFinished() const { return cuda::isFinished(stream); }

bool isFinished(StreamHandle *stream) {
  const int result = driver().queryStream(stream);
  if (result == notReady) return false;
  check(result, "finish the work of a stream");
  return true;
}

bool isCapturing(StreamHandle *stream) {
  int status = 0;
  check(driver().captureStatus(stream, &status), "ask whether a stream is captured");
  return status != 0;
}

void storeWordAsync(DevicePointer to, uint32_t value, StreamHandle *stream) {
  check(driver().fillWordsAsync(to, value, 1, stream), "store a word on the GPU");
}

Event::Event() { check(driver().createEvent(&event, 0), "create an event"); }
Event::~Event() { driver().destroyEvent(event); }
void Event::record(StreamHandle *stream) { check(driver().recordEvent(event, stream), "record an event"); }
void Event::synchronize() const { check(driver().synchronizeEvent(event), "wait for an event"); }
void Event::holdBack(StreamHandle *stream) const { check(driver().streamWait(stream, event, 0), "make a stream wait"); }

double secondsBetween(const Event &start, const Event &end) {
  float milliseconds = 0;
  check(driver().elapsed(&milliseconds, start.handle(), end.handle()), "read the time between two events");
  return 1e-3 * double(milliseconds);
}

Module::Module(std::string_view cubin) {
  check(driver().loadModule(&module, cubin.data()), fmt::format("load a cubin of {} bytes", cubin.size()));
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
  check(driver().setFunctionAttribute(function, maxDynamicShared, int(bytes)), fmt::format("give a kernel {} bytes of shared memory", bytes));
}

FunctionResources resourcesOf(FunctionHandle *function) {
  const auto read = [&](FunctionAttribute which) {
    int value = 0;
    check(driver().functionAttribute(&value, which, function), "read a kernel's attributes");
    return value;
  };
  return {.registers = read(registerCount), .localBytes = read(localBytes), .staticSharedBytes = read(staticShared), .threadsPerBlock = read(maxThreads)};
}

void launch(FunctionHandle *function, const LaunchShape &shape, std::span<void *const> arguments, StreamHandle *stream) {
  const auto &[grid, block, sharedBytes] = shape;
  check(driver().launchKernel(function, unsigned(grid[0]), unsigned(grid[1]), unsigned(grid[2]), unsigned(block[0]), unsigned(block[1]),
                              unsigned(block[2]), unsigned(sharedBytes), stream, const_cast<void **>(arguments.data()), nullptr),
        fmt::format("launch a kernel of {} x {} x {} blocks of {} x {} x {} threads", grid[0], grid[1], grid[2], block[0], block[1], block[2]));
}

void Graph::beginCapture(const Stream &stream) { check(driver().beginCapture(stream.handle(), relaxedCapture), "start capturing a graph"); }

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

Graph::Graph(Graph &&other) noexcept : executable(std::exchange(other.executable, nullptr)), nodes(other.nodes) {}

Graph &Graph::operator=(Graph &&other) noexcept {
  std::swap(executable, other.executable);
  std::swap(nodes, other.nodes);
  return *this;
}

void Graph::launch(StreamHandle *stream) const { check(driver().launchGraph(executable, stream), "launch a graph"); }

}  // namespace weft::runtime::cuda

namespace weft::runtime {

DriverReport inspectDriver() {
  const cuda::Driver &driver = cuda::driver();
  DriverReport report{.version = driver.version > 0 ? cuda::versionText(driver.version) : "", .gpus = {}, .problem = driver.problem};
  if (!driver.problem.empty()) return report;
  try {
    int count = 0;
    cuda::check(driver.deviceCount(&count), "count the GPUs");
    for (int gpu = 0; gpu < count; ++gpu) report.gpus.push_back(cuda::propertiesOf(gpu));
  } catch (const Error &error) {
    report.problem = error.what();
  }
  return report;
}

}  // namespace weft::runtime
