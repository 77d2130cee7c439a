// Stacking of projections that read one tensor: [Wq Wk Wv] X instead of three GEMMs. X is read
// once, and one larger GEMM uses the GPU better. The price: Q, K and V become slices of its result,
// which is free only where the stacked axis can be the slowest of the layout.
#include "ir/LayerMarks.h"
#include "passes/Describe.h"
#include "passes/algebra/Projection.h"

#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft {
namespace {

std::string_view dtypeName(mlir::Type type) { return nameOf(*toDType(type)); }

std::string precisionOf(ContractOp op) {
  return op.getPrecision().value_or(dtypeName(op.getA().getType())).str();
}

struct StackingRejection {
  ReasonCode code;
  std::string detail;
};

/// Why a projection cannot join others of the same tensor; nothing if it can.
std::optional<StackingRejection> reject(std::vector<Projection> members, const Projection &next) {
  ContractOp a = members.front().op, b = next.op;
  const mlir::Type weightA = members.front().weight().getType(), weightB = next.weight().getType();
  members.push_back(next);
  const std::optional<std::vector<Projection>> same = asOneGemm(members);
  if (!same || a.getScaleAttr() != b.getScaleAttr())
    return StackingRejection{reasons::stackEinsumDiffers,
                             (a.getSpec() + " against " + b.getSpec()).str()};
  const mlir::Type storedA = mlir::getElementTypeOrSelf(a.getType()),
                   storedB = mlir::getElementTypeOrSelf(b.getType());
  if (a.getPrecisionAttr() != b.getPrecisionAttr())
    return StackingRejection{
        reasons::stackTypeDiffers,
        fmt::format("precision {} against {}", precisionOf(a), precisionOf(b))};
  if (storedA != storedB ||
      mlir::getElementTypeOrSelf(weightA) != mlir::getElementTypeOrSelf(weightB))
    return StackingRejection{
        reasons::stackTypeDiffers,
        fmt::format("{} and {} against {} and {}", dtypeName(weightA), dtypeName(storedA),
                    dtypeName(weightB), dtypeName(storedB))};
  if (!stackedDimension(*same))
    return StackingRejection{reasons::stackExtentsDiffer,
                             fmt::format("[{}] against [{}]", fmt::join(extents(weightA), ","),
                                         fmt::join(extents(weightB), ","))};
  return std::nullopt;
}

FusionRecord recordOf(ContractOp a, ContractOp b,
                      const std::optional<StackingRejection> &rejection) {
  const auto number = [](mlir::Operation *op) {
    return static_cast<int>(std::distance(op->getBlock()->begin(), op->getIterator()));
  };
  const auto label = [](ContractOp op) {
    const std::string name = writtenName(op.getResult());
    return name.empty() ? std::string("contract") : name;
  };
  FusionRecord record{.pass = "stack-projections",
                      .patterns = {},
                      .ops = {number(a), number(b)},
                      .opNames = {label(a), label(b)},
                      .accepted = !rejection,
                      .code = {},
                      .reason = {},
                      .detail = {},
                      .savedBytes = 0};
  mlir::Value data = llvm::is_contained(a->getOperands(), b.getA()) ? b.getA() : b.getB();
  record.savedBytes = elementsOf(data.getType()) * sizeOf(*toDType(data.getType()));
  if (rejection) {
    record.code = rejection->code.code;
    record.reason = rejection->code.reason;
    record.detail = rejection->detail;
  }
  return record;
}

/// The tensors that contractions read together, in order of first use, with their readers.
std::vector<std::pair<mlir::Value, std::vector<ContractOp>>> sharedOperands(GraphOp graph) {
  std::vector<std::pair<mlir::Value, std::vector<ContractOp>>> shared;
  for (ContractOp op : graph.getBody().front().getOps<ContractOp>())
    for (mlir::Value operand : op->getOperands()) {
      if (isParameter(operand)) continue;
      auto entry = llvm::find_if(shared, [&](const auto &pair) { return pair.first == operand; });
      if (entry == shared.end()) entry = shared.insert(shared.end(), {operand, {}});
      if (!llvm::is_contained(entry->second, op)) entry->second.push_back(op);
    }
  llvm::erase_if(shared, [](const auto &pair) { return pair.second.size() < 2; });
  return shared;
}

/// The bias right after a projection: its only reader adds a parameter. `along` and `dimension`
/// (the one that runs along the stacked axis) are those after a pair of axes was merged.
struct FollowingBias {
  mlir::Operation *op = nullptr;
  mlir::Value parameter;
  std::vector<int64_t> along, extents;
  int64_t dimension = -1;
  std::optional<size_t> merged = {};  ///< position of the first axis of the pair, in the parameter
};

/// A pair of result axes as one; false if the bias does not run along both, in their order.
bool mergePair(FollowingBias &bias, int64_t pair) {
  const auto first = llvm::find(bias.along, pair), second = llvm::find(bias.along, pair + 1);
  if (first == bias.along.end() || second != first + 1) return false;
  bias.merged = first - bias.along.begin();
  bias.extents[*bias.merged] *= bias.extents[*bias.merged + 1];
  bias.extents.erase(bias.extents.begin() + *bias.merged + 1);
  bias.along.erase(second);
  for (int64_t &axis : bias.along) axis -= axis > pair;
  return true;
}

template <typename Op>
FollowingBias biasBy(mlir::Operation *user, const Projection &projection, int64_t axis) {
  FollowingBias bias;
  auto op = mlir::dyn_cast<Op>(user);
  ContractOp gemm = projection.op;
  if (!op || op.getA() != gemm.getResult() || !op.getAlongAttr() || !isParameter(op.getB()))
    return {};
  bias.along = op.getAlongAttr().asArrayRef().vec();
  bias.parameter = op.getB();
  bias.extents = extents(bias.parameter.getType());
  if (projection.merged && !mergePair(bias, static_cast<int64_t>(projection.merged->result)))
    return {};
  const auto at = llvm::find(bias.along, axis);
  if (at == bias.along.end()) return {};
  bias.op = user;
  bias.dimension = at - bias.along.begin();
  return bias;
}

FollowingBias followingBias(const Projection &projection, int64_t axis) {
  ContractOp op = projection.op;
  if (!op.getResult().hasOneUse()) return {};
  mlir::Operation *user = *op.getResult().user_begin();
  const FollowingBias bias = biasBy<BiasOp>(user, projection, axis);
  return bias.op ? bias : biasBy<AddOp>(user, projection, axis);
}

/// Concatenations need equal extents outside the stacked dimension.
bool alignWith(const FollowingBias &a, const FollowingBias &b) {
  if (!a.op || !b.op || a.op->getName() != b.op->getName() || a.along != b.along) return false;
  std::vector<int64_t> left = a.extents, right = b.extents;
  left[a.dimension] = right[a.dimension] = 0;
  return left == right && mlir::getElementTypeOrSelf(a.parameter.getType()) ==
                              mlir::getElementTypeOrSelf(b.parameter.getType());
}

bool isPacked(RotaryOp rotary) {
  return rotary.getAlong() && rotary.getAlong()->front() == int64_t(rotary.getPosition());
}

class Stacker {
public:
  Stacker(std::vector<Projection> members, size_t dimension, StackedRotation turn)
      : members(std::move(members)),
        dimension(dimension),
        turn(turn),
        builder(this->members.front().op) {
    const Projection &first = this->members.front();
    axis = static_cast<int64_t>(first.resultTerm.find(first.weightTerm[dimension]));
  }

