// The few functions of libnvidia-ml.so.1 that are used, by our own declarations; enumerators are
// those of its stable interface.
#include "runtime/cuda/Nvml.h"

#include "runtime/system/SharedLibrary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

namespace weft::runtime {

namespace {

constexpr int nvmlSuccess = 0;
enum ClockType : int { smClock = 1, memoryClock = 2 };
constexpr int gpuTemperature = 0;

struct Library {
  const SharedLibrary handle;
  std::string problem;
  int (*initialize)() = nullptr;
  const char *(*errorText)(int) = nullptr;
  int (*driverVersion)(char *, unsigned) = nullptr;
  int (*deviceByUuid)(const char *, void **) = nullptr;
  int (*clock)(void *, int, unsigned *) = nullptr;
  int (*power)(void *, unsigned *) = nullptr;
  int (*powerLimit)(void *, unsigned *) = nullptr;
  int (*temperature)(void *, int, unsigned *) = nullptr;
  int (*throttling)(void *, unsigned long long *) = nullptr;

  Library() : handle("libnvidia-ml.so.1") {
    if (!handle.isOpen()) {
      problem = fmt::format("no NVML: {}", handle.problem());
      return;
    }
    find("nvmlInit_v2", initialize), find("nvmlErrorString", errorText);
    find("nvmlSystemGetDriverVersion", driverVersion),
        find("nvmlDeviceGetHandleByUUID", deviceByUuid);
    find("nvmlDeviceGetClockInfo", clock), find("nvmlDeviceGetPowerUsage", power);
    find("nvmlDeviceGetEnforcedPowerLimit", powerLimit),
        find("nvmlDeviceGetTemperature", temperature);
    find("nvmlDeviceGetCurrentClocksThrottleReasons", throttling);
    if (!problem.empty()) return;
    if (const int result = initialize(); result != nvmlSuccess)
      problem = fmt::format("NVML does not start: {}", errorText(result));
  }

private:
  template <typename Function>
  void find(const char *name, Function *&function) {
    if (!handle.find(name, function) && problem.empty())
      problem = fmt::format("NVML has no {}", name);
  }
};

const Library &library() {
  static const Library instance;  // never closed: monitors may outlive any order of destruction
  return instance;
}

/// "GPU-8-4-4-4-12" of 32 digits.
std::string spelledUuid(std::string_view digits) {
  std::string text = "GPU-";
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i == 8 || i == 12 || i == 16 || i == 20) text += '-';
    text += digits[i];
  }
  return text;
}

template <typename Value, typename... Arguments>
std::optional<Value> ask(int (*function)(void *, Arguments...), void *device, auto... arguments) {
  Value value = 0;
  return function(device, arguments..., &value) == nvmlSuccess ? std::optional(value)
                                                               : std::nullopt;
}

std::optional<int> asInt(std::optional<unsigned> value) {
  return value ? std::optional(int(*value)) : std::nullopt;
}
std::optional<double> asWatts(std::optional<unsigned> milliwatts) {
  return milliwatts ? std::optional(1e-3 * double(*milliwatts)) : std::nullopt;
}

/// The member's present values, sorted.
template <typename Value>
std::vector<Value> sortedValues(const std::vector<GpuState> &states,
                                std::optional<Value> GpuState::*member) {
  std::vector<Value> values;
  for (const GpuState &state : states)
    if (state.*member) values.push_back(*(state.*member));
  std::ranges::sort(values);
  return values;
}
template <typename Value>
std::optional<Value> middle(const std::vector<Value> &sorted) {
  return sorted.empty() ? std::nullopt : std::optional(sorted[sorted.size() / 2]);
}
template <typename Value>
std::optional<Value> last(const std::vector<Value> &sorted) {
  return sorted.empty() ? std::nullopt : std::optional(sorted.back());
}

}  // namespace

std::string describeThrottling(uint64_t reasons) {
  static constexpr std::array<std::pair<uint64_t, const char *>, 7> names{
      {{0x4, "power cap"},
       {0x8, "hardware slowdown"},
       {0x10, "synchronized boost"},
       {0x20, "thermal"},
       {0x40, "hardware thermal"},
       {0x80, "power brake"},
       {0x100, "display clocks"}}};
  std::vector<std::string> parts;
  for (const auto &[bit, name] : names)
    if (reasons & bit) parts.emplace_back(name);
  return parts.empty() ? "none" : fmt::format("{}", fmt::join(parts, ", "));
}

GpuMonitor::GpuMonitor(std::string_view uuid) : problemText(library().problem) {
  if (!problemText.empty()) return;
  char text[96] = {};
  if (library().driverVersion(text, sizeof(text) - 1) == nvmlSuccess) driverText = text;
  if (const int result = library().deviceByUuid(spelledUuid(uuid).c_str(), &device);
      result != nvmlSuccess)
    problemText = fmt::format("NVML does not list GPU {}: {}", uuid, library().errorText(result));
}

GpuMonitor::~GpuMonitor() = default;

GpuState GpuMonitor::read() const {
  if (!problemText.empty()) return {};
  const Library &nvml = library();
  return {.smClockMhz = asInt(ask<unsigned>(nvml.clock, device, int(smClock))),
          .memoryClockMhz = asInt(ask<unsigned>(nvml.clock, device, int(memoryClock))),
          .powerWatts = asWatts(ask<unsigned>(nvml.power, device)),
          .powerLimitWatts = asWatts(ask<unsigned>(nvml.powerLimit, device)),
          .temperatureCelsius = asInt(ask<unsigned>(nvml.temperature, device, gpuTemperature)),
          .throttleReasons = ask<unsigned long long>(nvml.throttling, device)};
}

ClockSummary summarizeStates(const std::vector<GpuState> &states) {
  const std::vector<int> clocks = sortedValues(states, &GpuState::smClockMhz);
  const std::vector<double> watts = sortedValues(states, &GpuState::powerWatts);
  ClockSummary summary{.n = int(clocks.size()),
                       .lowestSmMhz = clocks.empty() ? std::nullopt : std::optional(clocks.front()),
                       .medianSmMhz = middle(clocks),
                       .highestSmMhz = last(clocks),
                       .memoryMhz = middle(sortedValues(states, &GpuState::memoryClockMhz)),
                       .medianWatts = middle(watts),
                       .highestWatts = last(watts),
                       .limitWatts = last(sortedValues(states, &GpuState::powerLimitWatts)),
                       .highestCelsius = last(sortedValues(states, &GpuState::temperatureCelsius))};
  for (const GpuState &state : states) summary.throttleReasons |= state.throttleReasons.value_or(0);
  return summary;
}

std::string describe(const ClockSummary &summary) {
  std::vector<std::string> parts;
  if (summary.medianSmMhz)
    parts.push_back(fmt::format("SM {} ({}-{}) MHz", *summary.medianSmMhz, *summary.lowestSmMhz,
                                *summary.highestSmMhz));
  if (summary.memoryMhz) parts.push_back(fmt::format("memory {} MHz", *summary.memoryMhz));
  if (summary.medianWatts)
    parts.push_back(
        fmt::format("{:.0f} W{}", *summary.medianWatts,
                    summary.limitWatts ? fmt::format(" of {:.0f} W", *summary.limitWatts) : ""));
  if (summary.highestCelsius) parts.push_back(fmt::format("{} C", *summary.highestCelsius));
  if (parts.empty()) return "clocks: not readable";
  parts.push_back("throttled: " + describeThrottling(summary.throttleReasons));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace weft::runtime
