// Both by their definitions: contractions of slices, and a softmax in front of a contraction.
#include "ir/interpreter/OnlineSoftmax.h"

#include "ir/interpreter/Contraction.h"
#include "ir/interpreter/Movement.h"
#include "ir/interpreter/Normalization.h"

#include <algorithm>
#include <cmath>

namespace weft::reference {
namespace {

int64_t contractedAxis(std::string_view term, std::string_view result) {
  return int64_t(term.find_first_not_of(result));
}

/// log(sum(exp(x))) of every row along the axis.
template <typename Real>
TensorValue logSums(const TensorValue &x, int64_t axis) {
  const AxisView view(x.shape, axis);
  const LocalSoftmax whole = localSoftmax<Real>(x, axis, view.extent);
  TensorValue result = zeros(withoutAxes(x.shape, std::span(&axis, 1)));
  for (size_t row = 0; row < result.elements.size(); ++row)
    result.elements[row] =
        Real(whole.maximum.elements[row]) + std::log(Real(whole.sum.elements[row]));
  return result;
}

template <typename Real>
TensorValue kept(const TensorValue &x, const std::optional<Dropping> &dropping) {
  return dropping ? dropout<Real>(x, dropping->p, dropping->source) : x;
}

}  // namespace

template <typename Real>
TensorValue subvectorContract(std::string_view termX, std::string_view termV,
                              std::string_view termResult, const TensorValue &all,
                              const TensorValue &v, int64_t tile,
                              const std::optional<Dropping> &dropping) {
  const TensorValue x = kept<Real>(all, dropping);
  const int64_t axisX = contractedAxis(termX, termResult),
                axisV = contractedAxis(termV, termResult), extent = x.shape[size_t(axisX)],
                count = (extent + tile - 1) / tile;
  TensorValue result;
  for (int64_t n = 0; n < count; ++n) {
    const int64_t start = n * tile, size = std::min(tile, extent - start);
    const TensorValue part = contract<Real>(termX, termV, termResult, slice(x, axisX, start, size),
                                            slice(v, axisV, start, size), 1);
    if (n == 0) {
      result = zeros(part.shape);
      result.shape.push_back(count);
      result.elements.resize(part.elements.size() * size_t(count));
    }
    for (size_t at = 0; at < part.elements.size(); ++at)
      result.elements[at * size_t(count) + size_t(n)] = part.elements[at];
  }
  return result;
}

template <typename Real>
OnlineSoftmax onlineSoftmaxContract(std::string_view termX, std::string_view termV,
                                    std::string_view termResult, const TensorValue &x,
                                    const TensorValue &v, const std::optional<Dropping> &dropping) {
  const int64_t axis = contractedAxis(termX, termResult);
  const TensorValue probabilities = kept<Real>(softmax<Real>(x, axis), dropping);
  return {.result = contract<Real>(termX, termV, termResult, probabilities, v, 1),
          .logSums = logSums<Real>(x, axis)};
}

// The two precisions of InterpreterOptions.
template TensorValue subvectorContract<float>(std::string_view, std::string_view, std::string_view,
                                              const TensorValue &, const TensorValue &, int64_t,
                                              const std::optional<Dropping> &);
template TensorValue subvectorContract<double>(std::string_view, std::string_view, std::string_view,
                                               const TensorValue &, const TensorValue &, int64_t,
                                               const std::optional<Dropping> &);
template OnlineSoftmax onlineSoftmaxContract<float>(std::string_view, std::string_view,
                                                    std::string_view, const TensorValue &,
                                                    const TensorValue &,
                                                    const std::optional<Dropping> &);
template OnlineSoftmax onlineSoftmaxContract<double>(std::string_view, std::string_view,
                                                     std::string_view, const TensorValue &,
                                                     const TensorValue &,
                                                     const std::optional<Dropping> &);

}  // namespace weft::reference
