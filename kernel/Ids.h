// Indices into a kernel's lists, each of a type that no other converts to.
//
// Invariant: an id is made of a plain int alone, so that an axis cannot pass as a value; it reads
// as an int wherever a list is indexed or a loop counts.
#pragma once

#include <concepts>

namespace weft {

template <typename List>
struct Id {
  int index = -1;  ///< -1: none

  constexpr Id() = default;
  template <std::same_as<int> Index>
  constexpr Id(Index index) : index(index) {}
  constexpr operator int() const { return index; }
};

/// Of another list.
template <typename List, typename Other>
requires(!std::same_as<List, Other>) bool operator==(Id<List>, Id<Other>) = delete;

using AxisId = Id<struct Axis>;    ///< in Kernel::axes
using ValueId = Id<struct Value>;  ///< in Kernel::values
using OpId = Id<struct BodyOp>;    ///< in Kernel::body

}  // namespace weft
