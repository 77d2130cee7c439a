// Patterns of tiles to tables of bits; see BlockMask.h.
#include "kernel/BlockMask.h"

#include "kernel/Attributes.h"
#include "kernel/ChunkOrigins.h"
#include "kernel/Error.h"
#include "kernel/Kernel.h"
#include "kernel/Nearest.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <map>
#include <mutex>

namespace weft {
namespace {

using PatternKind = BlockPattern::Kind;

constexpr std::array<int64_t, 4> sizes = {16, 32, 64, 128};
/// Of a parameter, and of all heads of a table: 2 MiB of bits.
constexpr int64_t mostOfParameter = int64_t(1) << 20, mostTiles = int64_t(1) << 24;

constexpr std::array<std::pair<PatternKind, std::string_view>, 7> kindWords = {
    {{PatternKind::bigbird, "bigbird"},
     {PatternKind::longformer, "longformer"},
     {PatternKind::strided, "strided"},
     {PatternKind::fixed, "fixed"},
     {PatternKind::butterfly, "butterfly"},
     {PatternKind::random, "random"},
     {PatternKind::table, "table"}}};

std::string_view nameOf(PatternKind kind) { return kindWords[size_t(kind)].second; }

/// The parameters of a kind, `block` first.
std::vector<std::string> parametersOf(PatternKind kind) {
  switch (kind) {
    case PatternKind::bigbird: return {"block", "window", "global", "random", "seed", "heads"};
    case PatternKind::longformer: return {"block", "window", "global"};
    case PatternKind::strided: return {"block", "stride"};
    case PatternKind::fixed: return {"block", "stride", "summary"};
    case PatternKind::butterfly: return {"block"};
    case PatternKind::random: return {"block", "density", "seed", "heads"};
    case PatternKind::table: return {"block", "heads", "rows", "columns", "bits"};
  }
  return {};
}

/// Mixes one number into another (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", 2014).
uint64_t mixed(uint64_t state, uint64_t number) {
  uint64_t z = state + 0x9E3779B97F4A7C15U * (number + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

int64_t ceilDivided(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Rounded down.
int64_t floorDivided(int64_t a, int64_t b) { return a >= 0 ? a / b : -ceilDivided(-a, b); }

}  // namespace

//===-- Tables --------------------------------------------------------------------------------===//

BlockTable::BlockTable(int64_t size, int64_t heads, int64_t queries, int64_t keys)
    : size(size),
      heads(heads),
      queries(queries),
      keys(keys),
      rows(ceilDivided(queries, size)),
      columns(ceilDivided(keys, size)),
      wordsOfRow(ceilDivided(columns, 32)),
      words(size_t(heads * rows * wordsOfRow)) {}

BlockTable::Coverage BlockTable::coverage(int64_t head, int64_t firstQuery, int64_t lastQuery,
                                          int64_t firstKey, int64_t lastKey) const {
  const int64_t first = firstKey / size, last = lastKey / size;
  uint32_t any = 0, missing = 0;
  for (int64_t row = firstQuery / size; row <= lastQuery / size; ++row)
    for (int64_t word = first / 32; word <= last / 32; ++word) {
      const uint32_t low = word == first / 32 ? ~0U << (first % 32) : ~0U,
                     high = word == last / 32 ? ~0U >> (31 - last % 32) : ~0U;
      const uint32_t bits = words[wordOf(heads > 1 ? head : 0, row, word * 32)];
      any |= bits & low & high, missing |= ~bits & low & high;
    }
  return {.isAny = any != 0, .isAll = missing == 0};
}

int64_t BlockTable::count() const {
  int64_t tiles = 0;
  for (const uint32_t word : words) tiles += std::popcount(word);
  return tiles;
}

double BlockTable::share() const {
  double scores = 0;
  const int64_t lastKeys = keys - (columns - 1) * size;
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t row = 0; row < rows; ++row) {
      int64_t seen = 0;
      for (int64_t word = 0; word < wordsOfRow; ++word)
        seen += std::popcount(words[wordOf(head, row, word * 32)]) * size;
      if (has(head, row, columns - 1)) seen += lastKeys - size;
      scores += double(seen) * double(std::min(size, queries - row * size));
    }
  return scores / (double(heads) * double(queries) * double(keys));
}

//===-- Text ----------------------------------------------------------------------------------===//

namespace {

/// NAME(key=value,..) or NAME, blanks between words allowed.
class PatternParser {
public:
  explicit PatternParser(std::string_view text) : text(text) {}

  BlockPattern run() {
    const size_t open = text.find('(');
    const std::string_view name = trimmed(text.substr(0, open));
    const auto *found =
        std::ranges::find(kindWords, name, [](const auto &word) { return word.second; });
    if (found == kindWords.end())
      throw Error::badInput("unknown pattern '{}'{}", name,
                            nearestAndKnown(std::string(name), blockPatternWords()));
    pattern.kind = found->first;
    setStandards();
    if (open != std::string_view::npos) readParameters(trimmed(text.substr(open)));
    check();
    if (pattern.kind == PatternKind::table) pattern.isByHead = pattern.heads > 1;
    return pattern;
  }

private:
  static std::string_view trimmed(std::string_view piece) {
    while (!piece.empty() && piece.front() == ' ') piece.remove_prefix(1);
    while (!piece.empty() && piece.back() == ' ') piece.remove_suffix(1);
    return piece;
  }

  void setStandards() {
    if (pattern.kind == PatternKind::bigbird)
      pattern.window = 3, pattern.global = 2, pattern.randomTiles = 3;
    if (pattern.kind == PatternKind::longformer) pattern.window = 9, pattern.global = 1;
    if (pattern.kind == PatternKind::strided || pattern.kind == PatternKind::fixed)
      pattern.stride = 8;
    if (pattern.kind == PatternKind::fixed) pattern.summary = 1;
  }

  void readParameters(std::string_view list) {
    if (list.back() != ')') throw Error::badInput("')' is expected at the end");
    list = list.substr(1, list.size() - 2);
    if (trimmed(list).empty()) return;
    for (size_t begin = 0; begin <= list.size();) {
      const size_t end = std::min(list.find(',', begin), list.size());
      const std::string_view item = trimmed(list.substr(begin, end - begin));
      const size_t equals = item.find('=');
      if (equals == std::string_view::npos)
        throw Error::badInput("'{}' is no parameter; expected NAME=VALUE, as block=64", item);
      readParameter(std::string(trimmed(item.substr(0, equals))), trimmed(item.substr(equals + 1)));
      begin = end + 1;
    }
  }

  void readParameter(const std::string &name, std::string_view value) {
    const std::vector<std::string> known = parametersOf(pattern.kind);
    if (std::ranges::find(known, name) == known.end())
      throw Error::badInput("{} has no parameter '{}'{}", nameOf(pattern.kind), name,
                            nearestAndKnown(name, known));
    if (std::ranges::find(given, name) != given.end())
      throw Error::badInput("parameter '{}' is given twice", name);
    given.push_back(name);
    if (name == "density") return readDensity(value);
    if (name == "bits") return void(pattern.bits = value);
    if (name == "heads" && pattern.kind != PatternKind::table) {
      if (value != "all" && value != "each")
        throw Error::badInput("heads={}: expected all (one table for all heads) or each", value);
      return void(pattern.isByHead = value == "each");
    }
    const int64_t number = integer(name, value);
    if (name == "seed") pattern.seed = number;
    else *fieldOf(name) = number;
  }

  int64_t *fieldOf(std::string_view name) {
    if (name == "block") return &pattern.block;
    if (name == "window") return &pattern.window;
    if (name == "global") return &pattern.global;
    if (name == "random") return &pattern.randomTiles;
    if (name == "stride") return &pattern.stride;
    if (name == "summary") return &pattern.summary;
    if (name == "rows") return &pattern.rows;
    if (name == "columns") return &pattern.columns;
    return &pattern.heads;
  }

  static int64_t integer(const std::string &name, std::string_view value) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size())
      throw Error::badInput("{}={}: expected a number", name, value);
    return number;
  }

  void readDensity(std::string_view value) {
    const auto [end, error] =
        std::from_chars(value.data(), value.data() + value.size(), pattern.density);
    if (error != std::errc() || end != value.data() + value.size() ||
        !(pattern.density > 0 && pattern.density <= 1))
      throw Error::badInput("density={}: expected a number above 0 and at most 1", value);
  }

  void check() const {
    if (!isBlockSize(pattern.block))
      throw Error::badInput("block={}: tiles have {} queries and as many keys", pattern.block,
                            fmt::join(sizes, ", "));
    const bool hasWindow =
        pattern.kind == PatternKind::bigbird || pattern.kind == PatternKind::longformer;
    if (hasWindow && (pattern.window < 1 || pattern.window % 2 == 0))
      throw Error::badInput(
          "window={}: expected an odd number of tiles, the row's own and as many on each side",
          pattern.window);
    checkRange("window", pattern.window, 0);
    checkRange("global", pattern.global, 0);
    checkRange("random", pattern.randomTiles, 0);
    const bool isOfRuns =
        pattern.kind == PatternKind::strided || pattern.kind == PatternKind::fixed;
    if (isOfRuns) checkRange("stride", pattern.stride, 1);
    if (pattern.kind == PatternKind::fixed &&
        (pattern.summary < 0 || pattern.summary > pattern.stride))
      throw Error::badInput("summary={}: from 0 to the stride, {}", pattern.summary,
                            pattern.stride);
    if (pattern.kind == PatternKind::random && pattern.density == 0)
      throw Error::badInput("random needs a density, as density=0.1");
    const bool draws = pattern.kind == PatternKind::random || pattern.randomTiles > 0;
    if (draws && !pattern.seed)
      throw Error::badInput("{} draws tiles at random; it needs a seed, as seed=0",
                            nameOf(pattern.kind));
    if (pattern.kind != PatternKind::table) return;
    for (const auto &[name, value] :
         {std::pair("heads", pattern.heads), {"rows", pattern.rows}, {"columns", pattern.columns}})
      checkRange(name, value, 1);
  }

  static void checkRange(const char *name, int64_t value, int64_t least) {
    if (value < least || value > mostOfParameter)
      throw Error::badInput("{}={}: from {} to {}", name, value, least, mostOfParameter);
  }

  std::string_view text;
  BlockPattern pattern;
  std::vector<std::string> given;
};

constexpr size_t shortestRun = 6;  // in digits, that is shorter as a run

std::string packed(const std::string &digits) {
  std::string text;
  for (size_t at = 0; at < digits.size();) {
    size_t end = at;
    while (end < digits.size() && digits[end] == digits[at]) ++end;
    if (end - at < shortestRun) text.append(end - at, digits[at]);
    else text += fmt::format("{}*{};", digits[at], end - at);
    at = end;
  }
  return text;
}

/// The digits of packed bits, of which there are `count`.
std::string unpacked(const std::string &text, int64_t count) {
  std::string digits;
  for (size_t at = 0; at < text.size();) {
    const char digit = text[at++];
    const bool isDigit = (digit >= '0' && digit <= '9') || (digit >= 'a' && digit <= 'f');
    if (!isDigit) throw Error::badInput("bits: '{}' at {} is no hexadecimal digit", digit, at - 1);
    int64_t length = 1;
    if (at < text.size() && text[at] == '*') {
      const size_t end = text.find(';', at);
      const char *const first = text.data() + at + 1, *const last =
                                                          text.data() + std::min(end, text.size());
      const auto [stop, error] = std::from_chars(first, last, length);
      if (end == std::string::npos || error != std::errc() || stop != last || length < 1)
        throw Error::badInput("bits: a run as 0*60; is expected at {}", at - 1);
      at = end + 1;
    }
    if (length > count - std::ssize(digits))
      throw Error::badInput("bits: more than the {} digits of the table", count);
    digits.append(size_t(length), digit);
  }
  if (std::ssize(digits) != count)
    throw Error::badInput("bits: {} of the {} digits of the table", digits.size(), count);
  return digits;
}

}  // namespace

BlockPattern BlockPattern::parse(std::string_view text) { return PatternParser(text).run(); }

BlockPattern BlockPattern::ofTable(int64_t block, int64_t heads, int64_t rows, int64_t columns,
                                   const std::vector<bool> &tiles) {
  BlockPattern pattern{.kind = PatternKind::table,
                       .block = block,
                       .isByHead = heads > 1,
                       .heads = heads,
                       .rows = rows,
                       .columns = columns};
  std::string digits;
  for (int64_t row = 0; row < heads * rows; ++row)
    for (int64_t column = 0; column < columns; column += 4) {
      int digit = 0;
      for (int64_t bit = 0; bit < std::min<int64_t>(4, columns - column); ++bit)
        digit |= int(tiles[size_t(row * columns + column + bit)]) << bit;
      digits += "0123456789abcdef"[digit];
    }
  pattern.bits = packed(digits);
  return pattern;
}

std::string BlockPattern::text() const {
  std::vector<std::string> values;
  for (const std::string &name : parametersOf(kind)) {
    if (name == "seed" && !seed) continue;
    values.push_back(name == "block"     ? fmt::format("block={}", block)
                     : name == "window"  ? fmt::format("window={}", window)
                     : name == "global"  ? fmt::format("global={}", global)
                     : name == "random"  ? fmt::format("random={}", randomTiles)
                     : name == "stride"  ? fmt::format("stride={}", stride)
                     : name == "summary" ? fmt::format("summary={}", summary)
                     : name == "density" ? fmt::format("density={}", density)
                     : name == "seed"    ? fmt::format("seed={}", *seed)
                     : name == "rows"    ? fmt::format("rows={}", rows)
                     : name == "columns" ? fmt::format("columns={}", columns)
                     : name == "bits"    ? fmt::format("bits={}", bits)
                     : kind == PatternKind::table
                         ? fmt::format("heads={}", heads)
                         : fmt::format("heads={}", isByHead ? "each" : "all"));
  }
  return fmt::format("{}({})", nameOf(kind), fmt::join(values, ","));
}

//===-- Expansion -----------------------------------------------------------------------------===//

namespace {

class Expansion {
public:
  Expansion(const BlockPattern &pattern, int64_t heads, int64_t queries, int64_t keys)
      : pattern(pattern), table(pattern.block, heads, queries, keys) {}

