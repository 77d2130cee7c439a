// Text of a model, a plan or a person in files of other languages and on terminals: names, ops and
// notes may hold anything, and must not become code, move the cursor or change colours. One
// function for each place; each leaves letters, digits and punctuation of ASCII as they are.
#pragma once
#ifndef WEFT_KERNEL_PLAIN_TEXT_H  // beside a precompiled header of a compiler cache
#define WEFT_KERNEL_PLAIN_TEXT_H

#include <string>
#include <string_view>

namespace weft {

/// Whether it is printable ASCII and nothing else.
bool isPlain(std::string_view text);
/// One line of printable ASCII: every other byte as "\xHH". For lines of profiles and records,
/// and names within a message.
std::string oneLine(std::string_view text);
/// A message for people, in any language: UTF-8 and line ends as they are; control characters,
/// bytes that are not UTF-8 and characters that turn the direction of writing as "\xHH". A text
/// longer than `most` bytes loses its middle and says how much.
std::string printable(std::string_view text, size_t most = size_t(1) << 13);
/// The same in one line: the end of a line, too, is spelled "\n".
std::string printableLine(std::string_view text, size_t most = size_t(1) << 13);
/// The text after the slashes of a C++ comment: one line that does not go on in the next.
std::string lineComment(std::string_view text);
/// The text between the quotes of a label of Graphviz. Line ends stay: they are "\n" there.
std::string dotLabel(std::string_view text);
/// Text and attribute values of XML and HTML.
std::string markup(std::string_view text);

}  // namespace weft

#endif  // WEFT_KERNEL_PLAIN_TEXT_H