  void run() {
    mlir::Value stacked = gemm();
    std::vector<mlir::Operation *> parts;
    for (const Projection &member : members) parts.push_back(member.op);
    const std::vector<FollowingBias> biases = commonBiases();
    if (!biases.empty()) {
      stacked = addBiases(stacked, biases);
      parts.clear();
      for (const FollowingBias &bias : biases) parts.push_back(bias.op);
    }
    const std::vector<SliceOp> slices = slice(stacked, parts);
    if (turn == StackedRotation::apart) splitBeforeSlices(stacked);
    else rotateTogether(stacked, slices);
    for (const FollowingBias &bias : biases) bias.op->erase();
    for (const Projection &member : members) member.op->erase();
  }

private:
  mlir::Location named(const std::vector<mlir::Value> &values) {
    std::vector<std::string> names;
    for (mlir::Value value : values) names.push_back(writtenName(value));
    if (llvm::any_of(names, [](const std::string &name) { return name.empty(); }))
      return builder.getUnknownLoc();
    return mlir::NameLoc::get(builder.getStringAttr(llvm::join(names, "_")));
  }

  /// A parameter with two axes from `position` on as one: free, the order of its elements stays.
  mlir::Value mergeParameter(mlir::Value parameter, size_t position, llvm::StringRef axisName) {
    const std::string name = writtenName(parameter);
    const mlir::Location location =
        name.empty() ? builder.getUnknownLoc()
                     : mlir::NameLoc::get(builder.getStringAttr(name + "_merged"));
    return MergeAxesOp::create(builder, location, parameter, static_cast<int64_t>(position), 2,
                               axisName);
  }

