// Functions of score ops on the host: in every tile of a grid of tiles the coverage agrees with
// the scores themselves, and scores without masks agree with those that no mask excludes.
#include "codegen/Program.h"
#include "codegen/families/attention/AttentionScore.h"
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"
#include "kernel/BlockMask.h"
#include "passes/configure/Family.h"
#include "tests/emulate/AttentionDocuments.h"
#include "tests/emulate/EmittedRun.h"
#include "tests/unit/samples/SampleAttentions.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <cmath>
#include <random>
#include <set>

using namespace weft;
using namespace weft::codegen;

namespace {

/// What the kernel counts.
enum Counter { unsound, imprecise, empty, mixed, full, changed, counters };

struct Subject {
  Kernel kernel;
  int tileQueries = 5, tileKeys = 7;
  std::vector<std::vector<double>> inputs = {};  ///< elements in logical order; empty: small ones
  // Filled by emitText().
  AttentionScore score = {};
  Configuration configuration = {};
  emulate::Source source = {};
};

/// One thread visits all tiles; a score is excluded where it is -inf. `values` has all scores.
constexpr const char *harness = R"(
  for (int head = 0; head < HEADS; ++head)
    for (int q = 0; q < QUERIES; ++q)
      for (int k = 0; k < KEYS; ++k)
        values[(head * QUERIES + q) * KEYS + k] = SCORE(1.5f, head, q, k);
  for (int head = 0; head < HEADS; ++head)
    for (int q = 0; q < QUERIES; q += TILE_Q)
      for (int k = 0; k < KEYS; k += TILE_K) {
        const int lastQ = weft::smaller(q + TILE_Q, QUERIES) - 1,
                  lastK = weft::smaller(k + TILE_K, KEYS) - 1;
        int excluded = 0, all = 0, others = 0, masked = 0;
        for (int row = q; row <= lastQ; ++row)
          for (int column = k; column <= lastK; ++column) {
            const float own = SCORE(1.5f, head, row, column),
                        bare = BARE(1.5f, head, row, column);
            excluded += own == weft::negativeInfinity;
            others += own != weft::negativeInfinity && own != bare;
            masked += own != bare;
            ++all;
          }
        const weft::TileCoverage found = COVERAGE(head, q, lastQ, k, lastK);
        const auto exact = excluded == all ? weft::TileCoverage::empty
                           : excluded == 0 ? weft::TileCoverage::full
                                           : weft::TileCoverage::mixed;
        counts[2 + int(found)] += 1;
        // Value ops may exclude scores, too: a full tile is one that masks leave as it is.
        counts[0] += found == weft::TileCoverage::empty ? excluded != all
                     : found == weft::TileCoverage::full ? masked > 0
                                                         : 0;
        counts[1] += found == weft::TileCoverage::mixed && found != exact;
        counts[5] += others;
      }
  // What lies outside the tensor reads nothing outside its memory.
  for (int k = 0; k < KEYS + 9; ++k) values[0] += 0.0f * SCORE(1.5f, 0, QUERIES + 3, k) * 0.0f;
)";

