// Reservoir sampling by class over the enumeration, which is too long to keep.
#include "tests/emulate/Sampling.h"

#include <fmt/format.h>

#include <map>
#include <numeric>
#include <random>
#include <set>

namespace weft::emulate {
namespace {

std::vector<FamilySampling> &registrations() {
  static std::vector<FamilySampling> registrations;
  return registrations;
}

/// The fastest kernel axis of a value under a layout; -1 for rank 0.
AxisId fastestAxis(const Kernel &kernel, ValueId value, const Layout &layout) {
  const std::vector<AxisId> &axes = kernel.values[value].axes;
  return layout.order.empty() ? AxisId() : axes[layout.order.back()];
}

Layout asView(const Kernel &kernel, ValueId value, const Layout &layout, int64_t padding) {
  const std::vector<AxisId> &axes = kernel.values[value].axes;
  Layout view{
      .order = layout.order, .strides = std::vector<int64_t>(axes.size(), 0), .offset = padding};
  int64_t stride = 1;
  for (auto dimension = layout.order.rbegin(); dimension != layout.order.rend(); ++dimension) {
    view.strides[*dimension] = stride;
    stride *= kernel.axes[axes[*dimension]].extent;
    if (dimension == layout.order.rbegin()) stride += padding;
  }
  view.alignment = std::gcd<int64_t>(16, padding * sizeOf(kernel.values[value].dtype));
  return view;
}

/// A configuration drawn uniformly from those offered.
struct Reservoir {
  Configuration chosen;
  uint64_t offered = 0;

  void offer(const Configuration &configuration, std::mt19937_64 &random) {
    if (random() % ++offered == 0) chosen = configuration;
  }
};

}  // namespace

SamplingRegistration::SamplingRegistration(const FamilySampling &sampling) {
  registrations().push_back(sampling);
}

const std::vector<FamilySampling> &samplings() { return registrations(); }

const FamilySampling &samplingOf(const Knobs &knobs) {
  static const FamilySampling unsaid;
  for (const FamilySampling &one : samplings())
    if (*one.family == knobs.family()) return one;
  return unsaid;
}

std::string coarseClass(const Knobs &knobs) {
  const FamilySampling &sampling = samplingOf(knobs);
  return sampling.coarseClass ? sampling.coarseClass(knobs) : std::string(knobs.family().name);
}

std::string fineClass(const Kernel &kernel, const Configuration &configuration) {
  const FamilySampling &sampling = samplingOf(configuration.knobs);
  std::string text = coarseClass(configuration.knobs) + ":";
  const auto add = [&](ValueId value, const Layout &layout) {
    const AxisId fastest = fastestAxis(kernel, value, layout);
    text += sampling.axisClass ? " " + sampling.axisClass(configuration.knobs, fastest)
                               : fmt::format(" {}", fastest.index);
    if (!layout.strides.empty()) text += " strided";
  };
  for (size_t n = 0; n < kernel.inputs.size(); ++n) add(kernel.inputs[n], configuration.inputs[n]);
  for (size_t n = 0; n < kernel.outputs.size(); ++n)
    add(kernel.outputs[n], configuration.outputs[n]);
  return text;
}

std::vector<Configuration> sample(const Kernel &kernel, const Device &device,
                                  const LayoutConstraints &constraints, size_t limit) {
  std::mt19937_64 random(17);
  std::map<std::string, Reservoir> coarse, fine;
  forEachConfiguration(kernel, device, constraints, [&](const Configuration &configuration) {
    if (!configuration.knobs.family().hasText() || !samplingOf(configuration.knobs).isEmulated)
      return true;
    coarse[coarseClass(configuration.knobs)].offer(configuration, random);
    fine[fineClass(kernel, configuration)].offer(configuration, random);
    return true;
  });
  std::set<Configuration> chosen;
  for (const auto &[name, reservoir] : coarse) chosen.insert(reservoir.chosen);
  std::vector<std::string> names;
  for (const auto &[name, reservoir] : fine) names.push_back(name);
  std::shuffle(names.begin(), names.end(), random);
  for (const std::string &name : names)
    if (chosen.size() < limit) chosen.insert(fine.at(name).chosen);
  return {chosen.begin(), chosen.end()};
}

Configuration asViews(const Kernel &kernel, const Configuration &configuration, int64_t padding) {
  Configuration views{.knobs = configuration.knobs};
  for (size_t n = 0; n < kernel.inputs.size(); ++n)
    views.inputs.push_back(asView(kernel, kernel.inputs[n], configuration.inputs[n], padding));
  for (size_t n = 0; n < kernel.outputs.size(); ++n)
    views.outputs.push_back(asView(kernel, kernel.outputs[n], configuration.outputs[n], padding));
  return views;
}

}  // namespace weft::emulate
