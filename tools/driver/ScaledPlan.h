// An artifact's model again on small odd extents: the same graph, another plan, run whole on a GPU and compared with
// the interpreter (design rule 6).
#pragma once

#include "runtime/Cuda.h"
#include "tools/driver/Flags.h"

#include <map>
#include <string>
#include <vector>

namespace weft::runtime {
struct Artifact;
}

namespace weft::driver {

/// One result of the whole plan. The bound is four times the largest error that rounding every value to its stored type makes
/// in the interpreter, measured on the same inputs: a plan rounds at most as often.
struct ResultCheck {
  std::string name;
  int64_t elements = 0;
  double worst = 0, bound = 0;
  bool passed = false;
};

struct ScaledCheck {
  std::map<std::string, int64_t> dims;
  size_t kernels = 0;
  std::vector<ResultCheck> results;
};

/// Small extents for the dimensions that the plan was compiled with: odd batch and sequence, heads of 8, equal where equal.
std::map<std::string, int64_t> scaledDims(const std::map<std::string, int64_t> &dims);

/// The artifact's graph is compiled on smaller extents (ScaledGraph.h); where it holds on to them, the preset that it is of, or the graph
/// as it is. Throws Error(unsupported) where none of these can be interpreted in reasonable time, and where there is no NVRTC.
ScaledCheck checkScaled(const runtime::Artifact &artifact, const TargetFlags &target, const runtime::cuda::Context &context, uint64_t seed);

}  // namespace weft::driver
