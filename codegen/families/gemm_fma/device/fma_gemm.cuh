// One batched strided GEMM by FMA in fp32: C[m,n] = scale * sum over k of A[m,k] B[k,n]. Correct
// for every extent, stride and element type.
//
//     A, B ──cp.async (f32), registers (others)──> circular buffer of k-tiles in shared memory
//                                                       │ 16 bytes a read, 4 of k at a time
//            a block: groups of threads                 v
//            group 0: its part of every k-tile ──> threadM x threadN sums a thread ─┐
//            group 1: the next part            ──> ...                              ├─> C
//                                                  partial sums, through shared memory, in order
//
// A block computes a tile of C. stages - 1 k-tiles are in flight while one is multiplied, with one
// barrier a k-tile. Where few blocks have long sums, several groups of threads share every k-tile
// of the block, and add up what they have at the end, group 0 first.
//
// An operand lies in shared memory as it does in global memory: rows of k where it is contiguous
// along k, else lines of neighbouring rows. Rows are permuted so that neighbouring threads, each of
// which has groups of four neighbouring rows, find theirs in neighbouring places; chunks of 16
// bytes within a row are permuted so that these lie in different banks.
#pragma once

#include "weft/sm80_tf32_mma.cuh"
#include "weft/vector.cuh"

namespace weft {

/// Extents and element strides. isAligned: the operand is contiguous along one axis, whose extent
/// is a multiple of four, and every fourth element of it lies at a multiple of four elements.
struct FmaGemmShape {
  Offset batch, m, n, k;
  Offset batchStrideA, strideAm, strideAk;
  Offset batchStrideB, strideBk, strideBn;
  Offset batchStrideC, strideCm, strideCn;
  bool isAlignedA, isAlignedB, isAlignedC;
};

/// m, n: elements of C of a block, multiples of four; k: of a k-tile, a power of two from four on;
/// threadM, threadN: elements of C of a thread; stages: k-tiles in shared memory, two or more;
/// groups: of threads, each of which multiplies its part of every k-tile.
struct FmaGemmTile {
  int m, n, k, threadM, threadN, stages, groups;
};

/// The same GEMM with A and B exchanged.
__device__ __forceinline__ constexpr FmaGemmShape transposed(const FmaGemmShape &s) {
  return {s.batch,
          s.n,
          s.m,
          s.k,
          s.batchStrideB,
          s.strideBn,
          s.strideBk,
          s.batchStrideA,
          s.strideAk,
          s.strideAm,
          s.batchStrideC,
          s.strideCn,
          s.strideCm,
          s.isAlignedB,
          s.isAlignedA,
          s.isAlignedC};
}
__device__ __forceinline__ constexpr FmaGemmTile transposed(const FmaGemmTile &t) {
  return {t.n, t.m, t.k, t.threadN, t.threadM, t.stages, t.groups};
}

/// The largest power of two that divides `count`, `most` at most.
__device__ __forceinline__ constexpr int powerIn(int count, int most) {
  int power = 1;
  while (power < most && count % (2 * power) == 0) power *= 2;
  return power;
}

__device__ __forceinline__ constexpr bool isPower(int value) { return (value & (value - 1)) == 0; }

/// What follows from a tile.
template <FmaGemmTile tile>
struct FmaTileConfig {
  static constexpr int threadsM = tile.m / tile.threadM, threadsN = tile.n / tile.threadN,
                       groupThreads = threadsM * threadsN, threads = groupThreads * tile.groups;
  // A warp lies over 4 x 8 threads, so that few of its reads of A or B are of different places.
  static constexpr int lanesN = powerIn(threadsN, 8), lanesM = powerIn(threadsM, 32 / lanesN);
  static constexpr int bytesA = 4 * tile.m * tile.k, bytesB = 4 * tile.n * tile.k,
                       stageBytes = bytesA + bytesB;
  static constexpr int partialBytes = tile.groups > 1 ? 4 * tile.groups *tile.m *tile.n : 0;
  static constexpr int sharedBytes = larger(tile.stages * stageBytes, partialBytes);
};

/// One side of a tile: its elements, how many each of `threads` has, and how many of them are
/// neighbours.
struct FmaSide {
  int extent, count, group;
  __host__ __device__ constexpr int threads() const { return extent / count; }
  /// Position of element e of a thread.
  __host__ __device__ constexpr int position(int thread, int e) const {
    return e / group * (group * threads()) + thread * group + e % group;
  }
};
__device__ __forceinline__ constexpr FmaSide fmaSide(int extent, int count) {
  return {extent, count, powerIn(count, 4)};
}

/// An operand, seen as rows (m or n) by k.
struct FmaOperand {
  Offset rows, rowStride, k, kStride;
  bool isAligned;
  __host__ __device__ constexpr bool isAlongK() const { return kStride == 1; }
};

/// A k-tile of an operand in shared memory: lines of k, one for each row; or lines of rows, one for
/// each k.
template <FmaOperand operand, FmaSide side, int tileK>
struct FmaKTile {
  static constexpr bool isAlongK = operand.isAlongK();
  static constexpr int lines = isAlongK ? side.extent : tileK,
                       length = isAlongK ? tileK : side.extent;
  static constexpr int chunks = tileK / 4, rowsOfBanks = chunks < 8 ? 8 / chunks : 1,
                       span = chunks < 8 ? chunks : 8;

