// Block masks: what patterns expand to, texts that are read back, every rejection's message, and
// questions about tables against one question a score.
#include "kernel/BlockMask.h"
#include "kernel/Error.h"

#include <catch2/catch.hpp>

#include <chrono>
#include <random>

using namespace weft;

namespace {

/// "badInput: text" of the error that a pattern of these extents throws, or "no error".
std::string errorOf(const std::string &text, int64_t heads = 4, int64_t queries = 256,
                    int64_t keys = 256) {
  try {
    BlockPattern::parse(text).expand(heads, queries, keys);
  } catch (const Error &error) {
    return (error.kind == ErrorKind::badInput ? "badInput: " : "unsupported: ") +
           std::string(error.what());
  }
  return "no error";
}

/// Rows of tiles of one head: "x" for those that exist.
std::vector<std::string> drawn(const BlockTable &table, int64_t head = 0) {
  std::vector<std::string> rows;
  for (int64_t row = 0; row < table.rows; ++row) {
    rows.emplace_back();
    for (int64_t column = 0; column < table.columns; ++column)
      rows.back() += table.has(head, row, column) ? 'x' : '.';
  }
  return rows;
}
std::vector<std::string> drawn(const std::string &text, int64_t queries, int64_t keys) {
  return drawn(BlockPattern::parse(text).expand(1, queries, keys));
}

using Rows = std::vector<std::string>;

}  // namespace

TEST_CASE("patterns are what their publications draw") {
  CHECK(drawn("longformer(block=16,window=3,global=1)", 96, 96) ==
        Rows{"xxxxxx", "xxx...", "xxxx..", "x.xxx.", "x..xxx", "x...xx"});
  CHECK(drawn("bigbird(block=16,window=1,global=2,random=0)", 80, 80) ==
        Rows{"xxxxx", "xx..x", "x.x.x", "x..xx", "xxxxx"});
  CHECK(drawn("strided(block=16,stride=2)", 96, 96) ==
        Rows{"xxx.x.", "xxxx.x", "xxxxx.", ".xxxxx", "x.xxxx", ".x.xxx"});
  CHECK(drawn("fixed(block=16,stride=3,summary=1)", 96, 96) ==
        Rows{"xxx..x", "xxx..x", "xxx..x", "..xxxx", "..xxxx", "..xxxx"});
  CHECK(drawn("butterfly(block=16)", 96, 96) ==
        Rows{"xxx.x.", "xx.x.x", "x.xx..", ".xxx..", "x...xx", ".x..xx"});
}

TEST_CASE("a pattern on few positions keeps its tiles as far as there are any") {
  const auto scaled = [](const std::string &text, BlockPattern::Extents from,
                         BlockPattern::Extents to) {
    return BlockPattern::parse(text).scaled(from, to);
  };
  // Smaller tiles, until there are six.
  CHECK(scaled("longformer(block=64,window=3,global=1)", {1, 4096, 4096}, {1, 129, 129}).text() ==
        "longformer(block=16,window=3,global=1)");
  CHECK(scaled("butterfly(block=64)", {1, 4096, 4096}, {1, 200, 200}).block == 32);
  CHECK(scaled("butterfly(block=64)", {1, 4096, 4096}, {1, 512, 512}).block == 64);
  CHECK(scaled("butterfly(block=64)", {1, 128, 128}, {1, 64, 64}).block == 32);
  // Of a table every so many tiles, or at least one.
  const std::string table = "table(block=64,heads=1,rows=4,columns=4,bits=5aa5)";
  const BlockPattern half = scaled(table, {1, 256, 256}, {1, 64, 64});
  CHECK(half.expand(1, 64, 64).count() > 0);
  CHECK(drawn(half.expand(1, 64, 64)) == Rows{"x.x.", ".x.x", ".x.x", "x.x."});
  const std::string corner = "table(block=16,heads=1,rows=2,columns=2,bits=02)";
  CHECK(drawn(scaled(corner, {1, 32, 32}, {1, 16, 16}).expand(1, 16, 16)) == Rows{"x"});
  const BlockPattern heads =
      scaled("table(block=16,heads=4,rows=1,columns=2,bits=1111)", {4, 16, 32}, {2, 16, 32});
  CHECK(heads.heads == 2);
  CHECK(heads.expand(2, 16, 32).count() == 2);
}

TEST_CASE("rows of tiles stand at the last positions of the keys") {
  // Two rows at tiles 4 and 5 of six.
  CHECK(drawn("longformer(block=16,window=3,global=0)", 32, 96) == Rows{"...xxx", "....xx"});
  // 100 keys less 30 queries: row 0 begins at position 70, in tile 4, row 1 at 86, in tile 5.
  CHECK(drawn("longformer(block=16,window=1,global=1)", 30, 100) == Rows{"x...x..", "x....x."});
  // The first queries stand before all keys.
  CHECK(drawn("longformer(block=16,window=1,global=0)", 64, 32) == Rows{"..", "..", "x.", ".x"});
}

