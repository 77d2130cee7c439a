// Narrow tiles of sm_90a on the emulator: their way out of registers (narrow_fragment.cuh), of sums
// that plain loops compute. Included by hopper_narrow.cuh when WEFT_EMULATE is defined. Of a
// cluster the first block multiplies all of k, and the others have nothing to send.
#pragma once

namespace weft::hopper {

template <typename T, Product product, NarrowTile tile, typename Epilogue>
void narrowContraction(const TensorMap *a, const TensorMap *b, T *c, const Epilogue &epilogue) {
  using P = NarrowPlan<product, tile>;
  const NarrowPlace at = narrowPlace<product, tile>();
  if (threadIdx.x >= warpgroup) return;
  const NarrowFragment<P::sums> own = narrowFragment<product, tile>(at);
  const auto finish = narrowEpilogue(epilogue)(own);
  if (threadIdx.x >= P::workingThreads || at.rank > 0) return;
  const T *const rows = reinterpret_cast<const T *>(emulatedMap(P::isAlongM ? a : b).start) +
                        at.batch * P::rowOperand.batch;
  const T *const columns = reinterpret_cast<const T *>(emulatedMap(P::isAlongM ? b : a).start) +
                           at.batch * P::columnOperand.batch;
  float sums[P::sums];
  for (int e = 0; e < P::sums; ++e) {
    const int row = own.row + rowInFragment(e), column = own.column + columnInFragment(e);
    sums[e] = 0;
    if (row >= (P::isAlongM ? product.m : product.n) ||
        column >= (P::isAlongM ? product.n : product.m))
      continue;
    for (int k = 0; k < product.k; ++k)
      sums[e] += widen(rows[row * P::rowOperand.outer + k * P::rowOperand.k]) *
                 widen(columns[column * P::columnOperand.outer + k * P::columnOperand.k]);
  }
  finish(sums);
  storeNarrow<product, tile>(sums, c, own);
}

}  // namespace weft::hopper
