// Everything the search needs to know of kernels and tensors, as tables: the layouts a tensor may
// have, the price of every candidate under every combination of them, the price of every transpose.
//
// Layouts are numbered per tensor; the tables speak of numbers only.
#pragma once

#include "passes/configure/Family.h"
#include "passes/select/KernelSpaces.h"
#include "passes/select/Selection.h"

#include <algorithm>
#include <span>

namespace weft::select {

/// Kept layouts of a tensor fit the bits of a mask.
using LayoutMask = uint8_t;
constexpr size_t maximumLayouts = 8;

/// Prices that differ by less than this share are ties: no measurement could tell them apart.
constexpr double noise = 0.005;

/// One candidate under every combination of kept layouts of its operands: a dense table, the last
/// operand fastest. Of a candidate whose families list their combinations and that has too many
/// operands for that, a table of those that are listed, in the same order.
struct CandidatePrices {
  std::vector<int> operands;              ///< tensors: inputs, then outputs
  std::vector<std::vector<int>> choices;  ///< per operand: numbers of the tensor's kept layouts
  std::span<const Price> table;
  std::shared_ptr<const PricedTable> owner;  ///< of the table; other variants may share it
  std::vector<std::vector<int>> listed;  ///< of the entries, ascending; empty: the table is dense
  std::vector<SharedSpace> spaces;
  size_t pricedSpaces =
      0;  ///< the first of `spaces` are priced by the model, the others hold what was measured
  std::vector<MeasuredPoint> measured;  ///< of `spaces`
  double bestSeconds = infinite;        ///< over all layouts, also those that were cut
  bool isFolded = false;                ///< runs once, when parameters are loaded
  std::vector<std::string> waiting;     ///< families that are considered only if measured, and are
                                        ///< unmeasured in the pinned layouts

  const ConfigurationSpace &space(int index) const { return *spaces[static_cast<size_t>(index)]; }
  /// Of positions in `choices`; nothing if they are not listed.
  std::optional<size_t> indexOf(const std::vector<int> &choice) const;
  std::vector<int> choiceOf(size_t index) const;  ///< positions in `choices`
  /// Makes the choice of entry `index` that of the next one, as far as there is one. Returns the
  /// first operand whose choice changes.
  size_t advance(std::vector<int> &choice, size_t index) const;
};

class Prices {
public:
  /// Finds the layouts that tensors keep and the best time of every candidate, no table yet. Throws
  /// Error(badInput) when pins contradict. `shared`, of the model: for several problems with the
  /// same kernels.
  Prices(const Problem &problem, const CostModel &model, const Options &options,
         Statistics &statistics, SharedSpaces &shared);

  /// With all tables.
  Prices(const Problem &problem, const CostModel &model, const Options &options,
         Statistics &statistics);

  /// Fills the tables of all candidates and prices the transposes; called once, this or the next.
  /// Throws Error(unsupported) naming the op if an op has no candidate with any configuration.
  void buildTables();
  /// The tables of some candidates alone, by number: the others have no prices then, as if the
  /// problem lacked them, and an op may be left without a kernel.
  void buildTablesOf(const std::vector<bool> &wanted);

  /// Of every tensor first the layouts that these candidates want, by number, then the others, as
  /// far as they are kept. Before there are tables.
  void keepLayoutsFirst(const std::vector<bool> &near);

  bool hasTables() const { return areTablesBuilt; }
  /// Whether any layouts of a candidate have a price; before there are tables, whether any
  /// configuration has.
  bool isPriced(int candidate) const {
    const CandidatePrices &prices = candidates[static_cast<size_t>(candidate)];
    if (!areTablesBuilt) return prices.bestSeconds < infinite;
    return std::ranges::any_of(prices.table,
                               [](const Price &price) { return price.seconds < infinite; });
  }
  /// Whether some family would offer it if it were measured.
  bool waitsForMeasurements(int candidate) const {
    return !candidates[static_cast<size_t>(candidate)].waiting.empty();
  }
  const std::vector<Layout> &layouts(int tensor) const {
    return keptLayouts[static_cast<size_t>(tensor)];
  }
  int numberOf(int tensor, const Layout &layout) const;  ///< -1: not kept
  bool isFreeToPack(int tensor) const { return freeToPack[static_cast<size_t>(tensor)]; }
  /// The layout that the caller hands over or wants; nothing if it is free.
  std::optional<int> pinned(int tensor) const;
  const CandidatePrices &candidate(int index) const {
    return candidates[static_cast<size_t>(index)];
  }
  bool isUsable(int candidate) const { return usable[static_cast<size_t>(candidate)]; }

  /// Seconds of a transpose between two kept layouts of a tensor.
  double transposeSeconds(int tensor, int from, int to) const;
  /// The cheapest source among the layouts of a mask. Remembered: not to be asked from several
  /// threads.
  const std::pair<int, double> &cheapestTranspose(int tensor, LayoutMask available, int to) const;

  /// Seconds that the kernel which reads the tensor next loses, at least, because it comes in this
  /// layout.
  double regret(int tensor, int layout) const {
    return regrets[static_cast<size_t>(tensor)][static_cast<size_t>(layout)];
  }

  Configuration configuration(int candidate, size_t index) const;
  /// What a launch of it works in. Remembered: not to be asked from several threads.
  int64_t workspaceBytes(int candidate, size_t index) const;
  std::string runnerUpKnobs(int candidate, size_t index) const;
  Configuration transposeConfiguration(int tensor, int from, int to) const;

