// The vocabulary in which layers are written: named parameters, projections, normalizations. One
// letter is one axis; the letters of an einsum are the axis names of its result. Invariant: the
// graph under construction verifies once finish() has added its results.
#pragma once

#include "ir/LayerMarks.h"
#include "kernel/DType.h"
#include "kernel/InitialValue.h"
#include "kernel/TrainingRole.h"
#include "models/LayerSpecification.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weft::models {

class LayerBuilder {
public:
  /// Starts an empty graph named after the specification. `dims` holds every axis letter
  /// (resolveDims).
  LayerBuilder(mlir::MLIRContext &context, const LayerSpecification &specification,
               const Dims &dims, DType dtype);

  const LayerSpecification &specification() const { return specification_; }
  int64_t dim(char axis) const { return dims_.at(std::string(1, axis)); }

  /// A graph argument over the given axis letters. Throws Error(badInput) if it has more than 2^62
  /// elements.
  mlir::Value argument(const std::string &name, const std::string &axes);
  /// The same, of the residual stream's type.
  mlir::Value stream(const std::string &name, const std::string &axes);
  /// The same, of f32 whatever the model's elements are.
  mlir::Value factors(const std::string &name, const std::string &axes);
  /// The same, of 32-bit integers.
  mlir::Value indices(const std::string &name, const std::string &axes);
  /// What an argument is to a training step.
  mlir::Value marked(mlir::Value argument, TrainingRole role);
  /// The same, marked as a weight that training starts from `initial`. Of a model whose layers
  /// share their weights it is there once, without the layer's prefix.
  mlir::Value parameter(const std::string &name, const std::string &axes,
                        const InitialValue &initial);
  /// Drawn with deviation 0.02 (Devlin et al. 2019): of matrices and tables.
  static constexpr InitialValue drawn = InitialValue::normal(0.02);

  mlir::Value contract(const std::string &name, const std::string &spec, mlir::Value a,
                       mlir::Value b, std::optional<double> scale = std::nullopt);
  /// x times a new weight (the spec's first operand), plus a new bias over the axes that weight and
  /// result share. Without a bias name there is no bias.
  mlir::Value project(const std::string &name, const std::string &spec,
                      const std::string &weightName, mlir::Value x,
                      const std::string &biasName = "");

  /// Further ops and arguments are of this layer (ir/LayerMarks.h), their names start with its
  /// ("layer2_"), and windows are its; 0: of no layer.
  void setLayer(int64_t number);
  /// What every further name starts with: "cross_".
  void setPrefix(const std::string &text) { prefix_ = text; }
  /// A parameter that all layers share: without their prefix, and there once.
  mlir::Value sharedParameter(const std::string &name, const std::string &axes,
                              const InitialValue &initial);
  mlir::Value gather(const std::string &name, mlir::Value table, mlir::Value indices);
  /// x plus a new parameter over some of its axes.
  mlir::Value bias(const std::string &name, mlir::Value x, const std::string &biasName,
                   const std::string &axes, const InitialValue &initial = InitialValue::zeros());
  /// The losses of rows along the axis.
  mlir::Value crossEntropy(const std::string &name, mlir::Value logits, mlir::Value labels,
                           char axis);
  /// The sum of all elements of losses times weights: a scalar.
  mlir::Value weightedLoss(const std::string &name, mlir::Value losses, mlir::Value weights);
  mlir::Value layerNorm(const std::string &name, mlir::Value x, const std::string &suffix,
                        char axis = 'i');
  mlir::Value rmsNorm(const std::string &name, mlir::Value x, const std::string &weightName,
                      char axis = 'i');
  /// What GEMMs read of the residual stream: rounded to the model's type, where that is another.
  mlir::Value operand(const std::string &name, mlir::Value x);
  /// The result of a norm that GEMMs alone read, in their type.
  mlir::Value ofOperands(mlir::Value normalized) const;
  /// x in the residual stream's type.
  mlir::Value widened(const std::string &name, mlir::Value x);
  mlir::Value softmax(const std::string &name, mlir::Value x, char axis);
  /// x itself where the probability that the specification has there is 0; each call draws its own
  /// stream.
  mlir::Value dropout(const std::string &name, mlir::Value x, double Dropouts::*probability);
  /// In the type of the residual stream, which `skipped` has.
  mlir::Value residual(const std::string &name, mlir::Value x, mlir::Value skipped);
  mlir::Value activate(const std::string &name, mlir::Value x);
  mlir::Value multiply(const std::string &name, mlir::Value a, mlir::Value b);
  mlir::Value tanh(const std::string &name, mlir::Value x);
  mlir::Value scale(const std::string &name, mlir::Value x, double factor);
  /// The first position of the axis, which stays as one of extent 1.
  mlir::Value first(const std::string &name, mlir::Value x, char axis);
  mlir::Value rotary(const std::string &name, mlir::Value x, char position, char headDim);
  /// Keys or values of all positions: those of the cache, an argument of this name and axes (whose
  /// positions are k), with those of the new tokens behind the ones that it holds: `lengths[b]`, an
  /// argument, says how many. Only with LayerSpecification::cache; with a page, the argument has
  /// pages of so many positions, and `page_table`, another one, lists those of each sequence.
  mlir::Value cached(const std::string &name, const std::string &argument, const std::string &axes,
                     mlir::Value tokens);
  /// Scores of keys and queries as the specification has them: scaled, capped, with biases by
  /// position. What they add are arguments: `relative_table` over heads and distances, or T5's
  /// weight of that name over buckets n and heads.
  mlir::Value scores(const std::string &name, const std::string &spec, mlir::Value keys,
                     mlir::Value queries, std::optional<double> scale);
  /// Scores plus elements of a table by the distance of query j from key k: over `axes`, those of
  /// the scores that it runs along, then l distances (weft.relative_bias in reverse).
  mlir::Value distanceTerm(const std::string &name, mlir::Value scores, mlir::Value table,
                           const std::string &axes);
  /// The specification's masks over the query axis and key k; x itself where it has none. A padding
  /// mask adds the argument `lengths` over b, or `attention_mask` over b and k, a document mask
  /// `segments` over b and k.
  mlir::Value mask(const std::string &name, mlir::Value x);
  /// The padding mask alone.
  mlir::Value padding(mlir::Value x);
  /// The axis of scores that masks take for queries, from here on: j, or o.
  void setQueryAxis(char axis) { queryAxis_ = axis; }
  /// The positions of one axis from `start` on that another axis has.
  mlir::Value slice(const std::string &name, mlir::Value x, char axis, int64_t start, char part);
  /// Parts one after the other, of which each has its axis in the same dimension.
  mlir::Value concat(const std::string &name, const std::vector<mlir::Value> &parts, char firstAxis,
                     char axis);
  mlir::Value splitAxis(const std::string &name, mlir::Value x, char axis,
                        const std::string &parts);
  mlir::Value mergeAxes(const std::string &name, mlir::Value x, char first, char merged);

