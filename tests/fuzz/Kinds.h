// The kinds of input that are fuzzed: how each is made from a seed, and which commands it is given
// to.
#pragma once

#include "tests/fuzz/Random.h"
#include "tests/fuzz/Session.h"

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace weft::fuzz {

/// Path below the scratch folder -> bytes.
using Files = std::map<std::string, std::string>;

class Kind {
public:
  virtual ~Kind() = default;
  virtual std::string name() const = 0;
  /// The mutated input of a seed: a function of it and of the corpus.
  virtual Files input(Random &random) const = 0;
  /// A file of the corpus' folder of regressions as an input.
  virtual Files regression(const std::string &bytes) const = 0;
  /// What to keep of an input, as `regression` takes it.
  virtual std::string kept(const Files &files) const = 0;
  /// Gives the input to commands: a few that `random` chooses, or every one that there is.
  virtual void run(Session &session, const Files &files, Random &random, bool everything) const = 0;
};

/// The kinds that are named, or all. `corpus`: tests/fuzz/corpus; `scratch`: an existing folder,
/// where plans and files of tensors get artifacts to start from. Throws std::runtime_error for a
/// name of no kind.
std::vector<std::unique_ptr<Kind>> makeKinds(const std::vector<std::string> &names,
                                             const std::filesystem::path &corpus,
                                             const std::filesystem::path &scratch);

std::unique_ptr<Kind> graphKind(const std::filesystem::path &corpus);
std::unique_ptr<Kind> configKind(const std::filesystem::path &corpus);
std::unique_ptr<Kind> profileKind(const std::filesystem::path &corpus);
std::unique_ptr<Kind> planKind(const std::filesystem::path &corpus,
                               const std::filesystem::path &scratch);
std::unique_ptr<Kind> safetensorsKind(const std::filesystem::path &corpus,
                                      const std::filesystem::path &scratch);

/// Every file of a folder in the order of names; throws std::runtime_error if there is none.
std::vector<std::string> textsOf(const std::filesystem::path &folder, const std::string &extension);
/// Files of a folder under a separate name in the scratch folder.
Files filesOf(const std::filesystem::path &folder, const std::string &as);
/// 1 mutation, at times more.
size_t mutationCount(Random &random);

}  // namespace weft::fuzz
