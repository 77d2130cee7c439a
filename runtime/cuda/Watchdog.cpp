// Polling a stream against a time limit; see Watchdog.h.
#include "runtime/cuda/Watchdog.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace weft::runtime {

void awaitWithin(cuda::StreamHandle *stream, std::chrono::milliseconds limit,
                 const std::function<void()> &onHang) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds longestPause{2000};
  const Clock::time_point start = Clock::now();
  std::chrono::microseconds pause{5};
  while (!cuda::isFinished(stream)) {
    if (Clock::now() - start > limit) return onHang();
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, longestPause);
  }
}

void exitAfterHang(const std::string &text) {
  std::fflush(stdout);
  std::fputs((text + "\n").c_str(), stderr);
  std::fflush(stderr);
  std::_Exit(1);
}

}  // namespace weft::runtime
