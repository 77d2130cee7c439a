// Seeded inputs that make sense to the ops that read them: indices and lengths in range, divisors
// away from zero, radicands positive, and whatever these are computed of (kernel/PositiveValues.h);
// logarithms of sums of exponentials near those of random scores; offsets ascending; no page twice.
// All other floats are bell-shaped around zero.
#pragma once

#include "runtime/verify/TensorImage.h"

#include <optional>
#include <vector>

namespace weft::runtime {

/// What the values of one input may be.
struct InputRule {
  enum class Kind : uint8_t {
    real,
    positive,
    integer,
    ascending,  ///< offsets of sequences of at most `high` tokens
    pages,      ///< a table of pages, the last of which is `high`
    bounds,     ///< of the tiles of another input (kernel/TileBounds.h)
    lengths,    ///< of the sequences whose offsets another input has
  };
  Kind kind = Kind::real;
  int64_t low = 0, high = 0;  ///< of integers, both included
  double mean = 0;            ///< of reals
  std::vector<double> added;  ///< to each real: one number an element, or none
  int64_t run = 1;            ///< of integers: so many neighbours are equal
  size_t other = 0;       ///< of bounds and lengths: the input whose `low`, `high`, `run` these are
  int64_t positions = 0;  ///< of bounds: of the other input's last axis
  /// Of reals that a contraction sums over tokens: zero behind the last one, whose number the last
  /// of the offsets says that input `other` has, along a dimension of this extent and stride.
  struct Tokens {
    int64_t extent = 1, stride = 1;
    int64_t sequences = 0, mostOfSequence = 0;
  };
  std::optional<Tokens> tokens = {};
};

/// One rule for each of Kernel::inputs.
std::vector<InputRule> inputRules(const Kernel &kernel);

/// Fills the image of input `position`; a function of seed, position and logical element alone.
void fillInput(TensorImage &image, const InputRule &rule, uint64_t seed, size_t position,
               int threads = 1);

}  // namespace weft::runtime
