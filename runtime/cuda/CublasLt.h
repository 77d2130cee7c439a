// GEMMs by NVIDIA's cuBLASLt, opened at run time: its algorithms as readable attributes, and GEMMs
// prepared from them. MLIR-free, without CUDA headers.
//
// Invariant: an algorithm is used only after the library of this machine has checked it for the
// GEMM at hand; one that it rejects is replaced by the next candidate of its heuristic, with a
// warning that names both, and never by anything else. A context (Cuda.h) must be current on the
// calling thread throughout.
#pragma once

#include "codegen/families/library/LibraryGemm.h"
#include "codegen/families/library/LibraryKnobs.h"
#include "runtime/cuda/Cuda.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace weft::runtime {

struct CublasLtLocation {
  std::filesystem::path library;  ///< empty: none
  int version = 0;                ///< 130200 for 13.2.0
  std::vector<std::string> searched;
};
/// $WEFT_CUBLASLT and nothing else if it is set; else where LibrarySearch.h says. Throws
/// Error(badInput) if a library is found or named but does not load. Needs no GPU.
CublasLtLocation findCublasLt();

/// Addresses of the elements zero, multiples of 16 bytes; 0 where the GEMM has no such tensor.
struct GemmTensors {
  cuda::DevicePointer a = 0, b = 0;
  cuda::DevicePointer result = 0;
  cuda::DevicePointer residual = 0;   ///< R; may be the result
  cuda::DevicePointer auxiliary = 0;  ///< read or written (LibraryEpilogueTraits)
  cuda::DevicePointer vector = 0;     ///< the bias, or the sum that is written
  cuda::DevicePointer scaleA = 0,
                      scaleB =
                          0;  ///< of operands of 8-bit floats: floats that multiply them; 0 for 1
};

/// A GEMM of known shape with its algorithm, ready to be enqueued any number of times, also
/// while a stream is captured.
class PreparedGemm {
public:
  ~PreparedGemm();
  PreparedGemm(PreparedGemm &&) noexcept;
  PreparedGemm &operator=(PreparedGemm &&) noexcept;

  /// The algorithm in use.
  const LibraryKnobs &algorithm() const;
  /// Device memory that enqueue() needs at its workspace, aligned to 256 bytes; may be 0.
  int64_t workspaceBytes() const;
  /// Why another algorithm than the wanted one is used; empty if it is that one.
  const std::string &warning() const;
  /// The GEMM and its epilogue on the stream. Throws Error(checkFailed) with the library's
  /// reason.
  void enqueue(const GemmTensors &tensors, cuda::DevicePointer workspace,
               cuda::StreamHandle *stream) const;

private:
  friend class CublasLt;
  struct State;
  explicit PreparedGemm(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

class CublasLt {
public:
  /// What an algorithm may ask for unless told otherwise: what PyTorch gives the library on compute
  /// capability 9.0.
  static constexpr int64_t standardWorkspace = int64_t(32) << 20;

  /// Throws Error(unsupported) naming where it was searched if there is none, or if the GPU is not
  /// served.
  CublasLt();
  ~CublasLt();
  CublasLt(const CublasLt &) = delete;
  CublasLt &operator=(const CublasLt &) = delete;

  int version() const;
  const std::filesystem::path &path() const;

  /// The heuristic's list for a GEMM, best guess first, at most `requested`, without duplicates:
  /// algorithms that add up in fp32 and need at most `mostWorkspace` bytes. Empty if the library
  /// has none. Version 13.1 lists 8 for an H200, whatever number, workspace (0 to 256 MB),
  /// reduction schemes or alignment (16, 256) are asked for. Its check takes over 11,000 other
  /// attributes a GEMM, but 400 of them, evenly taken, held none more than 2% faster than the
  /// list's best in ten GEMMs of encoder layers: the list is what is measured.
  std::vector<LibraryKnobs> candidates(const LibraryGemm &gemm, int requested = 128,
                                       int64_t mostWorkspace = standardWorkspace) const;

  /// Makes the algorithm again from its attributes and has the library check it; see warning() of
  /// the result. Algorithm -1 takes the first candidate. `kernel` is for messages. Throws
  /// Error(unsupported) naming the kernel where the library takes no algorithm at all.
  PreparedGemm prepare(const LibraryGemm &gemm, const LibraryKnobs &knobs,
                       const std::string &kernel, int64_t mostWorkspace = standardWorkspace) const;

  struct Library;

private:
  std::shared_ptr<const Library> library;  // prepared GEMMs outlive this object
};

}  // namespace weft::runtime
