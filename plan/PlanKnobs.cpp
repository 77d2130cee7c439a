// Knobs of plans, and their JSON; see PlanKnobs.h.
#include "plan/PlanKnobs.h"

#include "kernel/Error.h"
#include "kernel/Family.h"
#include "kernel/Nearest.h"
#include "kernel/Schedule.h"

#include <algorithm>
#include <set>

namespace weft {
namespace {

using nlohmann::json;

/// The place of a name in a list, to which it is added if it is new.
int indexIn(std::vector<std::string> &names, const std::string &name) {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return int(found - names.begin());
  names.push_back(name);
  return int(names.size()) - 1;
}

/// Reads members of one knobs object and knows which were asked for, so that a misspelt one is not
/// ignored.
class KnobReader {
public:
  KnobReader(const json &object, const std::string &where) : object(object), where(where) {
    if (!object.is_object()) throw Error::badInput("{}: knobs must be a JSON object", where);
  }

  PlanKnobs all() {
    const std::string name = text("family");
    const Family *family = familyNamed(name);
    if (!family)
      throw Error::badInput("{}: unknown family '{}'{}", where, name,
                            nearestAndKnown(name, familyNames()));
    PlanKnobs own{.knobs = family->defaults()};
    for (const ScheduleField &field : family->schedule)
      field.set(own.knobs, value(field, field.get(own.knobs), own.axes));
    rejectOthers();
    return own;
  }

private:
  int value(const ScheduleField &field, int usual, std::vector<std::string> &axes) {
    // Plans leave some members out where they have their usual value.
    if (field.isOptional && !object.contains(field.name)) return usual;
    switch (field.kind) {
      case ScheduleField::Kind::integer: return number(field);
      case ScheduleField::Kind::axis: return axis(field, axes);
      case ScheduleField::Kind::choice: return choice(field);
    }
    throw Error::checkFailed("field '{}' of no kind", field.name);
  }

  std::string text(std::string_view name) {
    const json &value = member(name);
    if (!value.is_string()) throw Error::badInput("{}: knob '{}' must be a string", where, name);
    return value.get<std::string>();
  }

  void rejectOthers() const {
    const std::vector<std::string> names(read.begin(), read.end());
    for (const auto &[name, value] : object.items())
      if (!read.contains(name))
        throw Error::badInput("{}: unknown knob '{}'{}", where, name, nearestAndKnown(name, names));
  }

  const json &member(std::string_view name) {
    read.emplace(name);
    const auto found = object.find(name);
    if (found == object.end()) throw Error::badInput("{}: knob '{}' is missing", where, name);
    return *found;
  }

  int number(const ScheduleField &field) {
    const json &value = member(field.name);
    const bool isHuge =
        value.is_number_unsigned() && value.get<uint64_t>() > uint64_t(field.most);  // 2^63, say
    const bool fits = value.is_number_integer() && !isHuge && value.get<int64_t>() >= field.least &&
                      value.get<int64_t>() <= field.most;
    if (!fits)
      throw Error::badInput("{}: knob '{}' must be an integer from {} to {}, not {}", where,
                            field.name, field.least, field.most, value.dump());
    return value.get<int>();
  }

  /// Which axes the kernel has, knobsOf() says.
  int axis(const ScheduleField &field, std::vector<std::string> &axes) {
    const json &value = member(field.name);
    if (value.is_null()) return -1;
    if (!value.is_string())
      throw Error::badInput("{}: knob '{}' must name an axis, not {}", where, field.name,
                            value.dump());
    return indexIn(axes, value.get<std::string>());
  }

  int choice(const ScheduleField &field) {
    const std::string value = text(field.name);
    if (const std::optional<int> found = choiceNamed(field, value)) return *found;
    throw Error::badInput("{}: knob '{}': unknown {} '{}'{}", where, field.name, field.noun, value,
                          nearestAndKnown(value, {field.choices.begin(), field.choices.end()}));
  }

  const json &object;
  const std::string &where;
  std::set<std::string, std::less<>> read;
};

/// The same knobs with every axis that they name as `indexOf` has it.
template <typename IndexOf>
Knobs withAxes(Knobs knobs, const IndexOf &indexOf) {
  for (const ScheduleField &field : knobs.family().schedule)
    if (const int axis = field.get(knobs); field.kind == ScheduleField::Kind::axis && axis >= 0)
      field.set(knobs, indexOf(field, axis));
  return knobs;
}

}  // namespace

PlanKnobs planKnobs(const Knobs &knobs, const Kernel &kernel) {
  PlanKnobs own;
  own.knobs = withAxes(knobs, [&](const ScheduleField &, int axis) {
    return indexIn(own.axes, kernel.axes.at(size_t(axis)).name);
  });
  return own;
}

Knobs knobsOf(const PlanKnobs &own, const Kernel &kernel, const std::string &where) {
  if (own == PlanKnobs()) throw Error::badInput("{}: knobs must be a JSON object", where);
  return withAxes(own.knobs, [&](const ScheduleField &field, int axis) {
    const std::string &name = own.axes.at(size_t(axis));
    std::vector<std::string> names;
    for (const Axis &one : kernel.axes) names.push_back(one.name);
    const auto found = std::ranges::find(names, name);
    if (found == names.end())
      throw Error::badInput("{}: knob '{}' must name an axis, not {}{}", where, field.name,
                            json(name).dump(), nearestAndKnown(name, names));
    return int(found - names.begin());
  });
}

json toJson(const PlanKnobs &own) {
  if (own == PlanKnobs()) return nullptr;
  const Family &family = own.knobs.family();
  json object = {{"family", family.name}};
  for (const ScheduleField &field : family.schedule) {
    const int value = field.get(own.knobs);
    if (field.isOptional && value == field.get(family.defaults())) continue;
    if (field.kind == ScheduleField::Kind::integer) object[field.name] = value;
    else if (field.kind == ScheduleField::Kind::axis && value < 0) object[field.name] = nullptr;
    else
      object[field.name] =
          valueText(field, value, [&](int axis) { return own.axes.at(size_t(axis)); });
  }
  return object;
}

PlanKnobs planKnobsFromJson(const json &object, const std::string &where) {
  return object.is_null() ? PlanKnobs() : KnobReader(object, where).all();
}

}  // namespace weft
