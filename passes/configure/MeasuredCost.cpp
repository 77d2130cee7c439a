// Measured prices: measurements of a profile, and the analytic model where there is none. Bytes and
// flop are always modelled.
//
// A measurement of a GEMM serves every kernel and every layout that is this GEMM, one of a
// contraction with an epilogue every layout of the same form (kernel/ContractionRegion.h). Where a
// family's time hardly depends on layouts, a measurement also prices the other layouts
// (Family::marginOfOtherLayouts): those prices are estimates.
#include "passes/configure/CostModel.h"

#include "kernel/CanonicalNames.h"
#include "kernel/ContractionRegion.h"
#include "kernel/Error.h"
#include "passes/configure/Family.h"
#include "passes/configure/Margins.h"
#include "passes/configure/StridedViews.h"

#include <algorithm>
#include <mutex>
#include <set>

namespace weft {
namespace {

/// Of the measurements with one family and layouts, how many are handed to selection: the best, and
/// enough for runners-up.
constexpr size_t keptPerLayouts = 4;

std::string_view placeOf(std::string_view line) {
  const LineFields fields = splitLine(line);
  return line.substr(
      0, static_cast<size_t>(fields.layouts.data() + fields.layouts.size() - line.data()));
}

/// The analytic model as it takes part beside measurements.
class EstimateBesideMeasurements : public CostModel {
public:
  EstimateBesideMeasurements(const CostModel &analytic, bool areThereAny)
      : analytic(analytic), margin(areThereAny ? margins::besideMeasurements : 0) {}
  Cost cost(const Kernel &kernel, const Configuration &configuration) const override {
    const Family &family = configuration.knobs.family();
    const Cost cost = analytic.cost(kernel, configuration);
    return family.isView ? cost : margins::added(cost, separableMargin());
  }
  const Device &device() const override { return analytic.device(); }
  bool isSeparable(const Kernel &kernel) const override { return analytic.isSeparable(kernel); }
  double separableMargin() const override { return margin; }
  PriceSource source() const override { return analytic.source(); }
  std::string identity() const override {
    return profileHash(fmt::format("{} with {}", analytic.identity(), margin));
  }

private:
  const CostModel &analytic;
  double margin;  ///< of an empty profile none: estimates compete with each other alone
};

class MeasuredCostModel : public CostModel {
public:
  MeasuredCostModel(const Device &device, Profile profile, std::string name, bool strict)
      : analytic(analyticCostModel(device)),
        estimates(*analytic, !profile.kernels.empty()),
        profile(std::move(profile)),
        name(std::move(name)),
        strict(strict) {}

  Cost cost(const Kernel &kernel, const Configuration &configuration) const override {
    if (configuration.knobs.family().isView) return analytic->cost(kernel, configuration);
    if (const ProfileMeasurement *measurement = find(kernel, configuration))
      return priced(kernel, configuration, *measurement);
    if (strict)
      throw Error::strictMiss("{} has no measurement for kernel '{}', {}", name, kernel.name,
                              describe(kernel, configuration.knobs));
    if (configuration.knobs.family().marginOfOtherLayouts)
      for (const PricedConfiguration &row : measured(kernel))
        if (row.cost.measured && row.configuration.knobs == configuration.knobs)
          return asUnder(kernel, configuration, row);
    return estimates.cost(kernel, configuration);
  }

  const std::vector<PricedConfiguration> &measured(const Kernel &kernel) const override {
    const CanonicalNames names(kernel);
    const std::string key =
        fmt::format("{}{}", canonicalText(kernel), fmt::join(names.axesInOrder(), ","));
    KnownMeasurements &known = [&]() -> KnownMeasurements & {
      const std::lock_guard lock(mutex);
      return cache[key];
    }();
    std::call_once(known.once, [&] { known.measurements = measurementsOf(kernel); });
    return known.measurements;
  }

