// Every row of the table of WGMMA wrappers (codegen/device/generate_wgmma.py) assembles for sm_90a,
// in every order of its operands, without spills and warnings, and becomes the instruction that its
// name says. A row is a header and a tile width; headers say which those are.
#include <catch2/catch.hpp>

#include "codegen/Emit.h"
#include "runtime/build/Build.h"
#include "tests/support/NonEmpty.h"

#include <fmt/format.h>

#include <map>
#include <regex>
#include <set>

using namespace weft;

namespace {

/// A function of a header, as its text has it.
struct Wrapper {
  std::string header, a, b, instruction;
  int accumulators = 0, n = 0;
  bool isFromRegisters = false, hasOrders = false;
};

std::vector<Wrapper> wrappersOf(const std::string &header, const std::string &text) {
  static const std::regex function(
      R"(template <(bool outerA, )?bool outerB>\n[^(]*wgmma\((\w+) \*, (\w+) \*, )"
      R"(float \(&d\)\[(\d+)\],\s*(const unsigned|unsigned long long)[^{]*\{\n)"
      R"((  static_assert[^\n]*\n)?[^}]*?(wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k\d+[\w.]*))");
  std::vector<Wrapper> wrappers;
  for (std::sregex_iterator at(text.begin(), text.end(), function), end; at != end; ++at)
    wrappers.push_back({.header = header,
                        .a = at->str(2),
                        .b = at->str(3),
                        .instruction = at->str(7),
                        .accumulators = std::stoi(at->str(4)),
                        .n = std::stoi(at->str(8)),
                        .isFromRegisters = at->str(5) == "const unsigned",
                        .hasOrders = at->str(6).empty()});
  return wrappers;
}

/// A kernel that multiplies once, and adds a second product.
runtime::BuildRequest kernelOf(const Wrapper &wrapper, bool outerA, bool outerB) {
  const std::string call = fmt::format(
      "wgmma<{}{}>(static_cast<{} *>(nullptr), static_cast<{} *>(nullptr), d, a, b, ",
      wrapper.isFromRegisters ? "" : fmt::format("{}, ", outerA), outerB, wrapper.a, wrapper.b);
  const std::string a = wrapper.isFromRegisters
                            ? "const unsigned a[4] = {threadIdx.x, 1, 2, 3};"
                            : "const unsigned long long a = describeOperand(start, 8192);";
  const std::string quoted = fmt::format("\"{}\"", wrapper.header);
  const std::string text =
      fmt::format(R"(
#include "weft/float8.cuh"
#include "weft/sm90_tf32.cuh"
#include "weft/wgmma.cuh"
#include {}
using namespace weft;
using namespace weft::sm90;
extern "C" __global__ void __launch_bounds__(128) multiply(float *result) {{
  extern __shared__ __align__(1024) unsigned char memory[];
  const SharedAddress start = sharedAddress(memory);
  {}
  const unsigned long long b = describeOperand(start + 8192, 8192);
  float d[{}];
  fenceWgmma();
  {}false);
  {}true);
  commitWgmma();
  waitForWgmma<0>();
#pragma unroll
  for (int e = 0; e < {}; ++e) result[e * 128 + threadIdx.x] = d[e];
}}
)",
                  quoted, a, wrapper.accumulators, call, call, wrapper.accumulators);
  return {.name = fmt::format("{} n {} {}{}", wrapper.header, wrapper.n, outerA, outerB),
          .text = text,
          .entry = "multiply",
          .architecture = "sm_90a",
          .extraFlags = {}};
}

}  // namespace

TEST_CASE("every WGMMA wrapper assembles, in every order of its operands") {
  runtime::BuildOptions options;
  options.useCache = false;
  options.headers = codegen::deviceHeaders();
  std::vector<Wrapper> wrappers;
  std::map<std::string, std::set<int>> widths;
  for (const auto &[name, text] : test::nonEmpty(options.headers))
    if (name.starts_with("weft/wgmma_")) {
      const std::vector<Wrapper> own = wrappersOf(name, std::string(text));
      const std::string body(text);
      const std::regex instruction("wgmma\\.mma_async");
      CHECK(std::ptrdiff_t(own.size()) ==
            std::distance(std::sregex_iterator(body.begin(), body.end(), instruction),
                          std::sregex_iterator()));
      for (const Wrapper &wrapper : own) widths[name].insert(wrapper.n);
      wrappers.insert(wrappers.end(), own.begin(), own.end());
    }
  CHECK(widths.size() == 13);
  std::set<int> multiples;
  for (int n = 16; n <= 256; n += 16) multiples.insert(n);
  for (const char *type : {"f16", "bf16"}) {
    CHECK(widths[fmt::format("weft/wgmma_{}_rs.cuh", type)] == multiples);
    CHECK(widths[fmt::format("weft/wgmma_{}_any_n.cuh", type)] == multiples);
    CHECK(widths[fmt::format("weft/wgmma_{}_small_n.cuh", type)] ==
          std::set{8, 16, 24, 32, 40, 48});
  }
  std::vector<runtime::BuildRequest> requests;
  for (const Wrapper &wrapper : wrappers) {
    INFO(wrapper.header << " " << wrapper.instruction);
    CHECK(wrapper.accumulators * 2 == wrapper.n);
    for (const bool outerA : {false, true})
      for (const bool outerB : {false, true})
        if (wrapper.hasOrders ? !(wrapper.isFromRegisters && outerA) : !outerA && !outerB)
          requests.push_back(kernelOf(wrapper, outerA, outerB));
  }
  CHECK(requests.size() == 2 * (12 * 4 + 16 * 4 + 16 * 2) + 4 * 5);
  const std::vector<runtime::BuildResult> results = runtime::build(requests, options);
  REQUIRE(results.size() == requests.size());
  for (size_t i = 0; i < results.size(); ++i) {
    INFO(requests[i].name << "\n" << results[i].error << results[i].log);
    CHECK(results[i].error.empty());
    CHECK(results[i].spillBytes == 0);
    CHECK(results[i].log.find("warning") == std::string::npos);
  }
}
