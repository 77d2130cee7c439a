// What builds samples of configurations with NVRTC and checks each: no spills, no warnings, for the
// targets that it is asked for. Every kernel is emitted; an eighth of them is compiled, or all with
// WEFT_KERNELS=all in the environment.
#pragma once

#include <catch2/catch.hpp>

#include "codegen/Emit.h"
#include "kernel/Device.h"
#include "kernel/Error.h"
#include "kernel/Family.h"
#include "passes/configure/Families.h"
#include "passes/configure/Family.h"
#include "runtime/build/Build.h"
#include "tests/support/DeviceHeaders.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
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

/// Indices of the requests that are compiled, in order: of each architecture an eighth and at least
/// eight. They follow from texts and device headers: a change of a header draws anew, and tests
/// that ask for the same kernels draw the same ones. All where the environment has
/// WEFT_KERNELS=all.
inline std::vector<size_t> drawn(const std::vector<runtime::BuildRequest> &requests) {
  const char *asked = std::getenv("WEFT_KERNELS");
  if (asked && std::string_view(asked) != "all")
    FAIL("WEFT_KERNELS is '" << asked << "'; it may be 'all' or unset");
  static const size_t headers = [] {
    std::string all;
    for (const auto &[name, text] : codegen::deviceHeaders()) all.append(name).append(text);
    return std::hash<std::string>{}(all);
  }();
  std::map<std::string, std::vector<std::pair<size_t, size_t>>> ofArchitecture;  // draw, index
  for (size_t i = 0; i < requests.size(); ++i)
    ofArchitecture[requests[i].architecture].emplace_back(
        std::hash<std::string>{}(requests[i].text + std::to_string(headers)), i);
  std::vector<size_t> result;
  for (auto &[architecture, draws] : ofArchitecture) {
    std::ranges::sort(draws);
    const size_t taken =
        asked ? draws.size() : std::min(draws.size(), std::max<size_t>(8, draws.size() / 8));
    for (size_t i = 0; i < taken; ++i) result.push_back(draws[i].second);
  }
  std::ranges::sort(result);
  return result;
}

/// The elements of those indices.
template <typename T>
std::vector<T> chosen(const std::vector<T> &all, const std::vector<size_t> &indices) {
  std::vector<T> result;
  for (const size_t index : indices) result.push_back(all[index]);
  return result;
}

/// The text that the kernel would have in f16: what kernels have alike that differ in the 16-bit
/// type alone. Nothing of those that have both types, and of those that transform operands on load,
/// where the types are converted by other instructions.
inline std::optional<std::string> textInF16(Kernel kernel, const Configuration &configuration,
                                            std::string_view architecture) {
  const auto isGemm = [](const BodyOp &op) { return op.kind == OpKind::contract; };
  if (std::ranges::any_of(kernel.body, isGemm) && !isGemm(kernel.body.front())) return std::nullopt;
  const auto has = [&](DType type) {
    return std::ranges::count(kernel.values, type, &Value::dtype) > 0;
  };
  if (has(DType::f16) && has(DType::bf16)) return std::nullopt;
  for (Value &value : kernel.values)
    if (value.dtype == DType::bf16) value.dtype = DType::f16;
  return codegen::emit(kernel, configuration, architecture).text;
}

/// Collects requests, then builds all of them at once and checks each. Of two that differ in the
/// 16-bit type alone one is built, of f16 and of bf16 by turns: both take as many registers
/// (docs/experiments/build.md).
class Batch {
public:
  void add(const std::string &name, const Kernel &kernel, const Configuration &configuration,
           std::string_view architecture) {
    const std::string title =
        fmt::format("{}, {}, {}", name, describe(kernel, configuration.knobs), architecture);
    try {
      codegen::EmittedKernel emitted = codegen::emit(kernel, configuration, architecture);
      if (emitted.text.empty()) return;  // a view: nothing runs
      ++asked;
      runtime::BuildRequest request{.name = title,
                                    .text = std::move(emitted.text),
                                    .entry = std::move(emitted.entry),
                                    .architecture = std::string(architecture),
                                    .extraFlags = {}};
      std::optional<std::string> alike = textInF16(kernel, configuration, architecture);
      if (alike) *alike += architecture;
      const auto known = alike ? requestOf.find(*alike) : requestOf.end();
      if (known == requestOf.end()) {
        if (alike) requestOf.emplace(*alike, requests.size());
        requests.push_back(std::move(request));
      } else if (requests[known->second].text != request.text && pairs++ % 2 == 0) {
        requests[known->second] = std::move(request);
      }
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
      const Family &family = configuration.knobs.family();
      const bool needsLast =
          family.targetRejection &&
          !family.targetRejection(kernel, configuration.knobs, architectures.front()).empty();
      add(name, kernel, configuration,
          needsLast ? architectures.back() : architectures[turn++ % architectures.size()]);
    }
  }

  void buildAndCheck(size_t leastKernels, size_t leastArchitectures = architectures.size()) const {
    // What has been compiled once is not compiled again, by this test or another: the key of the
    // cache covers text, headers, flags and NVRTC, its entry has the log, and errors are not kept.
    runtime::BuildOptions options;
    options.headers = test::deviceHeaders();
    CHECK(asked >= std::max<size_t>(leastKernels, 1));
    CHECK(2 * requests.size() >= asked);
    const std::vector<runtime::BuildRequest> built = chosen(requests, drawn(requests));
    const std::vector<runtime::BuildResult> results = runtime::build(built, options);
    REQUIRE(results.size() == built.size());
    std::set<std::string> seen;
    double slowest = 0;
    for (size_t i = 0; i < results.size(); ++i) {
      slowest = std::max(slowest, results[i].seconds);
      INFO(built[i].name << "\n" << results[i].log << "\n" << built[i].text);
      CHECK(results[i].failure().empty());
      if (!results[i].failure().empty()) continue;
      CHECK(results[i].spillBytes == 0);
      CHECK(results[i].log.find("warning") == std::string::npos);
      CHECK(results[i].registers > 0);
      seen.insert(built[i].architecture);
    }
    CHECK(seen.size() >= leastArchitectures);
    const auto cached = std::ranges::count_if(results, &runtime::BuildResult::fromCache);
    WARN(results.size() << " of " << asked << " kernels built, in at most " << slowest
                        << " s of a processor each; " << cached << " of them from the cache");
  }

private:
  std::vector<runtime::BuildRequest> requests;
  std::map<std::string, size_t> requestOf;  ///< by textInF16(): index of what is built
  size_t turn = 0, asked = 0, pairs = 0;
};

}  // namespace weft::nvrtctest
