// What builds kernels that start early and checks in machine code that they read and write nothing
// before they wait for the kernel in front of them.
#pragma once

#include <catch2/catch.hpp>

#include "codegen/Emit.h"
#include "runtime/build/Build.h"
#include "tests/nvrtc/WgmmaCode.h"
#include "tests/support/NonEmpty.h"

#include <string>
#include <utility>
#include <vector>

namespace weft::nvrtctest {

/// Collects kernels of sm_90a that start early, then builds all of them at once and checks each.
class EarlyBatch {
public:
  void add(const std::string &name, const Kernel &kernel, const Configuration &configuration) {
    codegen::EmittedKernel emitted =
        codegen::emit(kernel, configuration, "sm_90a", {}, {.startsEarly = true});
    requests.push_back({.name = name,
                        .text = std::move(emitted.text),
                        .entry = std::move(emitted.entry),
                        .architecture = "sm_90a",
                        .extraFlags = {}});
  }

  void buildAndCheck() const {
    runtime::BuildOptions options;
    options.headers = codegen::deviceHeaders();
    int accesses = 0;
    for (size_t index = 0;
         const runtime::BuildResult &result : test::nonEmpty(runtime::build(requests, options))) {
      const runtime::BuildRequest &request = requests[index++];
      INFO(request.name << "\n" << result.log << "\n" << request.text);
      REQUIRE(result.failure().empty());
      const EarlyCode code = earlyCode(result.cubin);
      CHECK(code.waits > 0);
      CHECK(code.tooEarly == 0);
      CHECK(code.constants == 0);
      accesses += code.accesses;
    }
    CHECK(accesses > 4 * int(requests.size()));
  }

private:
  std::vector<runtime::BuildRequest> requests;
};

}  // namespace weft::nvrtctest