  /// How the chunks of a line of k are permuted: by bits of the line's number.
  __device__ __forceinline__ static constexpr int swizzle(int line) {
    return line / rowsOfBanks % span;
  }
  /// Where an element of a line lies.
  __device__ __forceinline__ static constexpr int placeOf(int line, int at) {
    return distance(line) + (isAlongK ? (at / 4 ^ swizzle(line)) * 16 + at % 4 * 4 : at * 4);
  }
  __device__ __forceinline__ static constexpr int distance(int lines) { return lines * length * 4; }
  /// The place of an element `lines` and `at` behind another of place `from`, whose numbers have no
  /// bit in common with these; `at` is a multiple of four. Nothing but `from` is kept in registers.
  __device__ __forceinline__ static sm80::SharedAddress placeBehind(sm80::SharedAddress from,
                                                                    int lines, int at) {
    if (!isAlongK) return from + distance(lines) + at * 4;
    return (from ^ ((at / 4 ^ swizzle(lines)) % span * 16)) + distance(lines) +
           at / 4 / span * span * 16;
  }
  /// The row of a line of k: line e threads + t is element e of thread t.
  __device__ __forceinline__ static constexpr int rowOf(int line) {
    return side.position(line % side.threads(), line / side.threads());
  }
};

/// Of the type that is copied as it is, by instructions that need no registers.
template <typename T>
constexpr bool isCopiedAsync = false;
template <>
constexpr bool isCopiedAsync<float> = true;

/// The part of every k-tile that one thread copies, zero outside the matrix: chunks of four
/// elements where these are aligned, single elements otherwise. Neighbouring threads follow the
/// axis that is contiguous in memory.
template <FmaOperand operand, FmaSide side, int tileK, int threads, typename T>
class FmaKTileCopy {
  using KTile = FmaKTile<operand, side, tileK>;
  static constexpr int width = operand.isAligned ? 4 : 1, unitsOfLine = KTile::length / width,
                       units = KTile::lines * unitsOfLine, passes = (units + threads - 1) / threads;
  /// Whether every pass takes whole lines, the bits of whose numbers are those of the first pass
  /// and others: positions and places then follow from those of the first pass.
  static constexpr int linesOfPass = threads / unitsOfLine;
  static constexpr bool isRegular = threads % unitsOfLine == 0 && isPower(linesOfPass) &&
                                    (units % threads == 0 || passes == 1) &&
                                    (!KTile::isAlongK || isPower(side.threads()));

