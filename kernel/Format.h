// Quantities as people read them, the same in what commands print and in the comments of emitted
// kernels: three significant digits and a decimal unit.
#pragma once

#include <cstdint>
#include <string>

namespace weft {

/// "39.1 us", "1.23 ms", "2.10 s"; three significant digits, also below 0.1 us: "2.34 ns".
std::string formatSeconds(double seconds);
/// "39.8 MB" (10^6), "512 B"; three significant digits.
std::string formatBytes(int64_t bytes);
/// "16.8 Mflop", "25.8 Gflop".
std::string formatFlop(double flop);
/// "4.1 TB/s".
std::string formatBandwidth(double bytesPerSecond);

}  // namespace weft
