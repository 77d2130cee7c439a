// Stacking of projections that read one tensor: [Wq Wk Wv] X instead of three products. X is read once and one larger
// product uses the machine better; the price is that its three parts become slices, which is free only where the stacked
// axis can be the slowest of the layout.
#include "passes/Describe.h"
#include "passes/Rewrites.h"

#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>
#include <map>

namespace weft {
namespace {

/// The two operands of a projection and the letters of its einsum, renamed by first appearance.
struct Projection {
  ContractOp op;
  unsigned weightOperand = 0;
  std::string weightTerm, resultTerm, normalSpec;

  mlir::Value weight() const { return op->getOperand(weightOperand); }
  mlir::Value data() const { return op->getOperand(1 - weightOperand); }
  std::vector<int64_t> weightExtents() const { return extents(weight().getType()); }
};

std::string normalLetters(llvm::StringRef spec) {
  std::map<char, char> renamed;
  std::string normal;
  for (char c : spec)
    normal += std::isalpha(static_cast<unsigned char>(c)) ? renamed.emplace(c, static_cast<char>('a' + renamed.size())).first->second : c;
  return normal;
}

bool isParameter(mlir::Value value) {
  auto argument = mlir::dyn_cast<mlir::BlockArgument>(value);
  auto graph = argument ? mlir::dyn_cast<GraphOp>(argument.getOwner()->getParentOp()) : GraphOp();
  return graph && graph.isParameter(argument.getArgNumber());
}

Projection projectionOf(ContractOp op, unsigned weightOperand) {
  const auto [operands, result] = op.getSpec().split("->");
  const auto [a, b] = operands.split(',');
  return Projection{.op = op, .weightOperand = weightOperand, .weightTerm = (weightOperand ? b : a).str(),
                    .resultTerm = result.str(), .normalSpec = normalLetters(op.getSpec())};
}

/// The operand that is a weight, if exactly one is.
std::optional<unsigned> weightOperandOf(ContractOp op) {
  const bool first = isParameter(op.getA()), second = isParameter(op.getB());
  if (first == second)
    return std::nullopt;
  return first ? 0u : 1u;
}

/// The weight dimension to stack along: the only one whose extents differ; where all are equal the heads, else the slowest
/// that stays in the result. Nothing if extents differ in a dimension that is reduced, or in two.
std::optional<size_t> stackedDimension(const std::vector<Projection> &members) {
  const Projection &first = members.front();
  const std::vector<std::string> names = axisNames(first.weight().getType());
  std::optional<size_t> differing, heads, slowest;
  for (size_t d = 0; d < names.size(); ++d) {
    const bool stays = first.resultTerm.find(first.weightTerm[d]) != std::string::npos;
    const bool differs = llvm::any_of(members, [&](const Projection &member) {
      return member.weightExtents()[d] != first.weightExtents()[d];
    });
    if (differs && (differing || !stays))
      return std::nullopt;
    if (differs)
      differing = d;
    if (stays && !slowest)
      slowest = d;
    if (stays && !heads && (names[d] == "h" || names[d] == "g"))
      heads = d;
  }
  return differing ? differing : heads ? heads : slowest;
}

struct Refusal {
  ReasonCode code;
  std::string detail;
};

/// Why a projection cannot join others of the same tensor; nothing if it can.
std::optional<Refusal> refuse(std::vector<Projection> members, const Projection &next) {
  const Projection &first = members.front();
  ContractOp a = first.op, b = next.op;
  if (first.weightOperand != next.weightOperand || first.normalSpec != next.normalSpec ||
      a.getScaleAttr() != b.getScaleAttr())
    return Refusal{reasons::stackEinsumDiffers, (a.getSpec() + " against " + b.getSpec()).str()};
  if (mlir::getElementTypeOrSelf(a.getType()) != mlir::getElementTypeOrSelf(b.getType()) ||
      mlir::getElementTypeOrSelf(first.weight().getType()) != mlir::getElementTypeOrSelf(next.weight().getType()))
    return Refusal{reasons::stackTypeDiffers, ""};
  const std::string detail = fmt::format("[{}] against [{}]", fmt::join(first.weightExtents(), ","),
                                         fmt::join(next.weightExtents(), ","));
  members.push_back(next);
  if (!stackedDimension(members))
    return Refusal{reasons::stackExtentsDiffer, detail};
  return std::nullopt;
}

FusionRecord recordOf(ContractOp a, ContractOp b, const std::optional<Refusal> &refusal) {
  const auto number = [](mlir::Operation *op) {
    return static_cast<int>(std::distance(op->getBlock()->begin(), op->getIterator()));
  };
  FusionRecord record{.pass = "stack-projections", .pattern = "", .ops = {number(a), number(b)},
                      .opNames = {"contract", "contract"}, .accepted = !refusal, .code = {}, .reason = {}, .detail = {},
                      .savedBytes = 0};
  mlir::Value data = llvm::is_contained(a->getOperands(), b.getA()) ? b.getA() : b.getB();
  record.savedBytes = elementsOf(data.getType()) * sizeOf(*toDType(data.getType()));
  if (refusal) {
    record.code = refusal->code.code;
    record.reason = refusal->code.reason;
    record.detail = refusal->detail;
  }
  return record;
}

/// The tensors that contractions read together, in order of first use, with their readers.
std::vector<std::pair<mlir::Value, std::vector<ContractOp>>> sharedOperands(GraphOp graph) {
  std::vector<std::pair<mlir::Value, std::vector<ContractOp>>> shared;
  for (ContractOp op : graph.getBody().front().getOps<ContractOp>())
    for (mlir::Value operand : op->getOperands()) {
      if (isParameter(operand))
        continue;
      auto entry = llvm::find_if(shared, [&](const auto &pair) { return pair.first == operand; });
      if (entry == shared.end())
        entry = shared.insert(shared.end(), {operand, {}});
      if (!llvm::is_contained(entry->second, op))
        entry->second.push_back(op);
    }
  llvm::erase_if(shared, [](const auto &pair) { return pair.second.size() < 2; });
  return shared;
}

/// The bias right after a projection: its only reader adds a parameter. `dimension` of the bias runs along `axis`.
struct FollowingBias {
  mlir::Operation *op = nullptr;
  mlir::Value parameter;
  std::vector<int64_t> along;
  int64_t dimension = -1;
};

template <typename Op> FollowingBias biasBy(mlir::Operation *user, mlir::Value product, int64_t axis) {
  FollowingBias bias;
  auto op = mlir::dyn_cast<Op>(user);
  if (!op || op.getA() != product || !op.getAlongAttr() || !isParameter(op.getB()))
    return bias;
  bias.along = op.getAlongAttr().asArrayRef().vec();
  const auto at = llvm::find(bias.along, axis);
  if (at == bias.along.end())
    return bias;
  bias.op = user;
  bias.parameter = op.getB();
  bias.dimension = at - bias.along.begin();
  return bias;
}

FollowingBias followingBias(ContractOp op, int64_t axis) {
  if (!op.getResult().hasOneUse())
    return {};
  mlir::Operation *user = *op.getResult().user_begin();
  const FollowingBias bias = biasBy<BiasOp>(user, op.getResult(), axis);
  return bias.op ? bias : biasBy<AddOp>(user, op.getResult(), axis);
}

/// Concatenations need equal extents outside the stacked dimension.
bool alignWith(const FollowingBias &a, const FollowingBias &b) {
  if (!a.op || !b.op || a.op->getName() != b.op->getName() || a.along != b.along)
    return false;
  std::vector<int64_t> left = extents(a.parameter.getType()), right = extents(b.parameter.getType());
  left[a.dimension] = right[a.dimension] = 0;
  return left == right && mlir::getElementTypeOrSelf(a.parameter.getType()) ==
                              mlir::getElementTypeOrSelf(b.parameter.getType());
}

class Stacker {
public:
  Stacker(std::vector<Projection> members, size_t dimension)
      : members(std::move(members)), dimension(dimension), builder(this->members.front().op) {
    const Projection &first = this->members.front();
    axis = static_cast<int64_t>(first.resultTerm.find(first.weightTerm[dimension]));
  }

