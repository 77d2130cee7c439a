// One small JSON file a question; see KnownTimes.h.
#include "tools/driver/KnownTimes.h"

#include "runtime/Build.h"
#include "runtime/Files.h"

#include <nlohmann/json.hpp>

#include <system_error>

namespace weft::driver {

using nlohmann::json;

std::optional<std::map<std::string, double>> KnownTimes::find() {
  file = runtime::cacheFolder() / "times" / (key.finish() + ".json");
  std::error_code none;
  if (!std::filesystem::exists(file, none)) return std::nullopt;
  try {
    const json times = json::parse(runtime::readFile(file), nullptr, false);
    if (!times.is_object() || times.empty()) return std::nullopt;
    std::map<std::string, double> known;
    for (const auto &[variant, seconds] : times.items()) {
      if (!seconds.is_number() || !(seconds.get<double>() > 0)) return std::nullopt;
      known[variant] = seconds.get<double>();
    }
    return known;
  } catch (const std::system_error &) {
    return std::nullopt;
  }
}

void KnownTimes::store(const std::map<std::string, double> &times) const {
  std::error_code none;
  std::filesystem::create_directories(file.parent_path(), none);
  if (none) return;
  try {
    runtime::writeFile(file, json(times).dump(), runtime::Durability::cached);
  } catch (const std::system_error &) {
  }
}

}  // namespace weft::driver
