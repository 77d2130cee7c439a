// What makes a variant differ from the graph as it was imported. A variant's name, files of
// variants and plan.json show the text; all else asks the kind.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

struct Rewrite {
  enum class Kind : uint8_t {
    other,                ///< of a file that a person wrote: the subject is the whole text
    stack,                ///< projections of one operand, by their names: "q-k-v"
    stackInputGradients,  ///< the same in the backward pass, by their weights: "wq-wk"
    stackWeightGradients,
    recompute,         ///< a saved tensor is computed again: "hidden"
    decomposeSoftmax,  ///< into sub-vectors of so many elements: "64"
    recomposeSoftmax,  ///< the same, such that its steps can join the contractions around it
    fuseAttention,     ///< no subject; a backward pass computes scores again
    allGradients,      ///< no subject; of a fused attention, also those that nothing reads
    decomposeNorms,    ///< no subject
    deferNorms,        ///< no subject
    rotateInStack,     ///< a stack's rotary embeddings are one of the whole stack: "q-k-v"
    rotateApart,       ///< each of a stack's rotary embeddings turns its slice: "q-k-v"
    atSite,            ///< the rewrite before it has been made here alone: "layer2_probability"
  };
  Kind kind = Kind::other;
  std::string subject{};
  auto operator<=>(const Rewrite &) const = default;
};

/// "stack-q-k-v", "stack-dX-wq-wk", "recompute-hidden", "decompose-softmax-64",
/// "recompose-softmax-64", "fuse-attention", "all-gradients", "defer-norms", "turn-in-q-k-v",
/// "turn-apart-q-k-v", "for-layer2_probability".
std::string text(const Rewrite &rewrite);
/// Of a variant's name in a file. Total: what no kind prints is of Kind::other.
Rewrite parseRewrite(std::string_view text);

std::vector<std::string> textsOf(const std::vector<Rewrite> &rewrites);
/// Texts joined by '+'; "unchanged" for none.
std::string variantName(const std::vector<Rewrite> &rewrites);

}  // namespace weft
