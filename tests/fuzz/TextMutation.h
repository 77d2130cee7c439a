// Mutations of any text: bytes, lines and tokens. They know no grammar; those that do are in
// JsonMutation.h and GraphMutation.h.
#pragma once

#include "tests/fuzz/Random.h"

#include <string>
#include <string_view>
#include <vector>

namespace weft::fuzz {

/// A number that programs forget: limits of integers, nothing, NaN, fractions. As it is spelled in
/// a text.
std::string hostileNumber(Random &random);
/// What a name should not be: empty, of several lines, the end of a comment or a string, no UTF-8,
/// a path, very long.
std::string hostileName(Random &random);

/// One change, of bytes, of lines or of tokens. `others`: texts to take pieces from; `words`: of
/// the format, as replacements.
void mutateText(std::string &text, Random &random, const std::vector<std::string> &others,
                const std::vector<std::string> &words);

/// Lines with their ends.
std::vector<std::string> linesOf(std::string_view text);
std::string joined(const std::vector<std::string> &lines);

}  // namespace weft::fuzz
