// weft-library-bench: products of cuBLASLt, the heuristic's first candidate against the best of its
// list, in the four orientations of A and B. All candidates of a GEMM are interleaved in one
// run; no operand is checked here (tests/gpu is).
#include "codegen/families/library/LibraryKnobs.h"
#include "kernel/Error.h"
#include "kernel/Format.h"
#include "passes/configure/CostModel.h"
#include "runtime/cuda/CublasLt.h"
#include "runtime/measure/Measure.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace weft::bench {
namespace {

using namespace runtime;

struct Shape {
  int64_t m, n, k, batch;
};
/// Projections of encoder and GPT layers at B=8 L=512, B=96 L=128, their weight gradients, squares,
/// packed tokens, the contractions of attention, an odd one, and one row a head.
constexpr Shape shapes[] = {
    {4096, 3072, 1024, 1},  {4096, 1024, 1024, 1},  {4096, 4096, 1024, 1},  {4096, 1024, 4096, 1},
    {12288, 3072, 1024, 1}, {12288, 1024, 1024, 1}, {12288, 4096, 1024, 1}, {12288, 1024, 4096, 1},
    {16384, 3072, 768, 1},  {1024, 3072, 4096, 1},  {1024, 4096, 4096, 1},  {4096, 4096, 4096, 1},
    {8192, 8192, 8192, 1},  {2640, 2304, 768, 1},   {2640, 768, 768, 1},    {2640, 3072, 768, 1},
    {2640, 768, 3072, 1},   {512, 512, 64, 128},    {512, 64, 512, 128},    {4096, 4096, 64, 16},
    {4096, 64, 4096, 16},   {300, 1000, 520, 1},    {8, 4096, 4096, 1},     {4096, 4095, 1000, 1},
};

double flopOf(const Shape &shape) {
  return 2.0 * double(shape.m) * double(shape.n) * double(shape.k) * double(shape.batch);
}

/// A is m x k, B k x n, C m x n, column-major unless transposed.
StridedBatchedGemm gemm(const Shape &shape, bool isTransposedA, bool isTransposedB) {
  const auto [m, n, k, batch] = shape;
  return {.batch = batch,
          .m = m,
          .n = n,
          .k = k,
          .batchStrideA = m * k,
          .batchStrideB = k * n,
          .batchStrideC = m * n,
          .strideAm = isTransposedA ? k : 1,
          .strideAk = isTransposedA ? 1 : m,
          .strideBk = isTransposedB ? n : 1,
          .strideBn = isTransposedB ? 1 : k,
          .strideCm = 1,
          .strideCn = m};
}

struct Outcome {
  double first = 0, again = 0, best = 0;  ///< seconds: as the heuristic gives it, made again from
                                          ///< its attributes, best of the list
  size_t candidates = 0;
  LibraryKnobs bestAlgorithm;
};

class Bench {
public:
  Bench(DType dtype, const Protocol &protocol) : dtype(dtype), protocol(protocol) {}

  Outcome run(const Shape &shape, bool isTransposedA, bool isTransposedB) {
    const LibraryGemm asked{.shape = gemm(shape, isTransposedA, isTransposedB), .dtype = dtype};
    const std::vector<LibraryKnobs> list = library.candidates(asked);
    std::vector<PreparedGemm> prepared;
    prepared.push_back(library.prepare(asked, LibraryKnobs{}, "first"));
    for (const LibraryKnobs &knobs : list) {
      prepared.push_back(library.prepare(asked, knobs, "candidate"));
      if (!prepared.back().warning().empty())
        throw Error::checkFailed("{}", prepared.back().warning());
    }
    const MeasurementRun measured =
        measure(context, subjectsOf(shape, prepared), protocol, nullptr);
    Outcome outcome{.first = measured.measurements[0].seconds.median,
                    .again = measured.measurements[1].seconds.median,
                    .best = outcomeBest(measured),
                    .candidates = list.size(),
                    .bestAlgorithm = {}};
    for (size_t i = 0; i < list.size(); ++i)
      if (measured.measurements[i + 1].seconds.median == outcome.best)
        outcome.bestAlgorithm = list[i];
    return outcome;
  }
  std::string title() const {
    return fmt::format("{}, cuBLASLt {}, {}; {}", context.gpu().name,
                       libraryVersionText(library.version()), nameOf(dtype), describe(protocol));
  }

private:
  static double outcomeBest(const MeasurementRun &measured) {
    double best = INFINITY;
    for (size_t i = 1; i < measured.measurements.size(); ++i)
      best = std::min(best, measured.measurements[i].seconds.median);
    return best;
  }

