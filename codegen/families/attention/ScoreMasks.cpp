// Masks by the form of their expressions; see ScoreMasks.h.
#include "codegen/families/attention/ScoreMasks.h"

#include "codegen/ExpressionText.h"
#include "codegen/families/attention/TileIntervals.h"
#include "kernel/Attributes.h"
#include "kernel/TileBounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace weft::codegen {
namespace {

using Kind = ExpressionNode::Kind;

/// A literal or an attribute as a number.
std::optional<double> numberAt(const BodyOp &op, int node) {
  const ExpressionNode &own = op.expression[node];
  if (own.kind == Kind::literal) return own.value;
  if (own.kind == Kind::attribute) return numberNamed(op, own.name);
  if (own.kind != Kind::unary || own.operation != ScalarOperator::negate) return std::nullopt;
  const std::optional<double> operand = numberAt(op, own.children[0]);
  return operand ? std::optional(-*operand) : std::nullopt;
}

bool isNegativeInfinity(const BodyOp &op, int node) {
  return numberAt(op, node) == -std::numeric_limits<double>::infinity();
}

bool readsAny(const BodyOp &op, int node, const std::set<ValueId> &values) {
  const ExpressionNode &own = op.expression[node];
  return (own.kind == Kind::operand && values.contains(op.operands[size_t(own.index)])) ||
         std::ranges::any_of(own.children, [&](int child) { return readsAny(op, child, values); });
}

/// Whether a node is -inf where these operands are, as long as all others are finite.
bool keepsInfinity(const BodyOp &op, int node, const std::set<ValueId> &infinite) {
  const ExpressionNode &own = op.expression[node];
  const auto keeps = [&](int child) {
    return keepsInfinity(op, own.children[size_t(child)], infinite);
  };
  const auto isPositive = [&](int child) {
    const std::optional<double> number = numberAt(op, own.children[size_t(child)]);
    return number && *number > 0 && std::isfinite(*number);
  };
  switch (own.kind) {
    case Kind::operand:
      return own.children.empty() && infinite.contains(op.operands[size_t(own.index)]);
    case Kind::binary:
      switch (own.operation) {
        case ScalarOperator::add: return keeps(0) || keeps(1);
        case ScalarOperator::subtract: return keeps(0) && !readsAny(op, own.children[1], infinite);
        case ScalarOperator::multiply:
          return (keeps(0) && isPositive(1)) || (keeps(1) && isPositive(0));
        case ScalarOperator::divide: return keeps(0) && isPositive(1);
        default: return false;
      }
    case Kind::select: {
      const auto isExcluded = [&](int child) {
        return keeps(child) || isNegativeInfinity(op, own.children[size_t(child)]);
      };
      return isExcluded(1) && isExcluded(2);
    }
    case Kind::literal:
    case Kind::attribute:
    case Kind::coordinate:
    case Kind::unary:
    case Kind::call:
    case Kind::member: return false;
  }
  return false;
}

bool runsAlong(const Kernel &kernel, ValueId value, AxisId axis) {
  const std::vector<AxisId> &axes = kernel.values[size_t(value)].axes;
  return std::ranges::find(axes, axis) != axes.end();
}

}  // namespace

bool reachesFold(const Kernel &kernel, const AttentionRegion &region, size_t scoreOp) {
  std::set<ValueId> infinite = {kernel.body[region.scoreOps[scoreOp]].results[0]};
  for (size_t i = scoreOp + 1; i < region.scoreOps.size(); ++i) {
    const BodyOp &op = kernel.body[region.scoreOps[i]];
    if (!op.expression.empty() && keepsInfinity(op, op.expression.root(), infinite))
      infinite.insert(op.results[0]);
  }
  return infinite.contains(region.folded);
}

std::optional<MaskForm> maskForm(const BodyOp &op) {
  return maskForm(op, -std::numeric_limits<double>::infinity());
}

std::optional<MaskForm> maskForm(const BodyOp &op, double fill) {
  if (op.expression.empty()) return std::nullopt;
  const ExpressionNode &root = op.expression[op.expression.root()];
  if (root.kind != Kind::select) return std::nullopt;
  const bool isFirst = numberAt(op, root.children[1]) == fill,
             isSecond = numberAt(op, root.children[2]) == fill;
  if (isFirst == isSecond) return std::nullopt;
  return MaskForm{root.children[0], root.children[isFirst ? 2 : 1], isSecond};
}

