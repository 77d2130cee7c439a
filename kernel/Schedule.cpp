// The tables of schedules; see Schedule.h.
#include "kernel/Schedule.h"

#include "kernel/Family.h"

#include <algorithm>
#include <cctype>

namespace weft {
namespace {
using FieldKind = ScheduleField::Kind;
}

std::string valueText(const ScheduleField &field, int value,
                      const std::function<std::string(int)> &axisName) {
  switch (field.kind) {
    case FieldKind::integer: return fmt::to_string(value);
    case FieldKind::axis: return value < 0 ? "-" : axisName(value);
    case FieldKind::choice: return std::string(field.choices[size_t(value)]);
  }
  return "";
}

std::string scheduleText(const Knobs &knobs, const CanonicalNames &names) {
  std::string text;
  const Family &family = knobs.family();
  for (const ScheduleField &field : family.schedule)
    if (const int value = field.get(knobs); value != field.get(family.defaults()))
      text += fmt::format(" {}={}", field.rowName,
                          valueText(field, value, [&](AxisId axis) { return names.axis(axis); }));
  return text;
}

bool isDeterministic(const Knobs &knobs) {
  return std::ranges::none_of(knobs.family().schedule, [&](const ScheduleField &field) {
    return field.nondeterministic >= 0 && field.get(knobs) == field.nondeterministic;
  });
}

std::optional<Knobs> withOtherDeterminism(const Knobs &knobs) {
  const Family &family = knobs.family();
  const bool wasDeterministic = isDeterministic(knobs);
  Knobs other = knobs;
  for (const ScheduleField &field : family.schedule)
    if (field.nondeterministic >= 0)
      field.set(other, wasDeterministic ? field.nondeterministic : field.get(family.defaults()));
  if (other == knobs) return std::nullopt;
  return other;
}

std::string snakeCase(std::string_view name) {
  std::string text;
  for (const char letter : name) {
    if (std::isupper(static_cast<unsigned char>(letter))) text += '_';
    text += char(std::tolower(static_cast<unsigned char>(letter)));
  }
  return text;
}

std::optional<int> choiceNamed(const ScheduleField &field, std::string_view name) {
  const auto found = std::ranges::find(field.choices, name);
  if (found == field.choices.end()) return std::nullopt;
  return int(found - field.choices.begin());
}

std::string choicesText(const ScheduleField &field) {
  return fmt::format("{}", fmt::join(field.choices, ", "));
}

}  // namespace weft
