// weft-contraction-bench: our contractions, all configurations of a shape, against
// every candidate of cuBLASLt's heuristic, interleaved in one process; the best two of each side
// again in two regimes, since clocks differ by a fifth:
//
//   burst       a pause, one graph, then a timed one: a cool card
//   sustained   35 ms of the same kernel, then a timed graph: the power limit holds
//
// Every result of ours is compared with fp64. Exit code 1 if one is wrong. --epilogues,
// --warps-epilogues, --decode, --prologues, --strides: see Epilogues.h, Decode.h, Prologues.h,
// Strides.h.
#include "bench/contractions/Contender.h"
#include "bench/contractions/Decode.h"
#include "bench/contractions/Epilogues.h"
#include "bench/contractions/Prologues.h"
#include "bench/contractions/Strides.h"
#include "bench/contractions/TimedGraph.h"
#include "codegen/families/library/LibraryKnobs.h"
#include "kernel/Error.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <deque>
#include <map>
#include <thread>

namespace weft::bench {
namespace {

using namespace runtime;

constexpr const char *float8 = "f8e4m3,f8e4m3->f16", *float8Mixed = "f8e4m3,f8e5m2->f16";
constexpr const char *float8Wide = "f8e4m3,f8e4m3->f32", *float8Brain = "f8e4m3,f8e4m3->bf16",
                     *tf32 = "tf32,tf32->f32", *f32 = "f32,f32->f32";

/// Layer and dW shapes, batched attention, square, small, odd with padded rows, rows that start
/// anywhere, or at odd multiples of 16 bytes; 8-bit floats in shapes that the library takes, too;
/// and tf32, by mma.sync where an operand does not lie along k; and f32 by FMA: scores, weighted
/// sums, GEMMs.
constexpr Shape shapes[] = {
    {"layer", 4096, 3072, 1024, 1},
    {"layer", 4096, 1024, 1024, 1, true, false},
    {"layer", 4096, 4096, 1024, 1, true, false},
    {"layer", 4096, 1024, 4096, 1},
    {"layer", 12288, 3072, 1024, 1},
    {"layer", 12288, 1024, 1024, 1, true, false},
    {"layer", 12288, 4096, 1024, 1},
    {"layer", 12288, 1024, 4096, 1},
    {"layer", 16384, 3072, 768, 1, true, false},
    {"layer", 2640, 2304, 768, 1},
    {"layer", 2640, 768, 768, 1},
    {"layer", 2640, 3072, 768, 1},
    {"layer", 2640, 768, 3072, 1},
    {"dW", 1024, 3072, 4096, 1, false, false},
    {"dW", 1024, 4096, 4096, 1, false, false},
    {"dW", 4096, 1024, 4096, 1, false, false},
    {"batched", 512, 512, 64, 128},
    {"batched", 512, 64, 512, 128, true, false},
    {"batched", 4096, 4096, 64, 16},
    {"batched", 4096, 64, 4096, 16, true, false},
    {"batched", 512, 64, 512, 128, false, false},
    {"square", 4096, 4096, 4096, 1},
    {"square", 4096, 4096, 4096, 1, true, false},
    {"small", 300, 1000, 520, 1},
    {"small", 512, 3072, 1024, 1},
    {"small", 512, 1024, 4096, 1, true, false},
    {"small", 520, 520, 520, 1},
    {"small", 8, 4096, 4096, 1},
    {"padded", 4096, 4095, 1000, 1, true, true, 64},
    {"padded", 1000, 777, 555, 1, true, true, 64},
    {"anywhere", 1000, 777, 555, 1},
    {"anywhere", 1001, 777, 555, 1, false, false},
    {"anywhere", 4096, 4095, 1000, 1},
    {"straddling", 4096, 4088, 1024, 1, true, false},
    {"straddling", 4096, 4096, 1000, 1},
    {"straddling", 4096, 4088, 1000, 1, true, false},
    {"straddling", 4096, 1016, 4096, 1, true, false},
    {"straddling", 2048, 50264, 768, 1, true, false},
    {"straddling", 1024, 3080, 4096, 1, false, false},
    {"lines", 4096, 4096, 1032, 1},
    {"lines", 4096, 4096, 1040, 1},
    {"lines", 4096, 4096, 1056, 1},
    {"lines", 4096, 4096, 1088, 1},
    {"lines", 6080, 8640, 2160, 1},
    {"lines", 6080, 2160, 2160, 1},
    {"lines", 6080, 2160, 8640, 1},
    {"lines", 1036, 7680, 2880, 1},
    {"fp8", 4096, 4096, 4096, 1, true, true, 1, float8},
    {"fp8", 4096, 4096, 4096, 1, true, true, 1, float8Mixed},
    {"fp8", 4096, 4096, 4096, 1, true, true, 1, float8Brain},
    {"fp8", 4096, 4096, 4096, 1, true, true, 1, float8Wide},
    {"fp8", 4096, 4096, 1024, 1, true, true, 1, float8},
    {"fp8", 4096, 4096, 1024, 1, true, true, 1, float8Mixed},
    {"fp8", 8192, 8192, 8192, 1, true, true, 1, float8},
    {"fp8", 4096, 1024, 4096, 1, true, true, 1, float8},
    {"fp8", 1000, 784, 560, 1, true, true, 1, float8},
    {"fp8", 1000, 784, 560, 1, true, true, 1, float8Mixed},
    {"fp8", 2640, 3072, 768, 1, true, true, 1, float8},
    {"fp8", 16, 4096, 4096, 1, true, true, 1, float8},
    {"tf32", 4096, 4096, 4096, 1, true, true, 1, tf32},
    {"tf32", 8192, 8192, 8192, 1, true, true, 1, tf32},
    {"tf32", 4096, 3072, 1024, 1, true, true, 1, tf32},
    {"tf32", 4096, 1024, 1024, 1, true, true, 1, tf32},
    {"tf32", 4096, 4096, 1024, 1, true, true, 1, tf32},
    {"tf32", 4096, 1024, 4096, 1, true, true, 1, tf32},
    {"tf32", 2640, 3072, 768, 1, true, true, 1, tf32},
    {"tf32", 512, 512, 64, 128, true, true, 1, tf32},
    {"tf32", 16, 4096, 4096, 1, true, true, 1, tf32},
    {"tf32", 1000, 777, 555, 1, true, true, 64, tf32},
    {"tf32", 1000, 777, 555, 1, true, true, 1, tf32},
    {"tf32", 4096, 4096, 4096, 1, true, false, 1, tf32},
    {"tf32", 4096, 4096, 4096, 1, false, false, 1, tf32},
    {"tf32", 1024, 3072, 4096, 1, false, false, 1, tf32},
    {"fma", 1024, 1024, 64, 1, true, true, 1, f32},
    {"fma", 1024, 1024, 64, 2, true, true, 1, f32},
    {"fma", 1024, 1024, 64, 4, true, true, 1, f32},
    {"fma", 2048, 2048, 64, 1, true, true, 1, f32},
    {"fma", 2048, 2048, 64, 2, true, true, 1, f32},
    {"fma", 2048, 2048, 64, 4, true, true, 1, f32},
    {"fma", 1024, 64, 1024, 1, true, false, 1, f32},
    {"fma", 1024, 64, 1024, 2, true, false, 1, f32},
    {"fma", 1024, 64, 1024, 4, true, false, 1, f32},
    {"fma", 2048, 64, 2048, 1, true, false, 1, f32},
    {"fma", 2048, 64, 2048, 2, true, false, 1, f32},
    {"fma", 2048, 64, 2048, 4, true, false, 1, f32},
    {"fma", 4096, 768, 3072, 1, true, true, 1, f32},
    {"fma", 1000, 777, 333, 1, true, false, 1, f32},
    {"fma", 4096, 4096, 1024, 1, true, true, 1, f32},
};

using Contender = Contenders::Contender;

struct Regimes {
  double burst = 0, sustained = 0;
};

struct Outcome {
  std::string name, ours;
  double ratio = 0;  ///< cuBLASLt's best over our best, interleaved
  double burstRatio = 0, sustainedRatio = 0;
};

class Bench {
public:
  Bench(int rounds, bool startsEarly, bool printsEveryTile)
      : rounds(rounds), startsEarly(startsEarly), printsEveryTile(printsEveryTile) {}