  BlockTable run() {
    if (pattern.kind == PatternKind::table) readTable();
    else
      for (int64_t head = 0; head < table.heads; ++head)
        for (int64_t row = 0; row < table.rows; ++row) addRow(head, row);
    if (table.count() == 0)
      throw Error::badInput("the mask is empty: none of its {} tiles exists",
                            table.heads * table.rows * table.columns);
    return std::move(table);
  }

private:
  void readTable() {
    const int64_t digitsOfRow = ceilDivided(table.columns, 4);
    const std::string digits = unpacked(pattern.bits, table.heads * table.rows * digitsOfRow);
    for (int64_t row = 0; row < table.heads * table.rows; ++row)
      for (int64_t column = 0; column < digitsOfRow * 4; ++column) {
        const char digit = digits[size_t(row * digitsOfRow + column / 4)];
        const int value = digit <= '9' ? digit - '0' : digit - 'a' + 10;
        if ((value >> (column % 4) & 1) == 0) continue;
        if (column >= table.columns)
          throw Error::badInput("bits: row {} has a tile behind the last of {} columns", row,
                                table.columns);
        table.add(row / table.rows, row % table.rows, column);
      }
  }

  /// The tile of keys at which a row of tiles stands.
  int64_t placeOf(int64_t row) const {
    return floorDivided(row * table.size + table.keys - table.queries, table.size);
  }
  void add(int64_t head, int64_t row, int64_t column) {
    if (column >= 0 && column < table.columns) table.add(head, row, column);
  }

