// Movement ops as coordinates: the result at one place is the operand at another. Nothing moves
// inside a kernel; the load at the end of the chain reads from where the element comes from.
#include "codegen/families/loop/LoopOps.h"
#include "kernel/Attributes.h"
#include "kernel/Error.h"
#include "kernel/TileBounds.h"

#include <algorithm>
#include <limits>

namespace weft::codegen {
namespace {

/// The coordinates of a result, seen by an operand whose dimensions `from` .. match those of the
/// result at `to` ..
void copyDimensions(Coordinates &target, const std::vector<AxisId> &operandAxes, size_t from,
                    const std::vector<AxisId> &resultAxes, size_t to, size_t count,
                    const Coordinates &source) {
  for (size_t i = 0; i < count; ++i)
    target.at[operandAxes[from + i]] = source.at.at(resultAxes[to + i]);
}

/// One element at a time, for a condition that splits vectors: the element's own place, `start` in
/// front of it left out.
Index singleElement(const Code &at, int64_t start, bool step) {
  return {.text = start == 0 ? at : code("({} - {})", at, start), .irregular = true, .step = step};
}

}  // namespace

/// index * factor + summand.
Index GraphBuilder::scaled(const Index &index, int64_t factor, int64_t summand) const {
  Index result = index;
  if (factor == 1 && summand == 0) return result;
  if (index.node >= 0)
    throw Error::unsupported("kernel '{}': arithmetic on a gathered coordinate", kernel.name);
  const Code base = const_cast<GraphBuilder *>(this)->baseText(index);
  result.outer = -1;
  result.text = factor == 1 ? base : code("{} * {}", base, factor);
  if (summand != 0) result.text += code(" {} {}", summand < 0 ? "-" : "+", std::abs(summand));
  result.text = code("({})", result.text);
  result.perElement *= factor;
  result.multipleOf = std::gcd(index.multipleOf * factor, summand);
  return result;
}

/// index / divisor % modulus.
Index GraphBuilder::divided(const Index &index, int64_t divisor, int64_t modulus) const {
  if (index.node >= 0)
    throw Error::unsupported("kernel '{}': arithmetic on a gathered coordinate", kernel.name);
  auto &self = *const_cast<GraphBuilder *>(this);
  Index result{.step = index.step};
  const bool aligned =
      index.multipleOf % space.width == 0 && index.perElement <= 1 && !index.irregular;
  const bool constant = index.perElement == 0 && !index.irregular;
  const bool sharesQuotient = aligned && divisor % space.width == 0;
  const bool staysInside = aligned && divisor == 1 && modulus % space.width == 0;
  Code text =
      constant || sharesQuotient || staysInside ? self.baseText(index) : self.elementText(index);
  if (divisor != 1) text += code(" / {}", divisor);
  text += code(" % {}", modulus);
  result.text = code("({})", text);
  if (constant || sharesQuotient) return result;
  if (staysInside) {
    result.perElement = index.perElement;
    result.multipleOf = std::gcd(index.multipleOf, modulus);
    return result;
  }
  result.irregular = true;
  return result;
}

int GraphBuilder::slice(const BodyOp &op, const Coordinates &coordinates) {
  const std::vector<AxisId> &from = kernel.values[op.operands[0]].axes,
                            &to = kernel.values[op.results[0]].axes;
  const size_t axis = static_cast<size_t>(attributeOf(op, attribute::axis));
  Coordinates moved = coordinates;
  copyDimensions(moved, from, 0, to, 0, to.size(), coordinates);
  moved.at[from[axis]] = scaled(coordinates.at.at(to[axis]), 1, attributeOf(op, attribute::start));
  return evaluate(op.operands[0], moved);
}

/// The operand under the condition that the element lies in it, else zero.
int GraphBuilder::pad(const BodyOp &op, const std::string &name, const Coordinates &coordinates) {
  const std::vector<AxisId> &from = kernel.values[op.operands[0]].axes,
                            &to = kernel.values[op.results[0]].axes;
  const size_t axis = static_cast<size_t>(attributeOf(op, attribute::axis));
  const int64_t start = attributeOf(op, attribute::start), extent = kernel.axes[from[axis]].extent;
  const Index &index = coordinates.at.at(to[axis]);
  const bool wholeVectors =
      !index.varies() || (index.multipleOf % space.width == 0 && start % space.width == 0 &&
                          extent % space.width == 0);
  const Code at = wholeVectors ? baseText(index) : elementText(index);
  const Code inside = code("{0} >= {1} && {0} < {2}", at, start, start + extent);
  Coordinates moved = coordinates;
  copyDimensions(moved, from, 0, to, 0, to.size(), coordinates);
  moved.at[from[axis]] = scaled(index, 1, -start);
  if (!wholeVectors) moved.at[from[axis]] = singleElement(at, start, index.step);
  moved.condition =
      coordinates.condition.empty() ? inside : code("{} && {}", coordinates.condition, inside);
  moved.conditionStep |= index.step;
  moved.conditionPerElement |= index.varies() && !wholeVectors;
  Index used = index;
  if (wholeVectors) used.perElement = 0;
  return pointwise(code("{} ? {{0}} : 0.0f", inside), {evaluate(op.operands[0], moved)}, name,
                   {used});
}

/// Each operand under the condition that the element lies in it, joined by a chain of choices.
int GraphBuilder::concat(const BodyOp &op, const std::string &name,
                         const Coordinates &coordinates) {
  const std::vector<AxisId> &to = kernel.values[op.results[0]].axes;
  const size_t axis = static_cast<size_t>(attributeOf(op, attribute::axis));
  const Index &index = coordinates.at.at(to[axis]);
  bool wholeVectors = !index.varies() || index.multipleOf % space.width == 0;
  for (ValueId operand : op.operands)
    wholeVectors &=
        !index.varies() || kernel.axes[kernel.values[operand].axes[axis]].extent % space.width == 0;
  const Code at = wholeVectors ? baseText(index) : elementText(index);
  std::vector<int> parts;
  Code choice;
  int64_t start = 0;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const std::vector<AxisId> &from = kernel.values[op.operands[i]].axes;
    const int64_t end = start + kernel.axes[from[axis]].extent;
    Coordinates moved = coordinates;
    copyDimensions(moved, from, 0, to, 0, to.size(), coordinates);
    moved.at[from[axis]] =
        wholeVectors ? scaled(index, 1, -start) : singleElement(at, start, index.step);
    const Code lower = i == 0 ? "" : code("{} >= {}", at, start);
    const Code upper = i + 1 == op.operands.size() ? "" : code("{} < {}", at, end);
    const Code own =
        lower.empty() || upper.empty() ? lower + upper : code("{} && {}", lower, upper);
    moved.condition = coordinates.condition.empty() || own.empty()
                          ? coordinates.condition + own
                          : code("{} && {}", coordinates.condition, own);
    moved.conditionStep |= index.step;
    moved.conditionPerElement |= index.varies() && !wholeVectors;
    parts.push_back(evaluate(op.operands[i], moved));
    choice += upper.empty() ? code("{{{}}}", i) : code("{} ? {{{}}} : ", upper, i);
    start = end;
  }
  Index used = index;
  if (wholeVectors) used.perElement = 0;
  return pointwise(choice, parts, name, {used});
}

