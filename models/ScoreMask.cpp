// Words of --mask; see ScoreMask.h.
#include "models/ScoreMask.h"

#include "kernel/BlockMask.h"
#include "kernel/Error.h"
#include "kernel/Nearest.h"
#include "models/BoolArray.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace weft::models {
namespace {

const std::string windowPrefix = "window=", arrayEnding = ".npy";
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

/// Where a word ends that begins at `begin`: at the next comma outside of parentheses.
size_t endOfWord(const std::string &text, size_t begin) {
  bool isOpen = false;
  for (size_t at = begin; at < text.size(); ++at) {
    if (text[at] == ',' && !isOpen) return at;
    if (text[at] == '(') isOpen = true;
    if (text[at] == ')') isOpen = false;
  }
  return text.size();
}

/// Where the parameters of a file begin: behind a ".npy" that the end, a comma or "(block=" follows
/// at or behind `begin`; nothing if there is none. A path may hold commas and parentheses.
std::optional<size_t> endOfPath(const std::string &text, size_t begin) {
  for (size_t at = text.find(arrayEnding, begin); at != std::string::npos;
       at = text.find(arrayEnding, at + 1)) {
    const size_t end = at + arrayEnding.size();
    const std::string_view rest = std::string_view(text).substr(end);
    if (rest.empty() || rest.starts_with(',') || rest.starts_with("(block=")) return end;
  }
  return {};
}

/// Whether a word is one of --mask, right or wrong in its parameters, and no path.
bool isKnownWord(std::string_view word) {
  const std::string_view name = word.substr(0, word.find_first_of("=("));
  return word == "causal" || word == "padding" || word == "attention-mask" || word == "document" ||
         name == "window" || isBlockPatternName(name);
}

/// The words of one text: separated by commas outside of parentheses and of paths.
std::vector<std::string> wordsOf(const std::string &text) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = endOfWord(text, begin);
    if (!isKnownWord(std::string_view(text).substr(begin, end - begin)))
      if (const std::optional<size_t> path = endOfPath(text, begin)) end = endOfWord(text, *path);
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

/// What throws names the word.
template <typename Read>
auto ofWord(const std::string &word, Read read) {
  try {
    return read();
  } catch (const Error &error) {
    throw Error(error.kind, fmt::format("--mask {}: {}", word, error.what()));
  }
}

/// FILE.npy(block=64) or FILE.npy.
struct BlockFile {
  std::string path;
  std::optional<int64_t> block = {};
};

bool isBlockFile(const std::string &word) {
  return !isKnownWord(word) && endOfPath(word, 0).has_value();
}

BlockFile parseBlockFile(const std::string &word) {
  const size_t end = *endOfPath(word, 0);
  BlockFile file{.path = word.substr(0, end)};
  if (end == word.size()) return file;
  // A pattern of this parameter alone has its errors.
  file.block = BlockPattern::parse("butterfly" + word.substr(end)).block;
  return file;
}

std::string parseBlocks(const std::string &word) {
  return ofWord(word, [&] {
    if (!isBlockFile(word)) return BlockPattern::parse(word).text();
    parseBlockFile(word);
    return word;
  });
}

/// Each of the tables as often as there are heads for it.
std::vector<bool> repeated(const std::vector<bool> &tables, size_t tilesOfTable, int64_t times) {
  std::vector<bool> all;
  for (size_t first = 0; first < tables.size(); first += tilesOfTable)
    for (int64_t n = 0; n < times; ++n)
      all.insert(all.end(), tables.begin() + std::ptrdiff_t(first),
                 tables.begin() + std::ptrdiff_t(first + tilesOfTable));
  return all;
}

BlockPattern patternOfFile(const BlockFile &file, int64_t heads, int64_t headsOfGroup,
                           int64_t queries, int64_t keys) {
  const BoolArray array = readBoolArray(file.path);
  const auto &shape = array.shape;
  if (shape.size() != 2 && shape.size() != 3)
    throw Error::badInput(
        "an array of shape ({}); expected (tiles of queries, tiles of keys), or "
        "heads before these",
        fmt::join(shape, ", "));
  const bool isByHead = shape.size() == 3;
  const int64_t rows = shape[isByHead ? 1 : 0], columns = shape[isByHead ? 2 : 1];
  const int64_t groups = heads / headsOfGroup;
  const bool isByGroup = isByHead && shape[0] == groups && shape[0] != heads && shape[0] > 1;
  if (isByHead && shape[0] != 1 && shape[0] != heads && !isByGroup)
    throw Error::badInput(
        "tables of {} heads; there are {} heads{}", shape[0], heads,
        headsOfGroup > 1 ? fmt::format(" in {} groups that share keys", groups) : "");
  std::vector<int64_t> fitting;
  for (int64_t size = 16; size <= 128; size *= 2)
    if ((queries + size - 1) / size == rows && (keys + size - 1) / size == columns)
      fitting.push_back(size);
  const auto fits = [&](int64_t size) { return std::ranges::find(fitting, size) != fitting.end(); };
  if (file.block ? !fits(*file.block) : fitting.empty()) {
    const int64_t size = file.block.value_or(64);
    throw Error::badInput(
        "a table of {} x {} tiles; {} queries and {} keys have {} x {} tiles of {}", rows, columns,
        queries, keys, (queries + size - 1) / size, (keys + size - 1) / size, size);
  }
  if (!file.block && fitting.size() > 1)
    throw Error::badInput("tiles of {} fit; choose with {}(block={})",
                          fmt::join(fitting, " and of "), file.path, fitting.back());
  const int64_t block = file.block.value_or(fitting[0]);
  if (isByGroup)
    return BlockPattern::ofTable(block, heads, rows, columns,
                                 repeated(array.elements, size_t(rows * columns), headsOfGroup));
  return BlockPattern::ofTable(block, isByHead ? shape[0] : 1, rows, columns, array.elements);
}

}  // namespace

