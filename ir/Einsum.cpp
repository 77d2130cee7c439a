// Parsing and inference of einsum specs.
#include "ir/Einsum.h"

#include "kernel/Error.h"

#include <algorithm>

namespace weft {
namespace {

bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool contains(const std::string &term, char letter) {
  return term.find(letter) != std::string::npos;
}

template <typename Predicate>
std::string lettersOf(const std::string &term, Predicate predicate) {
  std::string kept;
  std::copy_if(term.begin(), term.end(), std::back_inserter(kept), predicate);
  return kept;
}

/// The form comes first, so that a third operand is not reported as a repeated letter.
void checkForm(std::string_view text, const std::string &term) {
  for (char letter : term)
    if (!isLetter(letter))
      throw Error::badInput(
          "contract_c1: einsum \"{}\" has '{}' where a letter a-z or A-Z is expected", text,
          letter);
}

void checkRepeats(std::string_view text, const std::string &term) {
  for (size_t at = 0; at < term.size(); ++at) {
    if (term.find(term[at], at + 1) != std::string::npos)
      throw Error::badInput("contract_c2: einsum \"{}\" repeats the letter '{}' in the term \"{}\"",
                            text, term[at], term);
  }
}

/// Every letter lies in the result or in both operands, and the result's letters in an operand.
void checkLetters(std::string_view text, const Einsum &einsum) {
  for (char letter : einsum.result)
    if (!contains(einsum.a, letter) && !contains(einsum.b, letter))
      throw Error::badInput(
          "contract_c3: einsum \"{}\" has the unknown letter '{}' in its result; operands have "
          "\"{}\"",
          text, letter, einsum.a + einsum.b);
  const auto checkOperand = [&](const std::string &term, const std::string &other) {
    for (char letter : term)
      if (!contains(einsum.result, letter) && !contains(other, letter))
        throw Error::badInput(
            "contract_c4: einsum \"{}\" has the letter '{}' in one operand only and not in the "
            "result; "
            "sum it first with weft.reduce",
            text, letter);
  };
  checkOperand(einsum.a, einsum.b);
  checkOperand(einsum.b, einsum.a);
}

}  // namespace

std::string Einsum::batch() const {
  return lettersOf(result, [&](char letter) { return contains(a, letter) && contains(b, letter); });
}
std::string Einsum::m() const {
  return lettersOf(result,
                   [&](char letter) { return contains(a, letter) && !contains(b, letter); });
}
std::string Einsum::n() const {
  return lettersOf(result,
                   [&](char letter) { return !contains(a, letter) && contains(b, letter); });
}
std::string Einsum::reduced() const {
  return lettersOf(a, [&](char letter) { return !contains(result, letter); });
}
std::string Einsum::letters() const { return result + reduced(); }

Einsum parseEinsum(std::string_view text) {
  const size_t comma = text.find(','), arrow = text.find("->");
  if (comma == std::string_view::npos || arrow == std::string_view::npos || arrow < comma)
    throw Error::badInput("contract_c1: einsum \"{}\" is not of the form \"ab,bc->ac\"", text);
  const Einsum einsum{.a = std::string(text.substr(0, comma)),
                      .b = std::string(text.substr(comma + 1, arrow - comma - 1)),
                      .result = std::string(text.substr(arrow + 2))};
  for (const std::string *term : {&einsum.a, &einsum.b, &einsum.result}) checkForm(text, *term);
  for (const std::string *term : {&einsum.a, &einsum.b, &einsum.result}) checkRepeats(text, *term);
  checkLetters(text, einsum);
  return einsum;
}

std::map<char, int64_t> inferExtents(const Einsum &einsum, const std::vector<int64_t> &a,
                                     const std::vector<int64_t> &b) {
  std::map<char, int64_t> extents;
  const auto addTerm = [&](const std::string &term, const std::vector<int64_t> &shape,
                           const char *operand) {
    if (term.size() != shape.size())
      throw Error::badInput("contract_c5: einsum \"{}\" names {} axes of {}, whose rank is {}",
                            einsum.text(), term.size(), operand, shape.size());
    for (size_t dimension = 0; dimension < term.size(); ++dimension) {
      const auto [known, added] = extents.emplace(term[dimension], shape[dimension]);
      if (!added && known->second != shape[dimension])
        throw Error::badInput("contract_c6: letter '{}' of einsum \"{}\" is {} in a and {} in b",
                              term[dimension], einsum.text(), known->second, shape[dimension]);
    }
  };
  addTerm(einsum.a, a, "a");
  addTerm(einsum.b, b, "b");
  return extents;
}

std::vector<int64_t> inferResult(const Einsum &einsum, const std::vector<int64_t> &a,
                                 const std::vector<int64_t> &b) {
  const std::map<char, int64_t> extents = inferExtents(einsum, a, b);
  std::vector<int64_t> result;
  for (char letter : einsum.result) result.push_back(extents.at(letter));
  return result;
}

}  // namespace weft
