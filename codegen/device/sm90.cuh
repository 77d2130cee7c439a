// The PTX of sm_90a that GEMM kernels use, each instruction behind one named function: barriers in shared memory that
// count arrivals and bytes (mbarrier), tiles that TMA moves (TMA), WGMMA of 128 threads
// (wgmma), registers that roles hand to each other (setmaxnreg). Shared memory is addressed by 32-bit shared addresses.
#pragma once

#include "weft/tensor_map.cuh"
#include "weft/types.cuh"

namespace weft::sm90 {

using SharedAddress = unsigned;

__device__ __forceinline__ SharedAddress sharedAddress(const void *pointer) {
  return static_cast<SharedAddress>(__cvta_generic_to_shared(pointer));
}

// ---- Barriers: 8 bytes in shared memory. A phase ends when `arrivals` have arrived and all expected bytes have landed. ----

__device__ __forceinline__ void initializeBarrier(SharedAddress barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
/// Makes initialized barriers visible to TMA; the block still has to synchronize.
__device__ __forceinline__ void publishBarriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ __forceinline__ void arrive(SharedAddress barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/// Arrives and tells how many bytes the copies of this phase bring, out-of-bounds parts of their boxes included.
__device__ __forceinline__ void arriveExpecting(SharedAddress barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
/// Waits until the phase of this parity has ended; of a fresh barrier, the phase before the first (parity 1) has.
__device__ __forceinline__ void wait(SharedAddress barrier, int parity) {
  int done;
  do {
    asm volatile("{\n\t.reg .pred done;\n\t"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n\t"
                 "selp.b32 %0, 1, 0, done;\n\t}"
                 : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
  } while (!done);
}

/// About so many nanoseconds, up to twice as many; 10^6 at most.
__device__ __forceinline__ void pauseFor(unsigned nanoseconds) { __nanosleep(nanoseconds); }

// ---- Clusters: blocks that run at the same time and write each other's shared memory ----

/// This thread has come so far; blocks may then rely on each other's barriers once all threads have waited.
__device__ __forceinline__ void arriveAtCluster() { asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory"); }
/// The same, and what this thread has done to the memory of other blocks has arrived there.
__device__ __forceinline__ void leaveCluster() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
__device__ __forceinline__ void waitForCluster() { asm volatile("barrier.cluster.wait;" ::: "memory"); }
/// What block `rank` of the cluster has where this one has `own`: for sendAccumulators and arriveInBlock alone.
__device__ __forceinline__ SharedAddress addressInBlock(SharedAddress own, int rank) {
  SharedAddress address;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(own), "r"(rank));
  return address;
}
/// Arrives at a barrier of any block of the cluster. Orders nothing: what released this phase's memory was a wait for products, and a
/// release would be a fence of the device in every kTile.
__device__ __forceinline__ void arriveInBlock(SharedAddress barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/// Writes 16 bytes into another block's shared memory, and tells the barrier there that they have landed.
__device__ __forceinline__ void sendAccumulators(SharedAddress to, SharedAddress barrier, float x, float y, float z, float w) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%2, %3, %4, %5}, [%1];"
               ::"r"(to), "r"(barrier), "f"(x), "f"(y), "f"(z), "f"(w) : "memory");
}
__device__ __forceinline__ void loadAccumulators(float (&accumulators)[4], SharedAddress from) {
  asm volatile("ld.shared::cta.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(accumulators[0]), "=f"(accumulators[1]), "=f"(accumulators[2]), "=f"(accumulators[3]) : "r"(from) : "memory");
}

/// Two floats into the block's own shared memory; 8-byte aligned.
__device__ __forceinline__ void storePair(SharedAddress to, float first, float second) {
  asm volatile("st.shared::cta.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(first), "f"(second) : "memory");
}

// ---- Named barriers of some warps of the block ----

/// A warp comes as one: ptxas may leave the thread that alone did something behind, and would let it arrive a second time.
__device__ __forceinline__ void synchronize(int name, int threads) {
  __syncwarp();
  asm volatile("bar.sync %0, %1;" ::"r"(name), "r"(threads) : "memory");
}
__device__ __forceinline__ void arriveAt(int name, int threads) {
  __syncwarp();
  asm volatile("bar.arrive %0, %1;" ::"r"(name), "r"(threads) : "memory");
}

// ---- Tiles moved by TMA: coordinates in elements, innermost first; parts out of bounds load as zero ----

__device__ __forceinline__ void prefetchMap(const TensorMap *map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
__device__ __forceinline__ void loadTile(SharedAddress to, const TensorMap *map, SharedAddress barrier, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
               ::"r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y) : "memory");
}
__device__ __forceinline__ void loadTile(SharedAddress to, const TensorMap *map, SharedAddress barrier, int x, int y,
                                         int z) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];"
               ::"r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z) : "memory");
}
/// The same into the same place of every block of the cluster whose bit is set in `blocks`, and to the barrier that each has there.
__device__ __forceinline__ void loadTileMulticast(SharedAddress to, const TensorMap *map, SharedAddress barrier, unsigned short blocks, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%4, %5}], [%2], %3;"
               ::"r"(to), "l"(map), "r"(barrier), "h"(blocks), "r"(x), "r"(y) : "memory");
}
__device__ __forceinline__ void loadTileMulticast(SharedAddress to, const TensorMap *map, SharedAddress barrier, unsigned short blocks, int x, int y, int z) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%4, %5, %6}], [%2], %3;"
               ::"r"(to), "l"(map), "r"(barrier), "h"(blocks), "r"(x), "r"(y), "r"(z) : "memory");
}
/// Stores drop rows out of bounds exactly, the innermost dimension at 16 bytes only.
__device__ __forceinline__ void storeTile(const TensorMap *map, SharedAddress from, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];"
               ::"l"(map), "r"(from), "r"(x), "r"(y) : "memory");
}
__device__ __forceinline__ void storeTile(const TensorMap *map, SharedAddress from, int x, int y, int z) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];"
               ::"l"(map), "r"(from), "r"(x), "r"(y), "r"(z) : "memory");
}
__device__ __forceinline__ void commitStores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/// Waits until all but the newest `pending` groups of this thread's stores have read their shared memory.
template <int pending> __device__ __forceinline__ void waitForStoresToRead() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}
template <int pending> __device__ __forceinline__ void waitForStores() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(pending) : "memory");
}
/// Orders this thread's accesses to shared memory before later ones of TMA and of wgmma.
__device__ __forceinline__ void fenceForAsync() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// ---- Registers: a multiple of 8 for every thread of the warpgroup ----