int GraphBuilder::splitAxis(const BodyOp &op, const Coordinates &coordinates) {
  const std::vector<AxisId> &from = kernel.values[op.operands[0]].axes,
                            &to = kernel.values[op.results[0]].axes;
  const size_t axis = static_cast<size_t>(attributeOf(op, attribute::axis));
  const size_t parts = to.size() - from.size() + 1;
  Coordinates moved = coordinates;
  copyDimensions(moved, from, 0, to, 0, axis, coordinates);
  copyDimensions(moved, from, axis + 1, to, axis + parts, from.size() - axis - 1, coordinates);
  int64_t faster = 1;
  Index sum{.text = "", .multipleOf = 0};
  for (size_t i = parts; i-- > 0;) {
    const Index part = scaled(coordinates.at.at(to[axis + i]), faster, 0);
    const Code text = baseText(part);
    faster *= kernel.axes[to[axis + i]].extent;
    if (part.multipleOf == 0) continue;  // an axis of extent 1
    sum.text = sum.text.empty() ? text : code("{} + {}", text, sum.text);
    sum.perElement += part.perElement;
    sum.irregular |= part.irregular;
    sum.step |= part.step;
    sum.multipleOf = std::gcd(sum.multipleOf, part.multipleOf);
  }
  sum.text = sum.text.empty() ? "0" : code("({})", sum.text);
  moved.at[from[axis]] = sum;
  return evaluate(op.operands[0], moved);
}

int GraphBuilder::mergeAxes(const BodyOp &op, const Coordinates &coordinates) {
  const std::vector<AxisId> &from = kernel.values[op.operands[0]].axes,
                            &to = kernel.values[op.results[0]].axes;
  const size_t axis = static_cast<size_t>(attributeOf(op, attribute::axis));
  const size_t parts = from.size() - to.size() + 1;
  Coordinates moved = coordinates;
  copyDimensions(moved, from, 0, to, 0, axis, coordinates);
  copyDimensions(moved, from, axis + parts, to, axis + 1, to.size() - axis - 1, coordinates);
  int64_t faster = 1;
  for (size_t i = parts; i-- > 0;) {
    const int64_t extent = kernel.axes[from[axis + i]].extent;
    moved.at[from[axis + i]] = divided(coordinates.at.at(to[axis]), faster, extent);
    faster *= extent;
  }
  return evaluate(op.operands[0], moved);
}