  Outcome run(const Problem &problem, size_t &wrong) {
    Contenders contenders(problem, library, startsEarly);
    std::vector<Contender> &all = contenders.all();
    for (Contender &one : all) {
      contenders.poison();
      one.enqueue(stream.handle(), 0);
      stream.synchronize();
      if (!one.isOurs) continue;
      if (const std::string problemText = contenders.check(); !problemText.empty()) {
        fmt::print("WRONG {}, {}: {}\n", problem.shape.name(), one.name, problemText);
        ++wrong;
      }
    }
    interleave(contenders, problem.shape);
    if (printsEveryTile)
      for (const Contender *one : fastest(contenders, true, all.size()))
        fmt::print("  {:>8.2f} us  {:>5.0f} GB/s  {}\n", 1e6 * one->seconds,
                   1e-9 * problem.shape.bytes() / one->seconds, one->name);
    return finals(contenders, problem.shape);
  }

  void strides(DType dtype) { benchStrides(dtype, rounds, printsEveryTile, library, stream); }
  void prologues(DType dtype) { benchPrologues(dtype, rounds, printsEveryTile, library, stream); }
  void decode(DType dtype, const std::vector<std::string> &names) {
    benchDecode(dtype, rounds, startsEarly, printsEveryTile, names, library, stream);
  }
  void epilogues(DType dtype, const std::vector<std::string> &names, bool ofWarps) {
    benchEpilogues(dtype, rounds, printsEveryTile, names, ofWarps, library, stream);
  }

