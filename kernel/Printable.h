// Texts that come from files and command lines, made fit for a terminal: a message may quote them, but not what moves the cursor,
// changes colours or is no UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace weft {

/// The text with every control character but the end of a line, every byte that is not UTF-8 and every character that turns
/// the direction of writing as "\x1b"; all else as it is. A text longer than `most` bytes loses its middle and says how much.
std::string printable(std::string_view text, size_t most = size_t(1) << 13);
/// The same in one line: the end of a line, too, is spelled "\n".
std::string printableLine(std::string_view text, size_t most = size_t(1) << 13);

}  // namespace weft
