// What a kernel wrote against fp64, element by element or on a sample: corners, edges, runs of
// neighbours and whole rows spread over each output. Needs no GPU: it compares images.
#pragma once

#include "kernel/reference/PointEvaluator.h"
#include "runtime/verify/TensorImage.h"

#include <optional>
#include <string>
#include <vector>

namespace weft::runtime {

struct CheckOptions {
  int64_t points = 4096;  ///< of each output, at most; all where it has no more elements
  uint64_t seed = 1;      ///< of the sample
  reference::DropoutSource dropout{};
  int threads = 1;
};

struct Mismatch {
  size_t output = 0;
  std::vector<int64_t> coordinates;
  double got = 0, want = 0, bound = 0;
};

struct CheckResult {
  int64_t points = 0, failing = 0;
  double worstError = 0;          ///< largest |got - want| of finite elements
  double worstRatio = 0;          ///< largest error in units of its bound; above 1 fails
  std::optional<Mismatch> worst;  ///< the first failing element
  std::string problem;            ///< writes beside elements, an input changed
  bool passed() const { return failing == 0 && problem.empty(); }
};

/// The elements of one output to look at, deterministic. Their number is bounded by options.points,
/// and by the work of evaluating them where each needs a long separate sum.
std::vector<std::vector<int64_t>> samplePoints(const Kernel &kernel, size_t output,
                                               const CheckOptions &options);

/// `outputs`: as downloaded after the kernel ran on `inputs`.
CheckResult checkOutputs(const Kernel &kernel, const std::vector<TensorImage> &inputs,
                         const std::vector<TensorImage> &outputs, const CheckOptions &options);

/// "output 0 at [1, 4]: 3.25 instead of 3 (bound 0.001); 12 of 4096 points fail".
std::string describe(const CheckResult &result);

}  // namespace weft::runtime
