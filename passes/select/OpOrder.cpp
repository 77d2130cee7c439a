// Choices are counted as open ops: unfinished ones that share a candidate with a finished one. To
// find an order with few of them is vertex separation, which is NP-hard; the way here is that of
// pebble games: from every op that is ready, follow what its kernels lead to until fewer ops are
// open than before, and take the way that needs the fewest open meanwhile.
#include "passes/select/OpOrder.h"

#include <algorithm>
#include <optional>
#include <tuple>

namespace weft::select {
namespace {

/// Ops after which a way that has not closed anything is given up: layers of a model are longer
/// than kernels.
constexpr size_t longestWay = 64;

struct Progress {
  OpSet finished, open;
};

/// Ops one after another, up to where the fewest are open.
struct Way {
  std::vector<int> ops = {};
  int growth = 0;  ///< of the open ops, from the first op's start to the last op's end; negative:
                   ///< choices are closed
  int peak = 0;    ///< the largest growth on the way
  /// Smaller is better: what closes choices first, with the fewest open meanwhile, then what opens
  /// the fewest.
  auto rank() const { return growth < 0 ? std::tuple(0, peak, 0) : std::tuple(1, growth, peak); }
};

class Arrangement {
public:
  Arrangement(const std::vector<OpSet> &kernels, const std::vector<OpSet> &producers)
      : producers(producers), neighbours(producers.size()) {
    for (const OpSet &kernel : kernels)
      for (const int op : kernel.members())
        neighbours[static_cast<size_t>(op)] = neighbours[static_cast<size_t>(op)] | kernel;
  }

  std::vector<int> find() const {
    const OpSet all = OpSet::firstOps(static_cast<int>(producers.size()));
    std::vector<int> order;
    for (Progress progress; order.size() < producers.size();) {
      std::optional<Way> best;
      for (const int op : (all - progress.finished).members()) {
        if (!isReady(op, progress)) continue;
        Way way = wayFrom(op, progress);
        if (!best || way.rank() < best->rank()) best = std::move(way);
      }
      for (const int op : best->ops) finish(op, progress);
      order.insert(order.end(), best->ops.begin(), best->ops.end());
    }
    return order;
  }

private:
  bool isReady(int op, const Progress &progress) const {
    return progress.finished.containsAll(producers[static_cast<size_t>(op)]);
  }

  void finish(int op, Progress &progress) const {
    progress.finished.insert(op);
    progress.open = (progress.open | neighbours[static_cast<size_t>(op)]) - progress.finished;
  }

  int growthBy(int op, const Progress &progress) const {
    OpSet opened = neighbours[static_cast<size_t>(op)] - progress.finished - progress.open;
    opened.insert(op);
    return opened.size() - 1 - (progress.open.contains(op) ? 1 : 0);
  }

  /// To ops that the way itself has opened or finds open, until fewer are open than at its start.
  Way wayFrom(int op, Progress progress) const {
    Way way, best;
    OpSet reached;
    reached.insert(op);
    while (way.ops.size() < longestWay) {
      const std::optional<int> next = cheapest(reached, progress);
      if (!next) break;
      way.growth += growthBy(*next, progress);
      way.peak = std::max(way.peak, way.growth);
      finish(*next, progress);
      reached = (reached | neighbours[static_cast<size_t>(*next)]) - progress.finished;
      way.ops.push_back(*next);
      if (best.ops.empty() || way.growth < best.growth) best = way;
      if (way.growth < 0) break;
    }
    return best;
  }

  std::optional<int> cheapest(const OpSet &among, const Progress &progress) const {
    std::optional<int> best;
    int least = 0;
    for (const int op : among.members()) {
      if (!isReady(op, progress)) continue;
      const int growth = growthBy(op, progress);
      if (best && growth >= least) continue;
      best = op;
      least = growth;
    }
    return best;
  }

  const std::vector<OpSet> &producers;
  std::vector<OpSet> neighbours;  ///< per op: those of all its candidates, itself included
};

}  // namespace

std::vector<int> compactOrder(const std::vector<OpSet> &kernels,
                              const std::vector<OpSet> &producers) {
  return Arrangement(kernels, producers).find();
}

}  // namespace weft::select
