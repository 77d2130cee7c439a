// concat    (this header is not hashed)
//
//   ops        y = concat first, second
//   space      b=2 p=8 i=24 c=32
//   reads      first[b,i] f32   second[b,p] f32    256 B
//   writes     y[b,c] f32    256 B
//   flop       64.0 flop
//   config     vector 4 x f32 along c, 64 threads a block    launch <<<1, 64>>>
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int b = 2, c = 32, p = 8, i = 24;         // extents
constexpr int width = 4;                            // elements a thread takes along c
constexpr int threads = 64;                         // a block
constexpr int points = b * (c / width);
}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
concat_f32_2x32(const float *__restrict__ first, const float *__restrict__ second, float *__restrict__ y) {
  static_assert(b == 2 && p == 8 && i == 24 && c == 32, "plan.json: these extents");
  static_assert((32 / width * 2 + threads - 1) / threads == 1, "plan.json: 1 blocks");
  static_assert(threads == 64, "plan.json: 64 threads a block");
  static_assert(width == 4 && points == 16, "plan.json: these knobs");
  const int point = blockIdx.x * threads + threadIdx.x;                           // (b, c), b slowest, 4 of c at once
  if (point >= points) return;
  const int at_c = point % (c / width) * width;
  const int at_b = point / (c / width);
  const int start = at_b * i + at_c;
  const int start_2 = at_b * p;
  const int start_3 = point * width;

  const auto first_v = at_c < 24 ? weft::loadVector<width>(first + start) : weft::Vec<float, width>{};
  const auto second_v = at_c >= 24 ? weft::loadVector<width>(second + start_2 + (at_c - 24))
      : weft::Vec<float, width>{};
  weft::Vec<float, width> y_out;
#pragma unroll
  for (int e = 0; e < width; ++e)
    y_out.at[e] = at_c < 24 ? first_v.at[e] : second_v.at[e];                                     // %20
  weft::storeVector<width>(y + start_3, y_out);
}
