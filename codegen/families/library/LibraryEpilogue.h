// The epilogues of cuBLASLt, and which kernels match one.
//
//   D = function(alpha A B + beta C + bias)        D contiguous along its rows (LibraryGemm.h),
//       all of one element type
//
// Invariant: a kernel has a form only where the library computes the same function of the same fp32
// accumulators. Its GELU is the tanh approximation; its vectors run along the rows of D; of ReLU it
// keeps bits, which no tensor of ours holds.
#pragma once

#include "kernel/Expected.h"
#include "kernel/Kernel.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weft {

/// cublasLtEpilogue_t, as far as our tensors have what it reads and writes. bgradA and bgradB sum
/// the operands A and B of our GEMM, not those of the library's, which may be swapped.
enum class LibraryEpilogue : uint8_t {
  none,
  relu,
  bias,
  reluBias,
  gelu,
  geluBias,
  geluAux,
  geluAuxBias,
  dgelu,
  dgeluBgrad,
  bgradA,
  bgradB
};

/// The library's name in lower case, and what it reads and writes beside A, B, C and D.
struct LibraryEpilogueTraits {
  LibraryEpilogue epilogue;
  std::string_view name;        ///< "gelu_aux_bias"
  bool readsBias = false;       ///< a vector along the rows of D
  bool readsAuxiliary = false;  ///< what GELU was applied to, as D lies
  bool writesAuxiliary = false;
  bool writesGradient =
      false;  ///< a vector along the rows of D, or what is summed of A or B over k
};
std::span<const LibraryEpilogueTraits> libraryEpilogues();
const LibraryEpilogueTraits &traitsOf(LibraryEpilogue epilogue);
/// Nothing for an unknown name.
std::optional<LibraryEpilogue> parseLibraryEpilogue(std::string_view name);

/// A kernel in the library's terms: values of the kernel, -1 where there is none.
struct LibraryForm {
  LibraryEpilogue epilogue = LibraryEpilogue::none;
  double alpha = 1;        ///< of the contraction and of the factors that follow it
  double beta = 0;         ///< of the residual
  ValueId result = -1;     ///< D, an output
  ValueId bias = -1;       ///< input: one element a row of the GEMM (group m) or a column (group n)
  ValueId residual = -1;   ///< input: C, over the axes of D
  ValueId auxiliary = -1;  ///< over the axes of D: an output of geluAux, an input of dgelu
  ValueId gradient = -1;   ///< output: the sum of D, A or B over all axes but those of group m or n
  bool operator==(const LibraryForm &) const = default;
};

/// Or why there is none, naming the op or tensor. Of a kernel that opens with a contraction of two
/// operands. Layouts, element types and precision are not looked at: LibraryGemm.h.
Expected<LibraryForm, Reason> libraryForm(const Kernel &kernel);

/// "gelu_aux_bias", "bias + residual"; empty for the GEMM alone.
std::string describe(const LibraryForm &form);

}  // namespace weft
