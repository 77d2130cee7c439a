// Attentions cut out of graphs; see AttentionSites.h.
#include "tools/driver/AttentionSites.h"

#include "ir/Einsum.h"
#include "ir/Weft.h"
#include "kernel/Error.h"
#include "kernel/Nesting.h"
#include "passes/Describe.h"
#include "passes/Rewrites.h"
#include "passes/attention/Gates.h"
#include "tools/driver/Compilation.h"
#include "tools/driver/Diagnostics.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

#include <algorithm>

namespace weft::driver {
namespace {

using Ops = llvm::SetVector<mlir::Operation *>;

/// A graph from its text, with what it lives in.
struct Parsed {
  explicit Parsed(const std::string &text) : context(mlir::MLIRContext::Threading::DISABLED) {
    context.loadDialect<WeftDialect>();
    checkMlirNesting(text, "report.json.mlir");
    const CapturedDiagnostics diagnostics(context);
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context, "report.json.mlir");
    if (!module) throw diagnostics.error(ErrorKind::badInput, "the request holds no graph");
    if (module->getOps<GraphOp>().empty()) throw Error::badInput("the request holds no graph");
  }
  GraphOp graph() { return *module->getOps<GraphOp>().begin(); }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

bool isElementwise(mlir::Operation *op) {
  auto weftOp = mlir::dyn_cast<WeftOp>(op);
  return weftOp && weftOp.operatorClass() == OperatorClass::elementwise && op->getNumResults() == 1;
}

mlir::ArrayRef<int64_t> shapeOf(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType()).getShape();
}

/// The contraction that a score is computed from by element-wise ops over all its axes; null where
/// there is none.
ContractOp scoresBehind(mlir::Value score) {
  mlir::Operation *op = score.getDefiningOp();
  if (!op) return {};
  if (auto contraction = mlir::dyn_cast<ContractOp>(op)) return contraction;
  if (!isElementwise(op)) return {};
  for (mlir::Value operand : op->getOperands())
    if (shapeOf(operand) == shapeOf(score))
      if (ContractOp found = scoresBehind(operand)) return found;
  return {};
}

/// Ops between the contraction and the softmax, or its fold, that read the one and reach the other,
/// both included.
Ops scoreOps(ContractOp contraction, mlir::Operation *softmax) {
  Ops ops;
  ops.insert(contraction);
  for (mlir::Operation *op = contraction->getNextNode(); op && op != softmax;
       op = op->getNextNode())
    if (isElementwise(op) && llvm::any_of(op->getOperands(), [&](mlir::Value operand) {
          return operand.getDefiningOp() && ops.contains(operand.getDefiningOp());
        }))
      ops.insert(op);
  llvm::DenseSet<mlir::Operation *> reaching = {softmax->getOperand(0).getDefiningOp()};
  for (mlir::Operation *op : llvm::reverse(ops.getArrayRef()))
    if (reaching.contains(op))
      for (mlir::Value operand : op->getOperands())
        if (operand.getDefiningOp()) reaching.insert(operand.getDefiningOp());
  Ops kept;
  for (mlir::Operation *op : ops)
    if (reaching.contains(op)) kept.insert(op);
  kept.insert(softmax);
  return kept;
}

/// Appends casts, dropout and gates behind the softmax and the contraction that sums over its axis;
/// null, and ops in vain, where no op is this contraction.
ContractOp followToValues(SoftmaxOp softmax, Ops &ops) {
  const size_t axis = size_t(softmax.getAxis());
  mlir::Value value = softmax.getResult();
  for (;;) {
    std::vector<mlir::Operation *> readers(value.user_begin(), value.user_end());
    std::ranges::sort(readers,
                      [](mlir::Operation *a, mlir::Operation *b) { return a->isBeforeInBlock(b); });
    mlir::Operation *next = nullptr;
    for (mlir::Operation *reader : readers) {
      if (auto contraction = mlir::dyn_cast<ContractOp>(reader)) {
        const Einsum einsum = parseEinsum(contraction.getSpec().str());
        const std::string &letters = contraction.getA() == value ? einsum.a : einsum.b;
        if (einsum.reduced() != std::string(1, letters[axis])) continue;
        ops.insert(reader);
        return contraction;
      }
      if (!next && (mlir::isa<CastOp, DropoutOp>(reader) || isGateOf(reader, value))) next = reader;
    }
    if (!next) return {};
    ops.insert(next);
    value = next->getResult(0);
  }
}

std::string nameOf(mlir::Value value, size_t number) {
  const std::string written = writtenName(value);
  return written.empty() ? "x" + std::to_string(number) : written;
}

int64_t bytesOf(mlir::Type type) { return elementsOf(type) * int64_t(sizeOf(*toDType(type))); }

struct CutGraph {
  std::string text;
  int64_t bytes = 0;  ///< of arguments and results
};

/// The ops that pack a value into tokens.
std::vector<PackOp> packsOf(mlir::Value value) {
  std::vector<PackOp> packs;
  for (mlir::Operation *user : value.getUsers())
    if (auto pack = mlir::dyn_cast<PackOp>(user); pack && pack.getX() == value)
      packs.push_back(pack);
  return packs;
}

/// The ops, in the order of the graph, with those that unpack what they read and pack what they
/// write: without them a fused attention would not be one over packed tokens.
Ops withPacking(const Ops &ops) {
  Ops all = ops;
  const auto addOffsets = [&](mlir::Value offsets) {
    if (auto op = offsets.getDefiningOp<OffsetsOp>()) all.insert(op);
  };
  for (mlir::Operation *op : ops) {
    for (mlir::Value operand : op->getOperands())
      if (auto unpack = operand.getDefiningOp<UnpackOp>()) {
        all.insert(unpack);
        addOffsets(unpack.getOffsets());
      }
    for (mlir::Value result : op->getResults())
      for (PackOp pack : packsOf(result)) {
        all.insert(pack);
        addOffsets(pack.getOffsets());
      }
  }
  std::vector<mlir::Operation *> ordered(all.begin(), all.end());
  std::ranges::sort(ordered,
                    [](mlir::Operation *a, mlir::Operation *b) { return a->isBeforeInBlock(b); });
  return {ordered.begin(), ordered.end()};
}

/// The ops as a graph of what they read and what others read of them.
CutGraph cutOut(GraphOp graph, const Ops &computing, mlir::Value output) {
  const Ops ops = withPacking(computing);
  CutGraph result;
  llvm::SetVector<mlir::Value> arguments, results;
  if (packsOf(output).empty()) results.insert(output);
  for (mlir::Operation *op : ops) {
    for (mlir::Value operand : op->getOperands())
      if (!operand.getDefiningOp() || !ops.contains(operand.getDefiningOp()))
        arguments.insert(operand);
    for (mlir::Value result : op->getResults())
      if (llvm::any_of(result.getUsers(),
                       [&](mlir::Operation *user) {
                         return !ops.contains(user) && !mlir::isa<ReturnOp>(user);
                       }) ||
          (result != output && llvm::any_of(result.getUsers(), [](mlir::Operation *user) {
             return mlir::isa<ReturnOp>(user);
           })))
        results.insert(result);
  }
  std::vector<mlir::Type> argumentTypes, resultTypes;
  std::vector<std::string> names;
  for (mlir::Value value : arguments) {
    argumentTypes.push_back(value.getType());
    names.push_back(nameOf(value, names.size()));
    result.bytes += bytesOf(value.getType());
  }
  for (mlir::Value value : results) {
    resultTypes.push_back(value.getType());
    result.bytes += bytesOf(value.getType());
  }
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(graph.getLoc());
  mlir::OpBuilder builder(graph.getContext());
  builder.setInsertionPointToEnd(module->getBody());
  auto cut =
      GraphOp::create(builder, graph.getLoc(), "attention", argumentTypes, resultTypes, names);
  mlir::Block &body = cut.getBody().front();
  mlir::IRMapping mapping;
  for (size_t index = 0; index < arguments.size(); ++index)
    mapping.map(arguments[index], body.getArgument(unsigned(index)));
  builder.setInsertionPointToEnd(&body);
  for (mlir::Operation *op : ops) builder.clone(*op, mapping);
  const auto returned =
      llvm::map_to_vector(results, [&](mlir::Value value) { return mapping.lookup(value); });
  ReturnOp::create(builder, graph.getLoc(), returned);
  result.text = Compilation::print(*module);
  return result;
}

/// The same softmax in a clone of its graph.
SoftmaxOp sameIn(GraphOp clone, SoftmaxOp softmax) {
  const auto position =
      std::distance(softmax->getBlock()->begin(), mlir::Block::iterator(softmax.getOperation()));
  return mlir::cast<SoftmaxOp>(*std::next(clone.getBody().front().begin(), position));
}

/// Whether its probabilities are read by more than the product with values, as by a backward pass.
bool isTrained(SoftmaxOp softmax) { return !forwardRejection(softmax).empty(); }

/// A clone of a graph to rewrite the softmax in. The contraction of the scores stays; the backward
/// pass has another.
struct TrainedClone {
  TrainedClone(GraphOp original, SoftmaxOp of)
      : owner(original->clone()),
        graph(mlir::cast<GraphOp>(*owner)),
        softmax(sameIn(graph, of)),
        contraction(scoresBehind(softmax.getX())),
        scores(softmax.getX()) {}
  mlir::OwningOpRef<mlir::Operation *> owner;
  GraphOp graph;
  SoftmaxOp softmax;
  ContractOp contraction;
  mlir::Value scores;
};

/// What the fused kind computes of a trained attention; nothing where it is what the others
/// compute, or where it cannot be.
std::optional<CutGraph> cutOutFused(GraphOp graph, SoftmaxOp softmax) {
  if (!isTrained(softmax) || !recomputeAttentionRejection(softmax).empty()) return {};
  TrainedClone trained(graph, softmax);
  recomputeAttention(trained.softmax);
  const auto fold = llvm::find_if(trained.scores.getUsers(), [](mlir::Operation *user) {
    return mlir::isa<OnlineSoftmaxContractOp>(user);
  });
  Ops ops = scoreOps(trained.contraction, *fold);
  mlir::Value output = (*fold)->getResult(0);
  if (output.hasOneUse())
    if (auto scale = mlir::dyn_cast<ScaleOp>(*output.user_begin())) {
      ops.insert(scale);
      output = scale.getResult();
    }
  return cutOut(trained.graph, ops, output);
}

/// The same of the recomposed kind.
std::optional<CutGraph> cutOutRecomposed(GraphOp graph, SoftmaxOp softmax, int64_t subVector) {
  if (!isTrained(softmax) || !recomposeRejection(softmax).empty()) return {};
  TrainedClone trained(graph, softmax);
  recomposeSoftmax(trained.softmax, subVector);
  const auto isLocal = [](mlir::Operation *user) { return mlir::isa<LocalSoftmaxOp>(user); };
  auto local = mlir::cast<LocalSoftmaxOp>(*llvm::find_if(trained.scores.getUsers(), isLocal));
  Ops ops = scoreOps(trained.contraction, local);
  ops.insert(*local.getMaxima().user_begin());
  // The forward pass stands first.
  mlir::Value value = local.getExponentials();
  for (;;) {
    mlir::Operation *first = nullptr;
    for (mlir::Operation *reader : value.getUsers())
      if (!first || reader->isBeforeInBlock(first)) first = reader;
    ops.insert(first);
    value = first->getResult(0);
    if (mlir::isa<ContractOp>(first)) return cutOut(trained.graph, ops, value);
  }
}

/// The axis of positions of queries: of those that scores have from queries alone the one that
/// masks name, else the one as long as the keys, else the last.
size_t queryDimension(const Ops &ops, const Einsum &einsum, bool isQueryFirst, mlir::Value scores,
                      size_t keyDimension) {
  for (mlir::Operation *op : ops)
    if (auto mask = mlir::dyn_cast<MaskOp>(op); mask && mask.getQuery())
      return size_t(*mask.getQuery());
  const std::string &query = isQueryFirst ? einsum.a : einsum.b,
                    &key = isQueryFirst ? einsum.b : einsum.a;
  size_t last = keyDimension;
  for (size_t at = 0; at < einsum.result.size(); ++at) {
    if (query.find(einsum.result[at]) == std::string::npos ||
        key.find(einsum.result[at]) != std::string::npos)
      continue;
    last = at;
    if (shapeOf(scores)[at] == shapeOf(scores)[keyDimension]) break;
  }
  return last;
}

std::optional<AttentionSite> siteOf(GraphOp graph, SoftmaxOp softmax, int64_t subVector) {
  ContractOp contraction = scoresBehind(softmax.getX());
  if (!contraction) return {};
  Ops ops = scoreOps(contraction, softmax);
  ContractOp values = followToValues(softmax, ops);
  if (!values) return {};

  const Einsum einsum = parseEinsum(contraction.getSpec().str());
  const size_t keyDimension = size_t(softmax.getAxis());
  const bool isQueryFirst = einsum.b.find(einsum.result[keyDimension]) != std::string::npos;
  const mlir::Value scores = contraction.getResult();
  const mlir::ArrayRef<int64_t> shape = shapeOf(scores);
  const size_t queryAt = queryDimension(ops, einsum, isQueryFirst, scores, keyDimension);
  const std::vector<std::string> axes = axisNames(scores.getType());
  AttentionSite site;
  site.softmax = writtenName(softmax.getResult());
  site.output = writtenName(values.getResult());
  site.dtype = *toDType(contraction.getA().getType());
  site.queryAxis = axes[queryAt];
  site.keyAxis = axes[keyDimension];
  site.queries = queryAt == keyDimension ? 1 : shape[queryAt];
  site.keys = shape[keyDimension];
  for (size_t at = 0; at < shape.size(); ++at)
    if (at != queryAt && at != keyDimension) site.heads *= shape[at];
  const mlir::ArrayRef<int64_t> first = shapeOf(contraction.getA());
  for (size_t at = 0; at < einsum.a.size(); ++at)
    if (einsum.reduced().find(einsum.a[at]) != std::string::npos) site.headDim *= first[at];
  site.valueDim = elementsOf(values.getResult().getType()) / (site.heads * site.queries);
  if (const std::vector<PackOp> packs = packsOf(values.getResult()); !packs.empty())
    site.packed = writtenName(packs.front()->getResult(0));
  CutGraph cut = cutOut(graph, ops, values.getResult());
  site.graph = std::move(cut.text), site.compulsoryBytes = cut.bytes;
  if (std::optional<CutGraph> recomposed = cutOutRecomposed(graph, softmax, subVector))
    site.recomposed = std::move(recomposed->text);
  if (std::optional<CutGraph> fused = cutOutFused(graph, softmax))
    site.fused = std::move(fused->text), site.compulsoryBytes = fused->bytes;
  return site;
}

}  // namespace

