// Types rewritten by axis name, kernels dissolved; see ScaledGraph.h.
#include "tools/driver/ScaledGraph.h"

#include "ir/Weft.h"
#include "kernel/BlockMask.h"
#include "kernel/Error.h"
#include "kernel/Nesting.h"
#include "kernel/TileBounds.h"
#include "passes/ConfigurationAttributes.h"
#include "passes/Describe.h"
#include "passes/Passes.h"
#include "passes/configure/Packing.h"
#include "tools/driver/Compilation.h"
#include "tools/driver/Diagnostics.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include "llvm/ADT/DenseSet.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

namespace weft::driver {
namespace {

/// The body's ops take the kernel's place. A change of layout has no place in a graph without
/// layouts.
void dissolve(KernelOp kernel) {
  mlir::Block &body = kernel.getBody().front();
  for (auto [argument, operand] : llvm::zip(body.getArguments(), kernel->getOperands()))
    argument.replaceAllUsesWith(operand);
  mlir::Operation *yield = body.getTerminator();
  for (auto [result, value] : llvm::zip(kernel->getResults(), yield->getOperands()))
    result.replaceAllUsesWith(value);
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

/// A part of an axis, which may have another name in it, before and after.
struct PartOfAxis {
  std::string part, whole;  ///< names
  int64_t start = 0, size = 0, extent = 0;

  PartOfAxis(mlir::Type partType, mlir::Type wholeType, size_t dimension, int64_t start)
      : part(axisNames(partType)[dimension]),
        whole(axisNames(wholeType)[dimension]),
        start(start),
        size(extents(partType)[dimension]),
        extent(extents(wholeType)[dimension]) {}
  int64_t scaledSize(const Scaling &scaling) const { return scaling.extent(part, size); }
  int64_t scaledExtent(const Scaling &scaling) const { return scaling.extent(whole, extent); }
  /// The last part stays last.
  int64_t scaledStart(const Scaling &scaling) const {
    return start > 0 && start + size == extent ? scaledExtent(scaling) - scaledSize(scaling)
                                               : scaling.extent(whole, start);
  }
};

void scaleSlice(SliceOp slice, const Scaling &scaling) {
  const PartOfAxis part(slice.getResult().getType(), slice.getX().getType(),
                        size_t(slice.getAxis()), int64_t(slice.getStart()));
  slice.setSize(part.scaledSize(scaling));
  slice.setStart(part.scaledStart(scaling));
}

void scalePad(PadOp pad, const Scaling &scaling) {
  const PartOfAxis part(pad.getX().getType(), pad.getResult().getType(), size_t(pad.getAxis()),
                        int64_t(pad.getStart()));
  pad.setSize(part.scaledExtent(scaling));
  pad.setStart(part.scaledStart(scaling));
}

/// Windows keep their share of the keys, and patterns their tiles, as far as there are any.
void scaleMask(MaskOp mask, const Scaling &scaling) {
  const mlir::Type x = mask.getX().getType();
  const std::vector<std::string> names = axisNames(x);
  const std::vector<int64_t> sizes = extents(x);
  const auto shorter = [&](int64_t dimension) {
    return scaling.extent(names[size_t(dimension)], sizes[size_t(dimension)]);
  };
  const int64_t key = mask.getKey(), keys = sizes[size_t(key)];
  const auto share = [&](uint64_t count) {  // of something no less than of nothing
    return uint64_t((int64_t(count) * shorter(key) + keys - 1) / keys);
  };
  if (mask.getLeft() && *mask.getLeft() < uint64_t(keys)) mask.setLeft(share(*mask.getLeft()));
  if (mask.getRight() && *mask.getRight() < uint64_t(keys)) mask.setRight(share(*mask.getRight()));
  if (mask.getGlobal()) mask.setGlobal(share(*mask.getGlobal()));
  if (!mask.getPattern()) return;
  const int64_t query = *mask.getQuery();
  int64_t heads = 1;
  for (const int64_t dimension : mask.getAlong().value_or(llvm::ArrayRef<int64_t>()))
    heads *= shorter(dimension);
  mask.setPattern(BlockPattern::parse(mask.getPattern()->str())
                      .scaled({mask.countHeads(), sizes[size_t(query)], keys},
                              {heads, shorter(query), shorter(key)})
                      .text());
}

/// Heads that are turned keep their share of the axis.
void scaleRotary(RotaryOp rotary, const Scaling &scaling) {
  if (!rotary.getAmong()) return;
  const std::string axis = axisNames(rotary.getX().getType())[size_t(*rotary.getAmong())];
  if (rotary.getBegin())
    rotary.setBegin(uint64_t(scaling.extent(axis, int64_t(*rotary.getBegin()))));
  if (rotary.getEnd()) rotary.setEnd(uint64_t(scaling.extent(axis, int64_t(*rotary.getEnd()))));
}

/// Extents that stand in attributes. Before types change: they are read by the axis' name.
void scaleAttributes(mlir::Operation *op, const Scaling &scaling) {
  mlir::Builder builder(op->getContext());
  if (auto slice = mlir::dyn_cast<SliceOp>(op)) scaleSlice(slice, scaling);
  if (auto pad = mlir::dyn_cast<PadOp>(op)) scalePad(pad, scaling);
  if (auto mask = mlir::dyn_cast<MaskOp>(op)) scaleMask(mask, scaling);
  if (auto rotary = mlir::dyn_cast<RotaryOp>(op)) scaleRotary(rotary, scaling);
  if (auto split = mlir::dyn_cast<SplitAxisOp>(op)) {
    const std::vector<std::string> names = axisNames(split.getResult().getType());
    llvm::SmallVector<int64_t> sizes(split.getSizes());
    for (size_t part = 0; part < sizes.size(); ++part)
      sizes[part] = scaling.extent(names[size_t(split.getAxis()) + part], sizes[part]);
    split.setSizes(sizes);
  }
  const auto scaleCount = [&](auto norm) {  // of elements of a row
    const std::vector<std::string> names = axisNames(norm.getX().getType());
    for (size_t axis = 0; axis < names.size(); ++axis)
      if (!llvm::is_contained(norm.getAlong(), int64_t(axis)))
        norm.setCount(uint64_t(scaling.extent(names[axis], int64_t(norm.getCount()))));
  };
  if (auto norm = mlir::dyn_cast<NormalizeOp>(op)) scaleCount(norm);
  if (auto norm = mlir::dyn_cast<RmsNormalizeOp>(op)) scaleCount(norm);
}

/// What is one element a sub-vector is as long as the scaled row has sub-vectors: their length is
/// the op's, and stays.
template <typename Op>
void followSubvectors(Op op, mlir::Type statistics, Scaling &scaling) {
  const size_t axis = size_t(op.getAxis());
  const int64_t tile = op.getTile();
  const auto row = mlir::cast<mlir::RankedTensorType>(op.getX().getType());
  const int64_t shorter = scaling.extent(axisNames(row)[axis], row.getShape()[axis]);
  const int64_t count = mlir::cast<mlir::RankedTensorType>(statistics).getShape()[axis];
  scaling.follow(axisNames(statistics)[axis], count, shorter / tile + (shorter % tile != 0));
}

/// Tokens are as many as the scaled sequences have positions, offsets one more than these are; the
/// bound of a length is the extent of the positions.
class RaggedScaling {
public:
  RaggedScaling(GraphOp graph, Scaling &scaling) {
    const auto follow = [&](mlir::Type padded, llvm::ArrayRef<int64_t> pair, mlir::Type packed,
                            size_t tokenAxis, mlir::Type offsets) {
      const std::vector<std::string> names = axisNames(padded);
      const std::vector<int64_t> sizes = extents(padded);
      const size_t sequences = size_t(pair[0]), positions = size_t(pair[1]);
      const int64_t count = scaling.extent(names[sequences], sizes[sequences]),
                    length = scaling.extent(names[positions], sizes[positions]);
      scaling.follow(axisNames(packed)[tokenAxis], extents(packed)[tokenAxis], count * length);
      scaling.follow(axisNames(offsets)[0], extents(offsets)[0], count + 1);
      bounds[sizes[positions]] = length;
    };
    graph.walk([&](PackOp op) {
      const size_t tokens = size_t(op.getAxes()[0] - (op.getAxes()[0] > op.getAxes()[1] ? 1 : 0));
      follow(op.getX().getType(), op.getAxes(), op.getResult().getType(), tokens,
             op.getOffsets().getType());
    });
    graph.walk([&](UnpackOp op) {
      follow(op.getResult().getType(), op.getInto(), op.getX().getType(), size_t(op.getAxis()),
             op.getOffsets().getType());
    });
  }
  void scaleBounds(GraphOp graph) const {
    graph.walk([&](OffsetsOp op) {
      if (const auto found = bounds.find(int64_t(op.getBound())); found != bounds.end())
        op.setBound(uint64_t(found->second));
    });
  }

private:
  std::map<int64_t, int64_t> bounds;  ///< by what they were
};

/// Of an axis that is split, the last part has what the others leave of the scaled whole.
void followSplit(SplitAxisOp split, Scaling &scaling) {
  const std::vector<std::string> parts = axisNames(split.getResult().getType());
  const mlir::Type x = split.getX().getType();
  const size_t axis = size_t(split.getAxis()), last = split.getSizes().size() - 1;
  int64_t others = 1;
  for (size_t part = 0; part < last; ++part)
    others *= scaling.extent(parts[axis + part], split.getSizes()[part]);
  const int64_t whole = scaling.extent(axisNames(x)[axis], extents(x)[axis]);
  if (whole % others == 0)
    scaling.follow(parts[axis + last], split.getSizes()[last], whole / others);
}

/// The scaling with the axes of all sub-vectors, bounded tiles and parts. Before types change.
Scaling withFollowers(GraphOp graph, Scaling scaling) {
  graph.walk([&](SplitAxisOp op) { followSplit(op, scaling); });
  graph.walk([&](LocalSoftmaxOp op) { followSubvectors(op, op.getMaxima().getType(), scaling); });
  graph.walk([&](GlobalScalingOp op) { followSubvectors(op, op.getFactors().getType(), scaling); });
  graph.walk([&](TileBoundsOp op) {
    const mlir::Type segments = op.getSegments().getType(), bounds = op.getResult().getType();
    const size_t last = extents(segments).size() - 1;
    scaling.follow(
        axisNames(bounds)[last], extents(bounds)[last],
        boundedTiles(scaling.extent(axisNames(segments)[last], extents(segments)[last])));
  });
  return scaling;
}

mlir::Type scaled(mlir::Type type, const Scaling &scaling) {
  const auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type);
  if (!tensor) return type;
  const std::vector<std::string> names = axisNames(type);
  llvm::SmallVector<int64_t> shape(tensor.getShape());
  for (size_t axis = 0; axis < names.size(); ++axis)
    shape[axis] = scaling.extent(names[axis], shape[axis]);
  return mlir::RankedTensorType::get(shape, tensor.getElementType(), tensor.getEncoding());
}

/// The regions that a plan has kernels of: those that only move parameters are done at load
/// (PlanBuilder.cpp, isPacking).
std::vector<KernelOp> launchedRegions(GraphOp graph) {
  std::vector<KernelOp> launched;
  llvm::DenseSet<mlir::Value> packed;
  const auto isPacked = [&](mlir::Value value) {
    const auto argument = mlir::dyn_cast<mlir::BlockArgument>(value);
    return argument ? graph.isParameter(argument.getArgNumber()) : packed.contains(value);
  };
  for (KernelOp region : graph.getBody().front().getOps<KernelOp>()) {
    const bool isView = configurationOf(region.getOperation()).knobs.isView();
    if (isView && isPackedAtLoad(toKernel({region.getOperation()}, "")) &&
        llvm::all_of(region->getOperands(), isPacked))
      packed.insert(region->result_begin(), region->result_end());
    else launched.push_back(region);
  }
  return launched;
}

/// The name of a value as the plan has it: a copy in another layout has that of what was copied.
std::string nameOf(mlir::Value value) {
  for (auto region = value.getDefiningOp<KernelOp>(); region && isTranspose(region);
       region = value.getDefiningOp<KernelOp>())
    value = region->getOperand(0);
  return writtenName(value);
}

/// The first elements along every axis; all of them where they are equal.
mlir::DenseElementsAttr cut(mlir::DenseElementsAttr table, mlir::RankedTensorType type) {
  if (table.isSplat()) return table.resizeSplat(type);
  const llvm::ArrayRef<int64_t> whole = table.getType().getShape(), part = type.getShape();
  const auto values = table.getValues<mlir::Attribute>();
  llvm::SmallVector<mlir::Attribute> kept;
  for (int64_t n = 0; n < type.getNumElements(); ++n) {
    int64_t from = 0, stride = 1, rest = n;
    for (size_t axis = whole.size(); axis-- > 0; stride *= whole[axis], rest /= part[axis])
      from += rest % part[axis] * stride;
    kept.push_back(values[size_t(from)]);
  }
  return mlir::DenseElementsAttr::get(type, kept);
}

/// After types changed: the elements of a constant are as many as its result has.
void scaleConstant(ConstantOp constant) {
  const auto type = mlir::cast<mlir::RankedTensorType>(constant.getResult().getType());
  const auto table = mlir::dyn_cast<mlir::DenseElementsAttr>(constant.getValue());
  if (table && table.getType() != type) constant.setValueAttr(cut(table, type));
}

/// The type with another extent along one dimension.
mlir::RankedTensorType withExtent(mlir::Type type, size_t dimension, int64_t extent) {
  std::vector<int64_t> shape = extents(type);
  shape[dimension] = extent;
  return makeTensor(type.getContext(), axisNames(type), shape, mlir::getElementTypeOrSelf(type));
}

/// Axes that were merged or concatenated are as long as what became them: no dimension has their
/// extent. Kernels hand the types on.
void followMovement(mlir::Block &block) {
  for (mlir::Operation &op : block) {
    if (auto kernel = mlir::dyn_cast<KernelOp>(op)) {
      mlir::Block &body = kernel.getBody().front();
      for (auto [argument, operand] : llvm::zip(body.getArguments(), kernel->getOperands()))
        argument.setType(operand.getType());
      followMovement(body);
      for (auto [result, value] :
           llvm::zip(kernel->getResults(), body.getTerminator()->getOperands()))
        result.setType(value.getType());
    } else if (auto merge = mlir::dyn_cast<MergeAxesOp>(op)) {
      const std::vector<int64_t> all = extents(merge.getX().getType());
      const auto first = all.begin() + int64_t(merge.getAxis());
      merge.getResult().setType(
          withExtent(merge.getResult().getType(), size_t(merge.getAxis()),
                     std::accumulate(first, first + int64_t(merge.getCount()), int64_t{1},
                                     std::multiplies<int64_t>())));
    } else if (auto concat = mlir::dyn_cast<ConcatOp>(op)) {
      int64_t total = 0;
      for (mlir::Type part : concat.getParts().getTypes())
        total += extents(part)[size_t(concat.getAxis())];
      concat.getResult().setType(
          withExtent(concat.getResult().getType(), size_t(concat.getAxis()), total));
    }
  }
}

void scale(GraphOp graph, const Scaling &scaling) {
  graph.walk([&](mlir::Operation *op) { scaleAttributes(op, scaling); });
  graph.walk([&](mlir::Operation *op) {
    op->removeAttr("layouts");  // strides of the true extents; the plan has those of the small ones
    for (mlir::Value result : op->getResults()) result.setType(scaled(result.getType(), scaling));
    for (mlir::Region &region : op->getRegions())
      for (mlir::Block &block : region)
        for (mlir::BlockArgument argument : block.getArguments())
          argument.setType(scaled(argument.getType(), scaling));
    if (auto constant = mlir::dyn_cast<ConstantOp>(op)) scaleConstant(constant);
  });
  followMovement(graph.getBody().front());
  const auto all = [&](llvm::ArrayRef<mlir::Type> types) {
    return llvm::map_to_vector(types, [&](mlir::Type one) { return scaled(one, scaling); });
  };
  graph.setFunctionType(mlir::FunctionType::get(graph.getContext(), all(graph.getArgumentTypes()),
                                                all(graph.getResultTypes())));
}

}  // namespace

namespace {
/// All positions, the first ones that see all, and the others (smallDims).
constexpr std::array<std::string_view, 3> positions = {"j", "a", "o"};
}  // namespace

Scaling::Scaling(Dims dimsGiven, Dims smallGiven)
    : dims(std::move(dimsGiven)), small(std::move(smallGiven)) {
  for (const auto &[name, leader] : {std::pair("k", "j"), std::pair("m", "j"), std::pair("w", "p")})
    if (dims.contains(name) && dims.contains(leader) && dims.at(name) == dims.at(leader) &&
        small.contains(leader))
      small.try_emplace(name, small.at(leader));
  std::erase_if(small, [&](const auto &entry) {
    return !dims.contains(entry.first) || dims.at(entry.first) <= entry.second;
  });
}

int64_t Scaling::extent(const std::string &axis, int64_t extent) const {
  if (const auto follower = followers.find({axis, extent}); follower != followers.end())
    return follower->second;
  const auto shorter = small.find(axis);
  const auto dimension = dims.find(axis);
  if (dimension != dims.end() && extent != dimension->second &&
      std::ranges::count(positions, axis) > 0)
    for (const std::string_view other : positions)
      if (const auto found = dims.find(std::string(other));
          found != dims.end() && found->second == extent) {
        const auto scaled = small.find(found->first);
        return scaled == small.end() ? extent : scaled->second;
      }
  if (shorter == small.end() || extent % dimension->second != 0) return extent;
  return extent / dimension->second * shorter->second;
}

void Scaling::follow(const std::string &axis, int64_t extent, int64_t shorter) {
  if (shorter >= this->extent(axis, extent)) return;
  followers.try_emplace({axis, extent}, shorter);
  if (dims.contains(axis)) return;
  dims[axis] = extent;
  small[axis] = shorter;
}

int64_t Scaling::part(const std::string &axis, int64_t index) const {
  const auto shorter = small.find(axis);
  if (shorter == small.end()) return index;
  if (index * shorter->second % dims.at(axis) != 0)
    throw Error::unsupported("index {} of the {} along axis {} is none of the {} that are left",
                             index, dims.at(axis), axis, shorter->second);
  return index * shorter->second / dims.at(axis);
}

ScaledGraph scaledGraph(const std::string &graph, const Scaling &scaling) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<WeftDialect>();
  checkMlirNesting(graph, "graph.mlir");
  CapturedDiagnostics diagnostics(context);
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::parseSourceString<mlir::ModuleOp>(graph, &context, "graph.mlir");
  if (!module) throw diagnostics.error(ErrorKind::badInput, "graph.mlir is not a graph");
  ScaledGraph result;
  std::vector<KernelOp> launched;
  for (GraphOp one : module->getOps<GraphOp>()) {
    for (KernelOp region : launchedRegions(one)) launched.push_back(region);
    for (mlir::Value value : one.getBody().front().getTerminator()->getOperands())
      result.results.push_back(nameOf(value));
    Scaling all = withFollowers(one, scaling);
    const RaggedScaling ragged(one, all);
    ragged.scaleBounds(one);
    scale(one, all);
  }
  if (mlir::failed(mlir::verify(*module)))
    throw Error::unsupported("the graph holds on to its extents: {}", diagnostics.text());
  for (KernelOp region : launched)
    result.kernels.push_back(toKernel({region.getOperation()}, region.getName().str()));
  for (GraphOp one : module->getOps<GraphOp>())
    for (KernelOp kernel : llvm::make_early_inc_range(one.getBody().front().getOps<KernelOp>()))
      dissolve(kernel);
  result.ops = Compilation::print(*module);
  return result;
}

}  // namespace weft::driver
