// Batches of masked tokens: what they hold, that they are a function of seed and step, and what is
// rejected.
#include "kernel/Error.h"
#include "runtime/train/TextBatches.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

using namespace weft;
using runtime::TextBatches;
using runtime::TokenBatch;

namespace {

constexpr int64_t sequences = 3, length = 20;  // 3 of 20 positions are predicted

std::string text() {
  std::string all;
  for (int at = 0; at < 500; ++at) all += char('a' + at * 7 % 26);
  return all;
}

}  // namespace

TEST_CASE("a batch holds pieces of the text with a fixed number of predicted positions") {
  const std::string source = text();
  const TextBatches batches(source, "text", sequences, length, 128, 7);
  std::set<std::vector<int32_t>> seen;
  int masked = 0, predicted = 0;
  for (int64_t step = 0; step < 50; ++step) {
    const TokenBatch batch = batches.at(step);
    REQUIRE(batch.tokens.size() == size_t(sequences * length));
    seen.insert(batch.tokens);
    for (int64_t sequence = 0; sequence < sequences; ++sequence) {
      std::string original;
      int64_t here = 0;
      float weight = 0;
      for (int64_t at = sequence * length; at < (sequence + 1) * length; ++at) {
        const bool isPredicted = batch.labels[size_t(at)] >= 0;
        original += char(isPredicted ? batch.labels[size_t(at)] : batch.tokens[size_t(at)]);
        here += isPredicted;
        masked += batch.tokens[size_t(at)] == 0;
        weight += batch.weights[size_t(at)];
        CHECK((batch.weights[size_t(at)] > 0) == isPredicted);
      }
      CHECK(here == 3);
      CHECK(weight == Approx(1.0 / sequences));
      CHECK(source.find(original) != std::string::npos);
      predicted += int(here);
    }
  }
  CHECK(seen.size() == 50);
  CHECK(masked > predicted * 7 / 10);
  CHECK(masked < predicted * 9 / 10);
}

TEST_CASE("batches are a function of seed and step") {
  const TextBatches one(text(), "text", sequences, length, 128, 7),
      same(text(), "text", sequences, length, 128, 7),
      other(text(), "text", sequences, length, 128, 8);
  CHECK(one.at(31) == same.at(31));
  CHECK_FALSE(one.at(31) == one.at(32));
  CHECK_FALSE(one.at(31) == other.at(31));
}

TEST_CASE("a text that cannot be cut into tokens is rejected") {
  CHECK_THROWS_WITH(TextBatches("short", "FILE", sequences, length, 128, 1),
                    Catch::Contains("FILE: 5 bytes") && Catch::Contains("20"));
  std::string zero = text();
  zero[100] = '\0';
  CHECK_THROWS_WITH(TextBatches(zero, "FILE", sequences, length, 128, 1),
                    Catch::Contains("byte 100 is 0"));
  CHECK_THROWS_WITH(TextBatches(text(), "FILE", sequences, length, 110, 1),
                    Catch::Contains("tokens are 1 to 109"));
  CHECK_NOTHROW(TextBatches(runtime::shippedText(), "shipped", sequences, length, 128, 1));
}
