// A plan on small extents, built, run whole on a GPU and compared with the interpreter on its graph
// (design rule 6).
#pragma once

#include "runtime/artifact/Artifact.h"
#include "runtime/cuda/Cuda.h"
#include "tools/driver/Emission.h"
#include "tools/driver/ScaledPlan.h"

#include <functional>
#include <string>
#include <vector>

namespace weft::driver {

/// One result of the whole plan. The bound is four times the largest error that rounding every
/// value to its stored type makes in the interpreter, measured on the same inputs: a plan rounds at
/// most as often. Where a result is outside it, inputs a unit in the last place apart say anew how
/// large that error is, and the largest counts.
struct ResultCheck {
  std::string name;
  int64_t elements = 0;
  double largest = 0;  ///< magnitude in fp64
  double worst = 0, bound = 0;
  bool passed = false;
  /// Why it is neither passed nor failed: the interpreter, which rounds as stored types do, leaves
  /// the range of one of them, too, where fp64 stays finite.
  std::string unchecked = {};
  bool failed() const { return !passed && unchecked.empty(); }
};

/// What runScaled() would say of a plan that rounds as the interpreter does, in the graph's order
/// of results, or whose elements `resultOf` makes of exact and rounded ones; needs no GPU.
std::vector<ResultCheck> checkReference(
    const ScaledGraph &graph, uint64_t seed,
    const std::function<double(double exact, double rounded)> &resultOf = {});

/// The plan with its texts and cubins, ready to run anywhere.
struct BuiltPlan {
  runtime::Artifact artifact;
  EmittedPlan emitted;
};
/// Throws Error(unsupported) where there is no NVRTC, Error(checkFailed) naming the kernel that
/// does not build.
BuiltPlan buildScaled(ScaledPlan &scaled, const std::string &architecture);

/// Runs the plan twice, kernel by kernel and as a graph, in which kernels run at once where the
/// plan says so, and compares every result after both. Throws Error(checkFailed) where a kernel
/// fails or a result is missing. `warnings`: what ran is other than the plan says.
std::vector<ResultCheck> runScaled(const ScaledPlan &scaled, const BuiltPlan &built,
                                   const runtime::cuda::Context &context, uint64_t seed,
                                   std::vector<std::string> &warnings);

}  // namespace weft::driver