  std::vector<PricedConfiguration> measuredAs(const Kernel &kernel,
                                              const Configuration &configuration) const override {
    std::vector<PricedConfiguration> result;
    const ProfileKernel *measurements = measurementsFor(subjectOf(kernel, configuration));
    if (!measurements) return result;
    const Places places = placesOf(*measurements);
    const std::string line = configurationLine(kernel, configuration);
    const auto found = places.find(placeOf(line));
    if (found == places.end()) return result;
    for (const auto &[measured, measurement] : found->second) {
      const LineFields fields = splitLine(measured);
      Configuration other = configuration;
      other.knobs = parseKnobs(fields.family, fields.knobs, kernel);
      if (!device().mayBeNondeterministic && !isDeterministic(other.knobs)) continue;
      const Cost cost = priced(kernel, other, *measurement);
      result.push_back({std::move(other), cost});
    }
    return result;
  }

  const CostModel &modelled() const override { return estimates; }
  const Device &device() const override { return analytic->device(); }
  PriceSource source() const override {
    return {
        .name = name,
        .details = fmt::format("{}, {} measurements", device().name, profile.measurementCount())};
  }
  std::string identity() const override {
    std::call_once(hashed, [&] {
      uint64_t all = fnv1a(analytic->identity());
      for (const auto &[subject, kernel] : profile.kernels) {
        all = fnv1a(subject, all);
        for (const auto &[line, one] : kernel.measurements)
          all = fnv1a(
              fmt::format("{} {} {} {};", line, nameOf(one.status), one.seconds, one.familyVersion),
              all);
      }
      hash = hashText(all);
    });
    return hash;
  }
  bool hasMeasurements() const override { return true; }
  bool admitsModelled() const override { return !strict; }

private:
  const ProfileKernel *measurementsFor(const ProfileSubject &subject) const {
    const auto found = profile.kernels.find(profileHash(subject.text));
    return found == profile.kernels.end() ? nullptr : &found->second;
  }

  const ProfileMeasurement *find(const Kernel &kernel, const Configuration &configuration) const {
    const ProfileKernel *measurements = measurementsFor(subjectOf(kernel, configuration));
    if (!measurements) return nullptr;
    const std::string line = configurationLine(kernel, configuration);
    if (const auto found = measurements->measurements.find(line);
        found != measurements->measurements.end())
      return found->second.status == MeasurementStatus::failed ? nullptr : &found->second;
    if (!isFused(kernel, configuration.knobs.family()) || hasStridedView(kernel, configuration))
      return nullptr;
    const Forms forms = formsOf(kernel, *measurements, configuration.knobs.family());
    const auto found = forms.find(contractionForm(kernel, configuration));
    if (found == forms.end()) return nullptr;
    const auto &list = found->second.list;
    const auto same = std::ranges::find(list, splitLine(line).knobs,
                                        [](const auto &one) { return splitLine(one.first).knobs; });
    return same == list.end() ? nullptr : same->second;
  }

  static bool isFused(const Kernel &kernel, const Family &family) {
    return family.isGemm && !isTimedAsGemm(kernel, family) && contractionRegion(kernel);
  }

  /// The measurements of one form, by their lines, the fastest first.
  struct MeasuredForm {
    bool hasSeveralStrides = false;  ///< along a group of axes
    std::vector<std::pair<std::string_view, const ProfileMeasurement *>> list;
  };
  /// Those of one family.
  using Forms = std::map<std::string, MeasuredForm>;
  Forms formsOf(const Kernel &kernel, const ProfileKernel &measurements,
                const Family &family) const {
    Forms forms;
    for (const auto &[line, measurement] : measurements.measurements) {
      if (measurement.status == MeasurementStatus::failed || splitLine(line).family != family.name)
        continue;
      const Configuration configuration = parsed(line, kernel);
      if (hasStridedView(kernel, configuration)) continue;
      MeasuredForm &form = forms[contractionForm(kernel, configuration)];
      form.list.emplace_back(line, &measurement);
      if (form.list.size() == 1 && !stridedBatchedGemm(kernel, configuration))
        form.hasSeveralStrides = hasSeveralStrides(multiStrideGemm(kernel, configuration).value());
    }
    for (auto &[text, form] : forms)
      std::ranges::stable_sort(form.list, {}, [](const auto &one) { return one.second->seconds; });
    return forms;
  }

