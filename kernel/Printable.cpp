// UTF-8 read strictly; see Printable.h.
#include "kernel/Printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace weft {
namespace {

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
  const bool turnsDirection = point == 0x200E || point == 0x200F || (point >= 0x202A && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069);
  return point == '\n' || !(isControl || turnsDirection);
}

/// Cut where characters begin: between whole ones in a text of UTF-8.
std::string shortened(std::string_view text, size_t most) {
  size_t head = most / 2, tail = text.size() - most / 2;
  while (head > 0 && isContinuation(uint8_t(text[head]))) --head;
  while (tail < text.size() && isContinuation(uint8_t(text[tail]))) ++tail;
  return fmt::format("{} [... {} bytes ...] {}", text.substr(0, head), tail - head, text.substr(tail));
}

std::string escaped(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    uint32_t point = 0;
    const size_t known = characterLength(text, point), length = std::max<size_t>(known, 1);
    if (known > 0 && isShown(point)) shown += text.substr(0, length);
    else
      for (const char byte : text.substr(0, length)) shown += fmt::format("\\x{:02x}", uint8_t(byte));
    text.remove_prefix(length);
  }
  return shown;
}

}  // namespace

std::string printable(std::string_view text, size_t most) {
  return text.size() > most ? escaped(shortened(text, most)) : escaped(text);
}

std::string printableLine(std::string_view text, size_t most) {
  std::string line;
  for (const char letter : printable(text, most))
    if (letter == '\n') line += "\\n";
    else line += letter;
  return line;
}

}  // namespace weft
