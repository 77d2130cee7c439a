// A contraction on the tensor cores of sm_90a as a kernel program.
//
//    TMA ──> ring of k-tiles ──> WGMMA ──> accumulators ──> epilogue ──> TMA store
//   producer warp   (stages)   consumer warpgroups  registers    subtiles
//
// **Tensor-core contractions** (`gemm-sm90`, sm_90a) are one kernel template
// (`device/sm90_gemm.cuh`; load, store, tiles in `codegen/device`) that an emitted kernel
// instantiates with its product, a tile and an epilogue.
// `codegen/families/contraction/GemmProblem.h` says once what configurations, price and emission
// agree on: the orientation, which operands TMA moves, shared memory. What it moves is a parameter
// of kind `inputMap` or `outputMap`: a `TensorMap` (`kernel/TensorMap.h`) as plain data in
// plan.json, encoded by the driver with the tensor's address at every launch that is captured
// (`runtime/cuda/TensorMaps.h`). Rows that do not start at multiples of 16 bytes are copied by
// threads instead. The persistent grid is a knob (`blocks`), so a plan's launch is data like any
// other. Where tiles are few and k is long the blocks of a cluster share one tile's k (`splitK`;
// `sm90_split_k.cuh`): each sends its sums of a panel to the block that finishes it, through shared
// memory, and sums are added in the order of the blocks, so that no workspace, no second kernel and
// no atomics are needed. And where rows of an operand start at odd multiples of 16 bytes (4088
// halves, 50264: they straddle sectors and arrive half as fast) two blocks whose tiles are one
// below the other load half of every slice of B each, for both (`multicastB`; `loadShared` in
// `sm90_load.cuh`): a stage is full when both halves are there, and free when the consumers of both
// blocks have left it. With rows that straddle nothing this gains nothing, so such tiles are
// offered for those layouts alone (`isUseful`). Which epilogues a tile has registers for is an
// estimate that `tests/nvrtc` holds to (`epilogueRegisters`, `sm90TileRejection`).
//
// **Single-consumer tiles** (schedule `single-consumer`, `sm90_single_consumer.cuh`) are of the
// same family: where one side is at most 48, the other operand streams past it along the 64 rows of
// the instruction (of which 32 may do) with as many stages as shared memory holds; and where all
// tiles fit into one wave and k is short. Their sums go from registers to memory, and so does what
// **follows the product**: an epilogue is called before the tile is multiplied, asks for its
// operands as they are stored, and returns what is done to the sums when they are there
// (`single_consumer_fragment.cuh`; of a cluster the first block does it). It takes operands of
// every role and further outputs, whichever side of C lies along the instruction's rows, and no
// dropout, no sums and no local softmax (`singleConsumerEpilogueRejection`). They may **start
// early** (`Launch::startsEarly`, a member of plan.json where it is so): their text lets the next
// kernel start and waits for the one before (griddepcontrol) before it reads or writes a tensor;
// the executor asks for it where a kernel stands right behind another one of this kind, not among
// branches. Rows are measured without. `weft-gpu-tests --filter '^narrow'`; `weft-contraction-bench
// --decode` times them behind products of few rows, beside two kernels and cuBLASLt's.
//
// **Products of 8-bit floats** (f8e4m3, f8e5m2, also one of each) are the same kernel template with
// other instructions (`wgmma_e4m3_e4m3.cuh`): a slice of 128 bytes of k holds 128 elements instead
// of 64, so tiles, stages and shared memory are those of halves. Both operands must lie along k
// (there are no products of any other order); rows that start anywhere are copied by threads.
// Results are f16, bf16, or f32, which threads store, as the panels are of 16 bits. The scales of
// both tensors are scalars of the epilogue, read once before the tile. Accumulators stay in the
// tensor cores, which keep fewer bits than fp32 (ir/SPEC.md, "Contraction"; `float8SumError`), as
// cuBLASLt's do with fast accumulation; nothing promotes them to fp32 on the way. cuBLASLt takes
// plain products of them whose rows are whole 16 bytes (`float8Rejection` in
// `codegen/families/library/LibraryGemm.cpp`); its scale pointers are served by `GemmTensors`, not
// by plans. `GemmTypes` names the element types of a product wherever they are written: "f16",
// "f8e4m3,f8e5m2->f16". Every other family takes 8-bit tensors as it takes others: loop kernels
// convert them (`float8.cuh`; by instructions from sm_89 on, by bits before).
//
// **Products of f32 in tf32** are asked for by the graph (`precision = tf32` of a contraction;
// `--tf32` sets it, `Compilation::markTf32`), not found by selection. `DType::tf32` is how such a
// product reads its f32 operands (`gemmTypes`, which all families, prices and profile keys go by:
// "gemm tf32,tf32->f32 .."); no tensor has it (`storedAs`). On sm_90a they are the same kernel
// template with a slice of 32 elements of k and f32 results that threads store; like 8-bit floats
// they lie along k. Their header (`sm90_tf32.cuh`) is found by the kernel template's templates
// through the type of their arguments, so that the text of other kernels does not depend on it. TMA
// converts on the way to shared memory (maps of tf32); threads that copy round to nearest. From
// sm_80 on, `sm80_tf32.cuh` takes every order (the same ring of stages, rounding on the way to
// registers, sums stored from there); on sm_90a it is offered for what the other family does not
// take. It is emulated, too. cuBLASLt gets the compute type of fast TF32 for these products and for
// no others; the plan's library GEMM says "tf32,tf32->f32".
//
// **Stream-K runs of k-tiles** (knob `streams`, `sm90_stream_k.cuh`): where tiles are few and no
// whole waves, the k-tiles of all tiles stand one after another, and every block takes an equal
// run. A tile in which runs end is shared: each block leaves its sums in device memory of the
// module (`streamKBytes`, 64 MB at most), and the consumer that arrives last adds those of all in
// the order of the blocks, so that nobody waits, results have the same bits in every launch, and
// counters are zero again. Cooperative tiles of plain products (and a factor) by TMA, at most four
// tiles for each block. No space has them, so that nothing chooses them by the model: `weft
// profile` measures the two best of each layout (`streamKTiles`), and selection takes them by their
// measurements. The way the sums take is emulated in both orders of blocks; `weft-gpu-tests
// --filter '^streams'`.
#pragma once

#include "codegen/Program.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"

namespace weft::codegen {

Program lowerSm90Gemm(const Kernel &kernel, const Configuration &configuration,
                      const Sm90GemmKnobs &knobs);

}  // namespace weft::codegen
