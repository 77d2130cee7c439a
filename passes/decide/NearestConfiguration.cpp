// Nearest by the fields of schedules; see NearestConfiguration.h.
#include "passes/decide/NearestConfiguration.h"

#include "kernel/Error.h"
#include "kernel/Family.h"
#include "kernel/Schedule.h"
#include "passes/configure/FamilyConfigurations.h"
#include "plan/PlanConfiguration.h"
#include "plan/PlanKnobs.h"

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
  std::optional<std::pair<double, Configuration>> best;
  forEachConfiguration(kernel, device, layoutsOf(own), [&](const Configuration &candidate) {
    constexpr double otherFamily = 1e6;
    const double far = distance(own.knobs, candidate.knobs) +
                       (candidate.knobs.family() == own.knobs.family() ? 0 : otherFamily);
    if (!best || far < best->first) best.emplace(far, candidate);
    return true;
  });
  if (!best) return std::nullopt;
  return std::move(best->second);
}

std::string knobsRejection(const Kernel &kernel, const Configuration &configuration,
                           const Device &device) {
  const auto rejection = configuration.knobs.family().rejection;
  return rejection ? rejection(kernel, configuration, device) : "";
}

std::optional<OtherKnobs> configureAgain(PlannedKernels &planned, size_t index,
                                         const Device &device, const std::string &extents) {
  PlanKernel &entry = planned.plan.kernels[index];
  ChosenKernel &chosen = planned.kernels[index];
  chosen.configuration = configurationOf(planned.plan, entry, chosen.kernel);
  // A view is the same part of its whole; which views are worth it at these extents is no matter.
  if (isView(entry) || isLegal(chosen.kernel, chosen.configuration, device)) return std::nullopt;
  const std::optional<Configuration> nearest =
      nearestConfiguration(chosen.kernel, chosen.configuration, device);
  if (!nearest)
    throw Error::unsupported("kernel '{}' has no configuration in its layouts at {}", entry.name,
                             extents);
  const std::string reason = knobsRejection(chosen.kernel, chosen.configuration, device);
  OtherKnobs other{
      .kernel = entry.name,
      .own = describe(chosen.kernel, chosen.configuration.knobs),
      .used = describe(chosen.kernel, nearest->knobs),
      .reason = reason.empty() ? "its family does not offer them at these extents" : reason};
  chosen.configuration.knobs = nearest->knobs;
  entry.knobs = planKnobs(nearest->knobs, chosen.kernel);
  entry.family = nearest->knobs.family();
  entry.configuration = other.used;
  return other;
}

}  // namespace weft::decision
