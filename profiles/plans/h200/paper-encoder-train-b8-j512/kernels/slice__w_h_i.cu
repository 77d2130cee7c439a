// slice__w_h_i    kernel 35 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %53 = slice %50
//   space      p=64 h=48 i=1024 h2=16
//   reads      d_wq_d_wk_d_wv[p,h,i] f16    6.29 MB
//   writes     d_wv[p,h2,i] f16    2.10 MB
//   config     vector 8 x f16 along i, 256 threads a block    launch <<<512, 256>>>
//   made by    stack-dW-wq-wk-wv
//   not fused  contract, slice: F024 no-epilogue ('slice' is of class movement; an epilogue is element-wise)
//   not fused  slice, slice: F060 movement-op (d_wq)
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int h2 = 16, p = 64, i = 1024, h = 48;    // extents
constexpr int width = 8;                            // elements a thread takes along i
constexpr int threads = 256;                        // a block
}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
slice_f16_64x48x1024(const weft::half *__restrict__ d_wq_d_wk_d_wv, weft::half *__restrict__ d_wv) {
  static_assert(p == 64 && h == 48 && i == 1024 && h2 == 16, "plan.json: these extents");
  static_assert((1024 / width * 1024 + threads - 1) / threads == 512, "plan.json: 512 blocks");
  static_assert(threads == 256, "plan.json: 256 threads a block");
  static_assert(width == 8, "plan.json: these knobs");
  const int point = blockIdx.x * threads + threadIdx.x;                      // (h2, p, i), h2 slowest, 8 of i at once
  const int at_h2 = point / (p * (i / width));
  const int at_p = point / (i / width) % p;
  const int at_i = point % (i / width) * width;
  const int start = at_p * (h * i) + at_i;
  const int start_2 = at_h2 * i + at_p * (h2 * i) + at_i;

  const auto d_wq_d_wk_d_wv_v = weft::loadVector<width>(d_wq_d_wk_d_wv + start + (at_h2 + 32) * i);
  weft::storeVector<width>(d_wv + start_2, d_wq_d_wk_d_wv_v);
}
