// Console output; see Console.h.
#include "tools/driver/Console.h"

#include "kernel/Error.h"
#include "runtime/Environment.h"
#include "runtime/Files.h"
#include "runtime/Streams.h"

#include <fmt/format.h>

#include <unistd.h>

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

Table::Table(std::vector<std::pair<std::string, Align>> columns) : columns(std::move(columns)) {}

void Table::addRow(std::vector<std::string> cells) {
  cells.resize(columns.size());
  rows.push_back(std::move(cells));
}

std::string Table::print() const {
  std::vector<size_t> width;
  std::vector<std::string> head;
  for (const auto &[name, align] : columns) head.push_back(name), width.push_back(name.size());
  for (const auto &row : rows)
    for (size_t column = 0; column < row.size(); ++column) width[column] = std::max(width[column], row[column].size());
  const auto line = [&](const std::vector<std::string> &row) {
    std::string text;
    for (size_t column = 0; column < row.size(); ++column) {
      const bool left = columns[column].second == Align::left;
      text += left ? fmt::format("{:<{}}", row[column], width[column]) : fmt::format("{:>{}}", row[column], width[column]);
      text += "  ";
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  };
  std::string text = emphasized(line(head));
  for (const auto &row : rows) text += line(row);
  return text;
}

std::string emphasized(const std::string &text) {
  return runtime::colorWanted(STDOUT_FILENO) ? "\033[1m" + text + "\033[0m" : text;
}

Progress::Progress() : terminal(isatty(STDERR_FILENO)) {}
Progress::~Progress() { clear(); }

void Progress::show(const std::string &text) {
  if (!terminal) return;
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

void printResult(const std::string &text) {
  runtime::printOut(text);
  runtime::finishOutput();
}

/// Names of files are bytes; what of them is no UTF-8 is replaced.
void printResult(const nlohmann::json &json) { printResult(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"); }

void printNote(const std::string &text) { runtime::say(fmt::format("weft: note: {}\n", text)); }

void writeFile(const std::string &path, const std::string &text) {
  if (path == "-") return printResult(text);
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