TEST_CASE("random tiles are as many as the pattern says, and the same for the same seed") {
  const BlockPattern pattern =
      BlockPattern::parse("bigbird(block=64,window=3,global=2,random=3,seed=7,heads=each)");
  const BlockTable table = pattern.expand(4, 4096, 4096);
  for (int64_t head = 0; head < 4; ++head)
    for (int64_t row = 2; row < 62; ++row) {
      int64_t seen = 0;
      for (int64_t column = 0; column < 64; ++column) seen += table.has(head, row, column);
      CHECK(seen == 3 + 2 + 3);
    }
  CHECK(drawn(table, 0) != drawn(table, 1));
  CHECK(table == pattern.expand(4, 4096, 4096));
  const auto other = BlockPattern::parse("bigbird(seed=8,heads=each)").expand(4, 4096, 4096);
  CHECK(drawn(table) != drawn(other));
  // Nothing is left to draw.
  CHECK(drawn("bigbird(block=16,window=1,global=0,random=9,seed=0)", 48, 48) ==
        Rows{"xxx", "xxx", "xxx"});
  const BlockTable tenth =
      BlockPattern::parse("random(block=16,density=0.1,seed=1)").expand(1, 4096, 4096);
  CHECK(tenth.share() == Approx(0.1).margin(0.005));
  CHECK(BlockPattern::parse("random(block=16,density=1,seed=1)").expand(1, 100, 100).share() == 1);
}

TEST_CASE("the text of a pattern is read back, with every parameter") {
  for (const char *text : {"bigbird(block=64,window=3,global=2,random=3,seed=0,heads=all)",
                           "bigbird(block=16,window=1,global=0,random=0,heads=each)",
                           "longformer(block=64,window=9,global=1)", "strided(block=32,stride=8)",
                           "fixed(block=128,stride=8,summary=1)", "butterfly(block=64)",
                           "random(block=64,density=0.1,seed=12,heads=all)",
                           "table(block=64,heads=2,rows=1,columns=30,bits=0*6;01f*8;)"}) {
    CHECK(BlockPattern::parse(text).text() == text);
    CHECK(BlockPattern::parse(BlockPattern::parse(text).text()) == BlockPattern::parse(text));
  }
  CHECK(BlockPattern::parse("bigbird(seed=0)").text() ==
        "bigbird(block=64,window=3,global=2,random=3,seed=0,heads=all)");
  CHECK(BlockPattern::parse(" longformer ( block = 16 , global=2 ) ").text() ==
        "longformer(block=16,window=9,global=2)");
  CHECK(BlockPattern::parse("butterfly").text() == "butterfly(block=64)");
}

TEST_CASE("tables survive their text, whatever their bits") {
  std::mt19937 random(3);
  for (int turn = 0; turn < 200; ++turn) {
    const int64_t heads = 1 + random() % 3, rows = 1 + random() % 5, columns = 1 + random() % 70;
    // Runs, so that packing has some.
    std::vector<bool> tiles;
    while (int64_t(tiles.size()) < heads * rows * columns)
      tiles.insert(tiles.end(), 1 + random() % 40, random() % 2 == 0);
    tiles.resize(size_t(heads * rows * columns));
    tiles[0] = true;
    const std::string text = BlockPattern::ofTable(16, heads, rows, columns, tiles).text();
    const BlockTable table = BlockPattern::parse(text).expand(heads, rows * 16 - 3, columns * 16);
    bool isSame = true;
    for (size_t n = 0; n < tiles.size(); ++n)
      isSame = isSame && tiles[n] == table.has(int64_t(n) / (rows * columns),
                                               int64_t(n) / columns % rows, int64_t(n) % columns);
    INFO(text);
    CHECK(isSame);
  }
}

TEST_CASE("coverage and share are those of single scores") {
  std::mt19937 random(5);
  const auto pick = [&](int64_t count) { return int64_t(random() % uint64_t(count)); };
  for (int turn = 0; turn < 60; ++turn) {
    const int64_t queries = 1 + pick(200), keys = 1 + pick(900);
    const std::string text =
        fmt::format("random(block=16,density={},seed={},heads=each)", turn % 2 ? 0.9 : 0.2, turn);
    if (errorOf(text, 2, queries, keys) != "no error") continue;
    const BlockTable table = BlockPattern::parse(text).expand(2, queries, keys);
    int64_t seen = 0;
    for (int64_t head = 0; head < 2; ++head)
      for (int64_t q = 0; q < queries; ++q)
        for (int64_t k = 0; k < keys; ++k) seen += table.sees(head, q, k);
    CHECK(table.share() == Approx(double(seen) / double(2 * queries * keys)).epsilon(1e-12));
    for (int n = 0; n < 20; ++n) {
      const int64_t head = pick(2), q = pick(queries), k = pick(keys),
                    lastQ = q + pick(queries - q), lastK = k + pick(keys - k);
      bool isAny = false, isAll = true;
      for (int64_t row = q; row <= lastQ; ++row)
        for (int64_t column = k; column <= lastK; ++column) {
          const bool own = table.sees(head, row, column);
          isAny = isAny || own, isAll = isAll && own;
        }
      const BlockTable::Coverage found = table.coverage(head, q, lastQ, k, lastK);
      CHECK(found.isAny == isAny);
      CHECK(found.isAll == isAll);
    }
  }
}

