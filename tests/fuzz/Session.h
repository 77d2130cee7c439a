// Commands of weft run inside this process on the files of one input, each judged. A session
// belongs to a worker process, whose standard streams it redirects.
#pragma once

#include "tests/fuzz/Judgement.h"
#include "tests/fuzz/Slot.h"

#include <map>
#include <string>
#include <vector>

namespace weft::fuzz {

class Session {
public:
  /// `folder`: a scratch folder, emptied for every input. `out`, `err`: descriptors of files that
  /// take the streams.
  Session(std::string folder, int out, int err, Slot &slot);

  /// A new input: its files replace all others, and earlier problems are forgotten.
  void begin(const std::map<std::string, std::string> &files);
  /// Runs one command in the scratch folder, if nothing was broken before. Its exit code.
  int command(const std::vector<std::string> &arguments, const CommandTraits &traits = {});
  /// Writes a file of the scratch folder that is no part of the input.
  void write(const std::string &name, const std::string &bytes);
  bool exists(const std::string &name) const;
  std::string read(const std::string &name) const;
  /// A promise that a kind of input adds to those of every command.
  void expect(bool holds, const std::string &promise, const std::string &detail);

  const Problem &problem() const { return found; }
  const std::vector<std::string> &commandLines() const { return lines; }
  const Outcome &last() const { return outcome; }

private:
  /// Brings the scratch folder from what it holds to these files alone, and writes only what
  /// differs.
  void hold(const std::map<std::string, std::string> &files);
  void run(const std::vector<std::string> &arguments);

  std::string folder;
  int out, err;
  Slot &slot;
  std::vector<std::string> names, lines;
  Snapshot present;  ///< what the folder holds
  Problem found;
  Outcome outcome;
};

}  // namespace weft::fuzz
