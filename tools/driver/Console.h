// What the commands print: columns, quantities with units, progress. Standard output carries
// results only; progress and notes go to standard error, progress only where that is a terminal.
#pragma once

#include "kernel/Format.h"
#include "kernel/TextTable.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::driver {

/// "1,234,567".
std::string formatCount(int64_t count);
/// "1,234"; "2.3e+08" where nobody reads single digits.
std::string formatLargeCount(double count);

/// "1 kernel", "1,234 kernels".
std::string countOf(int64_t count, const std::string &one);

/// How many columns results may take: those of the terminal, at most 100; in a pipe $COLUMNS or
/// 100; no limit with --wide.
size_t resultColumns();

/// A table that fits what is printed to (kernel/TextTable.h), its head emphasized.
class Table : public TextTable {
public:
  using TextTable::TextTable;
  std::string print(size_t width = resultColumns()) const;
};
/// How a column stands in its table; broken: text that goes on in the next line.
constexpr auto left = Table::Align::left, right = Table::Align::right, broken = Table::Align::text;

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

/// Prints text for people to standard output, lines broken at spaces where they are longer than
/// resultColumns(), control characters that a name may hold as "\xHH"; throws Error(badInput) when
/// it cannot be written (a closed pipe, a full disk).
void printResult(const std::string &text);
/// What --json prints: an object with two spaces of indentation and sorted members, and the version
/// of what it means.
std::string jsonText(nlohmann::json object);
void printResult(const nlohmann::json &object);
/// "weft: note: ..." on standard error: on a terminal broken at its width, elsewhere one line, as
/// messages are.
void printNote(const std::string &text);

/// Writes a text file whole or not at all. "-" is standard output, which gets exactly the bytes of
/// the file. Throws Error(badInput) naming the file.
void writeFile(const std::string &path, const std::string &text);
/// Throws Error(badInput) naming the file.
std::string readFile(const std::string &path);

/// Behind a table of variants where a time has "<=" in front of it.
inline constexpr std::string_view atMostNote =
    "<=: of the best plan found: a variant's search ends when it cannot be chosen any more";

}  // namespace weft::driver