bool comparesWithCount(const BodyOp &op) {
  return maskForm(op) && std::ranges::any_of(op.expression.all(), [](const ExpressionNode &node) {
           return node.kind == Kind::operand && node.type == ScalarType::i32 &&
                  node.children.empty();
         });
}

bool isOneInTile(const Kernel &kernel, const AttentionProblem &problem, ValueId value) {
  const auto isShort = [&](AxisId axis) {
    return axis < 0 || kernel.axes[size_t(axis)].extent == 1 || !runsAlong(kernel, value, axis);
  };
  return kernel.values[size_t(value)].dtype == DType::i32 && isShort(problem.queryAxis) &&
         isShort(problem.keyAxis);
}

std::optional<size_t> inputOf(const AttentionRegion &region, ValueId value) {
  for (const ScoreInput &input : region.inputs)
    if (input.value == value) return input.input;
  return std::nullopt;
}

std::optional<ValueId> boundsOfElement(const BodyOp &op, const ExpressionNode &element) {
  if (element.children.empty() || size_t(element.index) != segmentsOperand) return std::nullopt;
  return tileBoundsOf(op);
}

bool keepsOperand(const BodyOp &op, const MaskForm &form) {
  return op.expression[form.kept].kind == Kind::operand &&
         op.expression[form.kept].children.empty();
}

namespace {

bool isMask(const Kernel &kernel, const AttentionRegion &region, const AttentionProblem &problem,
            size_t scoreOp) {
  const BodyOp &op = kernel.body[region.scoreOps[scoreOp]];
  const std::optional<MaskForm> form = maskForm(op);
  if (!form || !reachesFold(kernel, region, scoreOp)) return false;
  // What is bounded does not depend on the texts of leaves.
  const LeafInterval leaf = [&](const ExpressionNode &node) -> std::optional<Interval> {
    if (node.kind == Kind::operand && !node.children.empty()) {
      if (!boundsOfElement(op, node)) return std::nullopt;
    } else if (node.kind == Kind::operand) {
      const ValueId value = op.operands[size_t(node.index)];
      if (!inputOf(region, value) || !isOneInTile(kernel, problem, value)) return std::nullopt;
    } else if (node.index != problem.queryAxis && node.index != problem.keyAxis) {
      return Interval{"digit", "digit", true};
    }
    return Interval{"low", "high"};
  };
  const BlockCoverage coverage = [](const Code &, const Interval &, const Interval &) {
    return Code::plain("coverage");
  };
  return conditionOf(op.expression, form->condition, leaf, coverage).isBounded();
}

}  // namespace

std::vector<bool> scoreMasks(const Kernel &kernel, const AttentionRegion &region,
                             const AttentionProblem &problem) {
  std::vector<bool> masks;
  for (size_t i = 0; i < region.scoreOps.size(); ++i)
    masks.push_back(isMask(kernel, region, problem, i));
  return masks;
}

bool masksDifferInGroup(const Kernel &kernel, const AttentionRegion &region,
                        const AttentionProblem &problem) {
  const auto isOfGroup = [&](AxisId axis) {
    return axis != problem.queryAxis && kernel.axes[size_t(axis)].extent > 1 &&
           std::ranges::find(region.queries, axis) != region.queries.end();
  };
  const std::vector<bool> masks = scoreMasks(kernel, region, problem);
  for (size_t i = 0; i < masks.size(); ++i) {
    if (!masks[i]) continue;
    const BodyOp &op = kernel.body[region.scoreOps[i]];
    const auto differs = [&](const auto &self, int node) -> bool {
      const ExpressionNode &own = op.expression[node];
      if (own.kind == Kind::coordinate) return isOfGroup(own.index);
      if (own.kind == Kind::operand)
        return std::ranges::any_of(kernel.values[size_t(op.operands[size_t(own.index)])].axes,
                                   isOfGroup);
      return std::ranges::any_of(own.children, [&](int child) { return self(self, child); });
    };
    if (differs(differs, maskForm(op).value().condition)) return true;
  }
  return false;
}

}  // namespace weft::codegen
