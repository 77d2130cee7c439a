// Words of --mask; see ScoreMask.h.
#include "models/ScoreMask.h"

#include "kernel/Error.h"
#include "kernel/Nearest.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace weft::models {
namespace {

const std::string windowPrefix = "window=";
constexpr int64_t widestWindow = std::numeric_limits<int32_t>::max();

int64_t parseWindow(const std::string &word) {
  const std::string number = word.substr(std::min(word.size(), windowPrefix.size()));
  int64_t keys = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), keys);
  const bool isTooLarge = error == std::errc::result_out_of_range && number[0] != '-';
  if (number.empty() || end != number.data() + number.size())
    throw Error::badInput("--mask {}: expected a number of keys, e.g. window=128", word);
  if (isTooLarge || keys > widestWindow)
    throw Error::badInput("--mask {}: a window is at most {} keys on each side", word,
                          widestWindow);
  if (keys < 1)
    throw Error::badInput(
        "--mask {}: a window is at least 1 key on each side of the query's own; nearest is "
        "window=1",
        word);
  return keys;
}

}  // namespace

ScoreMask parseScoreMask(const std::vector<std::string> &words) {
  ScoreMask mask;
  const auto reject = [](const std::string &word) {
    throw Error::badInput("--mask {}: '{}' is given twice", word, word.substr(0, word.find('=')));
  };
  for (const std::string &word : words) {
    if (word == "window" || word.starts_with(windowPrefix)) {
      if (mask.window) reject(word);
      mask.window = parseWindow(word);
    } else if (word == "causal" || word == "padding" || word == "document") {
      bool &isSet = word == "causal"    ? mask.causal
                    : word == "padding" ? mask.padding
                                        : mask.document;
      if (isSet) reject(word);
      isSet = true;
    } else {
      throw Error::badInput("--mask {}: unknown mask{}", word,
                            nearestAndKnown(word.substr(0, word.find('=')),
                                            {"causal", "window=N", "padding", "document"}));
    }
  }
  return mask;
}

std::string textOf(const ScoreMask &mask) {
  std::vector<std::string> words;
  if (mask.causal) words.push_back("causal");
  if (mask.window) words.push_back(fmt::format("{}{}", windowPrefix, *mask.window));
  if (mask.padding) words.push_back("padding");
  if (mask.document) words.push_back("document");
  return fmt::format("{}", fmt::join(words, ","));
}

}  // namespace weft::models
