// Reading the log of NVRTC and ptxas, line by line.
#include "runtime/build/CompilerLog.h"

#include <charconv>
#include <functional>

namespace weft::runtime {

namespace {

void forEachLine(std::string_view text, const std::function<void(std::string_view)> &visit) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// The number before `unit` in a line, or -1: numberBefore("Used 10 registers, ...", " registers")
/// is 10.
int numberBefore(std::string_view line, std::string_view unit) {
  const size_t end = line.find(unit);
  if (end == line.npos) return -1;
  size_t start = end;
  while (start > 0 && line[start - 1] >= '0' && line[start - 1] <= '9') --start;
  int number = -1;
  std::from_chars(line.data() + start, line.data() + end, number);
  return number;
}

}  // namespace

CompilerReport reportFrom(std::string_view log, std::string_view entry) {
  CompilerReport report;
  bool ofEntry = false;  // the lines after "Compiling entry function 'NAME'" are about it
  forEachLine(log, [&](std::string_view line) {
    constexpr std::string_view opening = "Compiling entry function '";
    if (const size_t at = line.find(opening); at != line.npos)
      ofEntry = line.substr(at + opening.size()).starts_with(std::string(entry) + "'");
    const int stored = numberBefore(line, " bytes spill stores"),
              loaded = numberBefore(line, " bytes spill loads");
    if (stored >= 0 && loaded >= 0)
      report.spillBytes = std::max(report.spillBytes, 0) + stored + loaded;
    const int registers = numberBefore(line, " registers");
    if (!ofEntry || registers < 0) return;
    report.registers = registers;
    report.staticSharedBytes =
        std::max(0, numberBefore(line, " bytes smem"));  // not printed when there is none
  });
  return report;
}

namespace {

/// The first line with a code C75xx other than C7519 that speaks of serialization, or of another
/// thing.
std::string firstWarning(std::string_view log, bool isOfSerialization) {
  std::string found;
  forEachLine(log, [&](std::string_view line) {
    const size_t at = line.find("(C75");
    if (found.empty() && at != line.npos && !line.substr(at).starts_with("(C7519)") &&
        (line.find("serialized") != line.npos) == isOfSerialization)
      found = line;
  });
  return found;
}

}  // namespace

std::string serialization(std::string_view log) { return firstWarning(log, true); }

std::string fatalWarning(std::string_view log) { return firstWarning(log, false); }

std::string reproducible(std::string_view log) {
  std::string kept;
  forEachLine(log, [&](std::string_view line) {
    if (line.find("Compile time = ") == line.npos) kept.append(line).append("\n");
  });
  return kept;
}

}  // namespace weft::runtime
