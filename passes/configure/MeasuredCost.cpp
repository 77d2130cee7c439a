// Measured prices: rows of a profile, and the analytic model where there is none. Bytes and flop
// are always modelled.
//
// A row of a matrix product serves every kernel and every layout that is this product, one of a
// contraction with an epilogue every layout of the same form (kernel/ContractionRegion.h).
#include "passes/configure/CostModel.h"

#include "kernel/CanonicalNames.h"
#include "kernel/ContractionRegion.h"
#include "kernel/Error.h"
#include "kernel/HopperProduct.h"
#include "passes/configure/Family.h"
#include "passes/configure/Gaps.h"

#include <algorithm>
#include <mutex>
#include <set>

namespace weft {
namespace {

/// Of the rows with one family and layouts, how many are handed to selection: the best, and enough
/// for runners-up.
constexpr size_t keptPerLayouts = 4;

std::string_view placeOf(std::string_view line) {
  const LineParts parts = splitLine(line);
  return line.substr(
      0, static_cast<size_t>(parts.layouts.data() + parts.layouts.size() - line.data()));
}

class MeasuredCostModel : public CostModel {
public:
  MeasuredCostModel(const Device &device, Profile profile, std::string name, bool strict)
      : analytic(analyticCostModel(device)),
        profile(std::move(profile)),
        name(std::move(name)),
        strict(strict) {}

  Cost cost(const Kernel &kernel, const Configuration &configuration) const override {
    if (std::holds_alternative<ViewKnobs>(configuration.knobs))
      return analytic->cost(kernel, configuration);
    const ProfileRow *row = find(kernel, configuration);
    if (!row && strict)
      throw Error::strictMiss("{} has no row for kernel '{}', {}", name, kernel.name,
                              describe(kernel, configuration.knobs));
    return row ? priced(kernel, configuration, *row) : analytic->cost(kernel, configuration);
  }

  const std::vector<PricedConfiguration> &measured(const Kernel &kernel) const override {
    const CanonicalNames names(kernel);
    const std::string key =
        fmt::format("{}{}", canonicalText(kernel), fmt::join(names.axesInOrder(), ","));
    KnownRows &known = [&]() -> KnownRows & {
      const std::lock_guard lock(mutex);
      return cache[key];
    }();
    std::call_once(known.once, [&] { known.rows = rowsOf(kernel); });
    return known.rows;
  }

  std::vector<PricedConfiguration> measuredAs(const Kernel &kernel,
                                              const Configuration &configuration) const override {
    std::vector<PricedConfiguration> result;
    const ProfileKernel *rows = rowsFor(subjectOf(kernel, configuration));
    if (!rows) return result;
    const Places places = placesOf(*rows);
    const std::string line = configurationLine(kernel, configuration);
    const auto found = places.find(placeOf(line));
    if (found == places.end()) return result;
    for (const auto &[measured, row] : found->second) {
      const LineParts parts = splitLine(measured);
      Configuration other = configuration;
      other.knobs = parseKnobs(parts.family, parts.knobs, kernel);
      const Cost cost = priced(kernel, other, *row);
      result.push_back({std::move(other), cost});
    }
    return result;
  }

  const CostModel &modelled() const override { return *analytic; }
  const Device &device() const override { return analytic->device(); }
  std::string description() const override {
    return fmt::format("{} ({}, {} rows)", name, device().name, profile.rowCount());
  }
  bool hasMeasurements() const override { return true; }
  bool admitsModelled() const override { return !strict; }

private:
  const ProfileKernel *rowsFor(const ProfileSubject &subject) const {
    const auto found = profile.kernels.find(profileHash(subject.text));
    return found == profile.kernels.end() ? nullptr : &found->second;
  }

