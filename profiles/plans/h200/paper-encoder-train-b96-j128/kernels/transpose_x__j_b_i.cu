// transpose_x__j_b_i    kernel 1 of paper-encoder, forward    (this header is not hashed)
//
//   ops        %x_moved = identity %x
//   space      b=96 j=128 i=1024
//   reads      x[b,j,i] f16    25.2 MB
//   writes     x_moved[j,b,i] f16    25.2 MB
//   config     vector 8 x f16 along i, 128 threads a block    launch <<<12288, 128>>>
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int j = 128, b = 96, i = 1024;            // extents
constexpr int width = 8;                            // elements a thread takes along i
constexpr int threads = 128;                        // a block
}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
copy_f16_96x128x1024(const weft::half *__restrict__ x, weft::half *__restrict__ x_moved) {
  static_assert(b == 96 && j == 128 && i == 1024, "plan.json: these extents");
  static_assert((1024 / width * 12288 + threads - 1) / threads == 12288, "plan.json: 12288 blocks");
  static_assert(threads == 128, "plan.json: 128 threads a block");
  static_assert(width == 8, "plan.json: these knobs");
  const int point = blockIdx.x * threads + threadIdx.x;                        // (j, b, i), j slowest, 8 of i at once
  const int at_j = point / (b * (i / width));
  const int at_b = point / (i / width) % b;
  const int at_i = point % (i / width) * width;
  const int start = at_j * i + at_b * (j * i) + at_i;
  const int start_2 = point * width;

  const auto x_v = weft::loadVector<width>(x + start);
  weft::storeVector<width>(x_moved + start_2, x_v);
}
