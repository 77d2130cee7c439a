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

/// How many columns results may take: those of the terminal, at most 100; 100 in a pipe; no limit once allowWide() was called.
size_t resultColumns();
/// --wide: lines of results may be as long as they are, and no cell is shortened.
void allowWide();

/// A table with aligned columns that fits its width. The first row is the head. Where the columns do not fit, those that are
/// aligned to the left give way, the widest first: cells of `left` are shortened with "...", cells of `text` continue in further
/// lines. What still does not fit becomes several tables, each with the first column: no figure is ever cut.
class Table {
public:
  enum class Align : uint8_t { left, right, text };
  explicit Table(std::vector<std::pair<std::string, Align>> columns);
  void addRow(std::vector<std::string> cells);
  std::string print(size_t width = resultColumns()) const;

private:
  std::vector<size_t> naturalWidths() const;
  std::vector<std::vector<size_t>> blocksOf(const std::vector<size_t> &widths, size_t limit) const;
  std::string printColumns(const std::vector<size_t> &shown, const std::vector<size_t> &widths) const;

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

/// Prints text for people to standard output, lines broken at spaces where they are longer than resultColumns(); throws Error(badInput) when it cannot be written (a closed pipe, a full disk).
void printResult(const std::string &text);
/// JSON with two spaces of indentation and sorted members.
void printResult(const nlohmann::json &json);
/// "weft: note: ..." on standard error: on a terminal broken at its width, elsewhere one line, as messages are.
void printNote(const std::string &text);

/// Writes a text file whole or not at all. "-" is standard output, which gets exactly the bytes of the file. Throws Error(badInput) naming the file.
void writeFile(const std::string &path, const std::string &text);
/// Throws Error(badInput) naming the file.
std::string readFile(const std::string &path);

}  // namespace weft::driver
