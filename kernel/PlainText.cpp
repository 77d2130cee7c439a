// Escapes; see PlainText.h.
#include "kernel/PlainText.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft {
namespace {

bool isPlainCharacter(char c) { return c >= ' ' && c <= '~'; }

/// Every character by `spelling`, which gives nothing for those that stay.
template <typename Spelling>
std::string respelled(std::string_view text, Spelling &&spelling) {
  std::string result;
  for (const char c : text) {
    const std::string other = spelling(c);
    if (other.empty()) result += c;
    else result += other;
  }
  return result;
}

std::string hexadecimal(char c) { return fmt::format("\\x{:02x}", static_cast<unsigned char>(c)); }

}  // namespace

bool isPlain(std::string_view text) { return std::ranges::all_of(text, isPlainCharacter); }

std::string oneLine(std::string_view text) {
  return respelled(text, [](char c) { return isPlainCharacter(c) ? "" : hexadecimal(c); });
}

std::string lineComment(std::string_view text) {
  std::string line = oneLine(text);
  // A backslash, or its trigraph, at the end would take in the next line; compilers look past blanks for it.
  const size_t last = line.find_last_not_of(' ');
  if (last != line.npos && (line[last] == '\\' || line.substr(0, last + 1).ends_with("?\?/"))) line.resize(last + 1), line += '.';
  return line;
}

std::string dotLabel(std::string_view text) {
  return respelled(text, [](char c) -> std::string {
    if (c == '"' || c == '\\') return std::string("\\") + c;
    if (c == '\n') return "\\n";
    return isPlainCharacter(c) ? "" : "\\" + hexadecimal(c);
  });
}

std::string markup(std::string_view text) {
  return respelled(text, [](char c) -> std::string {
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    case '\n': return "";
    default: return isPlainCharacter(c) ? "" : hexadecimal(c);
    }
  });
}

}  // namespace weft
