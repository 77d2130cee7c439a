// The prologue of a fused contraction as statements: how eight neighbouring elements of a tensor
// become elements of an operand. For every family with prologue fusion
// (codegen/device/prologue.cuh).
//
//    tensor ──copy──> k-tile in shared memory ──emitted function──> k-tile of the operand ──> MMA
//                                                ^
//                     scalars, one element a row, or one along k
//
// **Prologue fusion** (`kernel/ContractionPrologue.h`; scaling, casts, a norm's application, the
// last step of a decomposed softmax): element-wise ops may precede the contraction, between one
// tensor and one operand of 16 bits. What else they read is a scalar, one element a row (also of
// every batch element, or of every sub-vector of k), or one along k.
//
// Invariant: they compute in fp32 and round to the operand's type, as if it had been stored; beyond
// the end of k the operand is zero, whatever the ops return for zeros.
//
//   - `gemm-sm80`: each thread rewrites the elements that it copied itself, between its wait and
//     the block's barrier.
//   - `gemm-sm90` where TMA loads both operands: one warp of the first warpgroup issues the loads
//     of k-tiles and the other three rewrite them in shared memory. Elsewhere all threads of the
//     warpgroup compute the operand between their loads and stores (`sm90_prologue.cuh`). Consumers
//     are those of other kernels: they wait for the same barrier, at which the three warps also
//     arrive.
// The functions on k-tiles are emulated on the CPU; barriers and TMA are not. Every tile in a row
// or column of tiles repeats the prologue for its k-tiles, so a prologue pays where these tiles are
// few.
//
// **Factors of whole k-tiles** (the last step of a decomposed softmax, `global_scaling`, as the
// only op before the contraction, on rows of the kernel template's A) rewrite nothing. TMA loads
// both operands, and the accumulators of each k-tile are scaled in fp32 when they are added to the
// tile's (`sm90_scaled.cuh`, `GemmOperand::isScaled`). This costs 7% over the plain GEMM, where
// rewriting cost 180% (`docs/experiments/epilogues.md`). The operand is then not rounded;
// ir/SPEC.md admits both. Factors are loaded four k-tiles ahead, because a thread's load queues
// after those in flight; the four lanes that hold the same rows load for four k-tiles at once,
// because loads for one k-tile cost 8% more where the factors of neighbouring rows are adjacent in
// memory.
//
// **Selection.** `passes/fuse/Prologues.h` proposes the whole chain of ops whose results have no
// other reader, its last op, and the chain with the largest epilogue, where a family takes them
// (`takesPrologues`). With a profile they are chosen by their measurements alone; without one their
// modelled price is raised by 5%, that of scaled ones by 7%. Rejected: dropout, split k,
// single-consumer tiles, epilogue reductions, operands of 8 bits and of f32.
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
  Block before = {};           ///< before the kernel template is called: scalars
  std::string arguments = {};  ///< the function's parameters
  Block body = {};
};

/// The configuration has prologueLayoutRejection() empty.
PrologueText prologueText(const PrologueContext &context);

}  // namespace weft::codegen
