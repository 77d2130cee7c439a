// Text in a given number of columns: what every command prints stays within its width by these
// functions. Columns are counted as terminals show UTF-8: a byte that continues a character takes
// none, and neither does a change of colour.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weft {

/// What a pipe gets, and the most that anything prints unless a longer line was asked for.
constexpr size_t defaultColumns = 100;
/// Narrower terminals are written to as if they had so many: below, tables say nothing.
constexpr size_t fewestColumns = 40;
/// Of a text that may be as wide as it likes.
constexpr size_t unlimitedColumns = size_t(-1);

/// Columns that the text takes on one line.
size_t textColumns(std::string_view text);

/// The text if it takes at most `width` columns, else its beginning and "...". At least the dots
/// are left.
std::string shortened(std::string_view text, size_t width);

/// Every line of at most `width` columns, broken at spaces. What is continued is indented as its
/// line is, and by `hanging` more. Words are never broken: a path or a name longer than the width
/// stays whole on a separate line.
std::string wrapped(std::string_view text, size_t width, size_t hanging = 2);

}  // namespace weft
