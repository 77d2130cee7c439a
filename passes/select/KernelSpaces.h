// The configurations of a kernel, independent of its graph: its legal spaces, and its measurements
// as separate spaces.
//
// Invariant: equal for equal kernels. The variants of a graph share most kernels and therefore
// share these spaces.
#pragma once

#include "kernel/BlockCombine.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/Family.h"

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>

namespace weft::select {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// The layout without offset and strides: kernels get the address of element zero, and strided
/// views are chosen later, so here a layout is an order of axes.
inline Layout withoutPlace(Layout layout) {
  layout.offset = 0;
  layout.strides.clear();
  return layout;
}

using SharedSpace = std::shared_ptr<const ConfigurationSpace>;

/// A configuration of CostModel::measured() as indices into spaces.
struct MeasuredPoint {
  int space = -1, tuple = -1, knobs = -1;
  double seconds = infinite;
  bool isMeasured = false;         ///< itself; else a measurement under other layouts prices it
  bool hasSeveralStrides = false;  ///< along a group of axes of a contraction
};

/// The best times of a kernel, over all and for every layout of every operand.
struct Bests {
  struct Best {
    double seconds = infinite;
    bool isRun = false;  ///< by a kernel that runs, not only by a view
  };
  double seconds = infinite;
  LayoutTuple tuple = {};  ///< that takes these; empty where operands are priced apart
  std::vector<std::map<Layout, Best>> byLayout;  ///< per operand

  void offer(size_t operand, const Layout &layout, double seconds, bool isRun);
  void offer(const LayoutTuple &tuple, double seconds, bool isRun);
  /// Offers the configurations of a space as the model prices them.
  void offerModelled(const Kernel &kernel, const ConfigurationSpace &space, const CostModel &model);
  void offer(const Bests &others);
};

struct KernelSpaces {
  struct Legal {
    SharedSpace space;
    double configurations = 0;       ///< that are useful
    double withoutMeasurements = 0;  ///< of these
    bool isView = false;
    bool waitsForMeasurements = false;  ///< not to be priced by the model
  };
  std::vector<Legal> legal;           ///< in the order of families
  std::vector<SharedSpace> measured;  ///< one a family, in which only the points are offered
  std::vector<MeasuredPoint> points;  ///< of `measured`
  std::shared_ptr<const Bests> measuredBests;
};

/// The best way to run a candidate under one combination of layouts, and the next best that is no
/// tie with it.
struct Price {
  double seconds = infinite, secondSeconds = infinite;
  int16_t space = -1, knobs = -1, secondSpace = -1,
          secondKnobs = -1;  ///< indices into `spaces` and its knobs
  int32_t tuple = -1;        ///< of the best space, where that has tuples (a view's offsets)

  void offer(double seconds, int space, int knobs, int tuple);
};

/// The prices of a kernel under combinations of layouts of its operands.
struct PricedTable {
  std::vector<Price> entries = {};
  int64_t configurations = 0, measured = 0;  ///< that were offered
};

/// Bytes of device memory that one launch works in: of an emitted kernel as its family says, of a
/// library GEMM as its knobs say.
int64_t launchWorkspaceBytes(const Kernel &kernel, const Configuration &configuration);

/// Which configurations of a kernel are considered: as the Options of these names say.
struct SpaceLimits {
  std::optional<BlockCombine> softmax;
  int64_t mostWorkspace = std::numeric_limits<int64_t>::max();
};
KernelSpaces spacesOf(const Kernel &kernel, const CostModel &model, const SpaceLimits &limits);

/// The spaces of every kernel, found once, and its prices. All follow from the kernel, the model
/// and what is asked: selections that share them are what they were alone. May be called from
/// several threads.
class SharedSpaces {
public:
  /// The model must outlive it.
  explicit SharedSpaces(const CostModel &model) : model(model) {}
  const CostModel &costModel() const { return model; }
  struct Entry {
    KernelSpaces spaces;
    std::once_flag opened, modelled;
    std::shared_ptr<const Bests> modelledBests;  ///< after the first call of modelledBests()
    bool has(const SharedSpace &space) const;
    struct Table {
      std::once_flag priced;
      std::shared_ptr<const PricedTable> table;
    };
    /// What the prices follow from: the layouts of every operand, in order, and of which spaces.
    struct TableKey {
      std::vector<SharedSpace> spaces;
      std::vector<LayoutTuple> layouts;
      bool isListed = false;
      auto operator<=>(const TableKey &) const = default;
    };
    std::map<TableKey, std::shared_ptr<Table>> tables;
  };
  /// The table of a kernel, by `price` where no other variant has asked for it.
  std::shared_ptr<const PricedTable> table(Entry &entry, Entry::TableKey key,
                                           const std::function<PricedTable()> &price);
  /// The reference is valid as long as this object.
  Entry &of(const Kernel &kernel, const SpaceLimits &limits);
  /// Over the legal spaces that are no views and that the model prices.
  const std::shared_ptr<const Bests> &modelledBests(const Kernel &kernel, Entry &entry);
  /// Forgets the tables where they take much memory: between two searches, neither of which may
  /// find less than its limit. Those in use stay with their users.
  void limitTables();

private:
  const CostModel &model;
  std::mutex mutex;
  int64_t tableBytes = 0;  ///< about
  std::map<std::string, Entry> entries;
};

}  // namespace weft::select
