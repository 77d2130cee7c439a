// Finding the driver's functions, and what the driver says; see CudaDriver.h and Driver.h.
#include "runtime/cuda/CudaDriver.h"

#include "runtime/cuda/Driver.h"

#include <fmt/format.h>

namespace weft::runtime::cuda {

Driver::Driver() : library("libcuda.so.1") {
  if (!library.isOpen()) {
    problem = fmt::format("no CUDA driver: {}", library.problem());
    return;
  }
  findAll();
  if (!problem.empty()) return;
  const int result = init(0);
  driverVersion(&version);
  if (result == noDevice) problem = "the CUDA driver finds no GPU";
  else if (result == systemDriverMismatch)
    problem = "the CUDA driver's library and kernel module are of different versions";
  else if (result != success)
    problem = fmt::format("the CUDA driver does not start: {}", text(result));
  else if (version < oldestDriver)
    problem = fmt::format("the CUDA driver is too old: it supports CUDA {}.{}, weft needs 12.0",
                          version / 1000, version % 1000 / 10);
}

std::string Driver::text(int result) const {
  const char *name = nullptr, *description = nullptr;
  if (errorName(result, &name) != success || !name) return fmt::format("CUDA error {}", result);
  return errorString(result, &description) == success && description
             ? fmt::format("{}: {}", name, description)
             : name;
}

void Driver::findAll() {
  find("cuInit", init), find("cuDriverGetVersion", driverVersion);
  find("cuGetErrorName", errorName), find("cuGetErrorString", errorString);
  find("cuDeviceGetCount", deviceCount), find("cuDeviceGetName", deviceName);
  find("cuDeviceGetAttribute", deviceAttribute), find("cuDeviceGetUuid_v2", deviceUuid);
  find("cuDeviceTotalMem_v2", totalMemory);
  find("cuDevicePrimaryCtxRetain", retainContext),
      find("cuDevicePrimaryCtxRelease_v2", releaseContext);
  find("cuCtxSetCurrent", setContext), find("cuCtxSynchronize", synchronizeContext);
  find("cuMemGetInfo_v2", memoryInfo), find("cuMemAlloc_v2", allocate),
      find("cuMemFree_v2", release);
  find("cuMemcpyHtoD_v2", copyToDevice), find("cuMemcpyDtoH_v2", copyToHost);
  find("cuMemcpyDtoDAsync_v2", copyOnDevice);
  find("cuMemsetD8_v2", fillBytes), find("cuMemsetD8Async", fillBytesAsync);
  find("cuMemsetD32Async", fillWordsAsync), find("cuStreamIsCapturing", captureStatus);
  find("cuStreamCreate", createStream), find("cuStreamDestroy_v2", destroyStream);
  find("cuStreamSynchronize", synchronizeStream), find("cuStreamQuery", queryStream);
  find("cuStreamWaitEvent", streamWait);
  find("cuEventCreate", createEvent), find("cuEventDestroy_v2", destroyEvent),
      find("cuEventRecord", recordEvent);
  find("cuEventRecordWithFlags", recordEventWithFlags);
  find("cuEventSynchronize", synchronizeEvent), find("cuEventElapsedTime", elapsed);
  find("cuModuleLoadData", loadModule), find("cuModuleUnload", unloadModule);
  find("cuModuleGetFunction", moduleFunction), find("cuFuncGetAttribute", functionAttribute);
  find("cuFuncSetAttribute", setFunctionAttribute), find("cuLaunchKernel", launchKernel);
  find("cuLaunchKernelEx", launchKernelEx);
  find("cuTensorMapEncodeTiled", encodeTensorMap);
  find("cuStreamGetCaptureInfo_v2", captureInfo),
      find("cuStreamUpdateCaptureDependencies", updateCapture);
  find("cuStreamBeginCapture_v2", beginCapture), find("cuStreamEndCapture", endCapture);
  find("cuGraphInstantiateWithFlags", instantiate), find("cuGraphGetNodes", graphNodes);
  find("cuGraphDestroy", destroyGraph), find("cuGraphExecDestroy", destroyExecutable);
  find("cuGraphLaunch", launchGraph);
}

const Driver &driver() {
  static const Driver instance;
  return instance;
}

namespace {

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

}  // namespace

void check(int result, std::string_view what) {
  if (result == success) return;
  throw DriverError(kindOf(result), result,
                    fmt::format("cannot {}: {}", what, driver().text(result)));
}

std::string versionText(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

namespace {

int attribute(Attribute which, int gpu) {
  int value = 0;
  check(driver().deviceAttribute(&value, which, gpu), "read the GPU's attributes");
  return value;
}

}  // namespace

GpuProperties propertiesOf(int gpu) {
  const Driver &cuda = driver();
  char name[256] = {};
  unsigned char uuid[16] = {};
  size_t memory = 0;
  check(cuda.deviceName(name, sizeof(name) - 1, gpu), "read the GPU's name");
  check(cuda.totalMemory(&memory, gpu), "read the GPU's memory");
  check(cuda.deviceUuid(uuid, gpu), "read the GPU's identifier");
  GpuProperties properties = {
      .index = gpu,
      .name = name,
      .architecture =
          fmt::format("sm_{}{}", attribute(capabilityMajor, gpu), attribute(capabilityMinor, gpu)),
      .driverVersion = versionText(cuda.version),
      .uuid = {},
      .multiprocessors = attribute(multiprocessorCount, gpu),
      .memoryBytes = int64_t(memory),
      .l2Bytes = attribute(l2CacheBytes, gpu),
      .sharedMemoryPerBlock = attribute(sharedMemoryPerBlockOptin, gpu)};
  for (const unsigned char byte : uuid) properties.uuid += fmt::format("{:02x}", byte);
  return properties;
}

}  // namespace weft::runtime::cuda

namespace weft::runtime {

DriverReport inspectDriver() {
  const cuda::Driver &driver = cuda::driver();
  DriverReport report{.version = driver.version > 0 ? cuda::versionText(driver.version) : "",
                      .gpus = {},
                      .problem = driver.problem};
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
