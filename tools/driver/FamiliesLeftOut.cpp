// Asks the families in the order of preference; see FamiliesLeftOut.h.
#include "tools/driver/FamiliesLeftOut.h"

#include "ir/Weft.h"
#include "kernel/Error.h"
#include "kernel/ReasonCodes.h"
#include "passes/Describe.h"
#include "passes/configure/Families.h"

#include <algorithm>
#include <optional>

namespace weft::driver {
namespace {

/// Of a candidate over packed tokens, as indices into the ops of the flow; nothing of others.
std::optional<std::vector<int>> packedOps(const Dataflow &flow, const FusionCandidate &candidate) {
  std::vector<int> ops;
  bool isPacked = false, isAttention = false;
  for (size_t op = 0; op < flow.ops.size(); ++op) {
    if (std::ranges::count(candidate.ops, flow.ops[op].number) == 0) continue;
    const OpKind kind = flow.ops[op].kind;
    isPacked = isPacked || kind == OpKind::pack;
    isAttention =
        isAttention || kind == OpKind::onlineSoftmaxContract || kind == OpKind::softmaxFromLogSums;
    ops.push_back(int(op));
  }
  if (!isPacked || !isAttention) return std::nullopt;
  return ops;
}

/// What the fused attention gives: the label of the op that makes probabilities.
std::string labelOf(const Dataflow &flow, const std::vector<int> &ops) {
  for (const int op : ops)
    if (const OpKind kind = flow.ops[size_t(op)].kind;
        kind == OpKind::onlineSoftmaxContract || kind == OpKind::softmaxFromLogSums)
      return flow.ops[size_t(op)].label;
  return "";
}

}  // namespace

void recordFamiliesLeftOut(ProposedVariant &variant, mlir::Operation *graph, const Device &device) {
  const Dataflow flow = describeGraph(graph).flow;
  for (const FusionCandidate &candidate : variant.fusions.candidates) {
    const std::optional<std::vector<int>> ops = packedOps(flow, candidate);
    if (!ops) continue;
    const bool isKnown = std::ranges::any_of(variant.fusions.records, [&](const auto &record) {
      return record.code == reasons::attentionFamily.code && record.ops == candidate.ops;
    });
    const std::string detail = attentionFamiliesLeftOut(bindKernel(flow, *ops).kernel, device);
    if (detail.empty()) continue;
    variant.notes.push_back(
        fmt::format("'{}' over packed tokens: {}; it takes another family, or tokens are unpacked "
                    "around it [{}]",
                    labelOf(flow, *ops), detail, reasons::attentionFamily.code));
    if (isKnown) continue;  // of a graph that was written with its records
    FusionRecord record{.pass = "fuse",
                        .patterns = candidate.patterns,
                        .ops = candidate.ops,
                        .opNames = {},
                        .accepted = false,
                        .code = std::string(reasons::attentionFamily.code),
                        .reason = std::string(reasons::attentionFamily.reason),
                        .detail = detail,
                        .savedBytes = savedBytes(flow, *ops)};
    for (const int op : *ops) record.opNames.emplace_back(nameOf(flow.ops[size_t(op)].kind));
    variant.fusions.records.push_back(std::move(record));
  }
}

}  // namespace weft::driver
