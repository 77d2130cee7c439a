// See Decode.h.
#include "bench/contractions/Decode.h"

#include "bench/contractions/TimedKernels.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "kernel/Device.h"
#include "kernel/Error.h"
#include "passes/configure/Families.h"
#include "tests/unit/samples/SampleContractions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace weft::bench {

using namespace runtime;

namespace {

struct Problem {
  Kernel kernel, gemm;
  int64_t m = 0, n = 0, k = 0;
  std::vector<TimedKernel> singleConsumer = {}, wide = {}, plain = {}, rest = {};

  std::string name() const { return fmt::format("{} {}x{}x{}", kernel.name, m, n, k); }
  std::vector<std::vector<TimedKernel> *> sides() {
    return {&singleConsumer, &wide, &plain, &rest};
  }
  /// Of everything read and written once.
  double floorSeconds() const {
    return double(kernel.necessaryBytes()) / findDevice("h200").copyBandwidth;
  }
};

/// All tensors row-major but the weights, which lie along k.
Layout layoutOf(const Value &value) {
  Layout layout = rowMajor(value.axes.size());
  if (value.name == "w") std::swap(layout.order[0], layout.order[1]);
  return layout;
}
std::vector<Configuration> configurationsOf(const Kernel &kernel) {
  LayoutConstraints constraints;
  for (const ValueId value : kernel.inputs)
    constraints.inputs.push_back(layoutOf(kernel.values[size_t(value)]));
  for (const ValueId value : kernel.outputs)
    constraints.outputs.push_back(layoutOf(kernel.values[size_t(value)]));
  std::vector<Configuration> found;
  forEachConfiguration(kernel, findDevice("h200"), constraints, [&](const Configuration &one) {
    if (one.knobs.is<Sm90GemmKnobs>()) found.push_back(one);
    return true;
  });
  return found;
}

Problem problemOf(const Kernel &kernel, int64_t m, int64_t n, int64_t k) {
  constexpr size_t mostTiles = 8, mostLoops = 6;
  Problem problem{.kernel = kernel,
                  .gemm = partOf(kernel, 0, 1, {kernel.body[0].results[0]}),
                  .m = m,
                  .n = n,
                  .k = k};
  std::vector<Configuration> singleConsumer, wide;
  for (const Configuration &one : configurationsOf(kernel))
    (one.knobs.get<Sm90GemmKnobs>().schedule == Sm90Schedule::singleConsumer ? singleConsumer
                                                                             : wide)
        .push_back(one);
  problem.singleConsumer = contendersOf(kernel, singleConsumer, mostTiles);
  problem.wide = contendersOf(kernel, wide, mostTiles);
  problem.plain = contendersOf(problem.gemm, configurationsOf(problem.gemm), mostTiles);
  problem.rest =
      contendersOf(partOf(kernel, 1, kernel.body.size(), kernel.outputs), loopFamily, mostLoops);
  for (const std::vector<TimedKernel> *side : problem.sides())
    if (side->empty())
      throw Error::checkFailed("{}: no configuration of ours on one side", problem.name());
  return problem;
}

std::vector<Problem> problems(DType dtype, const std::vector<std::string> &names) {
  std::vector<Problem> all;
  for (const int64_t m : {1, 8, 32})
    for (const auto &[n, k] :
         {std::pair<int64_t, int64_t>{4096, 1024}, {1024, 4096}, {4096, 4096}, {14336, 4096}}) {
      const samples::ContractionExtents extents{.b = 1, .j = m, .i = k, .u = n};
      for (const Kernel &kernel :
           {samples::gemmBias(extents, dtype), samples::gemmBiasGelu(extents, dtype, false),
            samples::gemmBiasResidual(extents, dtype), samples::gemmGated(extents, dtype)}) {
        const std::string name = fmt::format("{} {}x{}x{}", kernel.name, m, n, k);
        if (names.empty() || std::ranges::any_of(names, [&](const std::string &part) {
              return name.find(part) != std::string::npos;
            }))
          all.push_back(problemOf(kernel, m, n, k));
      }
    }
  if (all.empty()) throw Error::badInput("no fused contraction is named like that");
  return all;
}

/// So that whatever a call reads was last touched by one too long ago to be in L2.
int setsOf(const Kernel &kernel) {
  constexpr double leastBytes = 256e6;
  return int(std::ceil(
      std::max(double(Tensors::usualSets), leastBytes / double(kernel.necessaryBytes()))));
}

/// The time of the fastest rival over ours.
double measure(Problem &problem, int rounds, bool startsEarly, bool printsEveryTile,
               const CublasLt &library, const cuda::Stream &stream) {
  Tensors tensors(problem.kernel, setsOf(problem.kernel));
  std::vector<Row> rows;
  for (std::vector<TimedKernel> *side : problem.sides())
    for (TimedKernel &one : *side)
      rows.push_back({&one.seconds, tensors.enqueueOf(one, startsEarly)});
  const cuda::Buffer workspace(CublasLt::standardWorkspace);
  const auto value = [&](int number) { return &problem.gemm.values[size_t(number)]; };
  LibraryRows theirs(libraryGemm(problem.gemm, problem.plain[0].configuration), library, tensors,
                     {value(problem.gemm.inputs[0]), value(problem.gemm.inputs[1]),
                      value(problem.gemm.outputs[0]), nullptr, nullptr, nullptr},
                     workspace.address());
  const std::unique_ptr<LibraryRows> own =
      libraryEpilogueRows(problem.kernel, problem.singleConsumer[0].configuration, library, tensors,
                          workspace.address());
  rows.insert(rows.end(), theirs.rows.begin(), theirs.rows.end());
  if (own) rows.insert(rows.end(), own->rows.begin(), own->rows.end());
  interleave(rows, rounds, stream, tensors.sets());
  const TimedKernel &best = fastest(problem.singleConsumer);
  const double rest = fastest(problem.rest).seconds, plain = fastest(problem.plain).seconds,
               fused = own ? own->fastest() : INFINITY;
  const double ratio = std::min(theirs.fastest() + rest, fused) / best.seconds;
  fmt::print(
      "{:<36}{:>7.2f} us | {:>7.2f} | {:>6.2f} + {:>5.2f} | {:>6.2f} + {:>5.2f} | {:>7} | {:>6.2f} "
      "{:>4.0f}% | {:.3f} | {}\n",
      problem.name(), 1e6 * best.seconds, 1e6 * fastest(problem.wide).seconds, 1e6 * plain,
      1e6 * rest, 1e6 * theirs.fastest(), 1e6 * rest,
      std::isfinite(fused) ? fmt::format("{:.2f}", 1e6 * fused) : "-", 1e6 * problem.floorSeconds(),
      100 * problem.floorSeconds() / best.seconds, ratio,
      describe(best.kernel, best.configuration.knobs));
  if (printsEveryTile)
    for (const std::vector<TimedKernel> *side :
         {&problem.singleConsumer, &problem.wide, &problem.plain})
      for (const TimedKernel &one : *side)
        fmt::print("    {:>8.2f} us | {} {}\n", 1e6 * one.seconds,
                   side == &problem.plain ? "plain" : "fused",
                   describe(one.kernel, one.configuration.knobs));
  std::fflush(stdout);
  return ratio;
}

}  // namespace