  mlir::Value gemm() {
    std::vector<mlir::Value> given, weights, results;
    const Projection *simplest = &members.front();
    for (const Projection &member : members) {
      given.push_back(member.weight());
      weights.push_back(member.merged ? mergeParameter(member.weight(), member.merged->weight,
                                                       member.weightAxes[member.merged->weight])
                                      : member.weight());
      results.push_back(member.op->getResult(0));
      if (simplest->merged && !member.merged) simplest = &member;
    }
    auto weight = ConcatOp::create(builder, named(given), weights, static_cast<int64_t>(dimension));
    auto op = mlir::cast<ContractOp>(builder.clone(*simplest->op));
    op->setOperand(simplest->weightOperand, weight);
    op->setLoc(named(results));
    op.getResult().setType(withExtent(op.getType(), axis, extents(weight.getType())[dimension]));
    return op.getResult();
  }

  /// One bias per member, or none where not every member has one of the same shape.
  std::vector<FollowingBias> commonBiases() {
    std::vector<FollowingBias> biases;
    for (const Projection &member : members) {
      biases.push_back(followingBias(member, axis));
      if (!alignWith(biases.front(), biases.back())) return {};
    }
    return biases;
  }

  mlir::Value addBiases(mlir::Value stacked, const std::vector<FollowingBias> &biases) {
    std::vector<mlir::Value> given, parameters, results;
    const FollowingBias *simplest = &biases.front();
    for (size_t index = 0; index < biases.size(); ++index) {
      const FollowingBias &bias = biases[index];
      const Projection &member = members[index];
      given.push_back(bias.parameter);
      parameters.push_back(bias.merged ? mergeParameter(bias.parameter, *bias.merged,
                                                        member.weightAxes[member.merged->weight])
                                       : bias.parameter);
      results.push_back(bias.op->getResult(0));
      if (simplest->merged && !bias.merged) simplest = &bias;
    }
    auto parameter = ConcatOp::create(builder, named(given), parameters, biases.front().dimension);
    mlir::Operation *op = builder.clone(*simplest->op);
    op->setOperands({stacked, parameter.getResult()});
    op->setLoc(named(results));
    op->getResult(0).setType(stacked.getType());
    return op->getResult(0);
  }

  /// Every replaced op's result as a part of the stacked one; a merged pair of axes is split again.
  std::vector<SliceOp> slice(mlir::Value stacked, const std::vector<mlir::Operation *> &replaced) {
    std::vector<SliceOp> slices;
    int64_t start = 0;
    for (size_t index = 0; index < replaced.size(); ++index) {
      const Projection &member = members[index];
      mlir::Value old = replaced[index]->getResult(0);
      const auto type = mlir::cast<mlir::RankedTensorType>(old.getType());
      const int64_t size = member.weightExtents[dimension];
      slices.push_back(
          SliceOp::create(builder, replaced[index]->getLoc(), stacked, axis, start, size));
      mlir::Value part = slices.back();
      if (member.merged) {
        const std::string name = writtenName(old);
        if (!name.empty()) part.setLoc(mlir::NameLoc::get(builder.getStringAttr(name + "_merged")));
        part = split(part, member, old);
      }
      part.setType(type);
      old.replaceAllUsesWith(part);
      if (member.merged && turn != StackedRotation::apart)
        rotateBeforeSplit(mlir::cast<SplitAxisOp>(part.getDefiningOp()));
      start += size;
    }
    return slices;
  }

