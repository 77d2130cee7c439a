// Indices into a kernel's lists, each of a type that no other converts to.
//
// Invariant: an id is made of a plain int alone, so that an axis cannot pass as a value; it reads
// as an int wherever a list is indexed or a loop counts.
#pragma once
#ifndef WEFT_KERNEL_IDS_H  // beside a precompiled header of a compiler cache
#define WEFT_KERNEL_IDS_H

#include <concepts>
#include <type_traits>

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

/// An id and an int meet as an int, so that algorithms look for either in a list of ids.
template <typename List>
struct std::common_type<weft::Id<List>, int> {
  using type = int;
};
template <typename List>
struct std::common_type<int, weft::Id<List>> {
  using type = int;
};

#endif  // WEFT_KERNEL_IDS_H
