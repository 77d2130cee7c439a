// Lines that hold constants against the launch: hashes leave out exactly them.
#include <catch2/catch.hpp>

#include "kernel/LaunchCheck.h"
#include "kernel/Profile.h"

using namespace weft;

TEST_CASE("a text with launch checks has the hash that it had without") {
  const std::string before = "void k() {\n  int a;\n}\n";
  const std::string check = launchCheck("(65536 + rowsPerBlock - 1) / rowsPerBlock == 16384", "16384 blocks");
  const std::string after = "void k() {\n  " + check + "\n  int a;\n}\n" + check;
  CHECK(after != before);
  CHECK(withoutLaunchChecks(after) == before);
  CHECK(sourceHash(after) == sourceHash(before));
  CHECK(withoutLaunchChecks("").empty());
}

TEST_CASE("a line that does more than to check stays in the hash") {
  const std::string good = launchCheck("threads == 128", "128 threads a block");
  REQUIRE(withoutLaunchChecks(good).empty());
  for (const std::string &line :
       {good + " evil();", "evil(); " + good, std::string("static_assert(true); evil(); static_assert(threads == 128, \"plan.json: x\");"),
        std::string("static_assert(true), evil(), (true, \"plan.json: x\");"), std::string("static_assert(true, \"other\"); x(1, \"plan.json: x\");"),
        std::string("static_assert(threads == 128);"), std::string("static_assert(threads == 128, \"mine\");"), good + "\\"}) {
    INFO(line);
    CHECK(withoutLaunchChecks(line + "\n") == line + "\n");
  }
}

TEST_CASE("a failed launch check is told from other errors") {
  CHECK(hasFailedLaunchCheck("kernel.cu(3): error: static assertion failed with \"plan.json: 128 threads a block\""));
  CHECK_FALSE(hasFailedLaunchCheck("kernel.cu(3): error: static assertion failed with \"mine\""));
}
