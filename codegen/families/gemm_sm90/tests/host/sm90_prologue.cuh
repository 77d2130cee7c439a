// Operands that are transformed on load, on sm_90a, on the emulator: k-tiles land as TMA brings
// them, are transformed by the functions of sm90_prologue_transform.cuh, thread after thread, and
// are multiplied by plain loops; blocks are those of sm90_gemm.cuh. What is beyond the end of k is
// multiplied, too, by zeros.
#pragma once

#include "weft/sm90_gemm.cuh"
#include "weft/sm90_prologue_entry.cuh"
#include "weft/sm90_prologue_transform.cuh"

#include <vector>

namespace weft::sm90 {

/// The operand of one tile: `side` rows, all k-tiles.
template <typename T, typename Raw, GemmProblem gemm, Tile tile, bool isOfA, typename Function>
std::vector<float> transformedOperand(const Raw *transformed, const Function &transform,
                                      const TileStart &at) {
  using P = TileConfig<gemm, tile>;
  using Prologue = PrologueConfig<gemm, tile, isOfA>;
  constexpr Operand operand = Prologue::operand;
  constexpr int kExtent = int(gemm.k), depth = P::tileK * P::kTiles;
  const int outer0 = isOfA ? at.m : at.n;
  const Raw *from = transformed + at.batch * operand.batch;
  std::vector<float> result(size_t(Prologue::side) * depth);
  std::vector<Packed<unsigned, 4>> stage(Prologue::side * rowBytes / 16);
  auto *kTile = reinterpret_cast<unsigned char *>(stage.data());
  for (int k0 = 0; k0 < depth; k0 += P::tileK) {
    std::memset(kTile, 0xFF, Prologue::transformedBytes);  // not a number
    const auto place = [&](int row, int column) {
      return operandPositionInKTile<operand>(row, column, at.batch, outer0, k0);
    };
    if constexpr (Prologue::isInPlace) {
      for (int row = 0; row < Prologue::side; ++row)
        for (int column = 0; column < 8; ++column)
          for (int e = 0; e < operandVector; ++e) {
            const OperandPlace first = place(row, column);
            const int outer = first.outer + (operand.isAlongK() ? 0 : e),
                      k = first.k + (operand.isAlongK() ? e : 0);
            Raw element{};
            if (outer < Prologue::outerExtent && k < kExtent)
              element = from[outer * operand.outer + k * operand.k];
            std::memcpy(
                reinterpret_cast<unsigned char *>(chunkOf(kTile, row, column)) + e * sizeof(Raw),
                &element, sizeof(Raw));
          }
      for (int thread = 0; thread < Prologue::transformThreads; ++thread)
        transformKTile<operand, Prologue::side, kExtent, Prologue::transformThreads, T, Raw>(
            kTile, transform, at.batch, outer0, k0, thread);
    } else {
      for (int thread = 0; thread < Prologue::transformThreads; ++thread)
        copyAndTransformKTile<operand, Prologue::side, Prologue::outerExtent, kExtent, T>(
            kTile, from, transform, at.batch, outer0, k0, thread);
    }
    for (int row = 0; row < Prologue::side; ++row)
      for (int column = 0; column < 8; ++column) {
        float x[operandVector];
        unpackOperand<T>(x, chunkOf(kTile, row, column)->at);
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

template <typename T, typename Raw, GemmProblem gemm, Tile tile, bool isOfA, typename Function,
          typename Out>
void prologueKernel(Tensor<const Raw> transformed, Tensor<const T> other, Tensor<T> c,
                    const Function &transform, const Out &epilogueOp) {
  using P = TileConfig<gemm, tile>;
  using Prologue = PrologueConfig<gemm, tile, isOfA>;
  constexpr int depth = P::tileK * P::kTiles;
  const int consumer = threadIdx.x / warpgroup, lane = threadIdx.x % 32,
            warp = threadIdx.x % warpgroup / 32;
  const Shared<gemm, tile> shared{0};
  EpilogueStages<gemm, tile, Out::tensors> epilogueStages{shared.epilogueStages(consumer),
                                                          shared.subtileFull(consumer), consumer};
  static std::vector<float> operand;  // of the tile that the running block is at
  static int transformedTile = -1;
  for (int index = blockIdx.x; index < P::tiles; index += gridDim.x) {
    const Subtiles<gemm, tile> subtiles{tileStart<gemm, tile>(index), consumer * P::rowBlocks * 64};
    if constexpr (Out::readsSubtile)
      if (threadIdx.x % warpgroup == 0)
        loadFirstSubtiles(epilogueStages, subtiles, epilogueOp.subtile.tensor.map);
    VectorOfTile<gemm, tile, typename Out::VectorInput> vectorOfTile;
    vectorOfTile.load(epilogueOp.vector, subtiles);
    if (transformedTile != index)
      operand = transformedOperand<T, Raw, gemm, tile, isOfA>(startOf(transformed), transform,
                                                              subtiles.at);
    transformedTile = index;
    Accumulators<gemm, tile> own;
    for (int at = 0; at < P::rowBlocks * (tile.n / 2); ++at) {
      const int block = at / (tile.n / 2), place = at % (tile.n / 2), e = place % 8;
      const int row = subtiles.firstRow + block * 64 + warp * 16 + lane / 4 + rowInFragment(e),
                column = place / 8 * 16 + lane % 4 * 2 + columnInFragment(e);
      const int outer = isOfA ? row : column,
                otherOuter = isOfA ? subtiles.at.n + column : subtiles.at.m + row;
      const T *factors = startOf(other) + subtiles.at.batch * Prologue::other.batch +
                         otherOuter * Prologue::other.outer;
      float sum = 0;
      for (int k = 0; k < depth && otherOuter < Prologue::otherExtent; ++k)
        sum += operand[size_t(outer) * depth + k] *
               (k < gemm.k ? widen(factors[k * Prologue::other.k]) : 0.0f);
      own[block][place] = sum;
    }
    TileReductions<gemm, tile, NoEpilogueReductions> totals;
    storeEpilogue(own, c, subtiles, epilogueStages, vectorOfTile, totals, epilogueOp);
    ptx::barrier();  // before another tile takes the operand's place
  }
  transformedTile = -1;
}

}  // namespace weft::sm90
