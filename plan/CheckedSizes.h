// Sizes and addresses computed from the numbers of a file: every product and sum is checked, so
// that no number that someone may have written overflows. Nothing (nullopt): it overflows, or a
// part of it did.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace weft {

/// Larger than any memory: what stays below it adds up, some ten thousand times over, without
/// overflow.
inline constexpr int64_t mostBytes = int64_t(1) << 48;

using Checked = std::optional<int64_t>;

inline Checked checkedSum(Checked a, Checked b) {
  int64_t sum = 0;
  return a && b && !__builtin_add_overflow(*a, *b, &sum) ? Checked(sum) : std::nullopt;
}
inline Checked checkedProblem(Checked a, Checked b) {
  int64_t product = 0;
  return a && b && !__builtin_mul_overflow(*a, *b, &product) ? Checked(product) : std::nullopt;
}

/// How many elements there are.
inline Checked checkedCount(std::span<const int64_t> extents) {
  Checked count = 1;
  for (const int64_t extent : extents) count = checkedProblem(count, extent);
  return count;
}

/// The place of the last element, counted from the first. Strides that are missing count as none.
inline Checked checkedLast(std::span<const int64_t> extents, std::span<const int64_t> strides) {
  Checked last = 0;
  for (size_t dimension = 0; dimension < extents.size() && dimension < strides.size(); ++dimension)
    last = checkedSum(last, checkedProblem(checkedSum(extents[dimension], -1), strides[dimension]));
  return last;
}

}  // namespace weft
