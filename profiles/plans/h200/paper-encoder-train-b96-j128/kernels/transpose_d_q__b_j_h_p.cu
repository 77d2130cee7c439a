// transpose_d_q__b_j_h_p    kernel 25 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %d_q_moved = identity %d_q
//   space      p=64 h=16 b=96 j=128
//   reads      d_q[h,b,j,p] f16    25.2 MB
//   writes     d_q_moved[b,j,h,p] f16    25.2 MB
//   config     vector 8 x f16 along p, 256 threads a block    launch <<<6144, 256>>>
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int b = 96, j = 128, h = 16, p = 64;      // extents
constexpr int width = 8;                            // elements a thread takes along p
constexpr int threads = 256;                        // a block
constexpr int d_q_moved_j = 3072;                   // stride of d_q_moved along j
}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
copy_f16_64x16x96x128(const weft::half *__restrict__ d_q, weft::half *__restrict__ d_q_moved) {
  static_assert(p == 64 && h == 16 && b == 96 && j == 128, "plan.json: these extents");
  static_assert((64 / width * 196608 + threads - 1) / threads == 6144, "plan.json: 6144 blocks");
  static_assert(threads == 256, "plan.json: 256 threads a block");
  static_assert(width == 8, "plan.json: these knobs");
  static_assert(d_q_moved_j == 3072, "plan.json: strides of d_q_moved");
  const int point = blockIdx.x * threads + threadIdx.x;                     // (b, j, h, p), b slowest, 8 of p at once
  const int at_b_j = point / (h * (p / width));
  const int at_h = point / (p / width) % h;
  const int at_p = point % (p / width) * width;
  const int at_h_p = point % (h * (p / width));
  const int start = at_b_j * p + at_h * (b * j * p) + at_p;
  const int start_2 = at_b_j * d_q_moved_j + at_h_p * width;

  const auto d_q_v = weft::loadVector<width>(d_q + start);
  weft::storeVector<width>(d_q_moved + start_2, d_q_v);
}
