// Dropout in loop kernels: bits by the coordinates of the element.
#include "codegen/ExpressionText.h"
#include "codegen/families/loop/LoopOps.h"
#include "kernel/Attributes.h"
#include "kernel/Error.h"
#include "kernel/UnusedTokens.h"

#include <algorithm>
#include <cmath>

namespace weft::codegen {

/// Whether a lane may be behind the last token where another of its warp is not: but for threads
/// that leave, lanes exchange nothing there.
static bool mayPartAtTokens(const Kernel &kernel, const LoopSpace &space) {
  const std::optional<UnusedTokens> unused = unusedTokens(kernel);
  if (!unused) return false;
  if (unused->axis == space.knobs.vectorAxis) return true;
  const bool areRows = std::ranges::find(space.outer, unused->axis) != space.outer.end();
  return areRows ? !space.mayLeave() : !space.warpsShareSteps();
}

/// Whether lanes 2n and 2n + 1 of every warp hold the two halves of 16 aligned columns and none of
/// them is ever idle.
bool GraphBuilder::lanesHoldPairs(const Index &column) const {
  if (mayPartAtTokens(kernel, space)) return false;
  if (space.width != 8 || column.multipleOf % 8 != 0 || column.irregular ||
      !graph.extraStepGuard.empty())
    return false;
  if (space.isPartial()) return false;
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
  const double p = attributeOf(op, attribute::p);
  const int x = evaluate(op.operands[0], coordinates);
  if (keyName.empty()) {
    const Code pointer = names.reserve("dropoutKey");
    graph.keyPointer = pointer;
    keyName = names.reserve("key");
    graph.parameters.push_back({Parameter::Kind::dropoutKey, 0, pointer, "weft::DropoutKey"});
    graph.prologue.push_back(declareConstant("weft::DropoutKey", keyName, "*" + pointer,
                                             "seed and step: a replay must not repeat masks"));
    graph.headers.insert("weft/dropout.cuh");
  }
  const int opIndex = definedBy[op.results[0]];
  const auto argument = [&](Parameter::Kind kind) -> Code {
    for (const Parameter &parameter : graph.parameters)
      if (parameter.kind == kind && parameter.index == opIndex) return Code::name(parameter.name);
    const Code claimed = names.reserve(nameOf(kind));
    graph.parameters.push_back({kind, opIndex, claimed, "unsigned"});
    return claimed;
  };
  const Code stream = argument(Parameter::Kind::dropoutStream);
  const Code threshold = constant("unsigned", "dropThreshold",
                                  ConstantValue::text(code("{}u", std::llround(p * 65536))),
                                  code("{} of 65536 draws", p));
  const Code scale = constant("float", "keepScale",
                              ConstantValue::text(floatLiteral(p < 1 ? 1.0 / (1.0 - p) : 0.0)));
  const std::vector<AxisId> &own = kernel.values[op.results[0]].axes;
  const size_t rank = own.size();
  const Index zero{.text = "0", .multipleOf = 0};
  const Index column = rank > 0 ? coordinates.at.at(own[rank - 1]) : zero;
  const Index row = rank > 1 ? coordinates.at.at(own[rank - 2]) : zero;
  std::vector<Index> used = {column, row};
  bool outerVaries = false;
  Code outer = "0";
  for (size_t i = 0; i + 2 < rank; ++i) {
    const Index index = coordinates.at.at(own[i]);
    used.push_back(index);
    outerVaries |= index.varies();
    if (space.extent(own[i]) == 1) continue;
    const Code text = elementText(index);
    outer =
        outer == "0" ? text : code("{} * {} + {}", asOperand(outer), space.axisName(own[i]), text);
  }
  if (hasAttribute(op, attribute::outer))  // the rows before this part of an outer axis
    outer = (outer == "0" ? "" : outer + " + ") + argument(Parameter::Kind::dropoutOuter);
  outer = asArgument(outer);
  const bool alongColumns = column.perElement == 1 && !column.irregular && !row.varies() &&
                            !outerVaries && column.multipleOf % space.width == 0 &&
                            space.width <= 16;
  if (!alongColumns) {
    const Code call =
        code("weft::kept({}, {}, {}, {}, {}, {})", keyName, stream, outer,
             asArgument(elementText(row)), asArgument(elementText(column)), threshold);
    const int dropped = pointwise(code("{} ? {{0}} * {} : 0.0f", call, scale), {x}, name, used);
    graph.nodes[size_t(dropped)].drawsAlone = true;
    return dropped;
  }
  const bool paired = lanesHoldPairs(column);
  const Code function = paired ? "keptColumnsPaired" : code("keptColumns<{}>", space.words.width);
  Node node{.kind = Node::Kind::kept, .wish = "kept"};
  node.text = code("weft::{}({}, {}, {}, {}, {}, {})", function, keyName, stream, outer,
                   asArgument(baseText(row)), asArgument(baseText(column)), threshold);
  for (const Index &index : used) node.step |= index.step;
  node.perElement = true;
  return pointwise(code("{{1}} ? {{0}} * {} : 0.0f", scale), {x, add(node)}, name);
}

}  // namespace weft::codegen
