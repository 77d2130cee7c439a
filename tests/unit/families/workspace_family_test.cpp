// A family whose kernels work in a workspace: emission takes its size from the family, and a
// program that takes none, or one too many, is no program of the family.
#include "codegen/Emit.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "kernel/Error.h"
#include "tests/unit/families/workspace/WorkspaceFamily.h"
#include "tests/unit/samples/SampleKernels.h"

#include <catch2/catch.hpp>

using namespace weft;
using weft::test::WorkspaceKnobs;

namespace {

const Kernel kernel = samples::reluKernel({{'b', 8}, {'j', 125}}, "bj");

/// Knobs of a copy of the family with one function of its otherwise.
template <auto Change>
struct OtherKnobs : WorkspaceKnobs {
  static const Family &family() {
    static const Family other = [] {
      Family copy = test::workspaceFamily;
      copy.defaults = defaultKnobs<OtherKnobs>;
      copy.compare = compareKnobs<OtherKnobs>;
      Change(copy);
      return copy;
    }();
    return other;
  }
  auto operator<=>(const OtherKnobs &) const = default;
};

template <FamilyKnobs Struct>
codegen::EmittedKernel emitted(Struct knobs) {
  return codegen::emit(kernel, toConfiguration(kernel, {rowMajor(2), rowMajor(2)}, knobs), "sm_80");
}

codegen::Program lowerOne(const Kernel &kernel, const Configuration &configuration) {
  Configuration own = configuration;
  own.knobs = WorkspaceKnobs{};
  return test::workspace::lower(kernel, own);
}

}  // namespace

TEST_CASE("a launch works in as many bytes as the family says") {
  for (const int rounds : {1, 2}) {
    const codegen::EmittedKernel one = emitted(WorkspaceKnobs{rounds});
    CHECK(one.launch.workspaceBytes == 4000 * rounds);
    CHECK(one.parameters.back().kind == ParameterKind::workspace);
    CHECK_THAT(one.readable, Catch::Contains(rounds == 1 ? "//   workspace  4.00 kB\n"
                                                         : "//   workspace  8.00 kB\n"));
    CHECK_THAT(one.text, Catch::Contains("float *__restrict__"));
  }
}

TEST_CASE("a family without the function has no workspace") {
  const Configuration configuration =
      toConfiguration(kernel, {rowMajor(2), rowMajor(2)}, LoopKnobs{});
  CHECK(workspaceBytesOf(kernel, configuration) == 0);
  CHECK(codegen::emit(kernel, configuration, "sm_80").launch.workspaceBytes == 0);
}

TEST_CASE("a program that does not take its family's workspace is not emitted") {
  using Bytes = int64_t (*)(const Kernel &, const Configuration &);
  using Small = OtherKnobs<[](Family &family) {
    family.lower = lowerOne;
    family.workspaceBytes = Bytes([](const Kernel &, const Configuration &) { return int64_t(0); });
  }>;
  CHECK_THROWS_WITH(emitted(Small{}),
                    Catch::Contains("has 1 parameters of kind workspace, its family "
                                    "dummy-workspace asks for 0 bytes"));
  using Twice = OtherKnobs<[](Family &family) {
    family.workspaceBytes = Bytes([](const Kernel &, const Configuration &) { return int64_t(8); });
    family.lower = [](const Kernel &kernel, const Configuration &configuration) {
      codegen::Program program = lowerOne(kernel, configuration);
      program.parameters.push_back(program.parameters.back());
      return program;
    };
  }>;
  CHECK_THROWS_WITH(emitted(Twice{}), Catch::Contains("has 2 parameters of kind workspace"));
  using Negative = OtherKnobs<[](Family &family) {
    family.lower = lowerOne;
    family.workspaceBytes =
        Bytes([](const Kernel &, const Configuration &) { return int64_t(-1); });
  }>;
  CHECK_THROWS_WITH(emitted(Negative{}), Catch::Contains("asks for a workspace of -1 bytes"));
}