  void run() {
    mlir::Value stacked = product();
    std::vector<mlir::Operation *> parts;
    for (const Projection &member : members)
      parts.push_back(member.op);
    const std::vector<FollowingBias> biases = commonBiases();
    if (!biases.empty()) {
      stacked = addBiases(stacked, biases);
      parts.clear();
      for (const FollowingBias &bias : biases)
        parts.push_back(bias.op);
    }
    slice(stacked, parts);
    for (const FollowingBias &bias : biases)
      bias.op->erase();
    for (const Projection &member : members)
      member.op->erase();
  }

private:
  mlir::Location named(const std::vector<mlir::Value> &values) {
    std::vector<std::string> names;
    for (mlir::Value value : values)
      names.push_back(writtenName(value));
    if (llvm::any_of(names, [](const std::string &name) { return name.empty(); }))
      return builder.getUnknownLoc();
    return mlir::NameLoc::get(builder.getStringAttr(llvm::join(names, "_")));
  }

  mlir::Value product() {
    std::vector<mlir::Value> weights, results;
    for (const Projection &member : members) {
      weights.push_back(member.weight());
      results.push_back(member.op->getResult(0));
    }
    auto weight = ConcatOp::create(builder, named(weights), weights, static_cast<int64_t>(dimension));
    auto op = mlir::cast<ContractOp>(builder.clone(*members.front().op));
    op->setOperand(members.front().weightOperand, weight);
    op->setLoc(named(results));
    op.getResult().setType(withExtent(op.getType(), axis, extents(weight.getType())[dimension]));
    return op.getResult();
  }

