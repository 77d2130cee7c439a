// A kernel's outputs at chosen points, in fp64 on the host, from inputs that a hash of the address gives. Nothing of code
// generation is used: ops are evaluated point by point as SPEC.md defines them.
#pragma once

#include "bench/kernels/Cases.h"

#include <functional>

namespace weft::bench {

constexpr uint64_t dropoutSeed = 7, dropoutStep = 3;

/// The element of tensor `seed` at a position in memory (in elements): a multiple of 1/32 in [-4, 4), exact in every
/// floating type; for integers a value in [0, limit).
double inputElement(uint32_t seed, uint64_t position, DType type, int64_t limit);

/// One element of an output.
struct Point {
  int output = 0;                    ///< position in Kernel::outputs
  std::vector<int64_t> coordinates = {};  ///< one per dimension of the value
  int64_t position = 0;              ///< in memory, in elements
};

class Reference {
public:
  Reference(const Case &subject, const Configuration &configuration);
  double at(const Point &point);
  /// Whole rows where an op reduces, scattered points elsewhere; the same every time.
  std::vector<Point> samplePoints(size_t count) const;

private:
  using Coordinates = std::vector<int64_t>;  ///< by kernel axis
  double evaluate(int value, const Coordinates &at);
  double evaluate(const BodyOp &op, int result, const Coordinates &at);
  double elementwise(const BodyOp &op, const Coordinates &at);
  double mask(const BodyOp &op, const Coordinates &at);
  double dropout(const BodyOp &op, const Coordinates &at);
  double gather(const BodyOp &op, const Coordinates &at);
  /// fold(accumulator, element) over the reduced axes of an op; kept, since every element of a row asks for it.
  double overRow(const BodyOp &op, int statistic, double start, const Coordinates &at,
                 const std::function<double(double, const Coordinates &)> &fold);
  int64_t rowLength(const BodyOp &op) const;

  const Kernel &kernel;
  const std::map<int, int64_t> &limits;
  std::vector<std::vector<int64_t>> strides;  ///< per input, by dimension
  std::vector<std::vector<int64_t>> outputStrides;
  std::vector<int> definedBy;
  std::map<std::pair<int, Coordinates>, double> rows;  ///< (op and statistic, coordinates without the row) -> value
};

}  // namespace weft::bench
