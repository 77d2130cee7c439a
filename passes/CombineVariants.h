// A graph that has the forms of different variants at different sites (select/JoinVariants.h).
#pragma once

#include "passes/select/JoinVariants.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace weft {

/// Names of tensors that rewrites of a graph without a backward pass keep for the same values:
/// those that were written, once.
std::set<std::string> namesThatMayCross(mlir::Operation *graph);

struct CombinedGraph {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// Of each op, in its order, the variant that it is from, and its place in that graph
  /// (numberedOps).
  std::vector<std::pair<size_t, size_t>> origins = {};
};
/// `variants`: the graphs that were joined; `variantOfSite`: which of them each site is taken from.
/// What every variant has comes from the first. Throws Error(checkFailed) where an op reads what
/// nothing before it writes.
CombinedGraph combineVariants(const std::vector<mlir::ModuleOp> &variants,
                              const select::JoinedVariants &joined,
                              const std::vector<size_t> &variantOfSite);

}  // namespace weft
