// The epilogue of a fused contraction as statements: what is computed from the eight accumulators
// that a lane has of a 16 x 16 block of the result, or from all accumulators that a thread has of a
// single-consumer tile. For every family whose lanes hold accumulators as mma and wgmma leave them
// (codegen/device/fragment.cuh).
//
//    accumulators ──> element-wise ops ──┬──> first output, in the place of C
//    (8 of a lane)      ^        ^       ├──> further outputs of C's shape
//                       │        │       ├──> reductions: sums by row or by column (gemm-sm90)
//          operand of C's shape  │       └──> local softmax: exponentials, maxima, sums
//               vectors, scalars
//
// Invariant: every op reads what the kernel computes at the coordinates of the accumulator alone,
// and no op reads a reduction. What `kernel/ContractionRegion.h` recognises has this form.
//
// **Gathered operands** (`EpilogueRole::gathered`) lie in memory, and an op computes where it reads
// them from its element's coordinates: the bias of a distance, the segments of two positions. Each
// element is a separate load, in the loop over the eight, beyond the last row or column that of
// the last one. Where attention is not fused, scores get such terms in the product's epilogue.
//
// **A rotary embedding** of what the contraction gives (`gemm-sm90` alone) turns accumulators
// before the function is called (`sm90_rotary.cuh`): a tile has whole heads, whose pairs lie in
// registers of one lane. The function then begins with the turned elements. Which angle an element
// has follows from its row (the position, less or plus the start of a sequence) and its column (the
// frequency), by the functions that a loop kernel calls. Heads that are not turned, the values of a
// stacked projection, are those of columns beyond a range.
//
// **Masks** compare the element's coordinates along axes of the kernel, which the builder computes
// from row, column and batch element of the GEMM: where a group has several axes, by divisions by
// their extents. A padding mask also reads lengths of i32, once for a fragment where they differ by
// batch element alone. No chunk moves these coordinates: plans are not cut along the queries and
// keys of a mask (plan/PlanChunks.cpp).
//
// A family takes such kernels if its `Family` says so (`takesEpilogues`, in its `*Knobs.cpp`).
// Fusion then proposes contractions with the element-wise ops that follow them
// (`passes/fuse/Epilogues.h`) and asks the family about each (`FuseOptions::epilogueRejection`), so
// that a region that no family takes costs no search. Loop kernels of the same ops stay candidates.
//
// **Operands and outputs.** The layouts of everything that the epilogue reads and stores follow
// C's (`contractionTuples`). On sm_90a the kernel template loads up to two operands during the main
// loop: one tensor of C's shape into epilogue stages, and one vector into registers, which lanes
// exchange. It stores one further output from separate epilogue subtiles. Kernels with epilogues
// are timed as themselves and not as GEMMs (`isTimedAsGemm`).
//
// **Epilogue reductions** (`ContractionRegion::reductions`; `gemm-sm90` alone) are further outputs:
// the gradient of a bias (sums by column), or sums and sums of squares (by row) for a norm that
// follows. The emitted function hands over the elements to add
// (`codegen/device/sm90_epilogue_reduction.cuh`):
//
//    lanes ──shuffles──> warps ──subtile buffer──> consumer ──> partial sums, arrival of the strip
//    last arrival of a strip of columns or rows ──> adds the strip's partial sums in order
//
// Partial sums lie in device memory of the kernel's module, as words that are zero until they are
// written. An arrival orders no other memory access, because a fence next to outstanding copies
// takes thousands of cycles. The last-arriving consumer adds the partial sums in a fixed order, so
// results have the same bits whichever it is, and zeroes them. Two producer warps take this over
// for all tiles but a consumer's last (`produceStripReductions`, `fragment_reductions.cuh`), unless
// three reductions, many accumulators or copies of operands by threads need their registers.
// `codegen/families/gemm_sm90/Sm90EpilogueReduction.h` says how much memory reductions need (4 MB
// at most) and what is rejected: split k, single-consumer tiles, GEMMs of a batch, more than two
// reductions a side. With a profile, such kernels are chosen by their measurements alone; without
// one, their modelled price is raised by 5%.
//
// **Norms.** No graph of a model has row sums of this kind; `--norms`
// (`passes/algebra/DecomposeNorms.cpp`) makes them from inference norms:
//   - `fused`, the default, keeps norms whole: a whole norm, too, reads x once, and a profile has
//     measurements of the decomposed kernels only if it was made with the flag.
//   - `decomposed` applies the norm by two or three element-wise ops (`normalize`,
//     `rms_normalize`). Their operands are the sums themselves, so that no kernel of rows is needed
//     in between. They go into loop kernels or into prologues.
//   - `deferred` is for RMS norms whose readers sum along the rows. The readers read x times gamma,
//     a second output of the epilogue that computes x, and multiply by the factors of their rows in
//     their own epilogues.
//   - `auto` prices all three.
// Families without epilogue reductions compute the sums in a loop kernel after the GEMM.
//
// **A local softmax may be the last op** (`ContractionRegion::softmax`): the first step of a
// decomposed softmax (`--attention decomposed`), after the GEMM of queries and keys. Exponentials
// are stored in the place of C, and for every sub-vector its maximum and its sum. A sub-vector is
// 16, 32 or 64 elements of a row: adjacent 16 x 16 blocks that one warp holds (a subtile of sm_90a
// is 64 wide; a warp of sm_80 is as wide as its tile says). So no reduction crosses warps: four
// lanes hold a row of a block (`codegen/device/sub_vectors.cuh`, one for both families). The
// softmax runs along the axis in which C is contiguous. Maxima and sums are stored sub-vector by
// sub-vector (`contractionTuples`), so that neighbouring rows are neighbours in memory. A dropout
// of the exponentials may follow, whose result is one more output: a trained attention multiplies
// it, and the backward pass reads the exponentials. Without a backward pass it is stored in their
// place. Nothing else is stored, and with a profile these kernels, too, are chosen by their
// measurements alone. Rejected: ops before the contraction, reductions, split k, single-consumer
// tiles, tf32 by mma.sync.
//
// **Emulation on the CPU.** The epilogue store is emulated: whole emitted kernels run on
// accumulators from plain loops (`gemm_sm90/tests/host`), local softmaxes in both
// families and with masks of -inf. MMA instructions and copies of operands are not emulated.
//
// **Cost.** An epilogue mostly costs what it takes from MMAs that run at the same time
// (docs/experiments/epilogues.md, "operands of epilogues"). Hence three rules:
//   1. Where TMA loads A and B and no cluster shares a tile, a separate thread loads the operand of
//      C's shape, in pieces of 16 rows with pauses in between, over the first half of a tile's main
//      loop (`sm90_epilogue_load.cuh`), as many subtiles as there are epilogue stages. Consumers
//      load later subtiles, and all subtiles in other kernels. These loads stall on DRAM; issued by
//      the producer warp they would delay the k-tiles queued after them.
//   2. GELU and its derivative have short forms for results that are stored in 16 bits: half to two
//      thirds of the instructions (`kernel/ShortFunction.h`: where, and how far off they may be,
//      for emitter and reference alike).
//   3. Ping-pong epilogues without an operand of C's shape, reductions or a local softmax have
//      **store pacing** where TMA stores C (`StorePacing` in `sm90_epilogue.cuh`): the kernel
//      template calls the emitted function for four elements of a fragment at a time, and each
//      element waits for one of the previous four. An epilogue that loads or stores by itself is
//      called once (`PerThreadEpilogue`).
// Tried and left out: pauses between an epilogue's stores, a second text of the epilogue for the
// last tile, and a last tile that both ping-pong consumers store (2 to 4% slower).
#pragma once