  std::string title() const {
    return fmt::format("{}, cuBLASLt {}", context.gpu().name,
                       libraryVersionText(library.version()));
  }

private:
  /// As many as take about a millisecond.
  static int callsOf(const Shape &shape) {
    return 3 * int(std::clamp(1e-3 / (std::max(shape.flop(), 2e9) / 6e14) / 3, 1.0, 10.0));
  }

  void interleave(Contenders &contenders, const Shape &shape) {
    std::deque<TimedGraph> graphs;  // events do not move
    for (const Contender &one : contenders.all())
      graphs.emplace_back(stream, one.enqueue, contenders.sets(), callsOf(shape));
    std::vector<std::vector<double>> samples(graphs.size());
    for (int round = 0; round <= rounds; ++round)
      for (size_t i = 0; i < graphs.size(); ++i)
        if (const double seconds = graphs[i].time(); round > 0) samples[i].push_back(seconds);
    for (size_t i = 0; i < graphs.size(); ++i) contenders.all()[i].seconds = median(samples[i]);
  }

  static std::vector<Contender *> fastest(Contenders &contenders, bool isOurs, size_t most) {
    std::vector<Contender *> found;
    for (Contender &one : contenders.all())
      if (one.isOurs == isOurs) found.push_back(&one);
    std::ranges::sort(found, {}, &Contender::seconds);
    if (found.size() > most) found.resize(most);
    return found;
  }

  static const Contender *fastestPromoted(Contenders &contenders) {
    const Contender *best = nullptr;
    for (const Contender &one : contenders.all())
      if (one.promotesSums && (!best || one.seconds < best->seconds)) best = &one;
    return best;
  }

  Regimes regimesOf(const std::vector<Contender *> &side, const Contenders &contenders,
                    const Shape &shape) {
    using namespace std::chrono_literals;
    constexpr int repeats = 3;
    constexpr double warmSeconds = 35e-3;
    Regimes best{INFINITY, INFINITY};
    for (const Contender *one : side) {
      TimedGraph graph(stream, one->enqueue, contenders.sets(), callsOf(shape));
      std::vector<double> burst, sustained;
      for (int repeat = 0; repeat < repeats; ++repeat) {
        std::this_thread::sleep_for(25ms);
        graph.time();
        burst.push_back(graph.time());
        for (double spent = 0; spent < warmSeconds; spent += one->seconds * callsOf(shape))
          graph.launch();
        sustained.push_back(graph.time());
      }
      best = {std::min(best.burst, median(burst)), std::min(best.sustained, median(sustained))};
    }
    return best;
  }

  Outcome finals(Contenders &contenders, const Shape &shape) {
    const auto ours = fastest(contenders, true, 2), theirs = fastest(contenders, false, 2);
    if (theirs.empty()) throw Error::checkFailed("{}: cuBLASLt lists no candidate", shape.name());
    const Regimes our = regimesOf(ours, contenders, shape),
                  their = regimesOf(theirs, contenders, shape);
    const auto rate = [&](double seconds) { return 1e-12 * shape.flop() / seconds; };
    fmt::print(
        "{:<9}{:<28}{:>8.2f} us {:>5.0f} |{:>8.2f} {:>5.0f} | {:>5.3f} | burst {:>4.0f} / {:>4.0f} "
        "= {:.3f} | sustained {:>4.0f} / {:>4.0f} = {:.3f} | {}\n",
        shape.group, shape.name(), 1e6 * ours[0]->seconds, rate(ours[0]->seconds),
        1e6 * theirs[0]->seconds, rate(theirs[0]->seconds), theirs[0]->seconds / ours[0]->seconds,
        rate(our.burst), rate(their.burst), their.burst / our.burst, rate(our.sustained),
        rate(their.sustained), their.sustained / our.sustained, ours[0]->name);
    if (const Contender *promoted = fastestPromoted(contenders))
      fmt::print("{:<9}cuBLASLt with sums in fp32: {:.2f} us; its best keeps them in {}\n", "",
                 1e6 * promoted->seconds,
                 theirs[0]->promotesSums ? "fp32, too" : "the tensor cores");
    std::fflush(stdout);
    return {.name = shape.name(),
            .ours = ours[0]->name,
            .ratio = theirs[0]->seconds / ours[0]->seconds,
            .burstRatio = their.burst / our.burst,
            .sustainedRatio = their.sustained / our.sustained};
  }

