// Masks followed through ops that keep the place of every score; see VisibleWork.h.
#include "kernel/VisibleWork.h"

#include "kernel/Attributes.h"
#include "kernel/BlockMask.h"
#include "kernel/ChunkOrigins.h"
#include "kernel/CoordinateExpressions.h"
#include "kernel/Family.h"
#include "kernel/MaskKind.h"

#include <algorithm>
#include <map>
#include <mutex>

namespace weft {
namespace {

/// A mask op alone, with what it is asked for at every score.
class PositionMask {
public:
  PositionMask(const Kernel &kernel, const BodyOp &op) : table(blockTableOf(kernel, op)) {
    const std::vector<AxisId> &axes = kernel.values[size_t(op.operands[0])].axes;
    const auto extent = [&](int64_t dimension) {
      return kernel.axes[size_t(axes[size_t(dimension)])].extent;
    };
    const std::optional<MaskShape::Kind> kind = maskKind(op);
    const auto key = size_t(attributeOf(op, attribute::key));
    keys = extent(int64_t(key));
    firstKey = placeInWhole(op, key, 0), allKeys = extentOfWhole(kernel, op, key);
    if (hasAttribute(op, attribute::query)) {
      const auto query = size_t(attributeOf(op, attribute::query));
      queries = extent(int64_t(query));
      firstQuery = placeInWhole(op, query, 0), allQueries = extentOfWhole(kernel, op, query);
    }
    const bool hasStarts = op.operands.size() > 1;
    isKnown = table ||
              ((kind == MaskShape::Kind::causal || kind == MaskShape::Kind::window) && !hasStarts);
    left = attributeOr(op, attribute::left, allKeys + allQueries);
    right = attributeOr(op, attribute::right, 0);
    global = attributeOr(op, attribute::global, 0);
  }

  bool sees(int64_t head, int64_t query, int64_t key) const {
    query += firstQuery, key += firstKey;
    if (table) return table->sees(std::min(head, table->heads - 1), query, key);
    const int64_t position = query + allKeys - allQueries;
    if (global > 0 && std::min(key, position) < global) return true;
    return key >= position - left && key <= position + right;
  }

  bool operator==(const PositionMask &) const = default;

  const BlockTable *table = nullptr;
  bool isKnown = false;
  int64_t queries = 1, keys = 1;

private:
  int64_t left = 0, right = 0, global = 0;
  int64_t allQueries = 1, allKeys = 1, firstQuery = 0, firstKey = 0;  ///< of a chunk's whole
};

using Masks = std::vector<PositionMask>;

/// The share of scores that all masks leave.
double countedShare(const Masks &masks) {
  if (masks.empty()) return 1;
  int64_t heads = 1;
  for (const PositionMask &mask : masks)
    if (mask.table) heads = std::max(heads, mask.table->heads);
  const int64_t queries = masks.front().queries, keys = masks.front().keys;
  constexpr int64_t mostScores = int64_t(1) << 22;  // that are looked at
  const int64_t rows = std::clamp<int64_t>(mostScores / (heads * keys), 1, queries);
  int64_t seen = 0;
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t query = (2 * row + 1) * queries / (2 * rows);
      for (int64_t key = 0; key < keys; ++key)
        seen += std::ranges::all_of(
            masks, [&](const PositionMask &mask) { return mask.sees(head, query, key); });
    }
  return double(seen) / (double(heads) * double(rows) * double(keys));
}

/// Layers of a model have the same masks: each is counted once. Tables live as long as the program.
double shareOf(const Masks &masks) {
  static std::mutex mutex;
  static std::vector<std::pair<Masks, double>> known;
  const std::lock_guard lock(mutex);
  const auto found = std::ranges::find(known, masks, &std::pair<Masks, double>::first);
  if (found != known.end()) return found->second;
  return known.emplace_back(masks, countedShare(masks)).second;
}

class VisibleWork {
public:
  VisibleWork(const std::vector<PlacedOp> &ops, const std::vector<PlacedTensor> &tensors)
      : ops(ops), tensors(tensors), share(tensors.size(), 1), needed(tensors.size(), 0) {}

  VisibleShares run() {
    for (const PlacedOp &op : ops) follow(op);
    for (size_t tensor = 0; tensor < tensors.size(); ++tensor)
      if (tensors[tensor].isResult) needed[tensor] = 1;
    for (size_t op = ops.size(); op-- > 0;) ask(ops[op]);
    std::vector<double> shares;
    for (const PlacedOp &op : ops) {
      double least = isContraction(op) ? needed[size_t(op.outputs.front())] : 1;
      if (isContraction(op))
        for (const int tensor : op.inputs) least = std::min(least, share[size_t(tensor)]);
      shares.push_back(least);
    }
    return {.ops = std::move(shares), .tensors = std::move(share)};
  }

private:
  static bool isContraction(const PlacedOp &op) {
    return op.body && op.body->operatorClass == OperatorClass::contraction;
  }
  /// Whether an operand has the extents of the result.
  bool hasPlacesOf(const PlacedOp &op, int tensor) const {
    return tensors[size_t(tensor)].extents == tensors[size_t(op.outputs.front())].extents;
  }