  /// One bias per member, or none where not every member has one of the same shape.
  std::vector<FollowingBias> commonBiases() {
    std::vector<FollowingBias> biases;
    for (const Projection &member : members) {
      biases.push_back(followingBias(member.op, axis));
      if (!alignWith(biases.front(), biases.back()))
        return {};
    }
    return biases;
  }

  mlir::Value addBiases(mlir::Value stacked, const std::vector<FollowingBias> &biases) {
    std::vector<mlir::Value> parameters, results;
    for (const FollowingBias &bias : biases) {
      parameters.push_back(bias.parameter);
      results.push_back(bias.op->getResult(0));
    }
    auto parameter = ConcatOp::create(builder, named(parameters), parameters, biases.front().dimension);
    mlir::Operation *op = builder.clone(*biases.front().op);
    op->setOperands({stacked, parameter.getResult()});
    op->setLoc(named(results));
    op->getResult(0).setType(stacked.getType());
    return op->getResult(0);
  }

  void slice(mlir::Value stacked, const std::vector<mlir::Operation *> &replaced) {
    int64_t start = 0;
    for (mlir::Operation *op : replaced) {
      const int64_t size = extents(op->getResult(0).getType())[axis];
      auto part = SliceOp::create(builder, op->getLoc(), stacked, axis, start, size);
      part.getResult().setType(mlir::cast<mlir::RankedTensorType>(op->getResult(0).getType()));
      op->getResult(0).replaceAllUsesWith(part.getResult());
      start += size;
    }
  }

  std::vector<Projection> members;
  size_t dimension;  ///< of the weights
  int64_t axis = 0;  ///< of the results
  mlir::OpBuilder builder;
};

/// Adds a projection to the first group that takes it, else starts one. Every attempt leaves a record.
void join(std::vector<std::vector<Projection>> &groups, const Projection &next, std::vector<FusionRecord> &records) {
  for (std::vector<Projection> &members : groups) {
    const std::optional<Refusal> refusal = refuse(members, next);
    records.push_back(recordOf(members.front().op, next.op, refusal));
    if (!refusal) {
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

std::vector<ProjectionGroup> findProjectionGroups(GraphOp graph, std::vector<FusionRecord> &records) {
  std::vector<ProjectionGroup> groups;
  for (const auto &[data, readers] : sharedOperands(graph)) {
    std::vector<std::vector<Projection>> found;
    for (ContractOp reader : readers)
      if (const std::optional<unsigned> weight = weightOperandOf(reader))
        join(found, projectionOf(reader, *weight), records);
      else if (reader != readers.front())
        records.push_back(recordOf(readers.front(), reader,
                                   Refusal{reasons::stackWeightIsNotParameter, writtenName(reader.getResult())}));
    for (const std::vector<Projection> &members : found) {
      if (members.size() < 2)
        continue;
      ProjectionGroup group{.data = data, .projections = {}};
      for (const Projection &member : members)
        group.projections.push_back(member.op);
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

void stackProjections(const ProjectionGroup &group, size_t first, size_t last) {
  std::vector<Projection> members;
  for (size_t index = first; index <= last; ++index)
    members.push_back(projectionOf(group.projections[index], *weightOperandOf(group.projections[index])));
  if (const std::optional<size_t> dimension = stackedDimension(members))
    Stacker(std::move(members), *dimension).run();
}

}  // namespace weft
