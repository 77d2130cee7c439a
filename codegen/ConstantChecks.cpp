// Constants of a program as terms of launch checks; see ConstantChecks.h.
#include "codegen/ConstantChecks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <string_view>

namespace weft::codegen {
namespace {

bool isWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Integers of constant expressions as they are emitted: products, quotients, sums and differences
/// of literals, names and weft::Offset(..).
class Evaluation {
public:
  Evaluation(std::string_view text, const std::map<std::string, int64_t, std::less<>> &known)
      : text(text), known(known) {}

  std::optional<int64_t> run() {
    const int64_t value = sum();
    space();
    return failed || at < text.size() ? std::nullopt : std::optional(value);
  }

private:
  void space() {
    while (at < text.size() && text[at] == ' ') ++at;
  }
  bool take(char c) {
    space();
    if (at >= text.size() || text[at] != c) return false;
    ++at;
    return true;
  }
  int64_t sum() {
    int64_t value = product();
    while (!failed)
      if (take('+')) value += product();
      else if (take('-')) value -= product();
      else break;
    return value;
  }
  int64_t product() {
    int64_t value = operand();
    while (!failed) {
      if (take('*')) {
        value *= operand();
        continue;
      }
      const bool divides = take('/');
      if (!divides && !take('%')) break;
      const int64_t divisor = operand();
      if (divisor == 0) failed = true;
      else value = divides ? value / divisor : value % divisor;
    }
    return value;
  }
  int64_t operand() {
    if (take('(')) {
      const int64_t value = sum();
      failed = failed || !take(')');
      return value;
    }
    space();
    const size_t begin = at;
    while (at < text.size() && (isWord(text[at]) || text[at] == ':')) ++at;
    const std::string_view word = text.substr(begin, at - begin);
    if (word == "weft::Offset") return operand();
    if (word == "true" || word == "false") return word == "true";
    if (!word.empty() && std::isdigit(static_cast<unsigned char>(word[0]))) {
      int64_t value = 0;
      for (const char c : word) {
        if (!std::isdigit(static_cast<unsigned char>(c))) break;  // a suffix
        value = 10 * value + (c - '0');
      }
      return value;
    }
    const auto found = known.find(word);
    failed = failed || found == known.end();
    return failed ? 0 : found->second;
  }

  std::string_view text;
  const std::map<std::string, int64_t, std::less<>> &known;
  size_t at = 0;
  bool failed = false;
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return text;
}

/// The items of "{a, {b, c}, d}".
std::vector<std::string_view> itemsOf(std::string_view list) {
  std::vector<std::string_view> items;
  list = trimmed(list.substr(1, list.size() - 2));
  int depth = 0;
  for (size_t begin = 0, at = 0; at <= list.size(); ++at) {
    if (at < list.size() && list[at] != ',')
      depth += list[at] == '{' || list[at] == '(' ? 1 : list[at] == '}' || list[at] == ')' ? -1 : 0;
    if (at < list.size() && (list[at] != ',' || depth > 0)) continue;
    if (const std::string_view item = trimmed(list.substr(begin, at - begin)); !item.empty())
      items.push_back(item);
    begin = at + 1;
  }
  return items;
}

/// Terms of one check, by what it is about, in order.
struct Subject {
  std::string what;
  std::vector<std::string> terms;
};

class ConstantChecks {
public:
  explicit ConstantChecks(Program &program) : program(program) {}

  void run() {
    const auto isCheck = [](const Statement &s) { return s.kind == Statement::Kind::launchCheck; };
    for (const Statement &s : program.body)
      if (isCheck(s)) present += checkText(s) + between;
    for (const ConstantLine &line : program.constants)
      for (const auto &[name, value] : line.entries) addConstant(line, name, value);
    for (const Statement &global : program.globals)
      add("device memory",
          fmt::format("sizeof({}) == sizeof({})", nameOf(global), typeText(global)));
    Block checks;
    for (const Subject &subject : subjects)
      checks.push_back(launchCheckOf({subject.terms.begin(), subject.terms.end()}, subject.what));
    const auto last = std::find_if(program.body.rbegin(), program.body.rend(), isCheck).base();
    program.body.insert(last, checks.begin(), checks.end());
  }

private:
  static std::string nameOf(const Statement &global) {
    return global.name.str().substr(0, global.name.str().find('['));
  }

  void add(const std::string &what, const std::string &term) {
    if (present.find(between + term + between) != std::string::npos) return;
    const auto found = std::ranges::find(subjects, what, &Subject::what);
    if (found != subjects.end()) found->terms.push_back(term);
    else subjects.push_back({.what = what, .terms = {term}});
  }

  void addConstant(const ConstantLine &line, const std::string &name, const std::string &value) {
    if (line.subject.kind == ConstantSubject::Kind::unchecked) return;
    if (line.type == "int" || line.type == "weft::Offset") {
      const std::optional<int64_t> number = Evaluation(value, known).run();
      if (!number) return;
      known.emplace(name, *number);
      add(textOf(line.subject), fmt::format("{} == {}", name, *number));
    } else if (value.starts_with('{')) {
      addMembers(textOf(line.subject), name, value);
    }
  }

  /// Of `place`, a constant or a member of one: numbers, truth values, and lists of either.
  void addMembers(const std::string &what, const std::string &place, std::string_view list) {
    const std::vector<std::string_view> items = itemsOf(list);
    const bool isNamed = !items.empty() && items.front().starts_with('.');
    if (!isNamed) return addExtents(what, place, list);
    for (const std::string_view item : items) {
      const size_t equals = item.find('=');
      const std::string name(trimmed(item.substr(0, equals))), member = place + name;
      const bool isOperand = name == ".a" || name == ".b";
      const std::string_view value = trimmed(item.substr(equals + 1));
      if (value.starts_with('{'))
        addMembers(isOperand ? "strides of operand " + name.substr(1) : what, member, value);
      else addLeaf(what, member, value);
    }
  }

  /// Of weft::sm90::Dimensions, "{{p, h}}".
  void addExtents(const std::string &what, const std::string &place, std::string_view list) {
    const std::vector<std::string_view> outer = itemsOf(list);
    if (outer.size() != 1 || !outer.front().starts_with('{')) return;
    const std::vector<std::string_view> extents = itemsOf(outer.front());
    for (size_t index = 0; index < extents.size(); ++index)
      addLeaf(what, fmt::format("{}.extent[{}]", place, index), extents[index]);
    add(what, fmt::format("{}.count() == {}", place, extents.size()));
  }

  void addLeaf(const std::string &what, const std::string &place, std::string_view value) {
    if (value == "true" || value == "false")
      return add(what, fmt::format("{} == {}", place, value));
    if (const std::optional<int64_t> number = Evaluation(value, known).run())
      add(what, fmt::format("{} == {}", place, *number));
  }

  Program &program;
  const std::string between = " && ";
  std::string present = between;  ///< terms that are checked already
  std::map<std::string, int64_t, std::less<>> known;
  std::vector<Subject> subjects;
};

}  // namespace

void addConstantChecks(Program &program) { ConstantChecks(program).run(); }

}  // namespace weft::codegen