std::vector<AttentionSite> attentionSites(const std::string &graph, int64_t subVector) {
  Parsed parsed(graph);
  std::vector<AttentionSite> sites;
  for (SoftmaxOp softmax : parsed.graph().getBody().front().getOps<SoftmaxOp>())
    if (std::optional<AttentionSite> site = siteOf(parsed.graph(), softmax, subVector))
      sites.push_back(std::move(*site));
  return sites;
}

namespace {

/// Where packed tokens lie in the tensors of a graph, and of how many sequences.
llvm::DenseMap<mlir::Value, std::pair<size_t, int64_t>> tokenAxes(GraphOp graph) {
  llvm::DenseMap<mlir::Value, std::pair<size_t, int64_t>> axes;
  graph.walk([&](PackOp op) {
    const llvm::ArrayRef<int64_t> pair = op.getAxes();
    axes[op.getResult()] = {size_t(pair[0] - (pair[0] > pair[1] ? 1 : 0)),
                            extents(op.getX().getType())[size_t(pair[0])]};
  });
  graph.walk([&](UnpackOp op) {
    axes[op.getX()] = {size_t(op.getAxis()),
                       extents(op.getResult().getType())[size_t(op.getInto()[0])]};
  });
  return axes;
}

}  // namespace

std::string atLengths(const AttentionSite &site, AttentionChoice kind, int64_t queries,
                      int64_t keys) {
  Parsed parsed(site.graphOf(kind));
  GraphOp graph = parsed.graph();
  const auto tokens = tokenAxes(graph);
  const auto resized = [&](mlir::Value value) -> mlir::Type {
    const mlir::Type type = value.getType();
    const auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type);
    if (!tensor) return type;
    const std::vector<std::string> names = axisNames(type);
    llvm::SmallVector<int64_t> shape(tensor.getShape());
    for (size_t axis = 0; axis < names.size(); ++axis)
      if (names[axis] == site.keyAxis) shape[axis] = keys;
      else if (names[axis] == site.queryAxis) shape[axis] = queries;
    if (const auto found = tokens.find(value); found != tokens.end())
      shape[found->second.first] = found->second.second * keys;
    return mlir::RankedTensorType::get(shape, tensor.getElementType(), tensor.getEncoding());
  };
  for (mlir::BlockArgument argument : graph.getBody().getArguments())
    argument.setType(resized(argument));
  for (mlir::Operation &op : graph.getBody().front()) {
    for (mlir::Value result : op.getResults()) result.setType(resized(result));
    if (auto offsets = mlir::dyn_cast<OffsetsOp>(op)) offsets.setBound(uint64_t(keys));
  }
  mlir::Block &body = graph.getBody().front();
  graph.setFunctionType(mlir::FunctionType::get(graph.getContext(), body.getArgumentTypes(),
                                                body.getTerminator()->getOperandTypes()));
  const CapturedDiagnostics diagnostics(parsed.context);
  if (mlir::failed(mlir::verify(*parsed.module)))
    throw Error::unsupported("the attention holds on to its lengths: {}", diagnostics.text());
  return Compilation::print(*parsed.module);
}

}  // namespace weft::driver
