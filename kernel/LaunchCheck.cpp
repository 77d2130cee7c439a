// Launch checks of emitted text; see LaunchCheck.h.
#include "kernel/LaunchCheck.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

namespace weft {
namespace {

constexpr std::string_view begin = "static_assert(", middle = ", \"plan.json: ", end = "\");";

/// One statement of the form that launchCheck() writes: nothing may hide behind it in a line that
/// hashes leave out.
bool isLaunchCheck(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  if (!line.starts_with(begin) || !line.ends_with(end)) return false;
  const size_t message = line.find(middle);
  if (message == line.npos) return false;
  const std::string_view condition = line.substr(begin.size(), message - begin.size());
  const std::string_view what =
      line.substr(message + middle.size(), line.size() - end.size() - message - middle.size());
  int depth = 0;
  for (const char c : condition) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (depth < 0 || c == '"' || c == '\\' || c == ';') return false;
  }
  return depth == 0 && condition.find("//") == condition.npos &&
         condition.find("/*") == condition.npos && what.find_first_of("\"\\") == what.npos;
}

bool isWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Behind the string or character that begins at `at`.
size_t behindQuoted(std::string_view text, size_t at) {
  const char quote = text[at];
  for (++at; at < text.size() && text[at] != quote && text[at] != '\n'; ++at)
    at += text[at] == '\\';
  return std::min(at + 1, text.size());
}

/// A text without line splices, and where each character stood.
struct Spliced {
  explicit Spliced(std::string_view original) : original(original) {
    for (size_t at = 0; at < original.size(); ++at) {
      if (original.substr(at).starts_with("\\\n")) {
        ++at;
        continue;
      }
      text += original[at];
      places.push_back(at);
    }
  }
  /// Whether the quote at `at` begins a raw string: R"..", u8R"..", and so on.
  bool isRaw(size_t at) const {
    if (text[at] != '"' || at == 0 || text[at - 1] != 'R') return false;
    size_t begin = at;
    while (begin > 0 && isWord(text[begin - 1])) --begin;
    const std::string_view prefix = std::string_view(text).substr(begin, at - begin);
    return prefix == "R" || prefix == "LR" || prefix == "uR" || prefix == "UR" || prefix == "u8R";
  }
  /// Behind the raw string whose quote is at `at`. Nothing in it is spliced; without an end, it is
  /// the rest of the text.
  size_t behindRaw(size_t at) const {
    const size_t quote = places[at], open = original.find('(', quote);
    if (open == original.npos) return text.size();
    const std::string end = fmt::format("){}\"", original.substr(quote + 1, open - quote - 1));
    const size_t close = original.find(end, open);
    if (close == original.npos) return text.size();
    return size_t(std::ranges::lower_bound(places, close + end.size()) - places.begin());
  }

  std::string_view original;
  std::string text;
  std::vector<size_t> places;
};

enum class RawStrings : uint8_t { kept, emptied };

/// A text as its compiler takes it: without line splices and comments.
std::string withoutComments(std::string_view original, RawStrings raw = RawStrings::emptied) {
  const Spliced spliced(original);
  const std::string &text = spliced.text;
  std::string code;
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = std::string_view(text).substr(at);
    size_t end = at + 1;
    if (rest.starts_with("//")) {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (rest.starts_with("/*")) {
      const size_t close = text.find("*/", at + 2);
      at = close == text.npos ? text.size() : close + 2;
      code += ' ';
      continue;
    }
    if (spliced.isRaw(at)) {
      const size_t behind = spliced.behindRaw(at);
      if (raw == RawStrings::kept) code.append(text, at, behind - at);
      else code += "\"\"";
      at = behind;
      continue;
    }
    const bool isSeparator = rest[0] == '\'' && at > 0 && isWord(text[at - 1]);  // 1'000
    if ((rest[0] == '"' || rest[0] == '\'') && !isSeparator) end = behindQuoted(text, at);
    code.append(text, at, end - at);
    at = end;
  }
  return code;
}

/// With one space for each run of white space.
std::string withoutRuns(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool isSpace = std::isspace(static_cast<unsigned char>(c));
    if (!isSpace) result += c;
    else if (!result.empty() && result.back() != ' ') result += ' ';
  }
  if (result.ends_with(' ')) result.pop_back();
  return result;
}

/// Compilers differ on whether a backslash before white space splices lines.
bool hasDoubtfulSplice(std::string_view text) {
  for (size_t at = text.find('\\'); at != text.npos; at = text.find('\\', at + 1)) {
    const size_t next = text.find_first_not_of(" \t\r\v\f", at + 1);
    if (next > at + 1 && next < text.size() && text[next] == '\n') return true;
  }
  return false;
}

