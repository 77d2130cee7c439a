// The driver's functions, found once in libcuda.so.1, for the owners of its handles: internal to
// runtime/cuda/Cuda*.cpp. Declarations are our own; names with _v2 are those that the driver's
// public header maps the plain names to.
#pragma once

#include "runtime/cuda/Cuda.h"
#include "runtime/system/SharedLibrary.h"

namespace weft::runtime::cuda {

// Values of CUresult and CUdevice_attribute: part of the driver's stable interface.
enum Result : int {
  success = 0,
  outOfMemory = 2,
  noDevice = 100,
  invalidDevice = 101,
  invalidImage = 200,
  noBinaryForGpu = 209,
  unsupportedVersion = 222,
  notFound = 500,
  notReady = 600,
  illegalAddress = 700,
  launchTimeout = 702,
  firstContextLost = 700,
  lastContextLost = 719,
  systemDriverMismatch = 803,
};
enum Attribute : int {
  multiprocessorCount = 16,
  l2CacheBytes = 38,
  capabilityMajor = 75,
  capabilityMinor = 76,
  sharedMemoryPerBlockOptin = 97
};
enum FunctionAttribute : int {
  maxThreads = 0,
  staticShared = 1,
  localBytes = 3,
  registerCount = 4,
  maxDynamicShared = 8
};
constexpr unsigned nonBlockingStream = 1;
constexpr int relaxedCapture = 2;  // other threads may allocate meanwhile
constexpr int oldestDriver = 12000;

/// CUlaunchAttribute and CUlaunchConfig.
struct LaunchAttribute {
  int id = 0;
  alignas(8) std::array<int, 16> value{};
};
static_assert(sizeof(LaunchAttribute) == 72);
constexpr int programmaticSerialization = 6;
struct LaunchConfiguration {
  std::array<unsigned, 3> grid{}, block{};
  unsigned sharedBytes = 0;
  StreamHandle *stream = nullptr;
  LaunchAttribute *attributes = nullptr;
  unsigned attributeCount = 0;
};

struct Driver {
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
  int (*recordEventWithFlags)(EventHandle *, StreamHandle *, unsigned) = nullptr;
  int (*synchronizeEvent)(EventHandle *) = nullptr;
  int (*elapsed)(float *, EventHandle *, EventHandle *) = nullptr;
  int (*loadModule)(ModuleHandle **, const void *) = nullptr;
  int (*unloadModule)(ModuleHandle *) = nullptr;
  int (*moduleFunction)(FunctionHandle **, ModuleHandle *, const char *) = nullptr;
  int (*functionAttribute)(int *, int, FunctionHandle *) = nullptr;
  int (*setFunctionAttribute)(FunctionHandle *, int, int) = nullptr;
  int (*launchKernel)(FunctionHandle *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                      unsigned, StreamHandle *, void **, void **) = nullptr;
  int (*launchKernelEx)(const LaunchConfiguration *, FunctionHandle *, void **, void **) = nullptr;
  int (*encodeTensorMap)(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *,
                         const uint32_t *, const uint32_t *, int, int, int, int) = nullptr;
  int (*captureInfo)(StreamHandle *, int *, uint64_t *, GraphHandle **, NodeHandle *const **,
                     size_t *) = nullptr;
  int (*updateCapture)(StreamHandle *, NodeHandle **, size_t, unsigned) = nullptr;
  int (*beginCapture)(StreamHandle *, int) = nullptr;
  int (*endCapture)(StreamHandle *, GraphHandle **) = nullptr;
  int (*instantiate)(ExecutableHandle **, GraphHandle *, unsigned long long) = nullptr;
  int (*graphNodes)(GraphHandle *, void **, size_t *) = nullptr;
  int (*destroyGraph)(GraphHandle *) = nullptr;
  int (*destroyExecutable)(ExecutableHandle *) = nullptr;
  int (*launchGraph)(ExecutableHandle *, StreamHandle *) = nullptr;

  Driver();
  /// "CUDA_ERROR_OUT_OF_MEMORY: out of memory".
  std::string text(int result) const;

private:
  void findAll();
  template <typename Function>
  void find(const char *name, Function *&function) {
    if (!library.find(name, function) && problem.empty())
      problem = std::string("the CUDA driver is too old: it has no ") + name;
  }
  const SharedLibrary library;
};

/// Never closed: handles outlive any order of destruction.
const Driver &driver();
/// Throws DriverError unless the call succeeded. `what` completes "cannot ...".
void check(int result, std::string_view what);
/// "13.0".
std::string versionText(int version);
GpuProperties propertiesOf(int gpu);

}  // namespace weft::runtime::cuda
