// The schedule of one kernel, of whatever family: a value of that family's struct (its knobs).
// Knows no family: a struct names its family by `family()` (kernel/Family.h), and a caller gets the
// struct by its type. Plain data, copied as bytes.
#pragma once
#ifndef WEFT_KERNEL_KNOBS_H  // beside a precompiled header of a compiler cache
#define WEFT_KERNEL_KNOBS_H

#include <array>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

namespace weft {

struct Family;

/// A struct of a family's knobs: integers and enums alone, compared member by member.
template <typename Struct>
concept FamilyKnobs = std::is_trivially_copyable_v<Struct> && requires(const Struct &knobs) {
  { Struct::family() } -> std::same_as<const Family &>;
  { knobs <=> knobs } -> std::same_as<std::strong_ordering>;
};

class Knobs {
public:
  /// Of no family: family() throws.
  Knobs() = default;
  template <FamilyKnobs Struct>
  Knobs(const Struct &knobs) : owner(&Struct::family()) {
    static_assert(sizeof(Struct) <= size && alignof(Struct) <= alignof(int));
    new (storage.data()) Struct(knobs);
  }

  /// Throws Error(checkFailed) where there is none.
  const Family &family() const;
  /// Family::isView and Family::isLibrary; false where there is no family.
  bool isView() const;
  bool isLibrary() const;

  template <FamilyKnobs Struct>
  const Struct *getIf() const {
    return owner == &Struct::family()
               ? std::launder(reinterpret_cast<const Struct *>(storage.data()))
               : nullptr;
  }
  template <FamilyKnobs Struct>
  Struct *getIf() {
    return const_cast<Struct *>(std::as_const(*this).template getIf<Struct>());
  }
  template <FamilyKnobs Struct>
  bool is() const {
    return owner == &Struct::family();
  }
  /// Throws Error(checkFailed), naming both, where the knobs are of another family.
  template <FamilyKnobs Struct>
  const Struct &get() const {
    if (const Struct *knobs = getIf<Struct>()) return *knobs;
    throwOtherFamily(Struct::family());
  }
  template <FamilyKnobs Struct>
  Struct &get() {
    return const_cast<Struct &>(std::as_const(*this).template get<Struct>());
  }

  /// By family, in the order of their names, then member by member.
  friend std::strong_ordering operator<=>(const Knobs &a, const Knobs &b);
  friend bool operator==(const Knobs &a, const Knobs &b) { return (a <=> b) == 0; }

private:
  [[noreturn]] void throwOtherFamily(const Family &asked) const;

  static constexpr size_t size = 48;
  const Family *owner = nullptr;
  alignas(int) std::array<std::byte, size> storage{};
};

}  // namespace weft

#endif  // WEFT_KERNEL_KNOBS_H
