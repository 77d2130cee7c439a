// What draws cases of GPU tests: configurations of a kernel, drawn from the spaces that it is
// offered, with names that say what they are. Invariant: cases follow from the seed and the order
// of the calls alone, so that shares of a run are the same everywhere.
//
// A family lists its cases in tests/*gpu_cases.cpp of its folder and registers them there:
//
//   const CaseRegistration registered("transpose", addTransposes);
#pragma once

#include "tests/gpu/Cases.h"

#include "kernel/Device.h"
#include "passes/configure/Family.h"
#include "tests/emulate/Sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace weft::gputest {

inline constexpr DType floatTypes[] = {DType::f32, DType::f16, DType::bf16};

inline std::string layoutsText(const Kernel &kernel, const Configuration &configuration) {
  std::string text;
  for (size_t n = 0; n < kernel.inputs.size(); ++n)
    text += print(configuration.inputs[n], kernel, kernel.values[kernel.inputs[n]]) + " ";
  text += "->";
  for (size_t n = 0; n < kernel.outputs.size(); ++n)
    text += " " + print(configuration.outputs[n], kernel, kernel.values[kernel.outputs[n]]);
  return text;
}

inline std::string extentsText(const Kernel &kernel) {
  std::string text;
  for (const Axis &axis : kernel.axes)
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", axis.name, axis.extent);
  return text;
}

/// A family whose configurations are drawn, and the device that is asked for its space.
struct DrawnFamily {
  Knobs family;  ///< any of its knobs
  const char *device = "h200";

  DrawnFamily(Knobs family) : family(std::move(family)) {}
  template <FamilyKnobs Struct>
  DrawnFamily(const Struct &family) : family(family) {}
  /// Of a family that every target from sm_80 on runs: an H200 is offered little of it.
  static DrawnFamily fromSm80(Knobs family) {
    DrawnFamily drawn = std::move(family);
    drawn.device = "a100";
    return drawn;
  }
};

class Collector {
public:
  explicit Collector(std::vector<Case> &cases) : cases(cases) {}

  void add(const std::string &group, const Kernel &kernel, std::string_view types,
           const Configuration &configuration, Inputs inputs = Inputs::usual,
           samples::ScoreKind scores = samples::ScoreKind::usual) {
    cases.push_back({fmt::format("{}/{}_{} [{}] {}, {}", group, kernel.name, types,
                                 extentsText(kernel), layoutsText(kernel, configuration),
                                 weft::describe(kernel, configuration.knobs)),
                     kernel, configuration, inputs, scores});
  }
  void add(const std::string &group, const Kernel &kernel, DType dtype,
           const Configuration &configuration, Inputs inputs = Inputs::usual,
           samples::ScoreKind scores = samples::ScoreKind::usual) {
    add(group, kernel, nameOf(dtype), configuration, inputs, scores);
  }

  /// `count` configurations: kinds of knobs in turn, knobs and layouts drawn.
  std::vector<Configuration> draw(const Kernel &kernel, size_t count) {
    struct Choice {
      const ConfigurationSpace *space;
      const Knobs *knobs;
    };
    const std::vector<ConfigurationSpace> spaces = configurationSpaces(kernel, device);
    std::map<std::string, std::vector<Choice>> kinds;
    for (const ConfigurationSpace &space : spaces)
      for (const Knobs &knobs : space.knobs)
        if (knobs.family().hasText())
          kinds[emulate::coarseClass(knobs)].push_back({&space, &knobs});
    std::set<Configuration> chosen;
    for (size_t attempt = 0; attempt < 8 * count && chosen.size() < count && !kinds.empty();
         ++attempt) {
      const auto kind = std::next(kinds.begin(), long(attempt % kinds.size()));
      const Choice &choice = kind->second[below(kind->second.size())];
      const LayoutTuple layouts = drawLayouts(*choice.space);
      if (isUseful(kernel, layouts, *choice.knobs))
        chosen.insert(configurationOf(kernel, layouts, *choice.knobs));
    }
    return {chosen.begin(), chosen.end()};
  }

  static bool isAny(const Knobs &) { return true; }

