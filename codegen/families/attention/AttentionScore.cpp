// Three functions from the score ops: two of an element, one of a tile; see AttentionScore.h.
#include "codegen/families/attention/AttentionScore.h"

#include "codegen/families/attention/TileIntervals.h"
#include "codegen/families/loop/ExpressionText.h"
#include "codegen/families/loop/LoopOps.h"
#include "kernel/Error.h"

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
  if (own.kind == Kind::attribute) return numberOf(op, own.name);
  if (own.kind != Kind::unary || own.operation != ScalarOperator::negate) return std::nullopt;
  const std::optional<double> operand = numberAt(op, own.children[0]);
  return operand ? std::optional(-*operand) : std::nullopt;
}

bool isNegativeInfinity(const BodyOp &op, int node) {
  return numberAt(op, node) == -std::numeric_limits<double>::infinity();
}

/// `condition ? x : -inf`, or the other way around.
struct MaskForm {
  int condition, kept;
  bool keepsWhereTrue;
};
std::optional<MaskForm> maskForm(const BodyOp &op) {
  if (op.expression.empty()) return std::nullopt;
  const ExpressionNode &root = op.expression[op.expression.root()];
  if (root.kind != Kind::select) return std::nullopt;
  const bool isFirst = isNegativeInfinity(op, root.children[1]),
             isSecond = isNegativeInfinity(op, root.children[2]);
  if (isFirst == isSecond) return std::nullopt;
  return MaskForm{root.children[0], root.children[isFirst ? 2 : 1], isSecond};
}

bool readsAny(const BodyOp &op, int node, const std::set<int> &values) {
  const ExpressionNode &own = op.expression[node];
  return (own.kind == Kind::operand && values.contains(op.operands[size_t(own.index)])) ||
         std::ranges::any_of(own.children, [&](int child) { return readsAny(op, child, values); });
}

