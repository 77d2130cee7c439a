// Names of layers; see LayerNames.h.
#include "kernel/LayerNames.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <iterator>

namespace weft {
namespace {

constexpr std::string_view word = "layer", carriedWord = "carried";

bool isWordCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

struct Found {
  int64_t layer = 0;
  size_t end = 0;  ///< behind the underscore
};

/// The layer's name that begins at `from`; its end is 0 where none does.
Found layerAt(std::string_view text, size_t from) {
  if (text.substr(from, word.size()) != word) return {};
  const size_t digits = from + word.size();
  int64_t layer = 0;
  const auto [end, error] = std::from_chars(text.data() + digits, text.data() + text.size(), layer);
  const size_t behind = size_t(end - text.data());
  if (error != std::errc() || behind >= text.size() || text[behind] != '_') return {};
  return {.layer = layer, .end = behind + 1};
}

/// The text with every layer's name by what `rename` makes of the layer.
template <typename Rename>
std::string renamed(std::string_view text, const Rename &rename) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    // Rewrites join names: "layer2_wq_layer2_wk". A letter in front makes it another word.
    const bool begins = at == 0 || text[at - 1] == '_' || !isWordCharacter(text[at - 1]);
    if (const Found found = begins ? layerAt(text, at) : Found(); found.end > 0) {
      result += rename(found.layer);
      at = found.end;
    } else {
      result += text[at++];
    }
  }
  return result;
}

}  // namespace

std::string layerPrefix(int64_t layer) { return fmt::format("{}{}_", word, layer); }

int64_t firstLayerIn(std::string_view text) {
  int64_t first = 0;
  renamed(text, [&](int64_t layer) {
    if (first == 0) first = layer;
    return std::string();
  });
  return first;
}

std::string layerRanges(const std::set<int64_t> &layers) {
  std::string result;
  for (auto from = layers.begin(); from != layers.end();) {
    auto to = from;
    while (std::next(to) != layers.end() && *std::next(to) == *to + 1) ++to;
    result += (result.empty() ? "" : ", ") + std::to_string(*from);
    if (to != from) result += fmt::format("..{}", *to);
    from = std::next(to);
  }
  return result;
}

std::string withoutLayers(std::string_view text) {
  return renamed(text, [](int64_t) { return std::string(); });
}

std::string shiftLayers(std::string_view text, int64_t by) {
  return renamed(text, [&](int64_t layer) { return layerPrefix(layer + by); });
}

std::string carriedName(size_t number) { return fmt::format("{}{}", carriedWord, number); }

std::string placedText(const std::string &text, const std::vector<std::string> &arguments,
                       int64_t shift) {
  std::string placed;
  for (size_t at = 0; at < text.size();) {
    const bool begins = at == 0 || !std::isalnum(static_cast<unsigned char>(text[at - 1]));
    size_t number = 0;
    const size_t digits = at + carriedWord.size();
    if (begins && text.compare(at, carriedWord.size(), carriedWord) == 0) {
      const auto [end, error] =
          std::from_chars(text.data() + digits, text.data() + text.size(), number);
      if (error == std::errc() && number >= 1 && number <= arguments.size()) {
        // Names of the whole stay as they are: they are shifted by the part's places already.
        placed += shiftLayers(arguments[number - 1], -shift);
        at = size_t(end - text.data());
        continue;
      }
    }
    placed += text[at++];
  }
  return shiftLayers(placed, shift);
}

}  // namespace weft
