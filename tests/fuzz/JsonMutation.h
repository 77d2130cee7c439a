// Mutations of a JSON document that leave it JSON: members and elements deleted, doubled,
// exchanged, of another type or value. What comes out gets past the parser, so that it is the
// checks behind it that are tried.
#pragma once

#include "tests/fuzz/Random.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace weft::fuzz {

/// One change. `words`: strings and member names of the format.
void mutateJson(nlohmann::json &document, Random &random, const std::vector<std::string> &words);

/// The document's text with one value replaced by `depth` nested arrays or objects; made as text,
/// because a document so deep cannot be held.
std::string nestedDeeply(const nlohmann::json &document, Random &random, size_t depth);

/// The text of a document, one with strings that are no UTF-8 too, whose bytes stand as they are.
std::string textOf(const nlohmann::json &document);

}  // namespace weft::fuzz
