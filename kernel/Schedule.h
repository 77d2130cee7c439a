// The schedules of kernel families as tables: what each field is called, what it means, which
// values it takes and where it may be left out. Lines of profiles, key text, plan.json, the
// attribute `config` of graph.mlir, descriptions, parsing and error messages follow from these
// tables alone.
//
// Adding a field: its member and default in the family's struct (codegen/families/FAMILY/*Knobs.h),
// its row in the table beside it (*Knobs.cpp), and the code that uses it.
//
// Invariant: a table has every member of its struct (checked by
// tests/unit/kernel/schedule_test.cpp: the default of every field is that of the struct, and two
// schedules are equal exactly if all fields are).
#pragma once
#ifndef WEFT_KERNEL_SCHEDULE_H  // beside a precompiled header of a compiler cache
#define WEFT_KERNEL_SCHEDULE_H

#include "kernel/CanonicalNames.h"
#include "kernel/Configuration.h"

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

namespace weft {

struct ScheduleField {
  enum class Kind : uint8_t {
    integer,
    axis,   ///< index of a kernel axis, or -1 for none; by name in every text
    choice  ///< one of `choices`, by name in every text
  };
  /// Where describe() says the value.
  enum class Shown : uint8_t {
    text,    ///< in the sentence of its family
    suffix,  ///< behind it, where it is not the default
    nowhere  ///< it says nothing about how the kernel works
  };

  std::string_view name;     ///< in plan.json; in snake case in graph.mlir
  std::string_view rowName;  ///< in lines of profiles and key text, where defaults are left out
  std::string_view meaning;  ///< one sentence, with units
  Kind kind = Kind::integer;
  std::span<const std::string_view> choices = {};  ///< of Kind::choice, by value
  std::string_view noun = {};                      ///< what a choice is called in messages
  int64_t least = 0, most = 1 << 20;               ///< of Kind::integer
  /// Of Kind::choice: with this value two launches need not leave the same bits; -1: with all they
  /// do.
  int nondeterministic = -1;
  /// Of Kind::choice: with this value the text waits by itself for what it reads, so that its
  /// kernel may start early; -1: with none.
  int waitsItself = -1;
  bool isOptional = false;  ///< left out of plan.json and graph.mlir where it is the default
  bool changesText = true;  ///< of the emitted kernel; else it is passed at launch or load
  Shown shown = Shown::suffix;

  int (*get)(const Knobs &knobs) = nullptr;
  void (*set)(Knobs &knobs, int value) = nullptr;
};

template <typename Member>
struct MemberOf;
template <typename Struct, typename Value>
struct MemberOf<Value Struct::*> {
  using Owner = Struct;
  using Type = Value;
};

/// Of every value of an enum, for `choices`.
template <typename Value, size_t count>
std::array<std::string_view, count> choiceNames(const Value (&values)[count]) {
  std::array<std::string_view, count> names;
  for (size_t index = 0; index < count; ++index) names[index] = nameOf(values[index]);
  return names;
}

/// A field with the accessors of its member.
template <auto member>
ScheduleField scheduleField(ScheduleField field) {
  using Owner = typename MemberOf<decltype(member)>::Owner;
  using Type = typename MemberOf<decltype(member)>::Type;
  field.get = [](const Knobs &knobs) { return int(knobs.get<Owner>().*member); };
  field.set = [](Knobs &knobs, int value) { knobs.get<Owner>().*member = Type(value); };
  return field;
}

/// A value as every text has it: a number, the name of a choice, or that of an axis ("-" for none).
std::string valueText(const ScheduleField &field, int value,
                      const std::function<std::string(int)> &axisName);
/// " tileM=64 stages=3": what differs from the defaults, axes by canonical names; for lines of
/// profiles and key text.
std::string scheduleText(const Knobs &knobs, const CanonicalNames &names);

/// Whether every launch leaves the same bits: no field has its nondeterministic value.
bool isDeterministic(const Knobs &knobs);
/// The knobs that differ in this alone: sums in a fixed order instead of any, or the other way
/// round; nothing where no field of the family makes a difference.
std::optional<Knobs> withOtherDeterminism(const Knobs &knobs);

/// "tile_m" of "tileM".
std::string snakeCase(std::string_view name);
/// The value of Kind::choice by its name; nothing if it has none such.
std::optional<int> choiceNamed(const ScheduleField &field, std::string_view name);
/// "none, sequential, warp": all values of Kind::choice.
std::string choicesText(const ScheduleField &field);

}  // namespace weft

#endif  // WEFT_KERNEL_SCHEDULE_H
