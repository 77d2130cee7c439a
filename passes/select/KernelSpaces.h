// What a kernel is chosen among, whatever graph it stands in: its legal spaces, and its measured rows as spaces of their own.
//
// Invariant: equal for equal kernels, so that the variants of a graph, most of whose kernels are the same, share it.
#pragma once

#include "passes/configure/CostModel.h"
#include "passes/configure/Family.h"

#include <limits>
#include <map>
#include <memory>
#include <mutex>

namespace weft::select {

using SharedSpace = std::shared_ptr<const ConfigurationSpace>;

/// A measured configuration as indices into spaces.
struct MeasuredPoint {
  int space = -1, tuple = -1, knobs = -1;
  double seconds = std::numeric_limits<double>::infinity();
};

struct KernelSpaces {
  struct Legal {
    SharedSpace space;
    double configurations = 0;  ///< that are useful
    double withoutRows = 0;     ///< of these
  };
  std::vector<Legal> legal;           ///< in the order of families
  std::vector<SharedSpace> measured;  ///< one a family, in which only the points are offered
  std::vector<MeasuredPoint> points;  ///< of `measured`
};

/// `softmax`: as Options::softmax.
KernelSpaces spacesOf(const Kernel &kernel, const CostModel &model, std::optional<BlockCombine> softmax);

/// The spaces of every kernel, found once. May be asked from several threads.
class SharedSpaces {
public:
  explicit SharedSpaces(const CostModel &model) : model(model) {}
  /// Lives as long as this.
  const KernelSpaces &of(const Kernel &kernel, std::optional<BlockCombine> softmax);

private:
  struct Entry {
    std::once_flag once;
    KernelSpaces spaces;
  };
  const CostModel &model;
  std::mutex mutex;
  std::map<std::string, Entry> entries;
};

}  // namespace weft::select