/// Code with one space wherever words need one, and none elsewhere; what stands under #if is left
/// out.
struct Code {
  std::string text;
  std::set<std::string> macros;  ///< defined or undefined
};

Code codeOf(std::string_view original) {
  const std::string bare = withoutComments(original);
  Code code;
  int conditions = 0;
  bool hasGap = false;
  const auto add = [&](std::string_view piece) {
    if (hasGap && !code.text.empty() && isWord(code.text.back()) && isWord(piece.front()))
      code.text += ' ';
    hasGap = false;
    code.text += piece;
  };
  for (std::string_view rest = bare; !rest.empty();) {
    const size_t length = std::min(rest.find('\n'), rest.size() - 1) + 1;
    std::string_view line = rest.substr(0, length);
    rest.remove_prefix(length);
    hasGap = true;
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r\v\f"), line.size()));
    const bool isDirective = line.starts_with('#') || line.starts_with("%:");
    if (isDirective) {
      line.remove_prefix(line.starts_with('#') ? 1 : 2);
      line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
      if (line.starts_with("if")) ++conditions;
      else if (line.starts_with("endif")) --conditions;
      for (const std::string_view directive : {"define", "undef"})
        if (line.starts_with(directive)) {
          const size_t begin =
              std::min(line.find_first_not_of(" \t", directive.size()), line.size());
          size_t end = begin;
          while (end < line.size() && isWord(line[end])) ++end;
          code.macros.emplace(line.substr(begin, end - begin));
        }
    }
    if (isDirective || conditions > 0) continue;
    for (size_t at = 0; at < line.size();) {
      if (std::isspace(static_cast<unsigned char>(line[at]))) {
        hasGap = true;
        ++at;
        continue;
      }
      const size_t end = line[at] == '"' ? behindQuoted(line, at) : at + 1;
      add(line.substr(at, end - at));
      at = end;
    }
  }
  return code;
}

/// A line that is a preprocessor directive, from its first character on; else empty.
std::string_view directiveOf(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t\r\v\f"), line.size()));
  return line.starts_with('#') || line.starts_with("%:") ? line : std::string_view();
}

/// Behind the bracket that closes the one at `at`; the end if none does.
size_t behindBrackets(std::string_view text, size_t at) {
  int depth = 0;
  while (at < text.size()) {
    if (text[at] == '"') {
      at = behindQuoted(text, at);
      continue;
    }
    const char c = text[at++];
    depth += c == '(' || c == '{' ? 1 : c == ')' || c == '}' ? -1 : 0;
    if (depth == 0) return at;
  }
  return text.size();
}

/// Where an argument ends: at a comma or bracket of its depth.
size_t argumentEnd(std::string_view text, size_t at) {
  while (at < text.size() && text[at] != ',' && text[at] != ')')
    at = text[at] == '(' ? behindBrackets(text, at) : at + 1;
  return at;
}

/// How many blocks a processor should hold at least is a person's to tune.
std::string withoutMinimumBlocks(std::string text) {
  constexpr std::string_view bounds = "__launch_bounds__(";
  for (size_t at = text.find(bounds); at != text.npos; at = text.find(bounds, at + 1)) {
    const size_t first = argumentEnd(text, at + bounds.size());
    const size_t close = behindBrackets(text, at + bounds.size() - 1) - 1;
    if (first < close) text.erase(first, close - first);
  }
  return text;
}

/// A kernel's signature up to its brace, and what stands in its body at no greater depth than its
/// own.
struct Function {
  std::string signature;
  std::string body;
};

std::string outermost(std::string_view body) {
  std::string text;
  for (size_t at = 0; at < body.size();) {
    size_t end = at + 1;
    if (body[at] == '"') end = behindQuoted(body, at);
    if (body[at] == '(') end = behindBrackets(body, at);
    if (body[at] == '{') at = behindBrackets(body, at);
    else text += body.substr(at, end - at), at = end;
  }
  return text;
}

std::optional<Function> functionOf(const std::string &code, std::string_view signature) {
  const size_t at = code.find(signature), brace = at == code.npos ? at : code.find('{', at);
  if (brace == code.npos) return std::nullopt;
  const std::string_view body =
      std::string_view(code).substr(brace, behindBrackets(code, brace) - brace);
  return Function{.signature = code.substr(at, brace - at), .body = outermost(body.substr(1))};
}

std::vector<std::string> assertsIn(const std::string &body) {
  constexpr std::string_view word = "static_assert(";
  std::vector<std::string> found;
  for (size_t at = body.find(word); at != body.npos; at = body.find(word, at + 1)) {
    const size_t end = behindBrackets(body, at + word.size() - 1);
    found.push_back(body.substr(at, end + 1 - at));
  }
  return found;
}