  std::vector<Subject> subjectsOf(const Shape &shape, const std::vector<PreparedGemm> &prepared) {
    const auto bytes = [&](int64_t rows, int64_t columns) {
      return shape.batch * rows * columns * sizeOf(dtype);
    };
    a = cuda::Buffer(bytes(shape.m, shape.k));
    b = cuda::Buffer(bytes(shape.k, shape.n));
    c = cuda::Buffer(bytes(shape.m, shape.n));
    workspace = cuda::Buffer(CublasLt::standardWorkspace);
    // Bits that toggle as data does: constant operands draw less power, and run faster.
    for (const cuda::Buffer *buffer : {&a, &b}) scatter(*buffer);
    std::vector<Subject> subjects;
    for (const PreparedGemm &one : prepared)
      subjects.push_back({.name = "candidate",
                          .enqueue =
                              [&, chosen = &one](cuda::StreamHandle *stream, int) {
                                chosen->enqueue(
                                    {.a = a.address(), .b = b.address(), .result = c.address()},
                                    workspace.address(), stream);
                              },
                          .bytesPerSet = a.bytes() + b.bytes() + c.bytes()});
    return subjects;
  }

  /// Elements of magnitude 1/4 to 4 from a hash of their position, repeated every megabyte.
  void scatter(const cuda::Buffer &buffer) const {
    std::vector<uint16_t> words(size_t(1) << 19);
    uint32_t state = 1;
    for (uint16_t &word : words) {
      state = state * 1664525u + 1013904223u;
      const uint32_t exponent = dtype == DType::f16 ? 13 + (state >> 30) : 125 + (state >> 30);
      const int mantissaBits = dtype == DType::f16 ? 10 : 7;
      word = uint16_t((state >> 16 & 0x8000) | exponent << mantissaBits |
                      (state >> 8 & ((1u << mantissaBits) - 1)));
    }
    const auto all = std::as_bytes(std::span(words));
    for (int64_t at = 0; at < buffer.bytes(); at += int64_t(all.size()))
      cuda::upload(buffer.address() + uint64_t(at),
                   all.first(size_t(std::min<int64_t>(int64_t(all.size()), buffer.bytes() - at))));
  }

