// Text of a model, a plan or a person in files of other languages: names, ops and notes may hold anything, and must not become code.
// One function for each place; each leaves letters, digits and punctuation of ASCII as they are.
#pragma once

#include <string>
#include <string_view>

namespace weft {

/// Whether it is printable ASCII and nothing else.
bool isPlain(std::string_view text);
/// One line of printable ASCII: every other byte as "\xHH". For rows of profiles and records, and messages.
std::string oneLine(std::string_view text);
/// What stands behind the slashes of a C++ comment: one line that does not go on in the next.
std::string lineComment(std::string_view text);
/// What stands between the quotes of a label of Graphviz. Line ends stay: they are "\n" there.
std::string dotLabel(std::string_view text);
/// Text and attribute values of XML and HTML.
std::string markup(std::string_view text);

}  // namespace weft
