// Nearest known name for error messages: "unknown preset 'bert-larg', nearest is 'bert-large'".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// Edits (insert, delete, replace, swap of neighbours) that turn one name into the other (optimal
/// string alignment).
size_t editDistance(std::string_view a, std::string_view b);

/// The candidate with the fewest edits, ignoring case; the first of equals. Empty if there is no
/// candidate or none shares more than half of the longer name's characters.
std::string nearest(std::string_view name, const std::vector<std::string> &candidates);

/// The tail of an error message: "; nearest is 'bert-large' (known: attention, bert-base,
/// bert-large)", without the first part when nothing is near.
std::string nearestAndKnown(std::string_view name, const std::vector<std::string> &candidates);

}  // namespace weft
