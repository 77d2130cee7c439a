// The contractions between a decomposed and a fused attention. Terms are the letters of
// "termX,termV->termResult"; one letter alone is contracted.
#pragma once

#include "ir/interpreter/Dropout.h"

#include <optional>
#include <string_view>

namespace weft::reference {

/// The einsum of every sub-vector of `tile` elements of the contracted axis by itself: the result's
/// axes, then one element a sub-vector. The last sub-vector may be short. Of x, only what dropout
/// keeps.
template <typename Real>
TensorValue subvectorContract(std::string_view termX, std::string_view termV,
                              std::string_view termResult, const TensorValue &x,
                              const TensorValue &v, int64_t tile,
                              const std::optional<Dropping> &dropping);

/// The einsum of softmax(x along the contracted axis) with v, and log(sum(exp(x))) of every row: a
/// row whose elements are all -inf gives zeros and -inf. Probabilities may be dropped before the
/// einsum; the sums are of all.
struct OnlineSoftmax {
  TensorValue result, logSums;
};
template <typename Real>
OnlineSoftmax onlineSoftmaxContract(std::string_view termX, std::string_view termV,
                                    std::string_view termResult, const TensorValue &x,
                                    const TensorValue &v, const std::optional<Dropping> &dropping);

}  // namespace weft::reference