/// The place of an element among all of its value in row-major order, whatever its layout; nothing
/// where a coordinate is read from memory, or where places need more than 31 bits.
std::optional<Code> GraphBuilder::placeOf(ValueId value, const Coordinates &coordinates) {
  if (kernel.elements(value) > std::numeric_limits<int32_t>::max()) return std::nullopt;
  std::vector<AxisId> moving;
  for (const AxisId axis : kernel.values[value].axes)
    if (kernel.axes[axis].extent > 1) moving.push_back(axis);
  if (moving.empty()) return Code("0");
  bool areNeighbours = true;  // of the loop nest, which counts over them
  const int first = coordinates.at.at(moving.front()).outer;
  for (size_t n = 0; n < moving.size(); ++n) {
    const Index &index = coordinates.at.at(moving[n]);
    if (index.node >= 0) return std::nullopt;
    areNeighbours &= !index.varies() && index.outer >= 0 && index.outer == first + int(n) &&
                     space.outer[size_t(index.outer)] == moving[n];
  }
  if (areNeighbours) return space.range(size_t(first), size_t(first) + moving.size() - 1);
  Code place;
  for (const AxisId axis : moving) {
    const Code at = elementText(coordinates.at.at(axis));
    place = place.empty() ? at : code("({}) * {} + {}", place, space.axisName(axis), at);
  }
  return place;
}

/// An index outside the table reads row 0 or the last one, and gives NaN (0 in a table of
/// integers). Where it comes from memory it is reported.
int GraphBuilder::gather(const BodyOp &op, const std::string &name,
                         const Coordinates &coordinates) {
  const std::vector<AxisId> &table = kernel.values[op.operands[0]].axes,
                            &indices = kernel.values[op.operands[1]].axes;
  const std::vector<AxisId> &to = kernel.values[op.results[0]].axes;
  Coordinates row = coordinates;
  copyDimensions(row, indices, 0, to, 0, indices.size(), coordinates);
  const int index = evaluate(op.operands[1], row);
  const Code &rows = space.axisName(table[0]);
  const std::optional<Code> place = placeOf(op.operands[1], row);
  const Code status = place ? statusOf(op.operands[1]) : "";
  Code text = code("weft::clampedIndex({{0}}, {})", rows);
  std::vector<Index> uses;
  if (!status.empty()) {
    graph.headers.insert("weft/index_status.cuh");
    text = code("weft::checkedIndex({{0}}, {}, {}, {})", rows, asArgument(*place), status);
    for (const AxisId axis : indices) uses.push_back(row.at.at(axis));
  }
  const int inside = pointwise(text, {index}, "row_index", uses);
  graph.nodes[inside].type = ScalarType::i32;
  Coordinates moved = coordinates;
  copyDimensions(moved, table, 1, to, indices.size(), table.size() - 1, coordinates);
  moved.at[table[0]] = {.irregular = graph.nodes[inside].perElement,
                        .step = graph.nodes[inside].step,
                        .node = inside};
  const int found = evaluate(op.operands[0], moved);
  const ScalarType type = graph.nodes[found].type;
  const int result = pointwise(
      code("weft::isIndex({{1}}, {}) ? {{0}} : {}", rows, zeroOf(type, "weft::notANumber")),
      {found, index}, name);
  graph.nodes[result].type = type;
  return result;
}

/// The least or the greatest of the positions of a tile. Behind the last position it stands again,
/// which changes neither. Integers, which fp32 would round.
int GraphBuilder::tileBounds(const BodyOp &op, const std::string &name,
                             const Coordinates &coordinates) {
  const std::vector<AxisId> &from = kernel.values[op.operands[0]].axes,
                            &to = kernel.values[op.results[0]].axes;
  const size_t last = from.size() - 1;
  const Index &tile = coordinates.at.at(to[last]), &bound = coordinates.at.at(to[last + 1]);
  const Code at = elementText(tile), side = elementText(bound);
  const int64_t positions = kernel.axes[from[last]].extent;
  graph.headers.insert("weft/tile_bounds.cuh");
  const auto boundOf = [&](const std::vector<int> &nodes, const std::string &wish) {
    Code text = code("weft::boundOf({}", side);
    for (size_t n = 0; n < nodes.size(); ++n) text += code(", {{{}}}", n);
    const int node = pointwise(text + ")", nodes, wish, {bound});
    graph.nodes[node].type = ScalarType::i32;
    return node;
  };
  constexpr int64_t together = 8;  // elements of a statement
  std::vector<int> parts;
  for (int64_t first = 0; first < std::min(boundedTile, positions); first += together) {
    std::vector<int> elements;
    for (int64_t n = first; n < first + together; ++n) {
      Coordinates moved = coordinates;
      copyDimensions(moved, from, 0, to, 0, last, coordinates);
      const Code position = code("{} * {} + {}", at, boundedTile, n);
      moved.at[from[last]] = {
          .text = positions % boundedTile == 0
                      ? code("({})", position)
                      : code("weft::clampedIndex({}, {})", position, space.axisName(from[last])),
          .irregular = tile.varies(),
          .step = tile.step};
      elements.push_back(evaluate(op.operands[0], moved));
    }
    parts.push_back(boundOf(elements, "bound_of_part"));
  }
  return parts.size() == 1 ? parts.front() : boundOf(parts, name);
}

}  // namespace weft::codegen
