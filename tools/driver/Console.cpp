// Console output; see Console.h.
#include "tools/driver/Console.h"

#include "kernel/Error.h"
#include "kernel/PlainText.h"
#include "kernel/TextWidth.h"
#include "runtime/system/Environment.h"
#include "runtime/system/Files.h"
#include "runtime/system/JsonText.h"
#include "runtime/system/Streams.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <system_error>

namespace weft::driver {
namespace {

constexpr std::string_view boldOn = "\033[1m", boldOff = "\033[0m";

}  // namespace

std::string formatCount(int64_t count) {
  std::string digits = std::to_string(count);
  for (int at = int(digits.size()) - 3; at > (count < 0 ? 1 : 0); at -= 3)
    digits.insert(size_t(at), ",");
  return digits;
}

std::string formatLargeCount(double count) {
  return count < 1e6 ? formatCount(int64_t(count)) : fmt::format("{:.1e}", count);
}

std::string countOf(int64_t count, const std::string &one) {
  return fmt::format("{} {}{}", formatCount(count), one, count == 1 ? "" : "s");
}

size_t resultColumns() { return runtime::outputColumns(STDOUT_FILENO); }

std::string Table::print(size_t width) const {
  const bool isColored = runtime::colorWanted(STDOUT_FILENO);
  return TextTable::print(width, isColored ? std::string(boldOn) : "",
                          isColored ? std::string(boldOff) : "");
}

std::string emphasized(const std::string &text) {
  return runtime::colorWanted(STDOUT_FILENO) ? fmt::format("{}{}{}", boldOn, text, boldOff) : text;
}

Progress::Progress() : terminal(isatty(STDERR_FILENO)) {}
Progress::~Progress() { clear(); }

void Progress::show(const std::string &whole) {
  if (!terminal) return;
  const std::string text =
      shortened(whole, std::min(runtime::outputColumns(STDERR_FILENO), defaultColumns) -
                           1);  // a line that wraps cannot be overwritten
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

namespace {

/// Names from files stay on the terminal what they are: all but line ends and our own emphasis is
/// escaped where it is no printable character.
std::string withoutControls(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const size_t bold = text.find(boldOn), plain = text.find(boldOff), at = std::min(bold, plain);
    shown += printable(text.substr(0, at), unlimitedColumns);
    if (at == text.npos) break;
    const std::string_view mark = at == bold ? boldOn : boldOff;
    if (runtime::colorWanted(STDOUT_FILENO)) shown += mark;
    else shown += printable(mark);
    text.remove_prefix(at + mark.size());
  }
  return shown;
}

}  // namespace

void printResult(const std::string &text) {
  writeOutput(wrapped(withoutControls(text), resultColumns()));
}

std::string jsonText(nlohmann::json object) {
  object["version"] = runtime::jsonVersion;
  return object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";  // names of files need not be UTF-8
}

void printResult(const nlohmann::json &object) { writeOutput(jsonText(object)); }

void printNote(const std::string &text) {
  const size_t width =
      isatty(STDERR_FILENO) ? runtime::outputColumns(STDERR_FILENO) : unlimitedColumns;
  runtime::say(wrapped("weft: note: " + printableLine(text), width) + "\n");
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