template <int count> __device__ __forceinline__ void raiseRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}
template <int count> __device__ __forceinline__ void lowerRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}

// ---- WGMMA (the products themselves: wgmma.cuh) ----

/// Before the first GEMM that follows any other access to its accumulators.
__device__ __forceinline__ void fenceWgmma() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commitWgmma() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Waits until all but the newest `pending` groups of products have ended.
template <int pending> __device__ __forceinline__ void waitForWgmma() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

/// Describes an operand in subtiles of 128-byte rows swizzled over 1024 bytes, as boxes of 128 bytes land. Contiguous along k:
/// rows are m or n, one subtile holds 64 of k. Contiguous along m or n: rows are k, subtiles of 64 are `subtileBytes` apart.
__device__ __forceinline__ unsigned long long describeOperand(SharedAddress start, int subtileBytes) {
  return static_cast<unsigned long long>((start & 0x3FFFF) >> 4) | static_cast<unsigned long long>(subtileBytes >> 4) << 16 |
         static_cast<unsigned long long>(1024 >> 4) << 32 | 1ull << 62;
}

/// Stores four 8 x 8 blocks of 16-bit elements, one a word; lane l names row l % 8 of block l / 8: 16 bytes each.
__device__ __forceinline__ void storeMatrices(SharedAddress row, const unsigned (&words)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
               ::"r"(row), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3]) : "memory");
}
/// The converse of storeMatrices.
__device__ __forceinline__ void loadMatrices(unsigned (&words)[4], SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3]) : "r"(row) : "memory");
}

/// Two floats rounded to nearest even, the first in the lower half.
__device__ __forceinline__ unsigned packPair(half *, float low, float high) {
  unsigned word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
__device__ __forceinline__ unsigned packPair(bfloat16 *, float low, float high) {
  unsigned word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

/// 32 and 16 bits, loaded where the program says so and not where they are used.
__device__ __forceinline__ unsigned loadWord(const void *from) {
  unsigned words[1];
  ptx::loadInOrder(words, from);
  return words[0];
}
__device__ __forceinline__ unsigned loadBits(const void *from) {
  unsigned short bits;
  asm volatile("ld.relaxed.cta.global.u16 %0, [%1];" : "=h"(bits) : "l"(from) : "memory");
  return bits;
}

/// The value of a lane as one that the compiler knows nothing of: what depends on it is computed here and not ahead. A shuffle,
/// since ptxas sees through an assignment. All lanes of the warp take part.
__device__ __forceinline__ int hide(int value, int lane) { return __shfl_sync(~0u, value, lane); }

}  // namespace weft::sm90
