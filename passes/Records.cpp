// Fusion records and candidates as attributes: what a pass tried can be read in the graph.
#include "passes/Passes.h"
#include "passes/Rewrites.h"

namespace weft {
namespace {

mlir::ArrayAttr numbers(mlir::Builder &builder, const std::vector<int> &ops) {
  std::vector<int64_t> wide(ops.begin(), ops.end());
  return builder.getI64ArrayAttr(wide);
}

mlir::NamedAttribute text(mlir::Builder &builder, llvm::StringRef name, llvm::StringRef value) {
  return builder.getNamedAttr(name, builder.getStringAttr(value));
}

}  // namespace

mlir::ArrayAttr recordsAttribute(mlir::MLIRContext *context, const std::vector<FusionRecord> &records) {
  mlir::Builder builder(context);
  std::vector<mlir::Attribute> list;
  for (const FusionRecord &record : records) {
    std::vector<mlir::NamedAttribute> entries;
    if (record.accepted)
      entries.push_back(builder.getNamedAttr("accepted", builder.getUnitAttr()));
    else
      entries.push_back(text(builder, "rejected", describe(record)));
    entries.push_back(builder.getNamedAttr("ops", numbers(builder, record.ops)));
    entries.push_back(text(builder, "pass", record.pass));
    if (!record.pattern.empty())
      entries.push_back(text(builder, "pattern", record.pattern));
    entries.push_back(builder.getNamedAttr("saved_bytes", builder.getI64IntegerAttr(record.savedBytes)));
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
    std::vector<mlir::NamedAttribute> entries{text(builder, "name", problem.candidates[index].name),
                                              builder.getNamedAttr("ops", numbers(builder, candidate.ops))};
    if (!candidate.pattern.empty())
      entries.push_back(text(builder, "pattern", candidate.pattern));
    list.push_back(builder.getDictionaryAttr(entries));
  }
  return builder.getArrayAttr(list);
}

}  // namespace weft
