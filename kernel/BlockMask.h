// Block masks: which tiles of scores exist, as a named pattern with parameters and as the table of
// bits that it expands to.
//
// A pattern is one word of --mask and one attribute of weft.mask:
//
//   bigbird(block=64, window=3, global=2, random=3, seed=0, heads=all)
//   longformer(block=64, window=9, global=1)
//   strided(block=64, stride=8)
//   fixed(block=64, stride=8, summary=1)
//   butterfly(block=64)
//   random(block=64, density=0.1, seed=0, heads=all)
//   table(block=64, heads=1, rows=2, columns=3, bits=70)
//
// Parameters but `block` count tiles. Row i of tiles stands at the tile of keys that holds the
// position of its first query; with fewer queries than keys, queries stand at the last positions.
//
//   window    tiles around that one, itself included (odd)
//   global    tiles that all queries see and whose queries see all: of longformer the first ones,
//             of bigbird half of them (rounded up) first, the others last
//   random    further tiles of each row, drawn by `seed`
//   stride    strided: tiles less than a stride away, or a multiple of it; fixed: the tiles of the
//             row's own run of `stride` tiles, and the last `summary` ones of every run
//   butterfly own number and that of the column differ in at most one bit
//   density   each tile exists with this probability
//   heads     all: one table for all heads; each: each head draws its own
//
// Everything is a function of the text and the extents: the same on every machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// Bits by head, row of tiles and tile of keys: whether the tile exists.
class BlockTable {
public:
  BlockTable(int64_t size, int64_t heads, int64_t queries, int64_t keys);

  int64_t size = 64;  ///< queries and keys of a tile; the last ones may have fewer
  int64_t heads = 1;  ///< tables; 1: the same for all heads
  int64_t queries = 0, keys = 0;
  int64_t rows = 0, columns = 0;     ///< tiles
  int64_t wordsOfRow = 0;            ///< of 32 bits; the first column is the lowest bit
  std::vector<uint32_t> words = {};  ///< [heads][rows][wordsOfRow]; no bit behind the last column

  bool has(int64_t head, int64_t row, int64_t column) const {
    return (words[wordOf(head, row, column)] >> (column % 32) & 1) != 0;
  }
  /// Whether the score of a head exists. `head` counts for tables by head alone.
  bool sees(int64_t head, int64_t query, int64_t key) const {
    return has(heads > 1 ? head : 0, query / size, key / size);
  }
  void add(int64_t head, int64_t row, int64_t column) {
    words[wordOf(head, row, column)] |= uint32_t(1) << (column % 32);
  }

  struct Coverage {
    bool isAny = false, isAll = true;
  };
  /// Of the scores in inclusive ranges.
  Coverage coverage(int64_t head, int64_t firstQuery, int64_t lastQuery, int64_t firstKey,
                    int64_t lastKey) const;
  int64_t count() const;  ///< tiles that exist
  double share() const;   ///< of all scores
  bool operator==(const BlockTable &) const = default;

private:
  size_t wordOf(int64_t head, int64_t row, int64_t column) const {
    return size_t((head * rows + row) * wordsOfRow + column / 32);
  }
};

struct BlockPattern {
  enum class Kind : uint8_t { bigbird, longformer, strided, fixed, butterfly, random, table };
  Kind kind = Kind::bigbird;
  int64_t block = 64;
  int64_t window = 0, global = 0, randomTiles = 0, stride = 0, summary = 0;
  double density = 0;
  std::optional<int64_t> seed = {};
  bool isByHead = false;  ///< heads have different tables
  /// Of a table: its extents, and its tiles row by row, four a hexadecimal digit with the first in
  /// the lowest bit; "0*60;" is 60 zeros.
  int64_t heads = 1, rows = 0, columns = 0;
  std::string bits = {};

  /// Throws Error(badInput) that says what is wrong, for whom to name the text.
  static BlockPattern parse(std::string_view text);
  /// Of a table that was given tile by tile: [heads][rows][columns].
  static BlockPattern ofTable(int64_t block, int64_t heads, int64_t rows, int64_t columns,
                              const std::vector<bool> &tiles);
  /// What parse() reads, with every parameter.
  std::string text() const;
  /// For so many heads, queries and keys. Throws Error(badInput) where they do not fit, or where no
  /// tile exists.
  BlockTable expand(int64_t heads, int64_t queries, int64_t keys) const;
  /// The pattern on other extents, for what is computed on few positions in the place of many:
  /// tiles get smaller where that leaves more than a few of them, and a table has every so many of
  /// its tiles, at least one. Throws Error(badInput) where the pattern does not fit `from`.
  struct Extents {
    int64_t heads = 1, queries = 0, keys = 0;
  };
  BlockPattern scaled(const Extents &from, const Extents &to) const;
  bool operator==(const BlockPattern &) const = default;
};

/// "bigbird(..)", for lists of what is known.
std::vector<std::string> blockPatternWords();
/// Whether a pattern has this name: "bigbird".
bool isBlockPatternName(std::string_view name);
/// The tile sizes that there are: 16, 32, 64, 128.
bool isBlockSize(int64_t size);

/// The table of a pattern's text, which lives as long as the program. Throws as parse() and
/// expand() do.
const BlockTable &blockTable(const std::string &pattern, int64_t heads, int64_t queries,
                             int64_t keys);

struct BodyOp;
struct Kernel;
/// The table of an op that is a mask by a pattern; null for any other.
const BlockTable *blockTableOf(const Kernel &kernel, const BodyOp &op);
/// The name of a table in emitted text: by the text of its pattern.
std::string blockTableName(std::string_view pattern);

}  // namespace weft