void emitText(Subject &subject) {
  const Kernel &kernel = subject.kernel;
  const AttentionRegion region = attentionRegion(kernel).value();
  LayoutTuple tuple;
  for (const ValueId value : operandValues(kernel))
    tuple.push_back(distinctLayouts(extentsOf(kernel, value)).back());
  subject.configuration = toConfiguration(kernel, tuple, FmaGemmKnobs{});
  const AttentionProblem problem =
      valueOrThrow(attentionProblem(kernel, region, subject.configuration));
  REQUIRE(scoreRejection(kernel, region) == "");
  Names names;
  for (const char *word : {"values", "counts"}) names.reserve(word);
  Program program{.entry = names.reserve(kernel.name), .headers = {"weft/types.cuh"}};
  std::vector<std::string> axes, inputs;
  ConstantLine extents{
      .type = "int", .entries = {}, .note = "extents", .subject = {ConstantSubject::Kind::extents}};
  for (const Axis &axis : kernel.axes) {
    axes.push_back(names.reserve(axis.name));
    extents.entries.emplace_back(axes.back(), axis.extent);
  }
  for (size_t i = 0; i < kernel.inputs.size(); ++i) {
    const Value &value = kernel.values[size_t(kernel.inputs[i])];
    inputs.push_back(names.reserve(value.name));
    program.parameters.push_back(
        {Parameter::Kind::input, int(i), inputs.back(), std::string(cudaNameOf(value.dtype))});
  }
  program.parameters.push_back({Parameter::Kind::output, 0, "values", "float"});
  program.parameters.push_back({Parameter::Kind::output, 1, "counts", "int"});
  subject.score = attentionScore({.kernel = kernel,
                                  .configuration = subject.configuration,
                                  .region = region,
                                  .problem = problem,
                                  .names = names,
                                  .axes = axes,
                                  .inputs = inputs,
                                  .behindEnds = BehindEnds::last});
  const AttentionScore &score = subject.score;
  program.headers.insert(program.headers.end(), score.headers.begin(), score.headers.end());
  program.constants = {extents};
  program.constants.insert(program.constants.end(), score.constants.begin(), score.constants.end());
  program.body = score.functions;
  program.body.push_back(evaluate("BODY"));
  program.launchBounds = "1";
  addBlockTables(kernel, program);
  std::string text = printCuda(program), body = harness;
  const std::vector<std::pair<std::string, std::string>> words = {
      {"HEADS", std::to_string(problem.heads)},
      {"QUERIES", std::to_string(problem.queries)},
      {"KEYS", std::to_string(problem.keys)},
      {"TILE_Q", std::to_string(subject.tileQueries)},
      {"TILE_K", std::to_string(subject.tileKeys)},
      {"SCORE", score.score},
      {"BARE", score.scoreWithoutMasks},
      {"COVERAGE", score.coverage}};
  for (const auto &[word, by] : words)
    for (size_t at = 0; (at = body.find(word, at)) != std::string::npos; at += by.size())
      body.replace(at, word.size(), by);
  const std::string call = "  BODY;\n";
  text.replace(text.find(call), call.size(), body);
  subject.source = {text, program.entry};
}

struct Outcome {
  std::vector<int> counts = std::vector<int>(counters);
  std::vector<float> scores;  ///< by head, query, key
};

Outcome runOn(const Subject &subject, const emulate::HostKernel &host) {
  const Kernel &kernel = subject.kernel;
  std::vector<std::unique_ptr<emulate::Tensor>> tensors;
  std::vector<void *> pointers, arguments;
  for (size_t i = 0; i < kernel.inputs.size(); ++i) {
    tensors.push_back(std::make_unique<emulate::Tensor>(kernel, kernel.inputs[i],
                                                        subject.configuration.inputs[i]));
    const emulate::Tensor &tensor = *tensors.back();
    if (i >= subject.inputs.size() || subject.inputs[i].empty()) {
      tensor.fill(i);
    } else {
      size_t place = 0;
      tensor.forEach([&](std::span<const int64_t> at) {
        reference::storeElement(tensor.type, tensor.at(at), subject.inputs[i][place++]);
      });
    }
    pointers.push_back(tensor.buffer.bytes().data());
  }
  const AttentionProblem problem = valueOrThrow(
      attentionProblem(kernel, attentionRegion(kernel).value(), subject.configuration));
  Outcome outcome{.scores =
                      std::vector<float>(size_t(problem.heads * problem.queries * problem.keys))};
  pointers.push_back(outcome.scores.data());
  pointers.push_back(outcome.counts.data());
  for (void *&pointer : pointers) arguments.push_back(&pointer);
  REQUIRE(emulate::run({.shared = host.shared}, emulate::Schedule::ascending,
                       [&] { host.call(arguments.data()); }) == "");
  for (const auto &tensor : tensors) CHECK(tensor->buffer.intact());
  return outcome;
}

std::vector<Outcome> runAll(const std::string &name, std::vector<Subject> &subjects) {
  std::vector<emulate::Source> sources;
  for (Subject &subject : subjects) {
    emitText(subject);
    sources.push_back(subject.source);
  }
  const emulate::HostLibrary library(name, sources);
  std::vector<Outcome> outcomes;
  for (size_t i = 0; i < subjects.size(); ++i) {
    INFO(subjects[i].source.text);
    outcomes.push_back(runOn(subjects[i], library.kernel(i)));
    // What value ops exclude is none of coverage's business.
    if (subjects[i].score.hasMasks) CHECK(outcomes.back().counts[unsound] == 0);
    CHECK(outcomes.back().counts[changed] == 0);
  }
  return outcomes;
}

