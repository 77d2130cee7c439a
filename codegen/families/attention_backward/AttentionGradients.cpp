// Ops in order into functions of one score; see AttentionGradients.h.
#include "codegen/families/attention_backward/AttentionGradients.h"

#include "codegen/ExpressionText.h"
#include "codegen/families/attention/AttentionPlaces.h"
#include "codegen/families/attention/AttentionScore.h"
#include "kernel/Attributes.h"
#include "kernel/CoordinateExpressions.h"
#include "kernel/Dropout.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace weft::codegen {
namespace {

using Kind = ExpressionNode::Kind;

std::vector<const BodyOp *> dropoutsOf(const Kernel &kernel,
                                       const AttentionBackwardRegion &region) {
  std::vector<const BodyOp *> dropouts;
  for (const OpId index : region.elementOps)
    if (const std::optional<Dropout> own = dropoutOf(kernel.body[index]); own && own->p > 0)
      dropouts.push_back(&kernel.body[index]);
  return dropouts;
}

/// A condition, whatever op it is of: operands by their values, attributes by their numbers.
std::string conditionText(const BodyOp &op, const MaskForm &form) {
  return op.expression.textOf(form.condition, [&](int index) -> std::optional<std::string> {
    const ExpressionNode &node = op.expression[index];
    if (node.kind == Kind::operand && node.children.empty())
      return fmt::format("v{}", op.operands[size_t(node.index)]);
    if (node.kind == Kind::operand) {
      std::string place;
      for (const int child : node.children) place += op.expression.textOf(child) + ", ";
      return fmt::format("v{}[{}]", op.operands[size_t(node.index)], place);
    }
    if (node.kind == Kind::attribute) {
      const auto *text = std::get_if<std::string>(&op.attributes.at(node.name));
      return text ? *text : fmt::format("a{}", numberNamed(op, node.name));
    }
    return std::nullopt;
  });
}

/// Of every element-wise op the form of a mask that a full tile does not need: of scores with -inf,
/// or behind the probability with zeros under the condition of one of these.
std::map<size_t, MaskForm> masksOf(const Kernel &kernel, const AttentionBackwardRegion &region,
                                   const AttentionBackwardProblem &problem) {
  std::map<size_t, MaskForm> masks;
  std::set<std::pair<std::string, bool>> conditions;
  const std::vector<bool> isMask =
      scoreMasks(kernel, attentionOf(kernel, region), problem.attention);
  for (size_t i = 0; i < isMask.size(); ++i) {
    if (!isMask[i]) continue;
    const BodyOp &op = kernel.body[region.scoreOps[i]];
    const MaskForm form = maskForm(op).value();
    masks.emplace(region.scoreOps[i], form);
    conditions.emplace(conditionText(op, form), form.keepsWhereTrue);
  }
  for (const OpId index : region.elementOps) {
    if (std::ranges::find(region.scoreOps, index) != region.scoreOps.end()) continue;
    const BodyOp &op = kernel.body[index];
    const std::optional<MaskForm> form = maskForm(op, 0);
    if (form && conditions.contains({conditionText(op, *form), form->keepsWhereTrue}))
      masks.emplace(index, *form);
  }
  return masks;
}

/// f32, of rows, read by ops other than the probability, at their own coordinates alone, in one
/// piece. Values.
std::vector<ValueId> wholeRowTensorsOf(const Kernel &kernel,
                                       const AttentionBackwardRegion &region) {
  const auto isOfRow = [&](AxisId axis) {
    return std::ranges::find(region.batch, axis) != region.batch.end() ||
           std::ranges::find(region.queries, axis) != region.queries.end();
  };
  std::vector<ValueId> tensors;
  for (const ScoreInput &input : region.inputs) {
    const Value &value = kernel.values[size_t(input.value)];
    if (value.dtype != DType::f32 || !std::ranges::all_of(value.axes, isOfRow)) continue;
    bool isRead = false, isElsewhere = false;
    for (const OpId index : region.elementOps) {
      const BodyOp &op = kernel.body[index];
      for (size_t n = 0; n < op.operands.size(); ++n)
        if (op.operands[n] == input.value) {
          isRead = isRead || index != region.probability;
          isElsewhere = isElsewhere || op.expression.readsElsewhere(int(n));
        }
    }
    if (isRead && !isElsewhere) tensors.push_back(input.value);
  }
  return tensors;
}

/// Values that ops read, behind the log sums: of packed rows what unpacks them gives.
std::vector<ValueId> rowTensorsOf(const Kernel &kernel, const AttentionBackwardRegion &region) {
  if (!region.packed) return wholeRowTensorsOf(kernel, region);
  std::vector<ValueId> tensors;
  for (const PackedRow &row : region.packed->rows)
    if (std::ranges::any_of(region.elementOps, [&](OpId op) {
          const std::vector<ValueId> &operands = kernel.body[op].operands;
          return op != region.probability &&
                 std::ranges::find(operands, row.read) != operands.end();
        }))
      tensors.push_back(row.read);
  return tensors;
}

class GradientBuilder {
public:
  explicit GradientBuilder(const GradientContext &context)
      : context(context),
        kernel(context.kernel),
        region(context.region),
        attention(attentionOf(kernel, region)),
        masks(masksOf(kernel, region, context.problem)),
        rowTensors(rowTensorsOf(kernel, region)),
        scoreContext{.kernel = kernel,
                     .configuration = context.configuration,
                     .region = attention,
                     .problem = context.problem.attention,
                     .names = context.names,
                     .axes = context.axes,
                     .inputs = context.inputs},
        ops(scoreContext) {}