#include "codegen/Names.h"
#include "codegen/Program.h"
#include "kernel/ContractionRegion.h"

#include <optional>

namespace weft::codegen {

/// What the family has decided and named.
struct EpilogueContext {
  const Kernel &kernel;
  const Configuration &configuration;
  const ContractionRegion &region;
  Names &names;
  std::vector<std::string> axes;  ///< constants with the extents of the kernel's axes
  std::vector<std::string>
      inputs;  ///< pointers, one per Kernel::inputs; those of A, B and subtileInput are not used
  std::vector<std::string> outputs;  ///< pointers, one per Kernel::outputs; the first is not used
  /// A constexpr struct with the members m, n, strideCm and batchStrideC: rows, columns and strides
  /// of the result as fragments see it, contiguous along columns.
  std::string gemm;
  bool rowsAlongN =
      false;  ///< the result is contiguous along m: rows of a fragment run along group n
  std::string fragmentType;  ///< "weft::sm90::Fragment": members batch, row, column
  std::optional<size_t> subtileInput =
      {};  ///< the input of the result's shape that the kernel template hands over
  std::optional<size_t> vectorInput =
      {};  ///< the input of one element a row or a column that it hands over
  std::optional<size_t> subtileOutput = {};  ///< the further output that it stores
  /// Of a single-consumer tile (single_consumer_fragment.cuh): how many accumulators a thread has.
  /// The function takes all of them at once, and loads its operands before they are complete; the
  /// kernel template hands over no operand. 0: eight of a fragment, as above.
  int accumulatorsOfThread = 0;
  bool isTransposed = false;  ///< of a single-consumer tile: rows run along the result's columns
};

/// A function `float (&sums)[8], [const float (&subtile)[8],] [const float (&vector)[8],]
/// [float (&second)[8],] [float (&summed)[count][8],] const Fragment &at`. It replaces the
/// accumulators `sums` by elements of the first output (or by the operands of a local softmax),
/// sets `second` to elements of subtileOutput and `summed` to the elements that
/// ContractionRegion::reductions add up, and stores the other outputs itself. For a single-consumer
/// tile: a function of `const Fragment &at` that returns a function of
/// `float (&sums)[accumulatorsOfThread]`. Behind a local softmax a second function
/// `const float (&exponentials)[8], const Fragment &at` stores those that a dropout keeps, or,
/// without `const`, replaces them by these.
struct ContractionEpilogue {
  std::vector<std::string> headers = {};
  std::vector<ConstantLine> constants = {};
  std::vector<Parameter> parameters = {};  ///< dropout: key, streams, outer rows
  Block prologue = {};                     ///< before the kernel template is called
  std::string arguments = {};              ///< the function's parameters
  Block body = {};
  std::string argumentsBehind = {};  ///< of the second function; empty: there is none
  Block behind = {};                 ///< its body
  /// The second function, which gets this name.
  Statement functionBehind(Code name) const {
    return {.kind = Statement::Kind::function,
            .type = argumentsBehind,
            .name = std::move(name),
            .body = behind};
  }
  bool accessesMemory = false;  ///< it loads operands or stores results itself
  /// Of a rotary embedding, which turns all accumulators before the function is called: the
  /// functions of its angles, and the arguments of weft::sm90::rotated before that of the epilogue.
  /// Empty: none.
  Block rotaryFunctions = {};
  std::string rotaryArguments = {};
  /// Of a kernel with unused tokens: the name of their number, a constant int of the prologue.
  /// Empty: none, or loaded per tile.
  std::string tokens = {};

  /// Whether the accumulators are stored as they are.
  bool isEmpty() const { return body.empty(); }
};

/// Throws Error(unsupported) naming the value for element types other than f32, f16 and bf16.
ContractionEpilogue contractionEpilogue(const EpilogueContext &context);

/// The input that the kernel template had best hand over, since it loads subtiles of tensors with
/// the result's layout: the first of the result's shape and the first output's element type.
std::optional<size_t> subtileInputOf(const Kernel &kernel, const ContractionRegion &region);

/// The output that the kernel template had best store; it stores one besides the first. It has the
/// first output's element type; all outputs but reductions have the first one's layout.
std::optional<size_t> subtileOutputOf(const Kernel &kernel, const ContractionRegion &region);

/// An input of the epilogue with one element of 16 bits a row, or a column, of fragments.
struct VectorInput {
  size_t input = 0;
  bool isOfRows = false;
};
/// The first contiguous one; one of columns has to be aligned to pairs.
std::optional<VectorInput> vectorInputOf(const Kernel &kernel, const Configuration &configuration,
                                         const ContractionRegion &region, bool rowsAlongN);

}  // namespace weft::codegen
