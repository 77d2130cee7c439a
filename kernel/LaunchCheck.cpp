// Launch checks of emitted text; see LaunchCheck.h.
#include "kernel/LaunchCheck.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft {
namespace {

constexpr std::string_view begin = "static_assert(", middle = ", \"plan.json: ", end = "\");";

/// One statement of the form that launchCheck() writes: nothing may hide behind it in a line that hashes leave out.
bool isLaunchCheck(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  if (!line.starts_with(begin) || !line.ends_with(end)) return false;
  const size_t message = line.find(middle);
  if (message == line.npos) return false;
  const std::string_view condition = line.substr(begin.size(), message - begin.size());
  const std::string_view what = line.substr(message + middle.size(), line.size() - end.size() - message - middle.size());
  int depth = 0;
  for (const char c : condition) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (depth < 0 || c == '"' || c == '\\' || c == ';') return false;
  }
  return depth == 0 && condition.find("//") == condition.npos && condition.find("/*") == condition.npos &&
         what.find_first_of("\"\\") == what.npos;
}

}  // namespace

std::string launchCheck(std::string_view condition, std::string_view what) { return fmt::format("{}{}{}{}{}", begin, condition, middle, what, end); }

std::string withoutLaunchChecks(std::string_view text) {
  std::string kept;
  kept.reserve(text.size());
  bool continues = false;  // the line before goes on in this one
  while (!text.empty()) {
    const size_t length = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, length);
    const std::string_view bare = line.substr(0, line.ends_with('\n') ? length - 1 : length);
    if (continues || !isLaunchCheck(bare)) kept += line;
    continues = bare.ends_with('\\');
    text.remove_prefix(length);
  }
  return kept;
}

bool hasFailedLaunchCheck(std::string_view log) { return log.find("static assertion failed with \"plan.json: ") != log.npos; }

}  // namespace weft