  void addRow(int64_t head, int64_t row) {
    const int64_t own = placeOf(row);
    switch (pattern.kind) {
      case PatternKind::bigbird:
      case PatternKind::longformer: return addWindowed(head, row, own);
      case PatternKind::random: return addDrawn(head, row);
      case PatternKind::table: return;
      case PatternKind::strided:
      case PatternKind::fixed:
      case PatternKind::butterfly: break;
    }
    for (int64_t column = 0; column < table.columns; ++column)
      if (isRegular(own, column)) table.add(head, row, column);
  }

  bool isRegular(int64_t own, int64_t column) const {
    const int64_t distance = own < column ? column - own : own - column;
    if (pattern.kind == PatternKind::strided)
      return distance < pattern.stride || distance % pattern.stride == 0;
    if (pattern.kind == PatternKind::fixed)
      return floorDivided(own, pattern.stride) == column / pattern.stride ||
             column % pattern.stride >= pattern.stride - pattern.summary;
    return own >= 0 && std::popcount(uint64_t(own ^ column)) <= 1;
  }

  void addWindowed(int64_t head, int64_t row, int64_t own) {
    const bool isBigbird = pattern.kind == PatternKind::bigbird;
    const int64_t last = isBigbird ? pattern.global / 2 : 0, first = pattern.global - last;
    if (own >= 0 && (own < first || own >= table.columns - last)) {
      for (int64_t column = 0; column < table.columns; ++column) table.add(head, row, column);
      return;
    }
    for (int64_t column = 0; column < std::min(first, table.columns); ++column)
      table.add(head, row, column);
    for (int64_t column = std::max<int64_t>(0, table.columns - last); column < table.columns;
         ++column)
      table.add(head, row, column);
    const int64_t reach = std::min(pattern.window / 2, table.columns);
    for (int64_t column = own - reach; column <= own + reach; ++column) add(head, row, column);
    addRandom(head, row);
  }

