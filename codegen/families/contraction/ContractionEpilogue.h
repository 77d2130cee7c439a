// The epilogue of a fused contraction as statements: what becomes of the eight sums of a lane in a
// block of 16 x 16 of the result, or of all sums that a thread has of a single-consumer tile. For
// every family whose lanes hold sums as mma and wgmma leave them (codegen/device/fragment.cuh).
//
// A contraction family **with epilogues** takes what `kernel/ContractionRegion.h` recognises: a
// contraction and element-wise ops on its result. Its row in `Families.cpp` says so
// (`takesEpilogues`); then fusion proposes contractions with what follows them
// (`passes/fuse/Epilogues.h`), asking the family for each (`FuseOptions::epilogueRejection`), so
// that what none takes costs no search. Loop kernels of the same ops stay candidates. Layouts of
// everything that the epilogue reads and stores follow C's (`contractionTuples`), its statements
// for one fragment of sums are `codegen/families/contraction/ContractionEpilogue.h`, what it reads
// first is in flight while the tile is multiplied (on sm_90a alone: one tensor of C's shape in
// epilogue stages, one vector in registers, handed from lane to lane), there a second output leaves
// in separate panels, and such kernels are timed as themselves, not as products (`isTimedAsGemm`).
// **Accumulators of what an epilogue computes** (`ContractionRegion::reductions`: the gradient of a
// bias by columns, sums and sums of squares by rows for a norm that follows) are outputs behind the
// first, of `gemm-sm90` alone. The emitted function hands over what is summed; warps add up their
// fragments by shuffles, the warps of a consumer in the buffer that their panels left from
// (`codegen/device/sm90_epilogue_reduction.cuh`). Each leaves its partial sums in device memory of
// the kernel's module, as words that are zero until they are there, and counts an arrival that
// orders nothing, since a fence beside copies takes thousands of cycles; who comes last at a strip
// of columns or rows adds those of all in their order, so results have the same bits whoever it is,
// and leaves zeros. Two warps of the producers do so for all tiles but a consumer's last
// (`produceStripReductions`; not where three sums, many accumulators or copies of operands by
// threads take their registers; `fragment_reductions.cuh`;
// `codegen/families/gemm_sm90/Sm90EpilogueReduction.h` says how much memory, 4 MB at most, and what
// is rejected: split k, single-consumer tiles, products of a batch, more than two sums a side). No
// op of the kernel may read a sum. With a profile such kernels are chosen by their measurements
// alone, without one 5% dearer than modelled. No graph of a model has such row sums by itself:
// `--norms` (`passes/algebra/DecomposeNorms.cpp`) makes them of inference norms. `decomposed`
// leaves an application of two or three element-wise ops (`normalize`, `rms_normalize`, whose
// operands are the sums themselves, so that no kernel of rows stands between), for loop kernels or
// on load; `deferred` is for RMS norms whose readers sum along the rows: they read x times gamma, a
// second output of the epilogue before, and multiply by the factors of their rows in their own.
// Families without sums compute them in a loop kernel behind the product. The default is `fused`: a
// whole norm reads x once, too, and a profile has no rows of these kernels until it is made with
// the flag; `auto` prices all three. **A local softmax may be the last op**
// (`ContractionRegion::softmax`; the first step of a decomposed softmax, `--attention decomposed`,
// behind the product of queries and keys): exponentials leave in the place of C, and of every
// sub-vector its maximum and its sum. Sub-vectors are blocks of 16 x 16 side by side that one warp
// has (16, 32 or 64 elements; a panel of sm_90a is 64 wide, warps before it as wide as their tile
// says), so nothing is joined between warps: four lanes hold a row of a block
// (`codegen/device/sub_vectors.cuh`, one for both families). It runs along the axis in which C is
// contiguous. What is stored of sub-vectors lies sub-vector after sub-vector (`contractionTuples`),
// so that neighbouring rows are neighbours in memory. Nothing else is stored beside it, and with a
// profile such kernels, too, are chosen by their measurements alone. Rejected: ops before the
// contraction, sums, k shared by blocks, single-consumer tiles, tf32 by mma.sync. Emulated on the
// CPU in both families, with masks of -inf. The epilogue store is emulated on the CPU, whole
// emitted kernels behind sums of plain loops (`tests/emulate/host/weft/sm90*.cuh`); products and
// copies of operands are not.
//
// What epilogues cost is mostly what they take from products that go on beside them
// (docs/experiments/epilogues.md, "operands of epilogues"). Hence three rules. Where TMA brings A
// and B and no cluster shares a tile, an operand of C's shape is brought by a separate thread, in
// pieces of 16 rows with pauses between them over the first half of a tile's products
// (`sm90_epilogue_load.cuh`), as many panels as are staged; consumers ask for later ones, and for
// all elsewhere, and are held up by what comes from DRAM, as the producer would be, and the slices
// behind it. And GELU and its derivative are computed in short forms where their results leave in
// 16 bits (`kernel/ShortFunction.h`: where, and how far off they may be, for emitter and reference
// alike), in half to two thirds of the instructions. And ping-pong epilogues without an operand of
// C's shape, sums or a local softmax go **at a pace** where TMA stores C (`StorePacing` in
// `sm90_epilogue.cuh`): the kernel template calls the emitted function for four elements of a
// fragment at a time, each of which waits for one of the four before. An epilogue that loads or
// stores by itself is called once (`PerThreadEpilogue`). Tried and left out: pauses between an
// epilogue's stores, a second text of the epilogue for the last tile, and a last tile that both
// ping-pong consumers finish (2 to 4% slower).
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
      {};  ///< the input of the result's shape whose elements the skeleton hands over
  std::optional<size_t> vectorInput =
      {};  ///< the input of one element a row or a column that it hands over
  std::optional<size_t> subtileOutput = {};  ///< the output behind the first that it stores
  /// Of a single-consumer tile (single_consumer_fragment.cuh): how many accumulators
  /// a thread has of it, all of which the function takes at once, and asks for operands before they
  /// are there; 0: eight of a fragment, as above. Such a tile hands nothing over.
  int accumulatorsOfThread = 0;
  bool isTransposed = false;  ///< of a single-consumer tile: rows run along the result's columns
};

