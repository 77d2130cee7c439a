// The main of tests that build kernels: first a worker if started as one, then a skip (exit code
// 77) if there is no NVRTC.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include "kernel/Error.h"
#include "runtime/build/Build.h"

#include <fmt/ranges.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

/// Of the cache that these tests share; what was unused longest goes.
constexpr int64_t testCacheBytes = int64_t(1) << 30;

int main(int argumentCount, char **arguments) {
  if (const auto code = weft::runtime::serveAsBuildWorker(argumentCount, arguments)) return *code;
  const weft::runtime::NvrtcLocation nvrtc = weft::runtime::findNvrtc();
  if (nvrtc.library.empty()) {
    fmt::print("skipped: no NVRTC; looked in: {}\n", fmt::join(nvrtc.searched, ", "));
    return 77;
  }
  fmt::print("NVRTC {} in {}\n", nvrtc.version, nvrtc.library.string());
  std::fflush(stdout);
  setenv("WEFT_CACHE_DIR", WEFT_TEST_CACHE, 1);
  const int result = Catch::Session().run(argumentCount, arguments);
  weft::runtime::cacheCollect(testCacheBytes);
  return result;
}
