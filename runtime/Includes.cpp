// Directives that open files; see Includes.h.
#include "runtime/Includes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <set>

namespace weft::runtime {
namespace {

constexpr std::string_view refusedBegin = "weft refuses to include '", refusedEnd = "': neither a header of weft nor a file of the artifact";

/// A text without line splices, and the line of every character.
struct Spliced {
  std::string text;
  std::vector<int> lines;
};

/// Characters of a backslash (or its trigraph) with the end of its line, blanks between them included; 0 if there is none.
size_t spliceAt(std::string_view text) {
  size_t length = text.starts_with("\\") ? 1 : text.starts_with("?\?/") ? 3 : 0;
  if (length == 0) return 0;
  while (length < text.size() && (text[length] == ' ' || text[length] == '\t' || text[length] == '\r')) ++length;
  return length < text.size() && text[length] == '\n' ? length + 1 : 0;
}

Spliced spliced(std::string_view text) {
  Spliced result;
  int line = 1;
  for (size_t at = 0; at < text.size();) {
    if (const size_t length = spliceAt(text.substr(at))) {
      ++line;
      at += length;
      continue;
    }
    result.text += text[at];
    result.lines.push_back(line);
    line += text[at++] == '\n';
  }
  return result;
}

/// Where blanks and comments end that may stand inside a directive.
size_t behindBlanks(std::string_view text, size_t at) {
  while (at < text.size()) {
    if (std::string_view(" \t\v\f\r").find(text[at]) != std::string_view::npos) {
      ++at;
    } else if (text.substr(at).starts_with("/*")) {
      const size_t end = text.find("*/", at + 2);
      at = end == text.npos ? text.size() : end + 2;
    } else {
      return at;
    }
  }
  return at;
}

/// Behind the sign of a directive, if one stands at `at`.
std::optional<size_t> behindSign(std::string_view text, size_t at) {
  for (const std::string_view sign : {"#", "%:", "?\?="})
    if (text.substr(at).starts_with(sign)) return at + sign.size();
  return std::nullopt;
}

/// Whether a directive may begin at `at`: only blanks and comments stand before it in its line.
bool mayBegin(std::string_view text, size_t at) {
  const size_t newline = at == 0 ? text.npos : text.rfind('\n', at - 1);
  std::string_view before = text.substr(newline == text.npos ? 0 : newline + 1, at - (newline == text.npos ? 0 : newline + 1));
  if (const size_t comment = before.rfind("*/"); comment != before.npos) before.remove_prefix(comment + 2);  // also one of earlier lines
  return before.find_first_not_of(" \t\v\f\r") == before.npos;
}

bool isWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// "name" or <name> at `at`; empty for anything else.
std::string literalName(std::string_view text, size_t at) {
  if (at >= text.size() || (text[at] != '"' && text[at] != '<')) return "";
  const size_t end = text.find_first_of(text[at] == '"' ? "\"\n" : ">\n", at + 1);
  return end == text.npos || text[end] == '\n' ? "" : std::string(text.substr(at + 1, end - at - 1));
}

}  // namespace

std::vector<Include> includesOf(std::string_view original) {
  constexpr std::array directives{"include", "include_next", "import", "embed"};
  const Spliced whole = spliced(original);
  const std::string_view text = whole.text;
  std::vector<Include> found;
  for (size_t at = 0; at < text.size(); ++at) {
    const std::optional<size_t> sign = behindSign(text, at);
    if (!sign || !mayBegin(text, at)) continue;
    const size_t word = behindBlanks(text, *sign);
    size_t end = word;
    while (end < text.size() && isWord(text[end])) ++end;
    const std::string directive(text.substr(word, end - word));
    if (std::ranges::find(directives, directive) == directives.end()) continue;
    found.push_back({.line = whole.lines[at], .directive = directive, .name = literalName(text, behindBlanks(text, end))});
  }
  return found;
}

namespace {

void addIncluded(std::string_view text, const std::map<std::string, std::string_view> &available, std::map<std::string, std::string> &included) {
  for (const Include &include : includesOf(text)) {
    const auto header = available.find(include.name);
    if (header == available.end() || !included.emplace(include.name, header->second).second) continue;
    addIncluded(header->second, available, included);
  }
}

}  // namespace

std::map<std::string, std::string> includedHeaders(std::string_view text, const std::map<std::string, std::string_view> &available) {
  std::map<std::string, std::string> included;
  addIncluded(text, available, included);
  return included;
}

std::map<std::string, std::string> refusedHeaders(std::string_view text, const std::map<std::string, std::string> &headers) {
  std::map<std::string, std::string> refused;
  const auto refuse = [&](std::string_view part) {
    for (const Include &include : includesOf(part))
      if (!include.name.empty() && !headers.contains(include.name)) refused.emplace(include.name, fmt::format("#error {}{}{}\n", refusedBegin, include.name, refusedEnd));
  };
  refuse(text);
  for (const auto &[name, content] : headers) refuse(content);
  return refused;
}

std::string includeRefusal(std::string_view text, const std::map<std::string, std::string> &headers) {
  const auto refusal = [](std::string_view part, const std::string &where) -> std::string {
    for (const Include &include : includesOf(part))
      if (include.directive != "include" || include.name.empty())
        return fmt::format("{}({}): error: #{} {}: a kernel includes headers of weft and files of its artifact, each by its own name", where, include.line,
                           include.directive, include.name.empty() ? "of no literal name" : "'" + include.name + "'");
    return "";
  };
  std::string reason = refusal(text, "kernel.cu");
  for (const auto &[name, content] : headers)
    if (reason.empty()) reason = refusal(content, name);
  return reason;
}

std::vector<std::string> refusedIn(std::string_view log) {
  std::set<std::string> names;
  for (size_t at = log.find(refusedBegin); at != log.npos; at = log.find(refusedBegin, at + 1)) {
    const size_t start = at + refusedBegin.size(), end = log.find(refusedEnd, start);
    if (end != log.npos) names.emplace(log.substr(start, end - start));
  }
  return {names.begin(), names.end()};
}

}  // namespace weft::runtime
