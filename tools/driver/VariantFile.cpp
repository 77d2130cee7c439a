// Files of several variants; see VariantFile.h.
#include "tools/driver/VariantFile.h"

#include <fmt/format.h>

namespace weft::driver {
namespace {

constexpr std::string_view separator = "// -----", nameMark = "// variant: ";

std::vector<Rewrite> rewritesOf(std::string_view name) {
  std::vector<Rewrite> rewrites;
  if (name.empty() || name == variantName({})) return rewrites;
  while (true) {
    const size_t end = name.find('+');
    rewrites.push_back(parseRewrite(name.substr(0, end)));
    if (end == name.npos) return rewrites;
    name.remove_prefix(end + 1);
  }
}

}  // namespace

std::vector<VariantText> splitVariants(std::string_view file) {
  std::vector<VariantText> variants(1);
  size_t lines = 0;
  while (!file.empty()) {
    const size_t end = std::min(file.find('\n'), file.size() - 1) + 1;
    std::string_view line = file.substr(0, end);
    file.remove_prefix(end);
    ++lines;
    const std::string_view bare = line.substr(0, line.find_last_not_of(" \t\r\n") + 1);
    if (bare == separator) {
      variants.push_back({.rewrites = {}, .text = std::string(lines, '\n')});
      continue;
    }
    if (bare.starts_with(nameMark))
      variants.back().rewrites = rewritesOf(bare.substr(nameMark.size()));
    variants.back().text += line;
  }
  return variants;
}

std::string joinVariants(const std::vector<std::pair<std::string, std::string>> &namesAndTexts) {
  std::string joined;
  for (const auto &[name, text] : namesAndTexts)
    joined += fmt::format("{}{}{}\n{}", joined.empty() ? "" : fmt::format("\n{}\n\n", separator),
                          nameMark, name, text);
  return joined;
}

}  // namespace weft::driver
