// Estimates of a whole configuration space as sums: where a family's layouts are a product and its
// estimate under fixed knobs has one term an operand, a kernel of six operands with 24 layouts each
// has 10^8 configurations, but only 6 x 24 terms for each row of knobs (Family::operandSums).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace weft {

class OperandSums {
public:
  virtual ~OperandSums() = default;
  /// Rows: knobs of the space, without those that are never the fastest.
  virtual size_t knobsCount() const = 0;
  /// Index into the space's knobs.
  virtual int knobsOf(size_t row) const = 0;
  /// Seconds with one layout an operand; infinite where the knobs are a disguise of others.
  virtual double seconds(size_t row, const std::vector<int> &choice) const = 0;
  /// What the first operands of a row add up to.
  struct Partial {
    double seconds = 0;
    bool isUseful = false;  ///< the knobs are no disguise, whatever the others' layouts
  };
  /// As above, for a combination whose first `known` operands lie as in an earlier call with the
  /// same row and `partial`, which has one entry more than there are operands. Of 8,192
  /// combinations of a table neighbours differ in the last operands alone.
  virtual double seconds(size_t row, const std::vector<int> &choice, size_t known,
                         std::span<Partial> partial) const = 0;
  /// The best over all combinations with operand `fixed` in its layout `choice`; -1: none fixed.
  virtual double best(size_t row, int fixed, int choice) const = 0;
};

}  // namespace weft
