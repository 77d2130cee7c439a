// Kernels with prologues, their plain products, and loop kernels of what makes the operand, as
// texts; then all of them on one set of tensors.
#include "bench/contractions/Prologues.h"

#include "bench/contractions/TimedKernels.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/library/LibraryKnobs.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "kernel/ContractionPrologue.h"
#include "kernel/Error.h"
#include "tests/unit/samples/SamplePrologues.h"

#include <fmt/format.h>

#include <cmath>

namespace weft::bench {

using namespace runtime;

namespace {

struct Problem {
  Kernel kernel;
  std::vector<TimedKernel> fused, plain, made;  ///< plain: the GEMM of the operand as it would
                                                ///< be stored; made: the loop kernels that store it
};

Problem problemOf(const Kernel &kernel) {
  constexpr size_t mostTiles = 12, mostLoops = 8;
  const ContractionPrologue prologue = contractionPrologue(kernel).value().value();
  const Kernel gemm = partOf(kernel, prologue.contraction, prologue.contraction + 1,
                             kernel.body[prologue.contraction].results);
  Problem problem{.kernel = kernel,
                  .fused = contendersOf(kernel, sm90GemmFamily, mostTiles),
                  .plain = contendersOf(gemm, sm90GemmFamily, mostTiles),
                  .made = contendersOf(partOf(kernel, 0, prologue.contraction, {prologue.made}),
                                       loopFamily, mostLoops)};
  if (problem.fused.empty() || problem.plain.empty() || problem.made.empty())
    throw Error::checkFailed("{}: no configuration of ours", kernel.name);
  return problem;
}

std::vector<Problem> problems(DType dtype) {
  using Extents = samples::PrologueExtents;
  const Extents attentions[] = {{.b = 8, .h = 16, .j = 512, .k = 512, .p = 64},
                                {.b = 2, .h = 16, .j = 2048, .k = 2048, .p = 64},
                                {.b = 4, .h = 16, .j = 1024, .k = 1024, .p = 128}};
  const Extents projections[] = {{.b = 8, .j = 512, .i = 1024, .u = 1024},
                                 {.b = 8, .j = 512, .i = 1024, .u = 3072},
                                 {.b = 8, .j = 512, .i = 4096, .u = 1024},
                                 {.b = 8, .j = 512, .i = 1024, .u = 64}};
  std::vector<Problem> all;
  for (const Extents &extents : attentions) {
    all.push_back(problemOf(samples::scaledContext(extents, dtype)));
    all.push_back(problemOf(samples::recomposedContext(extents, dtype)));
    all.push_back(problemOf(
        samples::recomposedRows(extents, dtype, 64, false)));  // whose sums of products are scaled
  }
  for (const Extents &extents : projections) {
    all.push_back(problemOf(samples::normalizedProjection(extents, dtype)));
    all.push_back(problemOf(samples::dividedProjection(extents, dtype)));
    all.push_back(problemOf(samples::castProjection(extents, dtype, DType::f8e4m3)));
    all.push_back(problemOf(samples::castProjection(extents, dtype, DType::f32)));
  }
  return all;
}

/// The loop kernel and the faster of both products, against ours.
double measure(Problem &problem, int rounds, bool printsEveryTile, const CublasLt &library,
               const cuda::Stream &stream) {
  Tensors tensors(problem.kernel);
  std::vector<Row> rows;
  for (std::vector<TimedKernel> *side : {&problem.fused, &problem.plain, &problem.made})
    for (TimedKernel &one : *side) rows.push_back({&one.seconds, tensors.enqueueOf(one)});
  const Kernel &gemm = problem.plain[0].kernel;
  const cuda::Buffer workspace(CublasLt::standardWorkspace);
  const auto value = [&](int number) { return &gemm.values[size_t(number)]; };
  const GemmInputs inputs = gemmInputs(gemm);
  Configuration configuration = problem.plain[0].configuration;
  configuration.knobs = LibraryKnobs{};
  const std::array<const Value *, 6> operands = {
      value(gemm.inputs[inputs.a]), value(gemm.inputs[inputs.b]), value(gemm.outputs[0])};
  LibraryRows theirs(libraryGemm(gemm, configuration), library, tensors, operands,
                     workspace.address());
  rows.insert(rows.end(), theirs.rows.begin(), theirs.rows.end());
  interleave(rows, rounds, stream);
  const TimedKernel &best = fastest(problem.fused), &plain = fastest(problem.plain),
                    &made = fastest(problem.made);
  const StridedBatchedGemm shape = stridedBatchedGemm(gemm, plain.configuration).value();
  const double alone = std::min(plain.seconds, theirs.fastest()),
               ratio = (made.seconds + alone) / best.seconds;
  fmt::print(
      "{:<24}{:>4} x{:>6}x{:<5}x{:<5}{:>8.2f} us | {:>7.2f} {:>+6.1f}% | {:>7.2f} | {:>7.2f} | "
      "{:.3f} | {}\n",
      problem.kernel.name, shape.batch, shape.m, shape.n, shape.k, 1e6 * best.seconds,
      1e6 * plain.seconds, 100 * (best.seconds / plain.seconds - 1), 1e6 * theirs.fastest(),
      1e6 * made.seconds, ratio, describe(best.kernel, best.configuration.knobs));
  if (printsEveryTile)
    for (const std::vector<TimedKernel> *side : {&problem.fused, &problem.plain})
      for (const TimedKernel &one : *side)
        fmt::print("    {:>8.2f} us | {} {}\n", 1e6 * one.seconds,
                   side == &problem.fused ? "made " : "plain",
                   describe(one.kernel, one.configuration.knobs));
  std::fflush(stdout);
  return ratio;
}

}  // namespace

void benchPrologues(DType dtype, int rounds, bool printsEveryTile, const CublasLt &library,
                    const cuda::Stream &stream) {
  std::vector<Problem> all = problems(dtype);
  std::vector<TimedKernel *> contenders;
  for (Problem &problem : all)
    for (std::vector<TimedKernel> *side : {&problem.fused, &problem.plain, &problem.made})
      for (TimedKernel &one : *side) contenders.push_back(&one);
  build(contenders);
  fmt::print("{:<24}{:>24}{:>11} | {:>15} | {:>7} | {:>7} | ratio\n", "operand transformed on load",
             "batch x m x n x k", "fused", "ours plain", "library", "+ loop");
  double sum = 0;
  for (Problem &problem : all)
    sum += std::log(measure(problem, rounds, printsEveryTile, library, stream));
  fmt::print("{:.3f} of a loop kernel and the faster gemm (geometric mean)\n",
             std::exp(sum / double(all.size())));
}

}  // namespace weft::bench
