// The attentions of a graph, each cut out as a graph by itself:
//
//    contraction of queries and keys -> [element-wise ops] -> softmax -> [casts, dropout]
//                                                          -> contraction with values
//
// Recognised by structure, never by names. The cut-out graph takes what these ops read as arguments
// and returns what other ops read of them: every kind of attention can be decided for it alone, and
// at other lengths. Of a graph that is trained it is the forward pass: the fused and the recomposed
// kind have graphs for themselves there, since they save the logarithms of sums, or exponentials
// and factors, where others save probabilities.
#pragma once

#include "passes/Choices.h"
#include "passes/decide/SoftmaxAccount.h"

#include <cstdint>
#include <string>
#include <vector>

namespace weft::driver {

struct AttentionSite : decision::AttentionShape {
  std::string softmax = {};     ///< name of the softmax's result
  std::string graph = {};       ///< the text of the cut-out graph
  std::string fused = {};       ///< that of the fused kind, where it is another one
  std::string recomposed = {};  ///< that of the recomposed kind, likewise
  std::string queryAxis, keyAxis;
  const std::string &graphOf(AttentionChoice kind) const {
    if (kind == AttentionChoice::fused && !fused.empty()) return fused;
    return kind == AttentionChoice::recomposed && !recomposed.empty() ? recomposed : graph;
  }
  /// Arguments and results of the cut-out graph, each once: what any kind must move. Of that of the
  /// fused kind where there is one.
  int64_t compulsoryBytes = 0;
  bool operator==(const AttentionSite &) const = default;
};

/// In the order of the graph. Softmaxes that are no attention are left out. `subVector`: elements,
/// of the recomposed kind of a trained one. Of packed tokens the graph has the ops that unpack what
/// the attention reads and pack what it writes, too.
std::vector<AttentionSite> attentionSites(const std::string &graph, int64_t subVector);

/// The graph of a kind with other extents of queries and keys. Throws Error(unsupported) with the
/// verifier's message where the graph holds on to an extent.
std::string atLengths(const AttentionSite &site, AttentionChoice kind, int64_t queries,
                      int64_t keys);

}  // namespace weft::driver
