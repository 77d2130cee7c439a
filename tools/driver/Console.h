// What the commands print: columns, quantities with units, progress. Standard output carries results only; progress and
// notes go to standard error, progress only where that is a terminal.
#pragma once

#include "kernel/Format.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace weft::driver {

/// "1,234,567".
std::string formatCount(int64_t count);
/// "1,234"; "2.3e+08" where nobody reads single digits.
std::string formatLargeCount(double count);

/// A table with aligned columns. The first row is the head; a cell longer than its column's limit is not cut, rows wrap
/// nowhere: what is printed can be searched.
class Table {
public:
  enum class Align : uint8_t { left, right };
  explicit Table(std::vector<std::pair<std::string, Align>> columns);
  void addRow(std::vector<std::string> cells);
  std::string print() const;

private:
  std::vector<std::pair<std::string, Align>> columns;
  std::vector<std::vector<std::string>> rows;
};

/// Terminal emphasis, off in pipes and under NO_COLOR.
std::string emphasized(const std::string &text);

/// A line that overwrites itself on a terminal and is silent elsewhere.
class Progress {
public:
  Progress();
  ~Progress();
  void show(const std::string &text);
  void clear();

private:
  bool terminal;
  size_t shown = 0;
};

/// Prints text to standard output; throws Error(badInput) when it cannot be written (a closed pipe, a full disk).
void printResult(const std::string &text);
/// JSON with two spaces of indentation and sorted members.
void printResult(const nlohmann::json &json);
/// "weft: note: ..." on standard error.
void printNote(const std::string &text);

/// Writes a text file whole or not at all. "-" is standard output. Throws Error(badInput) naming the file.
void writeFile(const std::string &path, const std::string &text);
/// Throws Error(badInput) naming the file.
std::string readFile(const std::string &path);

}  // namespace weft::driver
