// weft-sequential-bench: unfused attention by one CPU thread (SequentialAttention.h), each length
// as one JSON line: seconds of every round, median seconds of every step, and the error against
// fp64. Exit code 1 where that is too large.
#include "bench/sequential/SequentialAttention.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <random>

namespace {

using namespace weft::bench;

constexpr double errorLimit = 1e-4;

std::vector<float> normal(int64_t elements, std::mt19937 &generator) {
  std::normal_distribution<float> distribution;
  std::vector<float> values(static_cast<size_t>(elements));
  std::ranges::generate(values, [&] { return distribution(generator); });
  return values;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Whether the result is right.
bool measure(const SequentialShape &shape, int rounds) {
  std::mt19937 generator(1);  // a fixed seed
  const std::vector<float> q = normal(shape.operandElements(), generator),
                           k = normal(shape.operandElements(), generator),
                           v = normal(shape.operandElements(), generator);
  std::vector<float> scores(size_t(shape.batch * shape.length * shape.length)), out(q.size());
  std::vector<double> score, softmax, weighted, total;
  for (int round = 0; round < rounds; ++round) {
    const SequentialTimes times = attend(shape, q, k, v, scores, out);
    score.push_back(times.score);
    softmax.push_back(times.softmax);
    weighted.push_back(times.weighted);
    total.push_back(times.total());
  }
  const double error = greatestError(shape, q, k, v, out);
  fmt::print(
      "{{\"batch\": {}, \"length\": {}, \"head\": {}, \"seconds\": {}, \"score\": {}, "
      "\"softmax\": {}, \"weighted\": {}, \"samples\": [{}], \"error\": {}}}\n",
      shape.batch, shape.length, shape.head, median(total), median(score), median(softmax),
      median(weighted), fmt::join(total, ", "), error);
  std::fflush(stdout);
  if (error <= errorLimit) return true;
  fmt::print(stderr, "weft-sequential-bench: length {}: error {} against fp64 is above {}\n",
             shape.length, error, errorLimit);
  return false;
}

}  // namespace

int main(int count, char **words) {
  CLI::App app("unfused attention in fp32 by one CPU thread, one JSON line a length");
  std::vector<int64_t> lengths{256, 512, 1024, 2048, 4096, 8192};
  int64_t batch = 1, head = 64;
  int rounds = 3;
  app.add_option("--length", lengths, "queries and keys")->check(CLI::Range(1, 16384));
  app.add_option("--batch", batch, "batch elements of one head")->check(CLI::Range(1, 64));
  app.add_option("--head", head, "elements of a query")->check(CLI::Range(1, 1024));
  app.add_option("--rounds", rounds, "of which medians are taken")->check(CLI::Range(1, 1000));
  try {
    app.parse(count, words);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  bool isRight = true;
  for (const int64_t length : lengths)
    isRight &= measure({.batch = batch, .length = length, .head = head}, rounds);
  return isRight ? 0 : 1;
}