/// A function `float (&sums)[8], [const float (&subtile)[8],] [const float (&vector)[8],] [float
/// (&second)[8],] [float
/// (&summed)[count][8],] const Fragment &at` that replaces the sums by elements of the first
/// output, makes those of subtileOutput (or by what a local softmax takes) and those that
/// ContractionRegion::reductions add up, and stores the other outputs itself. Of a single-consumer
/// tile a function `const Fragment &at` that returns one of `float (&sums)[accumulatorsOfThread]`.
struct ContractionEpilogue {
  std::vector<std::string> headers = {};
  std::vector<ConstantLine> constants = {};
  std::vector<Parameter> parameters = {};  ///< dropout: key, streams, outer rows
  Block prologue = {};                     ///< before the skeleton is called
  std::string arguments = {};              ///< the function's parameters
  Block body = {};
  bool accessesMemory = false;  ///< it loads operands or stores results itself

  /// Whether the sums leave as they are.
  bool isEmpty() const { return body.empty(); }
};

/// Throws Error(unsupported) naming the value for element types other than f32, f16 and bf16.
ContractionEpilogue contractionEpilogue(const EpilogueContext &context);

/// The input that is best handed over by the skeleton, which brings panels of tensors stored as the
/// result is: the first of the result's shape and the first output's element type.
std::optional<size_t> subtileInputOf(const Kernel &kernel, const ContractionRegion &region);

/// The output that is best stored by the skeleton, which takes one besides the first: of the same
/// element type, as all outputs but sums lie as the first one does.
std::optional<size_t> subtileOutputOf(const Kernel &kernel, const ContractionRegion &region);

/// An input of the epilogue with one element of 16 bits a row, or a column, of fragments.
struct VectorInput {
  size_t input = 0;
  bool isOfRows = false;
};
/// The first that is contiguous, and if it is of columns aligned to pairs.
std::optional<VectorInput> vectorInputOf(const Kernel &kernel, const Configuration &configuration,
                                         const ContractionRegion &region, bool rowsAlongN);

}  // namespace weft::codegen
