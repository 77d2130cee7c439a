// The bench's own kernels: inputs from a hash, the reference copy, and what is needed to look at
// results without moving whole tensors.
#pragma once

#include "bench/kernels/Reference.h"
#include "runtime/cuda/Cuda.h"

#include <memory>

namespace weft::bench {

class Probe {
public:
  explicit Probe(const runtime::cuda::Stream &stream);

  /// inputElement(seed, position, ...) at every position.
  void fillInput(runtime::cuda::DevicePointer to, DType type, int64_t elements, uint32_t seed,
                 int64_t limit) const;
  /// Elements whose bits are all ones: what poisoned memory holds where nothing was written.
  int64_t countPoison(runtime::cuda::DevicePointer from, DType type, int64_t elements) const;
  /// Elements at chosen positions, as numbers.
  std::vector<double> elementsAt(runtime::cuda::DevicePointer from, DType type,
                                 const std::vector<int64_t> &positions) const;
  /// The best copy kernel measured on an H200: one shot, 128 threads, 16 bytes each. `bytes` is a
  /// multiple of 2048.
  void copy(runtime::cuda::DevicePointer from, runtime::cuda::DevicePointer to, int64_t bytes,
            runtime::cuda::StreamHandle *on) const;

private:
  runtime::cuda::FunctionHandle *kernel(const char *name) const { return module->function(name); }

  const runtime::cuda::Stream &stream;
  std::unique_ptr<runtime::cuda::Module> module;
};

}  // namespace weft::bench
