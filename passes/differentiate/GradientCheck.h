// One number of a training step that says whether its gradients overflowed: a sum over all of them.
// A sum is finite if every element is, and never if one is not: infinities and NaN stay in a sum,
// and one of finite elements that leaves the range of f32 has elements whose squares do, too.
//
// Invariant: nothing else of the graph changes, and no op reads a gradient a second time that could
// not do so in the kernel of its update.
#pragma once

#include "ir/Weft.h"

#include <string>
#include <vector>

namespace weft {

/// Gradients of one step, in any order; then the sum over all of them. Ops are appended at the
/// builder's place.
class GradientCheck {
public:
  explicit GradientCheck(mlir::OpBuilder &builder, mlir::Location location)
      : builder(builder), location(location) {}

  /// `gradient`: as the backward pass gives it; `unscaled`: of it, in f32, what the update reads.
  void add(const std::string &parameter, mlir::Value gradient, mlir::Value unscaled);
  /// A scalar of f32, named `name`. At least one gradient was added.
  mlir::Value sum(const std::string &name);

private:
  /// What is summed of one gradient: the sums of its rows, or its elements, in f32.
  struct Part {
    std::string parameter;
    mlir::Value gradient, sums;
  };

  template <typename Op, typename... Arguments>
  mlir::Value make(const std::string &name, Arguments &&...arguments);
  void addLayer(const std::string &prefix, llvm::ArrayRef<Part> ofLayer);
  void addToTotal(const std::string &prefix, mlir::Value scalar);

  mlir::OpBuilder &builder;
  mlir::Location location;
  std::vector<Part> parts;
  mlir::Value total;
};

}  // namespace weft
