// Masks of tokens by the form of their expressions; see UnusedTokens.h.
#include "kernel/UnusedTokens.h"

#include "kernel/Attributes.h"
#include "kernel/CoordinateExpressions.h"
#include "kernel/ReduceKind.h"
#include "kernel/StridedBatchedGemm.h"

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

using Kind = ExpressionNode::Kind;

/// Coordinate < element of an integer operand at a literal place ? operand 0 : a number.
struct TokenMaskForm {
  int coordinate = -1, operand = -1;
  int64_t element = 0;
  double fill = 0;
};

std::optional<TokenMaskForm> formOf(const BodyOp &op) {
  const Expression &expression = op.expression;
  if (expression.empty()) return std::nullopt;
  const ExpressionNode &root = expression[expression.root()];
  if (root.kind != Kind::select) return std::nullopt;
  const ExpressionNode &condition = expression[root.children[0]],
                       &kept = expression[root.children[1]], &fill = expression[root.children[2]];
  if (condition.kind != Kind::binary || condition.operation != ScalarOperator::less ||
      kept.kind != Kind::operand || kept.index != 0 || !kept.children.empty() ||
      fill.kind != Kind::literal)
    return std::nullopt;
  const ExpressionNode &left = expression[condition.children[0]],
                       &right = expression[condition.children[1]];
  if (left.kind != Kind::coordinate || right.kind != Kind::operand ||
      right.type != ScalarType::i32 || right.children.size() != 1)
    return std::nullopt;
  const ExpressionNode &place = expression[right.children[0]];
  if (place.kind != Kind::literal) return std::nullopt;
  return TokenMaskForm{.coordinate = left.index,
                       .operand = right.index,
                       .element = int64_t(place.value),
                       .fill = fill.value};
}

}  // namespace

bool isTokenMask(const BodyOp &op) { return formOf(op).has_value(); }

Expression maskByCount(const BodyOp &op) {
  const TokenMaskForm form = formOf(op).value();
  if (std::isnan(form.fill)) return Expression::operand(0);
  return Expression::select(
      Expression::binary(ScalarOperator::less, Expression::coordinate(form.coordinate),
                         Expression::operand(form.operand, ScalarType::i32)),
      Expression::operand(0), Expression::literal(form.fill));
}

std::optional<UnusedTokens> maskedTokens(const Kernel &kernel, const BodyOp &op) {
  const std::optional<TokenMaskForm> form = formOf(op);
  if (!form || (form->fill != 0 && !std::isnan(form->fill))) return std::nullopt;
  const ValueId offsets = op.operands[size_t(form->operand)];
  if (std::ranges::find(kernel.inputs, offsets) == kernel.inputs.end()) return std::nullopt;
  return UnusedTokens{.axis = form->coordinate, .offsets = offsets, .element = form->element};
}

namespace {

/// What packs tokens gives zeros behind them, as a mask does, or nothing that is specified.
std::optional<UnusedTokens> packedTokens(const Kernel &kernel, const BodyOp &op) {
  if (op.kind != OpKind::pack) return std::nullopt;
  const auto &axes = attributeOf(op, attribute::axes);
  const auto dimension = size_t(axes[0] - (axes[0] > axes[1] ? 1 : 0));
  const ValueId offsets = op.operands[1];
  if (std::ranges::find(kernel.inputs, offsets) == kernel.inputs.end()) return std::nullopt;
  return UnusedTokens{.axis = kernel.values[size_t(op.results[0])].axes[dimension],
                      .offsets = offsets,
                      .element = kernel.elements(offsets) - 1};
}

/// Whether each term of the op's sums has the first operand as a factor, or is it.
bool sumsTerms(const BodyOp &op) {
  return (op.kind == OpKind::reduce && reduceKind(op) == ReduceKind::sum) ||
         op.kind == OpKind::layerNormDw || op.kind == OpKind::rmsNormDw;
}

}  // namespace

std::optional<UnusedTokens> unusedTokens(const Kernel &kernel) {
  const auto definition = [&](ValueId value) -> const BodyOp * {
    for (const BodyOp &op : kernel.body)
      if (std::ranges::find(op.results, value) != op.results.end()) return &op;
    return nullptr;
  };
  std::optional<UnusedTokens> shared;
  for (const ValueId output : kernel.outputs) {
    const BodyOp *op = definition(output);
    const bool isSum = op && sumsTerms(*op);
    if (isSum) op = definition(op->operands[0]);
    std::optional<UnusedTokens> own = op ? maskedTokens(kernel, *op) : std::nullopt;
    if (op && !own) own = packedTokens(kernel, *op);
    if (!own || (shared && *shared != *own)) return std::nullopt;
    if (isSum && std::ranges::find(kernel.values[size_t(output)].axes, own->axis) !=
                     kernel.values[size_t(output)].axes.end())
      return std::nullopt;
    shared = own;
  }
  return shared;
}

std::optional<UnusedTokens> summedTokens(const Kernel &kernel) {
  constexpr size_t offsetsOperand = 2;
  const std::optional<OpId> contraction = contractionIndex(kernel);
  if (!contraction) return std::nullopt;
  const BodyOp &op = kernel.body[size_t(*contraction)];
  if (op.operands.size() <= offsetsOperand || op.reducedAxes.size() != 1) return std::nullopt;
  const ValueId offsets = op.operands[offsetsOperand];
  if (std::ranges::find(kernel.inputs, offsets) == kernel.inputs.end()) return std::nullopt;
  return UnusedTokens{
      .axis = op.reducedAxes.front(), .offsets = offsets, .element = kernel.elements(offsets) - 1};
}

bool isUnreadPack(const BodyOp &op) {
  return op.kind == OpKind::pack && hasAttribute(op, attribute::unread);
}

bool areUnusedUnread(const Kernel &kernel) {
  return std::ranges::all_of(kernel.outputs, [&](ValueId output) {
    return std::ranges::any_of(kernel.body, [&](const BodyOp &op) {
      return (isUnreadMask(op) || isUnreadPack(op)) && op.results[0] == output;
    });
  });
}

std::optional<UnusedTokens> unspecifiedRows(const Kernel &kernel, ValueId value) {
  std::vector<std::optional<UnusedTokens>> rows(kernel.values.size());
  for (const BodyOp &op : kernel.body) {
    std::optional<UnusedTokens> own = maskedTokens(kernel, op);
    if (own && !isUnreadMask(op)) continue;
    if (isUnreadPack(op)) own = packedTokens(kernel, op);
    for (size_t n = 0; !own && n < op.operands.size(); ++n) own = rows[size_t(op.operands[n])];
    for (const ValueId result : op.results) {
      const std::vector<AxisId> &axes = kernel.values[size_t(result)].axes;
      if (own && std::ranges::find(axes, own->axis) != axes.end()) rows[size_t(result)] = own;
    }
  }
  return rows.at(size_t(value));
}

}  // namespace weft
