// Three functions from the score ops: two of an element, one of a tile; see AttentionScore.h.
#include "codegen/families/attention/AttentionScore.h"

#include "codegen/families/attention/ScoreMasks.h"
#include "codegen/families/attention/TileIntervals.h"

#include <algorithm>

namespace weft::codegen {
namespace {

using Kind = ExpressionNode::Kind;

class ScoreBuilder {
public:
  explicit ScoreBuilder(const ScoreContext &context)
      : context(context),
        kernel(context.kernel),
        region(context.region),
        problem(context.problem),
        masks(scoreMasks(kernel, region, problem)),
        ops(context) {}

  AttentionScore run() {
    result.score = result.scoreWithoutMasks = "weft::UnchangedScore{}";
    result.coverage = "weft::FullCoverage{}";
    ops.headers = {"weft/tile_coverage.cuh"};
    if (!region.inputs.empty()) ops.headers.insert("weft/vector.cuh");
    if (!masks.empty())
      for (Code *name : {&s, &head, &query, &key}) *name = context.names.reserve(name->str());
    for (size_t i = 0; i < masks.size(); ++i) {
      const BodyOp &op = kernel.body[region.scoreOps[i]];
      result.hasMasks = result.hasMasks || masks[i];
      result.hasValueOps = result.hasValueOps || !masks[i] || !keepsOperand(op, *maskForm(op));
    }
    result.mayScaleLast = !result.hasValueOps && region.scale > 0;
    if (!masks.empty()) result.score = addScore("score", false);
    if (result.hasValueOps)
      result.scoreWithoutMasks = result.hasMasks ? addScore("unmaskedScore", true) : result.score;
    if (result.hasMasks) {
      result.functions.push_back(coverageFunction(context, ops, masks, head));
      result.coverage = result.functions.back().name.str();
    }
    result.headers.assign(ops.headers.begin(), ops.headers.end());
    result.constants = std::move(ops.constants);
    return std::move(result);
  }

private:
  // --- scores ---

  std::string addScore(const std::string &wish, bool withoutMasks) {
    const Code name = context.names.reserve(wish);
    const ScoreOps::Coordinate at = ops.coordinates(head, query, key);
    std::map<ValueId, Code> names = {{region.scores, s}};
    Block body;
    for (size_t i = 0; i < region.scoreOps.size(); ++i) {
      const BodyOp &op = kernel.body[region.scoreOps[i]];
      const bool isKept = withoutMasks && masks[i];
      const int root = isKept ? maskForm(op)->kept : op.expression.root();
      const ValueId value = op.results[0];
      if (isKept && keepsOperand(op, *maskForm(op))) {
        names[value] = ops.operandName(op, op.expression[root].index, names, body, at);
        continue;
      }
      const Code text = ops.text(op, root, names, body, at);
      names[value] = context.names.reserve(kernel.values[size_t(value)].name);
      body.push_back(declareConstant("float", names[value], text,
                                     op.number >= 0 ? fmt::format("%{}", op.number) : ""));
    }
    body.push_back(evaluate(code("return {}", names.at(region.folded))));
    addFunction(name, code("float {}, int {}, int {}, int {}", s, head, query, key),
                std::move(body));
    return name;
  }

  void addFunction(const Code &name, Code arguments, Block body) {
    result.functions.push_back({.kind = Statement::Kind::function,
                                .type = std::move(arguments),
                                .name = name,
                                .body = std::move(body)});
  }

