// Masks followed through ops that keep the place of every score; see VisibleWork.h.
#include "tools/driver/VisibleWork.h"

#include "kernel/BlockMask.h"

#include <algorithm>
#include <map>

namespace weft::driver {
namespace {

/// A mask op alone, with what it is asked for at every score.
class PositionMask {
public:
  PositionMask(const Kernel &kernel, const BodyOp &op) : table(blockTableOf(kernel, op)) {
    const auto integer = [&](const char *name) -> std::optional<int64_t> {
      const auto found = op.attributes.find(name);
      if (found == op.attributes.end()) return std::nullopt;
      return std::get<int64_t>(found->second);
    };
    const std::vector<AxisId> &axes = kernel.values[size_t(op.operands[0])].axes;
    const auto extent = [&](int64_t dimension) {
      return kernel.axes[size_t(axes[size_t(dimension)])].extent;
    };
    const std::string &kind = std::get<std::string>(op.attributes.at("kind"));
    keys = extent(*integer("key"));
    if (integer("query")) queries = extent(*integer("query"));
    const bool hasStarts = op.operands.size() > 1;
    isKnown = table || ((kind == "causal" || kind == "window") && !hasStarts);
    left = integer("left").value_or(keys + queries);
    right = integer("right").value_or(0);
    global = integer("global").value_or(0);
  }

  bool sees(int64_t head, int64_t query, int64_t key) const {
    if (table) return table->sees(std::min(head, table->heads - 1), query, key);
    const int64_t position = query + keys - queries;
    if (global > 0 && std::min(key, position) < global) return true;
    return key >= position - left && key <= position + right;
  }

  const BlockTable *table = nullptr;
  bool isKnown = false;
  int64_t queries = 1, keys = 1;

private:
  int64_t left = 0, right = 0, global = 0;
};

using Masks = std::vector<PositionMask>;

/// The share of scores that all masks leave.
double shareOf(const Masks &masks) {
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

class VisibleWork {
public:
  explicit VisibleWork(const select::Problem &problem)
      : problem(problem),
        kernels(problem.ops.size(), nullptr),
        share(problem.tensors.size(), 1),
        needed(problem.tensors.size(), 0) {
    for (const select::Candidate &candidate : problem.candidates)
      if (candidate.ops.size() == 1) kernels[size_t(candidate.ops.front())] = &candidate.kernel;
  }

  std::vector<double> run() {
    for (size_t op = 0; op < problem.ops.size(); ++op) follow(op);
    for (size_t tensor = 0; tensor < problem.tensors.size(); ++tensor)
      if (problem.tensors[tensor].isResult) needed[tensor] = 1;
    for (size_t op = problem.ops.size(); op-- > 0;) ask(op);
    std::vector<double> shares;
    for (size_t op = 0; op < problem.ops.size(); ++op) {
      double least = isContraction(op) ? needed[size_t(problem.opOutputs[op].front())] : 1;
      if (isContraction(op))
        for (const int tensor : problem.opInputs[op])
          least = std::min(least, share[size_t(tensor)]);
      shares.push_back(least);
    }
    return shares;
  }

private:
  const BodyOp *bodyOf(size_t op) const {
    return kernels[op] && kernels[op]->body.size() == 1 ? &kernels[op]->body.front() : nullptr;
  }
  bool isContraction(size_t op) const {
    return bodyOf(op) && bodyOf(op)->operatorClass == OperatorClass::contraction;
  }
  /// Whether an operand has the extents of the result.
  bool hasPlacesOf(size_t op, int tensor) const {
    return problem.tensors[size_t(tensor)].extents() ==
           problem.tensors[size_t(problem.opOutputs[op].front())].extents();
  }

  /// What of the op's first result is hidden because its operands are.
  void follow(size_t op) {
    const BodyOp *const body = bodyOf(op);
    if (!body || problem.opInputs[op].empty()) return;
    const int result = problem.opOutputs[op].front();
    const auto take = [&](int tensor) {
      if (!masks.contains(tensor) || share[size_t(tensor)] >= share[size_t(result)]) return;
      masks[result] = masks[tensor], share[size_t(result)] = share[size_t(tensor)];
    };
    switch (body->kind) {
      case OpKind::mask: {
        const int scores = problem.opInputs[op].front();
        Masks own = masks.contains(scores) ? masks[scores] : Masks();
        if (PositionMask mask(*kernels[op], *body); mask.isKnown) own.push_back(std::move(mask));
        share[size_t(result)] = shareOf(own);
        if (!own.empty()) masks[result] = std::move(own);
        break;
      }
      // A product is zero where one factor is; a softmax, where its row has the score hidden.
      default:
        if (isHiddenAsOperands(body->kind))
          for (const int tensor : problem.opInputs[op])
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
  void ask(size_t op) {
    const auto require = [&](int tensor, double part) {
      needed[size_t(tensor)] = std::max(needed[size_t(tensor)], part);
    };
    for (const int tensor : problem.opInputs[op]) {
      if (isContraction(op)) {
        require(tensor, share[size_t(tensor)]);
        continue;
      }
      const BodyOp *const body = bodyOf(op);
      const int result = problem.opOutputs[op].front();
      double part = 1;
      if (body && hasPlacesOf(op, tensor)) {
        if (isSoftmax(body->kind)) part = share[size_t(result)];
        else if (body->operatorClass == OperatorClass::elementwise &&
                 problem.opOutputs[op].size() == 1)
          part = std::min(needed[size_t(result)], share[size_t(result)]);
      }
      require(tensor, part);
    }
  }

  const select::Problem &problem;
  std::vector<const Kernel *> kernels;  ///< of each op alone
  std::map<int, Masks> masks;           ///< of tensors
  std::vector<double> share;            ///< of a tensor's elements that are not hidden
  std::vector<double> needed;
};

}  // namespace

std::vector<double> visibleWork(const select::Problem &problem) {
  return VisibleWork(problem).run();
}

}  // namespace weft::driver