  /// The rotary embedding that alone reads a value; null where there is none, or where sequences
  /// start comes with the input. Packed tokens have the start of their sequence beside them.
  static RotaryOp rotaryOf(mlir::Value value) {
    auto rotary =
        value.hasOneUse() ? mlir::dyn_cast<RotaryOp>(*value.user_begin()) : RotaryOp(nullptr);
    return rotary && rotary.getX() == value && !rotary.getAmong() &&
                   (!rotary.getStarts() || isPacked(rotary))
               ? rotary
               : RotaryOp(nullptr);
  }

  /// Neighbouring slices that turn alike are turned as one, and cut then: not along what they turn,
  /// nor along positions. In the stack, if those of one run are all that turn: the others are cut
  /// of the result, too.
  void rotateTogether(mlir::Value stacked, const std::vector<SliceOp> &slices) {
    std::vector<std::pair<size_t, size_t>> runs;
    size_t turned = 0;
    for (size_t first = 0, next = 0; first < slices.size(); first = next) {
      RotaryOp like = rotaryOf(SliceOp(slices[first]).getResult());
      const auto isAlike = [&](SliceOp slice) {
        RotaryOp rotary = rotaryOf(slice.getResult());
        return rotary && rotary->getAttrDictionary() == like->getAttrDictionary() &&
               rotary.getStarts() == like.getStarts() &&
               mlir::getElementTypeOrSelf(rotary.getType()) ==
                   mlir::getElementTypeOrSelf(stacked.getType());
      };
      const bool isCutElsewhere = like && int64_t(like.getDim()) != axis &&
                                  int64_t(like.getPosition()) != axis && isAlike(slices[first]);
      for (next = first + 1; isCutElsewhere && next < slices.size() && isAlike(slices[next]);)
        ++next;
      if (like) ++turned;
      if (isCutElsewhere) runs.emplace_back(first, next);
    }
    for (const auto &[first, next] : runs) {
      const std::vector<SliceOp> alike(slices.begin() + int64_t(first),
                                       slices.begin() + int64_t(next));
      const bool isInStack = turn == StackedRotation::inStack && turned == 1 && runs.size() == 1;
      if (!isInStack && next - first == 1) continue;
      const mlir::Value whole = rotateAsOne(stacked, alike, isInStack);
      for (size_t index = 0; isInStack && index < slices.size(); ++index)
        if (index < first || index >= next) moveBehind(whole, slices[index]);
      if (isInStack) splitBeforeSlices(whole);
    }
  }

  /// Parts of the stack, or of the turned one, whose axis is split are cut of the split stack,
  /// where that has whole ones: strided parts are views, and are not split without a copy.
  void splitBeforeSlices(mlir::Value whole) {
    const int64_t all = extents(whole.getType())[size_t(axis)];
    for (mlir::Operation *user : llvm::to_vector(whole.getUsers())) {
      auto slice = mlir::dyn_cast<SliceOp>(user);
      if (!slice || !slice.getResult().hasOneUse()) continue;
      auto split = mlir::dyn_cast<SplitAxisOp>(*slice.getResult().user_begin());
      if (!split || int64_t(split.getAxis()) != axis || split.getSizes().size() != 2) continue;
      const int64_t inner = split.getSizes()[1], start = int64_t(slice.getStart());
      if (all % inner != 0 || start % inner != 0) continue;
      const mlir::OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPoint(split);
      const std::vector<std::string> names = axisNames(split.getResult().getType());
      auto parts = SplitAxisOp::create(
          builder, named({whole, split.getResult()}), whole, axis,
          llvm::ArrayRef<int64_t>{all / inner, inner},
          llvm::ArrayRef<std::string>{names[size_t(axis)], names[size_t(axis) + 1]});
      auto part = SliceOp::create(builder, split.getLoc(), parts.getResult(), axis, start / inner,
                                  split.getSizes()[0]);
      part.getResult().setType(split.getResult().getType());
      split.getResult().replaceAllUsesWith(part.getResult());
      split->erase();
      slice->erase();
    }
  }