  Cost priced(const Kernel &kernel, const Configuration &configuration,
              const ProfileMeasurement &measurement) const {
    Cost result = analytic->cost(kernel, configuration);
    const int version = configuration.knobs.family().version;
    result.stale = measurement.familyVersion != version;
    if (result.stale && strict)
      throw Error::strictMiss(
          "{}: the measurement of kernel '{}' is of version {} of its family, which has {}", name,
          kernel.name, measurement.familyVersion, version);
    result.seconds = measurement.seconds;
    result.margin = 0;
    result.source = measurement.source;
    result.measured = true;
    return result;
  }

  /// Rows by family and layouts, each list with the fastest first.
  using Places = std::map<std::string_view,
                          std::vector<std::pair<std::string_view, const ProfileMeasurement *>>>;
  static Places placesOf(const ProfileKernel &measurements) {
    Places places;
    for (const auto &[line, measurement] : measurements.measurements)
      if (measurement.status != MeasurementStatus::failed)
        places[placeOf(line)].emplace_back(line, &measurement);
    for (auto &[place, list] : places) {
      std::stable_sort(list.begin(), list.end(), [](const auto &a, const auto &b) {
        return a.second->seconds < b.second->seconds;
      });
      if (list.size() > keptPerLayouts) list.resize(keptPerLayouts);
    }
    return places;
  }

  std::vector<PricedConfiguration> measurementsOf(const Kernel &kernel) const {
    std::vector<PricedConfiguration> result;
    const auto add = [&](Configuration configuration, const ProfileMeasurement &measurement) {
      // What a tile may hold has changed before: a measurement of one that is not emitted any more
      // is no offer.
      if (!device().mayBeNondeterministic && !isDeterministic(configuration.knobs)) return;
      if (const auto rejection = configuration.knobs.family().rejection;
          rejection && !rejection(kernel, configuration, device()).empty())
        return;
      const Cost cost = priced(kernel, configuration, measurement);
      result.push_back({std::move(configuration), cost});
    };
    std::vector<std::pair<Configuration, const ProfileMeasurement *>> onViews;
    if (const ProfileKernel *measurements = measurementsFor(kernelSubject(kernel)))
      for (const auto &[place, list] : placesOf(*measurements))
        for (const auto &[line, measurement] : list) {
          Configuration configuration = parsed(line, kernel);
          if (hasStridedView(kernel, configuration))
            onViews.emplace_back(std::move(configuration), measurement);
          else add(std::move(configuration), *measurement);
        }
    if (contractionValues(kernel)) addFromOthers(kernel, result, add);
    if (!result.empty())
      for (const auto &[configuration, measurement] : onViews)
        offerOnViews(kernel, configuration, *measurement, result);
    return result;
  }

  /// Of a contraction, by measurements of the same GEMM, of the same form or under other layouts.
  template <typename Add>
  void addFromOthers(const Kernel &kernel, std::vector<PricedConfiguration> &result,
                     Add &&add) const {
    const auto addSpace = [&](const ConfigurationSpace &space) {
      if (isTimedAsGemm(kernel, *space.family)) addGemms(kernel, space, add);
      else if (isFused(kernel, *space.family)) addForms(kernel, space, add);
    };
    const std::vector<ConfigurationSpace> spaces = configurationSpaces(kernel, device());
    for (const ConfigurationSpace &space : spaces) addSpace(space);
    if (!strict)
      for (const ConfigurationSpace &space : spaces)
        if (space.family->marginOfOtherLayouts) addOtherLayouts(kernel, space, result);
    if (haveSeveralStrides(kernel, spaces))
      if (const auto space = severalStridesSpace(kernel, device())) addSpace(*space);
  }

