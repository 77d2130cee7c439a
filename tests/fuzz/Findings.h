// Inputs that broke a promise, one folder for each way to break it.
#pragma once

#include "tests/fuzz/Kinds.h"

#include <filesystem>
#include <string>
#include <vector>

namespace weft::fuzz {

struct Finding {
  std::string kind;
  uint64_t seed = 0;
  Problem problem;
  std::vector<std::string> commands;  ///< the last one broke it
};

/// Writes FOLDER/KIND-HASH: what broke and by which commands (`finding.txt`), what
/// `Kind::regression` takes (`input`), and the files. The first input of its way is kept, later
/// ones add a line. True for the first.
bool keepFinding(const std::filesystem::path &folder, const Finding &finding, const Kind &kind,
                 const Files &files);

}  // namespace weft::fuzz
