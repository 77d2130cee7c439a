// A graph of chosen kernels, as an artifact holds it: its kernel regions in order, as ops and as
// plain data.
#pragma once

#include "ir/Weft.h"
#include "kernel/Configuration.h"
#include "tools/driver/Diagnostics.h"
#include "tools/driver/PlanWiring.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <vector>

namespace weft::driver {

class SelectedGraph {
public:
  /// Throws Error(badInput) with the place in `where` when the text is no graph.
  SelectedGraph(const std::string &text, const std::string &where);

  /// What a plan of this graph is held to.
  const GraphWiring &wiring() const { return wires; }
  const Kernel &kernel(size_t region) const { return wires.regions[region].kernel; }
  void configure(size_t region, const Configuration &configuration);
  std::string print();

private:
  void addGraph(GraphOp graph);
  int valueOf(mlir::Value value);
  /// Whether a region only moves parameters, which happens at load: the plan has no kernel for it
  /// (PlanBuilder.cpp, isPacking).
  bool packsParameters(KernelOp region, const Kernel &kernel) const;
  /// The value that an earlier packing makes of the same operands in the same way.
  std::optional<int> packedAlike(const GraphRegion &region) const;

  mlir::MLIRContext context;
  CapturedDiagnostics diagnostics;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  GraphWiring wires;
  std::vector<KernelOp> regions;  ///< GraphWiring::regions
  llvm::DenseMap<mlir::Value, int> values;
};

}  // namespace weft::driver
