// unpack    (this header is not hashed)
//
//   ops        y = unpack x, offsets
//   space      b=8 j=512 i=1024 n=9 t=4096
//   reads      x[t,i] f16   offsets[n] i32    8.39 MB
//   writes     y[b,j,i] f16    8.39 MB
//   flop       4.19 Mflop
//   config     vector 8 x f16 along i, 128 threads a block    launch <<<4096, 128>>>
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int j = 512, i = 1024, t = 4096;          // extents
constexpr int width = 8;                            // elements a thread takes along i
constexpr int threads = 128;                        // a block
}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
unpack_f16_4096x1024(const weft::half *__restrict__ x, const int *__restrict__ offsets, weft::half *__restrict__ y) {
  static_assert(j == 512 && i == 1024 && t == 4096, "plan.json: these extents");
  static_assert((1024 / width * 4096 + threads - 1) / threads == 4096, "plan.json: 4096 blocks");
  static_assert(threads == 128, "plan.json: 128 threads a block");
  static_assert(width == 8, "plan.json: these knobs");
  const int point = blockIdx.x * threads + threadIdx.x;                        // (b, j, i), b slowest, 8 of i at once
  const int at_b = point / (j * (i / width));
  const int at_j = point / (i / width) % j;
  const int at_i = point % (i / width) * width;
  const int start = point * width;

  const auto offsets_e = weft::loadOne(offsets + at_b);
  const auto offsets_e_2 = weft::loadOne(offsets + (at_b + 1));
  const int token = offsets_e + at_j;
  const int row_index = weft::clampedIndex(token, t);
  const auto x_v = weft::loadVector<width>(x + at_i + row_index * i);
  weft::Vec<float, width> y_out;
#pragma unroll
  for (int e = 0; e < width; ++e)
    y_out.at[e] = token < offsets_e_2 && weft::isIndex(token, t) ? x_v.at[e] : 0.0f;              // %20
  weft::storeVector<width>(y + start, y_out);
}
