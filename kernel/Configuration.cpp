// Layouts and knobs as text and as strides. canonicalText() decides which configurations are the
// same kernel: layouts are compared by the strides they give, so that extents of 1 and strides that
// equal the dense ones make no difference.
#include "kernel/Configuration.h"

#include "kernel/CanonicalNames.h"
#include "kernel/Error.h"
#include "kernel/Family.h"

#include <algorithm>
#include <numeric>

namespace weft {

namespace {

int64_t roundedUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

Layout rowMajor(size_t rank) {
  Layout layout;
  layout.order.resize(rank);
  std::iota(layout.order.begin(), layout.order.end(), 0);
  return layout;
}

std::vector<int64_t> stridesOf(const Layout &layout, const std::vector<int64_t> &extents) {
  if (!layout.strides.empty()) return layout.strides;
  if (layout.order.size() != extents.size())
    throw Error::checkFailed("a layout of {} dimensions was given to a tensor of {}",
                             layout.order.size(), extents.size());
  std::vector<int64_t> strides(extents.size());
  int64_t stride = 1;
  for (size_t i = layout.order.size(); i-- > 0;) {
    const int64_t extent = extents[layout.order[i]];
    strides[layout.order[i]] = stride;
    stride = stride == 1 && extent > 1 ? roundedUp(extent, layout.pitchUnit) : stride * extent;
  }
  return strides;
}

std::optional<Layout> padded(const Layout &layout, const std::vector<int64_t> &extents,
                             int64_t elementBytes) {
  constexpr int64_t accessBytes = 16, lineBytes = 128, mostOfLines = 32, mostOfAccesses = 8;
  const auto isLong = [&](int dimension) { return extents[size_t(dimension)] > 1; };
  const auto row = std::find_if(layout.order.rbegin(), layout.order.rend(), isLong);
  if (!layout.isDense() || row == layout.order.rend() ||
      std::none_of(std::next(row), layout.order.rend(), isLong))
    return std::nullopt;
  const int64_t extent = extents[size_t(*row)], access = accessBytes / elementBytes,
                line = lineBytes / elementBytes;
  if (extent % access == 0) return std::nullopt;
  Layout result = layout;
  const auto takesAtMost = [&](int64_t share) {
    return (roundedUp(extent, result.pitchUnit) - extent) * share <= extent;
  };
  result.pitchUnit = line;
  if (takesAtMost(mostOfLines)) return result;
  result.pitchUnit = access;
  return takesAtMost(mostOfAccesses) ? std::optional(result) : std::nullopt;
}

std::optional<int64_t> pitchOf(const Layout &layout, const std::vector<int64_t> &extents) {
  if (!layout.isPadded()) return std::nullopt;
  for (auto dimension = layout.order.rbegin(); dimension != layout.order.rend(); ++dimension)
    if (const int64_t extent = extents[size_t(*dimension)]; extent > 1)
      return roundedUp(extent, layout.pitchUnit);
  return std::nullopt;
}

std::vector<Layout> allDenseLayouts(size_t rank) {
  std::vector<Layout> layouts;
  Layout layout = rowMajor(rank);
  do layouts.push_back(layout);
  while (std::next_permutation(layout.order.begin(), layout.order.end()));
  return layouts;
}

std::string print(const Layout &layout, const Kernel &kernel, const Value &value) {
  std::vector<std::string> names;
  for (int dimension : layout.order) names.push_back(kernel.axes[value.axes[dimension]].name);
  const bool letters = std::all_of(names.begin(), names.end(),
                                   [](const std::string &name) { return name.size() == 1; });
  std::string text = fmt::format("{}", fmt::join(names, letters ? "" : ","));
  if (!layout.strides.empty()) text += fmt::format("[{}]", fmt::join(layout.strides, ","));
  std::vector<int64_t> extents;
  for (const AxisId axis : value.axes) extents.push_back(kernel.axes[axis].extent);
  if (const auto pitch = pitchOf(layout, extents)) text += fmt::format(":{}", *pitch);
  if (layout.offset != 0) text += fmt::format("+{}", layout.offset);
  return text;
}

namespace {

/// The layout as groups of axes that one stride serves, slowest first: "a0.a1:64 a2:1". Axes of
/// extent 1 vanish.
std::string canonicalLayout(const Kernel &kernel, const CanonicalNames &names, ValueId valueIndex,
                            const Layout &layout) {
  const Value &value = kernel.values[valueIndex];
  std::vector<int64_t> extents;
  for (AxisId axis : value.axes) extents.push_back(kernel.axes[axis].extent);
  const std::vector<int64_t> strides = stridesOf(layout, extents);
  std::vector<size_t> order;
  for (size_t i = 0; i < extents.size(); ++i)
    if (extents[i] > 1) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return strides[a] > strides[b]; });
  std::string text;
  for (size_t i = 0; i < order.size(); ++i) {
    const bool mergesWithNext =
        i + 1 < order.size() && strides[order[i]] == strides[order[i + 1]] * extents[order[i + 1]];
    text += names.axis(value.axes[order[i]]);
    text += mergesWithNext ? "." : fmt::format(":{} ", strides[order[i]]);
  }
  return fmt::format("{} {}offset {} align {}", names.value(valueIndex), text, layout.offset,
                     layout.alignment);
}

}  // namespace

std::string describe(const Kernel &kernel, const Knobs &knobs) {
  const Family &family = knobs.family();
  std::string text = family.describe(kernel, knobs);
  for (const ScheduleField &field : family.schedule)
    if (const int value = field.get(knobs);
        field.shown == ScheduleField::Shown::suffix && value != field.get(family.defaults()))
      text += fmt::format(", {} {}", field.name, valueText(field, value, [&](AxisId axis) {
                            return kernel.axes[size_t(axis)].name;
                          }));
  return text;
}

std::string canonicalText(const Kernel &kernel, const Configuration &configuration,
                          std::string_view architecture) {
  if (configuration.inputs.size() != kernel.inputs.size() ||
      configuration.outputs.size() != kernel.outputs.size())
    throw Error::checkFailed(
        "kernel '{}' has {} inputs and {} outputs, its configuration {} and {}", kernel.name,
        kernel.inputs.size(), kernel.outputs.size(), configuration.inputs.size(),
        configuration.outputs.size());
  const CanonicalNames names(kernel);
  std::string text = canonicalText(kernel);
  for (size_t i = 0; i < kernel.inputs.size(); ++i)
    text += fmt::format("layout {}\n",
                        canonicalLayout(kernel, names, kernel.inputs[i], configuration.inputs[i]));
  for (size_t i = 0; i < kernel.outputs.size(); ++i)
    text += fmt::format(
        "layout {}\n", canonicalLayout(kernel, names, kernel.outputs[i], configuration.outputs[i]));
  const Family &family = configuration.knobs.family();
  text += fmt::format("family {} {}\n", family.name, family.version);
  std::string schedule = scheduleText(configuration.knobs, names);
  std::ranges::replace(schedule, '=', ' ');
  text += fmt::format("knobs{}\n", schedule.empty() ? " -" : schedule);
  return text + fmt::format("target {}\n", architecture);
}

}  // namespace weft