TEST_CASE("a table of 65,536 tokens is there in 50 ms") {
  const auto begin = std::chrono::steady_clock::now();
  const BlockTable &table = blockTable(
      "bigbird(block=64,window=3,global=2,random=3,seed=0,heads=each)", 16, 65536, 65536);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  CHECK(table.rows == 1024);
#ifdef NDEBUG
  CHECK(taken.count() < 0.05);
#else
  CHECK(taken.count() < 2);
#endif
}

TEST_CASE("patterns that are none") {
  CHECK(errorOf("bigbrid(seed=0)") ==
        "badInput: unknown pattern 'bigbrid'; nearest is 'bigbird(..)' (known: bigbird(..), "
        "longformer(..), strided(..), fixed(..), butterfly(..), random(..))");
  CHECK(errorOf("bigbird(seed=0") == "badInput: ')' is expected at the end");
  CHECK(errorOf("bigbird(window)") ==
        "badInput: 'window' is no parameter; expected NAME=VALUE, as block=64");
  CHECK(
      errorOf("butterfly(window=3)").starts_with("badInput: butterfly has no parameter 'window'"));
  CHECK(errorOf("strided(stride=2,stride=2)") == "badInput: parameter 'stride' is given twice");
  CHECK(errorOf("strided(stride=two)") == "badInput: stride=two: expected a number");
  CHECK(errorOf("strided(stride=0)") == "badInput: stride=0: from 1 to 1048576");
  CHECK(errorOf("butterfly(block=48)") ==
        "badInput: block=48: tiles have 16, 32, 64, 128 queries and as many keys");
  CHECK(errorOf("butterfly(block=256)").starts_with("badInput: block=256: "));
  CHECK(errorOf("longformer(window=4)") ==
        "badInput: window=4: expected an odd number of tiles, the row's own and as many on each "
        "side");
  CHECK(errorOf("fixed(stride=4,summary=5)") == "badInput: summary=5: from 0 to the stride, 4");
  CHECK(errorOf("random(seed=0)") == "badInput: random needs a density, as density=0.1");
  CHECK(errorOf("random(density=1.5,seed=0)") ==
        "badInput: density=1.5: expected a number above 0 and at most 1");
  CHECK(errorOf("random(density=0,seed=0)").starts_with("badInput: density=0: "));
  CHECK(errorOf("random(density=nan,seed=0)").starts_with("badInput: density=nan: "));
  CHECK(errorOf("random(density=0.1)") ==
        "badInput: random draws tiles at random; it needs a seed, as seed=0");
  CHECK(errorOf("bigbird") ==
        "badInput: bigbird draws tiles at random; it needs a seed, as seed=0");
  CHECK(errorOf("bigbird(random=0)") == "no error");
  CHECK(errorOf("random(density=0.1,seed=0,heads=2)") ==
        "badInput: heads=2: expected all (one table for all heads) or each");
}

TEST_CASE("tables that do not fit, and masks without a tile") {
  CHECK(errorOf("random(density=0.000001,seed=0)") ==
        "badInput: the mask is empty: none of its 16 tiles exists");
  CHECK(errorOf("table(block=64,heads=1,rows=4,columns=4,bits=0000)") ==
        "badInput: the mask is empty: none of its 16 tiles exists");
  CHECK(errorOf("table(block=64,heads=1,rows=4,columns=5,bits=1000)") ==
        "badInput: a table of 4 x 5 tiles; 256 queries and 256 keys have 4 x 4 tiles of 64");
  CHECK(errorOf("table(block=64,heads=3,rows=4,columns=4,bits=1*12;)") ==
        "badInput: tables of 3 heads; there are 4 heads");
  CHECK(errorOf("table(block=64,heads=1,rows=4,columns=4,bits=100)") ==
        "badInput: bits: 3 of the 4 digits of the table");
  CHECK(errorOf("table(block=64,heads=1,rows=4,columns=4,bits=1*5;)") ==
        "badInput: bits: more than the 4 digits of the table");
  CHECK(errorOf("table(block=64,heads=1,rows=4,columns=4,bits=100g)") ==
        "badInput: bits: 'g' at 3 is no hexadecimal digit");
  CHECK(errorOf("table(block=64,heads=1,rows=4,columns=4,bits=1*4)") ==
        "badInput: bits: a run as 0*60; is expected at 0");
  CHECK(errorOf("table(block=64,heads=1,rows=4,columns=3,bits=8000)", 1, 256, 192) ==
        "badInput: bits: row 0 has a tile behind the last of 3 columns");
  CHECK(errorOf("butterfly(block=16)", 1, 1 << 17, 1 << 17) ==
        "badInput: 8192 x 8192 tiles of 16; a block mask has at most 16777216");
  CHECK(errorOf("random(block=16,density=0.1,seed=0,heads=each)", 16, 65536, 65536) ==
        "badInput: 4096 x 4096 tiles of 16 for each of 16 heads; a block mask has at most "
        "16777216");
}
