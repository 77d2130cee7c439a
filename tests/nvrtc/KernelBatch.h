// What builds samples of configurations with NVRTC and checks each: no spills, no warnings, for the
// targets that it is asked for.
#pragma once

#include <catch2/catch.hpp>

#include "codegen/Emit.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "kernel/ContractionRegion.h"
#include "kernel/Device.h"
#include "kernel/Error.h"
#include "passes/configure/Families.h"
#include "passes/configure/Family.h"
#include "runtime/build/Build.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace weft::nvrtctest {

inline constexpr std::array architectures{"sm_80", "sm_86", "sm_89", "sm_90a"};

/// What distinguishes configurations for the emitter: knobs, and which dimension of each tensor
/// lies innermost.
inline std::string stratumOf(const Kernel &kernel, const Configuration &configuration) {
  std::string stratum = describe(kernel, configuration.knobs);
  for (const std::vector<Layout> *layouts : {&configuration.inputs, &configuration.outputs})
    for (const Layout &layout : *layouts)
      stratum += fmt::format(" {}", layout.order.empty() ? -1 : layout.order.back());
  return stratum;
}

/// At most `count` configurations, drawn evenly over the strata; within a stratum one at random,
/// the same every time.
inline std::vector<Configuration> sample(const Kernel &kernel, const Device &device, size_t count) {
  struct Stratum {
    Configuration chosen;
    uint32_t seen = 0;
  };
  std::map<std::string, Stratum> strata;
  std::mt19937 random(1);
  size_t visited = 0;
  forEachConfiguration(kernel, device, {}, [&](const Configuration &configuration) {
    if (!configuration.knobs.family().hasText()) return true;
    Stratum &stratum = strata[stratumOf(kernel, configuration)];
    if (random() % ++stratum.seen == 0) stratum.chosen = configuration;
    return ++visited < 200000;
  });
  std::vector<Configuration> chosen;
  const size_t taken = std::min(count, strata.size());
  size_t index = 0, next = 0;
  for (const auto &[name, stratum] : strata) {
    if (index++ * taken < next * strata.size()) continue;
    chosen.push_back(stratum.chosen);
    ++next;
  }
  return chosen;
}

/// A text without the name of its 16-bit type. Texts that differ in that alone took equal registers
/// and no spills in all 390 pairs of these tests (2026-11-27); where threads transform operands,
/// registers differed in 15 of 235 (docs/experiments/build.md), so those kernels have no twins.
inline std::string withoutType(const Kernel &kernel, std::string text) {
  const std::optional<ContractionRegion> region = contractionRegion(kernel).region;
  if (region && region->prologue) return text;
  for (const auto &[name, other] : {std::pair("bfloat16", "half"), {"bf16", "f16"}})
    for (size_t at = 0; (at = text.find(name, at)) != std::string::npos;)
      text.replace(at, std::string_view(name).size(), other);
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });  // names align what follows
  return text;
}

/// Which requests to build: all, but one of each two that differ in the type alone, in turn, so
/// that both types are compiled. `withoutTypes` are their texts without it, in order.
inline std::vector<size_t> oneOfTwins(const std::vector<runtime::BuildRequest> &requests,
                                      const std::vector<std::string> &withoutTypes) {
  std::map<std::pair<std::string_view, std::string_view>, size_t> first;
  std::vector<size_t> chosen;
  size_t turn = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto [found, isNew] =
        first.try_emplace({requests[i].architecture, withoutTypes[i]}, chosen.size());
    if (isNew) chosen.push_back(i);
    else if (requests[chosen[found->second]].text != requests[i].text && turn++ % 2 == 0)
      chosen[found->second] = i;
  }
  return chosen;
}

/// Collects requests, then builds all of them at once and checks each.
class Batch {
public:
  void add(const std::string &name, const Kernel &kernel, const Configuration &configuration,
           std::string_view architecture) {
    const std::string title =
        fmt::format("{}, {}, {}", name, describe(kernel, configuration.knobs), architecture);
    try {
      codegen::EmittedKernel emitted = codegen::emit(kernel, configuration, architecture);
      if (emitted.text.empty()) return;  // a view: nothing runs
      withoutTypes.push_back(withoutType(kernel, emitted.text));
      requests.push_back({.name = title,
                          .text = std::move(emitted.text),
                          .entry = std::move(emitted.entry),
                          .architecture = std::string(architecture),
                          .extraFlags = {}});
    } catch (const Error &error) {
      FAIL_CHECK("a legal configuration is not emitted: " << title << ": " << error.what());
    }
  }

  /// `count` configurations of one kernel, over the architectures in turn.
  void addSamples(const std::string &name, const Kernel &kernel, const Device &device,
                  size_t count) {
    const std::vector<Configuration> configurations = sample(kernel, device, count);
    INFO(name);
    CHECK_FALSE(configurations.empty());
    for (const Configuration &configuration : configurations) {
      const auto *loop = configuration.knobs.getIf<LoopKnobs>();
      const bool needsSm90 = (loop && loop->reduction == ReductionMapping::clusterColumns) ||
                             configuration.knobs.is<Sm90GemmKnobs>();
      add(name, kernel, configuration,
          needsSm90 ? architectures.back() : architectures[turn++ % architectures.size()]);
    }
  }

  void buildAndCheck(size_t leastKernels, size_t leastArchitectures = architectures.size()) const {
    // What has been compiled once is not compiled again, by this test or another: the key of the
    // cache covers text, headers, flags and NVRTC, its entry has the log, and errors are not kept.
    runtime::BuildOptions options;
    options.headers = codegen::deviceHeaders();
    CHECK(requests.size() >= std::max<size_t>(leastKernels, 1));
    std::vector<runtime::BuildRequest> built;
    for (const size_t i : oneOfTwins(requests, withoutTypes)) built.push_back(requests[i]);
    const std::vector<runtime::BuildResult> results = runtime::build(built, options);
    std::set<std::string> seen;
    double slowest = 0;
    for (size_t i = 0; i < results.size(); ++i) {
      slowest = std::max(slowest, results[i].seconds);
      INFO(built[i].name << "\n" << results[i].log << "\n" << built[i].text);
      CHECK(results[i].error.empty());
      if (!results[i].error.empty()) continue;
      CHECK(results[i].spillBytes == 0);
      CHECK(results[i].log.find("warning") == std::string::npos);
      CHECK(results[i].registers > 0);
      seen.insert(built[i].architecture);
    }
    CHECK(seen.size() >= leastArchitectures);
    const auto cached = std::ranges::count_if(results, &runtime::BuildResult::fromCache);
    WARN(results.size() << " of " << requests.size() << " kernels built, in at most " << slowest
                        << " s of a processor each; " << cached << " of them from the cache");
  }

private:
  std::vector<runtime::BuildRequest> requests;
  std::vector<std::string> withoutTypes;  ///< texts of the requests without their 16-bit type
  size_t turn = 0;
};

}  // namespace weft::nvrtctest