constexpr double masked = -std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("a window with global positions skips the tiles that neither shows") {
  std::vector<Subject> subjects;
  for (const auto &[j, k] : {std::pair<int64_t, int64_t>{40, 40}, {23, 61}, {61, 23}}) {
    const samples::AttentionExtents e{.b = 1, .h = 2, .j = j, .k = k};
    for (const int tile : {1, 4, 9})
      subjects.push_back({samples::windowAttention(e, DType::f16, 3, 5, 7), tile, tile});
  }
  std::vector<int> total(counters);
  for (const Outcome &outcome : runAll("attention_global", subjects))
    for (int c = 0; c < counters; ++c) total[size_t(c)] += outcome.counts[size_t(c)];
  CHECK(total[unsound] == 0);
  for (const Counter kind : {empty, mixed, full}) CHECK(total[kind] > 30);
  // A tile is not known as full where the window and the global positions show it together.
  CHECK(total[imprecise] < total[mixed] / 2);
}

TEST_CASE("coverage of one mask is exact in every tile") {
  std::vector<Subject> subjects;
  for (const auto &[j, k] : {std::pair<int64_t, int64_t>{40, 40}, {23, 61}, {61, 23}}) {
    const samples::AttentionExtents e{.b = 3, .h = 2, .g = 2, .j = j, .k = k};
    for (const int tile : {1, 4, 9}) {
      subjects.push_back({samples::causalAttention(e, DType::f16), tile, 2 * tile});
      subjects.push_back({samples::windowAttention(e, DType::f16, 6, 0), 2 * tile, tile});
      subjects.push_back({samples::windowAttention(e, DType::f16, 3, 5), tile, tile});
      subjects.push_back({samples::paddedAttention(e, DType::f16), tile, 11});
      subjects.back().inputs = {{}, {}, {}, {0, double(k), double(k / 3)}};
      subjects.push_back({samples::attentionOfTokens(e, DType::f16), tile, 11});
      subjects.back().inputs = {{}, {}, {}, {0, double(j), double(j / 3)}};
    }
  }
  const std::vector<Outcome> outcomes = runAll("attention_masks", subjects);
  std::vector<int> total(counters);
  for (const Outcome &outcome : outcomes)
    for (int c = 0; c < counters; ++c) total[size_t(c)] += outcome.counts[size_t(c)];
  CHECK(total[imprecise] == 0);
  for (const Counter kind : {empty, mixed, full}) CHECK(total[kind] > 100);
  for (const Subject &subject : subjects) {
    CHECK(subject.score.hasMasks);
    CHECK(!subject.score.hasValueOps);
    CHECK(subject.score.mayScaleLast);
    CHECK(subject.score.scoreWithoutMasks == "weft::UnchangedScore{}");
  }
}

