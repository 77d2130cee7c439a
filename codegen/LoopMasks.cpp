// Ops that know where they stand: masks, dropout, rotary embeddings.
#include "codegen/LoopOps.h"
#include "kernel/Error.h"

#include <cmath>

namespace weft::codegen {

const Index &GraphBuilder::indexOf(int value, int64_t dimension,
                                   const Coordinates &coordinates) const {
  const std::vector<int> &own = kernel.values[value].axes;
  if (dimension < 0 || dimension >= static_cast<int64_t>(own.size()))
    throw Error::checkFailed("kernel '{}': dimension {} of '{}', which has {}", kernel.name,
                             dimension, kernel.values[value].name, own.size());
  return coordinates.at.at(own[dimension]);
}

/// Excluded elements become -inf, or `fill`. Queries are aligned to the end of the keys.
int GraphBuilder::mask(const BodyOp &op, const std::string &name, const Coordinates &coordinates) {
  const int x = op.operands[0];
  const std::string kind = textOf(op, "kind");
  std::vector<int> operands = {evaluate(x, coordinates)};
  const int64_t keyDimension = integerOf(op, "key");
  const Index key = indexOf(x, keyDimension, coordinates);
  const std::string fill = op.attributes.contains("fill") ? floatLiteral(numberOf(op, "fill"))
                                                          : "weft::negativeInfinity";
  const std::string keyText = elementText(key), otherwise = " ? {0} : " + fill;
  if (kind == "padding") {
    operands.push_back(evaluate(op.operands[1], coordinates));
    return pointwise(keyText + " < {1}" + otherwise, operands, name, {key});
  }
  const int64_t queryDimension = integerOf(op, "query");
  const Index query = indexOf(x, queryDimension, coordinates);
  const auto extentOf = [&](int64_t dimension) {
    return kernel.axes[kernel.values[x].axes[dimension]].extent;
  };
  const int64_t shift = extentOf(keyDimension) - extentOf(queryDimension);
  const std::string position =
      shift == 0 ? elementText(query) : fmt::format("{} + {}", elementText(query), shift);
  if (kind == "causal")
    return pointwise(fmt::format("{} <= {}{}", keyText, position, otherwise), operands, name,
                     {key, query});
  if (kind == "window") {
    const std::string text =
        fmt::format("{0} >= {1} - {2} && {0} <= {1} + {3}{4}", keyText, position,
                    integerOf(op, "left"), integerOf(op, "right"), otherwise);
    return pointwise(text, operands, name, {key, query});
  }
  if (kind != "block")
    throw Error::unsupported(
        "kernel '{}': mask of kind '{}'; there are causal, window, padding and block", kernel.name,
        kind);
  const std::vector<int> &table = kernel.values[op.operands[1]].axes;
  const int64_t size = integerOf(op, "size");
  Coordinates blocks = coordinates;
  blocks.at[table[0]] = divided(query, size, kernel.axes[table[0]].extent);
  blocks.at[table[1]] = divided(key, size, kernel.axes[table[1]].extent);
  operands.push_back(evaluate(op.operands[1], blocks));
  return pointwise("{1} != 0" + otherwise, operands, name);
}

/// Whether lanes 2n and 2n + 1 of every warp hold the two halves of 16 aligned columns and none of
/// them is ever idle.
bool GraphBuilder::lanesHoldPairs(const Index &column) const {
  if (space.width != 8 || column.multipleOf % 8 != 0 || column.irregular ||
      !graph.extraStepGuard.empty())
    return false;
  if (!column.text.starts_with(home.at.at(space.knobs.vectorAxis).text) || space.isPartial())
    return false;
  if (column.text != home.at.at(space.knobs.vectorAxis).text) return false;
  if (space.vectorIsReduced())
    return space.reduced.size() == 1 && space.threadsPerRow % 2 == 0 &&
           space.rowVectors % space.threadsPerRow == 0 &&
           (space.isExact() || space.threadsPerRow >= 32);
  return space.pairsLanes();
}

/// Bits as SPEC.md fixes them; where a vector runs along columns, neighbours share words of draws.
int GraphBuilder::dropout(const BodyOp &op, const std::string &name,
                          const Coordinates &coordinates) {
  const double p = numberOf(op, "p");
  const int x = evaluate(op.operands[0], coordinates);
  if (keyName.empty()) {
    const std::string pointer = names.reserve("dropoutKey");
    keyName = names.reserve("key");
    graph.parameters.push_back({Parameter::Kind::dropoutKey, 0, pointer, "weft::DropoutKey"});
    graph.prologue.push_back(declare("const weft::DropoutKey", keyName, "*" + pointer,
                                     "seed and step: a replay must not repeat masks"));
    graph.headers.insert("weft/dropout.cuh");
  }
  const int opIndex = definedBy[op.results[0]];
  const auto argument = [&](Parameter::Kind kind) {
    for (const Parameter &parameter : graph.parameters)
      if (parameter.kind == kind && parameter.index == opIndex) return parameter.name;
    const std::string claimed = names.reserve(std::string(nameOf(kind)));
    graph.parameters.push_back({kind, opIndex, claimed, "unsigned"});
    return claimed;
  };
  const std::string stream = argument(Parameter::Kind::dropoutStream);
  const std::string threshold =
      constant("unsigned", "dropThreshold", fmt::format("{}u", std::llround(p * 65536)),
               fmt::format("{} of 65536 draws", p));
  const std::string scale =
      constant("float", "keepScale", floatLiteral(p < 1 ? 1.0 / (1.0 - p) : 0.0));
  const std::vector<int> &own = kernel.values[op.results[0]].axes;
  const size_t rank = own.size();
  const Index zero{.text = "0", .multipleOf = 0};
  const Index column = rank > 0 ? coordinates.at.at(own[rank - 1]) : zero;
  const Index row = rank > 1 ? coordinates.at.at(own[rank - 2]) : zero;
  std::vector<Index> used = {column, row};
  bool outerVaries = false;
  std::string outer = "0";
  for (size_t i = 0; i + 2 < rank; ++i) {
    const Index index = coordinates.at.at(own[i]);
    used.push_back(index);
    outerVaries |= index.varies();
    if (space.extent(own[i]) == 1) continue;
    const std::string text = elementText(index);
    outer = outer == "0"
                ? text
                : fmt::format("{} * {} + {}", asOperand(outer), space.axisName(own[i]), text);
  }
  if (op.attributes.contains("outer"))  // the rows before this part of an outer axis
    outer = (outer == "0" ? "" : outer + " + ") + argument(Parameter::Kind::dropoutOuter);
  outer = asArgument(outer);
  const bool alongColumns = column.perElement == 1 && !column.irregular && !row.varies() &&
                            !outerVaries && column.multipleOf % space.width == 0 &&
                            space.width <= 16;
  if (!alongColumns) {
    const std::string call =
        fmt::format("weft::kept({}, {}, {}, {}, {}, {})", keyName, stream, outer,
                    asArgument(elementText(row)), asArgument(elementText(column)), threshold);
    const int dropped =
        pointwise(fmt::format("{} ? {{0}} * {} : 0.0f", call, scale), {x}, name, used);
    graph.nodes[size_t(dropped)].drawsAlone = true;
    return dropped;
  }
  const bool paired = lanesHoldPairs(column);
  const std::string function =
      paired ? "keptColumnsPaired" : fmt::format("keptColumns<{}>", space.words.width);
  Node node{.kind = Node::Kind::kept, .wish = "kept"};
  node.text = fmt::format("weft::{}({}, {}, {}, {}, {}, {})", function, keyName, stream, outer,
                          asArgument(baseText(row)), asArgument(baseText(column)), threshold);
  for (const Index &index : used) node.step |= index.step;
  node.perElement = true;
  return pointwise(fmt::format("{{1}} ? {{0}} * {} : 0.0f", scale), {x, add(node)}, name);
}

/// Rotates pairs: (i, i + half) if halved, (2i, 2i + 1) if interleaved.
int GraphBuilder::rotary(const BodyOp &op, const std::string &name,
                         const Coordinates &coordinates) {
  const int x = op.operands[0];
  const int64_t dimension = integerOf(op, "dim");
  const int axis = kernel.values[x].axes[dimension];
  const int64_t extent = kernel.axes[axis].extent, half = extent / 2;
  const Index at = indexOf(x, dimension, coordinates),
              position = indexOf(x, integerOf(op, "position"), coordinates);
  const bool halved = textOf(op, "style") == "halved";
  const bool linear = !at.varies() || (halved && half % space.width == 0 &&
                                       at.multipleOf % space.width == 0 && !at.irregular);
  Index partner = at;
  partner.outer = -1;
  const std::string own = linear ? baseText(at) : elementText(at), here = elementText(at);
  partner.text = halved ? fmt::format("({0} < {1} ? {0} + {1} : {0} - {1})", own, half)
                        : fmt::format("({} ^ 1)", own);
  partner.multipleOf = halved ? std::gcd(at.multipleOf, half) : 1;
  partner.irregular = !linear;
  if (!linear) partner.perElement = 0;
  Coordinates other = coordinates;
  other.at[axis] = partner;
  const std::string scale = constant(
      "float", "frequencyScale",
      floatLiteral(-2.0 * std::log2(numberOf(op, "base", 10000.0)) / static_cast<double>(extent)),
      fmt::format("-2 log2({}) / {}", numberOf(op, "base", 10000.0), extent));
  const std::string pair =
      halved ? fmt::format("{} % {}", here, half) : fmt::format("{} / 2", here);
  const int turn = pointwise(fmt::format("weft::rotation({}, weft::rotaryFrequency({}, {}))",
                                         elementText(position), pair, scale),
                             {}, "turn", {at, position});
  graph.nodes[turn].type = "weft::Rotation";
  graph.headers.insert("weft/math.cuh");
  const std::string first =
      halved ? fmt::format("{} < {}", here, half) : fmt::format("{} % 2 == 0", here);
  const bool isReverse = op.attributes.contains("direction");
  const char *text = isReverse ? "{{0}} * {{2}}.cosine + ({} ? {{1}} : -{{1}}) * {{2}}.sine"
                               : "{{0}} * {{2}}.cosine + ({} ? -{{1}} : {{1}}) * {{2}}.sine";
  return pointwise(fmt::format(fmt::runtime(text), first),
                   {evaluate(x, coordinates), evaluate(x, other), turn}, name, {at});
}

}  // namespace weft::codegen
