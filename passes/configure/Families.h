// Which configurations a kernel may take. MLIR-free. One .cpp a family; Families.cpp is the table.
//
// A configuration returned here is legal: code generation accepts it without further checks, or there is a bug.
#pragma once

#include "kernel/Configuration.h"
#include "kernel/Device.h"

#include <functional>
#include <optional>

namespace weft {

/// Layouts a caller fixes beforehand: one entry per input / output of the kernel; an empty optional leaves it free.
struct LayoutConstraints {
  std::vector<std::optional<Layout>> inputs, outputs;
};

/// A layout that no family can use, with the reason, for `explain`.
struct Exclusion {
  std::string family;
  std::string reason;  ///< names the axis or tensor and the limit
};

struct Configurations {
  std::vector<Configuration> legal;  ///< sorted, without duplicates
  std::vector<Exclusion> excluded;
};

/// All legal layouts x knobs of every family that accepts the kernel (design: "Selection, precisely").
/// A contraction's layouts are every permutation that maps to one batched strided matrix product.
Configurations enumerate(const Kernel &kernel, const Device &device, const LayoutConstraints &constraints = {});

/// The same, handed out one by one without keeping them; `visit` returns false to stop. Order is deterministic.
void forEachConfiguration(const Kernel &kernel, const Device &device, const LayoutConstraints &constraints,
                          const std::function<bool(const Configuration &)> &visit);

/// The batched strided matrix product that a contraction is under given layouts (extents and element strides).
struct MatrixProduct {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  int64_t batchStrideA = 0, batchStrideB = 0, batchStrideC = 0;
  int64_t strideAm = 0, strideAk = 0, strideBk = 0, strideBn = 0, strideCm = 0, strideCn = 0;
  auto operator<=>(const MatrixProduct &) const = default;
};
/// Nothing if the layouts do not map to one product. The contraction must be the first op of the body.
std::optional<MatrixProduct> matrixProduct(const Kernel &kernel, const Configuration &configuration);

}  // namespace weft