  AttentionGradients run() {
    ops.headers = {"weft/score_gradients.cuh", "weft/tile_coverage.cuh", "weft/vector.cuh"};
    for (Code *name : {&s, &dKept, &row, &head, &query, &key, &isKept})
      *name = context.names.reserve(name->str());
    result.rowFloats = rowFloatsOf(kernel, region);
    addRow();
    result.gradients = addGradients("gradients", false);
    result.hasMasks = !masks.empty();
    result.gradientsWithoutMasks =
        result.hasMasks ? addGradients("unmaskedGradients", true) : result.gradients;
    result.coverage = "weft::FullCoverage{}";
    if (result.hasMasks) {
      std::vector<bool> isMask;
      for (const OpId op : region.scoreOps) isMask.push_back(masks.contains(op));
      result.functions.push_back(coverageFunction(scoreContext, ops, isMask, head));
      result.coverage = result.functions.back().name.str();
    }
    result.dropout = result.dropoutTransposed = "weft::NoDropout{}";
    if (region.hasDropout) addDropout();
    result.storeScores = "weft::NoScoreStore{}";
    if (region.storedScores >= 0) addStore();
    result.headers.assign(ops.headers.begin(), ops.headers.end());
    result.constants.insert(result.constants.begin(), ops.constants.begin(), ops.constants.end());
    return std::move(result);
  }

private:
  bool isScoreOp(OpId op) const {
    return std::ranges::find(region.scoreOps, op) != region.scoreOps.end();
  }

  std::string rowType() const { return fmt::format("weft::ScoreRow<{}>", result.rowFloats); }
  std::string rowElement(size_t n) const { return fmt::format("{}.at[{}]", row, n); }

  void addRow() {
    const Code name = context.names.reserve("rowOf");
    const ScoreOps::Coordinate at = ops.coordinates(head, query, "0");
    std::map<ValueId, Code> names;
    Block body;
    if (region.packed) return addPackedRow(name);
    std::vector<Code> members = {
        code("weft::negatedLogSum({})",
             ops.operandName(kernel.body[region.probability], 1, names, body, at))};
    for (const ValueId value : rowTensors)
      for (const OpId index : region.elementOps) {
        const BodyOp &op = kernel.body[index];
        const auto found = std::ranges::find(op.operands, value);
        if (index == region.probability || found == op.operands.end()) continue;
        members.push_back(ops.operandName(op, int(found - op.operands.begin()), names, body, at));
        break;
      }
    body.push_back(evaluate(code("return {}{{{{{}}}}}", rowType(), joined(members, ", "))));
    addFunction(name, code("int {}, int {}", head, query), std::move(body));
    result.row = name.str();
  }