TEST_CASE("coverage of a block mask is exact in every tile, and scores follow its table") {
  std::vector<Subject> subjects;
  const std::vector<std::pair<std::string, bool>> patterns = {
      {"random(block=16,density=0.3,seed=7)", false},
      {"random(block=16,density=0.5,seed=3,heads=each)", true},
      {"bigbird(block=16,window=3,global=2,random=1,seed=0,heads=each)", true},
      {"longformer(block=16,window=3,global=1)", false},
      {"strided(block=32,stride=2)", false},
      {"butterfly(block=16)", false},
      {"bigbird(block=32,window=1,global=0,random=1,seed=1)", false}};
  // The last one has two words a row of tiles.
  for (const auto &[j, k] :
       {std::pair<int64_t, int64_t>{100, 100}, {50, 131}, {131, 50}, {20, 700}})
    for (const auto &[pattern, isByHead] : patterns) {
      const samples::AttentionExtents e{.b = 2, .h = 2, .g = 2, .j = j, .k = k};
      const int tile = 8 + 12 * int(subjects.size() % 4);
      subjects.push_back({samples::blockAttention(e, DType::f16, pattern, isByHead), tile,
                          int(subjects.size() % 3) == 0 ? 16 : 40});
    }
  const std::vector<Outcome> outcomes = runAll("attention_block_masks", subjects);
  std::vector<int> total(counters);
  for (size_t i = 0; i < subjects.size(); ++i) {
    const Subject &subject = subjects[i];
    for (int c = 0; c < counters; ++c) total[size_t(c)] += outcomes[i].counts[size_t(c)];
    CHECK(subject.score.hasMasks);
    CHECK(!subject.score.hasValueOps);
    CHECK(subject.score.scoreWithoutMasks == "weft::UnchangedScore{}");
    const AttentionRegion region = attentionRegion(subject.kernel).value();
    const BlockTable &table =
        *blockTableOf(subject.kernel, subject.kernel.body[region.scoreOps[0]]);
    int wrong = 0;
    for (int64_t head = 0; head < 8; ++head)
      for (int64_t q = 0; q < table.queries; ++q)
        for (int64_t k = 0; k < table.keys; ++k) {
          if (head + q + k == 0) continue;
          const float found =
              outcomes[i].scores[size_t((head * table.queries + q) * table.keys + k)];
          wrong += found != (table.sees(head % 4, q, k) ? 1.5f : float(masked));
        }
    INFO(subject.source.text);
    CHECK(wrong == 0);
  }
  CHECK(total[imprecise] == 0);
  for (const Counter kind : {empty, mixed, full}) CHECK(total[kind] > 100);
}

TEST_CASE("a block mask and a causal one skip what either excludes") {
  const samples::AttentionExtents e{.b = 1, .h = 2, .j = 96, .k = 96};
  std::vector<Subject> subjects = {
      {samples::blockAttention(e, DType::f16, "strided(block=16,stride=2)", false, true), 16, 16}};
  const Outcome outcome = runAll("attention_causal_blocks", subjects)[0];
  CHECK(outcome.counts[imprecise] == 0);
  // Of six rows of tiles, those below the diagonal at distance 1, 2 and 4 are full.
  CHECK(outcome.counts[full] == 2 * (5 + 4 + 2));
  CHECK(outcome.counts[mixed] == 2 * 6);
}

TEST_CASE("a tile that several masks exclude together is skipped where one does so alone") {
  const samples::AttentionExtents e{.b = 3, .h = 1, .g = 2, .j = 37, .k = 50};
  std::vector<Subject> subjects = {{samples::paddedAttention(e, DType::f16, true), 8, 6}};
  subjects[0].inputs = {{}, {}, {}, {0, 50, 21}};
  const Outcome outcome = runAll("attention_conjunction", subjects)[0];
  // Heads of three batch elements; keys up to j + 13.
  for (int64_t head = 0; head < 6; ++head)
    for (int64_t q = 0; q < e.j; ++q)
      for (int64_t k = 0; k < e.k; ++k) {
        const bool isSeen = k <= q + 13 && k < std::array{0, 50, 21}[size_t(head / 2)];
        const float found = outcome.scores[size_t((head * e.j + q) * e.k + k)];
        if (head + q + k > 0) CHECK(found == (isSeen ? 1.5f : float(masked)));
      }
  CHECK(outcome.counts[empty] > 60);
  CHECK(outcome.counts[full] > 60);
}

