// Listing GPUs through libcuda.so.1, with our own declarations of the few functions used.
#include "runtime/Driver.h"

#include <fmt/format.h>

#include <dlfcn.h>

namespace weft::runtime {

namespace {

// CUresult is an int, CUdevice an int; the values are those of cuda.h and part of the driver's stable interface.
constexpr int noDevice = 100;
enum class DeviceAttribute : int {
  multiprocessorCount = 16,
  l2CacheBytes = 38,
  computeCapabilityMajor = 75,
  computeCapabilityMinor = 76,
  sharedMemoryPerBlockOptin = 97,
};

class Driver {
public:
  Driver() : handle(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {
    if (!handle) problem = fmt::format("no CUDA driver: {}", dlerror());
    find("cuInit", initialize);
    find("cuDriverGetVersion", driverVersion);
    find("cuDeviceGetCount", deviceCount);
    find("cuDeviceGetName", deviceName);
    find("cuDeviceGetAttribute", deviceAttribute);
    find("cuDeviceTotalMem_v2", totalMemory);
    find("cuGetErrorString", errorString);
    if (!problem.empty()) return;
    const int result = initialize(0);
    if (result == noDevice)
      problem = "the CUDA driver finds no GPU";
    else if (result != 0)
      problem = "the CUDA driver does not start: " + errorText(result);
  }
  ~Driver() {
    if (handle) dlclose(handle);
  }
  Driver(const Driver &) = delete;
  Driver &operator=(const Driver &) = delete;

  std::string version() const {
    int value = 0;
    if (!driverVersion || driverVersion(&value) != 0) return {};
    return fmt::format("{}.{}", value / 1000, value % 1000 / 10);
  }

  int count() const {
    int value = 0;
    return deviceCount(&value) == 0 ? value : 0;
  }

  Gpu gpu(int index) const {
    char name[256] = {};
    size_t memory = 0;
    deviceName(name, sizeof(name) - 1, index);
    totalMemory(&memory, index);
    return {.index = index,
            .name = name,
            .architecture = fmt::format("sm_{}{}", attribute(DeviceAttribute::computeCapabilityMajor, index),
                                        attribute(DeviceAttribute::computeCapabilityMinor, index)),
            .multiprocessors = attribute(DeviceAttribute::multiprocessorCount, index),
            .memoryBytes = int64_t(memory),
            .l2Bytes = attribute(DeviceAttribute::l2CacheBytes, index),
            .sharedMemoryPerBlock = attribute(DeviceAttribute::sharedMemoryPerBlockOptin, index)};
  }

  std::string problem;

private:
  template <typename Function>
  void find(const char *name, Function &function) {
    if (!problem.empty()) return;
    function = reinterpret_cast<Function>(dlsym(handle, name));
    if (!function) problem = fmt::format("the CUDA driver is too old: it has no {}", name);
  }

  int attribute(DeviceAttribute which, int index) const {
    int value = 0;
    deviceAttribute(&value, int(which), index);
    return value;
  }

  std::string errorText(int result) const {
    const char *text = nullptr;
    return errorString(result, &text) == 0 && text ? text : fmt::format("error {}", result);
  }

  void *handle = nullptr;
  int (*initialize)(unsigned flags) = nullptr;
  int (*driverVersion)(int *version) = nullptr;
  int (*deviceCount)(int *count) = nullptr;
  int (*deviceName)(char *name, int length, int device) = nullptr;
  int (*deviceAttribute)(int *value, int attribute, int device) = nullptr;
  int (*totalMemory)(size_t *bytes, int device) = nullptr;
  int (*errorString)(int result, const char **text) = nullptr;
};

}  // namespace

DriverReport inspectDriver() {
  const Driver driver;
  DriverReport report{.version = driver.version(), .gpus = {}, .problem = driver.problem};
  if (!driver.problem.empty()) return report;
  for (int index = 0; index < driver.count(); ++index)
    report.gpus.push_back(driver.gpu(index));
  if (report.gpus.empty()) report.problem = "the CUDA driver finds no GPU";
  return report;
}

}  // namespace weft::runtime
