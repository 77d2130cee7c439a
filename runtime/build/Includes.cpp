// Directives that open files; see Includes.h.
#include "runtime/build/Includes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <set>

namespace weft::runtime {
namespace {

constexpr std::string_view rejectedBegin = "weft rejects to include '",
                           rejectedEnd = "': neither a header of weft nor a file of the artifact";

/// A text without line splices, and the line of every character.
struct Spliced {
  std::string text;
  std::vector<int> lines;
};

/// Characters of a backslash (or its trigraph) with the end of its line, blanks between them
/// included; 0 if there is none.
size_t spliceAt(std::string_view text) {
  size_t length = text.starts_with("\\") ? 1 : text.starts_with("?\?/") ? 3 : 0;
  if (length == 0) return 0;
  while (length < text.size() &&
         (text[length] == ' ' || text[length] == '\t' || text[length] == '\r'))
    ++length;
  return length < text.size() && text[length] == '\n' ? length + 1 : 0;
}

Spliced spliced(std::string_view text) {
  Spliced result;
  result.text.reserve(text.size());
  result.lines.reserve(text.size());
  int line = 1;
  for (size_t at = 0; at < text.size();) {
    const bool maySplice = text[at] == '\\' || text[at] == '?';
    if (const size_t length = maySplice ? spliceAt(text.substr(at)) : 0) {
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
  std::string_view before = text.substr(newline == text.npos ? 0 : newline + 1,
                                        at - (newline == text.npos ? 0 : newline + 1));
  if (const size_t comment = before.rfind("*/"); comment != before.npos)
    before.remove_prefix(comment + 2);  // also one of earlier lines
  return before.find_first_not_of(" \t\v\f\r") == before.npos;
}

bool isWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// "name" or <name> at `at`; empty for anything else.
std::string literalName(std::string_view text, size_t at) {
  if (at >= text.size() || (text[at] != '"' && text[at] != '<')) return "";
  const size_t end = text.find_first_of(text[at] == '"' ? "\"\n" : ">\n", at + 1);
  return end == text.npos || text[end] == '\n' ? ""
                                               : std::string(text.substr(at + 1, end - at - 1));
}

std::string wordBefore(std::string_view text, size_t end) {
  size_t begin = end;
  while (begin > 0 && isWord(text[begin - 1])) --begin;
  return std::string(text.substr(begin, end - begin));
}

/// Words that a macro takes: "(a, b)" behind its name at `at`.
std::set<std::string> parametersAt(std::string_view text, size_t at) {
  std::set<std::string> found;
  while (at < text.size() && isWord(text[at])) ++at;
  if (at == text.size() || text[at] != '(') return found;
  for (size_t end = at; end < text.size() && text[end] != '\n'; ++end) {
    if (!isWord(text[end])) found.insert(wordBefore(text, end));
    if (text[end] == ')') break;
  }
  return found;
}

/// Whether the macro whose name follows `at` could paste a word that asks for a file, which no text
/// shows then: its pieces begin with an underscore, or with what the macro is given. A comment may
/// lead the directive on to the next line.
bool mayPasteQuestion(std::string_view text, size_t at) {
  at = behindBlanks(text, at);
  const std::set<std::string> parameters = parametersAt(text, at);
  for (bool isComment = false; at < text.size() && (isComment || text[at] != '\n'); ++at) {
    const std::string_view rest = text.substr(at);
    isComment = isComment ? !rest.starts_with("*/") : rest.starts_with("/*");
    if (!rest.starts_with("##") && !rest.starts_with("%:%:") && !rest.starts_with("?\?=?\?="))
      continue;
    const std::string left = wordBefore(text, at);  // empty: set apart, whatever it is
    if (left.empty() || left.starts_with('_') || parameters.contains(left)) return true;
  }
  return false;
}

/// Questions whether a file is there: the answer is in the compiled text, so that they count as
/// includes.
std::vector<Include> questionsIn(const Spliced &whole) {
  const std::string_view text = whole.text;
  std::vector<Include> found;
  for (size_t at = text.find("__has_"); at != text.npos; at = text.find("__has_", at + 1)) {
    size_t end = at;
    while (end < text.size() && isWord(text[end])) ++end;
    const std::string word(text.substr(at, end - at));
    if (!word.starts_with("__has_include") && !word.starts_with("__has_embed")) continue;
    const size_t open = behindBlanks(text, end);
    const bool isAsked = open < text.size() && text[open] == '(';
    found.push_back({.line = whole.lines[at],
                     .directive = word,
                     .name = isAsked ? literalName(text, behindBlanks(text, open + 1)) : ""});
  }
  return found;
}

}  // namespace

std::vector<Include> includesOf(std::string_view original) {
  constexpr std::array directives{"include", "include_next", "import", "embed"};
  const Spliced whole = spliced(original);
  const std::string_view text = whole.text;
  std::vector<Include> found;
  for (size_t at = text.find_first_of("#%?"); at < text.size();
       at = text.find_first_of("#%?", at + 1)) {
    const std::optional<size_t> sign = behindSign(text, at);
    if (!sign || !mayBegin(text, at)) continue;
    const size_t word = behindBlanks(text, *sign);
    size_t end = word;
    while (end < text.size() && isWord(text[end])) ++end;
    const std::string directive(text.substr(word, end - word));
    if (directive == "define" && mayPasteQuestion(text, end))
      found.push_back({.line = whole.lines[at], .directive = "define", .name = "##"});
    if (std::ranges::find(directives, directive) == directives.end()) continue;
    found.push_back({.line = whole.lines[at],
                     .directive = directive,
                     .name = literalName(text, behindBlanks(text, end))});
  }
  const std::vector<Include> questions = questionsIn(whole);
  found.insert(found.end(), questions.begin(), questions.end());
  return found;
}

namespace {

void addIncluded(std::string_view text, const std::map<std::string, std::string_view> &available,
                 std::map<std::string, std::string> &included) {
  for (const Include &include : includesOf(text)) {
    const auto header = available.find(include.name);
    if (header == available.end() || !included.emplace(include.name, header->second).second)
      continue;
    addIncluded(header->second, available, included);
  }
}

}  // namespace

std::map<std::string, std::string> includedHeaders(
    std::string_view text, const std::map<std::string, std::string_view> &available) {
  std::map<std::string, std::string> included;
  addIncluded(text, available, included);
  return included;
}

std::map<std::string, std::string> rejectedHeaders(
    std::string_view text, const std::map<std::string, std::string> &headers) {
  std::map<std::string, std::string> rejected;
  const auto reject = [&](std::string_view part) {
    for (const Include &include : includesOf(part))
      if (include.directive == "include" && !include.name.empty() &&
          !headers.contains(include.name))
        rejected.emplace(include.name,
                         fmt::format("#error {}{}{}\n", rejectedBegin, include.name, rejectedEnd));
  };
  reject(text);
  for (const auto &[name, content] : headers) reject(content);
  return rejected;
}

std::string includeRejection(std::string_view text,
                             const std::map<std::string, std::string> &headers) {
  const auto rejection = [&headers](std::string_view part,
                                    const std::string &where) -> std::string {
    for (const Include &include : includesOf(part))
      if (const bool isQuestion = include.directive == "__has_include";
          isQuestion && !headers.contains(include.name))
        return fmt::format(
            "{}({}): error: __has_include of {}: a kernel asks for headers of weft and files of "
            "its artifact alone",
            where, include.line,
            include.name.empty() ? "no literal name" : "'" + include.name + "'");
      else if (include.directive == "define")
        return fmt::format(
            "{}({}): error: #define with ## behind a parameter, a blank or an underscore: such "
            "words could ask for files; begin them with letters",
            where, include.line);
      else if ((include.directive != "include" && !isQuestion) || include.name.empty())
        return fmt::format(
            "{}({}): error: #{} {}: a kernel includes headers of weft and files of its artifact, "
            "each by its own name",
            where, include.line, include.directive,
            include.name.empty() ? "of no literal name" : "'" + include.name + "'");
    return "";
  };
  std::string reason = rejection(text, "kernel.cu");
  for (const auto &[name, content] : headers)
    if (reason.empty()) reason = rejection(content, name);
  return reason;
}

std::vector<std::string> rejectedIn(std::string_view log) {
  std::set<std::string> names;
  for (size_t at = log.find(rejectedBegin); at != log.npos; at = log.find(rejectedBegin, at + 1)) {
    const size_t start = at + rejectedBegin.size(), end = log.find(rejectedEnd, start);
    if (end != log.npos) names.emplace(log.substr(start, end - start));
  }
  return {names.begin(), names.end()};
}

}  // namespace weft::runtime