/// The line of a text for people: with the spaces that it has there.
std::string readable(std::string_view generated, const std::string &code) {
  const std::string text = withoutComments(generated);
  const std::string word(code.begin(), std::ranges::find_if_not(code, isWord));
  for (size_t begin = text.find(word); begin != text.npos; begin = text.find(word, begin + 1)) {
    std::string line;
    size_t matched = 0;
    for (size_t at = begin; at < text.size() && matched < code.size(); ++at) {
      const bool isSpace = std::isspace(static_cast<unsigned char>(text[at]));
      if (text[at] == code[matched] || (isSpace && code[matched] == ' ')) ++matched;
      else if (!isSpace) break;
      if (!isSpace) line += text[at];
      else if (!line.empty() && line.back() != ' ') line += ' ';
    }
    if (matched == code.size()) return line;
  }
  return code;
}

std::set<std::string> wordsOf(std::string_view code) {
  std::set<std::string> words;
  for (size_t at = 0; at < code.size();) {
    size_t end = at;
    while (end < code.size() && isWord(code[end])) ++end;
    if (end > at) words.emplace(code.substr(at, end - at));
    at = end == at && code[at] == '"' ? behindQuoted(code, at) : std::max(end, at + 1);
  }
  return words;
}

}  // namespace

namespace {
constexpr std::string_view waitingSuffix = "_early";
}

std::string waitingEntry(std::string_view entry) {
  return fmt::format("{}{}", entry, waitingSuffix);
}

bool isWaitingEntry(std::string_view symbol) { return symbol.ends_with(waitingSuffix); }

std::string launchCheck(std::string_view condition, std::string_view what) {
  return fmt::format("{}{}{}{}{}", begin, condition, middle, what, end);
}

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

std::vector<std::string> lostLaunch(std::string_view generated, std::string_view edited,
                                    const std::map<std::string, std::string_view> &headers) {
  const Code ours = codeOf(generated), theirs = codeOf(edited);
  const std::string written = withoutMinimumBlocks(ours.text),
                    now = withoutMinimumBlocks(theirs.text);
  const std::optional<Function> wanted = functionOf(written, "extern\"C\"__global__");
  if (!wanted) return {};
  std::vector<std::string> lost;
  std::set<std::string> words = wordsOf(wanted->signature);
  const std::optional<Function> kept = functionOf(now, wanted->signature);
  if (!kept || kept->signature != wanted->signature) {
    const std::string shown = functionOf(ours.text, "extern\"C\"__global__")->signature;
    lost.push_back(readable(generated, shown));
    return lost;  // nothing else is found without it
  }
  for (const std::string &check : assertsIn(wanted->body)) {
    words.merge(wordsOf(check));
    if (kept->body.find(check) == std::string::npos) lost.push_back(readable(generated, check));
  }
  for (const std::string &macro : theirs.macros)
    if (words.contains(macro) && !ours.macros.contains(macro))
      lost.push_back(macro + " without #define");
  constexpr const char *splice = "lines whose last character is their backslash";
  if (hasDoubtfulSplice(edited)) lost.emplace_back(splice);
  for (const auto &[name, text] : headers) {
    for (const std::string &macro : codeOf(text).macros)
      if (words.contains(macro))
        lost.push_back(fmt::format("{} without #define in {}", macro, name));
    if (hasDoubtfulSplice(text)) lost.push_back(fmt::format("{} in {}", splice, name));
  }
  return lost;
}

std::string compactCode(std::string_view original) {
  const std::string bare = withoutComments(original, RawStrings::kept);
  std::string code;
  bool hasGap = false;
  for (std::string_view rest = bare; !rest.empty();) {
    const size_t length = std::min(rest.find('\n'), rest.size() - 1) + 1;
    const std::string_view line = rest.substr(0, length);
    rest.remove_prefix(length);
    hasGap = true;
    if (const std::string_view directive = directiveOf(line); !directive.empty()) {
      if (!code.empty() && code.back() != '\n') code += '\n';
      code += withoutRuns(directive) + '\n';
      continue;
    }
    for (size_t at = 0; at < line.size();) {
      if (std::isspace(static_cast<unsigned char>(line[at]))) {
        hasGap = true;
        ++at;
        continue;
      }
      const size_t end = line[at] == '"' ? behindQuoted(line, at) : at + 1;
      if (hasGap && !code.empty() && isWord(code.back()) && isWord(line[at])) code += ' ';
      hasGap = false;
      code += line.substr(at, end - at);
      at = end;
    }
  }
  return code;
}

bool sameCode(std::string_view a, std::string_view b) {
  return a == b || withoutRuns(withoutComments(a, RawStrings::kept)) ==
                       withoutRuns(withoutComments(b, RawStrings::kept));
}

bool hasFailedLaunchCheck(std::string_view log) {
  return log.find("static assertion failed with \"plan.json: ") != log.npos;
}

}  // namespace weft