  /// Prices with the model the transposes that were pruned as unmeasured. False if there are none,
  /// or if the cost model admits measurements only.
  bool admitModelledTransposes();

private:
  Prices(const Problem &problem, const CostModel &model, const Options &options,
         Statistics &statistics, std::shared_ptr<SharedSpaces> own);
  // Pins.cpp
  void choosePins();
  void findFolded();
  void filterCandidates();
  void leaveOutUncounted();
  std::map<int, int> masksOfTokens() const;
  int keptInside(const Candidate &candidate) const;
  bool storesTooMuch(const Candidate &candidate) const;
  // Spaces.cpp: what a candidate is chosen among
  void openSpaces(int candidate, SharedSpaces &shared);
  void openSeveralStrides(const Candidate &candidate, const KernelSpaces &known,
                          CandidatePrices &prices);
  void openViews(const Candidate &candidate, ConfigurationSpace space, CandidatePrices &prices);
  void findBests(int candidate, const KernelSpaces &known,
                 const std::shared_ptr<const Bests> &others);
  static void addMeasured(const KernelSpaces &known, CandidatePrices &prices);
  bool reachesPins(const std::vector<int> &operands, const LayoutTuple &layouts) const;
  // KeptLayouts.cpp
  /// A layout's worth for one tensor: the best ratio over kernels decides whether it is kept, the
  /// sum which go first.
  struct Worth {
    double bestRatio = infinite, sum = 0;
    int kernels = 0;
    bool isSomeBest = false;
    bool isRun = false;  ///< some kernel that runs takes it, not views alone
  };
  using Worths = std::map<Layout, Worth>;
  void keepLayouts(SharedSpaces &shared);
  void weigh(int candidate, std::vector<Worths> &worths) const;
  /// Of one tensor, best first; at most all that are near the best of some kernel. `kernels`: that
  /// touch it.
  std::vector<Layout> ranked(int tensor, const Worths &worths, int kernels) const;
  void keepOf(int tensor, const std::vector<Layout> &best);
  // Tables.cpp
  void priceAll(const std::vector<bool> &wanted);
  void buildTable(int candidate);
  void buildFolded(CandidatePrices &prices) const;
  void limitTables(const std::vector<bool> &wanted);
  size_t chooseLayouts(int candidate);
  bool listCombinations(CandidatePrices &prices) const;
  PricedTable priceTable(const Kernel &kernel, const CandidatePrices &prices, size_t size) const;
  std::vector<LayoutTuple> chosenLayouts(const CandidatePrices &prices) const;
  std::optional<size_t> entryOf(const CandidatePrices &prices, const LayoutTuple &tuple) const;
  LayoutTuple tupleOf(const CandidatePrices &prices, size_t entry) const;
  void offerMeasured(const CandidatePrices &prices, PricedTable &result) const;
  /// By entry of a table and knobs.
  using KnownSeconds = std::map<std::pair<size_t, Knobs>, double>;
  KnownSeconds knownSeconds(const Kernel &kernel, const CandidatePrices &prices) const;
  void offerSums(const Kernel &kernel, const CandidatePrices &prices, size_t space,
                 const KnownSeconds &known, PricedTable &result) const;
  void offerOneByOne(const Kernel &kernel, const CandidatePrices &prices, size_t space,
                     const KnownSeconds &known, PricedTable &result) const;
  // Transposes.cpp
  void priceTransposes(int tensor);
  bool offerMeasuredTransposes(int tensor);
  int64_t offerModelledTransposes(int tensor);
  double legalTransposes(int tensor) const;
  // Prices.cpp
  void findRegrets();
  std::vector<double> directLosses(int tensor) const;
  void checkEveryOpHasKernel() const;
  void countCoverage();

  const Tensor &tensorOf(int index) const { return problem.tensors[static_cast<size_t>(index)]; }
  /// Whether loading parameters may bring it into any layout.
  bool takesAnyLayout(int tensor) const {
    return isFreeToPack(tensor) && !fixed[static_cast<size_t>(tensor)];
  }

  const Problem &problem;
  const CostModel &model;
  const Options &options;
  Statistics &statistics;
  SharedSpaces &spaces;  ///< asked until there are tables
  std::vector<std::optional<Layout>> pins;
  std::vector<bool> freeToPack, usable;
  std::set<size_t> uncounted;  ///< candidates that leaveOutUncounted() found
  bool areTablesBuilt = false;
  static constexpr size_t maximumTable = 8192;
  size_t mostCombinations = maximumTable;  ///< of layouts in one table
  bool cutTables = false;                  ///< for the memory or the work of the search
  std::vector<bool>
      fixed;  ///< tensor: exists in its pinned layout alone, though it were free to pack
  std::vector<std::vector<Layout>> keptLayouts;
  std::vector<std::vector<double>> regrets;  ///< tensor, layout
  std::vector<CandidatePrices> candidates;
  std::shared_ptr<SharedSpaces> own;                ///< where nobody else has them
  std::vector<SharedSpaces::Entry *> entries;       ///< candidate, of `spaces`
  std::vector<std::shared_ptr<const Bests>> bests;  ///< candidate; null where it is not usable

  struct TransposePrice {
    double seconds = infinite;
    Knobs knobs;
  };
  std::vector<std::vector<TransposePrice>> transposes;  ///< tensor, from x to
  std::vector<int64_t> prunedPairs;                     ///< tensor
  mutable std::vector<std::vector<std::pair<int, double>>>
      cheapest;  ///< tensor, mask x to; a negative time: not asked yet
  mutable std::map<std::pair<int, size_t>, int64_t> workspaces;  ///< of candidate and entry
  const TransposePrice &transpose(int tensor, int from, int to) const {
    const size_t count = layouts(tensor).size();
    return transposes[static_cast<size_t>(tensor)]
                     [static_cast<size_t>(from) * count + static_cast<size_t>(to)];
  }
};

}  // namespace weft::select