  /// A part of the stack that does not turn, cut of what turns others.
  void moveBehind(mlir::Value turned, SliceOp slice) {
    slice->setOperand(0, turned);
    if (slice->isBeforeInBlock(turned.getDefiningOp())) slice->moveAfter(turned.getDefiningOp());
    for (mlir::Operation *user : llvm::to_vector(slice.getResult().getUsers()))
      if (mlir::isa<SplitAxisOp>(user) && user->isBeforeInBlock(slice)) user->moveAfter(slice);
  }

  mlir::Value rotateAsOne(mlir::Value stacked, const std::vector<SliceOp> &slices, bool isInStack) {
    std::vector<mlir::Value> parts, results;
    int64_t size = 0;
    for (SliceOp slice : slices) {
      parts.push_back(slice.getResult());
      results.push_back(rotaryOf(slice.getResult()).getResult());
      size += int64_t(slice.getSize());
    }
    const mlir::OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfterValue(parts.back());
    const int64_t begin = int64_t(SliceOp(slices.front()).getStart()),
                  start = isInStack ? 0 : begin;
    const bool isPart = size < extents(stacked.getType())[size_t(axis)];
    mlir::Value whole = stacked;
    if (isPart && !isInStack)
      whole = SliceOp::create(builder, named(parts), stacked, axis, start, size);
    auto turned = mlir::cast<RotaryOp>(builder.clone(*results.front().getDefiningOp()));
    turned->setLoc(named(results));
    turned->setOperand(0, whole);
    turned.getResult().setType(mlir::cast<mlir::RankedTensorType>(whole.getType()));
    if (isPart && isInStack) {
      turned.setAmong(uint64_t(axis));
      turned.setBegin(uint64_t(begin));
      turned.setEnd(uint64_t(begin + size));
    }
    for (size_t index = 0; index < slices.size(); ++index) {
      SliceOp slice = slices[index];
      mlir::Value old = results[index];
      mlir::Value part =
          SliceOp::create(builder, old.getLoc(), turned, axis, int64_t(slice.getStart()) - start,
                          int64_t(slice.getSize()));
      part.setType(mlir::cast<mlir::RankedTensorType>(old.getType()));
      old.replaceAllUsesWith(part);
      old.getDefiningOp()->erase();
      slice->erase();
    }
    return turned.getResult();
  }

  /// A rotary embedding that alone reads the split part reads the slice instead, and its result is
  /// split: loops take strided rows, which no split gives.
  void rotateBeforeSplit(SplitAxisOp split) {
    RotaryOp rotary = rotaryOf(split.getResult());
    if (!rotary) return;
    const int64_t first = split.getAxis(), added = int64_t(split.getSizes().size()) - 1;
    // Where the others have one index, a dimension of the pair is the merged one.
    const auto isKept = [&](int64_t dimension) {
      return dimension < first || dimension > first + added ||
             split.getSizes()[size_t(dimension - first)] ==
                 extents(split.getX().getType())[size_t(first)];
    };
    if (!isKept(int64_t(rotary.getPosition())) || !isKept(int64_t(rotary.getDim()))) return;
    const auto before = [&](uint64_t dimension) {
      return dimension > uint64_t(first + added) ? dimension - uint64_t(added)
             : dimension > uint64_t(first)       ? uint64_t(first)
                                                 : dimension;
    };
    const mlir::OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(rotary);
    auto turned = mlir::cast<RotaryOp>(builder.clone(*rotary));
    turned->setOperand(0, split.getX());
    turned.setPosition(before(rotary.getPosition()));
    turned.setDim(before(rotary.getDim()));
    if (isPacked(rotary)) turned.setAlong(llvm::ArrayRef<int64_t>(int64_t(turned.getPosition())));
    turned.getResult().setType(split.getX().getType());
    const std::string name = writtenName(rotary.getResult());
    if (!name.empty()) turned->setLoc(mlir::NameLoc::get(builder.getStringAttr(name + "_merged")));
    auto result = mlir::cast<SplitAxisOp>(builder.clone(*split));
    result->setLoc(rotary.getLoc());
    result->setOperand(0, turned.getResult());
    result.getResult().setType(rotary.getResult().getType());
    rotary.getResult().replaceAllUsesWith(result.getResult());
    rotary->erase();
    split->erase();
  }

