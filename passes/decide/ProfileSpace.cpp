// What to measure; see ProfileSpace.h.
#include "passes/decide/ProfileSpace.h"

#include "kernel/CanonicalNames.h"
#include "kernel/ConfigurationText.h"
#include "kernel/ContractionRegion.h"
#include "kernel/Error.h"
#include "kernel/Profile.h"
#include "passes/configure/OperandSums.h"
#include "passes/select/Prices.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

namespace weft::decision {
namespace {

/// A distinct kernel with the layouts that its tensors keep in any variant.
struct Gathered {
  Kernel kernel;
  std::vector<std::set<Layout>> layouts =
      {};  ///< per operand; empty if the kernel is a transpose and nothing else
  std::vector<std::set<Layout>> pinned =
      {};  ///< per operand: layouts that some variant pins; empty: free
  std::set<Layout> transposed =
      {};  ///< of tensors that may be transposed by it: all pairs are wanted
};

void gather(const Kernel &kernel, const std::vector<int> &tensors, const select::Prices &prices,
            std::map<std::string, Gathered> &kernels) {
  const CanonicalNames names(kernel);
  Gathered &gathered =
      kernels.try_emplace(canonicalText(kernel), Gathered{.kernel = kernel}).first->second;
  if (gathered.layouts.empty()) {
    gathered.layouts.resize(tensors.size());
    gathered.pinned.resize(tensors.size());
  }
  for (size_t operand = 0; operand < tensors.size(); ++operand) {
    const std::vector<Layout> &kept = prices.layouts(tensors[operand]);
    gathered.layouts[operand].insert(kept.begin(), kept.end());
    if (const auto pin = prices.pinned(tensors[operand]);
        pin && !prices.isFreeToPack(tensors[operand]))
      gathered.pinned[operand].insert(kept[size_t(*pin)]);
  }
}

/// Adds the kernels of one variant.
void gather(const select::Problem &problem, const select::Options &options, const CostModel &model,
            std::map<std::string, Gathered> &kernels) {
  select::Statistics statistics;
  const select::Prices prices(problem, model, options, statistics);
  for (size_t c = 0; c < problem.candidates.size(); ++c) {
    const select::Candidate &candidate = problem.candidates[c];
    if (!prices.isUsable(int(c)) || prices.candidate(int(c)).isFolded) continue;
    std::vector<int> tensors = candidate.inputs;
    tensors.insert(tensors.end(), candidate.outputs.begin(), candidate.outputs.end());
    gather(candidate.kernel, tensors, prices, kernels);
    kernels.at(canonicalText(candidate.kernel)).kernel.name =
        candidate.kernel.name.empty() ? candidate.name : candidate.kernel.name;
  }
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    if (prices.isFreeToPack(int(t))) continue;
    const Kernel transpose = select::transposeKernel(problem.tensors[t]);
    Gathered &gathered =
        kernels.try_emplace(canonicalText(transpose), Gathered{.kernel = transpose}).first->second;
    gathered.transposed.insert(prices.layouts(int(t)).begin(), prices.layouts(int(t)).end());
  }
}

/// Of every variant that has kernels for all its ops: selection drops the others.
std::map<std::string, Gathered> gatherAll(const std::vector<select::Problem> &problems,
                                          const select::Options &options, const CostModel &model) {
  std::map<std::string, Gathered> kernels;
  std::optional<Error> failure;
  bool hasGathered = problems.empty();
  for (const select::Problem &problem : problems) {
    try {
      gather(problem, options, model, kernels);
      hasGathered = true;
    } catch (const Error &error) {
      if (error.kind != ErrorKind::unsupported) throw;
      failure.emplace(error);
    }
  }
  if (!hasGathered) throw *failure;
  std::erase_if(kernels, [](const auto &entry) {
    return entry.second.layouts.empty() && entry.second.transposed.size() < 2;
  });
  return kernels;
}

/// Knobs that differ only in the number of threads have one: the model tells them apart least well.
/// Nothing where the family has no such knobs.
std::optional<KnobStructure> structureOf(const Knobs &knobs) {
  const auto structure = knobs.family().structure;
  if (!structure) return std::nullopt;
  return structure(knobs);
}

/// A space that lists its layouts in place of their product.
ConfigurationSpace listed(ConfigurationSpace space) {
  std::vector<LayoutTuple> tuples;
  forEachTuple(space, [&](const LayoutTuple &tuple) {
    tuples.push_back(tuple);
    return true;
  });
  space.choices.clear();
  space.tuples = std::move(tuples);
  return space;
}

/// Prunes the space of one kernel.
class KernelPruning {
public:
  KernelPruning(const Gathered &gathered, const CostModel &model,
                const ProfileSpaceOptions &options, ProfileSpace &result)
      : gathered(gathered),
        kernel(gathered.kernel),
        model(model),
        options(options),
        result(result) {}

