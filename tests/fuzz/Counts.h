// How many inputs of each kind were ever run, and which seed is next: one file beside the corpus, so that every later run goes on
// where the last one ended.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace weft::fuzz {

struct Count {
  uint64_t nextSeed = 0;
  std::map<std::string, uint64_t> inputs;  ///< by version of the code
  uint64_t total() const;
};

/// Throws std::runtime_error for a file that is none of ours. No file: no counts.
std::map<std::string, Count> readCounts(const std::filesystem::path &path);
void writeCounts(const std::filesystem::path &path, const std::map<std::string, Count> &counts);

}  // namespace weft::fuzz
