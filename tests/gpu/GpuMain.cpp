// The main of every GPU test: makes the context of the first GPU current, or says why the test is
// skipped.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include "kernel/Error.h"
#include "tests/gpu/Gpu.h"

#include <cstdio>

namespace {

std::unique_ptr<weft::runtime::cuda::Context> context;
constexpr int skipped = 77;  // what CTest takes for a skipped test

}  // namespace

const weft::runtime::cuda::Context &weft::test::gpu() { return *context; }

int main(int argumentCount, char **arguments) {
  try {
    context = std::make_unique<weft::runtime::cuda::Context>(0);
  } catch (const weft::Error &error) {
    std::printf("skipped: %s\n", error.what());
    return skipped;
  }
  std::printf("on %s, driver %s\n", context->gpu().name.c_str(),
              context->gpu().driverVersion.c_str());
  const int failed = Catch::Session().run(argumentCount, arguments);
  context.reset();
  return failed == 0 ? 0 : 1;
}
