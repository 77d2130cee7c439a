// The builder of a LoopGraph: one member function an op. Private to LoopGraph.cpp,
// LoopExpressions.cpp, LoopNormalization.cpp, LoopLoss.cpp, LoopGradients.cpp, LoopMovement.cpp,
// LoopRagged.cpp and LoopDropout.cpp.
#pragma once

#include "codegen/families/loop/LoopGraph.h"

#include <numeric>
#include <optional>

namespace weft::codegen {

/// Where a value is looked at: a coordinate for each kernel axis, and the condition under which it
/// exists.
struct Coordinates {
  std::map<AxisId, Index> at;
  Code condition;
  bool conditionStep = false, conditionPerElement = false;

  std::string key() const {
    std::string text = condition.str();
    for (const auto &[axis, index] : at)
      text += fmt::format("|{}={}#{}", axis.index, index.text, index.node);
    return text;
  }
};

class GraphBuilder {
public:
  GraphBuilder(const IterationAxes &axes, LoopSpace &space, Names &names);
  LoopGraph run();

private:
  void splitHome();
  /// The node, or an equal one that exists already.
  int add(Node node);
  /// The coordinate as an expression, for element 0 of the vector or for element e; declares what
  /// it needs.
  Code baseText(const Index &index);
  Code elementText(const Index &index);
  int pointwise(Code text, std::vector<int> operands, std::string wish,
                const std::vector<Index> &uses = {});
  int reduce(Reduction reduction, int operand, std::string wish);
  int load(int input, const Coordinates &coordinates);
  int evaluate(ValueId value, const Coordinates &coordinates);
  int evaluateOp(const BodyOp &op, ValueId value, const Coordinates &coordinates);
  Code constant(const std::string &type, const std::string &wish, const ConstantValue &value,
                std::string note = "");
  /// The coordinate along a dimension of the value.
  const Index &indexOf(ValueId value, int64_t dimension, const Coordinates &coordinates) const;
  int splat(const BodyOp &op, const std::string &name);

  // LoopExpressions.cpp
  Code coordinateText(const Expression &expression, int node, const Coordinates &coordinates,
                      std::vector<Index> &uses);
  Index computedIndex(const Expression &expression, int node, const Coordinates &coordinates);
  Index movedIndex(const Expression &expression, int node, int64_t extent,
                   const Coordinates &coordinates);
  int rotation(const BodyOp &op, int node, const Coordinates &coordinates);
  std::optional<Code> elementsPair(const Expression &expression, int frequency,
                                   const Coordinates &coordinates) const;
  int elementwise(const BodyOp &op, const std::string &name, const Coordinates &coordinates);

  // LoopNormalization.cpp
  Coordinates overRow(const Coordinates &coordinates) const;
  struct ShiftedExponentials {
    int shift, inRow, here;
  };
  ShiftedExponentials exponentials(int operand, const Coordinates &coordinates);
  int softmax(const BodyOp &op, const std::string &name, const Coordinates &coordinates);
  int layerNorm(const BodyOp &op, ValueId value, const Coordinates &coordinates);
  int rmsNorm(const BodyOp &op, ValueId value, const Coordinates &coordinates);
  int reduceOp(const BodyOp &op, const std::string &name, const Coordinates &coordinates);
  int localSoftmax(const BodyOp &op, ValueId value, const Coordinates &coordinates);
  int reduceSubVectors(const BodyOp &op, const std::string &name, const Coordinates &coordinates);
  int globalScaling(const BodyOp &op, const std::string &name, const Coordinates &coordinates);
  int64_t rowLength() const;
  Code rowLengthText() const;

  // LoopLoss.cpp
  int crossEntropy(const BodyOp &op, ValueId value, const Coordinates &coordinates);
  int crossEntropyDx(const BodyOp &op, const std::string &name, const Coordinates &coordinates);
  Code isLabel(const BodyOp &op, const Code &label) const;

  // LoopGradients.cpp
  int softmaxDx(const BodyOp &op, const std::string &name, const Coordinates &coordinates);
  int normalized(ValueId x, ValueId mean, ValueId rstd, const Coordinates &coordinates);
  int normDx(const BodyOp &op, const std::string &name, const Coordinates &coordinates);
  int normDw(const BodyOp &op, ValueId value, const Coordinates &coordinates);

  // LoopDropout.cpp
  int dropout(const BodyOp &op, const std::string &name, const Coordinates &coordinates);
  bool lanesHoldPairs(const Index &column) const;

  // LoopMovement.cpp
  Index scaled(const Index &index, int64_t factor, int64_t summand) const;
  Index divided(const Index &index, int64_t divisor, int64_t modulus) const;
  int slice(const BodyOp &op, const Coordinates &coordinates);
  int pad(const BodyOp &op, const std::string &name, const Coordinates &coordinates);
  int concat(const BodyOp &op, const std::string &name, const Coordinates &coordinates);
  int splitAxis(const BodyOp &op, const Coordinates &coordinates);
  int mergeAxes(const BodyOp &op, const Coordinates &coordinates);
  std::optional<Code> placeOf(ValueId value, const Coordinates &coordinates);
  int gather(const BodyOp &op, const std::string &name, const Coordinates &coordinates);

  // LoopRagged.cpp
  int offsetAt(const BodyOp &op, const Index &sequence);
  Code statusOf(ValueId value);
  int offsets(const BodyOp &op, const std::string &name, const Coordinates &coordinates);
  int lengths(const BodyOp &op, const std::string &name, const Coordinates &coordinates);
  int pack(const BodyOp &op, const std::string &name, const Coordinates &coordinates);
  int unpack(const BodyOp &op, const std::string &name, const Coordinates &coordinates);
  int gatherPages(const BodyOp &op, const std::string &name, const Coordinates &coordinates);
  int tileBounds(const BodyOp &op, const std::string &name, const Coordinates &coordinates);
  /// The place of a token in the cache, and whether it is inside.
  void placeAppended(const BodyOp &op, OutputStore &store);

  const Kernel &kernel;
  const IterationAxes &axes;
  LoopSpace &space;
  Names &names;
  LoopGraph graph;
  Coordinates home;  ///< the coordinates of the loop nest itself
  std::vector<int> definedBy;
  std::map<std::pair<ValueId, std::string>, int> memo;  ///< (value, coordinates) -> node
  std::map<std::string, int> nodesByContent;
  std::map<std::string, Code> constantNames;  ///< "attribute=value" -> name
  Code keyName;
};

}  // namespace weft::codegen