  /// A plan whose kernel reads views takes measurements on views. Selection knows orders of axes
  /// alone: it gets the lesser price of both, so that no plan is faster than its bound.
  void offerOnViews(const Kernel &kernel, const Configuration &onViews,
                    const ProfileMeasurement &measurement,
                    std::vector<PricedConfiguration> &result) const {
    if (!device().mayBeNondeterministic && !isDeterministic(onViews.knobs)) return;
    Configuration contiguous = asContiguous(kernel, onViews);
    if (const auto rejection = contiguous.knobs.family().rejection;
        rejection && !rejection(kernel, contiguous, device()).empty())
      return;
    Cost cost = priced(kernel, contiguous, measurement);
    const auto same = std::ranges::find(result, contiguous, &PricedConfiguration::configuration);
    if (same != result.end()) {
      same->cost.seconds = std::min(same->cost.seconds, cost.seconds);
      return;
    }
    cost.measured = false;
    result.push_back({std::move(contiguous), std::move(cost)});
  }

  /// Whether a measurement of a contraction has several strides along a group of axes. Their
  /// layouts are many: they are listed where this is so.
  bool haveSeveralStrides(const Kernel &kernel,
                          const std::vector<ConfigurationSpace> &spaces) const {
    const auto space = std::ranges::find_if(spaces, [](const ConfigurationSpace &one) {
      return one.family->severalStrides != nullptr;
    });
    if (space == spaces.end()) return false;
    const Family &family = *space->family;
    if (isTimedAsGemm(kernel, family)) {
      const ProfileKernel *measurements = measurementsFor(
          subjectOf(kernel, toConfiguration(kernel, space->tuples.front(), space->knobs.front())));
      return measurements &&
             std::ranges::any_of(measurements->measurements, [](const auto &measurement) {
               const auto strides = parseStrides(splitLine(measurement.first).layouts);
               return strides && hasSeveralStrides(*strides);
             });
    }
    const ProfileKernel *measurements =
        isFused(kernel, family) ? measurementsFor(kernelSubject(kernel)) : nullptr;
    return measurements &&
           std::ranges::any_of(formsOf(kernel, *measurements, family),
                               [](const auto &form) { return form.second.hasSeveralStrides; });
  }

  /// Under layouts without their own measurements, the measurements of their form.
  template <typename Add>
  void addForms(const Kernel &kernel, const ConfigurationSpace &space, Add &&add) const {
    const ProfileKernel *measurements = measurementsFor(kernelSubject(kernel));
    if (!measurements) return;
    const Places places = placesOf(*measurements);
    const Forms forms = formsOf(kernel, *measurements, *space.family);
    if (forms.empty()) return;
    for (const LayoutTuple &tuple : space.tuples) {
      Configuration configuration = toConfiguration(kernel, tuple, space.knobs.front());
      if (places.contains(fmt::format("{} {}", *space.family, placeText(kernel, configuration))))
        continue;
      const auto found = forms.find(contractionForm(kernel, configuration));
      if (found == forms.end()) continue;
      size_t taken = 0;
      std::set<std::string_view> seen;  // several layouts of one form may have measurements
      for (const auto &[line, measurement] : found->second.list) {
        const LineFields fields = splitLine(line);
        if (!seen.insert(fields.knobs).second || ++taken > keptPerLayouts) continue;
        configuration.knobs = parseKnobs(fields.family, fields.knobs, kernel);
        add(configuration, *measurement);
      }
    }
  }

