// How many inputs of each kind were ever run, on which code, and which seed is next: one file
// beside the corpus, so that every later run goes on where the last one ended.
#pragma once

#include "tests/fuzz/Workers.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace weft::fuzz {

/// Of one kind on one version of the code.
struct CountedRuns {
  uint64_t inputs = 0, findings = 0;
  std::map<std::string, Commands> commands;
};

struct Count {
  uint64_t nextSeed = 0;
  std::map<std::string, CountedRuns> runs;  ///< by version of the code
  uint64_t total() const;
};

/// The counts of a corpus, which one process at a time may add to.
class CountsFile {
public:
  /// Throws std::runtime_error where another process counts into this corpus, or for a file that is
  /// none of ours. No file: no counts.
  explicit CountsFile(const std::filesystem::path &corpus);
  ~CountsFile();
  CountsFile(const CountsFile &) = delete;
  CountsFile &operator=(const CountsFile &) = delete;

  const Count &of(const std::string &kind) { return counts[kind]; }
  /// Adds what was run to the file, at once.
  void add(const std::string &kind, const std::string &version, const Tally &tally);

private:
  std::filesystem::path path;
  int lock = -1;
  std::map<std::string, Count> counts;
};

/// `commit`, and the hash of the program that runs: what a count holds for.
std::string versionOf(const std::string &commit);

}  // namespace weft::fuzz