  /// An element of the k-tile.
  struct Position {
    int row, k;
  };
  __device__ __forceinline__ static Position positionOf(int line, int at) {
    return KTile::isAlongK ? Position{KTile::rowOf(line), at} : Position{at, line};
  }
  __device__ __forceinline__ static Offset offsetOf(int rows, int columns) {
    return rows * operand.rowStride + columns * operand.kStride;
  }
  /// Calls what(pass, position, place in shared memory) for every unit of the thread.
  template <typename What>
  __device__ __forceinline__ void forEachUnit(sm80::SharedAddress kTile, const What &what) const {
#pragma unroll
    for (int pass = 0; pass < passes; ++pass) {
      if constexpr (isRegular) {
        const int line = pass * linesOfPass;
        const Position further = positionOf(line, 0);
        if (units % threads != 0 && threadIdx.x >= units) break;
        what(pass, Position{first.row + further.row, first.k + further.k},
             KTile::placeBehind(kTile + firstPlace, line, 0));
      } else {
        const int index = threadIdx.x + pass * threads, line = index / unitsOfLine,
                  at = index % unitsOfLine * width;
        if (units % threads != 0 && line >= KTile::lines) break;
        what(pass, positionOf(line, at), kTile + KTile::placeOf(line, at));
      }
    }
  }

public:
  __device__ __forceinline__ FmaKTileCopy(const T *matrix, int row0)
      : first(positionOf(threadIdx.x / unitsOfLine, threadIdx.x % unitsOfLine * width)),
        firstPlace(KTile::placeOf(threadIdx.x / unitsOfLine, threadIdx.x % unitsOfLine * width)),
        row0(row0),
        from(matrix + offsetOf(row0 + first.row, first.k)) {}

  /// Asks for the next k-tile, which starts at k0: into shared memory, or into registers.
  __device__ __forceinline__ void issue(sm80::SharedAddress kTile, int k0) {
    const int rows = int(operand.rows) - row0 - first.row, k = int(operand.k) - k0 - first.k;
    forEachUnit(kTile, [&](int pass, const Position &at, sm80::SharedAddress place) {
      const int row = at.row - first.row, column = at.k - first.k;
      const T *element = from + offsetOf(row, column);
      const bool inside =
          (operand.rows % side.extent == 0 || row < rows) && (operand.k % tileK == 0 || column < k);
      if constexpr (isCopiedAsync<T>) {
        if constexpr (width == 4) sm80::copyAsync(place, element, inside ? 16 : 0);
        else sm80::copyWordAsync(place, element, inside ? 4 : 0);
      } else {
        values[pass] = {};
        if (inside) values[pass] = *reinterpret_cast<const Packed<T, width> *>(element);
      }
    });
    from += tileK * operand.kStride;
  }
  /// Puts into shared memory what is in registers.
  __device__ __forceinline__ void land(sm80::SharedAddress kTile) const {
    if constexpr (!isCopiedAsync<T>)
      forEachUnit(kTile, [&](int pass, const Position &, sm80::SharedAddress place) {
        unsigned words[width];
#pragma unroll
        for (int e = 0; e < width; ++e)
          words[e] = __builtin_bit_cast(unsigned, widen(values[pass].at[e]));
        if constexpr (width == 4) sm80::storeShared(place, words);
        else sm80::storeShared(place, words[0]);
      });
  }

private:
  Position first;
  int firstPlace, row0;
  const T *from;
  Packed<T, width> values[isCopiedAsync<T> ? 1 : passes];
};

/// What one thread reads of the k-tiles of an operand.
template <FmaOperand operand, FmaSide side, int tileK>
class FmaReader {
  using KTile = FmaKTile<operand, side, tileK>;

public:
  /// `first`: from which k on it reads, a multiple of as many as it reads of a k-tile.
  __device__ __forceinline__ FmaReader(int thread, int first)
      : thread(thread),
        first(first),
        place(KTile::isAlongK ? KTile::placeOf(thread, first)
                              : KTile::placeOf(first, thread * side.group)) {}

