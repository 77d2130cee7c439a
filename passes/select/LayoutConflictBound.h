// What the layouts of live tensors will cost those who have yet to read them: a bound for the
// search.
//
// A reader claims the layouts that its best configurations take. Where a tensor has none of them,
// the reader's kernel is slower than its best, or a transpose comes first, and one transpose may
// serve all readers of the tensor. So a tensor costs at least the lesser of what all its readers
// lose and its cheapest transpose. Readers are groups of ops that may share kernels; of the tensors
// that one group reads only the dearest counts, because one slow kernel may be slow for all of
// them.
//
// A tensor that is yet to be computed costs something where its writer and its readers are not all
// at their best in one layout: the least that they lose together, or its cheapest transpose. Which
// of them loses depends on the layout, so of such tensors those count whose groups differ, and what
// their groups claim beside is part of it, not added to it: of all that is paid in these groups,
// and for transposes of the live tensors' shares in them and of the pending tensor, no part belongs
// to two pending tensors.
#pragma once

#include "passes/select/FinishedOpLattice.h"
#include "passes/select/Outcomes.h"

#include <set>

namespace weft::select {

/// LayoutConflictBound on the live tensors of one layer. Not to be asked from several threads.
class LayerConflictBound {
public:
  /// Seconds beyond Layer::after that every readOption to the end costs, at least.
  double of(MaskView masks) const;

private:
  friend class LayoutConflictBound;
  struct Reader {
    int group = -1;
    std::vector<double> losses = {};  ///< by layout of the tensor
  };
  /// What one tensor costs where it exists in the layouts of one mask.
  struct Share {
    bool isKnown = false;
    double cost = 0;
    std::vector<double> ofReaders = {};  ///< empty where the cost is zero
  };
  /// What groups lose together by a tensor that is yet to be computed, whatever its layout.
  struct Pending {
    double seconds = 0;
    std::vector<int> groups = {};
  };
  struct Tracked {
    std::vector<Reader> readers = {};
    std::vector<double> transposes = {};     ///< by layout: the cheapest transpose out of it
    mutable std::vector<Share> shares = {};  ///< by mask, as they are asked for
  };
  static const Share &shareOf(const Tracked &tracked, LayoutMask mask);
  std::vector<Tracked> tracked;
  std::vector<Pending> pending;  ///< of groups that differ
  int groups = 0;
};

class LayoutConflictBound {
public:
  LayoutConflictBound(const Problem &problem, const Prices &prices);

  LayerConflictBound of(const Layer &layer) const;

private:
  /// One readOption in which an op may read a tensor: the candidate, and what its kernel loses by
  /// layout.
  struct ReadOption {
    int candidate = -1;
    std::vector<double> losses = {};
  };
  struct Use {
    int op = -1;
    std::vector<ReadOption> readOptions = {};
  };
  void findGroups();
  void findUses();
  void findConflicts();
  double conflictOf(int tensor, int producer, std::set<int> &members) const;
  int groupOf(int op) const;

  const Problem &problem;
  const Prices &prices;
  std::vector<OpSet> opsOf;            ///< candidate
  std::vector<int> parent;             ///< op
  std::vector<std::vector<Use>> uses;  ///< tensor
  /// A tensor whose writer and readers do not all have the layout that is best for each.
  struct Conflict {
    double seconds = 0;         ///< that they lose together, at least
    int producer = -1;          ///< op
    std::set<int> groups = {};  ///< that the loss may fall to
  };
  std::vector<Conflict> conflicts;  ///< dearest first
  std::vector<std::vector<std::vector<double>>>
      writeLosses;                                 ///< candidate, output, layout of its tensor
  std::vector<std::vector<double>> transposesOut;  ///< tensor, layout
};

}  // namespace weft::select
