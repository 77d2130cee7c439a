// Knobs and layouts between plan.json and configurations; see PlanConfiguration.h.
#include "plan/PlanConfiguration.h"

#include "kernel/Error.h"
#include "kernel/Nearest.h"
#include "kernel/Schedule.h"
#include "passes/configure/FamilyConfigurations.h"

#include <algorithm>
#include <set>

namespace weft {
namespace {

using nlohmann::json;

/// Reads members of one knobs object and knows which were asked for, so that a misspelt one is not
/// ignored.
class KnobReader {
public:
  KnobReader(const json &object, const Kernel &kernel, const std::string &where)
      : object(object), kernel(kernel), where(where) {
    if (!object.is_object()) throw Error::badInput("{}: knobs must be a JSON object", where);
  }

  int value(const ScheduleField &field, int usual) {
    // Plans leave some members out where they have their usual value.
    if (field.isOptional && !object.contains(field.name)) return usual;
    switch (field.kind) {
      case ScheduleField::Kind::integer: return number(field);
      case ScheduleField::Kind::axis: return axis(field);
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

private:
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

  int axis(const ScheduleField &field) {
    const json &value = member(field.name);
    if (value.is_null()) return -1;
    std::vector<std::string> names;
    for (size_t index = 0; index < kernel.axes.size(); ++index) {
      names.push_back(kernel.axes[index].name);
      if (value == names.back()) return int(index);
    }
    throw Error::badInput(
        "{}: knob '{}' must name an axis, not {}{}", where, field.name, value.dump(),
        nearestAndKnown(value.is_string() ? value.get<std::string>() : "", names));
  }

  int choice(const ScheduleField &field) {
    const std::string value = text(field.name);
    if (const std::optional<int> found = choiceNamed(field, value)) return *found;
    throw Error::badInput("{}: knob '{}': unknown {} '{}'{}", where, field.name, field.noun, value,
                          nearestAndKnown(value, {field.choices.begin(), field.choices.end()}));
  }

  const json &object;
  const Kernel &kernel;
  const std::string &where;
  std::set<std::string, std::less<>> read;
};

Knobs read(KnobReader &reader, const std::string &where) {
  const std::string name = reader.text("family");
  const Family *family = familyNamed(name);
  if (!family)
    throw Error::badInput("{}: unknown family '{}'{}", where, name,
                          nearestAndKnown(name, familyNames()));
  Knobs knobs = family->defaults();
  for (const ScheduleField &field : family->schedule)
    field.set(knobs, reader.value(field, field.get(knobs)));
  return knobs;
}

/// Whether the strides are those of some dense order of the axes.
bool isDense(const PlanTensor &tensor) {
  std::vector<std::pair<int64_t, int64_t>>
      dimensions;  // stride, extent; an extent of 1 may have any stride
  for (size_t index = 0; index < tensor.extents.size(); ++index)
    if (tensor.extents[index] != 1)
      dimensions.emplace_back(tensor.strides.at(index), tensor.extents[index]);
  std::sort(dimensions.begin(), dimensions.end());
  int64_t expected = 1;
  for (const auto &[stride, extent] : dimensions) {
    if (stride != expected) return false;
    expected *= extent;
  }
  return true;
}

/// Whether the strides are those of padded rows in some order of the axes.
bool hasPaddedRows(const PlanTensor &tensor) {
  Layout own = rowMajor(tensor.extents.size());
  std::ranges::stable_sort(own.order, std::ranges::greater{},
                           [&](int dimension) { return tensor.strides.at(size_t(dimension)); });
  const auto rows = padded(own, tensor.extents, sizeOf(tensor.dtype));
  if (!rows) return false;
  const std::vector<int64_t> strides = stridesOf(*rows, tensor.extents);
  for (size_t dimension = 0; dimension < strides.size(); ++dimension)
    if (tensor.extents[dimension] > 1 && tensor.strides[dimension] != strides[dimension])
      return false;
  return true;
}

LayoutConstraints layoutsOf(const Configuration &configuration) {
  LayoutConstraints constraints;
  constraints.inputs.assign(configuration.inputs.begin(), configuration.inputs.end());
  constraints.outputs.assign(configuration.outputs.begin(), configuration.outputs.end());
  return constraints;
}

}  // namespace

json toJson(const Knobs &knobs, const Kernel &kernel) {
  const Family &family = knobs.family();
  json object = {{"family", family.name}};
  for (const ScheduleField &field : family.schedule) {
    const int value = field.get(knobs);
    if (field.isOptional && value == field.get(family.defaults())) continue;
    if (field.kind == ScheduleField::Kind::integer) object[field.name] = value;
    else if (field.kind == ScheduleField::Kind::axis && value < 0) object[field.name] = nullptr;
    else
      object[field.name] =
          valueText(field, value, [&](int axis) { return kernel.axes.at(size_t(axis)).name; });
  }
  return object;
}

Knobs knobsFromJson(const json &object, const Kernel &kernel, const std::string &where) {
  KnobReader reader(object, kernel, where);
  const Knobs knobs = read(reader, where);
  reader.rejectOthers();
  return knobs;
}

bool isLegal(const Kernel &kernel, const Configuration &configuration, const Device &device) {
  const Knobs &asked = configuration.knobs;
  if (const auto takesUnlisted = asked.family().takesUnlisted;
      takesUnlisted && takesUnlisted(kernel, configuration, device))
    return true;
  bool isTaken = false;
  forEachConfigurationLike(kernel, configuration, device, [&](const Configuration &candidate) {
    isTaken = candidate.knobs == asked;
    return !isTaken;
  });
  return isTaken;
}

Legality legality(const Kernel &kernel, const Configuration &configuration, const Device &device) {
  constexpr size_t shown = 3;
  Legality result{.isLegal = isLegal(kernel, configuration, device), .others = {}};
  if (!result.isLegal)
    forEachConfiguration(kernel, device, layoutsOf(configuration),
                         [&](const Configuration &candidate) {
                           result.others.push_back(describe(kernel, candidate.knobs));
                           return result.others.size() < shown;
                         });
  return result;
}

Layout layoutOf(const PlanTensor &tensor) {
  Layout layout{.order = tensor.order, .strides = {}, .offset = tensor.offset};
  // Strides follow the order, so that editing the order alone is enough; a view's strides are its
  // own.
  if (isDense(tensor)) return layout;
  if (hasPaddedRows(tensor))
    return padded(layout, tensor.extents, sizeOf(tensor.dtype)).value_or(layout);
  layout.strides = tensor.strides;
  return layout;
}

namespace {

/// Plans count offsets from the start of the buffer, configurations of views from the tensor that
/// holds the others.
void countFromWhole(Configuration &configuration) {
  const Layout &whole = configuration.inputs.size() == 1 ? configuration.inputs.front()
                                                         : configuration.outputs.front();
  const int64_t start = whole.offset;
  for (std::vector<Layout> *layouts : {&configuration.inputs, &configuration.outputs})
    for (Layout &layout : *layouts) layout.offset -= start;
}

}  // namespace

Configuration configurationOf(const Plan &plan, const PlanKernel &planKernel,
                              const Kernel &kernel) {
  Configuration configuration{
      .inputs = {},
      .outputs = {},
      .knobs = knobsFromJson(planKernel.knobs, kernel, "kernel '" + planKernel.name + "'")};
  // Only views are about offsets; every other kernel is given the address of element zero.
  const bool isView = configuration.knobs.isView();
  const auto layout = [&](int tensor) {
    Layout result = layoutOf(plan.tensors.at(size_t(tensor)));
    if (!isView) result.offset = 0;
    return result;
  };
  for (const int tensor : planKernel.inputs) configuration.inputs.push_back(layout(tensor));
  for (const int tensor : planKernel.outputs) configuration.outputs.push_back(layout(tensor));
  if (isView) countFromWhole(configuration);
  return configuration;
}

}  // namespace weft