  void run() {
    space.kernel = kernel;
    space.name = kernel.name;
    for (const ConfigurationSpace &family : everySpace(kernel, model.device())) {
      if (family.family->isView || !isAsked(*family.family)) continue;
      space.legal += countConfigurations(kernel, family);
      if (!family.tuples.empty()) addTuples(family);
      else if (family.choices.empty()) continue;
      else if (family.family->operandSums) addCombinations(family);
      else addTuples(listed(family));
    }
    if (families.empty() && !options.families.empty()) return;
    space.combinations = places.size();
    std::erase_if(places, [&](const Place &place) { return !(place.seconds < select::infinite); });
    std::stable_sort(places.begin(), places.end(),
                     [](const Place &a, const Place &b) { return a.seconds < b.seconds; });
    keepPlaces();
    space.layouts = places.size();
    space.pairs = gathered.transposed.empty()
                      ? 0
                      : gathered.transposed.size() * (gathered.transposed.size() - 1);
    if (!places.empty()) measurePlaces();
    result.kernels.push_back(std::move(space));
  }

private:
  /// One family under one layout an operand.
  struct Place {
    size_t family;
    LayoutTuple tuple;
    double seconds;                  ///< of the best knobs
    std::vector<size_t> knobs = {};  ///< those worth pricing, best first
  };

  bool isAsked(const Family &family) const {
    return options.families.empty() ||
           std::ranges::find(options.families, family.name) != options.families.end();
  }

  bool isTranspose(const LayoutTuple &tuple) const {
    return tuple.size() == 2 && tuple[0] != tuple[1] && gathered.transposed.contains(tuple[0]) &&
           gathered.transposed.contains(tuple[1]);
  }
  bool isKept(const LayoutTuple &tuple) const {
    if (isTranspose(tuple)) return true;
    for (size_t operand = 0; operand < tuple.size(); ++operand)
      if (gathered.layouts.empty() || !gathered.layouts[operand].contains(tuple[operand]))
        return false;
    return true;
  }
  /// The layouts of an operand that some combination is wanted with.
  bool isWanted(size_t operand, const Layout &layout) const {
    return gathered.transposed.contains(layout) ||
           (!gathered.layouts.empty() && gathered.layouts[operand].contains(layout));
  }
  /// Whether every operand that some variant pins has a pinned layout.
  bool meetsPins(const LayoutTuple &tuple) const {
    for (size_t operand = 0; operand < gathered.pinned.size(); ++operand)
      if (!gathered.pinned[operand].empty() && !gathered.pinned[operand].contains(tuple[operand]))
        return false;
    return true;
  }

  void addTuples(const ConfigurationSpace &family) {
    families.push_back(family);
    for (const LayoutTuple &tuple : family.tuples) {
      if (!isKept(tuple)) continue;
      std::vector<std::pair<double, size_t>> priced;
      for (size_t k = 0; k < family.knobs.size(); ++k)
        if (isUseful(kernel, tuple, family.knobs[k]))
          priced.emplace_back(
              model.cost(kernel, toConfiguration(kernel, tuple, family.knobs[k])).seconds, k);
      std::sort(priced.begin(), priced.end());
      Place place{.family = families.size() - 1,
                  .tuple = tuple,
                  .seconds = priced.empty() ? select::infinite : priced[0].first};
      for (const auto &[seconds, knobs] : priced) place.knobs.push_back(knobs);
      places.push_back(std::move(place));
    }
  }

