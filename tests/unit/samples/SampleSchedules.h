// Schedules of every family that differ from its defaults in one field: what tests of the formats
// of schedules read and write. Which fields there are comes from the tables of the families.
#pragma once

#include "kernel/Family.h"
#include "tests/support/NonEmpty.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <vector>

namespace weft::samples {

/// Values to try of a field: all choices and axes, the ends of a range, one between, the default.
inline std::vector<int> valuesOf(const ScheduleField &field, int usual) {
  std::vector<int> values = {usual};
  switch (field.kind) {
    case ScheduleField::Kind::integer:
      values.insert(values.end(), {int(field.least), int(field.most),
                                   int(std::min(field.least + 3, field.most))});
      break;
    case ScheduleField::Kind::axis: values.insert(values.end(), {-1, 0, 1, 2}); break;
    case ScheduleField::Kind::choice:
      for (size_t choice = 0; choice < field.choices.size(); ++choice)
        values.push_back(int(choice));
      break;
  }
  return values;
}

/// visit(family, field, schedule) for every value of every field, all others at their defaults.
inline void forEachSchedule(
    const std::function<void(const Family &, const ScheduleField &, const Knobs &)> &visit) {
  for (const Family *each : test::nonEmpty(families()))
    for (const ScheduleField &field : each->schedule)  // may be empty: a view has no fields
      for (const int value : test::nonEmpty(valuesOf(field, field.get(each->defaults())))) {
        Knobs knobs = each->defaults();
        field.set(knobs, value);
        CHECK(field.get(knobs) == value);
        visit(*each, field, knobs);
      }
}

}  // namespace weft::samples