/// Whether a node is -inf where these operands are, as long as all others are finite.
bool keepsInfinity(const BodyOp &op, int node, const std::set<int> &infinite) {
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

/// Whether the last value of the score ops is -inf wherever this op's result is.
bool reachesFold(const Kernel &kernel, const AttentionRegion &region, size_t mask) {
  std::set<int> infinite = {kernel.body[region.scoreOps[mask]].results[0]};
  for (size_t i = mask + 1; i < region.scoreOps.size(); ++i) {
    const BodyOp &op = kernel.body[region.scoreOps[i]];
    if (!op.expression.empty() && keepsInfinity(op, op.expression.root(), infinite))
      infinite.insert(op.results[0]);
  }
  return infinite.contains(region.folded);
}

bool readsOperand(const Expression &expression, int node) {
  const ExpressionNode &own = expression[node];
  return own.kind == Kind::operand || std::ranges::any_of(own.children, [&](int child) {
           return readsOperand(expression, child);
         });
}

bool runsAlong(const Kernel &kernel, int value, int axis) {
  const std::vector<int> &axes = kernel.values[size_t(value)].axes;
  return std::ranges::find(axes, axis) != axes.end();
}

/// Whether an element is one integer in a tile.
bool isOneInTile(const Kernel &kernel, const AttentionProblem &problem, int value) {
  const auto isShort = [&](int axis) {
    return axis < 0 || kernel.axes[size_t(axis)].extent == 1 || !runsAlong(kernel, value, axis);
  };
  return kernel.values[size_t(value)].dtype == DType::i32 && isShort(problem.queryAxis) &&
         isShort(problem.keyAxis);
}

/// An input of the score ops is what no op of the body computes.
std::optional<size_t> inputOf(const AttentionRegion &region, int value) {
  for (const ScoreInput &input : region.inputs)
    if (input.value == value) return input.input;
  return std::nullopt;
}

bool isMask(const Kernel &kernel, const AttentionRegion &region, const AttentionProblem &problem,
            size_t scoreOp) {
  const BodyOp &op = kernel.body[region.scoreOps[scoreOp]];
  const std::optional<MaskForm> form = maskForm(op);
  if (!form || !reachesFold(kernel, region, scoreOp)) return false;
  // What is bounded does not depend on the texts of leaves.
  const LeafInterval leaf = [&](const ExpressionNode &node) -> std::optional<Interval> {
    if (node.kind == Kind::operand) {
      const int value = op.operands[size_t(node.index)];
      if (!inputOf(region, value) || !isOneInTile(kernel, problem, value)) return std::nullopt;
    }
    return Interval{"low", "high"};
  };
  return conditionOf(op.expression, form->condition, leaf).isBounded();
}

/// Whether a mask gives its operand unchanged where it keeps it.
bool keepsOperand(const BodyOp &op, const MaskForm &form) {
  return op.expression[form.kept].kind == Kind::operand &&
         op.expression[form.kept].children.empty();
}

class ScoreBuilder {
public:
  explicit ScoreBuilder(const ScoreContext &context)
      : context(context),
        kernel(context.kernel),
        region(context.region),
        problem(context.problem),
        masks(scoreMasks(kernel, region, problem)) {}

  AttentionScore run() {
    result.score = result.scoreWithoutMasks = "weft::UnchangedScore{}";
    result.coverage = "weft::FullCoverage{}";
    headers = {"weft/tile_coverage.cuh"};
    if (!region.inputs.empty()) headers.insert("weft/vector.cuh");
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
    if (result.hasMasks) result.coverage = addCoverage();
    result.headers.assign(headers.begin(), headers.end());
    return std::move(result);
  }

private:
  using Coordinate = std::function<Code(int axis)>;

  int64_t extent(int axis) const { return axis < 0 ? 1 : kernel.axes[size_t(axis)].extent; }

  // --- coordinates and loads ---

  Code axisName(int axis) const { return context.axes[size_t(axis)]; }

  /// The coordinates of an element; those of extent 1 are 0.
  Coordinate coordinates(const Code &head, const Code &query, const Code &key) const {
    return [=, this](int axis) {
      if (extent(axis) == 1) return Code::plain("0");
      return axis == problem.queryAxis ? query
             : axis == problem.keyAxis ? key
                                       : headCoordinate(problem, context.axes, head, axis);
    };
  }

  /// One coordinate of an element that is loaded.
  struct Place {
    Code index;
    std::vector<int> guarded;  ///< axes of positions: outside the scores nothing is read
  };
  bool isPosition(int axis) const { return axis == problem.queryAxis || axis == problem.keyAxis; }

  /// The element's own coordinates.
  std::vector<Place> ownPlaces(int value, const Coordinate &at) const {
    std::vector<Place> places;
    for (const int axis : kernel.values[size_t(value)].axes) {
      places.push_back({at(axis), {}});
      if (isPosition(axis)) places.back().guarded = {axis};
    }
    return places;
  }
  /// Those that an op computes. A clamped one lies inside its tensor anyway.
  std::vector<Place> computedPlaces(const Expression &expression, const ExpressionNode &element,
                                    const Coordinate &at) const {
    std::vector<Place> places;
    for (const int child : element.children) {
      Place place;
      const bool isClamped = expression[child].kind == Kind::call;
      place.index = codeOf(expression, child, [&](int index) -> std::optional<Code> {
        const ExpressionNode &node = expression[index];
        if (node.kind != Kind::coordinate) return std::nullopt;
        if (isPosition(node.index) && !isClamped) place.guarded.push_back(node.index);
        return asOperand(at(node.index));
      });
      places.push_back(std::move(place));
    }
    return places;
  }

  /// A load of an input's element that reads nothing outside the tensor.
  Statement load(size_t input, const Code &name, const std::vector<Place> &places,
                 const Coordinate &at) const {
    const Value &value = kernel.values[size_t(kernel.inputs[input])];
    std::vector<int64_t> extents;
    for (const int axis : value.axes) extents.push_back(extent(axis));
    const std::vector<int64_t> strides = stridesOf(context.configuration.inputs[input], extents);
    int64_t last = 0;
    for (size_t d = 0; d < extents.size(); ++d) last += (extents[d] - 1) * strides[d];
    const bool isLong = last > std::numeric_limits<int32_t>::max();
    Code pointer = context.inputs[input];
    std::vector<Code> guards;
    for (size_t d = 0; d < extents.size(); ++d) {
      if (extents[d] == 1) continue;
      const Code &coordinate = places[d].index;
      const Code index = isLong ? code("weft::Offset({})", coordinate) : asOperand(coordinate);
      pointer += strides[d] == 1 ? code(" + {}", index) : code(" + {} * {}", index, strides[d]);
      for (const int axis : places[d].guarded)
        if (Code guard = code("{} < {}", at(axis), axisName(axis));
            std::ranges::find(guards, guard) == guards.end())
          guards.push_back(std::move(guard));
    }
    Statement statement{.kind = Statement::Kind::load,
                        .name = name,
                        .value = value.dtype == DType::i32 ? "0" : "0.0f",
                        .pointer = pointer};
    statement.condition = joined(guards, " && ");
    return statement;
  }

  Code constant(const std::string &wish, const Code &value) {
    const auto [found, isNew] = constantNames.try_emplace(fmt::format("{} {}", wish, value));
    if (isNew) {
      found->second = context.names.reserve(wish);
      result.constants.push_back({"float", {{found->second, value}}, ""});
    }
    return found->second;
  }

  // --- scores ---

  std::string addScore(const std::string &wish, bool withoutMasks) {
    const Code name = context.names.reserve(wish);
    const Coordinate at = coordinates(head, query, key);
    std::map<int, Code> names = {{region.scores, s}};  // by value
    Block body;
    for (size_t i = 0; i < region.scoreOps.size(); ++i) {
      const BodyOp &op = kernel.body[region.scoreOps[i]];
      const bool isKept = withoutMasks && masks[i];
      const int root = isKept ? maskForm(op)->kept : op.expression.root();
      const int value = op.results[0];
      if (isKept && keepsOperand(op, *maskForm(op))) {
        names[value] = operandName(op, op.expression[root].index, names, body, at);
        continue;
      }
      const Code text = scoreText(op, root, names, body, at);
      names[value] = context.names.reserve(kernel.values[size_t(value)].name);
      body.push_back(declare("const float", names[value], text,
                             op.number >= 0 ? fmt::format("%{}", op.number) : ""));
    }
    body.push_back(evaluate(code("return {}", names.at(region.folded))));
    addFunction(name, code("float {}, int {}, int {}, int {}", s, head, query, key),
                std::move(body));
    return name;
  }

  /// A value's name, loaded at its first use.
  Code operandName(const BodyOp &op, int operand, std::map<int, Code> &names, Block &body,
                   const Coordinate &at) {
    const int value = op.operands[size_t(operand)];
    const auto known = names.find(value);
    if (known != names.end()) return known->second;
    const std::optional<size_t> input = inputOf(region, value);
    if (!input)
      throw Error::checkFailed("kernel '{}': '{}' is neither a score nor an input of score ops",
                               kernel.name, kernel.values[size_t(value)].name);
    const Code name = context.names.reserve(kernel.values[size_t(value)].name + "_v");
    body.push_back(load(*input, name, ownPlaces(value, at), at));
    return names[value] = name;
  }

  /// The name of an input's element at coordinates that the op computes, loaded at its first use
  /// there.
  Code elementName(const BodyOp &op, int index, std::map<std::string, Code> &elements, Block &body,
                   const Coordinate &at) {
    const ExpressionNode &node = op.expression[index];
    const int value = op.operands[size_t(node.index)];
    Code &name = elements[op.expression.textOf(index)];
    if (!name.empty()) return name;
    const std::optional<size_t> input = inputOf(region, value);
    if (!input)
      throw Error::checkFailed("kernel '{}': '{}' is read elsewhere, and no input of score ops",
                               kernel.name, kernel.values[size_t(value)].name);
    name = context.names.reserve(kernel.values[size_t(value)].name + "_v");
    body.push_back(load(*input, name, computedPlaces(op.expression, node, at), at));
    return name;
  }

  Code scoreText(const BodyOp &op, int root, std::map<int, Code> &names, Block &body,
                 const Coordinate &at) {
    headers.merge(op.expression.headers());
    const std::map<std::string, Code> attributes = attributeConstants(
        op, [&](const std::string &wish, const Code &value) { return constant(wish, value); });
    std::map<std::string, Code> elements;  // by the text of the node
    return codeOf(op.expression, root, [&](int index) -> std::optional<Code> {
      const ExpressionNode &node = op.expression[index];
      if (node.kind == Kind::operand && !node.children.empty())
        return elementName(op, index, elements, body, at);
      if (node.kind == Kind::operand) return operandName(op, node.index, names, body, at);
      if (node.kind == Kind::attribute) return attributes.at(node.name);
      if (node.kind == Kind::coordinate) return asOperand(at(node.index));
      return std::nullopt;
    });
  }

  // --- coverage ---

  std::string addCoverage() {
    const Code name = context.names.reserve("coverage"),
               firstQuery = context.names.reserve("firstQuery"),
               lastQuery = context.names.reserve("lastQuery"),
               firstKey = context.names.reserve("firstKey"),
               lastKey = context.names.reserve("lastKey");
    const Coordinate at = coordinates(head, firstQuery, firstKey);
    std::map<int, Code> names;
    Block body;
    std::vector<Code> mayKeep, keeps;
    for (size_t i = 0; i < masks.size(); ++i) {
      if (!masks[i]) continue;
      const BodyOp &op = kernel.body[region.scoreOps[i]];
      const MaskForm form = maskForm(op).value();
      const LeafInterval leaf = [&](const ExpressionNode &node) -> std::optional<Interval> {
        if (node.kind == Kind::operand) {
          const int value = op.operands[size_t(node.index)];
          if (!inputOf(region, value) || !isOneInTile(kernel, problem, value)) return std::nullopt;
          const Code element = operandName(op, node.index, names, body, at);
          return Interval{element, element};
        }
        if (extent(node.index) == 1) return Interval{"0", "0", true};
        if (node.index == problem.queryAxis) return Interval{firstQuery, lastQuery, true};
        if (node.index == problem.keyAxis) return Interval{firstKey, lastKey, true};
        const Code digit = at(node.index);
        return Interval{digit, digit, true};
      };
      const TileCondition condition = conditionOf(op.expression, form.condition, leaf);
      if (form.keepsWhereTrue) {
        mayKeep.push_back(condition.mayHold.value_or("true"));
        keeps.push_back(condition.holds.value_or("false"));
      } else {
        mayKeep.push_back(condition.holds ? code("!({})", asArgument(*condition.holds)) : "true");
        keeps.push_back(condition.mayHold ? code("!({})", asArgument(*condition.mayHold))
                                          : "false");
      }
    }
    const Code isEmpty = context.names.reserve("isEmpty"), isFull = context.names.reserve("isFull");
    body.push_back(
        declare("const bool", isEmpty, code("!({})", asArgument(joined(mayKeep, " && ")))));
    body.push_back(declare("const bool", isFull, asArgument(joined(keeps, " && "))));
    body.push_back(
        evaluate(code("return {} ? weft::TileCoverage::empty : {} ? weft::TileCoverage::full : "
                      "weft::TileCoverage::mixed",
                      isEmpty, isFull)));
    addFunction(name,
                code("int {}, int {}, int {}, int {}, int {}", head, firstQuery, lastQuery,
                     firstKey, lastKey),
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
  std::map<std::string, Code> constantNames;
  std::set<std::string> headers;
  AttentionScore result;
};

}  // namespace

Code headCoordinate(const AttentionProblem &problem, const std::vector<std::string> &axes,
                    const Code &head, int axis) {
  const auto found = std::ranges::find(problem.headAxes, axis);
  if (found == problem.headAxes.end()) return Code::plain("0");
  Code text = head;
  std::vector<Code> faster;
  for (auto other = found + 1; other != problem.headAxes.end(); ++other)
    faster.push_back(axes[size_t(*other)]);
  if (faster.size() == 1) text = code("{} / {}", text, faster[0]);
  if (faster.size() > 1) text = code("{} / ({})", text, joined(faster, " * "));
  if (found != problem.headAxes.begin()) text = code("{} % {}", text, axes[size_t(axis)]);
  return text;
}

std::string scoreRejection(const Kernel &kernel, const AttentionRegion &region) {
  for (const size_t index : region.scoreOps) {
    const BodyOp &op = kernel.body[index];
    if (op.expression.empty())
      return fmt::format("'{}' between scores and softmax has no expression", nameOf(op.kind));
    for (const ExpressionNode &node : op.expression.all()) {
      if (node.type == ScalarType::rotation)
        return fmt::format("'{}' between scores and softmax rotates pairs", nameOf(op.kind));
      if (node.kind != Kind::operand) continue;
      if (std::ranges::any_of(node.children,
                              [&](int child) { return readsOperand(op.expression, child); }))
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

std::vector<bool> scoreMasks(const Kernel &kernel, const AttentionRegion &region,
                             const AttentionProblem &problem) {
  std::vector<bool> masks;
  for (size_t i = 0; i < region.scoreOps.size(); ++i)
    masks.push_back(isMask(kernel, region, problem, i));
  return masks;
}

bool masksDifferInGroup(const Kernel &kernel, const AttentionRegion &region,
                        const AttentionProblem &problem) {
  const auto isOfGroup = [&](int axis) {
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

AttentionScore attentionScore(const ScoreContext &context) { return ScoreBuilder(context).run(); }

}  // namespace weft::codegen
