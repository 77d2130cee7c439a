// Escapes, by the byte and by the character of strictly read UTF-8; see PlainText.h.
#include "kernel/PlainText.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

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

bool isContinuation(uint8_t byte) { return (byte & 0xC0) == 0x80; }

/// Bytes of the character that a text starts with; 0 where it is no UTF-8. `point`: its number.
size_t characterLength(std::string_view text, uint32_t &point) {
  const uint8_t first = uint8_t(text.front());
  if (first < 0x80) {
    point = first;
    return 1;
  }
  const size_t length = first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
  if (length == 0 || length > text.size()) return 0;
  point = first & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if (!isContinuation(uint8_t(text[i]))) return 0;
    point = point << 6 | (uint8_t(text[i]) & 0x3Fu);
  }
  constexpr std::array<uint32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
  const bool isSurrogate = point >= 0xD800 && point <= 0xDFFF;
  return point >= least[length] && point <= 0x10FFFF && !isSurrogate ? length : 0;
}

bool isShown(uint32_t point) {
  const bool isControl = point < 0x20 || (point >= 0x7F && point < 0xA0);
  const bool turnsDirection = point == 0x200E || point == 0x200F ||
                              (point >= 0x202A && point <= 0x202E) ||
                              (point >= 0x2066 && point <= 0x2069);
  return point == '\n' || !(isControl || turnsDirection);
}

/// Cut where characters begin: between whole ones in a text of UTF-8.
std::string shortened(std::string_view text, size_t most) {
  size_t head = most / 2, tail = text.size() - most / 2;
  while (head > 0 && isContinuation(uint8_t(text[head]))) --head;
  while (tail < text.size() && isContinuation(uint8_t(text[tail]))) ++tail;
  return fmt::format("{} [... {} bytes ...] {}", text.substr(0, head), tail - head,
                     text.substr(tail));
}

/// All that is not shown as it is, by the byte.
std::string escaped(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    uint32_t point = 0;
    const size_t known = characterLength(text, point), length = std::max<size_t>(known, 1);
    if (known > 0 && isShown(point)) shown += text.substr(0, length);
    else
      for (const char byte : text.substr(0, length)) shown += hexadecimal(byte);
    text.remove_prefix(length);
  }
  return shown;
}

}  // namespace

bool isPlain(std::string_view text) { return std::ranges::all_of(text, isPlainCharacter); }

std::string oneLine(std::string_view text) {
  return respelled(text, [](char c) { return isPlainCharacter(c) ? "" : hexadecimal(c); });
}

std::string printable(std::string_view text, size_t most) {
  return text.size() > most ? escaped(shortened(text, most)) : escaped(text);
}

std::string printableLine(std::string_view text, size_t most) {
  return respelled(printable(text, most), [](char c) { return c == '\n' ? "\\n" : ""; });
}

std::string lineComment(std::string_view text) {
  std::string line = oneLine(text);
  // A backslash, or its trigraph, at the end would take in the next line; compilers look past
  // blanks for it.
  const size_t last = line.find_last_not_of(' ');
  if (last != line.npos && (line[last] == '\\' || line.substr(0, last + 1).ends_with("?\?/")))
    line.resize(last + 1), line += '.';
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
