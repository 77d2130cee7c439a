// `gemm-sm90`: a contraction on the tensor cores of sm_90a as a kernel program.
//
//    global memory ──TMA──> pipeline stages ──WGMMA──> accumulators ──epilogue──> epilogue subtiles
//                           (shared memory)            (registers)                (shared memory)
//    producer warp          one k-tile of A            two consumer                     │
//                           and B each                 warpgroups                  TMA store ──> C
//
// All kernels of the family are one kernel template (`device/sm90_gemm.cuh`; loads, stores and
// tiles are in `codegen/device`). An emitted kernel instantiates it with a GEMM, a tile and an
// epilogue.
//
// Invariant: configurations, price and emission agree on the orientation of the GEMM, on which
// operands TMA moves and on shared memory, because only
// `codegen/families/contraction/GemmProblem.h` computes these.
//
// **Loads and stores.** What TMA moves is a parameter of kind `inputMap` or `outputMap`: a
// `TensorMap` (`codegen/tma/TensorMap.h`) as plain data in plan.json, which the driver encodes with
// the tensor's address at every launch that is captured (`runtime/cuda/TensorMaps.h`). Threads copy
// tensors whose rows do not start at multiples of 16 bytes. The size of the persistent grid is a
// knob (`blocks`), so a plan's launch is data like any other. Which epilogues a tile has registers
// for is an estimate that `tests/nvrtc` checks (`epilogueRegisters`, `sm90TileRejection`).
//
// **Cluster split-K** (knob `splitK`, `sm90_split_k.cuh`), for few tiles and a long k: the CTAs of
// a cluster share the k of one tile. Each CTA runs the epilogue of some subtiles. The others send
// it their accumulators of these subtiles through distributed shared memory, and it adds them in
// the order of the CTAs, so that no workspace, no second kernel and no atomics are needed.
//
//    k-tiles of one tile    0 1 2 3 | 4 5 6 7         CTA 0 reduces and stores subtiles 0, 2
//                           CTA 0     CTA 1           CTA 1 reduces and stores subtiles 1, 3
//
// **Multicast of B** (knob `multicastB`, `loadShared` in `sm90_load.cuh`), for operands whose rows
// do not start at multiples of 128 bytes: such rows straddle lines of L2 and arrive more slowly,
// half as fast where they start at odd multiples of 16 (4088 halves, 50264). Two CTAs with
// neighbouring tiles along m load half of every k-tile of B each, for both. A stage is full when
// both halves have arrived, and free when the consumers of both CTAs have released it. Where no row
// straddles a line this gains nothing, so such tiles are offered for those layouts alone
// (`isUseful`).
//
// **Single-consumer tiles** (schedule `single-consumer`, `sm90_single_consumer.cuh`) have one
// consumer warpgroup and store from registers to memory. There are two uses:
//   - one side of C is at most 48: it becomes the n of the WGMMA, and the other side takes the
//     instruction's 64 rows (a tile may use only 32 of them), with as many stages as fit into
//     shared memory;
//   - k is short and all tiles fit into one wave.
// Their epilogue function is called before the main loop: it issues the loads of its operands, and
// returns a function that is applied to the accumulators once they are complete
// (`single_consumer_fragment.cuh`; the first CTA of a cluster applies it). It takes operands of
// every role and further outputs, whichever side of C lies along the instruction's rows, but no
// dropout, no reductions and no local softmax (`singleConsumerEpilogueRejection`). These kernels
// may use programmatic dependent launch (`Launch::startsEarly`, a field in plan.json where it is
// set): their text lets the next kernel start, and waits for the previous one (griddepcontrol)
// before it reads or writes a tensor. The executor requests it where a kernel directly follows
// another one of this kind, not for concurrent kernels. Profiles are measured without it.
// `weft-gpu-tests --filter '^single-consumer'` tests these tiles; `weft-contraction-bench --decode`
// times them after GEMMs of few rows, next to two kernels and cuBLASLt's.
//
// **GEMMs of 8-bit floats** (f8e4m3, f8e5m2, also one of each) differ in the instruction
// (`wgmma_e4m3_e4m3.cuh`): a k-tile of 128 bytes holds 128 elements instead of 64, so tiles, stages
// and shared memory are those of halves. Both operands must be contiguous along k, the only order
// that the instruction has; threads copy rows that are not aligned. Results are f16, bf16 or f32;
// threads store f32, because epilogue subtiles are of 16 bits. The scales of both tensors are
// scalars of the epilogue, read once before the tile. The tensor cores accumulate with fewer bits
// than fp32 (ir/SPEC.md, "Contraction"; `float8SumError`), as in cuBLASLt's fast accumulation, and
// the kernel does not promote partial results to fp32. cuBLASLt accepts plain GEMMs of 8-bit floats
// whose rows are multiples of 16 bytes (`float8Rejection` in
// `codegen/families/library/LibraryGemm.cpp`); `GemmTensors` serves its scale pointers, plans do
// not. `GemmTypes` names the element types of a GEMM wherever they are written: "f16",
// "f8e4m3,f8e5m2->f16". Every other family takes 8-bit tensors as it takes others: loop kernels
// convert them (`float8.cuh`; by instructions from sm_89 on, by bits before).
//
// **GEMMs of f32 in tf32** are requested by the graph (`precision = tf32` of a contraction;
// `--tf32` sets it, `Compilation::markTf32`); selection never introduces them. `DType::tf32` is how
// such a GEMM reads its f32 operands (`gemmTypes`, which all families, prices and profile keys
// use: "gemm tf32,tf32->f32 .."); no tensor has this type (`storedAs`).
//   - sm_90a: this kernel template with k-tiles of 32 elements and f32 results that threads store.
//     Both operands must be contiguous along k. TMA converts while it loads (maps of tf32); threads
//     that copy round to nearest. The kernel template finds `sm90_tf32.cuh` through the type of its
//     arguments, so that the text of other kernels does not depend on this header.
//   - sm_80 on: `sm80_tf32.cuh` takes every order (the same pipeline stages, rounding between
//     shared memory and registers, results stored from registers). On sm_90a it is offered for what
//     this family does not take. It, too, is emulated on the CPU.
// cuBLASLt gets the compute type of fast TF32 for these GEMMs and for no others; the plan's library
// GEMM says "tf32,tf32->f32".
//
// **Stream-K** (knob `streamK`, `sm90_stream_k.cuh`), for few tiles that fill no whole waves: the
// k-tiles of all tiles are numbered one after another, and every CTA takes the same number of them.
//
//    tile          0                1                2
//    k-tile        0 1 2 3 4 5 6 7 | 8 . . . . . .15 | 16 . . . . . .23
//    CTA           0 0 0 0 0 0 1 1 | 1 1 1 1 2 2 2 2 |  2  2 3 3 3 3 3 3
//
// A tile with k-tiles of several CTAs is shared: each CTA writes its accumulators to device memory
// of the module (`streamKBytes`, 64 MB at most) and counts its arrival; the last-arriving consumer
// adds the accumulators of all in the order of the CTAs. So no CTA waits for another, results have
// the same bits in every launch, and the counters are zero again at the end. Stream-K takes
// cooperative tiles of plain GEMMs (with a factor at most) whose operands TMA loads, with at most
// four tiles for each CTA. No configuration space contains it, so the model alone never chooses it:
// `weft profile` measures the two best tiles of each layout (`streamKTiles`), and selection uses
// these measurements. The reduction is emulated in both orders of arrival; the GPU test is
// `weft-gpu-tests --filter '^streamK'`.
//
// **Sums over packed tokens** (`summedTokens`), whose number is known at run time, end with the
// k-tile of the last one (`SummedTokens` in `sm90_tiles.cuh`): producers and consumers of whole
// tiles count their k-tiles by it, the CTAs of a cluster share those that have tokens, and runs of
// stream-K are of those, too. The space offers stream-K there, for any number of tiles: of few
// tokens whole tiles are short, so that the last, thin wave weighs more. Single-consumer tiles and
// prologues add the zeros behind the last token.
#pragma once

#include "codegen/Program.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"

namespace weft::codegen {

Program lowerSm90Gemm(const Kernel &kernel, const Configuration &configuration,
                      const Sm90GemmKnobs &knobs);

}  // namespace weft::codegen