  const ScoreContext &context;
  const Kernel &kernel;
  const AttentionRegion &region;
  const AttentionProblem &problem;
  const std::vector<bool> masks;
  Code s = "s", head = "head", query = "query", key = "key";  ///< parameters of functions
  ScoreOps ops;
  AttentionScore result;
};

}  // namespace

std::string scoreRejection(const Kernel &kernel, const AttentionRegion &region) {
  for (const OpId index : region.scoreOps) {
    const BodyOp &op = kernel.body[index];
    if (op.expression.empty())
      return fmt::format("'{}' between scores and softmax has no expression", nameOf(op.kind));
    for (const ExpressionNode &node : op.expression.all()) {
      if (node.type == ScalarType::rotation)
        return fmt::format("'{}' between scores and softmax rotates pairs", nameOf(op.kind));
      if (node.kind != Kind::operand) continue;
      if (std::ranges::any_of(node.children,
                              [&](int child) { return op.expression.readsOperand(child); }))
        return fmt::format("'{}' reads elements at coordinates that are themselves read",
                           nameOf(op.kind));
    }
  }
  for (const ScoreInput &input : region.inputs) {
    const Value &value = kernel.values[size_t(input.value)];
    if (value.dtype != DType::f32 && value.dtype != DType::f16 && value.dtype != DType::bf16 &&
        value.dtype != DType::i32)
      return fmt::format("'{}' is {}; score ops read f32, f16, bf16 and i32", value.name,
                         nameOf(value.dtype));
  }
  return "";
}

Statement coverageFunction(const ScoreContext &context, ScoreOps &ops,
                           const std::vector<bool> &masks, const Code &head) {
  const Kernel &kernel = context.kernel;
  const AttentionRegion &region = context.region;
  const AttentionProblem &problem = context.problem;
  const Code name = context.names.reserve("coverage"),
             firstQuery = context.names.reserve("firstQuery"),
             lastQuery = context.names.reserve("lastQuery"),
             firstKey = context.names.reserve("firstKey"),
             lastKey = context.names.reserve("lastKey");
  const ScoreOps::Coordinate at = ops.coordinates(head, firstQuery, firstKey);
  std::map<ValueId, Code> names;
  Block body;
  std::vector<Code> mayKeep, keeps;
  for (size_t i = 0; i < masks.size(); ++i) {
    if (!masks[i]) continue;
    const BodyOp &op = kernel.body[region.scoreOps[i]];
    const MaskForm form = maskForm(op).value();
    LeafInterval leaf;
    leaf = [&](const ExpressionNode &node) -> std::optional<Interval> {
      if (node.kind == Kind::operand && !node.children.empty()) {
        const std::optional<ValueId> bounds = boundsOfElement(op, node);
        if (!bounds) return std::nullopt;
        std::vector<Code> before;
        for (size_t d = 0; d + 1 < node.children.size(); ++d) {
          const auto place = intervalOf(op.expression, node.children[d], leaf);
          if (!place || !place->isExact()) return std::nullopt;
          before.push_back(place->low);
        }
        const auto positions = intervalOf(op.expression, node.children.back(), leaf);
        if (!positions) return std::nullopt;
        const Code found = ops.tileBounds(*bounds, before, positions->low, positions->high, body);
        return Interval{code("{}.low", found), code("{}.high", found)};
      }
      if (node.kind == Kind::operand) {
        const ValueId value = op.operands[size_t(node.index)];
        if (!inputOf(region, value) || !isOneInTile(kernel, problem, value)) return std::nullopt;
        const Code element = ops.operandName(op, node.index, names, body, at);
        return Interval{element, element};
      }
      if (ops.extent(node.index) == 1) return Interval{"0", "0", true};
      if (node.index == problem.queryAxis) return Interval{firstQuery, lastQuery, true};
      if (node.index == problem.keyAxis) return Interval{firstKey, lastKey, true};
      const Code digit = at(node.index);
      return Interval{digit, digit, true};
    };
    const BlockCoverage blocks = [&](const Code &ofHead, const Interval &queries,
                                     const Interval &keys) {
      const Code found = context.names.reserve("blocks");
      body.push_back(declareConstant(
          "weft::TileCoverage", found,
          code("weft::blockCoverage({}, {}, {}, {}, {}, {})", ops.attributeName(op, "pattern"),
               asArgument(ofHead), asArgument(queries.low), asArgument(queries.high),
               asArgument(keys.low), asArgument(keys.high))));
      return found;
    };
    const TileCondition condition = conditionOf(op.expression, form.condition, leaf, blocks);
    if (form.keepsWhereTrue) {
      mayKeep.push_back(condition.mayHold.value_or("true"));
      keeps.push_back(condition.holds.value_or("false"));
    } else {
      mayKeep.push_back(condition.holds ? code("!({})", asArgument(*condition.holds)) : "true");
      keeps.push_back(condition.mayHold ? code("!({})", asArgument(*condition.mayHold)) : "false");
    }
  }
  const Code isEmpty = context.names.reserve("isEmpty"), isFull = context.names.reserve("isFull");
  body.push_back(
      declareConstant("bool", isEmpty, code("!({})", asArgument(joined(mayKeep, " && ")))));
  body.push_back(declareConstant("bool", isFull, asArgument(joined(keeps, " && "))));
  body.push_back(
      evaluate(code("return {} ? weft::TileCoverage::empty : {} ? weft::TileCoverage::full : "
                    "weft::TileCoverage::mixed",
                    isEmpty, isFull)));
  return {.kind = Statement::Kind::function,
          .type = code("int {}, int {}, int {}, int {}, int {}", head, firstQuery, lastQuery,
                       firstKey, lastKey),
          .name = name,
          .body = std::move(body)};
}

AttentionScore attentionScore(const ScoreContext &context) { return ScoreBuilder(context).run(); }

}  // namespace weft::codegen
