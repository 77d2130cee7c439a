// Kernels dissolved, types rewritten by axis name; see ScaledGraph.h.
#include "tools/driver/ScaledGraph.h"

#include "ir/Weft.h"
#include "kernel/Error.h"
#include "kernel/Nesting.h"
#include "tools/driver/Compilation.h"
#include "tools/driver/Diagnostics.h"
#include "tools/driver/ScaledPlan.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

namespace weft::driver {
namespace {

using Dims = std::map<std::string, int64_t>;

/// The body's ops take the kernel's place. A change of layout has no place in a graph without layouts.
void dissolve(KernelOp kernel) {
  mlir::Block &body = kernel.getBody().front();
  for (auto [argument, operand] : llvm::zip(body.getArguments(), kernel->getOperands())) argument.replaceAllUsesWith(operand);
  mlir::Operation *yield = body.getTerminator();
  for (auto [result, value] : llvm::zip(kernel->getResults(), yield->getOperands())) result.replaceAllUsesWith(value);
  yield->erase();
  for (mlir::Operation &op : llvm::make_early_inc_range(body)) {
    op.moveBefore(kernel);
    if (auto identity = mlir::dyn_cast<IdentityOp>(op)) {
      identity->getResult(0).replaceAllUsesWith(identity->getOperand(0));
      identity->erase();
    }
  }
  kernel->erase();
}

/// New extents by axis name.
class Scaling {
public:
  Scaling(const Dims &dims, Dims small) : dims(dims), small(std::move(small)) {
    // Where one axis follows another (keys follow queries), it is scaled like it.
    for (const auto &[name, leader] : {std::pair("k", "j"), std::pair("w", "p")})
      if (dims.contains(name) && dims.contains(leader) && dims.at(name) == dims.at(leader) && this->small.contains(leader))
        this->small.try_emplace(name, this->small.at(leader));
  }

  int64_t extent(const std::string &axis, int64_t extent) const {
    const auto scaled = small.find(axis);
    if (scaled == small.end() || dims.at(axis) < scaled->second || extent % dims.at(axis) != 0) return extent;
    return extent / dims.at(axis) * scaled->second;
  }
  mlir::Type type(mlir::Type type) const {
    const auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type);
    if (!tensor) return type;
    const std::vector<std::string> names = axisNames(type);
    llvm::SmallVector<int64_t> shape(tensor.getShape());
    for (size_t axis = 0; axis < names.size(); ++axis) shape[axis] = extent(names[axis], shape[axis]);
    return mlir::RankedTensorType::get(shape, tensor.getElementType(), tensor.getEncoding());
  }
  const Dims &extents() const { return small; }

private:
  const Dims &dims;
  Dims small;
};

/// Extents that stand in attributes. Before types change: they are read by the axis' name.
void scaleAttributes(mlir::Operation *op, const Scaling &scaling) {
  mlir::Builder builder(op->getContext());
  if (auto slice = mlir::dyn_cast<SliceOp>(op)) {
    const std::string axis = axisNames(slice.getX().getType())[size_t(slice.getAxis())];
    slice.setStart(scaling.extent(axis, slice.getStart()));
    slice.setSize(scaling.extent(axis, slice.getSize()));
  }
  if (auto split = mlir::dyn_cast<SplitAxisOp>(op)) {
    const std::vector<std::string> names = axisNames(split.getResult().getType());
    llvm::SmallVector<int64_t> sizes(split.getSizes());
    for (size_t part = 0; part < sizes.size(); ++part) sizes[part] = scaling.extent(names[size_t(split.getAxis()) + part], sizes[part]);
    split.setSizes(sizes);
  }
  const auto scaleCount = [&](auto norm) {  // of elements of a row
    const std::vector<std::string> names = axisNames(norm.getX().getType());
    for (size_t axis = 0; axis < names.size(); ++axis)
      if (!llvm::is_contained(norm.getAlong(), int64_t(axis))) norm.setCount(uint64_t(scaling.extent(names[axis], int64_t(norm.getCount()))));
  };
  if (auto norm = mlir::dyn_cast<NormalizeOp>(op)) scaleCount(norm);
  if (auto norm = mlir::dyn_cast<RmsNormalizeOp>(op)) scaleCount(norm);
}

void scale(GraphOp graph, const Scaling &scaling) {
  mlir::Block &body = graph.getBody().front();
  for (mlir::Operation &op : body) scaleAttributes(&op, scaling);
  for (mlir::BlockArgument argument : body.getArguments()) argument.setType(scaling.type(argument.getType()));
  for (mlir::Operation &op : body)
    for (mlir::Value result : op.getResults()) result.setType(scaling.type(result.getType()));
  const auto all = [&](llvm::ArrayRef<mlir::Type> types) { return llvm::map_to_vector(types, [&](mlir::Type one) { return scaling.type(one); }); };
  graph.setFunctionType(mlir::FunctionType::get(graph.getContext(), all(graph.getArgumentTypes()), all(graph.getResultTypes())));
}

ScaledGraph rewritten(const std::string &text, const Scaling &scaling) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<WeftDialect>();
  checkMlirNesting(text, "graph.mlir");
  CapturedDiagnostics diagnostics(context);
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(text, &context, "graph.mlir");
  if (!module) throw diagnostics.error(ErrorKind::badInput, "graph.mlir is not a graph");
  for (GraphOp graph : module->getOps<GraphOp>()) {
    for (KernelOp kernel : llvm::make_early_inc_range(graph.getBody().front().getOps<KernelOp>())) dissolve(kernel);
    scale(graph, scaling);
  }
  if (mlir::failed(mlir::verify(*module)))
    throw Error::unsupported("the graph holds on to its extents: {}", diagnostics.text());
  return {.text = Compilation::print(*module), .dims = scaling.extents()};
}

}  // namespace

ScaledGraph scaledGraph(const std::string &graph, const Dims &dims) { return rewritten(graph, Scaling(dims, scaledDims(dims))); }
ScaledGraph plainGraph(const std::string &graph) {
  const Dims none;
  return rewritten(graph, Scaling(none, {}));
}

}  // namespace weft::driver