  void addCombinations(const ConfigurationSpace &family) {
    families.push_back(family);
    std::vector<std::vector<Layout>> lists;
    for (size_t operand = 0; operand < family.choices.size(); ++operand) {
      lists.emplace_back();
      for (const Layout &layout : family.choices[operand])
        if (isWanted(operand, layout)) lists.back().push_back(layout);
      if (lists.back().empty()) return;
    }
    const auto sumsOf = [&] {
      return family.family->operandSums(kernel, model.device(), model.separableMargin(), family,
                                        lists);
    };
    trim(lists, *sumsOf());
    const std::unique_ptr<OperandSums> sums = sumsOf();
    const OperandSums &table = *sums;
    std::vector<int> choice(lists.size(), 0);
    for (bool more = true; more; more = advance(choice, lists)) {
      std::vector<std::pair<double, size_t>> rows;
      for (size_t row = 0; row < table.knobsCount(); ++row)
        if (const double seconds = table.seconds(row, choice); seconds < select::infinite)
          rows.emplace_back(seconds, size_t(table.knobsOf(row)));
      std::sort(rows.begin(), rows.end());
      Place place{.family = families.size() - 1,
                  .tuple = {},
                  .seconds = rows.empty() ? select::infinite : rows[0].first};
      for (size_t operand = 0; operand < lists.size(); ++operand)
        place.tuple.push_back(lists[operand][size_t(choice[operand])]);
      if (!isKept(place.tuple)) continue;
      for (size_t i = 0; i < rows.size() && i < options.mostKnobs; ++i)
        place.knobs.push_back(rows[i].second);
      places.push_back(std::move(place));
    }
  }

  /// Leaves each operand's best layouts, and those that are pinned, so that all combinations can be
  /// visited.
  void trim(std::vector<std::vector<Layout>> &lists, const OperandSums &table) const {
    constexpr double mostCombinations = 8192;
    for (size_t operand = 0; operand < lists.size(); ++operand) {
      std::vector<std::tuple<bool, double, Layout>> ranked;  // pinned ones first
      for (size_t l = 0; l < lists[operand].size(); ++l) {
        double seconds = select::infinite;
        for (size_t row = 0; row < table.knobsCount(); ++row)
          seconds = std::min(seconds, table.best(row, int(operand), int(l)));
        const bool isPinned = operand < gathered.pinned.size() &&
                              gathered.pinned[operand].contains(lists[operand][l]);
        ranked.emplace_back(!isPinned, seconds, lists[operand][l]);
      }
      std::sort(ranked.begin(), ranked.end());
      for (size_t l = 0; l < ranked.size(); ++l) lists[operand][l] = std::get<2>(ranked[l]);
    }
    const auto combinations = [&] {
      double product = 1;
      for (const auto &layouts : lists) product *= double(layouts.size());
      return product;
    };
    while (combinations() > mostCombinations)
      std::ranges::max_element(lists, {}, [](const auto &layouts) {
        return layouts.size();
      })->pop_back();
  }

  static bool advance(std::vector<int> &choice, const std::vector<std::vector<Layout>> &lists) {
    for (size_t i = choice.size(); i-- > 0;) {
      if (size_t(++choice[i]) < lists[i].size()) return true;
      choice[i] = 0;
    }
    return false;
  }

  /// Whether layouts of the same form were kept before: their measurements serve these, too.
  bool isOfKeptForm(const Place &place) {
    const Family &family = *families[place.family].family;
    if (!family.isGemm || isTimedAsGemm(kernel, family) || !contractionRegion(kernel)) return false;
    const Configuration configuration =
        toConfiguration(kernel, place.tuple, families[place.family].knobs.front());
    if (keptForms.insert(fmt::format("{} {}", family, contractionForm(kernel, configuration)))
            .second)
      return false;
    ++result.duplicates;
    return true;
  }

  bool hasSeveralStrides(const Place &place) const {
    return families[place.family].hasSeveralStrides;
  }
  bool isLibrary(const Place &place) const { return families[place.family].family->isLibrary; }

  /// The places near the best, the best of those that meet the pins, and every transpose. A
  /// library's places are all kept: equal GEMMs are measured once.
  void keepPlaces() {
    if (places.empty()) return;
    const double limit = places.front().seconds * options.layoutFactor;
    std::vector<Place> kept;
    size_t own = 0, strided = 0;
    bool pinsMet = false;
    for (Place &place : places) {
      const bool hasRoom =
          hasSeveralStrides(place) ? strided < options.mostStrided : own < options.mostLayouts;
      const bool near = place.seconds <= limit && (isLibrary(place) || hasRoom);
      const bool firstPinned = !pinsMet && meetsPins(place.tuple);
      const bool transpose = isTranspose(place.tuple);
      if (!near && !firstPinned && !transpose) continue;
      if (isOfKeptForm(place)) continue;
      pinsMet = pinsMet || meetsPins(place.tuple);
      if (hasSeveralStrides(place)) ++strided;
      else own += isLibrary(place) || transpose ? 0 : 1;
      kept.push_back(std::move(place));
    }
    places = std::move(kept);
  }