  mlir::Value split(mlir::Value part, const Projection &member, mlir::Value old) {
    const size_t pair = member.merged->result;
    const std::vector<int64_t> sizes = extents(old.getType());
    const std::vector<std::string> names = axisNames(old.getType());
    return SplitAxisOp::create(builder, old.getLoc(), part, static_cast<int64_t>(pair),
                               llvm::ArrayRef<int64_t>{sizes[pair], sizes[pair + 1]},
                               llvm::ArrayRef<std::string>{names[pair], names[pair + 1]});
  }

  std::vector<Projection> members;
  size_t dimension;  ///< of the weights
  int64_t axis = 0;  ///< of the results
  StackedRotation turn;
  BuilderOfLayer builder;
};

/// Adds a projection to the first group that takes it, else starts one. Every attempt leaves a
/// record.
void join(std::vector<std::vector<Projection>> &groups, const Projection &next,
          std::vector<FusionRecord> &records) {
  for (std::vector<Projection> &members : groups) {
    const std::optional<StackingRejection> rejection = reject(members, next);
    records.push_back(recordOf(members.front().op, next.op, rejection));
    if (!rejection) {
      members.push_back(next);
      return;
    }
  }
  groups.push_back({next});
}

}  // namespace

std::string ProjectionGroup::name() const {
  std::string text;
  for (size_t index = 0; index < projections.size(); ++index) {
    const std::string written = writtenName(ContractOp(projections[index]).getResult());
    text += (index ? "-" : "") + (written.empty() ? "projection" + std::to_string(index) : written);
  }
  return text;
}

std::vector<ProjectionGroup> findProjectionGroups(GraphOp graph,
                                                  std::vector<FusionRecord> &records) {
  std::vector<ProjectionGroup> groups;
  for (const auto &[data, readers] : sharedOperands(graph)) {
    std::vector<std::vector<Projection>> found;
    for (ContractOp reader : readers)
      if (const std::optional<unsigned> weight = weightOperandOf(reader))
        join(found, projectionOf(reader, *weight), records);
      else if (reader != readers.front())
        records.push_back(recordOf(readers.front(), reader,
                                   StackingRejection{reasons::stackWeightIsNotParameter,
                                                     writtenName(reader.getResult())}));
    for (const std::vector<Projection> &members : found) {
      if (members.size() < 2) continue;
      ProjectionGroup group{.data = data, .projections = {}};
      for (const Projection &member : members) group.projections.push_back(member.op);
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

bool isRotatedInPart(const ProjectionGroup &group) {
  const auto isRotated = [](ContractOp projection) {
    if (!projection.getResult().hasOneUse()) return false;
    mlir::Operation *reader = *projection.getResult().user_begin();
    if (mlir::isa<BiasOp, AddOp>(reader) && reader->hasOneUse())
      reader = *reader->getResult(0).user_begin();
    auto rotary = mlir::dyn_cast<RotaryOp>(reader);
    return rotary && !rotary.getAmong() && (!rotary.getStarts() || isPacked(rotary));
  };
  return llvm::any_of(group.projections, isRotated) && !llvm::all_of(group.projections, isRotated);
}

bool isRotatedAnywhere(const ProjectionGroup &group) {
  return llvm::any_of(group.projections, [](ContractOp projection) {
    return projection.getResult().hasOneUse() &&
           mlir::isa<RotaryOp>(*projection.getResult().user_begin());
  });
}

void stackProjections(const ProjectionGroup &group, size_t first, size_t last,
                      StackedRotation turn) {
  std::vector<Projection> members;
  for (size_t index = first; index <= last; ++index)
    members.push_back(
        projectionOf(group.projections[index], *weightOperandOf(group.projections[index])));
  const std::optional<std::vector<Projection>> same = asOneGemm(members);
  if (const std::optional<size_t> dimension = same ? stackedDimension(*same) : std::nullopt)
    Stacker(*same, *dimension, turn).run();
}

}  // namespace weft
