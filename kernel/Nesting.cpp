// Scanning without a grammar: only what can hide a bracket (strings, comments) or nest without one
// (aliases, operators) is told apart. A text that the scan misreads is one that its parser rejects
// at the same place.
#include "kernel/Nesting.h"

#include "kernel/Error.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <vector>

namespace weft {
namespace {

/// Of one op. A graph returns at most some thousand.
constexpr int64_t mostResults = 1'000'000;

/// Open brackets with the operators behind each, as a depth.
class Levels {
public:
  Levels(std::string_view text, std::string_view where) : text(text), where(where) {}

  void open(char bracket, size_t at) {
    levels.push_back({bracket});
    deepen(1, at);
  }
  /// Closes the innermost bracket if it is of this kind; nothing else, so that no stray bracket
  /// makes a text look flat.
  void close(char bracket) {
    if (levels.size() == 1 || levels.back().bracket != bracket) return;
    endExpression();
    levels.pop_back();
    --depth;
  }
  void addOperator(size_t at) {
    ++levels.back().operators;
    deepen(1, at);
  }
  void endExpression() {
    depth -= levels.back().operators;
    levels.back().operators = 0;
  }

  bool isOutside() const { return levels.size() == 1; }
  int current() const { return depth; }
  /// Throws if `more` levels would be too many here.
  void check(int more, size_t at) const {
    if (depth + more > deepestNesting)
      throw Error::badInput("{}: nests {} levels deep; at most {} are read", placeOf(at),
                            depth + more, deepestNesting);
  }
  std::string placeOf(size_t at) const {
    const std::string_view before = text.substr(0, at);
    const size_t lineStart = before.rfind('\n') + 1;  // npos + 1 is 0
    return fmt::format("{}:{}:{}", where, 1 + std::count(before.begin(), before.end(), '\n'),
                       at - lineStart + 1);
  }

private:
  struct Level {
    char bracket;
    int operators = 0;
  };

  void deepen(int by, size_t at) {
    check(by, at);
    depth += by;
  }

  std::string_view text, where;
  std::vector<Level> levels = {{'\0'}};
  int depth = 0;
};

/// The place behind a string that starts at `at`.
size_t endOfString(std::string_view text, size_t at, bool endsWithLine) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\') ++at;
    else if (text[at] == '"' || (endsWithLine && text[at] == '\n')) return at + 1;
  }
  return text.size();
}

bool isWordLetter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) || letter == '_';
}

class MlirScan {
public:
  MlirScan(std::string_view text, std::string_view where) : text(text), levels(text, where) {}

  void run() {
    while (at < text.size()) {
      const char letter = text[at];
      if (letter == '"') at = endOfString(text, at, true);
      else if (startsWith("//")) at = std::min(text.find('\n', at), text.size());
      else if (startsWith("->") || startsWith(">=") || startsWith("<=") || startsWith("=="))
        at += 2;
      else if (letter == '#' || letter == '!') alias();
      else if (letter == '%') value();
      else if (isWordLetter(letter)) word();
      else bracket(letter);
    }
  }

private:
  bool startsWith(std::string_view beginning) const {
    return text.substr(at).starts_with(beginning);
  }

  template <typename Belongs>
  std::string_view take(Belongs belongs) {
    const size_t start = at;
    while (at < text.size() && belongs(text[at])) ++at;
    return text.substr(start, at - start);
  }

  void bracket(char letter) {
    const size_t opens = std::string_view("([{<").find(letter),
                 closes = std::string_view(")]}>").find(letter);
    if (opens != std::string_view::npos) levels.open(letter, at);
    else if (closes != std::string_view::npos) levels.close("([{<"[closes]);
    else if (letter == '+' || letter == '-' || letter == '*') levels.addOperator(at);
    else if (letter == ',' || letter == '=' || letter == '%')
      levels.endExpression();  // none of them is part of one
    ++at;
    note(levels.current());
  }

  /// "%name:N = ..." names N results, of which MLIR's parser makes a list before it looks at the
  /// op.
  void value() {
    const size_t start = at;
    bracket('%');
    take([](char letter) {
      return isWordLetter(letter) || letter == '$' || letter == '.' || letter == '-';
    });
    const size_t colon = at;
    if (at == text.size() || text[at] != ':') return;
    ++at;
    const std::string_view digits =
        take([](char letter) { return letter >= '0' && letter <= '9'; });
    const size_t first = std::min(digits.find_first_not_of('0'), digits.size());
    if (digits.size() - first > std::to_string(mostResults).size() ||
        (first < digits.size() && std::stoll(std::string(digits.substr(first))) > mostResults))
      throw Error::badInput("{}: '{}' names {} results; at most {} are read", levels.placeOf(start),
                            text.substr(start, colon - start), digits, mostResults);
  }

  void word() {
    const size_t start = at;
    const std::string_view word = take(isWordLetter);
    if (word == "mod" || word == "floordiv" || word == "ceildiv") levels.addOperator(start);
    note(levels.current());
  }

  /// "#name = ..." outside of brackets defines an alias; anywhere else it stands for what it was
  /// defined as.
  void alias() {
    const size_t start = at++;
    take([](char letter) {
      return isWordLetter(letter) || letter == '$' || letter == '.' || letter == '-';
    });
    const std::string name(text.substr(start, at - start));
    const size_t next = text.find_first_not_of(" \t\r\n", at);
    const bool isDefined = levels.isOutside() && next != std::string_view::npos &&
                           text[next] == '=' && text.substr(next, 2) != "==";
    if (isDefined) {
      defined = name;
      depths.emplace(name, 0);
      return;
    }
    if (name == defined) defined.clear();  // a definition has ended where its name is used
    const auto found = depths.find(name);
    if (found == depths.end()) return;
    levels.check(found->second, start);
    note(levels.current() + found->second);
  }

  /// So many levels belong to the alias that is being defined.
  void note(int depth) {
    if (!defined.empty()) depths[defined] = std::max(depths[defined], depth);
  }

  std::string_view text;
  Levels levels;
  size_t at = 0;
  std::map<std::string, int> depths;
  std::string defined;
};

}  // namespace

void checkJsonNesting(std::string_view text, std::string_view where) {
  Levels levels(text, where);
  for (size_t at = 0; at < text.size();) {
    const char letter = text[at];
    if (letter == '"') {
      at = endOfString(text, at, false);
      continue;
    }
    if (letter == '{' || letter == '[') levels.open(letter, at);
    if (letter == '}' || letter == ']') levels.close(letter == '}' ? '{' : '[');
    ++at;
  }
}

void checkMlirNesting(std::string_view text, std::string_view where) {
  if (text.starts_with("ML\xefR"))
    throw Error::badInput("{}: is MLIR bytecode; weft reads the text form, which mlir-opt prints",
                          where);
  MlirScan(text, where).run();
}

}  // namespace weft
