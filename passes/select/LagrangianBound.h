// Lagrangian bound: a lower bound on whole plans, and on the rest of a plan from a state, that
// takes layouts into account. It is a Lagrangian dual of selection (docs/selection.md).
//
// The bound of the lattice prices every kernel at its best, as if each could choose the layouts of
// its operands alone. Here every reader of a tensor has one multiplier per layout. The kernel that
// writes the tensor pays the multiplier of the layout that it writes; the kernel that reads it is
// refunded the multiplier of the layout that it reads. If both use the same layout the multipliers
// cancel, so the price of a plan does not change. If their best layouts differ, the kernels can no
// longer both have their best price, and the cheapest path through the lattice rises towards the
// best plan. A plan in which they differ pays a transpose, so the multipliers of all readers of a
// tensor may not differ by more than its price. All multipliers with this property give a bound;
// Polyak's subgradient steps find good ones.
//
// Where an op is of a site with alternatives, the plan may lack it, and nobody would be refunded.
// So the ops of a site that read a tensor from outside are one reader for each of the fewest that
// an alternative has: of every alternative one op, of which the plan has exactly one. Ops beyond
// these have no multipliers.
//
// Invariant: multipliers are not negative, and never differ by more than a transpose costs.
#pragma once

#include "passes/select/FinishedOpLattice.h"
#include "passes/select/Outcomes.h"

namespace weft::select {

class LagrangianBound {
public:
  /// All are zero: each kernel at its best among its kept layouts. References must outlive it.
  /// `most`: combinations that all steps together look at, except for the first, which is needed.
  LagrangianBound(const Problem &problem, const Prices &prices, const FinishedOpLattice &lattice,
                  int64_t most);

  static constexpr int mostSteps = 400;
  /// At most so many steps, until the bound reaches `target` seconds or rises no more.
  void raise(double target, int steps = mostSteps);
  /// As far as it goes without a plan to aim at; once.
  void raise();
  /// No plan takes less.
  double bound() const { return best.bound; }
  /// From a layer to the end no way takes less than this and the multipliers of the state's
  /// tensors.
  double after(int layer) const { return best.after[static_cast<size_t>(layer)]; }
  /// What the readers of the layer's tensors, which exist in these layouts, are given for them.
  double of(int layer, MaskView masks) const;

private:
  struct Reader {
    int tensor = -1;
    std::vector<int> ops = {};  ///< of which a plan has one; empty: the caller, of a result
    size_t first = 0;           ///< of its multipliers, one a layout
  };
  /// Combinations of those operands of a candidate that have multipliers, each at its best.
  struct Table {
    struct Term {
      size_t operand = 0;  ///< of `layouts`
      int reader = -1;
      double sign = 1;  ///< paid; -1: given
    };
    size_t operands = 0;
    std::vector<double> seconds = {};   ///< the last operand fastest; or of a list
    std::vector<double> rows = {};      ///< of combinations that differ in the last: their least
    std::vector<double> blocks = {};    ///< of rows that differ in the last but one, if there is
    std::vector<uint8_t> layouts = {};  ///< per combination and operand of a list, else empty
    std::vector<std::vector<uint8_t>> choices = {};  ///< layouts, per operand
    std::vector<size_t> counts = {};                 ///< of layouts, per operand
    std::vector<Term> terms = {};
  };
  struct Solution {
    double bound = -infinite;
    std::vector<double> multipliers = {}, after = {};  ///< by reader and layout; by layer
  };
  void findReaders();
  std::vector<std::vector<int>> readingOps(int tensor) const;
  void buildTable(int candidate);
  void addCombinations(const CandidatePrices &from, const std::vector<size_t> &operands,
                       Table &table) const;
  void addListed(const CandidatePrices &from, const std::vector<size_t> &operands,
                 Table &table) const;
  void addTerms(int candidate, int tensor, bool isOutput, size_t operand, Table &table) const;
  size_t layoutsOf(int tensor) const { return prices.layouts(tensor).size(); }
  /// The layouts of an argument at the start.
  LayoutMask atStart(int tensor) const;
  double least(int tensor, LayoutMask mask, const std::vector<double> &multipliers) const;
  /// What the unfinished readers of a tensor are given for it at least.
  double refunded(int layer, int tensor, LayoutMask mask) const;
  /// Bound and slopes at the multipliers.
  Solution solve(const std::vector<double> &multipliers, std::vector<double> &slopes) const;
  /// `combination`: any on entry, by which the others are excluded the sooner the cheaper it is;
  /// the cheapest afterwards, of several the first.
  double cheapest(const Table &table, const std::vector<double> &multipliers,
                  size_t &combination) const;
  static double cheapestListed(const Table &table, const std::vector<double> &paid,
                               size_t &combination);
  /// Of one of its operands.
  static size_t layoutIn(const Table &table, size_t combination, size_t operand);
  void addSlopes(const Table &table, size_t combination, std::vector<double> &slopes) const;
  double excess(int tensor, bool lowers, std::vector<double> &multipliers) const;
  void obeyTransposes(int tensor, std::vector<double> &multipliers) const;

  const Problem &problem;
  const Prices &prices;
  const FinishedOpLattice &lattice;
  std::vector<Reader> readers;
  std::vector<std::vector<int>> readersOf;  ///< tensor
  std::vector<Table> tables;                ///< candidate
  size_t count = 0;                         ///< of multipliers
  Solution best;
  bool isRaised = false;  ///< without a target
  int64_t left = 0;       ///< combinations that further steps may look at
  int64_t combinationsOfStep = 0;
  mutable std::vector<size_t> cheapestBefore;  ///< candidate: combination of the last solve()
  mutable std::vector<std::vector<double>>
      sums;  ///< layer, tracked tensor x its one layout; negative: not asked yet
};

}  // namespace weft::select
