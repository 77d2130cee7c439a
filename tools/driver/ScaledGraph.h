// An artifact's graph on small extents: its kernels as they are, every axis shorter. What `verify`
// runs whole.
#pragma once

#include "kernel/Kernel.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace weft::driver {

using Dims = std::map<std::string, int64_t>;

/// New extents by axis name. Where one axis is as long as another that it follows (keys and a
/// memory follow queries), it is scaled like it: kernels may compute along both at once.
class Scaling {
public:
  /// `small` names axes of `dims`, none longer than there. Without any, every extent stays.
  Scaling(Dims dims, Dims small);

  /// An axis of `dims`, or the same multiple of it: three stacked projections stay three. Of
  /// positions a gradient may be named as the whole that it is part of, or as its part: the extent
  /// tells. Others keep their extent.
  int64_t extent(const std::string &axis, int64_t extent) const;
  /// Of an index or a number of indices along the axis; throws Error(unsupported) where the small
  /// axis has no such one.
  int64_t part(const std::string &axis, int64_t index) const;
  /// An axis that follows another, as the sub-vectors of a decomposed softmax follow its row: where
  /// it has this extent, it becomes `shorter`. Axes of one name and several extents, as those of
  /// two softmaxes, are each scaled by what they follow. Nothing changes of one that is no longer.
  void follow(const std::string &axis, int64_t extent, int64_t shorter);
  /// Axes that became smaller, and their extents.
  const Dims &extents() const { return small; }

private:
  Dims dims, small;
  std::map<std::pair<std::string, int64_t>, int64_t> followers;  ///< by name and extent
};

struct ScaledGraph {
  std::vector<Kernel> kernels;  ///< of the regions that a plan has kernels of, in order
  std::vector<std::string>
      results;  ///< names of what the graph returns, changes of layout seen through
  std::string
      ops;  ///< the graph without regions and changes of layout: what the interpreter computes
};

/// Throws Error(unsupported) with the verifier's message where the graph holds on to an extent.
ScaledGraph scaledGraph(const std::string &graph, const Scaling &scaling);

}  // namespace weft::driver