  void measurePlaces() {
    best = places.front().seconds;
    for (const Place &place : places)
      if (isLibrary(place)) addLibraryGemm(place);
      else addItems(place), addUnlisted(place);
    const auto own = std::find_if(places.begin(), places.end(),
                                  [&](const Place &place) { return !isLibrary(place); });
    if (own != places.end()) addEveryReduction(*own);
  }

  /// Under the best layouts, every way to reduce a row: which is fastest for how many rows depends
  /// on registers and on how the last wave of blocks fills the GPU, which the model does not know.
  /// Vectors of the two widest kinds, as slower ones never won.
  void addEveryReduction(const Place &place) {
    const ConfigurationSpace &family = families[place.family];
    std::map<std::vector<int>, std::pair<double, size_t>> bestOf;
    int widest = 1;
    for (const Knobs &knobs : family.knobs)
      if (const auto structure = structureOf(knobs))
        widest = std::max(widest, structure->vectorWidth);
    for (size_t k = 0; k < family.knobs.size(); ++k) {
      const std::optional<KnobStructure> structure = structureOf(family.knobs[k]);
      if (!structure || !structure->reducesRows || 2 * structure->vectorWidth < widest) continue;
      if (!isUseful(kernel, place.tuple, family.knobs[k])) continue;
      const double seconds =
          model.cost(kernel, toConfiguration(kernel, place.tuple, family.knobs[k])).seconds;
      const auto [entry, isNew] = bestOf.try_emplace(structure->fields, seconds, k);
      if (!isNew) entry->second = std::min(entry->second, std::pair(seconds, k));
    }
    for (const auto &[structure, one] : bestOf)
      addItem(toConfiguration(kernel, place.tuple, family.knobs[one.second]), one.first);
  }

  void addLibraryGemm(const Place &place) {
    const Configuration configuration =
        toConfiguration(kernel, place.tuple, families[place.family].knobs.front());
    result.gemms.push_back(profileGemm(kernel, configuration, place.seconds));
  }

  void addItems(const Place &place) {
    const ConfigurationSpace &family = families[place.family];
    std::vector<std::pair<double, size_t>> priced;
    for (const size_t knobs : withThreadVariants(family, place.knobs)) {
      const Configuration configuration = toConfiguration(kernel, place.tuple, family.knobs[knobs]);
      if (!isUseful(kernel, place.tuple, family.knobs[knobs])) continue;
      priced.emplace_back(model.cost(kernel, configuration).seconds, knobs);
    }
    std::sort(priced.begin(), priced.end());
    std::map<std::vector<int>, int> perStructure;
    const size_t most = mostKnobsOf(place);
    size_t taken = 0;
    for (const auto &[seconds, knobs] : priced) {
      if (taken > 0 && (taken >= most || seconds > place.seconds * options.knobFactor)) break;
      constexpr int mostPerStructure = 2;
      if (const auto structure = structureOf(family.knobs[knobs]);
          structure && ++perStructure[structure->fields] > mostPerStructure)
        continue;
      ++taken;
      addItem(toConfiguration(kernel, place.tuple, family.knobs[knobs]), seconds);
    }
  }

  /// For a contraction alone, the two best knobs that no space has.
  void addUnlisted(const Place &place) {
    constexpr size_t most = 2;
    const Family &family = *families[place.family].family;
    if (!family.unlistedKnobs || !isTimedAsGemm(kernel, family)) return;
    const std::vector<Knobs> tiles = family.unlistedKnobs(kernel, place.tuple, model.device());
    for (size_t i = 0; i < std::min(most, tiles.size()); ++i) {
      Configuration configuration = toConfiguration(kernel, place.tuple, tiles[i]);
      const double seconds = model.cost(kernel, configuration).seconds;
      if (seconds <= place.seconds * options.knobFactor) addItem(std::move(configuration), seconds);
    }
  }

