// What a text of CUDA includes. A kernel may include headers of weft and files of its artifact; the
// compiler, left alone, would open any file of the machine and print lines of it in its messages.
//
// Directives are found by a rule that knows neither strings nor conditions, so that nothing hides
// from it: wherever a line begins with a '#' (or its other spellings), be it behind comments, that
// a name of these follows. What it finds too many does no harm: a name that is not available
// becomes a header that stops the compiler with a message, if it comes to it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weft::runtime {

struct Include {
  int line = 0;
  /// "include"; "__has_include", which is answered from the same files; or "include_next",
  /// "import", "embed", "__has_include_next",
  /// "__has_embed", "define" (of a macro that pastes any words), which kernels may not have.
  std::string directive;
  std::string name;  ///< empty: not a literal name (of a macro)
  bool operator==(const Include &) const = default;
};
std::vector<Include> includesOf(std::string_view text);

/// The headers that a text includes, directly or through others: name -> text.
std::map<std::string, std::string> includedHeaders(
    std::string_view text, const std::map<std::string, std::string_view> &available);

/// Header -> text, for names that a text or `headers` includes and that are not in `headers`: each
/// stops the compiler.
std::map<std::string, std::string> rejectedHeaders(
    std::string_view text, const std::map<std::string, std::string> &headers);
/// Why a text cannot be compiled at all: "line 3: #include of a macro's name"; empty if there is no
/// such reason.
std::string includeRejection(std::string_view text,
                             const std::map<std::string, std::string> &headers);
/// Names of rejected headers that a compiler's log says it came to.
std::vector<std::string> rejectedIn(std::string_view log);

}  // namespace weft::runtime
