// Fused kernels, their plain products and what is left of them without the GEMM, as texts; then
// all of them on one set of tensors by name.
#include "bench/contractions/Epilogues.h"

#include "bench/contractions/TimedKernels.h"
#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "kernel/ContractionRegion.h"
#include "kernel/Error.h"
#include "tests/unit/samples/SampleContractions.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

namespace weft::bench {

using namespace runtime;

namespace {

struct Problem {
  Kernel kernel;
  int64_t m = 0, n = 0, k = 0;
  std::vector<TimedKernel> fused, plain,
      rest;  ///< plain: the GEMM under the knobs of the fused kernel at the same place
  std::vector<TimedKernel>
      unsummed = {},
      sums = {};  ///< of a kernel with sums: itself without them, and a loop kernel of them alone
};

Problem problemOf(const Kernel &kernel, const samples::ContractionExtents &extents,
                  const Family &family) {
  constexpr size_t mostTiles = 12, mostLoops = 6;
  Problem problem{.kernel = kernel,
                  .m = extents.b * extents.j,
                  .n = extents.u,
                  .k = extents.i,
                  .fused = {},
                  .plain = {},
                  .rest = {}};
  const Kernel gemm = partOf(kernel, 0, 1, {kernel.body[0].results[0]});
  problem.fused = contendersOf(kernel, family, mostTiles);
  for (const TimedKernel &one : problem.fused) {
    TimedKernel plain{.kernel = gemm, .configuration = {.knobs = one.configuration.knobs}};
    plain.configuration.inputs.assign(gemm.inputs.size(), rowMajor(0));
    for (size_t i = 0; i < gemm.inputs.size(); ++i)
      plain.configuration.inputs[i] = rowMajor(gemm.values[size_t(gemm.inputs[i])].axes.size());
    plain.configuration.outputs = {rowMajor(gemm.values[size_t(gemm.outputs[0])].axes.size())};
    plain.emitted = codegen::emit(gemm, plain.configuration, "sm_90a");
    problem.plain.push_back(std::move(plain));
  }
  problem.rest =
      contendersOf(partOf(kernel, 1, kernel.body.size(), kernel.outputs), loopFamily, mostLoops);
  if (const ContractionRegion region = contractionRegion(kernel).value();
      !region.reductions.empty()) {
    std::vector<ValueId> whole, sums;
    for (size_t output = 0; output < kernel.outputs.size(); ++output)
      (region.isSum(output) ? sums : whole).push_back(kernel.outputs[output]);
    size_t end = 0;  // behind the ops of what is stored whole
    for (size_t op = 0; op < kernel.body.size(); ++op)
      if (std::ranges::find(whole, kernel.body[op].results[0]) != whole.end()) end = op + 1;
    problem.unsummed = contendersOf(partOf(kernel, 0, end, whole), family, mostTiles);
    problem.sums =
        contendersOf(partOf(kernel, end, kernel.body.size(), sums), loopFamily, mostLoops);
    if (problem.unsummed.empty() || problem.sums.empty())
      throw Error::checkFailed("{}: no configuration of ours without its sums", kernel.name);
  }
  if (problem.fused.empty() || problem.rest.empty())
    throw Error::checkFailed("{}: no configuration of ours", kernel.name);
  return problem;
}

std::vector<Problem> problems(DType dtype, const std::vector<std::string> &names, bool ofWarps) {
  using Extents = samples::ContractionExtents;
  const Extents wide{.b = 8, .j = 512, .i = 1024, .u = 4096},
      narrow{.b = 8, .j = 512, .i = 4096, .u = 1024},
      square{.b = 8, .j = 512, .i = 1024, .u = 1024};
  const Family &family = ofWarps ? sm80GemmFamily : sm90GemmFamily;
  std::vector<Problem> all;
  for (const Extents &extents : {wide, narrow, square}) {
    const auto add = [&](const Kernel &kernel) {
      const std::string name =
          fmt::format("{} {}x{}x{}", kernel.name, extents.b * extents.j, extents.u, extents.i);
      if (names.empty() || std::ranges::any_of(names, [&](const std::string &part) {
            return name.find(part) != std::string::npos;
          }))
        all.push_back(problemOf(kernel, extents, family));
    };
    add(samples::gemmBias(extents, dtype));
    add(samples::gemmBiasGelu(extents, dtype, false));
    add(samples::gemmBiasGelu(extents, dtype, true));
    add(samples::gemmBiasReluDropout(extents, dtype));
    add(samples::gemmBiasDropoutResidual(extents, dtype));
    add(samples::gemmGeluGradient(extents, dtype));
    if (ofWarps) continue;
    add(samples::gemmGeluGradientColumnReduction(extents, dtype));
    add(samples::gemmResidualRowReductions(extents, dtype));
  }
  if (all.empty()) throw Error::badInput("no fused contraction is named like that");
  return all;
}

template <typename Visit>
void forEachContender(Problem &problem, Visit &&visit) {
  for (std::vector<TimedKernel> *side :
       {&problem.fused, &problem.plain, &problem.rest, &problem.unsummed, &problem.sums})
    for (TimedKernel &one : *side) visit(one);
}

void buildAll(std::vector<Problem> &all) {
  std::vector<TimedKernel *> contenders;
  for (Problem &problem : all)
    forEachContender(problem, [&](TimedKernel &one) { contenders.push_back(&one); });
  build(contenders);
}

struct Outcome {
  double cost = 0, ratio = 0;
};

Outcome measure(Problem &problem, int rounds, bool printsEveryTile, const CublasLt &library,
                const cuda::Stream &stream) {
  Tensors tensors(problem.kernel);
  std::vector<Row> rows;
  forEachContender(problem, [&](TimedKernel &one) {
    rows.push_back({&one.seconds, tensors.enqueueOf(one)});
  });
  const Kernel &gemm = problem.plain[0].kernel;
  const cuda::Buffer workspace(CublasLt::standardWorkspace);
  const auto value = [&](int number) { return &gemm.values[size_t(number)]; };
  LibraryRows theirs(libraryGemm(gemm, problem.plain[0].configuration), library, tensors,
                     {value(gemm.inputs[0]), value(gemm.inputs[1]), value(gemm.outputs[0]), nullptr,
                      nullptr, nullptr},
                     workspace.address());
  const std::unique_ptr<LibraryRows> theirsFused = libraryEpilogueRows(
      problem.kernel, problem.fused[0].configuration, library, tensors, workspace.address());
  rows.insert(rows.end(), theirs.rows.begin(), theirs.rows.end());
  if (theirsFused) rows.insert(rows.end(), theirsFused->rows.begin(), theirsFused->rows.end());
  interleave(rows, rounds, stream);
  const TimedKernel &best = fastest(problem.fused), &rest = fastest(problem.rest);
  const auto plainOf = [&](const TimedKernel &one) {
    return problem.plain[size_t(&one - problem.fused.data())].seconds;
  };
  const double same = plainOf(best), sequence = theirs.fastest() + rest.seconds,
               fused = theirsFused ? theirsFused->fastest() : INFINITY;
  const Outcome outcome{.cost = best.seconds / same - 1,
                        .ratio = std::min(sequence, fused) / best.seconds};
  fmt::print(
      "{:<30}{:>6}x{:<5}x{:<5}{:>8.2f} us | {:>7.2f} {:>+6.1f}% | {:>7.2f} | {:>7.2f} + {:>6.2f} | "
      "{:>7} | {:.3f} | {}\n",
      problem.kernel.name, problem.m, problem.n, problem.k, 1e6 * best.seconds, 1e6 * same,
      100 * outcome.cost, 1e6 * fastest(problem.plain).seconds, 1e6 * theirs.fastest(),
      1e6 * rest.seconds, std::isfinite(fused) ? fmt::format("{:.2f}", 1e6 * fused) : "-",
      outcome.ratio, describe(best.kernel, best.configuration.knobs));
  if (!problem.sums.empty()) {
    const double apart = fastest(problem.unsummed).seconds, behind = fastest(problem.sums).seconds;
    fmt::print("    its sums in a kernel behind: {:.2f} + {:.2f} us, {:.3f} of that\n", 1e6 * apart,
               1e6 * behind, (apart + behind) / best.seconds);
  }
  if (printsEveryTile)
    for (const TimedKernel &one : problem.fused)
      fmt::print("    {:>8.2f} us | {:>7.2f} {:>+6.1f}% | {}\n", 1e6 * one.seconds,
                 1e6 * plainOf(one), 100 * (one.seconds / plainOf(one) - 1),
                 describe(one.kernel, one.configuration.knobs));
  std::fflush(stdout);
  return outcome;
}

}  // namespace

void benchEpilogues(DType dtype, int rounds, bool printsEveryTile,
                    const std::vector<std::string> &names, bool ofWarps, const CublasLt &library,
                    const cuda::Stream &stream) {
  std::vector<Problem> all = problems(dtype, names, ofWarps);
  buildAll(all);
  fmt::print("{:<30}{:>18}{:>11} | {:>15} | {:>7} | {:>16} | {:>7} | ratio\n", "fused contraction",
             "m x n x k", "fused", "same tile plain", "plain", "cuBLASLt + loop", "its own");
  std::map<int64_t, std::vector<Outcome>> byDepth;
  for (Problem &problem : all)
    byDepth[problem.k].push_back(measure(problem, rounds, printsEveryTile, library, stream));
  for (const auto &[depth, outcomes] : byDepth) {
    double cost = 0, ratio = 0, most = -INFINITY;
    for (const Outcome &one : outcomes)
      cost += std::log1p(one.cost), ratio += std::log(one.ratio), most = std::max(most, one.cost);
    // What we ask of ourselves: a long k hides what follows it.
    constexpr int64_t longDepth = 3072;
    const double mean = std::expm1(cost / double(outcomes.size())),
                 meanLimit = depth >= longDepth ? 0.04 : 0.09,
                 limit = depth >= longDepth ? 0.04 : 0.12;
    const std::string_view verdict = mean <= meanLimit && most <= limit ? "within both" : "beyond";
    fmt::print(
        "k = {}: cost {:+.1f}% (geometric mean; limit {:.0f}%), {:+.1f}% at most (limit {:.0f}%): "
        "{}; {:.3f} of the faster rival\n",
        depth, 100 * mean, 100 * meanLimit, 100 * most, 100 * limit, verdict,
        std::exp(ratio / double(outcomes.size())));
  }
}

}  // namespace weft::bench
