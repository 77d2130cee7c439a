// Small artifacts that weft itself makes when the fuzzer starts: what plans and tensor files are
// mutated from. Made anew by the code under test, so that a change of plan.json needs no new
// corpus.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace weft::fuzz {

struct BaseArtifact {
  std::string name;
  std::filesystem::path folder;
  bool isTraining = false;  ///< with an optimizer: takes a state, not inputs
};

/// Throws std::runtime_error with the message of a compile that failed.
std::vector<BaseArtifact> makeBaseArtifacts(const std::filesystem::path &corpus,
                                            const std::filesystem::path &scratch);

/// A profile with a pretended row for every configuration that selection may ask for of a graph.
std::string makeBaseProfile(const std::filesystem::path &graph);

}  // namespace weft::fuzz
