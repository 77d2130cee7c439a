// Statements `asm volatile("text" : "=r"(output) : "r"(input) : "memory");`; see TranslatePtx.h.
#include "tests/emulate/TranslatePtx.h"

#include "kernel/Error.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <regex>
#include <vector>

namespace weft::emulate {
namespace {

bool isOfName(char c) { return std::isalnum(uint8_t(c)) || c == '_'; }

/// Behind the string, comment or character that starts here; or one character on.
size_t skip(std::string_view text, size_t at) {
  if (text.substr(at).starts_with("//")) return std::min(text.find('\n', at), text.size());
  if (text.substr(at).starts_with("/*")) return std::min(text.find("*/", at) + 2, text.size());
  const char quote = text[at];
  if (quote != '"') return at + 1;
  for (++at; at < text.size() && text[at] != quote; ++at)
    if (text[at] == '\\') ++at;
  return std::min(at + 1, text.size());
}

/// Between parentheses: the sections of a statement, and behind the closing one.
struct Statement {
  std::vector<std::string> sections{""};
  size_t end = 0;
};
Statement statementAt(std::string_view text, size_t open) {
  Statement statement;
  int depth = 1;
  for (size_t at = open + 1; at < text.size();) {
    const size_t next = skip(text, at);
    const char c = text[at];
    depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
    if (depth == 0) {
      statement.end = next;
      return statement;
    }
    const bool isScope = c == ':' && depth > 1;
    if (c == ':' && !isScope) statement.sections.emplace_back();
    else if (!text.substr(at).starts_with("//"))
      statement.sections.back() += text.substr(at, next - at);
    at = next;
  }
  throw Error::checkFailed("an asm statement without an end");
}

/// `"r"(a), "f"(b[0])` as calls of a function for each.
void addOperands(std::string_view section, bool areOutputs, std::vector<std::string> &calls) {
  for (size_t at = 0; at < section.size();) {
    if (section[at] != '"') {
      ++at;
      continue;
    }
    const size_t open = section.find('(', skip(section, at));
    if (open == std::string_view::npos) throw Error::checkFailed("an asm operand without a value");
    const size_t end = statementAt(section, open).end;
    calls.push_back(fmt::format("::weft::emulate::{}({})", areOutputs ? "ptxOutput" : "ptxInput",
                                section.substr(open + 1, end - open - 2)));
    at = end;
  }
}

std::string callOf(const Statement &statement) {
  const std::string &text = statement.sections[0];
  std::vector<std::string> operands;
  if (statement.sections.size() > 1) addOperands(statement.sections[1], true, operands);
  if (statement.sections.size() > 2) addOperands(statement.sections[2], false, operands);
  std::string literal = text;
  std::ranges::replace(literal, '\n', ' ');
  if (literal.find_first_not_of("\" ") == std::string::npos) return "static_cast<void>(0)";
  return fmt::format(
      "[]() -> const ::weft::emulate::PtxStatement & {{ static const ::weft::emulate::PtxStatement "
      "statement({}); return statement; }}()({{{}}}, __FILE__, __LINE__)",
      literal, fmt::join(operands, ", "));
}

}  // namespace

std::string translatePtx(std::string_view source) {
  constexpr std::string_view keyword = "asm";
  std::string result;
  for (size_t at = 0; at < source.size();) {
    const bool isKeyword = source.substr(at).starts_with(keyword) &&
                           (at == 0 || !isOfName(source[at - 1])) &&
                           !isOfName(source[at + keyword.size()]);
    if (!isKeyword) {
      const size_t next = skip(source, at);
      result += source.substr(at, next - at);
      at = next;
      continue;
    }
    const size_t open = source.find('(', at);
    const Statement statement = statementAt(source, open);
    const std::string_view whole = source.substr(at, statement.end - at);
    std::string call = callOf(statement);
    std::ranges::replace(call, '\n', ' ');
    result += call + std::string(size_t(std::ranges::count(whole, '\n')), '\n');
    at = statement.end;
  }
  static const std::regex dynamic(
      R"(extern __shared__ (__align__\(\d+\) )?unsigned char (\w+)\[\];)");
  return std::regex_replace(result, dynamic,
                            "unsigned char *const $2 = static_cast<unsigned char *>("
                            "::weft::emulate::dynamicShared());");
}

}  // namespace weft::emulate
