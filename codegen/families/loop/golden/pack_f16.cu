// pack    (this header is not hashed)
//
//   ops        y = pack x, offsets
//   space      b=8 j=512 i=1024 n=9 t=4096
//   reads      x[b,j,i] f16   offsets[n] i32    8.39 MB
//   writes     y[t,i] f16    8.39 MB
//   flop       4.19 Mflop
//   config     vector 8 x f16 along i, 128 threads a block    launch <<<4096, 128>>>
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int i = 1024, b = 8, j = 512;             // extents
constexpr int width = 8;                            // elements a thread takes along i
constexpr int threads = 128;                        // a block
}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
pack_f16_8x512x1024(const weft::half *__restrict__ x, const int *__restrict__ offsets, weft::half *__restrict__ y) {
  static_assert(b == 8 && j == 512 && i == 1024, "plan.json: these extents");
  static_assert((1024 / width * 4096 + threads - 1) / threads == 4096, "plan.json: 4096 blocks");
  static_assert(threads == 128, "plan.json: 128 threads a block");
  static_assert(width == 8, "plan.json: these knobs");
  const int point = blockIdx.x * threads + threadIdx.x;                           // (t, i), t slowest, 8 of i at once
  const int at_t = point / (i / width);
  const int at_i = point % (i / width) * width;
  const int start = point * width;
  const auto tokens = weft::loadOne(offsets + 8);
  if (at_t >= tokens) {
    weft::storeVector<width>(y + start, weft::Vec<float, width>{});
    return;
  }

  const auto offsets_e = weft::loadOne(offsets + 4);
  const int sequence = offsets_e <= at_t ? 4 : 0;
  const int candidate = sequence + 2 < b ? sequence + 2 : sequence;
  const auto offsets_e_2 = weft::loadOne(offsets + candidate);
  const int sequence_2 = offsets_e_2 <= at_t ? candidate : sequence;
  const int candidate_2 = sequence_2 + 1 < b ? sequence_2 + 1 : sequence_2;
  const auto offsets_e_3 = weft::loadOne(offsets + candidate_2);
  const int sequence_3 = offsets_e_3 <= at_t ? candidate_2 : sequence_2;
  const auto offsets_e_4 = weft::loadOne(offsets + sequence_3);
  const int position = at_t - offsets_e_4;
  const int row_index = weft::clampedIndex(position, j);
  const auto x_v = weft::loadVector<width>(x + at_i + sequence_3 * (j * i) + row_index * i);
  const auto offsets_e_5 = weft::loadOne(offsets + 8);
  weft::Vec<float, width> y_out;
#pragma unroll
  for (int e = 0; e < width; ++e)
    y_out.at[e] = at_t < offsets_e_5 && weft::isIndex(position, j) ? x_v.at[e] : 0.0f;            // %20
  weft::storeVector<width>(y + start, y_out);
}
