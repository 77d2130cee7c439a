// Pieces of emitted C++; see Code.h.
#include "codegen/Code.h"

#include <cctype>
#include <utility>

namespace weft::codegen {
namespace {

/// Every identifier of a piece of C++, but for members behind a dot, which are no names of a
/// program.
Code::NameSet wordsOf(std::string_view text) {
  const auto isWord = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  Code::NameSet words;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && isWord(text[end])) ++end;
    const bool isMember = at > 0 && text[at - 1] == '.';
    if (end > at && !isMember && !std::isdigit(static_cast<unsigned char>(text[at])))
      words.emplace(text.substr(at, end - at));
    at = std::max(end, at + 1);
  }
  return words;
}

}  // namespace

Code::Code(const char *literal) : text(literal), own(wordsOf(text)) {}

Code::Code(std::string raw) : text(std::move(raw)), own(wordsOf(text)), raw(!own.empty()) {}

Code Code::name(std::string name) {
  Code code;
  code.own.insert(name);
  code.text = std::move(name);
  return code;
}

Code Code::plain(std::string_view text) {
  Code code;
  code.text = text;
  return code;
}

void Code::addNames(const Code &other) {
  own.insert(other.own.begin(), other.own.end());
  raw = raw || other.raw;
}

Code &Code::operator+=(const Code &more) {
  addNames(more);
  text += more.text;
  return *this;
}

Code Code::composed(std::string text, const std::vector<const Code *> &parts) {
  Code code = plain(text);
  for (const Code *part : parts) code.addNames(*part);
  return code;
}

Code joined(const std::vector<Code> &pieces, std::string_view separator) {
  Code all;
  for (const Code &piece : pieces) {
    if (&piece != &pieces.front()) all += Code::plain(separator);
    all += piece;
  }
  return all;
}

}  // namespace weft::codegen
