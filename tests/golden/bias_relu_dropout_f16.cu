// bias_relu_dropout    (this header is not hashed)
//
//   ops        biased = bias x, bias
//              active = relu biased
//              dropped = dropout active
//   space      b=8 j=512 u=4096
//   reads      x[b,j,u] f16   bias[u] f16    33.6 MB
//   writes     active[b,j,u] f16   dropped[b,j,u] f16    67.1 MB
//   flop       50.3 Mflop
//   config     vector 8 x f16 along u, 256 threads a block    launch <<<8192, 256>>>
#include "weft/dropout.cuh"
#include "weft/math.cuh"
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int j = 512, u = 4096;                    // extents
constexpr int width = 8;                            // elements a thread takes along u
constexpr int threads = 256;                        // a block
constexpr unsigned dropThreshold = 6554u;           // 0.1 of 65536 draws
constexpr float keepScale = 1.1111112f;
}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
bias_relu_dropout_f16_8x512x4096(const weft::half *__restrict__ x, const weft::half *__restrict__ bias,
                                 weft::half *__restrict__ active, weft::half *__restrict__ dropped,
                                 const weft::DropoutKey *__restrict__ dropoutKey, unsigned dropoutStream) {
  static_assert(j == 512 && u == 4096, "plan.json: these extents");
  static_assert((4096 / width * 4096 + threads - 1) / threads == 8192, "plan.json: 8192 blocks");
  static_assert(threads == 256, "plan.json: 256 threads a block");
  static_assert(width == 8, "plan.json: these knobs");
  const int point = blockIdx.x * threads + threadIdx.x;                        // (b, j, u), b slowest, 8 of u at once
  const int at_b = point / (j * (u / width));
  const int at_u = point % (u / width) * width;
  const int at_j = point / (u / width) % j;
  const int start = point * width;
  const weft::DropoutKey key = *dropoutKey;                           // seed and step: a replay must not repeat masks

  const auto x_v = weft::loadVector<width>(x + start);
  const auto bias_v = weft::loadVector<width>(bias + at_u);
  weft::Vec<float, width> active_out;
  const auto kept = weft::keptColumnsPaired(key, dropoutStream, at_b, at_j, at_u, dropThreshold);
  weft::Vec<float, width> dropped_out;
#pragma unroll
  for (int e = 0; e < width; ++e) {
    const float biased = x_v.at[e] + bias_v.at[e];                                                // %20
    active_out.at[e] = weft::relu(biased);                                                        // %21
    dropped_out.at[e] = kept.at(e) ? active_out.at[e] * keepScale : 0.0f;                         // %22
  }
  weft::storeVector<width>(active + start, active_out);
  weft::storeVector<width>(dropped + start, dropped_out);
}
