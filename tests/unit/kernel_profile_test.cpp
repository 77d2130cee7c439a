// Canonical text: what is in the key and what is not. Profile files: round trip, refusals with line numbers.
#include "kernel/Error.h"
#include "passes/configure/Profile.h"
#include "tests/unit/SampleKernels.h"

#include <catch2/catch.hpp>

using namespace weft;
using namespace weft::samples;

namespace {
std::string refusal(const std::string &text) {
  try {
    parseProfile(text, "p.profile");
  } catch (const Error &error) {
    return error.kind == ErrorKind::badInput ? error.what() : "";
  }
  return "";
}
const std::string head = "# weft profile 1\n# device h200\n# protocol cold L2\n";
}  // namespace

TEST_CASE("names are not in the canonical text, extents are") {
  const Kernel a = reluKernel({{'j', 4}, {'i', 8}}, "ji");
  Kernel renamed = a;
  renamed.name = "other";
  renamed.axes[0].name = "rows";
  renamed.values[0].name = "operand";
  CHECK(canonicalText(a) == canonicalText(renamed));
  CHECK(canonicalText(a) != canonicalText(reluKernel({{'j', 4}, {'i', 16}}, "ji")));
  CHECK(canonicalText(contractKernel({{'a', 2}, {'b', 3}, {'c', 4}}, "ab", "bc", "ac")) ==
        canonicalText(contractKernel({{'m', 2}, {'k', 3}, {'n', 4}}, "mk", "kn", "mn")));
}

TEST_CASE("broken kernels are refused") {
  Kernel kernel = reluKernel({{'j', 4}, {'i', 8}}, "ji");
  kernel.outputs = {0};
  CHECK_THROWS_AS(verify(kernel), Error);
}

TEST_CASE("profiles survive a round trip and name the broken line") {
  const Kernel kernel = reluKernel({{'j', 4}, {'i', 8}}, "ji");
  const Configuration configuration{.inputs = {rowMajor(2)}, .outputs = {rowMajor(2)}, .knobs = LoopKnobs{}};
  Profile profile{.device = "h200", .protocol = "cold L2", .rows = {}};
  const ProfileRow row = profileRow(kernel, configuration, "sm_90a", "text", 1.23456e-6, 50, 0.012);
  CHECK(row.seconds == 1.23e-6);
  profile.rows[row.configuration] = row;
  CHECK(parseProfile(printProfile(profile), "p").rows == profile.rows);
  CHECK(refusal("nonsense").find("p.profile:1:") == 0);
  CHECK(refusal(head + "one two\n").find("p.profile:4:") == 0);
  CHECK(refusal(head + row.kernel + " " + row.configuration + " loop 1 - nan 50 0\n").find("p.profile:4:") == 0);
}
