// Quantities with units; see Format.h.
#include "kernel/Format.h"

#include <fmt/format.h>

#include <cmath>
#include <initializer_list>

namespace weft {
namespace {

/// Three significant digits of value / scale, then the unit.
std::string significant(double value, const std::string &unit) {
  const double magnitude = std::abs(value);
  const int digits = magnitude >= 99.95 ? 0 : magnitude >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", value, digits, unit);
}

struct Unit {
  double scale;
  const char *name;
};

/// The largest unit that keeps the value at least 1; `units` ascend.
std::string inUnits(double value, std::initializer_list<Unit> units) {
  const Unit *best = units.begin();
  for (const Unit &unit : units)
    if (std::abs(value) >= unit.scale * 0.9995) best = &unit;
  return significant(value / best->scale, best->name);
}

}  // namespace

std::string formatSeconds(double seconds) {
  constexpr double least = 5e-12;  // less is rounding: as nanoseconds it would print as zeros
  constexpr double leastInMicroseconds = 99.95e-9;  // below, two digits behind the point are few
  if (std::abs(seconds) < least) return "0 us";
  if (std::abs(seconds) < leastInMicroseconds) return significant(seconds * 1e9, "ns");
  return inUnits(seconds, {{1e-6, "us"}, {1e-3, "ms"}, {1, "s"}});
}

std::string formatBytes(int64_t bytes) {
  if (std::abs(bytes) < 1000) return fmt::format("{} B", bytes);
  return inUnits(double(bytes), {{1e3, "kB"}, {1e6, "MB"}, {1e9, "GB"}, {1e12, "TB"}});
}

std::string formatFlop(double flop) {
  return inUnits(flop,
                 {{1, "flop"}, {1e3, "kflop"}, {1e6, "Mflop"}, {1e9, "Gflop"}, {1e12, "Tflop"}});
}

std::string formatBandwidth(double bytesPerSecond) {
  return inUnits(bytesPerSecond, {{1e6, "MB/s"}, {1e9, "GB/s"}, {1e12, "TB/s"}});
}

}  // namespace weft
