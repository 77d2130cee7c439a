// Element-wise ops over the axes of scores as statements of an emitted function of one score: what
// the families of fused attention and of its backward pass have in common.
//
// A function has the number of a head, a query and a key; values that it has computed or loaded
// have names. Inputs are loaded at their first use, at the element's coordinates or at those that
// an op computes, and never outside their tensors (BehindEnds). What a function returns of queries
// and keys behind the last one, which tiles end with, is undefined; its caller discards it.
#pragma once

#include "codegen/Names.h"
#include "codegen/Program.h"
#include "codegen/families/attention/AttentionProblem.h"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace weft::codegen {

/// What a function loads of queries and keys behind the last one.
enum class BehindEnds {
  nothing,   ///< each load is under a condition: a branch for each score, which waits there
  last,      ///< what the last one loads
  uncalled,  ///< its caller asks for none of them
};

/// What the family has decided and named.
struct ScoreContext {
  const Kernel &kernel;
  const Configuration &configuration;
  const AttentionRegion &region;
  const AttentionProblem &problem;
  Names &names;
  std::vector<std::string> axes;    ///< constants of type int with the extents of the kernel's axes
  std::vector<std::string> inputs;  ///< pointers, one per Kernel::inputs
  BehindEnds behindEnds = BehindEnds::nothing;
};

/// The coordinate along an axis of heads: a digit of the number of a head. `axes`: as ScoreContext
/// has them.
Code headCoordinate(const AttentionProblem &problem, const std::vector<std::string> &axes,
                    const Code &head, AxisId axis);

class ScoreOps {
public:
  using Coordinate = std::function<Code(AxisId axis)>;
  explicit ScoreOps(const ScoreContext &context)
      : context(context),
        kernel(context.kernel),
        region(context.region),
        problem(context.problem),
        behindEnds(context.behindEnds) {}

  /// The coordinates of an element; those of extent 1 are 0.
  Coordinate coordinates(const Code &head, const Code &query, const Code &key) const;
  int64_t extent(AxisId axis) const { return axis < 0 ? 1 : kernel.axes[size_t(axis)].extent; }

  /// A value's name, loaded at its first use. `names`: by value.
  Code operandName(const BodyOp &op, int operand, std::map<ValueId, Code> &names, Block &body,
                   const Coordinate &at);
  /// What the op computes from a node of its expression on.
  Code text(const BodyOp &op, int root, std::map<ValueId, Code> &names, Block &body,
            const Coordinate &at);
  /// The name of an attribute that the op's expression reads.
  Code attributeName(const BodyOp &op, const std::string &attribute);
  /// The name of a weft::Bounds: what a tensor of bounds (kernel/TileBounds.h) has of an inclusive
  /// range of positions. `before`: the coordinates in front of the axis of tiles.
  Code tileBounds(ValueId value, const std::vector<Code> &before, const Code &first,
                  const Code &last, Block &body);
  /// The name of a constant of this value.
  Code constant(const std::string &wish, const Code &value);

  std::set<std::string> headers = {};  ///< of what was asked for
  std::vector<ConstantLine> constants = {};

  /// Of functions until this one is done; then again what the context says.
  class OfFunction {
  public:
    OfFunction(ScoreOps &ops, BehindEnds behindEnds) : ops(ops) { ops.behindEnds = behindEnds; }
    ~OfFunction() { ops.behindEnds = ops.context.behindEnds; }
    OfFunction(const OfFunction &) = delete;
    OfFunction &operator=(const OfFunction &) = delete;

  private:
    ScoreOps &ops;
  };

private:
  /// One coordinate of an element that is loaded.
  struct Place {
    Code index;
    std::vector<AxisId> guarded;  ///< axes of positions: behind their ends nothing is read
  };
  bool isPosition(AxisId axis) const {
    return axis == problem.queryAxis || axis == problem.keyAxis;
  }
  /// A coordinate, or, where they load as well, that of the last query or key.
  Code insideOf(AxisId axis, const Coordinate &at) const;
  std::vector<Place> ownPlaces(ValueId value, const Coordinate &at) const;
  std::vector<Place> computedPlaces(const Expression &expression, const ExpressionNode &element,
                                    const Coordinate &at) const;
  Statement load(size_t input, const Code &name, const std::vector<Place> &places,
                 const Coordinate &at) const;
  Code elementName(const BodyOp &op, int index, std::map<std::string, Code> &elements, Block &body,
                   const Coordinate &at);

  const ScoreContext &context;
  const Kernel &kernel;
  const AttentionRegion &region;
  const AttentionProblem &problem;
  BehindEnds behindEnds;
  std::map<std::string, Code> constantNames;
};

}  // namespace weft::codegen
