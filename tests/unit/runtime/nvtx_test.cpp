// Ranges reach a profiler that injects itself by NVTX's protocol.
#include "runtime/cuda/Nvtx.h"

#include <catch2/catch.hpp>

#include <dlfcn.h>
#include <cstdlib>

using namespace weft::runtime;

TEST_CASE("ranges are pushed and popped in the profiler's library") {
  setenv("NVTX_INJECTION64_PATH", WEFT_NVTX_RECORDER, 1);
  {
    const nvtx::Range outer("softmax__h_j_k");
    const nvtx::Range inner("norm");
  }
  REQUIRE(nvtx::isActive());
  void *recorder = dlopen(WEFT_NVTX_RECORDER, RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(recorder);
  const auto heard = reinterpret_cast<const char *(*)()>(dlsym(recorder, "heardRanges"));
  REQUIRE(heard);
  CHECK(std::string(heard()) == "+softmax__h_j_k+norm--");
}
