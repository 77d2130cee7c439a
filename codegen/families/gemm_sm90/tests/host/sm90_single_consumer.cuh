// Single-consumer tiles of sm_90a on the emulator: their epilogue store
// (single_consumer_fragment.cuh), of accumulators that plain loops compute. Of a cluster the first
// block multiplies all of k, and the others have nothing to send.
#pragma once

#include "weft/sm90_single_consumer_tile.cuh"
#include "weft/sm90_tma.cuh"

namespace weft::sm90 {

template <typename T, GemmProblem gemm, SingleConsumerTile tile, typename Epilogue>
void singleConsumerGemm(const SingleConsumerArgs<T, Epilogue> &args) {
  using P = SingleConsumerConfig<gemm, tile>;
  const SingleConsumerPosition at = singleConsumerPosition<gemm, tile>();
  if (threadIdx.x >= warpgroup) return;
  const SingleConsumerFragment<P::accumulators> own = singleConsumerFragment<gemm, tile>(at);
  const auto epilogueOp = args.epilogue(own);
  if (threadIdx.x >= P::workingThreads || at.rank > 0) return;
  const T *const rows =
      reinterpret_cast<const T *>(emulatedMap(P::isAlongM ? args.a : args.b).start) +
      at.batch * P::rowOperand.batch;
  const T *const columns =
      reinterpret_cast<const T *>(emulatedMap(P::isAlongM ? args.b : args.a).start) +
      at.batch * P::columnOperand.batch;
  float accumulators[P::accumulators];
  for (int e = 0; e < P::accumulators; ++e) {
    const int row = own.row + rowInFragment(e), column = own.column + columnInFragment(e);
    accumulators[e] = 0;
    if (row >= (P::isAlongM ? gemm.m : gemm.n) || column >= (P::isAlongM ? gemm.n : gemm.m))
      continue;
    for (int k = 0; k < gemm.k; ++k)
      accumulators[e] += widen(rows[row * P::rowOperand.outer + k * P::rowOperand.k]) *
                         widen(columns[column * P::columnOperand.outer + k * P::columnOperand.k]);
  }
  epilogueOp(accumulators);
  storeSingleConsumer<gemm, tile>(accumulators, args.c, own);
}

}  // namespace weft::sm90
