// Operands that are made on load, on sm_90a, on the emulator: slices land as the copy engine brings
// them, are made by the functions of hopper_prologue.cuh, thread after thread, and are multiplied
// by plain loops. Included by that header when WEFT_EMULATE is defined; blocks are those of
// emulate_hopper_contraction.h. What is beyond the end of k is multiplied, too, by zeros.
#pragma once

#include <vector>

namespace weft::hopper {

/// The operand of one tile: `side` rows, all slices of k.
template <typename T, typename Raw, Product product, Tile tile, bool isOfA, typename Function>
std::vector<float> madeOperand(const Raw *made, const Function &make, const TileStart &at) {
  using P = Plan<product, tile>;
  using Making = MakingPlan<product, tile, isOfA>;
  constexpr Operand operand = Making::operand;
  constexpr int kExtent = int(product.k), depth = P::tileK * P::slices;
  const int outer0 = isOfA ? at.m : at.n;
  const Raw *from = made + at.batch * operand.batch;
  std::vector<float> result(size_t(Making::side) * depth);
  std::vector<Packed<unsigned, 4>> stage(Making::side * rowBytes / 16);
  auto *slice = reinterpret_cast<unsigned char *>(stage.data());
  for (int k0 = 0; k0 < depth; k0 += P::tileK) {
    std::memset(slice, 0xFF, Making::madeBytes);  // not a number
    const auto place = [&](int row, int column) {
      return placeInSlice<operand>(row, column, at.batch, outer0, k0);
    };
    if constexpr (Making::isInPlace) {
      for (int row = 0; row < Making::side; ++row)
        for (int column = 0; column < 8; ++column)
          for (int e = 0; e < operandVector; ++e) {
            const OperandPlace first = place(row, column);
            const int outer = first.outer + (operand.isAlongK() ? 0 : e),
                      k = first.k + (operand.isAlongK() ? e : 0);
            Raw element{};
            if (outer < Making::outerExtent && k < kExtent)
              element = from[outer * operand.outer + k * operand.k];
            std::memcpy(
                reinterpret_cast<unsigned char *>(chunkOf(slice, row, column)) + e * sizeof(Raw),
                &element, sizeof(Raw));
          }
      for (int thread = 0; thread < Making::makingThreads; ++thread)
        makeSlice<operand, Making::side, kExtent, Making::makingThreads, T, Raw>(
            slice, make, at.batch, outer0, k0, thread);
    } else {
      for (int thread = 0; thread < Making::makingThreads; ++thread)
        copyAndMakeSlice<operand, Making::side, Making::outerExtent, kExtent, T>(
            slice, from, make, at.batch, outer0, k0, thread);
    }
    for (int row = 0; row < Making::side; ++row)
      for (int column = 0; column < 8; ++column) {
        float x[operandVector];
        unpackOperand<T>(x, chunkOf(slice, row, column)->at);
        for (int e = 0; e < operandVector; ++e) {
          const OperandPlace first = place(row, column);
          const int outer = first.outer - outer0 + (operand.isAlongK() ? 0 : e),
                    k = first.k + (operand.isAlongK() ? e : 0);
          result[size_t(outer) * depth + k] = x[e];
        }
      }
  }
  return result;
}

template <typename T, typename Raw, Product product, Tile tile, bool isOfA, typename Function,
          typename PanelInput, typename VectorInput, typename PanelOutput, typename Epilogue>
void contractionOfMade(Tensor<const Raw> made, Tensor<const T> other, Tensor<T> c,
                       const Function &make, const PanelInput &panel, const VectorInput &vector,
                       const PanelOutput &output, const Epilogue &epilogue) {
  using P = Plan<product, tile>;
  using Making = MakingPlan<product, tile, isOfA>;
  using Out = Finish<PanelInput, VectorInput, PanelOutput, NoSums, Epilogue>;
  constexpr int depth = P::tileK * P::slices;
  const Out finish{panel, vector, output, NoSums{}, epilogue};
  const int consumer = threadIdx.x / warpgroup, lane = threadIdx.x % 32,
            warp = threadIdx.x % warpgroup / 32;
  const Shared<product, tile> shared{0};
  Staging<product, tile, Out::tensors> staging{shared.staging(consumer),
                                               shared.panelLoaded(consumer), consumer};
  static std::vector<float> operand;  // of the tile that the running block is at
  static int madeTile = -1;
  for (int index = blockIdx.x; index < P::tiles; index += gridDim.x) {
    const Panels<product, tile> panels{tileStart<product, tile>(index),
                                       consumer * P::rowBlocks * 64};
    if constexpr (Out::readsPanel)
      if (threadIdx.x % warpgroup == 0) requestPanels(staging, panels, finish.panel.tensor.map);
    VectorOfTile<product, tile, VectorInput> vectorOfTile;
    vectorOfTile.load(vector, panels);
    if (madeTile != index)
      operand = madeOperand<T, Raw, product, tile, isOfA>(startOf(made), make, panels.at);
    madeTile = index;
    Sums<product, tile> own;
    for (int at = 0; at < P::rowBlocks * (tile.n / 2); ++at) {
      const int block = at / (tile.n / 2), place = at % (tile.n / 2), e = place % 8;
      const int row = panels.firstRow + block * 64 + warp * 16 + lane / 4 + rowInFragment(e),
                column = place / 8 * 16 + lane % 4 * 2 + columnInFragment(e);
      const int outer = isOfA ? row : column,
                otherOuter = isOfA ? panels.at.n + column : panels.at.m + row;
      const T *factors =
          startOf(other) + panels.at.batch * Making::other.batch + otherOuter * Making::other.outer;
      float sum = 0;
      for (int k = 0; k < depth && otherOuter < Making::otherExtent; ++k)
        sum += operand[size_t(outer) * depth + k] *
               (k < product.k ? widen(factors[k * Making::other.k]) : 0.0f);
      own[block][place] = sum;
    }
    TotalsOfTile<product, tile, NoSums> totals;
    storeSums(own, c, panels, staging, vectorOfTile, totals, finish);
    ptx::barrier();  // before another tile takes the operand's place
  }
  madeTile = -1;
}

}  // namespace weft::hopper