  const DType dtype;
  const Protocol protocol;
  cuda::Context context;
  CublasLt library;
  cuda::Buffer a, b, c, workspace;
};

/// What the analytic model says of the heuristic's first candidate, both operands column-major.
double modelledSeconds(const Shape &shape, DType dtype) {
  Kernel kernel;
  kernel.axes = {{"b", shape.batch}, {"m", shape.m}, {"n", shape.n}, {"k", shape.k}};
  kernel.values = {{.name = "a", .dtype = dtype, .axes = {0, 3, 1}},
                   {.name = "b", .dtype = dtype, .axes = {0, 2, 3}},
                   {.name = "c", .dtype = dtype, .axes = {0, 2, 1}}};
  kernel.inputs = {0, 1};
  kernel.outputs = {2};
  BodyOp contract;
  contract.kind = OpKind::contract;
  contract.operatorClass = OperatorClass::contraction;
  contract.operands = {0, 1};
  contract.results = {2};
  contract.reducedAxes = {3};
  kernel.body = {contract};
  const Configuration configuration{
      .inputs = {rowMajor(3), rowMajor(3)}, .outputs = {rowMajor(3)}, .knobs = LibraryKnobs{}};
  return analyticCostModel(findDevice("h200"))->cost(kernel, configuration).seconds;
}

int run(DType dtype, const Protocol &protocol, const std::vector<std::string> &names) {
  Bench bench(dtype, protocol);
  fmt::print(
      "{}\nTFLOP/s of the heuristic's first candidate / the best of its list (candidates); the "
      "model's for the first, NN\n",
      bench.title());
  fmt::print("{:<24}{:>18}{:>18}{:>18}{:>18}{:>10}   best of NN\n", "m x n x k (batch)", "NN", "TN",
             "NT", "TT", "model");
  double logGain = 0, logAgain = 0;
  int count = 0;
  for (const Shape &shape : shapes) {
    const std::string name = fmt::format("{}x{}x{} ({})", shape.m, shape.n, shape.k, shape.batch);
    const auto isAsked = [&](const std::string &part) {
      return name.find(part) != std::string::npos;
    };
    if (!names.empty() && std::ranges::none_of(names, isAsked)) continue;
    std::string row = fmt::format("{:<24}", name), algorithm;
    for (int orientation = 0; orientation < 4; ++orientation) {
      const Outcome outcome = bench.run(shape, orientation & 1, orientation & 2);
      const auto rate = [&](double seconds) { return 1e-12 * flopOf(shape) / seconds; };
      row += fmt::format("{:>18}", fmt::format("{:.0f} / {:.0f} ({})", rate(outcome.first),
                                               rate(outcome.best), outcome.candidates));
      if (orientation == 0)
        algorithm = fmt::format("algorithm {} tile {} stages {} splitK {} cluster {}",
                                outcome.bestAlgorithm.algorithm, outcome.bestAlgorithm.tile,
                                outcome.bestAlgorithm.stages, outcome.bestAlgorithm.splitK,
                                outcome.bestAlgorithm.clusterShape);
      logGain += std::log(outcome.first / outcome.best);
      logAgain += std::log(outcome.again / outcome.first);
      ++count;
    }
    fmt::print("{}{:>10.0f}   {}\n", row, 1e-12 * flopOf(shape) / modelledSeconds(shape, dtype),
               algorithm);
    std::fflush(stdout);
  }
  if (count == 0) throw Error::badInput("no shape is named like that");
  fmt::print(
      "geometric means over {} products: best over first {:.3f}; first made again from its "
      "attributes over first {:.3f} of its time\n",
      count, std::exp(logGain / count), std::exp(logAgain / count));
  return 0;
}

}  // namespace
}  // namespace weft::bench

int main(int argumentCount, char **arguments) {
  CLI::App app(
      "Products of cuBLASLt: first candidate of the heuristic against the best of its list.",
      "weft-library-bench");
  std::string dtype = "f16";
  std::vector<std::string> names;
  weft::runtime::Protocol protocol{.l2 = weft::runtime::L2State::warm,
                                   .rounds = 10,
                                   .warmUpRounds = 2,
                                   .secondsPerRound = 1e-3,
                                   .mostCalls = 20};
  app.add_option("shape", names,
                 "products whose name contains one of these (\"4096x3072\"); all if there is none");
  app.add_option("--dtype", dtype, "f16, bf16")->check(CLI::IsMember({"f16", "bf16"}));
  app.add_option("--rounds", protocol.rounds, "interleaved rounds; the median counts");
  try {
    app.parse(argumentCount, arguments);
    return weft::bench::run(*weft::parseDType(dtype), protocol, names);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : int(weft::ErrorKind::badInput);
  } catch (const weft::Error &error) {
    std::fflush(stdout);
    fmt::print(stderr, "weft-library-bench: {}\n", error.what());
    return int(error.kind);
  }
}