  /// A transpose is a place of two families, which share its knobs: a loop is rarely the faster
  /// one.
  size_t mostKnobsOf(const Place &place) const {
    if (!isTranspose(place.tuple)) return options.mostKnobs;
    return families[place.family].family->isTranspose ? std::max<size_t>(options.mostKnobs, 2) - 1
                                                      : 1;
  }

  /// The given knobs and those that differ from them in threads only.
  static std::vector<size_t> withThreadVariants(const ConfigurationSpace &family,
                                                const std::vector<size_t> &knobs) {
    std::set<std::vector<int>> structures;
    for (const size_t k : knobs)
      if (const auto structure = structureOf(family.knobs[k])) structures.insert(structure->fields);
    std::vector<size_t> all;
    for (size_t k = 0; k < family.knobs.size(); ++k) {
      const auto structure = structureOf(family.knobs[k]);
      if (structure ? structures.contains(structure->fields)
                    : std::find(knobs.begin(), knobs.end(), k) != knobs.end())
        all.push_back(k);
    }
    return all;
  }

  void addItem(Configuration configuration, double seconds) {
    ProfileItem item{.kernel = result.kernels.size(),
                     .configuration = std::move(configuration),
                     .subject = {},
                     .line = {},
                     .modelled = seconds,
                     .rank = best > 0 ? seconds / best : 1};
    item.subject = profileHash(subjectOf(kernel, item.configuration).text);
    item.line = configurationLine(kernel, item.configuration);
    result.items.push_back(std::move(item));
    ++space.configurations;
  }

  const Gathered &gathered;
  const Kernel &kernel;
  const CostModel &model;
  const ProfileSpaceOptions &options;
  ProfileSpace &result;
  ProfileKernelSpace space;
  std::vector<ConfigurationSpace> families;
  std::vector<Place> places;
  std::set<std::string> keptForms;
  double best = 0;
};

/// Keeps the first of equal ones.
template <typename Item, typename KeyOf>
size_t removeDuplicates(std::vector<Item> &items, KeyOf &&keyOf) {
  std::set<std::string> seen;
  return std::erase_if(items, [&](const Item &item) { return !seen.insert(keyOf(item)).second; });
}

}  // namespace

ProfileGemm profileGemm(const Kernel &kernel, const Configuration &configuration, double modelled) {
  const ProfileSubject subject = subjectOf(kernel, configuration);
  return {.gemm = libraryGemm(kernel, configuration),
          .subject = profileHash(subject.text),
          .name = subject.name,
          .place = placeText(kernel, configuration),
          .modelled = modelled};
}

ProfileSpace profileSpace(const std::vector<select::Problem> &problems,
                          const select::Options &selection, const CostModel &model,
                          const ProfileSpaceOptions &options) {
  ProfileSpace result;
  result.options = options;
  for (const std::string &name : options.families)
    if (!familyNamed(name))
      throw Error::badInput("no kernel family is named '{}' (known: {})", name,
                            fmt::join(familyNames(), ", "));
  const auto isAsked = [&](const std::string &name) {
    return options.names.empty() ||
           std::ranges::any_of(options.names, [&](const std::string &part) {
             return name.find(part) != std::string::npos;
           });
  };
  size_t kernels = 0;
  for (const auto &[text, gathered] : gatherAll(problems, selection, model)) {
    ++kernels;
    if (isAsked(gathered.kernel.name)) KernelPruning(gathered, model, options, result).run();
  }
  if (result.kernels.empty() && kernels > 0 && !options.families.empty())
    throw Error::badInput("none of {} kernels is taken by {}; weft profile --dry-run lists them",
                          kernels, fmt::join(options.families, " or "));
  if (result.kernels.empty() && kernels > 0)
    throw Error::badInput("no name of {} kernels contains '{}'; weft profile --dry-run lists them",
                          kernels, fmt::join(options.names, "' or '"));
  std::stable_sort(result.items.begin(), result.items.end(),
                   [](const ProfileItem &a, const ProfileItem &b) { return a.rank < b.rank; });
  result.duplicates += removeDuplicates(
      result.items, [](const ProfileItem &item) { return item.subject + item.line; });
  result.duplicates += removeDuplicates(
      result.gemms, [](const ProfileGemm &gemm) { return gemm.subject + gemm.place; });
  return result;
}

}  // namespace weft::decision
