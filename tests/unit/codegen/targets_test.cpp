// What architectures can do, and which of them a GPU runs.
#include "codegen/targets/Targets.h"
#include "kernel/Device.h"
#include "tests/support/NonEmpty.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace weft;
using namespace weft::codegen;

TEST_CASE("a GPU takes the newest target that runs on it") {
  CHECK(targetOf("sm_80") == "sm_80");
  CHECK(targetOf("sm_86") == "sm_86");
  CHECK(targetOf("sm_87") == "sm_86");
  CHECK(targetOf("sm_89") == "sm_89");
  CHECK(targetOf("sm_90") == "sm_90a");
  CHECK(targetOf("sm_100") == "sm_100");  // none runs there
  CHECK(runsOn("sm_80", "sm_89"));
  CHECK_FALSE(runsOn("sm_89", "sm_80"));
  CHECK_FALSE(runsOn("sm_90a", "sm_100"));
  CHECK_FALSE(runsOn("sm_80", "sm_90"));
}

TEST_CASE("only what has griddepcontrol starts early, and WGMMA is of sm_90a alone") {
  for (const std::string_view target : nonEmpty(targets())) {
    CHECK(hasMmaSync(target));
    CHECK(hasEarlyStarts(target) == (target == "sm_90a"));
    CHECK(hasWgmma(target) == (target == "sm_90a"));
  }
  CHECK(hasEarlyStarts("sm_90"));
  CHECK_FALSE(hasWgmma("sm_90"));
  CHECK_FALSE(hasMmaSync("sm_75"));
}

TEST_CASE("what is emitted for a device is a target") {
  for (const Device &device : nonEmpty(devices()))
    if (device.canEmit) CHECK(std::ranges::count(targets(), device.architecture) == 1);
}