  /// Four of k of one element, from first + k on; k is a multiple of four.
  __device__ __forceinline__ void readRow(float (&values)[4], sm80::SharedAddress kTile, int e,
                                          int k) const {
    constexpr int threads = side.threads();
    readChunk(values, isPower(threads) ? KTile::placeBehind(kTile + place, e * threads, k)
                                       : kTile + KTile::placeOf(e * threads + thread, first + k));
  }
  /// One of k, first + k, of all elements.
  __device__ __forceinline__ void readLine(float (&values)[side.count], sm80::SharedAddress kTile,
                                           int k) const {
#pragma unroll
    for (int e = 0; e < side.count; e += side.group) {
      const sm80::SharedAddress group = KTile::placeBehind(kTile + place, k, side.position(0, e));
      if constexpr (side.group == 4) {
        float some[4];
        readChunk(some, group);
#pragma unroll
        for (int i = 0; i < 4; ++i) values[e + i] = some[i];
      } else {
#pragma unroll
        for (int i = 0; i < side.group; ++i)
          values[e + i] = ptx::floatFromBits(sm80::loadSharedWord(group + i * 4));
      }
    }
  }
  /// Four of k, from first + k on, of all elements.
  __device__ __forceinline__ void read(float (&values)[4][side.count], sm80::SharedAddress kTile,
                                       int k) const {
    if constexpr (KTile::isAlongK) {
#pragma unroll
      for (int e = 0; e < side.count; ++e) {
        float row[4];
        readRow(row, kTile, e, k);
#pragma unroll
        for (int i = 0; i < 4; ++i) values[i][e] = row[i];
      }
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) readLine(values[i], kTile, k + i);
    }
  }

  __device__ __forceinline__ static void readChunk(float (&values)[4], sm80::SharedAddress from) {
    unsigned words[4];
    sm80::loadShared(words, from);
#pragma unroll
    for (int i = 0; i < 4; ++i) values[i] = ptx::floatFromBits(words[i]);
  }

private:
  int thread, first, place;
};

/// The arguments of the kernel.
template <typename A, typename B, typename C>
struct FmaGemmArgs {
  const A *a;
  const B *b;
  C *c;
  float scale;
};

/// The kernel where C is not contiguous along m alone; launched with FmaTileConfig::threads and
/// sharedBytes, a block for every tile: those of n fastest, then m, then batch.
template <FmaGemmShape shape, FmaGemmTile tile, typename A, typename B, typename C>
class FmaGemm {
  using P = FmaTileConfig<tile>;
  static constexpr FmaSide sideM = fmaSide(tile.m, tile.threadM),
                           sideN = fmaSide(tile.n, tile.threadN);
  static constexpr FmaOperand operandA{shape.m, shape.strideAm, shape.k, shape.strideAk,
                                       shape.isAlignedA},
      operandB{shape.n, shape.strideBn, shape.k, shape.strideBk, shape.isAlignedB};
  static constexpr int kTiles = int((shape.k + tile.k - 1) / tile.k);
  static constexpr int groupK = tile.k / tile.groups;  // of a k-tile, that a group multiplies
  static_assert(groupK % 4 == 0, "groups take whole chunks of k");

  /// Steps of four of k that the compiler schedules together: of threads with many elements one,
  /// since two fill their registers.
  static constexpr int unrolled = tile.threadM * tile.threadN < 64 ? 2 : 1;

  using Sums = float[tile.threadM][tile.threadN];

  const FmaGemmArgs<A, B, C> &args;
  int batch, m0, n0, group, threadM, threadN;