TEST_CASE("random conditions are bounded soundly") {
  std::mt19937 random(7);
  const auto pick = [&](int count) { return int(random() % unsigned(count)); };
  using E = Expression;
  using Operator = ScalarOperator;
  const std::function<E(int)> number = [&](int depth) {
    if (depth == 0 || pick(4) == 0)
      return std::array{E::coordinate(3), E::coordinate(4), E::coordinate(1),
                        E::operand(1, ScalarType::i32), E::integer(pick(30))}[size_t(pick(5))];
    const E left = number(depth - 1);
    switch (pick(6)) {
      case 0: return E::binary(Operator::add, left, number(depth - 1));
      case 1: return E::binary(Operator::subtract, left, number(depth - 1));
      case 2: return E::binary(Operator::multiply, left, E::integer(1 + pick(3)));
      case 3: return E::binary(Operator::divide, left, E::integer(1 + pick(9)));
      case 4: return E::binary(Operator::modulo, left, E::integer(1 + pick(20)));
      default: return E::unary(Operator::negate, E::coordinate(3 + pick(2)));
    }
  };
  const std::function<E(int)> condition = [&](int depth) {
    if (depth > 0 && pick(2) == 0)
      return E::binary(pick(2) == 0 ? Operator::both : Operator::either, condition(depth - 1),
                       condition(depth - 1));
    const Operator operation = std::array{Operator::less,    Operator::lessEqual,
                                          Operator::greater, Operator::greaterEqual,
                                          Operator::equal,   Operator::notEqual}[size_t(pick(6))];
    return E::binary(operation, number(2), number(2));
  };
  std::vector<Subject> subjects;
  for (int i = 0; i < 60; ++i) {
    samples::FusedAttention attention("random_mask", {.b = 2, .h = 1, .g = 3, .j = 19, .k = 31},
                                      DType::f16);
    const int lengths = attention.input("lengths", "bg", DType::i32);
    const bool keepsFirst = pick(2) == 0;
    // What holds everywhere reads the operand, so that every op does.
    const E whole = E::binary(
        Operator::both, condition(2),
        E::binary(Operator::greaterEqual, E::operand(1, ScalarType::i32), E::integer(-9)));
    const E score = E::operand(0), fill = E::literal(masked);
    const int excluded = attention.map(
        "mask", keepsFirst ? E::select(whole, score, fill) : E::select(whole, fill, score),
        {attention.scores(), lengths}, "excluded");
    subjects.push_back({attention.build(excluded), 4, 6});
    subjects.back().inputs = {{}, {}, {}, {3, 9, 14, 20, 27, 31}};
  }
  const std::vector<Outcome> outcomes = runAll("attention_conditions", subjects);
  int decided = 0;
  for (size_t i = 0; i < subjects.size(); ++i)
    if (subjects[i].score.hasMasks) decided += outcomes[i].counts[empty] + outcomes[i].counts[full];
  CHECK(decided > 1000);
}

TEST_CASE("value ops see every score, and their operands at its coordinates") {
  const samples::AttentionExtents e{.b = 2, .h = 2, .g = 2, .j = 9, .k = 12};
  std::vector<Subject> subjects = {{samples::biasedAttention(e, DType::f16), 3, 4},
                                   {samples::slopedAttention(e, DType::bf16), 3, 4}};
  subjects[0].inputs.resize(4);
  for (int64_t i = 0; i < 4 * e.j * e.k; ++i) subjects[0].inputs[3].push_back(double(i % 97) / 8);
  subjects[1].inputs = {{}, {}, {}, {0.5, 0.25, 0.125, 0.0625}};
  const std::vector<Outcome> outcomes = runAll("attention_values", subjects);
  for (int64_t head = 0; head < 8; ++head)
    for (int64_t q = 0; q < e.j; ++q)
      for (int64_t k = 0; k < e.k; ++k) {
        if (head + q + k == 0) continue;
        const int64_t ofBatch = head % 4, place = (ofBatch * e.j + q) * e.k + k;
        const bool isSeen = k <= q + 3;
        const double biased = 1.5 + double(place % 97) / 8,
                     sloped = 1.5 + std::ldexp(1.0, -1 - int(ofBatch)) * double(k - q);
        const size_t at = size_t((head * e.j + q) * e.k + k);
        CHECK(outcomes[0].scores[at] == float(isSeen ? biased : masked));
        CHECK(outcomes[1].scores[at] == float(isSeen ? sloped : masked));
      }
  for (const Subject &subject : subjects) {
    CHECK(subject.score.hasMasks);
    CHECK(subject.score.hasValueOps);
    CHECK(!subject.score.mayScaleLast);
  }
}

