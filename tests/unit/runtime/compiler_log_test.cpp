// Reading what ptxas says.
#include <catch2/catch.hpp>

#include "runtime/build/CompilerLog.h"

using namespace weft::runtime;

namespace {
constexpr const char *sampleLog =
    "kernel.cu(3): warning #177-D: variable \"unused\" was declared but never referenced\n"
    "ptxas info    : 0 bytes gmem\n"
    "ptxas info    : Compiling entry function 'other' for 'sm_90a'\n"
    "ptxas info    : Function properties for other\n"
    "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 99 registers, used 1 barriers, 4096 bytes smem\n"
    "ptxas info    : Compiling entry function 'softmax' for 'sm_90a'\n"
    "ptxas info    : Function properties for softmax\n"
    "ptxas         .     32 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
    "ptxas info    : Used 40 registers, used 1 barriers, 512 bytes smem, 372 bytes cmem[0]\n"
    "ptxas info    : Compile time = 3.878 ms\n";
}

TEST_CASE("registers, spills and shared memory of the entry function") {
  CHECK(reportFrom(sampleLog, "softmax") ==
        CompilerReport{.registers = 40, .spillBytes = 20, .staticSharedBytes = 512});
  CHECK(reportFrom(sampleLog, "soft").registers == -1);
  CHECK(reportFrom("", "softmax") == CompilerReport{});
}

TEST_CASE("what differs from run to run is dropped") {
  CHECK(reproducible(sampleLog).find("Compile time") == std::string::npos);
  CHECK(reproducible(sampleLog).find("Used 40 registers") != std::string::npos);
}

TEST_CASE("warnings that mean a broken kernel") {
  CHECK(fatalWarning(sampleLog).empty());
  CHECK(fatalWarning(
            "ptxas info : (C7519) Potential Performance Loss: warpgroup.arrive is injected\n")
            .empty());
  const std::string serialized =
      "ptxas info : (C7510) Potential Performance Loss: wgmma.mma_async is serialized";
  CHECK(serialization("first\n" + serialized + "\nlast\n") == serialized);
  CHECK(fatalWarning(serialized + "\n").empty());
  const std::string ignored = "ptxas info : (C7508) Potential Performance Loss: setmaxnreg ignored";
  CHECK(fatalWarning(serialized + "\n" + ignored + "\n") == ignored);
  CHECK(serialization(sampleLog + ignored + "\n").empty());
}
