// Kernel body to graph of scalars: one function an op, each a few lines. An op without one is an
// error that names it.
#include "codegen/families/loop/LoopGraph.h"
#include "codegen/ExpressionText.h"
#include "codegen/families/loop/LoopOps.h"
#include "kernel/Append.h"
#include "kernel/Attributes.h"
#include "kernel/Error.h"

#include <algorithm>
#include <cmath>

namespace weft::codegen {

GraphBuilder::GraphBuilder(const IterationAxes &axes, LoopSpace &space, Names &names)
    : kernel(axes.kernel), axes(axes), space(space), names(names) {
  definedBy.assign(kernel.values.size(), -1);
  for (size_t i = 0; i < kernel.body.size(); ++i)
    for (ValueId result : kernel.body[i].results) definedBy[result] = static_cast<int>(i);
  for (AxisId axis : axes.outer) home.at[axis] = space.coordinate(axis);
  for (AxisId axis : axes.reduced) home.at[axis] = space.coordinate(axis);
  if (axes.splitAxis >= 0) splitHome();
  graph.headers = {"weft/types.cuh", "weft/vector.cuh"};
  if (space.isPartial() && graph.valid.empty()) {
    const Index &cut = home.at.at(space.knobs.vectorAxis);
    graph.valid = names.reserve("valid");
    graph.validText = code("{} - {}", space.axisName(space.knobs.vectorAxis), baseText(cut));
    graph.validIsStep = cut.step;
  }
}

/// The split axis stands at subVector * tile + position; the last sub-vector may be shorter.
void GraphBuilder::splitHome() {
  const Index &position = home.at.at(axes.tileAxis), &subVector = home.at.at(axes.subVectorAxis);
  const int64_t tile = kernel.axes[axes.tileAxis].extent,
                extent = kernel.axes[axes.splitAxis].extent;
  Index index = position;
  index.outer = -1;
  index.text = code("({} * {} + {})", baseText(subVector), space.axisName(axes.tileAxis),
                    baseText(position));
  index.multipleOf = std::gcd(position.multipleOf, tile);
  home.at[axes.splitAxis] = index;
  if (extent % tile == 0) return;
  const Code name = space.axisName(axes.splitAxis);
  if (!space.vectorIsReduced() || space.width == 1 ||
      (extent % space.width == 0 && tile % space.width == 0)) {
    graph.extraStepGuard = code("{} < {}", index.text, name);
    return;
  }
  graph.valid = names.reserve("valid");
  graph.validIsStep = true;
  graph.validText = code("{} - {}", name, index.text);
  if (space.isPartial())
    graph.validText = code("weft::smaller({}, {} - {})", graph.validText,
                           space.axisName(axes.tileAxis), position.text);
}

Code cudaTypeOf(ScalarType type) {
  switch (type) {
    case ScalarType::f32: return Code::plain("float");
    case ScalarType::i32: return Code::plain("int");
    case ScalarType::boolean: return Code::plain("bool");
    case ScalarType::rotation: return Code::plain("weft::Rotation");
  }
  throw Error::checkFailed("a node of no type");
}

Code zeroOf(ScalarType type, const char *ofFloats) {
  return Code::plain(type == ScalarType::i32 ? "0" : ofFloats);
}

LoopGraph GraphBuilder::run() {
  for (size_t i = 0; i < kernel.outputs.size(); ++i) {
    OutputStore store{.output = static_cast<int>(i), .node = evaluate(kernel.outputs[i], home)};
    for (AxisId axis : walkedAxes(kernel, kernel.outputs[i])) store.at.push_back(home.at.at(axis));
    if (const BodyOp *const op = appendOf(kernel)) placeAppended(*op, store);
    // Only a separate vector can be stored: a copy collects gathered elements, and repeats what
    // does not vary.
    const Node stored = graph.nodes[store.node];
    const auto isIrregular = [](const Index &index) { return index.irregular; };
    const bool isGathered = stored.kind == Node::Kind::load && stored.perElement &&
                            std::any_of(stored.at.begin(), stored.at.end(), isIrregular);
    const bool repeats =
        !stored.perElement && std::any_of(store.at.begin(), store.at.end(),
                                          [](const Index &index) { return index.varies(); });
    if (isGathered || repeats) {
      store.node =
          pointwise("{0}", {store.node}, stored.wish, repeats ? store.at : std::vector<Index>{});
      graph.nodes[store.node].type = stored.type;
    }
    graph.stores.push_back(store);
  }
  return std::move(graph);
}

int GraphBuilder::add(Node node) {
  for (int operand : node.operands) {
    const Node &from = graph.nodes[operand];
    node.step |= from.step;
    node.perElement |= from.perElement;
    node.depth = std::max(node.depth, from.depth);
  }
  std::string content = fmt::format("{}|{}|{}|{}|{}|{}|{}", static_cast<int>(node.kind), node.text,
                                    fmt::join(node.operands, ","), node.input, node.condition,
                                    static_cast<int>(node.reduction), node.perElement);
  for (const Index &index : node.at) content += fmt::format("|{}#{}", index.text, index.node);
  const auto [found, isNew] = nodesByContent.emplace(content, static_cast<int>(graph.nodes.size()));
  if (isNew) graph.nodes.push_back(std::move(node));
  return found->second;
}

Code GraphBuilder::baseText(const Index &index) {
  return index.outer >= 0 ? space.range(index.outer, index.outer) : index.text;
}

Code GraphBuilder::elementText(const Index &index) {
  Index based = index;
  based.text = baseText(index);
  const Code text = space.atElement(based);
  return text == based.text ? text : code("({})", text);
}

Code GraphBuilder::constant(const std::string &type, const std::string &wish,
                            const ConstantValue &value, std::string note) {
  Code &name = constantNames[wish + "=" + value.str()];
  if (name.empty()) {
    name = names.reserve(wish);
    graph.constants.push_back({type, {{name, value}}, std::move(note)});
  }
  return name;
}

int GraphBuilder::pointwise(Code text, std::vector<int> operands, std::string wish,
                            const std::vector<Index> &uses) {
  Node node{.text = std::move(text), .operands = std::move(operands), .wish = std::move(wish)};
  for (const Index &index : uses) {
    node.step |= index.step;
    node.perElement |= index.varies();
    if (index.node >= 0)
      throw Error::unsupported("kernel '{}': a gathered coordinate in an expression", kernel.name);
  }
  return add(std::move(node));
}

int GraphBuilder::reduce(Reduction reduction, int operand, std::string wish) {
  Node node{.kind = Node::Kind::reduction,
            .operands = {operand},
            .reduction = reduction,
            .wish = std::move(wish)};
  const int index = add(std::move(node));
  const Node &from = graph.nodes[operand];
  graph.nodes[index].step = false;
  graph.nodes[index].perElement = from.perElement && !space.vectorIsReduced();
  graph.nodes[index].depth = from.depth + 1;
  graph.headers.insert(space.isColumns() ? "weft/columns.cuh" : "weft/reduce.cuh");
  return index;
}

int GraphBuilder::load(int input, const Coordinates &coordinates) {
  const Value &value = kernel.values[kernel.inputs[input]];
  if (value.dtype == DType::f64)
    throw Error::unsupported(
        "kernel '{}': input '{}' is f64; kernels take f32, f16, bf16, i32 and i1", kernel.name,
        value.name);
  Node node{.kind = Node::Kind::load,
            .input = input,
            .condition = coordinates.condition,
            .wish = value.name};
  if (value.dtype == DType::i32 || value.dtype == DType::i1) node.type = ScalarType::i32;
  for (AxisId axis : value.axes) {
    const auto found = coordinates.at.find(axis);
    if (found == coordinates.at.end())
      throw Error::unsupported("kernel '{}': nothing gives a coordinate along axis '{}' of '{}'",
                               kernel.name, kernel.axes[axis].name, value.name);
    const Index &index = found->second;
    node.at.push_back(index);
    node.step |= index.step;
    node.perElement |= index.varies();
    if (index.node >= 0) node.operands.push_back(index.node);
  }
  node.step |= coordinates.conditionStep;
  node.perElement |= coordinates.conditionPerElement;
  return add(std::move(node));
}

int GraphBuilder::evaluate(ValueId value, const Coordinates &coordinates) {
  const auto key = std::make_pair(value, coordinates.key());
  const auto found = memo.find(key);
  if (found != memo.end()) return found->second;
  int node = -1;
  if (definedBy[value] < 0) {
    node = load(value, coordinates);
  } else {
    const BodyOp &op = kernel.body[definedBy[value]];
    node = evaluateOp(op, value, coordinates);
    if (graph.nodes[node].number < 0 && graph.nodes[node].kind == Node::Kind::pointwise)
      graph.nodes[node].number = op.number;
  }
  return memo[key] = node;
}

int GraphBuilder::evaluateOp(const BodyOp &op, ValueId value, const Coordinates &coordinates) {
  const std::string &name = kernel.values[value].name;
  if (op.kind == OpKind::dropout) return dropout(op, name, coordinates);
  if (!op.expression.empty()) return elementwise(op, name, coordinates);
  if (op.kind == OpKind::softmax) return softmax(op, name, coordinates);
  if (op.kind == OpKind::layerNorm) return layerNorm(op, value, coordinates);
  if (op.kind == OpKind::rmsNorm) return rmsNorm(op, value, coordinates);
  if (op.kind == OpKind::reduce) return reduceOp(op, name, coordinates);
  if (op.kind == OpKind::localSoftmax) return localSoftmax(op, value, coordinates);
  if (op.kind == OpKind::reduceSubvectors) return reduceSubVectors(op, name, coordinates);
  if (op.kind == OpKind::globalScaling) return globalScaling(op, name, coordinates);
  if (op.kind == OpKind::crossEntropy) return crossEntropy(op, value, coordinates);
  if (op.kind == OpKind::crossEntropyDx) return crossEntropyDx(op, name, coordinates);
  if (op.kind == OpKind::softmaxDx) return softmaxDx(op, name, coordinates);
  if (op.kind == OpKind::layerNormDx || op.kind == OpKind::rmsNormDx)
    return normDx(op, name, coordinates);
  if (op.kind == OpKind::layerNormDw || op.kind == OpKind::rmsNormDw)
    return normDw(op, value, coordinates);
  if (op.kind == OpKind::constant) return splat(op, name);
  if (op.kind == OpKind::identity || op.kind == OpKind::transpose || op.kind == OpKind::broadcast)
    return evaluate(op.operands[0], coordinates);
  if (op.kind == OpKind::slice) return slice(op, coordinates);
  if (op.kind == OpKind::pad) return pad(op, name, coordinates);
  if (op.kind == OpKind::concat) return concat(op, name, coordinates);
  if (op.kind == OpKind::splitAxis) return splitAxis(op, coordinates);
  if (op.kind == OpKind::mergeAxes) return mergeAxes(op, coordinates);
  if (op.kind == OpKind::gather) return gather(op, name, coordinates);
  if (op.kind == OpKind::offsets) return offsets(op, name, coordinates);
  if (op.kind == OpKind::lengths) return lengths(op, name, coordinates);
  if (op.kind == OpKind::pack) return pack(op, name, coordinates);
  if (op.kind == OpKind::unpack) return unpack(op, name, coordinates);
  if (op.kind == OpKind::gatherPages) return gatherPages(op, name, coordinates);
  if (op.kind == OpKind::tileBounds) return tileBounds(op, name, coordinates);
  if (op.kind == OpKind::append) return evaluate(op.operands[appendedTokens], coordinates);
  throw Error::unsupported("kernel '{}': loop kernels have no op '{}'", kernel.name,
                           nameOf(op.kind));
}

/// One value everywhere.
int GraphBuilder::splat(const BodyOp &op, const std::string &name) {
  const DType dtype = kernel.values[op.results[0]].dtype;
  const bool isInteger = dtype == DType::i32 || dtype == DType::i1;
  const ConstantValue value =
      isInteger ? std::get<int64_t>(attributeOf(op, attribute::value))
                : ConstantValue::text(floatLiteral(numberNamed(op, attribute::value.word)));
  const int node =
      pointwise(constant(isInteger ? "int" : "float", name + "_value", value), {}, name);
  graph.nodes[node].type = isInteger ? ScalarType::i32 : ScalarType::f32;
  return node;
}

const Index &GraphBuilder::indexOf(ValueId value, int64_t dimension,
                                   const Coordinates &coordinates) const {
  const std::vector<AxisId> &own = kernel.values[value].axes;
  if (dimension < 0 || dimension >= static_cast<int64_t>(own.size()))
    throw Error::checkFailed("kernel '{}': dimension {} of '{}', which has {}", kernel.name,
                             dimension, kernel.values[value].name, own.size());
  return coordinates.at.at(own[dimension]);
}

LoopGraph buildLoopGraph(const IterationAxes &axes, LoopSpace &space, Names &names) {
  return GraphBuilder(axes, space, names).run();
}

}  // namespace weft::codegen