  /// Ends the graph with its results and hands the module over.
  mlir::OwningOpRef<mlir::ModuleOp> finish(const std::vector<mlir::Value> &results);

private:
  /// Appends an op and gives its first result.
  template <typename Op, typename... Arguments>
  mlir::Value append(const std::string &name, Arguments &&...arguments);
  mlir::Location named(const std::string &name);
  int64_t position(mlir::Value x, char axis) const;
  mlir::Value renamed(mlir::Value x, int64_t dimension, char axis) const;
  bool hasAxis(mlir::Value x, char axis) const;
  mlir::Value relativeTable(const std::string &heads);
  mlir::Value maskPositions(const std::string &name, mlir::Value x);
  /// Keys that a query of the current layer sees (LayerSpecification::window).
  std::optional<int64_t> window() const;
  mlir::Value maskBlocks(mlir::Value x);
  /// How many tokens the caches hold, where positions start.
  mlir::Value starts() { return sharedIndices("lengths", "b"); }
  /// How many keys of each sequence are tokens: an argument, or counted in one that is a mask.
  mlir::Value validLengths();
  /// An argument of integers that all layers read: without their prefix, and there once.
  mlir::Value sharedIndices(const std::string &name, const std::string &axes);
  /// What `make` adds, without a prefix, where nothing of that name was added yet.
  template <typename Make>
  mlir::Value shared(const std::string &name, const Make &make);
  void checkElements(const std::string &what, const std::string &axes) const;
  DType streamType() const;
  mlir::Value argumentOf(const std::string &name, const std::string &axes, DType dtype);
  mlir::Value addArgument(const std::string &name, mlir::Type type);

  const LayerSpecification specification_;
  const Dims dims_;
  const DType dtype_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  BuilderOfLayer builder_;
  mlir::Block *body_ = nullptr;
  /// Of the graph arguments that are weights, by position.
  std::map<unsigned, InitialValue> parameters_;
  std::map<unsigned, TrainingRole> roles_;     ///< of graph arguments, by position
  std::map<unsigned, int64_t> layers_;         ///< likewise, of those of a layer
  int64_t streams_ = 0;                        ///< dropout streams handed out
  char queryAxis_ = 'j';                       ///< of masks
  std::string prefix_;                         ///< of names
  int64_t layer_ = 0;                          ///< of several, from 1; 0: of none
  std::map<std::string, mlir::Value> shared_;  ///< by name
};

}  // namespace weft::models
