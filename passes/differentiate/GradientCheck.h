// One number of a training step that says whether its gradients overflowed: a sum over all of them.
// A sum is finite if every element is, and never if one is not: infinities and NaN stay in a sum,
// and one of finite elements that leaves the range of f32 has elements whose squares do, too.
//
// Invariant: nothing else of the graph changes, and no op reads a gradient a second time that could
// not do so in the kernel of its update.
#pragma once

#include "ir/LayerMarks.h"

#include <string>
#include <vector>

namespace weft {

/// Gradients of one step, in any order; then the sum over all of them. Ops are appended at the
/// builder's place.
class GradientCheck {
public:
  explicit GradientCheck(BuilderOfLayer &builder, mlir::Location location)
      : builder(builder), location(location) {}

  /// Whose gradient it is.
  struct Parameter {
    std::string name;
    int64_t layer = 0;  ///< of several; 0: of none
  };
  /// `gradient`: as the backward pass gives it; `unscaled`: of it, in f32, what the update reads.
  void add(const Parameter &parameter, mlir::Value gradient, mlir::Value unscaled);
  /// A scalar of f32, named `name`. At least one gradient was added.
  mlir::Value sum(const std::string &name);

private:
  /// What is summed of one gradient: the sums of its rows, or its elements, in f32.
  struct Part {
    int64_t layer = 0;
    mlir::Value gradient, sums;
  };

  template <typename Op, typename... Arguments>
  mlir::Value make(const std::string &name, Arguments &&...arguments);
  void addLayer(int64_t layer, llvm::ArrayRef<Part> ofLayer);
  void addToTotal(const std::string &prefix, mlir::Value scalar);

  BuilderOfLayer &builder;
  mlir::Location location;
  std::vector<Part> parts;
  mlir::Value total;
};

}  // namespace weft
