// Plain runGemm: one batched strided GEMM C[m,n] = scale * sum over k of A[m,k] B[k,n] by FMA in fp32.
// Correct for every extent and stride; the placeholder for shapes that have no tensor-core kernel.
//
// A block computes a tileM x tileN tile. Slices of tileK columns of A and rows of B go through shared memory as fp32; a
// thread holds threadM x threadN elements, in groups of neighbours that one shared access reads. Extents and strides are
// compile-time: bounds that tiles divide are not checked, and offsets inside one matrix are 32-bit where they fit.
#pragma once

#include "weft/types.cuh"

namespace weft {

/// Extents and element strides.
struct FmaGemmShape {
  Offset batch, m, n, k;
  Offset batchStrideA, strideAm, strideAk;
  Offset batchStrideB, strideBk, strideBn;
  Offset batchStrideC, strideCm, strideCn;
};

/// Elements of the tile of one block and of one thread.
template <int TileM, int TileN, int TileK, int ThreadM, int ThreadN> struct FmaGemmTile {
  static constexpr int tileM = TileM, tileN = TileN, tileK = TileK, threadM = ThreadM, threadN = ThreadN;
  static constexpr int threadsM = TileM / ThreadM, threadsN = TileN / ThreadN, threads = threadsM * threadsN;
};

/// Neighbouring elements that a thread reads from shared memory at once.
template <int N> struct alignas(4 * N) FloatGroup {
  float at[N];
};
__device__ __forceinline__ constexpr int floatGroupOf(int elements) { return elements % 4 == 0 ? 4 : elements % 2 == 0 ? 2 : 1; }

/// The k-tiles of A and B in shared memory; the padding keeps groups aligned and column writes off one bank.
template <typename Tile> struct alignas(16) GemmKTiles {
  float a[Tile::tileK][Tile::tileM + 4];
  float b[Tile::tileK][Tile::tileN + 4];
};

/// 32 bits where every offset of a rows x columns matrix fits, tiles beyond its edges included.
template <bool wide> struct MatrixOffset { using type = int; };
template <> struct MatrixOffset<true> { using type = Offset; };
__device__ __forceinline__ constexpr bool needsWideOffset(Offset rows, Offset rowStride, Offset columns, Offset columnStride) {
  return (rows + 128) * rowStride + (columns + 128) * columnStride > 0x7fffffff;
}

/// One matrix, seen as rows (m or n) by k.
struct KTileSource {
  Offset rows, rowStride, k, strideK;
};

/// The part of a side x tileK k-tile that one thread copies to shared memory, zero outside the matrix. Neighbouring threads
/// follow the axis that is contiguous in memory.
template <KTileSource source, int side, int tileK, int threads, typename T> class KTileLoader {
  using Index = typename MatrixOffset<needsWideOffset(source.rows, source.rowStride, source.k, source.strideK)>::type;
  static constexpr bool alongK = source.strideK == 1;
  static constexpr int fast = alongK ? tileK : side, copies = side * tileK / threads, advance = threads / fast;
  static_assert(threads % fast == 0 && side * tileK % threads == 0, "threads cover whole lines of the kTile");

public:
  __device__ __forceinline__ KTileLoader(const T *matrix, int row0)
      : row(alongK ? threadIdx.x / tileK : threadIdx.x % side), column(alongK ? threadIdx.x % tileK : threadIdx.x / side),
        row0(row0), from(matrix + Index(row0 + row) * Index(source.rowStride) + column * Index(source.strideK)) {}

  /// Copies the k-tile that starts at column k0 and moves on to the next.
  __device__ __forceinline__ void copy(float (&kTile)[tileK][side + 4], int k0) {
    float values[copies];
#pragma unroll
    for (int i = 0; i < copies; ++i) {
      const int moreRows = alongK ? i * advance : 0, moreColumns = alongK ? 0 : i * advance;
      const bool inside = (source.rows % side == 0 || row0 + row + moreRows < source.rows) &&
                          (source.k % tileK == 0 || k0 + column + moreColumns < source.k);
      values[i] = inside ? widen(from[moreRows * Index(source.rowStride) + moreColumns * Index(source.strideK)]) : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < copies; ++i)
      kTile[column + (alongK ? 0 : i * advance)][row + (alongK ? i * advance : 0)] = values[i];
    from += tileK * Index(source.strideK);
  }

private:
  int row, column, row0;
  const T *from;
};

/// Position inside the tile of element `e` of the thread that stands at `thread` of `threads`.
template <int group, int threads> __device__ __forceinline__ int elementInTile(int thread, int e) {
  return e / group * (group * threads) + thread * group + e % group;
}

/// The `count` elements of one thread from one line of a kTile.
template <int count, int threads>
__device__ __forceinline__ void readLine(float (&values)[count], const float *line, int thread) {
  constexpr int group = floatGroupOf(count);
#pragma unroll
  for (int e = 0; e < count; e += group) {
    const auto some = *reinterpret_cast<const FloatGroup<group> *>(line + elementInTile<group, threads>(thread, e));
#pragma unroll
    for (int i = 0; i < group; ++i) values[e + i] = some.at[i];
  }
}

/// The arguments of the kernel. kTiles: in shared memory.
template <typename A, typename B, typename C, typename Tile> struct FmaGemmArgs {
  const A *a;
  const B *b;
  C *c;
  float scale;
  GemmKTiles<Tile> &kTiles;
};

/// The whole kernel: one tile for each block, tiles of n fastest, then m, then batch. Neighbouring threads lie along the
/// axis of C that is contiguous in memory.
template <FmaGemmShape shape, typename Tile, typename A, typename B, typename C>
__device__ __forceinline__ void fmaGemm(const FmaGemmArgs<A, B, C, Tile> &args) {
  constexpr int tilesN = (shape.n + Tile::tileN - 1) / Tile::tileN, tilesM = (shape.m + Tile::tileM - 1) / Tile::tileM;
  constexpr bool alongM = shape.strideCm == 1;
  const int n0 = int(blockIdx.x % tilesN) * Tile::tileN, m0 = int(blockIdx.x / tilesN % tilesM) * Tile::tileM;
  const Offset batch = blockIdx.x / (tilesN * tilesM);
  KTileLoader<KTileSource{shape.m, shape.strideAm, shape.k, shape.strideAk}, Tile::tileM, Tile::tileK, Tile::threads, A>
      loadA(args.a + batch * shape.batchStrideA, m0);
  KTileLoader<KTileSource{shape.n, shape.strideBn, shape.k, shape.strideBk}, Tile::tileN, Tile::tileK, Tile::threads, B>
      loadB(args.b + batch * shape.batchStrideB, n0);
  const int threadInM = alongM ? threadIdx.x % Tile::threadsM : threadIdx.x / Tile::threadsN;
  const int threadInN = alongM ? threadIdx.x / Tile::threadsM : threadIdx.x % Tile::threadsN;
  float sum[Tile::threadM][Tile::threadN] = {};
#pragma unroll 1
  for (int k0 = 0; k0 < shape.k; k0 += Tile::tileK) {
    loadA.copy(args.kTiles.a, k0);
    loadB.copy(args.kTiles.b, k0);
    ptx::barrier();
#pragma unroll 4
    for (int k = 0; k < Tile::tileK; ++k) {
      float own[Tile::threadM], other[Tile::threadN];
      readLine<Tile::threadM, Tile::threadsM>(own, args.kTiles.a[k], threadInM);
      readLine<Tile::threadN, Tile::threadsN>(other, args.kTiles.b[k], threadInN);
#pragma unroll
      for (int m = 0; m < Tile::threadM; ++m) {
#pragma unroll
        for (int n = 0; n < Tile::threadN; ++n) sum[m][n] += own[m] * other[n];
      }
    }
    ptx::barrier();
  }
  using Index = typename MatrixOffset<needsWideOffset(shape.m, shape.strideCm, shape.n, shape.strideCn)>::type;
  C *const c = args.c + batch * shape.batchStrideC;
#pragma unroll
  for (int m = 0; m < Tile::threadM; ++m) {
    const int row = m0 + elementInTile<floatGroupOf(Tile::threadM), Tile::threadsM>(threadInM, m);
#pragma unroll
    for (int n = 0; n < Tile::threadN; ++n) {
      const int column = n0 + elementInTile<floatGroupOf(Tile::threadN), Tile::threadsN>(threadInN, n);
      if ((shape.m % Tile::tileM == 0 || row < shape.m) && (shape.n % Tile::tileN == 0 || column < shape.n))
        c[row * Index(shape.strideCm) + column * Index(shape.strideCn)] =
            narrow<C>(args.scale * sum[m][n]);
    }
  }
}

}  // namespace weft
