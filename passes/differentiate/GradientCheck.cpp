// The sum over all gradients; see GradientCheck.h.
//
// A large gradient is summed row by row, in the kernel of its update, which has its rows at hand; a
// small one, of a bias or a norm, stands for itself. Of a layer these vectors are one concatenation
// and its sum: a launch or two. Layers are added from the last to the first, as the backward pass
// computes them: one number crosses from each to the next. Movement ends what may join the kernel
// of an update, and a vector has one layout alone, which keeps the search small.
#include "passes/differentiate/GradientCheck.h"

#include "kernel/LayerNames.h"
#include "passes/Describe.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace weft {
namespace {

/// A bias's or a norm's gradient is computed by a reduction over tokens, whose kernel can reduce
/// nothing else; a bias of heads has two axes and so many elements at most, few beside its tokens.
constexpr int64_t mostElementsOfBias = 16384;
/// Parts of a concatenation begin at multiples of 16 bytes, or are copied.
constexpr int64_t elementsOfAlignment = 4;

}  // namespace

template <typename Op, typename... Arguments>
mlir::Value GradientCheck::make(const std::string &name, Arguments &&...arguments) {
  return Op::create(builder, mlir::NameLoc::get(builder.getStringAttr(name), location),
                    std::forward<Arguments>(arguments)...)
      ->getResult(0);
}

void GradientCheck::add(const Parameter &parameter, mlir::Value gradient, mlir::Value unscaled) {
  const auto type = mlir::cast<mlir::RankedTensorType>(gradient.getType());
  const bool isSmall =
      type.getRank() < 2 || (type.getRank() == 2 && type.getNumElements() <= mostElementsOfBias);
  const mlir::Value sums = isSmall
                               ? unscaled
                               : make<ReduceOp>(parameter.name + "_gradient_sums", "sum", gradient,
                                                llvm::ArrayRef{type.getRank() - 1}, DType::f32);
  const int64_t rank = static_cast<int64_t>(extents(sums.getType()).size());
  parts.push_back({.layer = parameter.layer,
                   .gradient = gradient,
                   .sums = rank < 2 ? sums
                                    : make<MergeAxesOp>(parameter.name + "_gradient_vector", sums,
                                                        int64_t(0), rank, "n")});
}

mlir::Value GradientCheck::sum(const std::string &name) {
  llvm::stable_sort(parts, [](const Part &a, const Part &b) {
    mlir::Operation *first = a.gradient.getDefiningOp(), *second = b.gradient.getDefiningOp();
    return first != second && first->isBeforeInBlock(second);
  });
  const llvm::ArrayRef<Part> all(parts);
  for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    const int64_t layer = all[begin].layer;
    while (end < all.size() && all[end].layer == layer) ++end;
    addLayer(layer, all.slice(begin, end - begin));
  }
  total.getDefiningOp()->setLoc(mlir::NameLoc::get(builder.getStringAttr(name), location));
  return total;
}

void GradientCheck::addLayer(int64_t layer, llvm::ArrayRef<Part> ofLayer) {
  builder.setLayer(layer);
  const std::string prefix = layer > 0 ? layerPrefix(layer) : "";
  std::vector<mlir::Value> vectors;
  for (const Part &part : ofLayer)
    if (extents(part.sums.getType()).empty()) addToTotal(prefix, part.sums);
    else vectors.push_back(part.sums);
  if (vectors.empty()) return;
  std::ranges::stable_partition(vectors, [](mlir::Value value) {
    return elementsOf(value.getType()) % elementsOfAlignment == 0;
  });
  const mlir::Value joined = make<ConcatOp>(prefix + "gradient_sums", vectors, int64_t(0));
  addToTotal(prefix,
             make<ReduceOp>(prefix + "gradients_sum", "sum", joined, llvm::ArrayRef<int64_t>{0}));
}

void GradientCheck::addToTotal(const std::string &prefix, mlir::Value scalar) {
  total = total ? make<AddOp>(prefix + "gradient_total", total, scalar) : scalar;
}

}  // namespace weft