  __device__ __forceinline__ void multiply(Sums &sums, sm80::SharedAddress stage) const {
    const FmaReader<operandA, sideM, tile.k> readerA(threadM, group * groupK);
    const FmaReader<operandB, sideN, tile.k> readerB(threadN, group * groupK);
    const sm80::SharedAddress stageB = stage + P::bytesA;
    const auto add = [&](int m, float a, const float(&b)[tile.threadN]) {
#pragma unroll
      for (int n = 0; n < tile.threadN; ++n) sums[m][n] += a * b[n];
    };
#pragma unroll(unrolled)
    for (int k = 0; k < groupK; k += 4) {
      float b[4][tile.threadN];
      readerB.read(b, stageB, k);
      if constexpr (operandA.isAlongK()) {
#pragma unroll
        for (int m = 0; m < tile.threadM; ++m) {
          float a[4];
          readerA.readRow(a, stage, m, k);
#pragma unroll
          for (int i = 0; i < 4; ++i) add(m, a[i], b[i]);
        }
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float a[tile.threadM];
          readerA.readLine(a, stage, k + i);
#pragma unroll
          for (int m = 0; m < tile.threadM; ++m) add(m, a[m], b[i]);
        }
      }
    }
  }

  /// All k-tiles; of each the part of the thread's group.
  __device__ __forceinline__ void multiplyAll(Sums &sums, sm80::SharedAddress shared) const {
    FmaKTileCopy<operandA, sideM, tile.k, P::threads, A> copyA(args.a + batch * shape.batchStrideA,
                                                               m0);
    FmaKTileCopy<operandB, sideN, tile.k, P::threads, B> copyB(args.b + batch * shape.batchStrideB,
                                                               n0);
    const auto issue = [&](int kTile, sm80::SharedAddress stage) {
      if (kTile < kTiles) {
        copyA.issue(stage, kTile * tile.k);
        copyB.issue(stage + P::bytesA, kTile * tile.k);
      }
      sm80::commitCopies();
    };
    const auto land = [&](int kTile, sm80::SharedAddress stage) {
      if (kTile >= kTiles) return;
      copyA.land(stage);
      copyB.land(stage + P::bytesA);
    };
#pragma unroll
    for (int kTile = 0; kTile < tile.stages - 1; ++kTile) {
      issue(kTile, shared + kTile * P::stageBytes);
      land(kTile, shared + kTile * P::stageBytes);
    }
    const sm80::SharedAddress last = shared + (tile.stages - 1) * P::stageBytes;
    sm80::SharedAddress stage = shared, stageBefore = last;
#pragma unroll 1
    for (int kTile = 0; kTile < kTiles; ++kTile) {
      sm80::waitForCopies<tile.stages - 2>();
      ptx::barrier();  // the k-tile has landed, and the one before it has been read by all
      issue(kTile + tile.stages - 1, stageBefore);
      multiply(sums, stage);
      land(kTile + tile.stages - 1, stageBefore);
      stageBefore = stage;
      stage = stage == last ? shared : stage + P::stageBytes;
    }
    sm80::waitForCopies<0>();
  }

  /// Row m of what the thread has, behind the k-tiles: as many sums as lie along n.
  __device__ __forceinline__ void storeRow(int m, const float (&sums)[tile.threadN]) const {
    const int row = m0 + sideM.position(threadM, m), column0 = n0 + threadN * sideN.group;
    if (shape.m % tile.m != 0 && row >= shape.m) return;
    C *const to =
        args.c + batch * shape.batchStrideC + row * shape.strideCm + column0 * shape.strideCn;
#pragma unroll
    for (int n = 0; n < tile.threadN; n += sideN.group) {
      const int further = sideN.position(0, n);
      if constexpr (shape.isAlignedC && sideN.group == 4) {
        Vec<Compute<C>, 4> values;
#pragma unroll
        for (int i = 0; i < 4; ++i) values.at[i] = args.scale * sums[n + i];
        if (shape.n % tile.n == 0 || column0 + further < shape.n)
          storeVector<4>(to + further, values);
      } else {
#pragma unroll
        for (int i = 0; i < sideN.group; ++i)
          if (shape.n % tile.n == 0 || column0 + further + i < shape.n)
            to[(further + i) * shape.strideCn] = narrow<C>(args.scale * sums[n + i]);
      }
    }
  }

  /// Adds up what the groups have, group 0 first; each stores some of the rows.
  __device__ __forceinline__ void joinGroups(const Sums &sums, sm80::SharedAddress shared) const {
    static_assert(tile.groups == 1 || tile.threadN % 4 == 0, "groups exchange chunks of four sums");
    constexpr int chunks = tile.threadN / 4;
    const int thread = threadIdx.x % P::groupThreads;
    const auto placeOf = [&](int group, int m, int chunk) {
      return shared +
             (((group * tile.threadM + m) * chunks + chunk) * P::groupThreads + thread) * 16;
    };
    ptx::barrier();  // the last k-tile has been read by all
#pragma unroll
    for (int m = 0; m < tile.threadM; ++m) {
#pragma unroll
      for (int chunk = 0; chunk < chunks; ++chunk) {
        unsigned words[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) words[i] = __builtin_bit_cast(unsigned, sums[m][chunk * 4 + i]);
        sm80::storeShared(placeOf(group, m, chunk), words);
      }
    }
    ptx::barrier();
#pragma unroll 1
    for (int m = group; m < tile.threadM; m += tile.groups) {
      float all[tile.threadN] = {};
#pragma unroll
      for (int from = 0; from < tile.groups; ++from) {
#pragma unroll
        for (int chunk = 0; chunk < chunks; ++chunk) {
          float some[4];
          FmaReader<operandA, sideM, tile.k>::readChunk(some, placeOf(from, m, chunk));
#pragma unroll
          for (int i = 0; i < 4; ++i) all[chunk * 4 + i] += some[i];
        }
      }
      storeRow(m, all);
    }
  }

