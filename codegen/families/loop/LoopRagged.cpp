// Sequences of different lengths (kernel/Ragged.h). Packing is a gather whose row is computed from
// the offsets: the sequence of a token by bisection, a few loads that all threads of a row share.
//
//   y = pack x       ->   b = last sequence with offsets[b] <= t; x[b, t - offsets[b]], 0 behind
//   y = unpack x     ->   x[offsets[b] + j], the fill from offsets[b + 1] on
//
// A page of a cache (kernel/Pages.h) is a load, too:
//
//   y = gather_pages x    ->   x[table[b, k / P], k % P], 0 where the entry is none of the pages
#include "codegen/ExpressionText.h"
#include "codegen/families/loop/LoopOps.h"
#include "kernel/Append.h"
#include "kernel/Attributes.h"
#include "kernel/Error.h"
#include "kernel/Ragged.h"

#include <algorithm>

namespace weft::codegen {
namespace {

Index literalIndex(int64_t value) {
  return {.text = Code::plain(std::to_string(value)), .multipleOf = 1};
}

}  // namespace

/// The offset of a sequence, which is a node or an index of the loop nest.
int GraphBuilder::offsetAt(const BodyOp &op, const Index &sequence) {
  Coordinates at;
  at.at[kernel.values[op.operands[1]].axes[0]] = sequence;
  return evaluate(op.operands[1], at);
}

/// The parameter that leads to what the kernel says of an input; empty for what it computes itself.
Code GraphBuilder::statusOf(ValueId value) {
  const auto input = std::ranges::find(kernel.inputs, value);
  if (input == kernel.inputs.end()) return "";
  const int index = int(input - kernel.inputs.begin());
  for (const Parameter &parameter : graph.parameters)
    if (parameter.kind == Parameter::Kind::status && parameter.index == index)
      return Code::name(parameter.name);
  const Code status = names.reserve("status");
  graph.parameters.push_back({Parameter::Kind::status, index, status, "weft::ArgumentStatus"});
  graph.headers.insert("weft/argument_status.cuh");
  return status;
}

/// The sum, in fp32, of what the lengths before a sequence are held to. The last row sees all
/// lengths, so that every one out of range is reported.
int GraphBuilder::offsets(const BodyOp &op, const std::string &name,
                          const Coordinates &coordinates) {
  const Index &sequence = indexOf(op.results[0], 0, coordinates);
  const Coordinates row = overRow(coordinates);
  const Index &other = indexOf(op.operands[0], 0, row);
  const int64_t bound = attributeOf(op, attribute::bound);
  const Code length = constant("int", "bound", bound);
  const Code status = statusOf(op.operands[0]);
  const Code held = status.empty() ? code("weft::smaller(weft::larger({{0}}, 0), {})", length)
                                   : code("weft::checkedLength({{0}}, {}, {}, {})", length,
                                          asArgument(elementText(other)), status);
  const int own = pointwise(code("{} < {} ? static_cast<float>({}) : 0.0f", elementText(other),
                                 elementText(sequence), held),
                            {evaluate(op.operands[0], row)}, "length", {other, sequence});
  const int sum = reduce(Reduction::sum, own, "tokens_before");
  const int result = pointwise("static_cast<int>({0})", {sum}, name);
  graph.nodes[result].type = ScalarType::i32;
  return result;
}

/// The ones of a row, which are a prefix where as many stand up to the last of them; a row that is
/// none is reported.
int GraphBuilder::lengths(const BodyOp &op, const std::string &name,
                          const Coordinates &coordinates) {
  const Coordinates row = overRow(coordinates);
  const Index &sequence = indexOf(op.results[0], 0, coordinates),
              &position = indexOf(op.operands[0], 1, row);
  const int bit = evaluate(op.operands[0], row);
  const int tokens =
      reduce(Reduction::sum, pointwise("{0} != 0 ? 1.0f : 0.0f", {bit}, "is_token"), "tokens");
  const Code status = statusOf(op.operands[0]);
  int result = -1;
  if (status.empty()) {
    result = pointwise("static_cast<int>({0})", {tokens}, name);
  } else {
    graph.headers.insert("weft/math.cuh");  // of maxima
    const int end = reduce(
        Reduction::maximum,
        pointwise(code("{{0}} != 0 ? static_cast<float>({} + 1) : 0.0f", elementText(position)),
                  {bit}, "behind", {position}),
        "end");
    result = pointwise(code("weft::checkedPrefix(static_cast<int>({{0}}), static_cast<int>({{1}}), "
                            "{}, {})",
                            asArgument(elementText(sequence)), status),
                       {tokens, end}, name, {sequence});
  }
  graph.nodes[result].type = ScalarType::i32;
  return result;
}

int GraphBuilder::pack(const BodyOp &op, const std::string &name, const Coordinates &coordinates) {
  const auto axes = attributeOf(op, attribute::axes);
  const size_t sequences = size_t(axes[0]), positions = size_t(axes[1]);
  const std::vector<AxisId> &from = kernel.values[op.operands[0]].axes,
                            &to = kernel.values[op.results[0]].axes;
  const size_t tokens = sequences - (sequences > positions ? 1 : 0);
  const Index &token = coordinates.at.at(to[tokens]);
  const int64_t count = kernel.axes[from[sequences]].extent;
  const Code at = elementText(token);
  const auto integer = [&](Code text, std::vector<int> operands, const std::string &wish,
                           const std::vector<Index> &uses) {
    const int node = pointwise(std::move(text), std::move(operands), wish, uses);
    graph.nodes[node].type = ScalarType::i32;
    return node;
  };
  const auto indexOfNode = [&](int node) {
    return Index{
        .irregular = graph.nodes[node].perElement, .step = graph.nodes[node].step, .node = node};
  };
  int sequence = -1;
  for (int64_t step = firstBisectionStep(count); step > 0; step /= 2) {
    if (sequence < 0) {
      sequence = integer(code("{{0}} <= {} ? {} : 0", at, step), {offsetAt(op, literalIndex(step))},
                         "sequence", {token});
      continue;
    }
    const int beyond = integer(
        code("{{0}} + {} < {} ? {{0}} + {} : {{0}}", step, space.axisName(from[sequences]), step),
        {sequence}, "candidate", {});
    sequence = integer(code("{{0}} <= {} ? {{1}} : {{2}}", at),
                       {offsetAt(op, indexOfNode(beyond)), beyond, sequence}, "sequence", {token});
  }
  const Index ofSequence = sequence < 0 ? literalIndex(0) : indexOfNode(sequence);
  const int position =
      integer(code("{} - {{0}}", at), {offsetAt(op, ofSequence)}, "position", {token});
  const Code &length = space.axisName(from[positions]);
  const int inside =
      integer(code("weft::clampedIndex({{0}}, {})", length), {position}, "row_index", {});
  Coordinates moved = coordinates;
  for (size_t d = 0; d < from.size(); ++d)
    if (d != sequences && d != positions)
      moved.at[from[d]] = coordinates.at.at(to[d - (d > positions ? 1 : 0)]);
  moved.at[from[sequences]] = ofSequence;
  moved.at[from[positions]] = indexOfNode(inside);
  const int found = evaluate(op.operands[0], moved);
  const ScalarType type = graph.nodes[found].type;
  const int result = pointwise(
      code("{} < {{2}} && weft::isIndex({{1}}, {}) ? {{0}} : {}", at, length, zeroOf(type)),
      {found, position, offsetAt(op, literalIndex(count))}, name, {token});
  graph.nodes[result].type = type;
  return result;
}

int GraphBuilder::unpack(const BodyOp &op, const std::string &name,
                         const Coordinates &coordinates) {
  const auto into = attributeOf(op, attribute::into);
  const size_t axis = size_t(attributeOf(op, attribute::axis));
  const std::vector<AxisId> &from = kernel.values[op.operands[0]].axes,
                            &to = kernel.values[op.results[0]].axes;
  const Index &sequence = coordinates.at.at(to[size_t(into[0])]),
              &position = coordinates.at.at(to[size_t(into[1])]);
  Index own = sequence, next = scaled(sequence, 1, 1);
  if (own.varies()) {  // one load for each element
    own = {.text = elementText(sequence), .irregular = true, .step = sequence.step};
    next = {.text = code("({} + 1)", own.text), .irregular = true, .step = sequence.step};
  }
  const int first = offsetAt(op, own), end = offsetAt(op, next);
  const int token =
      pointwise(code("{{0}} + {}", elementText(position)), {first}, "token", {position});
  graph.nodes[token].type = ScalarType::i32;
  const Code &tokens = space.axisName(from[axis]);
  const int inside = pointwise(code("weft::clampedIndex({{0}}, {})", tokens), {token}, "row_index");
  graph.nodes[inside].type = ScalarType::i32;
  Coordinates moved = coordinates;
  size_t d = 0;
  for (size_t dimension = 0; dimension < to.size(); ++dimension) {
    if (int64_t(dimension) == into[0] || int64_t(dimension) == into[1]) continue;
    if (d == axis) ++d;
    moved.at[from[d++]] = coordinates.at.at(to[dimension]);
  }
  moved.at[from[axis]] = {.irregular = graph.nodes[inside].perElement,
                          .step = graph.nodes[inside].step,
                          .node = inside};
  const int found = evaluate(op.operands[0], moved);
  const ScalarType type = graph.nodes[found].type;
  const Code fill =
      type == ScalarType::i32 ? Code("0") : floatLiteral(attributeOr(op, attribute::fill, 0.0));
  const int result =
      pointwise(code("{{1}} < {{2}} && weft::isIndex({{1}}, {}) ? {{0}} : {}", tokens, fill),
                {found, token, end}, name);
  graph.nodes[result].type = type;
  return result;
}

int GraphBuilder::gatherPages(const BodyOp &op, const std::string &name,
                              const Coordinates &coordinates) {
  const size_t axis = size_t(attributeOf(op, attribute::axis)),
               along = size_t(attributeOf(op, attribute::along).at(0));
  const std::vector<AxisId> &from = kernel.values[op.operands[0]].axes,
                            &table = kernel.values[op.operands[1]].axes,
                            &to = kernel.values[op.results[0]].axes;
  const Index &position = coordinates.at.at(to[axis]);
  const int64_t size = kernel.axes[from[axis]].extent;
  Coordinates row = coordinates;
  row.at[table[0]] = coordinates.at.at(to[along]);
  row.at[table[1]] = divided(position, size, kernel.axes[table[1]].extent);
  const int page = evaluate(op.operands[1], row);
  const Code &pages = space.axisName(from[along]);
  const int inside = pointwise(code("weft::clampedIndex({{0}}, {})", pages), {page}, "page");
  graph.nodes[inside].type = ScalarType::i32;
  Coordinates moved = coordinates;
  for (size_t d = 0; d < from.size(); ++d) moved.at[from[d]] = coordinates.at.at(to[d]);
  moved.at[from[axis]] = divided(position, 1, size);
  moved.at[from[along]] = {.irregular = graph.nodes[inside].perElement,
                           .step = graph.nodes[inside].step,
                           .node = inside};
  const int found = evaluate(op.operands[0], moved);
  const ScalarType type = graph.nodes[found].type;
  const int result = pointwise(code("weft::isIndex({{1}}, {}) ? {{0}} : {}", pages, zeroOf(type)),
                               {found, page}, name);
  graph.nodes[result].type = type;
  return result;
}

void GraphBuilder::placeAppended(const BodyOp &op, OutputStore &store) {
  const size_t axis = appendAxis(op);
  const std::vector<AxisId> &cache = kernel.values[op.results[0]].axes;
  const auto node = [&](Code text, std::vector<int> operands, const char *wish, ScalarType type,
                        const std::vector<Index> &uses = {}) {
    const int made = pointwise(std::move(text), std::move(operands), wish, uses);
    graph.nodes[made].type = type;
    return made;
  };
  const auto indexOfNode = [&](int number) {
    return Index{.irregular = graph.nodes[number].perElement,
                 .step = graph.nodes[number].step,
                 .node = number};
  };
  const int start = evaluate(op.operands[appendStarts], home);
  const Index token = store.at[axis];
  const int position =
      node(code("{{0}} + {}", elementText(token)), {start}, "position", ScalarType::i32, {token});
  const Code &positions = space.axisName(cache[axis]);
  if (!isPaged(op)) {
    store.inside = node(code("weft::isIndex({{0}}, {})", positions), {position}, "isInside",
                        ScalarType::boolean);
    store.at[axis] = indexOfNode(position);
    return;
  }
  const size_t along = appendAlong(op);
  const std::vector<AxisId> &table = kernel.values[op.operands[appendTable]].axes;
  const Code &entries = space.axisName(table[1]), &pages = space.axisName(cache[along]);
  const int entry = node(code("weft::clampedIndex({{0}} / {}, {})", positions, entries), {position},
                         "entry", ScalarType::i32);
  Coordinates row = home;
  row.at[table[0]] = store.at[along];
  row.at[table[1]] = indexOfNode(entry);
  const int page = evaluate(op.operands[appendTable], row);
  store.inside = node(
      code("weft::isIndex({{0}}, {} * {}) && weft::isIndex({{1}}, {})", entries, positions, pages),
      {position, page}, "isInside", ScalarType::boolean);
  store.at[axis] = indexOfNode(
      node(code("{{0}} % {}", positions), {position}, "position_in_page", ScalarType::i32));
  store.at[along] = indexOfNode(page);
}

}  // namespace weft::codegen
