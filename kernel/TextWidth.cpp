// Columns, cutting and wrapping of text; see TextWidth.h.
#include "kernel/TextWidth.h"

#include <algorithm>

namespace weft {
namespace {

bool continuesCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

/// One line, without its end.
std::string wrappedLine(std::string_view line, size_t width, size_t hanging) {
  if (textColumns(line) <= width) return std::string(line);
  const size_t indent = std::min(line.find_first_not_of(' '), line.size());
  const std::string continued = "\n" + std::string(std::min(indent + hanging, width / 2), ' ');
  std::string text(line.substr(0, indent));
  size_t used = indent;
  bool isFirst = true;
  for (size_t at = indent; at < line.size();) {
    const size_t word = std::min(line.find_first_not_of(' ', at), line.size());
    const size_t end = std::min(line.find(' ', word), line.size());
    const std::string_view spaces = line.substr(at, word - at),
                           letters = line.substr(word, end - word);
    at = end;
    if (letters.empty()) break;
    const size_t columns = textColumns(letters);
    if (!isFirst && used + spaces.size() + columns > width) {
      text += continued;
      used = continued.size() - 1;
    } else {
      text += spaces;
      used += spaces.size();
    }
    text += letters;
    used += columns;
    isFirst = false;
  }
  return text;
}

}  // namespace

size_t textColumns(std::string_view text) {
  size_t columns = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text.substr(at).starts_with("\033[")) at = std::min(text.find('m', at), text.size());
    else if (!continuesCharacter(text[at])) ++columns;
  }
  return columns;
}

std::string shortened(std::string_view text, size_t width) {
  constexpr std::string_view dots = "...";
  if (textColumns(text) <= width) return std::string(text);
  const size_t kept = width > dots.size() ? width - dots.size() : 0;
  size_t end = 0, columns = 0;
  while (end < text.size() && (columns < kept || continuesCharacter(text[end])))
    columns += continuesCharacter(text[end++]) ? 0 : 1;
  return std::string(text.substr(0, end)) + std::string(dots);
}

std::string wrapped(std::string_view text, size_t width, size_t hanging) {
  std::string result;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    result += wrappedLine(text.substr(0, end), width, hanging);
    if (end < text.size()) result += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

}  // namespace weft
