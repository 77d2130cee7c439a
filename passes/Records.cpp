// Fusion records and candidates as attributes: what a pass tried can be read in the graph.
#include "passes/Passes.h"
#include "passes/Rewrites.h"

#include "kernel/Error.h"
#include "passes/Describe.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

namespace weft {
namespace {

mlir::ArrayAttr numbers(mlir::Builder &builder, const std::vector<int> &ops) {
  std::vector<int64_t> wide(ops.begin(), ops.end());
  return builder.getI64ArrayAttr(wide);
}

mlir::NamedAttribute text(mlir::Builder &builder, llvm::StringRef name, llvm::StringRef value) {
  return builder.getNamedAttr(name, builder.getStringAttr(value));
}

std::vector<int> opsOf(mlir::DictionaryAttr entry, llvm::StringRef attribute) {
  std::vector<int> ops;
  if (auto list = entry.getAs<mlir::ArrayAttr>("ops"))
    for (mlir::Attribute number : list)
      if (auto integer = mlir::dyn_cast<mlir::IntegerAttr>(number))
        ops.push_back(static_cast<int>(integer.getInt()));
  if (ops.empty())
    throw Error::badInput("{}: an entry without `ops`, a list of op numbers", attribute.str());
  return ops;
}

std::string textOf(mlir::DictionaryAttr entry, llvm::StringRef name) {
  auto text = entry.getAs<mlir::StringAttr>(name);
  return text ? text.getValue().str() : "";
}

FusionPatterns patternsOf(mlir::DictionaryAttr entry) {
  const std::string words = textOf(entry, "pattern");
  const std::optional<FusionPatterns> patterns = parseFusionPatterns(words);
  if (!patterns)
    throw Error::badInput("\"{}\" is no fusion pattern: those are \"{}\" or some of them", words,
                          text(FusionPatterns{true, true, true, true}));
  return *patterns;
}

void addPatterns(mlir::Builder &builder, const FusionPatterns &patterns,
                 std::vector<mlir::NamedAttribute> &entries) {
  if (const std::string words = text(patterns); !words.empty())
    entries.push_back(text(builder, "pattern", words));
}

/// {code = "F012", detail = "i against k", reason = "reduction-axis-mismatch"}; `op`: the op that
/// the detail names alone.
mlir::DictionaryAttr rejectionOf(mlir::Builder &builder, const FusionRecord &record) {
  std::vector<mlir::NamedAttribute> entries{text(builder, "code", record.code),
                                            text(builder, "reason", record.reason)};
  if (!record.detail.empty()) entries.push_back(text(builder, "detail", record.detail));
  if (record.rejectedOp >= 0)
    entries.push_back(builder.getNamedAttr("op", builder.getI64IntegerAttr(record.rejectedOp)));
  return builder.getDictionaryAttr(entries);
}

void readRejection(mlir::DictionaryAttr entry, size_t ops, FusionRecord &record) {
  const auto rejected = entry.getAs<mlir::DictionaryAttr>("rejected");
  if (!rejected)
    throw Error::badInput(
        "weft.records: an entry that is neither `accepted` nor `rejected`, a dictionary of code, "
        "reason and detail");
  record.code = textOf(rejected, "code");
  record.reason = textOf(rejected, "reason");
  record.detail = textOf(rejected, "detail");
  const auto op = rejected.getAs<mlir::IntegerAttr>("op");
  if (!op) return;
  if (op.getInt() < 0 || op.getInt() >= int64_t(ops))
    throw Error::badInput("weft.records: the rejected op {} is none of the graph's {}", op.getInt(),
                          ops);
  record.rejectedOp = int(op.getInt());
}

FusionRecord recordFrom(mlir::DictionaryAttr entry, const std::vector<mlir::Operation *> &ops) {
  FusionRecord record{.pass = textOf(entry, "pass"),
                      .patterns = patternsOf(entry),
                      .ops = opsOf(entry, "weft.records"),
                      .opNames = {},
                      .accepted = entry.contains("accepted"),
                      .code = {},
                      .reason = {},
                      .detail = {},
                      .savedBytes = 0};
  for (int op : record.ops)
    if (op >= 0 && op < static_cast<int>(ops.size()))
      record.opNames.push_back(ops[static_cast<size_t>(op)]->getName().stripDialect().str());
  if (auto bytes = entry.getAs<mlir::IntegerAttr>("saved_bytes"))
    record.savedBytes = bytes.getInt();
  if (!record.accepted) readRejection(entry, ops.size(), record);
  return record;
}

/// Any set of ops that some rule admits; a file cannot make a kernel that the passes would not.
void checkCandidate(const std::vector<int> &ops, const FusionResult &admitted) {
  const auto is = [&](const auto &other) { return other.ops == ops; };
  if (std::any_of(admitted.candidates.begin(), admitted.candidates.end(), is)) return;
  const auto rejected = std::find_if(admitted.records.begin(), admitted.records.end(), is);
  throw Error::badInput(
      "weft.candidates: ops [{}] may not share a kernel: {}", fmt::join(ops, ", "),
      rejected == admitted.records.end() ? "no fusion pattern joins them" : describe(*rejected));
}

}  // namespace

FusionResult attachedFusions(mlir::Operation *graph, const FuseOptions &target) {
  const auto candidates = graph->getAttrOfType<mlir::ArrayAttr>("weft.candidates");
  if (!candidates)
    throw Error::badInput(
        "the graph has no weft.candidates; --stop-after fuse writes them, --start-from fuse "
        "proposes them");
  const FusionResult admitted =
      proposeFusions(graph, {.maxEpilogues = std::numeric_limits<int>::max(),
                             .epilogueRejection = target.epilogueRejection,
                             .prologueRejection = target.prologueRejection,
                             .attentionRejection = target.attentionRejection,
                             .attentionBackwardRejection = target.attentionBackwardRejection});
  FusionResult result;
  for (auto entry : candidates.getAsRange<mlir::DictionaryAttr>()) {
    result.candidates.push_back(
        {.ops = opsOf(entry, "weft.candidates"), .patterns = patternsOf(entry)});
    checkCandidate(result.candidates.back().ops, admitted);
  }
  const std::vector<mlir::Operation *> ops = numberedOps(graph);
  if (const auto records = graph->getAttrOfType<mlir::ArrayAttr>("weft.records"))
    for (auto entry : records.getAsRange<mlir::DictionaryAttr>())
      result.records.push_back(recordFrom(entry, ops));
  return result;
}

mlir::ArrayAttr recordsAttribute(mlir::MLIRContext *context,
                                 const std::vector<FusionRecord> &records) {
  mlir::Builder builder(context);
  std::vector<mlir::Attribute> list;
  for (const FusionRecord &record : records) {
    std::vector<mlir::NamedAttribute> entries;
    if (record.accepted) entries.push_back(builder.getNamedAttr("accepted", builder.getUnitAttr()));
    else entries.push_back(builder.getNamedAttr("rejected", rejectionOf(builder, record)));
    entries.push_back(builder.getNamedAttr("ops", numbers(builder, record.ops)));
    entries.push_back(text(builder, "pass", record.pass));
    addPatterns(builder, record.patterns, entries);
    entries.push_back(
        builder.getNamedAttr("saved_bytes", builder.getI64IntegerAttr(record.savedBytes)));
    list.push_back(builder.getDictionaryAttr(entries));
  }
  return builder.getArrayAttr(list);
}

mlir::ArrayAttr candidatesAttribute(mlir::Operation *graph, const FusionResult &fusions) {
  mlir::Builder builder(graph->getContext());
  const select::Problem problem = toProblem(graph, {}, fusions);
  std::vector<mlir::Attribute> list;
  for (size_t index = 0; index < fusions.candidates.size(); ++index) {
    const FusionCandidate &candidate = fusions.candidates[index];
    std::vector<mlir::NamedAttribute> entries{
        text(builder, "name", problem.candidates[index].name),
        builder.getNamedAttr("ops", numbers(builder, candidate.ops))};
    addPatterns(builder, candidate.patterns, entries);
    list.push_back(builder.getDictionaryAttr(entries));
  }
  return builder.getArrayAttr(list);
}

}  // namespace weft
