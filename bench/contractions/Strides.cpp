// One GEMM at a time: its kernels under row-major layouts, those of the nearest layouts of one
// stride, and transposes between both.
#include "bench/contractions/Strides.h"

#include "bench/contractions/TimedKernels.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/library/LibraryKnobs.h"
#include "kernel/Error.h"
#include "passes/configure/Family.h"
#include "tests/unit/samples/SampleStrides.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace weft::bench {

using namespace runtime;

namespace {

struct Problem {
  samples::StridedGemmCase gemm;
  Kernel kernel;
  std::vector<TimedKernel> strided = {}, merged = {};
  std::vector<std::vector<TimedKernel>> transposes =
      {};  ///< of each tensor that has several strides

  template <typename Visit>
  void forEachContender(Visit &&visit) {
    for (TimedKernel &one : strided) visit(one);
    for (TimedKernel &one : merged) visit(one);
    for (std::vector<TimedKernel> &side : transposes)
      for (TimedKernel &one : side) visit(one);
  }
};

/// The best by the model, of which there is one at least.
std::vector<TimedKernel> best(const Kernel &kernel, const std::vector<Configuration> &all,
                              size_t most) {
  std::vector<TimedKernel> contenders = contendersOf(kernel, all, most);
  if (contenders.empty()) throw Error::checkFailed("{}: no configuration of ours", kernel.name);
  return contenders;
}

/// The layouts of one stride that differ from row-major ones in the fewest tensors.
LayoutTuple nearestMerged(const ConfigurationSpace &space) {
  const auto differing = [](const LayoutTuple &tuple) {
    return std::ranges::count_if(
        tuple, [](const Layout &layout) { return layout != rowMajor(layout.order.size()); });
  };
  return *std::ranges::min_element(space.tuples, {}, differing);
}

/// From a tensor's row-major layout to another one, or back for a result.
std::vector<TimedKernel> transposesOf(const Kernel &kernel, size_t operand, const Layout &to) {
  constexpr size_t most = 6;
  const Value &value = kernel.values[size_t(operandValues(kernel)[operand])];
  samples::KernelBuilder builder("transpose", [&] {
    std::map<char, int64_t> extents;
    for (const AxisId axis : value.axes)
      extents[kernel.axes[size_t(axis)].name[0]] = kernel.axes[size_t(axis)].extent;
    return extents;
  }());
  std::string letters;
  for (const AxisId axis : value.axes) letters += kernel.axes[size_t(axis)].name;
  const int x = builder.input(value.name, letters, value.dtype);
  const Kernel transpose = builder.build({builder.op(
      "identity", OperatorClass::movement, {x}, value.name + "_moved", letters, "", value.dtype)});
  const bool isResult = operand >= kernel.inputs.size();
  const Layout own = rowMajor(value.axes.size());
  std::vector<Configuration> all;
  forEachConfiguration(transpose, findDevice("h200"),
                       {.inputs = {isResult ? to : own}, .outputs = {isResult ? own : to}},
                       [&](const Configuration &one) {
                         if (one.knobs.family().hasText()) all.push_back(one);
                         return true;
                       });
  return best(transpose, all, most);
}

Problem problemOf(const samples::StridedGemmCase &gemm, DType dtype) {
  constexpr size_t mostTiles = 12;
  const std::map<char, int64_t> layer{{'b', 8},   {'h', 16}, {'i', 1024}, {'j', 512},
                                      {'k', 512}, {'p', 64}, {'w', 2}};
  Problem problem{.gemm = gemm, .kernel = samples::stridedKernel(gemm, layer, dtype)};
  const Kernel &kernel = problem.kernel;
  for (const ConfigurationSpace &space : configurationSpaces(kernel, findDevice("h200"))) {
    if (space.family != &sm90GemmFamily) continue;
    const LayoutTuple merged = nearestMerged(space);
    std::vector<Configuration> own, others;
    for (const Knobs &knobs : space.knobs) {
      const auto &tile = knobs.get<Sm90GemmKnobs>();
      if (isUseful(kernel, merged, knobs)) others.push_back(toConfiguration(kernel, merged, knobs));
      if (tile.schedule != Sm90Schedule::singleConsumer)
        own.push_back(samples::stridedConfiguration(kernel, knobs));
    }
    problem.strided = best(kernel, own, mostTiles),
    problem.merged = best(kernel, others, mostTiles);
    for (size_t operand = 0; operand < merged.size(); ++operand)
      if (merged[operand] != rowMajor(merged[operand].order.size()))
        problem.transposes.push_back(transposesOf(kernel, operand, merged[operand]));
  }
  return problem;
}

void buildAll(std::vector<Problem> &all) {
  std::vector<TimedKernel *> contenders;
  for (Problem &problem : all)
    problem.forEachContender([&](TimedKernel &one) { contenders.push_back(&one); });
  build(contenders);
}

/// Time of the transposes and the GEMM of one stride over that of several.
double measure(Problem &problem, int rounds, bool printsEveryTile, const CublasLt &library,
               const cuda::Stream &stream) {
  const Kernel &kernel = problem.kernel;
  Tensors tensors(kernel);
  std::vector<Row> rows;
  problem.forEachContender([&](TimedKernel &one) {
    tensors.add(one.kernel);
    rows.push_back({&one.seconds, tensors.enqueueOf(one)});
  });
  const cuda::Buffer workspace(CublasLt::standardWorkspace);
  const auto value = [&](int number) { return &kernel.values[size_t(number)]; };
  Configuration merged = problem.merged[0].configuration;
  merged.knobs = LibraryKnobs{};
  LibraryRows theirs(libraryGemm(kernel, merged), library, tensors,
                     {value(kernel.inputs[0]), value(kernel.inputs[1]), value(kernel.outputs[0]),
                      nullptr, nullptr, nullptr},
                     workspace.address());
  rows.insert(rows.end(), theirs.rows.begin(), theirs.rows.end());
  interleave(rows, rounds, stream);
  const TimedKernel &own = fastest(problem.strided), &one = fastest(problem.merged);
  double moved = 0;
  for (const std::vector<TimedKernel> &side : problem.transposes) moved += fastest(side).seconds;
  const double rival = moved + std::min(one.seconds, theirs.fastest());
  fmt::print(
      "{:<6}{:<6}->{:<6}{:>8.2f} us | {:>7.2f} {:>+6.1f}% | {:>7.2f} | {} {:>7.2f} | {:.3f} | {}; "
      "{}\n",
      problem.gemm.a, problem.gemm.b, problem.gemm.c, 1e6 * own.seconds, 1e6 * one.seconds,
      100 * (own.seconds / one.seconds - 1), 1e6 * theirs.fastest(), problem.transposes.size(),
      1e6 * moved, rival / own.seconds, describe(kernel, own.configuration.knobs),
      problem.gemm.what);
  if (printsEveryTile)
    for (const TimedKernel &tile : problem.strided)
      fmt::print("    {:>8.2f} us | {}\n", 1e6 * tile.seconds,
                 describe(kernel, tile.configuration.knobs));
  std::fflush(stdout);
  return rival / own.seconds;
}

}  // namespace

void benchStrides(DType dtype, int rounds, bool printsEveryTile, const CublasLt &library,
                  const cuda::Stream &stream) {
  std::vector<Problem> all;
  for (const samples::StridedGemmCase &gemm : samples::stridedGemmCases)
    all.push_back(problemOf(gemm, dtype));
  buildAll(all);
  fmt::print("{:<20}{:>11} | {:>15} | {:>8}| {:>9} | ratio\n", "gemm", "strides", "one stride",
             "cuBLASLt", "transposes");
  double sum = 0;
  for (Problem &problem : all)
    sum += std::log(measure(problem, rounds, printsEveryTile, library, stream));
  fmt::print("transposes and a GEMM of one stride take {:.3f} of the time (geometric mean)\n",
             std::exp(sum / double(all.size())));
}

}  // namespace weft::bench