  const ProfileRow *find(const Kernel &kernel, const Configuration &configuration) const {
    const ProfileKernel *rows = rowsFor(subjectOf(kernel, configuration));
    if (!rows) return nullptr;
    const std::string line = configurationLine(kernel, configuration);
    if (const auto found = rows->rows.find(line); found != rows->rows.end())
      return found->second.status == RowStatus::failed ? nullptr : &found->second;
    if (!isFused(kernel, familyOf(configuration.knobs)) || hasGaps(kernel, configuration))
      return nullptr;
    const Forms forms = formsOf(kernel, *rows, familyOf(configuration.knobs));
    const auto found = forms.find(contractionForm(kernel, configuration));
    if (found == forms.end()) return nullptr;
    const auto same = std::ranges::find(found->second, splitLine(line).knobs,
                                        [](const auto &one) { return splitLine(one.first).knobs; });
    return same == found->second.end() ? nullptr : same->second;
  }

  static bool isFused(const Kernel &kernel, std::string_view family) {
    return isProductFamily(family) && !isTimedAsProduct(kernel, family) &&
           contractionRegion(kernel).region;
  }

  /// Rows of one family by their form, each list with the fastest first.
  using Forms = std::map<std::string, std::vector<std::pair<std::string_view, const ProfileRow *>>>;
  Forms formsOf(const Kernel &kernel, const ProfileKernel &rows, std::string_view family) const {
    Forms forms;
    for (const auto &[line, row] : rows.rows) {
      if (row.status == RowStatus::failed || splitLine(line).family != family) continue;
      const Configuration configuration = parsed(line, kernel);
      if (!hasGaps(kernel, configuration))
        forms[contractionForm(kernel, configuration)].emplace_back(line, &row);
    }
    for (auto &[form, list] : forms)
      std::ranges::stable_sort(list, {}, [](const auto &one) { return one.second->seconds; });
    return forms;
  }

  Cost priced(const Kernel &kernel, const Configuration &configuration,
              const ProfileRow &row) const {
    Cost result = analytic->cost(kernel, configuration);
    const int version = familyVersion(familyOf(configuration.knobs));
    result.stale = row.familyVersion != version;
    if (result.stale && strict)
      throw Error::strictMiss(
          "{}: the row of kernel '{}' is of version {} of its family, which has {}", name,
          kernel.name, row.familyVersion, version);
    result.seconds = row.seconds;
    result.source = row.source;
    result.measured = true;
    return result;
  }

  /// Rows by family and layouts, each list with the fastest first.
  using Places =
      std::map<std::string_view, std::vector<std::pair<std::string_view, const ProfileRow *>>>;
  static Places placesOf(const ProfileKernel &rows) {
    Places places;
    for (const auto &[line, row] : rows.rows)
      if (row.status != RowStatus::failed) places[placeOf(line)].emplace_back(line, &row);
    for (auto &[place, list] : places) {
      std::stable_sort(list.begin(), list.end(), [](const auto &a, const auto &b) {
        return a.second->seconds < b.second->seconds;
      });
      if (list.size() > keptPerLayouts) list.resize(keptPerLayouts);
    }
    return places;
  }

  std::vector<PricedConfiguration> rowsOf(const Kernel &kernel) const {
    std::vector<PricedConfiguration> result;
    const auto add = [&](Configuration configuration, const ProfileRow &row) {
      // What a tile may hold has changed before: a row of one that is not emitted any more is no
      // offer.
      if (const auto *tile = std::get_if<HopperContractionKnobs>(&configuration.knobs);
          tile &&
          !hopperRefusal(kernel, configuration, *tile, device().sharedMemoryPerBlock).empty())
        return;
      const Cost cost = priced(kernel, configuration, row);
      result.push_back({std::move(configuration), cost});
    };
    if (const ProfileKernel *rows = rowsFor(kernelSubject(kernel)))
      for (const auto &[place, list] : placesOf(*rows))
        for (const auto &[line, row] : list)
          if (Configuration configuration = parsed(line, kernel); !hasGaps(kernel, configuration))
            add(std::move(configuration), *row);
    if (!contractionValues(kernel)) return result;
    const auto addSpace = [&](const ConfigurationSpace &space) {
      if (isTimedAsProduct(kernel, space.family)) addProducts(kernel, space, add);
      else if (isFused(kernel, space.family)) addForms(kernel, space, add);
    };
    const std::vector<ConfigurationSpace> spaces = configurationSpaces(kernel, device());
    for (const ConfigurationSpace &space : spaces) addSpace(space);
    if (haveSeveralStrides(kernel, spaces))
      if (const auto space = severalStridesSpace(kernel, device())) addSpace(*space);
    return result;
  }

