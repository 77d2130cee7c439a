// bias_gradient    (this header is not hashed)
//
//   ops        dbias = reduce dy
//   space      i=1024 | b=8 j=512 (reduced)
//   reads      dy[b,j,i] f16    8.39 MB
//   writes     dbias[i] f16    2.05 kB
//   flop       1.02 kflop
//   config     vector 2 x f16 along i, one thread a row, 64 threads a block    launch <<<8, 64>>>
#include "weft/reduce.cuh"
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int i = 1024, b = 8, j = 512;             // extents
constexpr int width = 2;                            // elements a thread takes along i
constexpr int threads = 64;                         // a block, one for each row
constexpr int steps = b * j;                        // a thread's share of a row
}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
reduce_f16_8x512x1024(const weft::half *__restrict__ dy, weft::half *__restrict__ dbias) {
  static_assert(b == 8 && j == 512 && i == 1024, "plan.json: these extents");
  static_assert((1024 / width + threads - 1) / threads == 8, "plan.json: 8 blocks");
  static_assert(threads == 64, "plan.json: 64 threads a block");
  static_assert(width == 2 && steps == 4096, "plan.json: these knobs");
  const int row = blockIdx.x * threads + threadIdx.x;                                           // (i), 2 of i at once
  const int at_i = row * width;

  weft::Vec<float, width> dbias_out = {};
#pragma unroll 4
  for (int v = 0; v < steps; ++v) {
    const int at_b = v / j;
    const int at_j = v % j;
    const auto dy_v = weft::loadVector<width>(dy + at_i + at_b * (j * i) + at_j * i);
#pragma unroll
    for (int e = 0; e < width; ++e)
      dbias_out.at[e] += dy_v.at[e];
  }

  weft::storeVector<width>(dbias + at_i, dbias_out);
}
