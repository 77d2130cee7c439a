// Files that hold several variants of one graph: what the proposing phases print, and later phases
// read. Text only.
//
//   // variant: qkv-stacked+softmax-decomposed
//   weft.graph @encoder(...) { ... }
//   // -----
//   // variant: ...
#pragma once

#include "passes/select/Rewrite.h"

#include <string>
#include <string_view>
#include <vector>

namespace weft::driver {

struct VariantText {
  std::vector<Rewrite>
      rewrites;      ///< of the name in its comment; none for "unchanged" or without a comment
  std::string text;  ///< after as many empty lines as stand before it in the file, so that its
                     ///< locations are right
};

/// Splits at lines that are "// -----". A file without them is one variant.
std::vector<VariantText> splitVariants(std::string_view file);

/// The inverse: each text under its name.
std::string joinVariants(const std::vector<std::pair<std::string, std::string>> &namesAndTexts);

}  // namespace weft::driver