  /// The same of a head and a token, which is one of the head's sequence.
  void addPackedRow(const Code &name) {
    const Code token = context.names.reserve("token");
    Block body;
    const auto loaded = [&](ValueId read) {
      const PackedRow &row = *std::ranges::find(region.packed->rows, read, &PackedRow::read);
      const AttentionTensor tensor = attentionTensor(
          kernel, context.configuration, context.problem.attention, row.stored, row.tokens, -1);
      const Code own = context.names.reserve(kernel.values[size_t(row.stored)].name + "_v");
      body.push_back(
          {.kind = Statement::Kind::load,
           .name = own,
           .value = "0.0f",
           .pointer = fmt::format("{} + {} + weft::Offset({}) * {}", context.inputs[tensor.operand],
                                  placeOfHead(context.problem.attention, tensor, head.str()),
                                  token.str(), tensor.rowStride)});
      return own;
    };
    std::vector<Code> members = {
        code("weft::negatedLogSum({})", loaded(kernel.body[region.probability].operands[1]))};
    for (const ValueId value : rowTensors) members.push_back(loaded(value));
    body.push_back(evaluate(code("return {}{{{{{}}}}}", rowType(), joined(members, ", "))));
    addFunction(name, code("int {}, int {}", head, token), std::move(body));
    result.row = name.str();
  }

  /// Whether scores may come without their scale, which is then part of the exponential's factor:
  /// masks alone are between, and nothing else reads them.
  bool foldsScale() const {
    if (region.scoresScale <= 0) return false;
    std::set<ValueId> ofScore = {region.scores};
    for (const OpId index : region.scoreOps) {
      const BodyOp &op = kernel.body[index];
      if (!masks.contains(index) || !keepsOperand(op, masks.at(index))) return false;
      ofScore.insert(op.results[0]);
    }
    return std::ranges::none_of(region.elementOps, [&](OpId index) {
      return index != region.probability && !isScoreOp(index) &&
             std::ranges::any_of(kernel.body[index].operands,
                                 [&](ValueId operand) { return ofScore.contains(operand); });
    });
  }

  std::string addGradients(const std::string &wish, bool withoutMasks) {
    const Code name = context.names.reserve(wish);
    const ScoreOps::OfFunction own(ops, context.behindEnds);
    const ScoreOps::Coordinate at = ops.coordinates(head, query, key);
    const bool isFolded = foldsScale();
    std::map<ValueId, Code> names;
    Block body;
    const auto scaled = [&](ValueId value, const Code &sum, double scale) {
      names[value] = sum;
      if (scale == 1) return;
      names[value] = context.names.reserve(kernel.values[size_t(value)].name);
      body.push_back(declareConstant(
          "float", names[value], code("{} * {}", sum, ops.constant("scale", floatLiteral(scale)))));
    };
    scaled(region.scores, s, isFolded ? 1 : region.scoresScale);
    scaled(region.dKept, dKept, region.dKeptScale);
    for (size_t n = 0; n < rowTensors.size(); ++n) names[rowTensors[n]] = Code(rowElement(n + 1));
    const double factor = std::numbers::log2e * (isFolded ? region.scoresScale : 1);
    for (const OpId index : region.elementOps) {
      const BodyOp &op = kernel.body[index];
      const ValueId value = op.results[0];
      Code text;
      if (index == region.probability) {
        text = code("weft::probabilityOf({}, {}, {})", ops.operandName(op, 0, names, body, at),
                    ops.constant("exponentFactor", floatLiteral(factor)), rowElement(0));
      } else if (op.kind == OpKind::dropout) {
        const Code operand = ops.operandName(op, 0, names, body, at);
        const double p = dropoutOf(op).value().p;
        text = p == 0 ? operand
                      : code("{} ? {} * {} : 0.0f", isKept, operand,
                             ops.constant("keepScale", floatLiteral(dropoutScale(p))));
      } else {
        const auto mask = masks.find(index);
        const int root =
            withoutMasks && mask != masks.end() ? mask->second.kept : op.expression.root();
        const ExpressionNode &node = op.expression[root];
        if (node.kind == Kind::operand && node.children.empty()) {  // a cast, or a mask that keeps
          names[value] = ops.operandName(op, node.index, names, body, at);
          continue;
        }
        text = ops.text(op, root, names, body, at);
      }
      names[value] = context.names.reserve(kernel.values[size_t(value)].name);
      body.push_back(declareConstant("float", names[value], text,
                                     op.number >= 0 ? fmt::format("%{}", op.number) : ""));
    }
    const bool isBeside = region.storedScores >= 0 && region.storedScores != region.dScores;
    body.push_back(evaluate(isBeside ? code("return weft::ScoreGradientsBeside{{{{{}, {}}}, {}}}",
                                            names.at(region.kept), names.at(region.dScores),
                                            names.at(region.storedScores))
                                     : code("return weft::ScoreGradients{{{}, {}}}",
                                            names.at(region.kept), names.at(region.dScores))));
    addFunction(name,
                code("float {}, float {}, const {} &{}, int {}, int {}, int {}, bool {}", s, dKept,
                     rowType(), row, head, query, key, isKept),
                std::move(body));
    return name.str();
  }

