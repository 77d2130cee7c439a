// Names of layers; see LayerNames.h.
#include "kernel/LayerNames.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>

namespace weft {
namespace {

constexpr std::string_view word = "layer";

bool isWordCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

struct Found {
  int64_t layer = 0;
  size_t end = 0;  ///< behind the underscore
};

/// The layer's name that begins at `from`; its end is 0 where none does.
Found layerAt(std::string_view text, size_t from) {
  if (text.substr(from, word.size()) != word) return {};
  const size_t digits = from + word.size();
  Found found;
  const auto [end, error] =
      std::from_chars(text.data() + digits, text.data() + text.size(), found.layer);
  const size_t behind = size_t(end - text.data());
  if (error != std::errc() || found.layer < 1 || behind >= text.size() || text[behind] != '_')
    return {};
  found.end = behind + 1;
  return found;
}

}  // namespace

std::string layerPrefix(int64_t layer) { return fmt::format("{}{}_", word, layer); }

int64_t layerOf(std::string_view name) { return layerAt(name, 0).layer; }

std::string withoutLayer(std::string_view name) {
  return std::string(name.substr(layerAt(name, 0).end));
}

std::string shiftLayers(std::string_view text, int64_t by) {
  std::string shifted;
  for (size_t at = 0; at < text.size();) {
    // Rewrites join names: "layer2_wq_layer2_wk". A letter in front makes it another word.
    const bool begins = at == 0 || text[at - 1] == '_' || !isWordCharacter(text[at - 1]);
    if (const Found found = begins ? layerAt(text, at) : Found(); found.end > 0) {
      shifted += layerPrefix(found.layer + by);
      at = found.end;
    } else {
      shifted += text[at++];
    }
  }
  return shifted;
}

}  // namespace weft