void benchDecode(DType dtype, int rounds, bool startsEarly, bool printsEveryTile,
                 const std::vector<std::string> &names, const CublasLt &library,
                 const cuda::Stream &stream) {
  std::vector<Problem> all = problems(dtype, names);
  std::vector<TimedKernel *> kernels;
  for (Problem &problem : all)
    for (std::vector<TimedKernel> *side : problem.sides())
      for (TimedKernel &one : *side) kernels.push_back(&one);
  build(kernels);
  fmt::print("{:<36}{:>10} | {:>7} | {:>14} | {:>14} | {:>7} | {:>12} | ratio\n", "m x n x k",
             "1 consumer", "wide", "plain + loop", "cuBLASLt + loop", "its own", "floor");
  std::map<int64_t, std::vector<double>> byRows;
  for (Problem &problem : all)
    byRows[problem.m].push_back(
        measure(problem, rounds, startsEarly, printsEveryTile, library, stream));
  for (const auto &[rows, ratios] : byRows) {
    double sum = 0;
    for (const double ratio : ratios) sum += std::log(ratio);
    fmt::print("m = {}: {:.3f} of the faster rival (geometric mean), {:.3f} at least\n", rows,
               std::exp(sum / double(ratios.size())), *std::ranges::min_element(ratios));
  }
}

}  // namespace weft::bench