public:
  __device__ __forceinline__ explicit FmaGemm(const FmaGemmArgs<A, B, C> &args) : args(args) {
    constexpr int tilesN = int((shape.n + tile.n - 1) / tile.n),
                  tilesM = int((shape.m + tile.m - 1) / tile.m);
    n0 = int(blockIdx.x % tilesN) * tile.n;
    m0 = int(blockIdx.x / tilesN % tilesM) * tile.m;
    batch = int(blockIdx.x / (tilesN * tilesM));
    group = threadIdx.x / P::groupThreads;
    constexpr int lanes = P::lanesM * P::lanesN, patchesN = P::threadsN / P::lanesN;
    const int thread = threadIdx.x % P::groupThreads, lane = thread % lanes, patch = thread / lanes;
    threadM = patch / patchesN * P::lanesM + lane / P::lanesN;
    threadN = patch % patchesN * P::lanesN + lane % P::lanesN;
  }

  __device__ __forceinline__ void run() const {
    const sm80::SharedAddress shared = sm80::dynamicShared();
    Sums sums = {};
    multiplyAll(sums, shared);
    if constexpr (tile.groups > 1) {
      joinGroups(sums, shared);
    } else {
#pragma unroll
      for (int m = 0; m < tile.threadM; ++m) storeRow(m, sums[m]);
    }
  }
};

/// The whole kernel. Neighbouring threads lie along the axis of C that is contiguous in memory.
template <FmaGemmShape shape, FmaGemmTile tile, typename A, typename B, typename C>
__device__ __forceinline__ void fmaGemm(const FmaGemmArgs<A, B, C> &args) {
  if constexpr (shape.strideCm == 1 && shape.strideCn != 1)
    FmaGemm<transposed(shape), transposed(tile), B, A, C>({args.b, args.a, args.c, args.scale})
        .run();
  else FmaGemm<shape, tile, A, B, C>(args).run();
}

}  // namespace weft