  /// A word is stored whole where both of its elements are inside or neither is, and every first
  /// one starts a word of the tensor.
  void addStore() {
    const AttentionProblem &problem = context.problem.attention;
    const AttentionTensor &tensor = context.problem.dScores.value();
    const std::string name = context.names.reserve("storeScores"),
                      pair = context.names.reserve("pair"), place = context.names.reserve("place");
    const bool ofKeys = context.arePairsOfKeys;
    const int64_t stride = ofKeys ? tensor.columnStride : tensor.rowStride,
                  other = ofKeys ? tensor.rowStride : tensor.columnStride,
                  extent = ofKeys ? problem.keys : problem.queries;
    const bool areWords =
        stride == 1 && other % 2 == 0 && extent % 2 == 0 && tensor.alignment % 4 == 0 &&
        std::ranges::all_of(tensor.headStrides, [](int64_t one) { return one % 2 == 0; });
    const auto extentName = [&](AxisId axis) {
      return axis < 0 ? std::string("1") : context.axes[size_t(axis)];
    };
    const std::string queries = extentName(problem.queryAxis), keys = extentName(problem.keyAxis),
                      isInside =
                          fmt::format("{} < {} && {} < {}", query.str(), queries, key.str(), keys),
                      isNextInside = ofKeys ? fmt::format("{} + 1 < {}", key.str(), keys)
                                            : fmt::format("{} + 1 < {}", query.str(), queries);
    const auto term = [](const Code &position, int64_t stride) {
      return stride == 1 ? fmt::format("weft::Offset({})", position.str())
                         : fmt::format("weft::Offset({}) * {}", position.str(), stride);
    };
    Block body = {
        declareConstant("weft::Offset", place,
                        fmt::format("{} + {} + {}", placeOfHead(problem, tensor, head.str()),
                                    term(query, tensor.rowStride), term(key, tensor.columnStride))),
        evaluate(areWords
                     ? fmt::format("if ({}) weft::storeScorePair({} + {}, {})", isInside,
                                   context.dScores, place, pair)
                     : fmt::format("if ({}) weft::storeScores({} + {}, weft::Offset({}), {}, {})",
                                   isInside, context.dScores, place, stride, pair, isNextInside))};
    addFunction(name, code("int {}, int {}, int {}, unsigned {}", head, query, key, pair),
                std::move(body));
    result.storeScores = name;
  }

  std::string parameter(Parameter::Kind kind, std::string_view type, int index) {
    const std::string name = context.names.reserve(std::string(nameOf(kind)));
    result.parameters.push_back(
        {.kind = kind, .index = index, .name = name, .type = std::string(type)});
    return name;
  }

  /// The slice of the probabilities that a head is, over their axes but the last two.
  std::string outerOfHead() const {
    std::string outer = "0";
    const std::vector<AxisId> &own = kernel.values[size_t(region.scores)].axes;
    for (size_t i = 0; i + 2 < own.size(); ++i) {
      if (kernel.axes[size_t(own[i])].extent == 1) continue;
      const std::string coordinate =
          headCoordinate(context.problem.attention, context.axes, head, own[i]).str();
      const std::string &extent = context.axes[size_t(own[i])];
      outer = outer == "0" ? coordinate : fmt::format("({}) * {} + {}", outer, extent, coordinate);
    }
    return outer;
  }

