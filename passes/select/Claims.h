// What the layouts of live tensors will cost those who have yet to read them: a bound for the search, and a forecast.
//
// A reader claims the layouts that its best configurations take. Where a tensor has none of them, the reader's kernel is slower
// than its best, or a transpose comes first, and one transpose may serve all readers of the tensor. So a tensor costs at least
// the lesser of what all its readers lose and its cheapest transpose. Readers are groups of ops that may share kernels; of the tensors
// that one group reads only the dearest counts, because one slow kernel may be slow for all of them.
#pragma once

#include "passes/select/Cover.h"
#include "passes/select/Outcomes.h"

namespace weft::select {

/// Claims on the live tensors of one layer. Not to be asked from several threads.
class LayerClaims {
public:
  struct Forecast {
    double least = 0;   ///< seconds beyond Layer::after that every way to the end costs, at least
    double likely = 0;  ///< the same, if every tensor costs something of its own
  };
  Forecast of(const Masks &masks) const;

private:
  friend class Claims;
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
  struct Tracked {
    std::vector<Reader> readers = {};
    std::vector<double> transposes = {};  ///< by layout: the cheapest transpose out of it
    mutable std::vector<Share> shares = {};  ///< by mask, as they are asked for
  };
  static const Share &shareOf(const Tracked &tracked, LayoutMask mask);
  std::vector<Tracked> tracked;
  int groups = 0;
};

class Claims {
public:
  Claims(const Problem &problem, const Prices &prices);

  LayerClaims of(const Layer &layer) const;

private:
  /// One way in which an op may read a tensor: the candidate, and what its kernel loses by layout.
  struct Way {
    int candidate = -1;
    std::vector<double> losses = {};
  };
  struct Use {
    int op = -1;
    std::vector<Way> ways = {};
  };
  void findGroups();
  void findUses();
  int groupOf(int op) const;

  const Problem &problem;
  const Prices &prices;
  std::vector<OpSet> opsOf;                        ///< candidate
  std::vector<int> parent;                         ///< op
  std::vector<std::vector<Use>> uses;              ///< tensor
  std::vector<std::vector<double>> transposesOut;  ///< tensor, layout
};

}  // namespace weft::select