std::vector<std::string> scoreMaskWords() {
  std::vector<std::string> words = {"causal", "window=N", "padding", "attention-mask", "document"};
  for (std::string &pattern : blockPatternWords()) words.push_back(std::move(pattern));
  words.push_back("FILE.npy");
  return words;
}

std::string blockMaskOf(const std::string &blocks, int64_t heads, int64_t headsOfGroup,
                        int64_t queries, int64_t keys) {
  return ofWord(blocks, [&] {
    const BlockPattern pattern = isBlockFile(blocks) ? patternOfFile(parseBlockFile(blocks), heads,
                                                                     headsOfGroup, queries, keys)
                                                     : BlockPattern::parse(blocks);
    std::string text = pattern.text();
    blockTable(text, heads, queries, keys);
    return text;
  });
}

ScoreMask parseScoreMask(const std::vector<std::string> &texts) {
  ScoreMask mask;
  const auto reject = [](const std::string &word) {
    throw Error::badInput("--mask {}: '{}' is given twice", word, word.substr(0, word.find('=')));
  };
  std::vector<std::string> words;
  for (const std::string &text : texts) std::ranges::move(wordsOf(text), std::back_inserter(words));
  for (const std::string &word : words) {
    if (isBlockFile(word) || isBlockPatternName(word.substr(0, word.find('(')))) {
      if (mask.blocks)
        throw Error::badInput("--mask {}: one block mask is taken, and {} is given", word,
                              *mask.blocks);
      mask.blocks = parseBlocks(word);
      continue;
    }
    if (word == "window" || word.starts_with(windowPrefix)) {
      if (mask.window) reject(word);
      mask.window = parseWindow(word);
    } else if (word == "causal" || word == "padding" || word == "attention-mask" ||
               word == "document") {
      bool &isSet = word == "causal"           ? mask.causal
                    : word == "padding"        ? mask.padding
                    : word == "attention-mask" ? mask.attentionMask
                                               : mask.document;
      if (isSet) reject(word);
      isSet = true;
    } else {
      throw Error::badInput(
          "--mask {}: unknown mask{}", word,
          nearestAndKnown(word.substr(0, word.find_first_of("=(")), scoreMaskWords()));
    }
  }
  if (mask.padding && mask.attentionMask)
    throw Error::badInput(
        "--mask padding,attention-mask: lengths or a mask say which keys are tokens; nearest is "
        "one of both");
  return mask;
}

std::string textOf(const ScoreMask &mask) {
  std::vector<std::string> words;
  if (mask.causal) words.push_back("causal");
  if (mask.window) words.push_back(fmt::format("{}{}", windowPrefix, *mask.window));
  if (mask.padding) words.push_back("padding");
  if (mask.attentionMask) words.push_back("attention-mask");
  if (mask.document) words.push_back("document");
  if (mask.blocks) words.push_back(*mask.blocks);
  return fmt::format("{}", fmt::join(words, ","));
}

}  // namespace weft::models