TEST_CASE("biases by position are those of their publications, for every head and distance") {
  // Six heads: no power of two. Queries stand at the end of the keys.
  const samples::AttentionExtents e{.b = 2, .h = 3, .g = 2, .j = 9, .k = 12, .distance = 4};
  std::vector<Subject> subjects = {{samples::alibiAttention(e, DType::f16), 3, 4},
                                   {samples::relativeAttention(e, DType::f16), 3, 4},
                                   {samples::relativeAttention(e, DType::f16, true), 3, 4}};
  for (const size_t subject : {1, 2}) {
    subjects[subject].inputs.resize(4);
    for (int i = 0; i < 6 * 9; ++i) subjects[subject].inputs[3].push_back(i / 8.0);
  }
  const std::vector<Outcome> outcomes = runAll("attention_positions", subjects);
  for (int64_t head = 0; head < 12; ++head)
    for (int64_t q = 0; q < e.j; ++q)
      for (int64_t k = 0; k < e.k; ++k) {
        if (head + q + k == 0) continue;
        const int64_t own = head % 6, distance = k - (q + 3);
        // Press et al.: four heads of 2^-2 ... 2^-8, then two of the eight between them.
        constexpr std::array slopes = {-2.0, -4.0, -6.0, -8.0, -1.0, -3.0};
        const double sloped = 1.5 + std::exp2(slopes[size_t(own)]) * double(distance);
        const double biased = 1.5 + double(own * 9 + std::clamp<int64_t>(distance, -4, 4) + 4) / 8;
        const size_t at = size_t((head * e.j + q) * e.k + k);
        INFO(head << " " << q << " " << k);
        if (distance > 0) CHECK(outcomes[0].scores[at] == float(masked));
        else CHECK(outcomes[0].scores[at] == Approx(sloped).epsilon(1e-6));
        CHECK(outcomes[1].scores[at] == float(biased));
        CHECK(outcomes[2].scores[at] == float(distance > 0 ? masked : biased));
      }
  CHECK(!subjects[1].score.hasMasks);
  for (const Subject &subject : subjects) CHECK(subject.score.hasValueOps);
}

TEST_CASE("a tile whose mask reads segments is never known to be full or empty") {
  const samples::AttentionExtents e{.b = 2, .h = 1, .g = 2, .j = 10, .k = 14};
  std::vector<Subject> subjects = {{samples::documentAttention(e, DType::f16), 3, 4},
                                   {samples::documentAttention(e, DType::f16, true), 3, 4}};
  std::vector<double> segments;
  for (int64_t i = 0; i < 2 * e.k; ++i) segments.push_back(double(i / 5 % 3));
  for (Subject &subject : subjects) subject.inputs = {{}, {}, {}, segments};
  const std::vector<Outcome> outcomes = runAll("attention_documents", subjects);
  for (int64_t head = 0; head < 4; ++head)
    for (int64_t q = 0; q < e.j; ++q)
      for (int64_t k = 0; k < e.k; ++k) {
        if (head + q + k == 0) continue;
        const int64_t row = head / 2 * e.k;
        const bool isSeen = segments[size_t(row + k)] == segments[size_t(row + q + 4)];
        const size_t at = size_t((head * e.j + q) * e.k + k);
        CHECK(outcomes[0].scores[at] == (isSeen ? 1.5f : float(masked)));
        CHECK(outcomes[1].scores[at] == (isSeen && k <= q + 4 ? 1.5f : float(masked)));
      }
  CHECK(!subjects[0].score.hasMasks);
  CHECK(subjects[0].score.coverage == "weft::FullCoverage{}");
  // The causal mask beside it skips tiles by itself.
  CHECK(subjects[1].score.hasMasks);
  CHECK(outcomes[1].counts[empty] > 0);
}

