// Nearest by the fields of schedules; see NearestConfiguration.h.
#include "passes/decide/NearestConfiguration.h"

#include "kernel/Family.h"
#include "kernel/Schedule.h"
#include "passes/configure/Families.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace weft::decision {
namespace {

/// The field of a name, where a plan states it: optional ones other than their default alone.
const ScheduleField *statedField(const Knobs &knobs, std::string_view name) {
  const auto &fields = knobs.family().schedule;
  const auto field = std::ranges::find(fields, name, &ScheduleField::name);
  if (field == fields.end()) return nullptr;
  const bool isUsual = field->get(knobs) == field->get(knobs.family().defaults());
  return field->isOptional && isUsual ? nullptr : &*field;
}

/// Above zero, also of -1, which stands for none.
double magnitude(int value) { return std::max(value, 0) + 1; }

/// How far knobs are from others: numbers by their ratio, everything else by being another. What
/// optional fields have by default makes no difference.
double distance(const Knobs &a, const Knobs &b) {
  constexpr double another = 4;
  const auto textOf = [](const Knobs &knobs, const ScheduleField *field) {
    return field
               ? valueText(*field, field->get(knobs), [](int axis) { return std::to_string(axis); })
               : "-";  // as of an axis that is none
  };
  double sum = a.family() == b.family() ? 0 : another;
  for (const ScheduleField &each : a.family().schedule) {
    const ScheduleField *own = statedField(a, each.name), *other = statedField(b, each.name);
    constexpr auto integer = ScheduleField::Kind::integer;
    if (!own) continue;
    if (own->kind == integer && other && other->kind == integer)
      sum += std::abs(std::log2(magnitude(own->get(a)) / magnitude(other->get(b))));
    else if (textOf(a, own) != textOf(b, other)) sum += another;
  }
  return sum;
}

}  // namespace

std::optional<Configuration> nearestConfiguration(const Kernel &kernel, const Configuration &own,
                                                  const Device &device) {
  LayoutConstraints constraints;
  constraints.inputs.assign(own.inputs.begin(), own.inputs.end());
  constraints.outputs.assign(own.outputs.begin(), own.outputs.end());
  std::optional<std::pair<double, Configuration>> best;
  forEachConfiguration(kernel, device, constraints, [&](const Configuration &candidate) {
    constexpr double otherFamily = 1e6;
    const double far = distance(own.knobs, candidate.knobs) +
                       (candidate.knobs.family() == own.knobs.family() ? 0 : otherFamily);
    if (!best || far < best->first) best.emplace(far, candidate);
    return true;
  });
  if (!best) return std::nullopt;
  return std::move(best->second);
}

}  // namespace weft::decision