  /// Further tiles of a row: as many as the pattern says, or all that are left.
  void addRandom(int64_t head, int64_t row) {
    int64_t left = 0;
    for (int64_t column = 0; column < table.columns; ++column)
      left += table.has(head, row, column) ? 0 : 1;
    const uint64_t state = stateOf(head, row);
    uint64_t draw = 0;
    for (int64_t wanted = std::min(left, pattern.randomTiles); wanted > 0; --wanted) {
      int64_t column = 0;
      do {
        column = int64_t(mixed(state, draw++) % uint64_t(table.columns));
      } while (table.has(head, row, column));
      table.add(head, row, column);
    }
  }

  void addDrawn(int64_t head, int64_t row) {
    const uint64_t state = stateOf(head, row);
    for (int64_t column = 0; column < table.columns; ++column)
      if (double(mixed(state, uint64_t(column)) >> 11) * 0x1p-53 < pattern.density)
        table.add(head, row, column);
  }

  uint64_t stateOf(int64_t head, int64_t row) const {
    return mixed(mixed(uint64_t(pattern.seed.value_or(0)), uint64_t(head)), uint64_t(row));
  }

  const BlockPattern &pattern;
  BlockTable table;
};

}  // namespace

BlockTable BlockPattern::expand(int64_t ofHeads, int64_t queries, int64_t keys) const {
  const int64_t rowsOfGraph = ceilDivided(queries, block),
                columnsOfGraph = ceilDivided(keys, block);
  if (rowsOfGraph > mostTiles / columnsOfGraph ||
      rowsOfGraph * columnsOfGraph > mostTiles / (isByHead ? ofHeads : 1))
    throw Error::badInput("{} x {} tiles of {}{}; a block mask has at most {}", rowsOfGraph,
                          columnsOfGraph, block,
                          isByHead ? fmt::format(" for each of {} heads", ofHeads) : "", mostTiles);
  if (kind == PatternKind::table) {
    if (rows != rowsOfGraph || columns != columnsOfGraph)
      throw Error::badInput(
          "a table of {} x {} tiles; {} queries and {} keys have {} x {} tiles of {}", rows,
          columns, queries, keys, rowsOfGraph, columnsOfGraph, block);
    if (isByHead && heads != ofHeads)
      throw Error::badInput("tables of {} heads; there are {} heads", heads, ofHeads);
  }
  return Expansion(*this, isByHead ? ofHeads : 1, queries, keys).run();
}

BlockPattern BlockPattern::scaled(const Extents &from, const Extents &to) const {
  const auto columnsOf = [&](int64_t size) { return ceilDivided(to.keys, size); };
  constexpr int64_t fewTiles = 6;
  const int64_t wanted = std::min(fewTiles, ceilDivided(from.keys, block));
  BlockPattern other = *this;
  while (other.block > sizes.front() && columnsOf(other.block) < wanted) other.block /= 2;
  if (kind != PatternKind::table) return other;
  const BlockTable whole = expand(from.heads, from.queries, from.keys);
  const int64_t tables = isByHead ? to.heads : 1;
  BlockTable part(other.block, tables, to.queries, to.keys);
  std::vector<bool> tiles;
  for (int64_t head = 0; head < tables; ++head)
    for (int64_t row = 0; row < part.rows; ++row)
      for (int64_t column = 0; column < part.columns; ++column)
        tiles.push_back(whole.has(head * whole.heads / tables, row * whole.rows / part.rows,
                                  column * whole.columns / part.columns));
  if (std::ranges::find(tiles, true) == tiles.end()) tiles.front() = true;
  return ofTable(other.block, tables, part.rows, part.columns, tiles);
}

std::vector<std::string> blockPatternWords() {
  std::vector<std::string> words;
  for (const auto &[kind, word] : kindWords)
    if (kind != PatternKind::table) words.push_back(fmt::format("{}(..)", word));
  return words;
}

bool isBlockPatternName(std::string_view name) {
  return std::ranges::any_of(kindWords, [&](const auto &known) { return known.second == name; });
}

bool isBlockSize(int64_t size) { return std::ranges::find(sizes, size) != sizes.end(); }

const BlockTable &blockTable(const std::string &pattern, int64_t heads, int64_t queries,
                             int64_t keys) {
  static std::mutex mutex;
  static std::map<std::tuple<std::string, int64_t, int64_t, int64_t>, BlockTable> known;
  const std::lock_guard lock(mutex);
  auto key = std::tuple(pattern, heads, queries, keys);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  BlockTable table = BlockPattern::parse(pattern).expand(heads, queries, keys);
  return known.emplace(std::move(key), std::move(table)).first->second;
}

const BlockTable *blockTableOf(const Kernel &kernel, const BodyOp &op) {
  const std::string *const pattern =
      op.kind == OpKind::mask ? findAttribute(op, attribute::pattern) : nullptr;
  if (!pattern) return nullptr;
  const auto extent = [&](int64_t dimension) {
    return extentOfWhole(kernel, op, size_t(dimension));
  };
  int64_t heads = 1;
  if (const std::vector<int64_t> *const along = findAttribute(op, attribute::along))
    for (const int64_t dimension : *along) heads *= extent(dimension);
  return &blockTable(*pattern, heads, extent(attributeOf(op, attribute::query)),
                     extent(attributeOf(op, attribute::key)));
}

std::string blockTableName(std::string_view pattern) {
  uint32_t hash = 2166136261U;  // FNV-1a
  for (const char c : pattern) hash = (hash ^ uint8_t(c)) * 16777619U;
  return fmt::format("blocks_{:08x}", hash);
}

}  // namespace weft