  /// Configurations of one family for a kernel, of the knobs that `isWanted` takes: pairs of these,
  /// in turn, and layouts, drawn.
  std::vector<Configuration> drawFamily(const Kernel &kernel, const DrawnFamily &drawn,
                                        size_t count, bool (*isWanted)(const Knobs &) = isAny) {
    std::set<Configuration> chosen;
    const Expected<ConfigurationSpace, Reason> answer =
        drawn.family.family().space(kernel, findDevice(drawn.device));
    if (!answer) return {};
    const ConfigurationSpace &space = *answer;
    std::vector<Knobs> wanted;
    std::ranges::copy_if(space.knobs, std::back_inserter(wanted), isWanted);
    for (size_t attempt = 0; attempt < 4 * count && chosen.size() < count && !wanted.empty();
         ++attempt) {
      const LayoutTuple layouts = drawLayouts(space);
      const Knobs &knobs = wanted[attempt % wanted.size()];
      if (isUseful(kernel, layouts, knobs)) chosen.insert(configurationOf(kernel, layouts, knobs));
    }
    return {chosen.begin(), chosen.end()};
  }

  /// `count` configurations of one family: knobs and layouts drawn.
  std::vector<Configuration> drawKnobs(const Kernel &kernel, const DrawnFamily &drawn,
                                       size_t count) {
    std::set<Configuration> chosen;
    const Expected<ConfigurationSpace, Reason> answer =
        drawn.family.family().space(kernel, findDevice(drawn.device));
    if (!answer) return {};
    const ConfigurationSpace &space = *answer;
    for (size_t attempt = 0; attempt < 4 * count && chosen.size() < count; ++attempt) {
      const LayoutTuple layouts = drawLayouts(space);
      chosen.insert(configurationOf(kernel, layouts, space.knobs[below(space.knobs.size())]));
    }
    return {chosen.begin(), chosen.end()};
  }

  void addDrawn(const std::string &group, const Kernel &kernel, DType dtype, size_t count) {
    for (const Configuration &configuration : draw(kernel, count))
      add(group, kernel, dtype, configuration);
  }

  /// One drawn configuration for every pair of an input's and an output's layouts.
  void addLayoutPairs(const std::string &group, const Kernel &kernel, DType dtype) {
    const size_t rank = kernel.values[kernel.inputs[0]].axes.size();
    for (const Layout &input : allDenseLayouts(rank))
      for (const Layout &output : allDenseLayouts(rank)) {
        std::vector<Configuration> legal;
        for (const Configuration &one :
             enumerate(kernel, device, {.inputs = {input}, .outputs = {output}}).legal)
          if (one.knobs.family().hasText()) legal.push_back(one);
        if (!legal.empty()) add(group, kernel, dtype, legal[below(legal.size())]);
      }
  }

  size_t below(size_t bound) { return size_t(random() % bound); }

  const Device &device = findDevice("h200");

private:
  LayoutTuple drawLayouts(const ConfigurationSpace &space) {
    if (!space.tuples.empty()) return space.tuples[below(space.tuples.size())];
    LayoutTuple layouts;
    for (const std::vector<Layout> &choices : space.choices)
      layouts.push_back(choices[below(choices.size())]);
    return layouts;
  }
  static Configuration configurationOf(const Kernel &kernel, const LayoutTuple &layouts,
                                       const Knobs &knobs) {
    const auto outputs = layouts.begin() + long(kernel.inputs.size());
    return {
        .inputs = {layouts.begin(), outputs}, .outputs = {outputs, layouts.end()}, .knobs = knobs};
  }

  std::vector<Case> &cases;
  std::mt19937_64 random{17};
};

inline Kernel typed(Kernel kernel, DType dtype) {
  for (Value &value : kernel.values) value.dtype = dtype;
  return kernel;
}

/// What adds cases: each has a collector for itself, and all of them run at once.
using AddCases = void (*)(Collector &);
/// Registers what adds cases, before main. Cases are in the order of these names, which differ.
struct CaseRegistration {
  CaseRegistration(const std::string &name, AddCases add);
};

}  // namespace weft::gputest
