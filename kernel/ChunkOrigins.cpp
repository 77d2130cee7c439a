// Expressions over the coordinates of a chunk; see ChunkOrigins.h.
#include "kernel/ChunkOrigins.h"

#include "kernel/Attributes.h"
#include "kernel/CoordinateExpressions.h"
#include "kernel/Error.h"

#include <algorithm>

namespace weft {
namespace {

using Kind = ExpressionNode::Kind;

const std::vector<AxisId> &axesOf(const Kernel &kernel, ValueId value) {
  return kernel.values[size_t(value)].axes;
}

/// Whether a child of an element is the place along an axis that its operand has, too.
bool isOwnPlace(const Kernel &kernel, const BodyOp &op, const ExpressionNode &element, size_t child,
                AxisId axis) {
  const std::vector<AxisId> &axes = axesOf(kernel, op.operands.at(size_t(element.index)));
  const ExpressionNode &place = op.expression[element.children[child]];
  return axes.at(child) == axis && place.kind == Kind::coordinate && place.index == int(axis);
}

bool readsCoordinate(const Kernel &kernel, const BodyOp &op, int node, AxisId axis) {
  const ExpressionNode &own = op.expression[node];
  if (own.kind == Kind::coordinate) return own.index == int(axis);
  for (size_t child = 0; child < own.children.size(); ++child) {
    if (own.kind == Kind::operand && isOwnPlace(kernel, op, own, child, axis)) continue;
    if (readsCoordinate(kernel, op, own.children[child], axis)) return true;
  }
  return false;
}

/// Whether an operand that has the axis is read elsewhere along it than at the element's place.
bool leavesChunk(const Kernel &kernel, const BodyOp &op, AxisId axis) {
  return std::ranges::any_of(op.expression.all(), [&](const ExpressionNode &node) {
    if (node.kind != Kind::operand) return false;
    const std::vector<AxisId> &axes = axesOf(kernel, op.operands.at(size_t(node.index)));
    for (size_t child = 0; child < node.children.size(); ++child)
      if (axes.at(child) == axis && !isOwnPlace(kernel, op, node, child, axis)) return true;
    return false;
  });
}

/// The expression below a node with `start` added to what is counted along the axis.
Expression countedFrom(const Kernel &kernel, const BodyOp &op, int node, AxisId axis,
                       int64_t start) {
  const ExpressionNode &own = op.expression[node];
  std::vector<Expression> children;
  for (size_t child = 0; child < own.children.size(); ++child)
    children.push_back(own.kind == Kind::operand && isOwnPlace(kernel, op, own, child, axis)
                           ? Expression::coordinate(axis)
                           : countedFrom(kernel, op, own.children[child], axis, start));
  switch (own.kind) {
    case Kind::operand:
      return children.empty() ? Expression::operand(own.index, own.type)
                              : Expression::element(own.index, children, own.type);
    case Kind::attribute: return Expression::attribute(own.name);
    case Kind::coordinate: {
      const Expression coordinate = Expression::coordinate(own.index);
      return own.index == int(axis) && start != 0
                 ? Expression::binary(ScalarOperator::add, coordinate, Expression::integer(start))
                 : coordinate;
    }
    case Kind::literal:
      return own.type == ScalarType::i32 ? Expression::integer(int64_t(own.value))
                                         : Expression::literal(own.value);
    case Kind::unary: return Expression::unary(own.operation, children.front());
    case Kind::binary: return Expression::binary(own.operation, children[0], children[1]);
    case Kind::select: return Expression::select(children[0], children[1], children[2]);
    case Kind::call: return Expression::call(own.function->id, children);
    case Kind::member: return Expression::member(own.name, children.front());
  }
  throw Error::checkFailed("an expression's node of no kind");
}

/// Masks, rotations and biases of scores: what reference evaluation counts from an origin, too.
bool mayCount(const BodyOp &op) {
  return (op.kind == OpKind::mask && !isTokensMask(op)) || op.kind == OpKind::rotary ||
         op.kind == OpKind::alibi || op.kind == OpKind::relativeBias;
}

}  // namespace

bool countsAlong(const Kernel &kernel, const BodyOp &op, AxisId axis) {
  return !op.expression.empty() &&
         (readsCoordinate(kernel, op, op.expression.root(), axis) || leavesChunk(kernel, op, axis));
}

bool countFrom(const Kernel &whole, BodyOp &op, AxisId axis, int64_t start) {
  if (!mayCount(op) || op.expression.empty() || leavesChunk(whole, op, axis)) return false;
  const std::vector<AxisId> &axes = axesOf(whole, op.results.front());
  std::vector<int64_t> origins(axes.size(), 0), wholes;
  for (const AxisId own : axes) wholes.push_back(whole.axes[size_t(own)].extent);
  if (const std::vector<int64_t> *known = findAttribute(op, attribute::origins)) origins = *known;
  if (const std::vector<int64_t> *known = findAttribute(op, attribute::wholes)) wholes = *known;
  for (size_t dimension = 0; dimension < axes.size(); ++dimension)
    if (axes[dimension] == axis) origins[dimension] += start;
  op.expression = countedFrom(whole, op, op.expression.root(), axis, start);
  setAttribute(op, attribute::origins, std::move(origins));
  setAttribute(op, attribute::wholes, std::move(wholes));
  return true;
}

int64_t placeInWhole(const BodyOp &op, size_t dimension, int64_t place) {
  const std::vector<int64_t> *origins = findAttribute(op, attribute::origins);
  return origins ? place + origins->at(dimension) : place;
}

int64_t extentOfWhole(const Kernel &kernel, const BodyOp &op, size_t dimension) {
  if (const std::vector<int64_t> *wholes = findAttribute(op, attribute::wholes))
    return wholes->at(dimension);
  return kernel.axes[size_t(axesOf(kernel, op.results.front()).at(dimension))].extent;
}

}  // namespace weft
