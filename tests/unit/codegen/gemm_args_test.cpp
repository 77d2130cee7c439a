// A GEMM of every family calls its kernel template with one struct of named arguments: those that
// the kernel has, and nothing in place of the others.
#include "codegen/Emit.h"
#include "kernel/Family.h"
#include "passes/configure/Families.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleContractions.h"
#include "tests/unit/samples/SamplePrologues.h"
#include "tests/unit/samples/SampleSoftmaxes.h"
#include "tests/unit/samples/Sm90Family.h"

#include <catch2/catch.hpp>

#include <map>
#include <regex>
#include <set>

using namespace weft;
using namespace weft::samples;
using weft::test::nonEmpty;

namespace {

/// The text inside of the braces of the only struct of arguments.
std::string argumentsOf(const std::string &text) {
  const std::regex call(R"(\n  weft::[\w:]+<[^()]*>\(weft::[\w:]*Args\{([^;]*)\}\);\n\})");
  std::smatch found;
  REQUIRE(std::regex_search(text, found, call));
  return found[1];
}

/// Names of members, in their order. Every argument at the top is one with a name.
std::vector<std::string> membersOf(const std::string &arguments) {
  std::vector<std::string> members;
  int depth = 0;
  std::string argument;
  const auto finish = [&] {
    const std::regex named(R"(\s*\.(\w+) = \S[\s\S]*)");
    std::smatch found;
    REQUIRE(std::regex_match(argument, found, named));
    members.push_back(found[1]);
    argument.clear();
  };
  for (const char c : arguments) {
    depth += std::string_view("({[<").find(c) != std::string_view::npos;
    depth -= std::string_view(")}]>").find(c) != std::string_view::npos;
    if (c == ',' && depth == 0) finish();
    else argument += c;
  }
  finish();
  return members;
}

}  // namespace

TEST_CASE("a GEMM of every family has one struct of named arguments and no positional holes") {
  const ContractionExtents aligned{.b = 8, .j = 512, .i = 1024, .u = 3072},
      odd{.b = 3, .j = 50, .i = 71, .u = 331}, fewRows{.b = 1, .j = 8, .i = 1024, .u = 4096};
  std::vector<Kernel> kernels = transformedContractions({}, DType::f16);
  for (const ContractionExtents &extents : {aligned, odd, fewRows}) {
    for (const Kernel &kernel : fusedContractions(extents, DType::f16)) kernels.push_back(kernel);
    kernels.push_back(gemmBiasBothReductions(extents, DType::f16));
    kernels.push_back(contractKernel(
        {{'m', extents.b * extents.j}, {'n', extents.u}, {'k', extents.i}}, "mk", "nk", "mn"));
  }
  for (const Kernel &kernel : localSoftmaxes({}, DType::f16)) kernels.push_back(kernel);
  for (const Kernel &kernel : scaledKTiles({}, DType::f16)) kernels.push_back(kernel);
  std::map<std::string, std::set<std::string>> seen;  // members by family
  const auto check = [&](const Kernel &kernel, const Configuration &one) {
    const std::string family(one.knobs.family().name);
    INFO(kernel.name << " " << family);
    const std::string text = codegen::emit(kernel, one, "sm_90a").text;
    const std::vector<std::string> members = membersOf(argumentsOf(text));
    CHECK(std::vector<std::string>(members.begin(), members.begin() + 3) ==
          std::vector<std::string>{"a", "b", "c"});
    CHECK(std::set(members.begin(), members.end()).size() == members.size());
    seen[family].insert(members.begin(), members.end());
    CHECK_FALSE(std::regex_search(text, std::regex(R"(nullptr|\bNo[A-Z]\w*\{\}|Args\{\}|\{\},)")));
  };
  for (const Kernel &kernel : kernels) {
    std::set<std::pair<std::string, std::vector<int>>> calls;  // one of each kind
    for (const Configuration &one : nonEmpty(enumerate(kernel, findDevice("h200")).legal)) {
      const std::string family(one.knobs.family().name);
      if (!family.starts_with("gemm-")) continue;
      const std::string schedule =
          std::regex_replace(describe(kernel, one.knobs), std::regex("[0-9]+"), "");
      if (!calls.emplace(schedule, one.outputs[0].order).second) continue;
      check(kernel, one);
    }
  }
  const Kernel gradient = contractKernel({{'m', 1024}, {'n', 3072}, {'k', 4096}}, "mk", "nk", "mn");
  Configuration streamK = ofFamily(gradient).front();
  streamK.knobs = Sm90GemmKnobs{.schedule = Sm90Schedule::cooperative,
                                .tileM = 128,
                                .tileN = 128,
                                .stages = 6,
                                .epilogueStages = 2,
                                .streamK = 1};
  check(gradient, streamK);
  CHECK(seen["gemm-sm90"] == std::set<std::string>{"a", "auxiliary", "b", "c", "epilogue",
                                                   "partials", "perColumn", "perElement", "perRow",
                                                   "reductions", "scaling", "softmax", "transformA",
                                                   "transformB"});
  CHECK(seen["gemm-sm80"] ==
        std::set<std::string>{"a", "b", "c", "epilogue", "transformA", "transformB"});
  CHECK(seen["gemm-fma"] == std::set<std::string>{"a", "b", "c", "scale"});
}