  /// Whether a row of a contraction has several strides along a group of axes. Their layouts are
  /// many: they are listed where this is so.
  bool haveSeveralStrides(const Kernel &kernel,
                          const std::vector<ConfigurationSpace> &spaces) const {
    const std::string_view family = familyOf(HopperContractionKnobs{});
    const auto space = std::ranges::find(spaces, family, &ConfigurationSpace::family);
    if (space == spaces.end()) return false;
    if (isTimedAsProduct(kernel, family)) {
      const ProfileKernel *rows = rowsFor(
          subjectOf(kernel, toConfiguration(kernel, space->tuples.front(), space->knobs.front())));
      return rows && std::ranges::any_of(rows->rows, [](const auto &row) {
               return hasSeveralStrides(splitLine(row.first).layouts);
             });
    }
    const ProfileKernel *rows = isFused(kernel, family) ? rowsFor(kernelSubject(kernel)) : nullptr;
    return rows && std::ranges::any_of(formsOf(kernel, *rows, family), [](const auto &form) {
             return hasSeveralStrides(std::string_view(form.first).substr(0, form.first.find(' ')));
           });
  }

  /// Under layouts without rows of their own, the rows of their form.
  template <typename Add>
  void addForms(const Kernel &kernel, const ConfigurationSpace &space, Add &&add) const {
    const ProfileKernel *rows = rowsFor(kernelSubject(kernel));
    if (!rows) return;
    const Places places = placesOf(*rows);
    const Forms forms = formsOf(kernel, *rows, space.family);
    if (forms.empty()) return;
    for (const LayoutTuple &tuple : space.tuples) {
      Configuration configuration = toConfiguration(kernel, tuple, space.knobs.front());
      if (places.contains(fmt::format("{} {}", space.family, placeText(kernel, configuration))))
        continue;
      const auto found = forms.find(contractionForm(kernel, configuration));
      if (found == forms.end()) continue;
      size_t taken = 0;
      std::set<std::string_view> seen;  // several layouts of one form may have rows
      for (const auto &[line, row] : found->second) {
        const LineParts parts = splitLine(line);
        if (!seen.insert(parts.knobs).second || ++taken > keptPerLayouts) continue;
        configuration.knobs = parseKnobs(parts.family, parts.knobs, kernel);
        add(configuration, *row);
      }
    }
  }

  template <typename Add>
  void addProducts(const Kernel &kernel, const ConfigurationSpace &space, Add &&add) const {
    Places places;
    const ProfileKernel *rows = nullptr;
    for (const LayoutTuple &tuple : space.tuples) {
      Configuration configuration{
          .inputs = {tuple[0], tuple[1]}, .outputs = {tuple[2]}, .knobs = space.knobs.front()};
      const auto product = matrixProduct(kernel, configuration);
      if (!product && !space.hasSeveralStrides) continue;
      if (!rows) {  // one subject: the layouts do not change the extents
        rows = rowsFor(subjectOf(kernel, configuration));
        if (!rows) return;
        places = placesOf(*rows);
      }
      const auto found = places.find(
          fmt::format("{} {}", space.family,
                      product ? strideText(*product) : placeText(kernel, configuration)));
      if (found == places.end()) continue;
      for (const auto &[line, row] : found->second) {
        const LineParts parts = splitLine(line);
        configuration.knobs = parseKnobs(parts.family, parts.knobs, kernel);
        add(configuration, *row);
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
  Profile profile;
  std::string name;
  bool strict;
  mutable std::mutex mutex;  ///< variants are selected in parallel
  struct KnownRows {
    std::once_flag once;
    std::vector<PricedConfiguration> rows;
  };
  mutable std::map<std::string, KnownRows> cache;
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
