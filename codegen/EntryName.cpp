// See EntryName.h.
#include "codegen/EntryName.h"

#include "kernel/AttentionBackwardRegion.h"
#include "kernel/CoordinateExpressions.h"
#include "kernel/MaskKind.h"
#include "kernel/StridedBatchedGemm.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace weft::codegen {
namespace {

constexpr size_t mostOpColumns = 48;

/// Ops that change neither an element nor its place in a dense tensor.
bool isRenaming(OpKind kind) {
  return kind == OpKind::identity || kind == OpKind::splitAxis || kind == OpKind::mergeAxes;
}

std::string_view wordOf(OpKind kind) { return kind == OpKind::contract ? "gemm" : nameOf(kind); }

struct CountedWord {
  std::string text;  ///< "reduce_x3" for three neighbours
  size_t ops;
};

std::vector<CountedWord> countedWords(const std::vector<OpKind> &kinds) {
  std::vector<CountedWord> words;
  for (auto first = kinds.begin(); first != kinds.end();) {
    const auto last = std::find_if(first, kinds.end(), [&](OpKind kind) { return kind != *first; });
    const size_t ops = size_t(last - first);
    words.push_back({std::string(wordOf(*first)), ops});
    if (ops > 1) words.back().text += fmt::format("_x{}", ops);
    first = last;
  }
  return words;
}

std::string opsText(const Kernel &kernel, std::string_view copy) {
  std::vector<OpKind> kinds;
  for (const BodyOp &op : kernel.body)
    if (!isRenaming(op.kind)) kinds.push_back(op.kind);
  if (kinds.empty()) return std::string(copy);
  std::string text;
  size_t named = 0;
  for (const CountedWord &word : countedWords(kinds)) {
    if (named > 0 && text.size() + 1 + word.text.size() > mostOpColumns) break;
    text += (named > 0 ? "_" : "") + word.text;
    named += word.ops;
  }
  const size_t more = kinds.size() - named;
  return more == 0 ? text : fmt::format("{}_and_{}_more", text, more);
}

/// "attention_causal_tanh": with the ops on its scores, masks by what they exclude.
std::string attentionText(const Kernel &kernel, std::string text,
                          const std::vector<OpId> &scoreOps) {
  for (size_t place = 0; place < scoreOps.size(); ++place) {
    const BodyOp &op = kernel.body[scoreOps[place]];
    const std::optional<MaskShape::Kind> mask = maskKind(op);
    const std::string word(mask ? nameOf(*mask) : nameOf(op.kind));
    if (text.size() + 1 + word.size() > mostOpColumns)
      return fmt::format("{}_and_{}_more", text, scoreOps.size() - place);
    text += "_" + word;
  }
  return text;
}

/// The batch where there is one, queries, keys, the head dimension, and that of values where it is
/// another. Of an attention, or of its backward pass.
template <typename Region>
std::vector<int64_t> extentsOf(const Kernel &kernel, const Region &region) {
  const auto product = [&](const std::vector<AxisId> &axes) {
    int64_t extent = 1;
    for (const AxisId axis : axes) extent *= kernel.axes[size_t(axis)].extent;
    return extent;
  };
  std::vector<int64_t> extents;
  if (const int64_t batch = product(region.batch); batch > 1) extents.push_back(batch);
  for (const int64_t extent :
       {product(region.queries), product({region.keyAxis}), product(region.headDim)})
    extents.push_back(extent);
  if (const int64_t values = product(region.valueDim); values != extents.back())
    extents.push_back(values);
  return extents;
}

/// That of the first result; of a GEMM of several types those of A, B and the result.
std::string typeText(const Kernel &kernel) {
  if (!contractionValues(kernel))
    return std::string(nameOf(kernel.values[size_t(kernel.outputs[0])].dtype));
  const GemmTypes types = gemmTypes(kernel);
  if (types.isUniform()) return std::string(nameOf(types.c));
  if (types.areTf32()) return std::string(nameOf(types.a));
  return fmt::format("{}_{}_{}", nameOf(types.a), nameOf(types.b), nameOf(types.c));
}

/// The batch where there is one, m, n, k; of a kernel without a GEMM those of the first of its
/// largest tensors that are above 1.
std::vector<int64_t> extentsOf(const Kernel &kernel) {
  const auto extent = [&](AxisId axis) { return kernel.axes[size_t(axis)].extent; };
  std::vector<int64_t> extents;
  if (const auto values = contractionValues(kernel)) {
    for (const std::vector<AxisId> &axes : contractionGroups(kernel, *values)) {
      extents.push_back(1);
      for (const AxisId axis : axes) extents.back() *= extent(axis);
    }
    if (extents.front() == 1) extents.erase(extents.begin());
    return extents;
  }
  std::vector<ValueId> tensors = kernel.inputs;
  tensors.insert(tensors.end(), kernel.outputs.begin(), kernel.outputs.end());
  const ValueId largest =
      *std::ranges::max_element(tensors, {}, [&](ValueId value) { return kernel.elements(value); });
  for (const AxisId axis : kernel.values[size_t(largest)].axes)
    if (extent(axis) > 1) extents.push_back(extent(axis));
  if (extents.empty()) extents.push_back(1);
  return extents;
}

}  // namespace

std::string entryName(const Kernel &kernel, std::string_view copy) {
  if (const auto region = attentionRegion(kernel))
    return fmt::format("{}_{}_{}",
                       attentionText(kernel,
                                     fmt::format("attention{}{}",
                                                 region->packed  ? "_packed"
                                                 : region->paged ? "_paged"
                                                                 : "",
                                                 region->turned ? "_rotated" : ""),
                                     region->scoreOps),
                       region->readsTf32 ? std::string(nameOf(DType::tf32)) : typeText(kernel),
                       fmt::join(extentsOf(kernel, *region), "x"));
  if (const auto region = attentionBackwardRegion(kernel))
    return fmt::format(
        "{}_{}_{}", attentionText(kernel, "attention_backward", region->scoreOps),
        nameOf(region->readsTf32 ? DType::tf32 : kernel.values[size_t(region->dQ)].dtype),
        fmt::join(extentsOf(kernel, *region), "x"));
  return fmt::format("{}_{}_{}", opsText(kernel, copy), typeText(kernel),
                     fmt::join(extentsOf(kernel), "x"));
}

}  // namespace weft::codegen