TEST_CASE("bounds of segments leave out tiles between documents, and masks inside of one") {
  const samples::AttentionExtents e{.b = 2, .h = 1, .g = 2, .j = 150, .k = 170, .hasBounds = true};
  // Runs of whole tiles in no order, of which every tile is known; others are never unsound.
  std::vector<Subject> subjects;
  for (const int64_t run : {32, 64, 45, 1}) {
    subjects.push_back({samples::documentAttention(e, DType::f16), run == 64 ? 32 : 7, 32});
    subjects.back().inputs = {{}, {}, {}, emulate::segmentsOf(e.b, e.k, run), {}};
    for (int64_t b = 0; b < e.b; ++b)
      for (int64_t first = 0; first < e.k; first += boundedTile) {
        const auto row = subjects.back().inputs[3].begin() + b * e.k;
        const auto [least, greatest] =
            std::minmax_element(row + first, row + std::min(first + boundedTile, e.k));
        subjects.back().inputs[4].push_back(*least);
        subjects.back().inputs[4].push_back(*greatest);
      }
  }
  const std::vector<Outcome> outcomes = runAll("attention_bounded_documents", subjects);
  for (size_t i = 0; i < subjects.size(); ++i) {
    INFO(i);
    CHECK(subjects[i].score.hasMasks);
    CHECK(!subjects[i].score.hasValueOps);
    CHECK((outcomes[i].counts[empty] > 0) == (i < 3));
    CHECK((outcomes[i].counts[full] > 0) == (i < 3));
    for (int64_t head = 0; head < 4; ++head)
      for (int64_t q = 0; q < e.j; ++q)
        for (int64_t k = 0; k < e.k; ++k) {
          if (head + q + k == 0) continue;
          const size_t row = size_t(head / 2 * e.k);
          const std::vector<double> &segments = subjects[i].inputs[3];
          const bool isSeen = segments[row + size_t(k)] == segments[row + size_t(q + e.k - e.j)];
          if (outcomes[i].scores[size_t((head * e.j + q) * e.k + k)] !=
              (isSeen ? 1.5f : float(masked)))
            FAIL(head << " " << q << " " << k);
        }
  }
  // A tile of 7 queries may meet two documents, one of which it does not have.
  CHECK(outcomes[0].counts[mixed] > 0);
}

TEST_CASE("queries behind a cache's keys leave out the tiles behind their own") {
  const samples::AttentionExtents e{.b = 3, .h = 1, .g = 2, .j = 5, .k = 60};
  const std::vector<double> starts = {0, 17, 55};
  std::vector<Subject> subjects = {{samples::cachedAttention(e, DType::f16), 3, 4}};
  subjects.front().inputs = {{}, {}, {}, starts};
  const std::vector<Outcome> outcomes = runAll("attention_cached", subjects);
  for (int64_t head = 0; head < 6; ++head)
    for (int64_t q = 0; q < e.j; ++q)
      for (int64_t k = 0; k < e.k; ++k) {
        if (head + q + k == 0) continue;
        const bool isSeen = double(k) <= starts[size_t(head / 2)] + double(q);
        CHECK(outcomes[0].scores[size_t((head * e.j + q) * e.k + k)] ==
              (isSeen ? 1.5f : float(masked)));
      }
  CHECK(subjects[0].score.hasMasks);
  CHECK(subjects[0].score.mayScaleLast);
  CHECK(outcomes[0].counts[empty] > 0);
  CHECK(outcomes[0].counts[full] > 0);
}

TEST_CASE("what does not exclude scores for good is a value op") {
  const samples::AttentionExtents e{.j = 20, .k = 20};
  std::vector<Subject> subjects;
  const auto add = [&](const char *before, const char *after) {
    samples::FusedAttention attention("capped", e, DType::f16);
    int value = attention.map("mask", before, {attention.scores()}, "excluded");
    if (*after) value = attention.map("add", after, {value}, "capped");
    subjects.push_back({attention.build(value), 4, 4});
  };
  add("[4] <= [3] ? {0} : -10000.0f", "");                                // a finite fill
  add("[4] <= [3] ? {0} : weft::negativeInfinity", "weft::tanh({0})");    // ends at -1
  add("{0} > 0.5f ? {0} : weft::negativeInfinity", "");                   // depends on the score
  add("[4] <= [3] ? {0} : weft::negativeInfinity", "0.5f * {0} + 1.0f");  // stays a mask
  const std::vector<Outcome> outcomes = runAll("attention_value_ops", subjects);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(!subjects[i].score.hasMasks);
    CHECK(subjects[i].score.coverage == "weft::FullCoverage{}");
    CHECK(subjects[i].score.scoreWithoutMasks == subjects[i].score.score);
  }
  CHECK(subjects[3].score.hasMasks);
  CHECK(outcomes[3].counts[empty] > 0);
}