  void addDropout() {
    const BodyOp &op = *dropoutsOf(kernel, region).front();
    const int index = int(&op - kernel.body.data());
    const double p = dropoutOf(op)->p;
    ops.headers.insert("weft/dropout.cuh");
    const std::string pointer = parameter(Parameter::Kind::dropoutKey, "weft::DropoutKey", 0),
                      stream = parameter(Parameter::Kind::dropoutStream, "unsigned", index),
                      words = context.names.reserve("dropoutSeedAndStep"),
                      threshold = context.names.reserve("dropThreshold");
    std::string outer = outerOfHead();
    if (hasAttribute(op, attribute::outer))  // the slices before this part of an outer axis
      outer = (outer == "0" ? "" : outer + " + ") +
              parameter(Parameter::Kind::dropoutOuter, "unsigned", index);
    result.constants.push_back(
        {"unsigned",
         {{threshold, ConstantValue::text(fmt::format("{}u", std::llround(p * 65536)))}},
         fmt::format("{} of 65536 draws", p)});
    result.functions.push_back(declareConstant("weft::DropoutKey", words, "*" + pointer,
                                               "a replay must not repeat masks"));
    for (const auto &[name, function] : {std::pair(&result.dropout, "keptFragment"),
                                         {&result.dropoutTransposed, "keptTransposedFragment"}}) {
      *name = context.names.reserve(name == &result.dropout ? "keptOf" : "keptOfTransposed");
      addFunction(Code(*name), code("int {}, int {}, int {}", head, query, key),
                  {evaluate(fmt::format("return weft::{}({}, {}, {}, {}, {}, {})", function, words,
                                        stream, outer, query.str(), key.str(), threshold))});
    }
  }

  void addFunction(const Code &name, Code arguments, Block body) {
    result.functions.push_back({.kind = Statement::Kind::function,
                                .type = std::move(arguments),
                                .name = name,
                                .body = std::move(body)});
  }

  const GradientContext &context;
  const Kernel &kernel;
  const AttentionBackwardRegion &region;
  const AttentionRegion attention;
  const std::map<size_t, MaskForm> masks;  ///< by op of the body
  const std::vector<ValueId> rowTensors;   ///< behind the log sums
  const ScoreContext scoreContext;
  Code s = "s", dKept = "dKept", row = "row", head = "head", query = "query", key = "key",
       isKept = "isKept";  ///< parameters of functions
  ScoreOps ops;
  AttentionGradients result;
};

}  // namespace

std::string gradientRejection(const Kernel &kernel, const AttentionBackwardRegion &region,
                              const AttentionBackwardProblem &problem) {
  AttentionRegion all = attentionOf(kernel, region);
  all.scoreOps = region.elementOps;
  std::erase_if(all.scoreOps, [&](OpId op) { return kernel.body[op].kind == OpKind::dropout; });
  if (std::string reason = scoreRejection(kernel, all); !reason.empty()) return reason;
  if (region.packed && region.storedScores >= 0)
    return fmt::format("'{}' is stored, over packed tokens",
                       kernel.values[size_t(region.storedScores)].name);
  if (region.packed)
    if (const std::vector<ValueId> whole = wholeRowTensorsOf(kernel, region); !whole.empty())
      return fmt::format("'{}' is of rows and not packed, as queries are",
                         kernel.values[size_t(whole.front())].name);
  const std::vector<const BodyOp *> dropouts = dropoutsOf(kernel, region);
  for (const BodyOp *op : dropouts) {
    if (op->attributes != dropouts.front()->attributes)
      return "two dropouts draw differently; a backward pass draws what its forward pass drew";
    const std::vector<AxisId> &axes = kernel.values[size_t(op->results[0])].axes;
    if (axes != kernel.values[size_t(region.scores)].axes || axes.size() < 2 ||
        axes[axes.size() - 2] != problem.attention.queryAxis ||
        axes.back() != problem.attention.keyAxis)
      return fmt::format("'{}' is dropped by other last axes than queries and keys",
                         kernel.values[size_t(op->operands[0])].name);
  }
  return "";
}

int rowFloatsOf(const Kernel &kernel, const AttentionBackwardRegion &region) {
  return 1 + int(rowTensorsOf(kernel, region).size());
}

AttentionGradients attentionGradients(const GradientContext &context) {
  return GradientBuilder(context).run();
}

int valueOpsOfGradients(const Kernel &kernel, const AttentionBackwardRegion &region,
                        const AttentionBackwardProblem &problem) {
  const std::map<size_t, MaskForm> masks = masksOf(kernel, region, problem);
  return int(std::ranges::count_if(region.elementOps, [&](OpId op) {
    return (!masks.contains(op) || isDocumentMask(kernel.body[op])) && op != region.probability &&
           kernel.body[op].kind != OpKind::cast;
  }));
}

}  // namespace weft::codegen
