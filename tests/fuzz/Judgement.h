// What a command of weft promises on any input, as checks: an exit code of 0 to 4, an error with a
// place and a reason in printable UTF-8, one JSON value with --json, and folders that are whole or
// untouched.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace weft::fuzz {

/// Which promise was broken, and what shows it. Nothing broken: an empty `promise`.
struct Problem {
  std::string promise, detail;
  explicit operator bool() const { return !promise.empty(); }
};

struct Outcome {
  int code = 0;
  std::string out, err;
};

struct CommandTraits {
  /// Exit code 1 without an error is an answer: that of diff, or of a check.
  bool oneIsAnswer = false;
  bool json = false;
  /// Files and folders, relative to the work folder, that it may write if it succeeds; and that it
  /// then must have left.
  std::vector<std::string> writes = {};
  bool mustWrite = true;
  /// Files and folders that it may write whatever happens, as a database that was opened.
  std::vector<std::string> mayTouch = {};
};

/// `names`: file names that may stand for the place of an error.
Problem judge(const Outcome &outcome, const CommandTraits &traits,
              const std::vector<std::string> &names);

/// Every file below a folder: its bytes' hash; folders and links stand for themselves.
using Snapshot = std::map<std::string, std::string>;
inline constexpr const char *folderContent = "folder";
std::string hashOfBytes(std::string_view bytes);
/// `folder`: without a slash at its end.
Snapshot snapshotOf(const std::string &folder);

/// A command that fails changes nothing; one that succeeds changes what it was asked to write;
/// nobody leaves temporary files.
Problem judgeFiles(const Snapshot &before, const Snapshot &after, const Outcome &outcome,
                   const CommandTraits &traits);

/// The problem without what differs between inputs that break a promise in the same way: names and
/// numbers.
std::string signatureOf(const Problem &problem);

}  // namespace weft::fuzz
