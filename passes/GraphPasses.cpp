// The graph passes as MLIR passes: options in, the function of the pass, diagnostics out.
#include "kernel/Error.h"
#include "passes/Passes.h"
#include "passes/Rewrites.h"
#include "passes/configure/Families.h"

#include "mlir/Pass/PassRegistry.h"

namespace weft {

#define GEN_PASS_DECL
#define GEN_PASS_DEF_DIFFERENTIATEPASS
#define GEN_PASS_DEF_PACKSEQUENCESPASS
#define GEN_PASS_DEF_FOLDSCALEPASS
#define GEN_PASS_DEF_MASKUNUSEDTOKENSPASS
#define GEN_PASS_DEF_IMPLIEDMASKSPASS
#define GEN_PASS_DEF_STACKPROJECTIONSPASS
#define GEN_PASS_DEF_DECOMPOSESOFTMAXPASS
#define GEN_PASS_DEF_RECOMPOSESOFTMAXPASS
#define GEN_PASS_DEF_COMMUTEGATESPASS
#define GEN_PASS_DEF_COMMUTESCALINGPASS
#define GEN_PASS_DEF_FOLDSOFTMAXPASS
#define GEN_PASS_DEF_RECOMPUTEATTENTIONPASS
#define GEN_PASS_DEF_DECOMPOSENORMSPASS
#define GEN_PASS_DEF_BOUNDDOCUMENTMASKSPASS
#define GEN_PASS_DEF_FUSEPASS
#include "passes/Passes.h.inc"

namespace {

constexpr llvm::StringLiteral recordsName = "weft.records", candidatesName = "weft.candidates";

void addRecords(GraphOp graph, const std::vector<FusionRecord> &records) {
  std::vector<mlir::Attribute> all;
  if (auto before = graph->getAttrOfType<mlir::ArrayAttr>(recordsName))
    all.assign(before.begin(), before.end());
  const mlir::ArrayAttr added = recordsAttribute(graph.getContext(), records);
  all.insert(all.end(), added.begin(), added.end());
  graph->setAttr(recordsName, mlir::ArrayAttr::get(graph.getContext(), all));
}

/// Our libraries throw; MLIR's pass manager must not see that.
template <typename Body>
bool reportErrors(mlir::Operation *at, Body body) {
  try {
    body();
    return true;
  } catch (const Error &error) {
    at->emitError() << error.what();
    return false;
  }
}

struct DifferentiateImpl : impl::DifferentiatePassBase<DifferentiateImpl> {
  using DifferentiatePassBase::DifferentiatePassBase;
  void runOnOperation() override {
    const DifferentiateOptions options{
        .withRespectTo = {withRespectTo.begin(), withRespectTo.end()},
        .recompute = {recompute.begin(), recompute.end()}};
    if (mlir::failed(differentiate(getOperation(), options))) signalPassFailure();
  }
};

struct PackSequencesImpl : impl::PackSequencesPassBase<PackSequencesImpl> {
  using PackSequencesPassBase::PackSequencesPassBase;
  void runOnOperation() override {
    const std::string reason = packSequences(getOperation(), axis);
    if (reason.empty()) return;
    getOperation().emitError() << "sequences are not packed: " << reason;
    signalPassFailure();
  }
};

struct FoldScaleImpl : impl::FoldScalePassBase<FoldScaleImpl> {
  void runOnOperation() override { foldScales(getOperation()); }
};

struct MaskUnusedTokensImpl : impl::MaskUnusedTokensPassBase<MaskUnusedTokensImpl> {
  void runOnOperation() override { maskUnusedTokens(getOperation()); }
};

struct ImpliedMasksImpl : impl::ImpliedMasksPassBase<ImpliedMasksImpl> {
  void runOnOperation() override { leaveOutImpliedMasks(getOperation()); }
};

struct StackProjectionsImpl : impl::StackProjectionsPassBase<StackProjectionsImpl> {
  using StackProjectionsPassBase::StackProjectionsPassBase;
  void runOnOperation() override {
    std::vector<FusionRecord> records;
    const std::vector<ProjectionGroup> groups = findProjectionGroups(getOperation(), records);
    addRecords(getOperation(), records);
    for (const ProjectionGroup &group : groups) {
      const size_t last = group.projections.size() - 1;
      if (mode == "three") stackProjections(group, 0, last);
      else if (mode == "two") stackProjections(group, 0, 1);
      else if (mode == "last-two") stackProjections(group, last - 1, last);
      else if (mode != "separate") return fail();
    }
  }
  void fail() {
    getOperation().emitError() << "mode '" << mode.getValue()
                               << "' is not one of separate, two, last-two, three";
    signalPassFailure();
  }
};

struct RecomputeAttentionImpl : impl::RecomputeAttentionPassBase<RecomputeAttentionImpl> {
  void runOnOperation() override { recomputeAttentions(getOperation()); }
};

struct DecomposeSoftmaxImpl : impl::DecomposeSoftmaxPassBase<DecomposeSoftmaxImpl> {
  using DecomposeSoftmaxPassBase::DecomposeSoftmaxPassBase;
  void runOnOperation() override {
    if (tile < 1) {
      getOperation().emitError() << "tile of " << tile.getValue() << " elements; the least is 1";
      return signalPassFailure();
    }
    for (SoftmaxOp softmax :
         llvm::make_early_inc_range(getOperation().getBody().front().getOps<SoftmaxOp>()))
      decomposeSoftmax(softmax, tile);
  }
};

struct RecomposeSoftmaxImpl : impl::RecomposeSoftmaxPassBase<RecomposeSoftmaxImpl> {
  using RecomposeSoftmaxPassBase::RecomposeSoftmaxPassBase;
  void runOnOperation() override {
    if (tile < 1) {
      getOperation().emitError() << "tile of " << tile.getValue() << " elements; the least is 1";
      return signalPassFailure();
    }
    recomposeSoftmaxes(getOperation(), tile);
  }
};

struct CommuteGatesImpl : impl::CommuteGatesPassBase<CommuteGatesImpl> {
  void runOnOperation() override { commuteGates(getOperation()); }
};

struct CommuteScalingImpl : impl::CommuteScalingPassBase<CommuteScalingImpl> {
  void runOnOperation() override { commuteScalings(getOperation()); }
};

struct FoldSoftmaxImpl : impl::FoldSoftmaxPassBase<FoldSoftmaxImpl> {
  void runOnOperation() override { foldSoftmaxes(getOperation()); }
};

struct BoundDocumentMasksImpl : impl::BoundDocumentMasksPassBase<BoundDocumentMasksImpl> {
  void runOnOperation() override { boundDocumentMasks(getOperation()); }
};

struct DecomposeNormsImpl : impl::DecomposeNormsPassBase<DecomposeNormsImpl> {
  using DecomposeNormsPassBase::DecomposeNormsPassBase;
  void runOnOperation() override {
    addRecords(getOperation(), decomposeNorms(getOperation(), deferred ? NormSteps::deferred
                                                                       : NormSteps::decomposed));
  }
};

struct FuseImpl : impl::FusePassBase<FuseImpl> {
  using FusePassBase::FusePassBase;
  void runOnOperation() override {
    GraphOp graph = getOperation();
    const auto body = [&] {
      FuseOptions options{.rules = parseFuseRules(rules),
                          .forced = pairs("together", together),
                          .forbidden = pairs("apart", apart)};
      if (!device.empty()) {
        options.epilogueRejection = epilogueRejections(findDevice(device));
        options.prologueRejection = prologueRejections(findDevice(device));
        options.attentionRejection = attentionRejections(findDevice(device));
        options.attentionBackwardRejection = attentionBackwardRejections(findDevice(device));
      }
      const FusionResult result = proposeFusions(graph, options);
      attachFusions(graph, result);
    };
    if (!reportErrors(graph, body)) signalPassFailure();
  }

