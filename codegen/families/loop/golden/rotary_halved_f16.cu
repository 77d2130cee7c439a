// rotary_halved    (this header is not hashed)
//
//   ops        y = rotary x
//   space      b=8 j=512 h=16 p=64
//   reads      x[b,j,h,p] f16    8.39 MB
//   writes     y[b,j,h,p] f16    8.39 MB
//   flop       4.19 Mflop
//   config     vector 8 x f16 along p, 256 threads a block    launch <<<2048, 256>>>
#include "weft/math.cuh"
#include "weft/short_rotation.cuh"
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int j = 512, h = 16, p = 64;              // extents
constexpr int width = 8;                            // elements a thread takes along p
constexpr int threads = 256;                        // a block
constexpr float frequencyScale = -0.415241f;        // -2 log2(10000) / 64
constexpr double frequencyRatio = 0.7498942093324559;  // of neighbouring pairs
}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
rotary_f16_8x512x16x64(const weft::half *__restrict__ x, weft::half *__restrict__ y) {
  static_assert(j == 512 && h == 16 && p == 64, "plan.json: these extents");
  static_assert((64 / width * 65536 + threads - 1) / threads == 2048, "plan.json: 2048 blocks");
  static_assert(threads == 256, "plan.json: 256 threads a block");
  static_assert(width == 8, "plan.json: these knobs");
  const int point = blockIdx.x * threads + threadIdx.x;                     // (b, j, h, p), b slowest, 8 of p at once
  const int at_p = point % (p / width) * width;
  const int at_j = point / (h * (p / width)) % j;
  const int at_b_j_h = point / (p / width);
  const int start = point * width;
  const int start_2 = at_b_j_h * p;

  const float frequency = weft::rotaryFrequency(at_p % 32, frequencyScale);
  const auto x_v = weft::loadVector<width>(x + start);
  const auto x_v_2 = weft::loadVector<width>(x + start_2 + (at_p < 32 ? at_p + 32 : at_p - 32));
  weft::Vec<float, width> y_out;
#pragma unroll
  for (int e = 0; e < width; ++e) {
    const weft::Rotation turn = weft::shortRotation(at_j, frequency * weft::powerOf(frequencyRatio, e));
    y_out.at[e] = x_v.at[e] * turn.cosine + ((at_p + e) < 32 ? -x_v_2.at[e] : x_v_2.at[e]) * turn.sine;  // %20
  }
  weft::storeVector<width>(y + start, y_out);
}