  const int rounds;
  const bool startsEarly, printsEveryTile;
  cuda::Context context;
  CublasLt library;
  cuda::Stream stream;
};

void buildAll(std::vector<Problem> &problems) {
  std::vector<BuildRequest> requests;
  for (const Problem &problem : problems)
    for (const codegen::EmittedKernel &emitted : problem.emitted)
      requests.push_back({.name = problem.shape.name(),
                          .text = emitted.text,
                          .entry = emitted.entry,
                          .architecture = "sm_90a",
                          .extraFlags = {}});
  BuildOptions options;
  options.headers = codegen::deviceHeaders();
  std::vector<BuildResult> results = build(requests, options);
  auto next = results.begin();
  for (Problem &problem : problems)
    for (size_t i = 0; i < problem.emitted.size(); ++i) problem.built.push_back(std::move(*next++));
}

/// What we ask of ourselves, of cuBLASLt's best: of a group's mean, and of each shape in it.
struct Limits {
  double mean = 0, least = 0;
};
Limits limitsOf(std::string_view group) {
  if (group == "padded") return {3, 3};
  if (group == "fp8") return {0.9, 0};
  if (group == "layer" || group == "dW" || group == "batched" || group == "square" ||
      group == "small")
    return {1.00, 0.93};
  return {};
}

/// run(bench) behind a title.
template <typename Run>
int runFused(DType dtype, int rounds, bool printsEveryTile, const Run &run,
             bool startsEarly = true) {
  Bench bench(rounds, startsEarly, printsEveryTile);
  fmt::print("{}, {}\n", bench.title(), nameOf(dtype));
  run(bench);
  return 0;
}
int runEpilogues(DType dtype, int rounds, bool printsEveryTile,
                 const std::vector<std::string> &names, bool ofWarps) {
  return runFused(dtype, rounds, printsEveryTile,
                  [&](Bench &bench) { bench.epilogues(dtype, names, ofWarps); });
}
int runDecode(DType dtype, int rounds, bool startsEarly, bool printsEveryTile,
              const std::vector<std::string> &names) {
  return runFused(
      dtype, rounds, printsEveryTile, [&](Bench &bench) { bench.decode(dtype, names); },
      startsEarly);
}
int runPrologues(DType dtype, int rounds, bool printsEveryTile) {
  return runFused(dtype, rounds, printsEveryTile, [&](Bench &bench) { bench.prologues(dtype); });
}
int runStrides(DType dtype, int rounds, bool printsEveryTile) {
  return runFused(dtype, rounds, printsEveryTile, [&](Bench &bench) { bench.strides(dtype); });
}

int run(DType dtype, int rounds, bool startsEarly, bool printsEveryTile,
        const std::vector<std::string> &names) {
  std::vector<Problem> problems;
  for (const Shape &shape : shapes) {
    const std::string name = fmt::format("{} {}", shape.group, shape.name());
    const auto isAsked = [&](const std::string &part) {
      return name.find(part) != std::string::npos;
    };
    if (names.empty() || std::ranges::any_of(names, isAsked))
      problems.push_back(problemOf(shape, dtype));
  }
  if (problems.empty()) throw Error::badInput("no shape is named like that");
  buildAll(problems);
  Bench bench(rounds, startsEarly, printsEveryTile);
  fmt::print(
      "{}, {}\n{:<9}{:<28}{:>17} |{:>14} | ratio | TFLOP/s ours / cuBLASLt's best, by regime\n",
      bench.title(), nameOf(dtype), "group", "m x n x k (batch) A B", "ours, TFLOP/s", "cuBLASLt");
  std::map<std::string, std::vector<Outcome>> groups;
  size_t wrong = 0;
  for (const Problem &problem : problems)
    groups[problem.shape.group].push_back(bench.run(problem, wrong));
  for (const auto &[group, outcomes] : groups) {
    const auto mean = [&](double Outcome::*ratio) {
      double sum = 0;
      for (const Outcome &outcome : outcomes) sum += std::log(outcome.*ratio);
      return std::exp(sum / double(outcomes.size()));
    };
    const auto better = [](const Outcome &one) {
      return std::max({one.ratio, one.burstRatio, one.sustainedRatio});
    };  // either regime counts
    const Outcome &least = *std::ranges::min_element(outcomes, {}, better);
    const auto [meanLimit, leastLimit] = limitsOf(group);
    const double means[] = {mean(&Outcome::ratio), mean(&Outcome::burstRatio),
                            mean(&Outcome::sustainedRatio)};
    fmt::print(
        "{:<9} geometric mean {:.3f}, burst {:.3f}, sustained {:.3f}; least {} {:.3f} {:.3f} "
        "{:.3f}",
        group, means[0], means[1], means[2], least.name, least.ratio, least.burstRatio,
        least.sustainedRatio);
    const bool isWithin =
        *std::ranges::max_element(means) >= meanLimit && better(least) >= leastLimit;
    if (meanLimit > 0)
      fmt::print(" (limits {:.2f}, {:.2f}: {})", meanLimit, leastLimit,
                 isWithin ? "within both" : "beyond");
    fmt::print("\n");
  }
  fmt::print("{} results of ours are wrong\n", wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace weft::bench

int main(int argumentCount, char **arguments) {
  if (const std::optional<int> code = weft::runtime::serveAsBuildWorker(argumentCount, arguments))
    return *code;
  CLI::App app("Contractions against every candidate of cuBLASLt.", "weft-contraction-bench");
  std::string dtype = "f16";
  int rounds = 9;
  std::vector<std::string> names;
  app.add_option(
      "shape", names,
      "shapes whose group or name contains one of these (\"4096x3072\", \"small\"), with "
      "--epilogues or --decode kernels (\"gelu_dx 4096x1024\"); all if there is none");
  app.add_option("--dtype", dtype, "f16, bf16")->check(CLI::IsMember({"f16", "bf16"}));
  app.add_option("--rounds", rounds, "interleaved rounds; the median counts");
  bool epilogues = false;
  app.add_flag(
      "--epilogues", epilogues,
      "what epilogues cost, and cuBLASLt with a loop kernel behind it, instead of plain products");
  bool decode = false;
  app.add_flag("--decode", decode,
               "products of few rows with what follows them, fused and by two kernels, instead of "
               "plain products");
  bool warpsEpilogues = false;
  app.add_flag("--warps-epilogues", warpsEpilogues,
               "the same of mma.sync, which run from sm_80 on");
  bool strides = false;
  app.add_flag("--strides", strides,
               "products with several strides along a group of axes, and transposes before those "
               "of one, instead of plain products");
  bool prologues = false;
  app.add_flag("--prologues", prologues,
               "operands that are transformed on load, and a loop kernel of that before the GEMM, "
               "instead of plain products");
  bool printsEveryTile = false;
  app.add_flag("--each", printsEveryTile, "every tile of ours, not the fastest alone");
  bool isInTurn = false;
  app.add_flag("--in-turn", isInTurn,
               "no kernel starts before the one before it has ended, as some of ours do");
  try {
    app.parse(argumentCount, arguments);
    if (epilogues || warpsEpilogues)
      return weft::bench::runEpilogues(*weft::parseDType(dtype), rounds, printsEveryTile, names,
                                       warpsEpilogues);
    if (decode)
      return weft::bench::runDecode(*weft::parseDType(dtype), rounds, !isInTurn, printsEveryTile,
                                    names);
    if (strides) return weft::bench::runStrides(*weft::parseDType(dtype), rounds, printsEveryTile);
    if (prologues)
      return weft::bench::runPrologues(*weft::parseDType(dtype), rounds, printsEveryTile);
    return weft::bench::run(*weft::parseDType(dtype), rounds, !isInTurn, printsEveryTile, names);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : int(weft::ErrorKind::badInput);
  } catch (const weft::Error &error) {
    std::fflush(stdout);
    fmt::print(stderr, "weft-contraction-bench: {}\n", error.what());
    return int(error.kind);
  }
}
