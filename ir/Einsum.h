// Einsum of two operands: "phi,bji->phbj". Parsing, checking and inference, without MLIR.
//
// A letter is local to one spec. By where it appears it is one of four kinds:
//   batch    in a, b and the result      m   in a and the result
//   reduced  in a and b only             n   in b and the result
// Nothing else is allowed: no letter twice in one term (no diagonals), none in the result that no
// operand has, none in one operand alone (sum it first with weft.reduce).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

struct Einsum {
  std::string a, b, result;  ///< the letters of each term, one per dimension
  bool operator==(const Einsum &) const = default;

  std::string batch() const;    ///< in order of the result
  std::string m() const;        ///< in order of the result
  std::string n() const;        ///< in order of the result
  std::string reduced() const;  ///< in order of a
  /// All letters: those of the result in its order, then the reduced ones.
  std::string letters() const;
  std::string text() const { return a + "," + b + "->" + result; }
};

/// Throws Error(badInput), starting with the id of the broken constraint of SPEC.md:
/// contract_c1 (form), contract_c2 (repeated letter), contract_c3 (unknown letter in the result),
/// contract_c4 (letter in one operand only).
Einsum parseEinsum(std::string_view text);

/// Extent of every letter. Throws Error(badInput): contract_c5 (rank against letters), contract_c6
/// (unequal extents).
std::map<char, int64_t> inferExtents(const Einsum &einsum, const std::vector<int64_t> &a,
                                     const std::vector<int64_t> &b);

/// Extents of the result, in its order.
std::vector<int64_t> inferResult(const Einsum &einsum, const std::vector<int64_t> &a,
                                 const std::vector<int64_t> &b);

}  // namespace weft
