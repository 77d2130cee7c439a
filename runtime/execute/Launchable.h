// What runs one kernel of a plan: a function of a cubin, or a GEMM of a library.
//
// Invariant: enqueue() neither allocates nor waits, so that it can be captured; what it needs was
// made beforehand.
#pragma once

#include "runtime/artifact/Artifact.h"
#include "runtime/cuda/CublasLt.h"
#include "runtime/cuda/Cuda.h"

#include <memory>
#include <span>

namespace weft::runtime {

/// The memory of a plan for one launch: the start of every buffer, by its number, the seed and
/// step of dropout, and where kernels say which elements of arguments are out of range.
struct Bindings {
  std::span<const cuda::DevicePointer> buffers;
  cuda::DevicePointer dropoutKey = 0;
  cuda::DevicePointer status = 0;  ///< a word a tensor of the plan (kernel/ArgumentStatus.h)
  cuda::DevicePointer libraryWorkspace =
      0;  ///< as large as the most that a library GEMM needs beyond the plan's buffers
  bool isBehindEarly =
      false;  ///< the one kernel that stands right before this one lets it start early
  /// Of the tensor's element zero.
  cuda::DevicePointer addressOf(const PlanTensor &tensor) const;
};

class Launchable {
public:
  virtual ~Launchable() = default;
  virtual void enqueue(const Bindings &bindings, cuda::StreamHandle *stream) const = 0;
};

/// A function of a loaded cubin with the plan's launch shape and parameters. `plan` and `module`
/// outlive it. Throws Error(badInput) when the cubin lacks the entry, DriverError when the GPU
/// cannot give it its shared memory.
std::unique_ptr<Launchable> cubinKernel(const Plan &plan, const PlanKernel &kernel,
                                        const cuda::Module &module);

/// A GEMM of cuBLASLt that was made ready. `isPlanned`: it works in the plan's buffer
/// (PlanKernel::workspaceBuffer), else in Bindings::libraryWorkspace. `plan` outlives it.
std::unique_ptr<Launchable> libraryKernel(const Plan &plan, const PlanKernel &kernel,
                                          PreparedGemm gemm, bool isPlanned);

}  // namespace weft::runtime
