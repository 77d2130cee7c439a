// The prologue of a fused contraction as statements: what becomes of eight neighbouring elements on
// the way to an operand. For every family that makes operands so (codegen/device/prologue.cuh).
//
// **Operands that are transformed on load** (`kernel/ContractionPrologue.h`; scaling, casts, a
// norm's application, the end of a decomposed softmax): element-wise ops may stand before the
// contraction, on the way from one tensor to one operand of 16 bits. What else they read is a
// scalar, one element a row (also of every batch element, or of every sub-vector of k), or one
// along k. They compute in fp32 and round to the operand's type, as if it had been stored; beyond
// the end of k it is zero, whatever they make of zeros.
// `codegen/families/contraction/ContractionPrologue.h` emits them as a function of eight
// neighbouring elements. In `gemm-sm80` each thread rewrites the chunks that it copied itself,
// between its wait and the block's barrier. In `gemm-sm90` one warp of the first warpgroup asks for
// slices and three rewrite them in shared memory, where TMA brings both operands; else all its
// threads make the operand between loads and stores (`sm90_prologue.cuh`). Consumers are those of
// other kernels: they wait for the same barrier, at which the three warps arrive, too. The
// functions on slices are emulated on the CPU, barriers and TMA are not. Every tile of a row or
// column of tiles makes its slices anew, so a prologue pays where these are few. **Factors of runs
// of whole slices** (the end of a decomposed softmax, `global_scaling`, alone before the
// contraction, on rows of the kernel template's A) rewrite nothing: TMA brings both operands, and
// the sums of each slice's products are scaled in fp32 on the way to the tile's (`sm90_scaled.cuh`,
// `GemmOperand::isScaled`), 7% over the plain product where rewriting took 180%
// (`docs/experiments/epilogues.md`). Factors are asked for four slices ahead, since what a thread
// asks for waits behind those that are in flight, by the four lanes that have the same rows for
// four slices at once: by single slices those that lie row beside row cost 8% more. The operand is
// then not rounded; ir/SPEC.md admits both. `passes/fuse/Prologues.h` proposes the whole chain of
// ops whose results nobody else reads, its last op, and the chain with the largest epilogue, where
// a family takes them (`takesPrologues`). With a profile they are chosen by their measurements
// alone, without one they are 5% dearer than modelled, scaled ones 7%. Rejected: dropout, k shared
// by blocks, single-consumer tiles, sums, operands of 8 bits and of f32.
#pragma once

#include "codegen/Names.h"
#include "codegen/Program.h"
#include "kernel/ContractionPrologue.h"

namespace weft::codegen {

/// What the family has decided and named.
struct PrologueContext {
  const Kernel &kernel;
  const Configuration &configuration;
  const ContractionPrologue &prologue;
  Names &names;
  std::vector<std::string> axes;     ///< constants with the extents of the kernel's axes
  std::vector<std::string> inputs;   ///< pointers, one per Kernel::inputs; that of the tensor that
                                     ///< the operand is made of is not used
  std::string outerExtent, kExtent;  ///< "gemm.m", "gemm.k": constants
  bool isAlongK = true;              ///< whether neighbours in memory run along k
};

/// A function `float (&x)[8], const weft::OperandPlace &at` that replaces eight elements by those
/// of the operand.
struct PrologueText {
  std::vector<std::string> headers = {};
  std::vector<ConstantLine> constants = {};
  Block before = {};           ///< before the skeleton is called: scalars
  std::string arguments = {};  ///< the function's parameters
  Block body = {};
};

/// The configuration has prologueLayoutRejection() empty.
PrologueText prologueText(const PrologueContext &context);

}  // namespace weft::codegen
