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
// A plan has the ops of one alternative of a site. A reader that is an op of another one would be
// paid for by the writer and refunded to no kernel, and the bound would not hold. So readers inside
// a site are groups of ops: if the alternative with the fewest ops that read the tensor from
// outside has n of them, there are n readers, and each has one such op of every alternative. Every
// plan has exactly one op of each reader. Further ops that read the tensor have no multipliers.
//
// Invariant: multipliers are not negative, and never differ by more than a transpose costs.
#pragma once

#include "passes/select/FinishedOpLattice.h"
#include "passes/select/Outcomes.h"

namespace weft::select {

class LagrangianBound {
public:
  /// All multipliers are zero: each kernel at its best among its kept layouts. References must
  /// outlive it. `most`: table entries that all steps but the first may look at together.
  LagrangianBound(const Problem &problem, const Prices &prices, const FinishedOpLattice &lattice,
                  int64_t most);

  static constexpr int mostSteps = 400;
  /// At most so many steps, until the bound reaches `target` seconds or rises no more.
  void raise(double target, int steps = mostSteps);
  /// Without a target, until the bound rises no more; a second call does nothing.
  void raise();
  /// No plan takes less.
  double bound() const { return best.bound; }
  /// No completion of a state of the layer takes less than after(layer) + of(layer, its layouts).
  double after(int layer) const { return best.after[static_cast<size_t>(layer)]; }
  /// The multipliers of the readers that are unfinished at the layer: of each the least over the
  /// layouts in which its tensor exists.
  double of(int layer, MaskView masks) const;

private:
  struct Reader {
    int tensor = -1;
    std::vector<int> ops = {};  ///< a plan has exactly one of them; empty: the caller of a result
    size_t first = 0;           ///< of its multipliers, one a layout
  };
  /// Combinations of those operands of a candidate that have multipliers, each at its best.
  struct Table {
    struct Term {
      size_t operand = 0;  ///< of `layouts`
      int reader = -1;
      double sign = 1;  ///< 1: the kernel writes the tensor and pays; -1: it reads it
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
  /// The part of of() that is one tensor's.
  double refunded(int layer, int tensor, LayoutMask mask) const;
  /// Bound and slopes at the multipliers.
  Solution solve(const std::vector<double> &multipliers, std::vector<double> &slopes) const;
  /// `combination`: any on entry; a cheap one excludes others early. The cheapest on return, the
  /// first of equals.
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
