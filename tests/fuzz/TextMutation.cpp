// Bytes, lines and tokens; see TextMutation.h.
#include "tests/fuzz/TextMutation.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

namespace weft::fuzz {
namespace {

constexpr size_t largestText = size_t(1) << 20;  ///< repetitions stop there

struct Range {
  size_t begin = 0, size = 0;
};

Range someRange(const std::string &text, Random &random, size_t most) {
  const size_t begin = random.below(text.size());
  return {begin, std::min(text.size() - begin, 1 + random.below(most))};
}

void mutateBytes(std::string &text, Random &random, const std::vector<std::string> &others) {
  const Range range = someRange(text, random, 1 + random.below(64));
  switch (random.below(7)) {
    case 0: text[range.begin] = char(text[range.begin] ^ 1 << random.below(8)); break;
    case 1: text[range.begin] = char(random.below(256)); break;
    case 2: text.erase(range.begin, range.size); break;
    case 3: text.insert(range.begin, text.substr(range.begin, range.size)); break;
    case 4: text.resize(range.begin); break;
    case 5: text.insert(range.begin, hostileName(random)); break;
    default: {  // the rest of another text
      if (others.empty()) break;
      const std::string &other = random.pick(others);
      text = text.substr(0, range.begin) + other.substr(random.below(other.size()));
    }
  }
}

void mutateLines(std::string &text, Random &random) {
  std::vector<std::string> lines = linesOf(text);
  const size_t line = random.below(lines.size()), other = random.below(lines.size());
  switch (random.below(4)) {
    case 0: lines.erase(lines.begin() + ptrdiff_t(line)); break;
    case 1: lines.insert(lines.begin() + ptrdiff_t(other), std::string(lines[line])); break;
    case 2: std::swap(lines[line], lines[other]); break;
    default: {  // one line many times
      const size_t count =
          std::min(size_t(1) << random.below(12), largestText / (1 + lines[line].size()));
      lines.insert(lines.begin() + ptrdiff_t(line), count, std::string(lines[line]));
    }
  }
  text = joined(lines);
}

bool isWord(char letter) { return std::isalnum(uint8_t(letter)) || letter == '_' || letter == '.'; }

/// Words and single other characters; blanks are no tokens.
std::vector<Range> tokensOf(const std::string &text) {
  std::vector<Range> tokens;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (isWord(text[at])) {
      while (end < text.size() && isWord(text[end])) ++end;
    }
    if (!std::isspace(uint8_t(text[at]))) tokens.push_back({at, end - at});
    at = end;
  }
  return tokens;
}

void mutateTokens(std::string &text, Random &random, const std::vector<std::string> &words) {
  const std::vector<Range> tokens = tokensOf(text);
  if (tokens.empty()) return;
  const Range token = random.pick(tokens), other = random.pick(tokens);
  const auto replace = [&](const std::string &by) { text.replace(token.begin, token.size, by); };
  const bool isNumber = std::isdigit(uint8_t(text[token.begin]));
  switch (random.below(6)) {
    case 0:
      replace(isNumber || random.oneIn(4) ? hostileNumber(random) : hostileName(random));
      break;
    case 1: replace(text.substr(other.begin, other.size)); break;
    case 2: replace(words.empty() ? "" : random.pick(words)); break;
    case 3: replace(""); break;
    case 4:
      replace(text.substr(token.begin, token.size) + " " + text.substr(token.begin, token.size));
      break;
    default:
      replace(isNumber        ? hostileNumber(random)
              : words.empty() ? hostileName(random)
                              : random.pick(words));
  }
}

}  // namespace

std::string hostileNumber(Random &random) {
  static const std::array<std::string, 28> numbers = {"0",
                                                      "1",
                                                      "2",
                                                      "3",
                                                      "-1",
                                                      "-0",
                                                      "7",
                                                      "64",
                                                      "65535",
                                                      "65536",
                                                      "2147483647",
                                                      "2147483648",
                                                      "-2147483648",
                                                      "4294967295",
                                                      "4294967296",
                                                      "9223372036854775807",
                                                      "9223372036854775808",
                                                      "-9223372036854775808",
                                                      "18446744073709551360",
                                                      "18446744073709551615",
                                                      "99999999999999999999",
                                                      "1e999",
                                                      "-1e999",
                                                      "1e-320",
                                                      "0.5",
                                                      "nan",
                                                      "1e18",
                                                      "4611686018427387904"};
  return random.oneIn(4) ? std::to_string(int64_t(random.next() >> random.below(63)))
                         : random.pick(numbers);
}

std::string hostileName(Random &random) {
  static const std::array<std::string, 25> names = {"",
                                                    "\n",
                                                    "a\nb",
                                                    "*/",
                                                    "*/ int evil;",
                                                    "\"",
                                                    "\\\"",
                                                    "'",
                                                    "//",
                                                    "\\",
                                                    std::string(1, '\0'),
                                                    "\xff\xfe",
                                                    "\xc3",
                                                    "../../etc/passwd",
                                                    "/dev/zero",
                                                    ".",
                                                    "..",
                                                    "a b",
                                                    "%",
                                                    "\r\n",
                                                    "{",
                                                    "}",
                                                    "\xe2\x80\xae",
                                                    "\x1b[31m",
                                                    "-"};
  if (random.oneIn(30)) return std::string(size_t(1) << (8 + random.below(9)), 'a');
  return random.pick(names);
}

void mutateText(std::string &text, Random &random, const std::vector<std::string> &others,
                const std::vector<std::string> &words) {
  if (text.empty()) {
    text = others.empty() ? "0" : random.pick(others);
    return;
  }
  switch (random.below(8)) {
    case 0: return mutateBytes(text, random, others);
    case 1:
    case 2: return mutateLines(text, random);
    default: return mutateTokens(text, random, words);
  }
}

std::vector<std::string> linesOf(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

std::string joined(const std::vector<std::string> &lines) {
  std::string text;
  for (const std::string &line : lines) text += line;
  return text;
}

}  // namespace weft::fuzz
