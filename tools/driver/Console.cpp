// Console output; see Console.h.
#include "tools/driver/Console.h"

#include "kernel/Error.h"
#include "kernel/TextWidth.h"
#include "runtime/Environment.h"
#include "runtime/Files.h"
#include "runtime/Streams.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <system_error>

namespace weft::driver {

std::string formatCount(int64_t count) {
  std::string digits = std::to_string(count);
  for (int at = int(digits.size()) - 3; at > (count < 0 ? 1 : 0); at -= 3) digits.insert(size_t(at), ",");
  return digits;
}

std::string formatLargeCount(double count) {
  return count < 1e6 ? formatCount(int64_t(count)) : fmt::format("{:.1e}", count);
}

namespace {

bool isWide = false;

}  // namespace

size_t resultColumns() { return isWide ? unlimitedColumns : runtime::outputColumns(STDOUT_FILENO); }
void allowWide() { isWide = true; }

Table::Table(std::vector<std::pair<std::string, Align>> columns) : columns(std::move(columns)) {}

void Table::addRow(std::vector<std::string> cells) {
  cells.resize(columns.size());
  rows.push_back(std::move(cells));
}

std::vector<size_t> Table::naturalWidths() const {
  std::vector<size_t> widths;
  for (const auto &[name, align] : columns) widths.push_back(textColumns(name));
  for (const auto &row : rows)
    for (size_t column = 0; column < row.size(); ++column) widths[column] = std::max(widths[column], textColumns(row[column]));
  return widths;
}

namespace {

constexpr size_t gap = 2;            // between columns
constexpr size_t fewestInCell = 12;  // what a shortened cell keeps: less names nothing

size_t total(const std::vector<size_t> &shown, const std::vector<size_t> &widths) {
  size_t sum = 0;
  for (const size_t column : shown) sum += widths[column] + (sum ? gap : 0);
  return sum;
}

std::vector<std::string> linesOf(const std::string &text) {
  std::vector<std::string> lines(1);
  for (const char letter : text)
    if (letter == '\n') lines.emplace_back();
    else lines.back() += letter;
  return lines;
}

}  // namespace

/// Which columns stand side by side: all in one block if they fit.
std::vector<std::vector<size_t>> Table::blocksOf(const std::vector<size_t> &widths, size_t limit) const {
  std::vector<std::vector<size_t>> blocks(1);
  for (size_t column = 0; column < columns.size(); ++column) {
    std::vector<size_t> longer = blocks.back();
    longer.push_back(column);
    if (blocks.back().size() > 1 && total(longer, widths) > limit) longer = {0, column};
    if (longer.size() < blocks.back().size() + 1) blocks.emplace_back();
    blocks.back() = std::move(longer);
  }
  return blocks;
}

std::string Table::printColumns(const std::vector<size_t> &shown, const std::vector<size_t> &widths) const {
  const auto line = [&](const std::vector<std::string> &row) {
    std::vector<std::vector<std::string>> cells;
    size_t height = 1;
    for (const size_t column : shown) {
      const bool wraps = columns[column].second == Align::text;
      cells.push_back(wraps ? linesOf(wrapped(row[column], widths[column], 0)) : std::vector<std::string>{row[column]});
      for (std::string &cell : cells.back()) cell = shortened(cell, widths[column]);
      height = std::max(height, cells.back().size());
    }
    std::string text;
    for (size_t at = 0; at < height; ++at) {
      for (size_t index = 0; index < shown.size(); ++index) {
        const std::string cell = at < cells[index].size() ? cells[index][at] : "";
        const std::string space(widths[shown[index]] - textColumns(cell), ' ');
        text += (columns[shown[index]].second == Align::right ? space + cell : cell + space) + std::string(gap, ' ');
      }
      text.erase(text.find_last_not_of(' ') + 1);
      text += "\n";
    }
    return text;
  };
  std::vector<std::string> head;
  for (const auto &[name, align] : columns) head.push_back(name);
  std::string text = emphasized(line(head));
  for (const auto &row : rows) text += line(row);
  return text;
}

std::string Table::print(size_t width) const {
  std::vector<size_t> widths = naturalWidths(), all;
  for (size_t column = 0; column < columns.size(); ++column) all.push_back(column);
  while (total(all, widths) > width) {
    size_t widest = columns.size();
    for (const size_t column : all)
      if (columns[column].second != Align::right && widths[column] > std::max(fewestInCell, textColumns(columns[column].first)) &&
          (widest == columns.size() || widths[column] > widths[widest]))
        widest = column;
    if (widest == columns.size()) break;
    --widths[widest];
  }
  std::string text;
  for (const std::vector<size_t> &block : blocksOf(widths, width)) text += (text.empty() ? "" : "\n") + printColumns(block, widths);
  return text;
}

std::string emphasized(const std::string &text) {
  return runtime::colorWanted(STDOUT_FILENO) ? "\033[1m" + text + "\033[0m" : text;
}

Progress::Progress() : terminal(isatty(STDERR_FILENO)) {}
Progress::~Progress() { clear(); }

void Progress::show(const std::string &whole) {
  if (!terminal) return;
  const std::string text = shortened(whole, runtime::outputColumns(STDERR_FILENO) - 1);  // a line that wraps cannot be overwritten
  std::fprintf(stderr, "\r%-*s", int(shown), text.c_str());
  std::fflush(stderr);
  shown = text.size();
}

void Progress::clear() {
  if (!terminal || shown == 0) return;
  std::fprintf(stderr, "\r%*s\r", int(shown), "");
  std::fflush(stderr);
  shown = 0;
}

namespace {

void writeOutput(const std::string &text) {
  runtime::printOut(text);
  runtime::finishOutput();
}

}  // namespace

void printResult(const std::string &text) { writeOutput(wrapped(text, resultColumns())); }

/// Names of files are bytes; what of them is no UTF-8 is replaced.
void printResult(const nlohmann::json &json) { writeOutput(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"); }

void printNote(const std::string &text) {
  const size_t width = isatty(STDERR_FILENO) ? runtime::outputColumns(STDERR_FILENO) : unlimitedColumns;
  runtime::say(wrapped("weft: note: " + text, width) + "\n");
}

void writeFile(const std::string &path, const std::string &text) {
  if (path == "-") return writeOutput(text);
  std::error_code none;
  const bool isThere = std::filesystem::exists(path, none);
  try {
    runtime::replaceFile(path, text);
  } catch (const std::system_error &error) {
    if (!isThere) std::filesystem::remove(path, none);  // half of a file would look like one
    throw Error::badInput("cannot write '{}': {}", path, error.code().message());
  }
}

std::string readFile(const std::string &path) {
  try {
    return runtime::readFile(path);
  } catch (const std::system_error &error) {
    throw Error::badInput("cannot read '{}': {}", path, error.code().message());
  }
}

}  // namespace weft::driver
