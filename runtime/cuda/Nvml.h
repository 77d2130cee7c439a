// Clocks, power and the reasons for throttling of one GPU, read through NVML, which is opened at
// run time. Reads only: no setting of the card is ever changed. Where NVML is absent the monitor
// says so and every reading is empty.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::runtime {

/// One reading. What the driver rejects to tell is absent.
struct GpuState {
  std::optional<int> smClockMhz, memoryClockMhz;
  std::optional<double> powerWatts, powerLimitWatts;
  std::optional<int> temperatureCelsius;
  std::optional<uint64_t> throttleReasons;  ///< bits of NVML
};

/// "power cap, thermal" of NVML's bits; "none" for none, idle and application clocks left out: they
/// are no slowdown of work.
std::string describeThrottling(uint64_t reasons);

/// Readings of one GPU. Never throws: `problem()` says why there are none.
class GpuMonitor {
public:
  /// `uuid`: 32 hexadecimal digits, as in cuda::GpuProperties.
  explicit GpuMonitor(std::string_view uuid);
  ~GpuMonitor();
  GpuMonitor(const GpuMonitor &) = delete;
  GpuMonitor &operator=(const GpuMonitor &) = delete;

  const std::string &problem() const { return problemText; }
  /// Version of the kernel driver: "580.159.04"; empty if unknown.
  const std::string &driverVersion() const { return driverText; }
  /// An empty state if there is a problem.
  GpuState read() const;

private:
  void *device = nullptr;
  std::string problemText, driverText;
};

/// Readings taken while something ran, in short.
struct ClockSummary {
  int n = 0;  ///< readings
  std::optional<int> lowestSmMhz, medianSmMhz, highestSmMhz, memoryMhz;
  std::optional<double> medianWatts, highestWatts, limitWatts;
  std::optional<int> highestCelsius;
  uint64_t throttleReasons = 0;  ///< all that were seen
};
ClockSummary summarizeStates(const std::vector<GpuState> &states);
/// "SM 1755 (1710-1980) MHz, memory 3201 MHz, 612 W of 700 W, 54 C, throttled: power cap"; "clocks:
/// not readable" if empty.
std::string describe(const ClockSummary &summary);

}  // namespace weft::runtime