  template <typename Add>
  void addGemms(const Kernel &kernel, const ConfigurationSpace &space, Add &&add) const {
    Places places;
    const ProfileKernel *measurements = nullptr;
    for (const LayoutTuple &tuple : space.tuples) {
      Configuration configuration{
          .inputs = {tuple[0], tuple[1]}, .outputs = {tuple[2]}, .knobs = space.knobs.front()};
      const auto gemm = stridedBatchedGemm(kernel, configuration);
      if (!gemm && !space.hasSeveralStrides) continue;
      if (!measurements) {  // one subject: the layouts do not change the extents
        measurements = measurementsFor(subjectOf(kernel, configuration));
        if (!measurements) return;
        places = placesOf(*measurements);
      }
      const auto found = places.find(fmt::format(
          "{} {}", *space.family, gemm ? strideText(*gemm) : placeText(kernel, configuration)));
      if (found == places.end()) continue;
      for (const auto &[line, measurement] : found->second) {
        const LineFields fields = splitLine(line);
        configuration.knobs = parseKnobs(fields.family, fields.knobs, kernel);
        add(configuration, *measurement);
      }
    }
  }

  /// The estimate, times measured over estimated of the same knobs under other layouts.
  Cost asUnder(const Kernel &kernel, const Configuration &configuration,
               const PricedConfiguration &row) const {
    Cost result = analytic->cost(kernel, configuration);
    result.margin = 0;
    result.seconds *= row.cost.seconds / analytic->cost(kernel, row.configuration).seconds;
    return margins::added(result, configuration.knobs.family().marginOfOtherLayouts.value());
  }

  /// Under layouts without measurements, what the fastest ones of others say of them.
  void addOtherLayouts(const Kernel &kernel, const ConfigurationSpace &space,
                       std::vector<PricedConfiguration> &result) const {
    const auto layoutsOf = [](const Configuration &configuration) {
      LayoutTuple layouts = configuration.inputs;
      layouts.insert(layouts.end(), configuration.outputs.begin(), configuration.outputs.end());
      return layouts;
    };
    std::vector<PricedConfiguration> rows;
    std::set<LayoutTuple> known;
    for (const PricedConfiguration &row : result)
      if (row.configuration.knobs.family() == *space.family) {
        rows.push_back(row);
        known.insert(layoutsOf(row.configuration));
      }
    std::ranges::stable_sort(rows, {}, [](const auto &row) { return row.cost.seconds; });
    std::vector<PricedConfiguration> fastest;  // one of each knobs
    for (const PricedConfiguration &row : rows)
      if (fastest.size() < keptPerLayouts &&
          std::ranges::none_of(fastest, [&](const PricedConfiguration &one) {
            return one.configuration.knobs == row.configuration.knobs;
          }))
        fastest.push_back(row);
    for (const LayoutTuple &tuple : space.tuples) {
      if (known.contains(tuple)) continue;
      for (const PricedConfiguration &row : fastest) {
        if (!isUseful(kernel, tuple, row.configuration.knobs)) continue;
        Configuration configuration = toConfiguration(kernel, tuple, row.configuration.knobs);
        const Cost cost = asUnder(kernel, configuration, row);
        result.push_back({std::move(configuration), cost});
      }
    }
  }

  Configuration parsed(std::string_view line, const Kernel &kernel) const {
    try {
      return parseConfiguration(line, kernel);
    } catch (const Error &error) {
      throw Error::badInput("{}: kernel '{}': {}", name, kernel.name, error.what());
    }
  }

  std::unique_ptr<CostModel> analytic;
  EstimateBesideMeasurements estimates;
  Profile profile;
  std::string name;
  bool strict;
  mutable std::mutex mutex;  ///< variants are selected in parallel
  struct KnownMeasurements {
    std::once_flag once;
    std::vector<PricedConfiguration> measurements;
  };
  mutable std::map<std::string, KnownMeasurements> cache;
  mutable std::once_flag hashed;
  mutable std::string hash;  ///< identity(), which plans ask for more than once
};

}  // namespace

std::unique_ptr<CostModel> measuredCostModel(const Device &device, Profile profile,
                                             const std::string &name, bool strict) {
  if (profile.device != device.name)
    throw Error::badInput("{} was measured on '{}', not on '{}'", name, profile.device,
                          device.name);
  return std::make_unique<MeasuredCostModel>(device, std::move(profile), name, strict);
}

}  // namespace weft
