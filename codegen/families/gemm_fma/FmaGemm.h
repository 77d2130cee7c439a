// Plain contractions: configurations, price and lowering.
#pragma once

#include "codegen/Program.h"
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"
#include "kernel/StridedBatchedGemm.h"

namespace weft {

Expected<ConfigurationSpace, Reason> fmaGemmSpace(const Kernel &kernel, const Device &device);

/// Which of A, B and C are contiguous along one axis and have groups of four neighbours along it
/// that lie at multiples of their size, all of them whole.
struct FmaAlignment {
  bool a = false, b = false, c = false;
};
FmaAlignment fmaAlignment(const Kernel &kernel, const Configuration &configuration,
                          const StridedBatchedGemm &gemm);
/// Blocks of one multiprocessor that the compiler leaves registers for: fewer where a thread has
/// many elements, and where k-tiles pass through registers or come by single elements.
int64_t fmaBlocksByRegisters(const FmaGemmKnobs &knobs, const Kernel &kernel,
                             const FmaAlignment &aligned);

Cost fmaGemmCost(const Kernel &kernel, const Configuration &configuration, const Device &device);

namespace codegen {
Program lowerFmaGemm(const Kernel &kernel, const Configuration &configuration,
                     const FmaGemmKnobs &knobs);
}

}  // namespace weft