  /// What of the op's first result is hidden because its operands are.
  void follow(const PlacedOp &op) {
    if (!op.body || op.inputs.empty()) return;
    const int result = op.outputs.front();
    const auto take = [&](int tensor) {
      if (!masks.contains(tensor) || share[size_t(tensor)] >= share[size_t(result)]) return;
      masks[result] = masks[tensor], share[size_t(result)] = share[size_t(tensor)];
    };
    switch (op.body->kind) {
      case OpKind::mask: {
        const int scores = op.inputs.front();
        Masks own = masks.contains(scores) ? masks[scores] : Masks();
        if (PositionMask mask(*op.kernel, *op.body); mask.isKnown) own.push_back(std::move(mask));
        share[size_t(result)] = shareOf(own);
        if (!own.empty()) masks[result] = std::move(own);
        break;
      }
      // A product is zero where one factor is; a softmax, where its row has the score hidden.
      default:
        if (isHiddenAsOperands(op.body->kind))
          for (const int tensor : op.inputs)
            if (hasPlacesOf(op, tensor)) take(tensor);
    }
  }

  static bool isSoftmax(OpKind kind) {
    return kind == OpKind::softmax || kind == OpKind::softmaxDx ||
           kind == OpKind::softmaxFromLogSums || kind == OpKind::localSoftmax ||
           kind == OpKind::globalScaling;
  }
  static bool isHiddenAsOperands(OpKind kind) {
    return isSoftmax(kind) || kind == OpKind::mul || kind == OpKind::dropout ||
           kind == OpKind::scale || kind == OpKind::cast;
  }

  /// What the op needs of its operands, where its result is needed in part alone.
  void ask(const PlacedOp &op) {
    const auto require = [&](int tensor, double part) {
      needed[size_t(tensor)] = std::max(needed[size_t(tensor)], part);
    };
    for (const int tensor : op.inputs) {
      if (isContraction(op)) {
        require(tensor, share[size_t(tensor)]);
        continue;
      }
      const int result = op.outputs.front();
      double part = 1;
      if (op.body && hasPlacesOf(op, tensor)) {
        if (isSoftmax(op.body->kind)) part = share[size_t(result)];
        else if (op.body->operatorClass == OperatorClass::elementwise && op.outputs.size() == 1)
          part = std::min(needed[size_t(result)], share[size_t(result)]);
      }
      require(tensor, part);
    }
  }

  const std::vector<PlacedOp> &ops;
  const std::vector<PlacedTensor> &tensors;
  std::map<int, Masks> masks;  ///< of tensors
  std::vector<double> share;   ///< of a tensor's elements that are not hidden
  std::vector<double> needed;
};

}  // namespace

VisibleShares visibleShares(const std::vector<PlacedOp> &ops,
                            const std::vector<PlacedTensor> &tensors) {
  return VisibleWork(ops, tensors).run();
}

double visibleShare(const Kernel &kernel) {
  const double all = kernel.flop();
  if (!(all > 0) ||
      std::ranges::none_of(kernel.body, [](const BodyOp &op) { return op.kind == OpKind::mask; }))
    return 1;
  std::vector<PlacedTensor> tensors;
  for (const Value &value : kernel.values) {
    PlacedTensor tensor;
    for (const AxisId axis : value.axes) tensor.extents.push_back(kernel.axes[size_t(axis)].extent);
    tensors.push_back(std::move(tensor));
  }
  for (const ValueId output : kernel.outputs) tensors[size_t(output)].isResult = true;
  std::vector<PlacedOp> ops;
  for (const BodyOp &op : kernel.body) {
    PlacedOp placed{.kernel = &kernel, .body = &op, .inputs = {}, .outputs = {}};
    for (const ValueId operand : op.operands) placed.inputs.push_back(int(operand));
    for (const ValueId result : op.results) placed.outputs.push_back(int(result));
    ops.push_back(std::move(placed));
  }
  const VisibleShares shares = visibleShares(ops, tensors);
  double visible = 0;
  for (size_t op = 0; op < ops.size(); ++op) visible += shares.ops[op] * kernel.body[op].flop;
  return visible / all;
}

double computedShare(const Kernel &kernel, const Family &family) {
  return family.takesAttention || family.takesAttentionBackward ? visibleShare(kernel) : 1;
}

}  // namespace weft