  static std::set<std::pair<int, int>> pairs(std::string_view option,
                                             llvm::ArrayRef<int64_t> list) {
    if (list.size() % 2 != 0)
      throw Error::badInput("{} lists {} op numbers; they come in pairs", option, list.size());
    std::set<std::pair<int, int>> result;
    for (size_t index = 0; index + 1 < list.size(); index += 2)
      result.emplace(static_cast<int>(list[index]), static_cast<int>(list[index + 1]));
    return result;
  }
};

}  // namespace

void attachFusions(mlir::Operation *graph, const FusionResult &fusions) {
  graph->setAttr(candidatesName, candidatesAttribute(graph, fusions));
  addRecords(mlir::cast<GraphOp>(graph), fusions.records);
}

void detachFusions(mlir::Operation *graph) {
  graph->removeAttr(candidatesName);
  graph->removeAttr(recordsName);
}

FuseRules parseFuseRules(const std::string &text) {
  if (const std::optional<FuseRules> rules = parseSpelled<FuseRules>(text)) return *rules;
  throw Error::badInput("fuse rules '{}' are not one of {}", text,
                        fmt::join(allSpellings<FuseRules>(), ", "));
}

namespace {
#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"
}  // namespace

void registerWeftPasses() {
  registerWeftGraphPasses();
  registerGraphPipeline();
}

}  // namespace weft
