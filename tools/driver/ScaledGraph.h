// An artifact's graph without its kernels, on small extents: what `verify` compiles again where no preset says how the model was built.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace weft::driver {

struct ScaledGraph {
  std::string text;                      ///< one weft.graph, as a .mlir model
  std::map<std::string, int64_t> dims;   ///< axes that became smaller, and their extents
};

/// Takes the ops of all weft.kernel regions of graph.mlir out of them, leaves changes of layout away, and gives every axis that `dims`
/// names its scaled extent (ScaledPlan.h), or the same multiple of it: three stacked projections stay three. Throws Error(unsupported)
/// with the verifier's message where the graph holds on to an extent.
ScaledGraph scaledGraph(const std::string &graph, const std::map<std::string, int64_t> &dims);
/// The same graph on its own extents.
ScaledGraph plainGraph(const std::string &graph);

}  // namespace weft::driver
