// counts.json; see Counts.h.
#include "tests/fuzz/Counts.h"

#include <nlohmann/json.hpp>

#include <fstream>
#include <stdexcept>

namespace weft::fuzz {

uint64_t Count::total() const {
  uint64_t sum = 0;
  for (const auto &[version, inputs] : inputs) sum += inputs;
  return sum;
}

std::map<std::string, Count> readCounts(const std::filesystem::path &path) {
  std::map<std::string, Count> counts;
  std::ifstream file(path);
  if (!file) return counts;
  try {
    const nlohmann::json document = nlohmann::json::parse(file);
    for (const auto &[kind, count] : document.items())
      counts[kind] = {.nextSeed = count.at("nextSeed"), .inputs = count.at("inputs")};
  } catch (const nlohmann::json::exception &error) {
    throw std::runtime_error(path.string() + ": " + error.what());
  }
  return counts;
}

void writeCounts(const std::filesystem::path &path, const std::map<std::string, Count> &counts) {
  nlohmann::json document = nlohmann::json::object();
  for (const auto &[kind, count] : counts)
    document[kind] = {{"nextSeed", count.nextSeed}, {"inputs", count.inputs}, {"total", count.total()}};
  const std::filesystem::path temporary = path.string() + ".new";
  std::ofstream(temporary) << document.dump(2) << "\n";
  std::filesystem::rename(temporary, path);
}

}  // namespace weft::fuzz
