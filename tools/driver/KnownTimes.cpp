// One small JSON text a question, remembered by the cache; see KnownTimes.h.
#include "tools/driver/KnownTimes.h"

#include "runtime/build/Cache.h"

#include <nlohmann/json.hpp>

namespace weft::driver {

using nlohmann::json;

namespace {

std::optional<runtime::Cache> cache() {
  const auto folder = runtime::knownCacheFolder();
  if (!folder) return std::nullopt;
  return runtime::Cache(*folder, [](const std::string &) {});
}

}  // namespace

const std::string &KnownTimes::name() {
  if (finished.empty()) finished = key.finish();
  return finished;
}

std::optional<std::map<std::string, double>> KnownTimes::find() {
  const auto kept = cache();
  const std::optional<std::string> text = kept ? kept->recall(name()) : std::nullopt;
  const json times = text ? json::parse(*text, nullptr, false) : json();
  if (!times.is_object() || times.empty()) return std::nullopt;
  std::map<std::string, double> known;
  for (const auto &[variant, seconds] : times.items()) {
    if (!seconds.is_number() || !(seconds.get<double>() > 0)) return std::nullopt;
    known[variant] = seconds.get<double>();
  }
  return known;
}

void KnownTimes::store(const std::map<std::string, double> &times) {
  if (const auto kept = cache()) kept->remember(name(), json(times).dump());
}

}  // namespace weft::driver
