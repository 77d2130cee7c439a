// weft explain --cache-miss: what each kernel's cache key is made of, and which part a near miss
// differs in.
#include "kernel/Error.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/build/BuildKey.h"
#include "runtime/build/Cache.h"
#include "runtime/system/Files.h"
#include "tools/driver/Console.h"
#include "tools/driver/Emission.h"
#include "tools/driver/PlanFacts.h"
#include "tools/driver/ReEmission.h"
#include "tools/driver/commands/Explain.h"

#include <algorithm>
#include <filesystem>

namespace weft::driver {
namespace {

using nlohmann::json;
using KeyFields = std::map<std::string, std::string>;

std::vector<std::string> differences(const KeyFields &wanted, const KeyFields &held) {
  std::vector<std::string> names;
  for (const auto &[name, value] : wanted)
    if (const auto found = held.find(name); found == held.end() || found->second != value)
      names.push_back(name);
  for (const auto &[name, value] : held)
    if (!wanted.contains(name)) names.push_back(name);
  return names;
}

/// The fields in which the most similar entry differs.
std::vector<std::string> nearestMiss(const KeyFields &wanted,
                                     const std::vector<KeyFields> &cached) {
  std::vector<std::string> best;
  bool any = false;
  for (const KeyFields &held : cached)
    if (const auto names = differences(wanted, held); !any || names.size() < best.size())
      best = names, any = true;
  return best;
}

std::string lines(const std::string &name, const KeyFields &fields, const std::string &verdict) {
  std::string text = fmt::format("{}: {}\n", name, verdict);
  for (const auto &[part, value] : fields) text += fmt::format("  {:<26} {}\n", part, value);
  return text;
}

}  // namespace

Explanation explainCache(const runtime::Artifact &artifact, const std::string &folder,
                         const std::string &name) {
  const runtime::NvrtcLocation nvrtc = runtime::findNvrtc();
  if (nvrtc.library.empty())
    throw Error::unsupported(
        "--cache-miss: there is no NVRTC, and its version is part of every key");
  const std::string wanted = name.empty() ? "" : findKernel(artifact.plan, name).source;
  const auto costModel = analyticCostModel(findDevice(artifact.plan.device));
  Replanned replanned = replan(artifact, *costModel, folder);
  const EmittedPlan emitted =
      emitKernels(replanned.planned, artifact.plan.target,
                  [](const ChosenKernel &) { return std::vector<std::string>(); });
  runtime::BuildOptions options;
  options.headers = emitted.available;
  const runtime::Cache cache(runtime::cacheFolder(), printNote);
  const std::vector<KeyFields> cached = cache.fields();
  Explanation result{.text = "", .json = {{"kernels", json::array()}}};
  for (size_t index = 0; index < emitted.requests.size(); ++index) {
    const runtime::BuildRequest &request = emitted.requests[index];
    if (!name.empty() &&
        replanned.planned.plan.kernels[emitted.kernelsOfRequest[index].front()].source != wanted)
      continue;
    const KeyFields fields =
        runtime::keyFields(runtime::workerRequest(request, options, nvrtc), request, nvrtc);
    const bool hit = cache.find(runtime::keyOf(fields)).has_value();
    const std::vector<std::string> changed =
        hit ? std::vector<std::string>() : nearestMiss(fields, cached);
    const std::string verdict =
        hit               ? "in the cache"
        : changed.empty() ? "not in the cache, which is empty"
                          : fmt::format("not in the cache; the nearest entry differs in {}",
                                        fmt::join(changed, ", "));
    result.text += lines(request.name, fields, verdict);
    result.json["kernels"].push_back({{"name", request.name},
                                      {"inCache", hit},
                                      {"fields", fields},
                                      {"nearestDiffersIn", changed}});
  }
  return result;
}

}  // namespace weft::driver
