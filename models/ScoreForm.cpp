// Words of --score; see ScoreForm.h.
#include "models/ScoreForm.h"

#include "kernel/Error.h"
#include "kernel/Nearest.h"

#include <fmt/ranges.h>

#include <charconv>
#include <cmath>

namespace weft::models {
namespace {

constexpr double usualSteepness = 8;
constexpr int64_t farthest = int64_t(1) << 20;

/// What follows "name=" in a word; none where it is no number.
template <typename Number>
std::optional<Number> numberIn(const std::string &word, const std::string &name) {
  if (word.size() <= name.size() + 1) return std::nullopt;
  Number number = 0;
  const char *first = word.data() + name.size() + 1, *last = word.data() + word.size();
  const auto [end, error] = std::from_chars(first, last, number);
  return error == std::errc() && end == last ? std::optional(number) : std::nullopt;
}

double parseSoftcap(const std::string &word) {
  const std::optional<double> cap = numberIn<double>(word, "softcap");
  if (!cap || !std::isfinite(*cap) || *cap <= 0)
    throw Error::badInput("--score {}: expected a positive bound of scores, e.g. softcap=50", word);
  return *cap;
}

int64_t parseRelative(const std::string &word) {
  const std::optional<int64_t> distance = numberIn<int64_t>(word, "relative");
  if (!distance || *distance < 1 || *distance > farthest)
    throw Error::badInput(
        "--score {}: expected the farthest distance that is told apart, 1 to {}, e.g. "
        "relative=128",
        word, farthest);
  return *distance;
}

}  // namespace

ScoreForm parseScoreForm(const std::vector<std::string> &words) {
  ScoreForm form;
  for (const std::string &word : words) {
    const std::string name = word.substr(0, word.find('='));
    const bool isTwice = (name == "softcap" && form.softcap) || (name == "alibi" && form.alibi) ||
                         (name == "relative" && form.relative);
    if (isTwice) throw Error::badInput("--score {}: '{}' is given twice", word, name);
    if (name == "softcap") form.softcap = parseSoftcap(word);
    else if (name == "relative") form.relative = parseRelative(word);
    else if (word == "alibi") form.alibi = usualSteepness;
    else
      throw Error::badInput("--score {}: unknown form{}", word,
                            nearestAndKnown(name, {"alibi", "relative=N", "softcap=C"}));
  }
  return form;
}

std::string textOf(const ScoreForm &form) {
  std::vector<std::string> words;
  if (form.alibi) words.emplace_back("alibi");
  if (form.relative) words.push_back(fmt::format("relative={}", *form.relative));
  if (form.softcap) words.push_back(fmt::format("softcap={}", *form.softcap));
  return fmt::format("{}", fmt::join(words, ","));
}

}  // namespace weft::models
