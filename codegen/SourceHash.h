// What decides the speed of an emitted kernel, as a hash: profiles keep it beside every
// measurement, so that one of another text, or of other device headers, is known to be stale.
//
// Invariant: comments, line breaks, launch checks and how code is spread over headers do not count;
// every other character does that the compiler sees.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace weft::codegen {

/// Of an emitted text with its device headers, as 16 hexadecimal digits; "-" for an empty text,
/// which a library's kernel has.
std::string sourceHash(std::string_view text);
/// The same with the headers of a map, by the names in include lines. An include of another name
/// counts by its name.
std::string sourceHash(std::string_view text,
                       const std::map<std::string, std::string_view> &headers);

}  // namespace weft::codegen
