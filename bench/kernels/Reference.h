// A kernel's outputs at chosen points, in fp64 on the host (kernel/reference/PointEvaluator.h),
// from inputs that a hash of the address gives.
#pragma once

#include "bench/kernels/Cases.h"
#include "kernel/reference/PointEvaluator.h"

namespace weft::bench {

constexpr uint64_t dropoutSeed = 7, dropoutStep = 3;

/// The element of tensor `seed` at a position in memory (in elements): a multiple of 1/32 in [-4,
/// 4), exact in every floating type; for integers a value in [0, limit).
double inputElement(uint32_t seed, uint64_t position, DType type, int64_t limit);

/// One element of an output.
struct Point {
  int output = 0;                         ///< position in Kernel::outputs
  std::vector<int64_t> coordinates = {};  ///< one per dimension of the value
  int64_t position = 0;                   ///< in memory, in elements
};

class Reference {
public:
  Reference(const Case &subject, const Configuration &configuration);
  double at(const Point &point) {
    return evaluator.output(static_cast<size_t>(point.output), point.coordinates).value;
  }
  /// Whole rows where an op reduces, scattered points elsewhere; the same every time.
  std::vector<Point> samplePoints(size_t count) const;

private:
  const Kernel &kernel;
  std::vector<std::vector<int64_t>> outputStrides;
  reference::PointEvaluator evaluator;
};

}  // namespace weft::bench
