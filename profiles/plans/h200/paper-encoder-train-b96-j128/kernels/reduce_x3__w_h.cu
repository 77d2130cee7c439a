// reduce_x3__w_h    kernel 35 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %56 = reduce %43 over b, k
//              %57 = reduce %47 over b, k
//              %58 = reduce %48 over b, k
//   space      w=64 h=16 | b=96 k=128 (reduced)
//   reads      d_v[w,h,b,k] f16   d_k[w,h,b,k] f16   d_q[w,h,b,k] f16    75.5 MB
//   writes     d_bv[w,h] f16   d_bk[w,h] f16   d_bq[w,h] f16    6.14 kB
//   flop       37.7 Mflop
//   config     vector 8 x f16 along k, one block of 512 threads a row    launch <<<1024, 512>>>
//   fused by   fuse: launch-merging
//   not fused  dropout, softmax_dx, reduce: F012 reduction-axis-mismatch (b2,k2 against k)
//   not fused  contract, reduce: F021 contraction-epilogue-off (gemm-sm90: 'reduce' to 'd_bv' runs over the members of a batched GEMM; cublaslt: 'reduce' is over 'd_v'; the library sums an operand, or the derivative of GELU; gemm-sm80: 'reduce' to 'd_bv' runs over the members of a batched GEMM)
#include "weft/reduce.cuh"
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int h = 16, b = 96, k = 128;              // extents
constexpr int width = 8;                            // elements a thread takes along k
constexpr int threadsPerRow = 512, rowsPerBlock = 1;
constexpr int steps = b * (k / width) / threadsPerRow;  // a thread's share of a row
constexpr int d_v_w = 589824;                       // stride of d_v along w
constexpr int d_v_h = 12288;                        // stride of d_v along h
constexpr int d_v_b = 128;                          // stride of d_v along b
constexpr int d_k_w = 589824;                       // stride of d_k along w
constexpr int d_k_h = 12288;                        // stride of d_k along h
constexpr int d_k_b = 128;                          // stride of d_k along b
constexpr int d_q_w = 589824;                       // stride of d_q along w
constexpr int d_q_h = 12288;                        // stride of d_q along h
constexpr int d_q_b = 128;                          // stride of d_q along b
}  // namespace

extern "C" __global__ void __launch_bounds__(rowsPerBlock * threadsPerRow)
reduce_x3_f16_64x16x96x128(const weft::half *__restrict__ d_v, const weft::half *__restrict__ d_k,
                           const weft::half *__restrict__ d_q, weft::half *__restrict__ d_bv,
                           weft::half *__restrict__ d_bk, weft::half *__restrict__ d_bq) {
  static_assert(h == 16 && b == 96 && k == 128, "plan.json: these extents");
  static_assert((1024 + rowsPerBlock - 1) / rowsPerBlock == 1024, "plan.json: 1024 blocks");
  static_assert(rowsPerBlock * threadsPerRow == 512, "plan.json: 512 threads a block");
  static_assert(width == 8 && threadsPerRow == 512 && rowsPerBlock == 1 && steps == 3, "plan.json: these knobs");
  static_assert(d_v_w == 589824 && d_v_h == 12288 && d_v_b == 128, "plan.json: strides of d_v");
  static_assert(d_k_w == 589824 && d_k_h == 12288 && d_k_b == 128, "plan.json: strides of d_k");
  static_assert(d_q_w == 589824 && d_q_h == 12288 && d_q_b == 128, "plan.json: strides of d_q");
  __shared__ float scratch[3][rowsPerBlock * threadsPerRow / 32];                 // a float a warp for each reduction
  const int lane = threadIdx.x;
  const int row = blockIdx.x;                                                                     // (w, h), w slowest
  const int at_w = row / h;
  const int at_h = row % h;
  const int start = at_w * d_v_w + at_h * d_v_h;
  const int start_2 = at_w * d_k_w + at_h * d_k_h;
  const int start_3 = at_w * d_q_w + at_h * d_q_h;

  weft::Packed<weft::half, width> d_v_row[steps];
  weft::Packed<weft::half, width> d_k_row[steps];
  weft::Packed<weft::half, width> d_q_row[steps];
#pragma unroll
  for (int v = 0; v < steps; ++v) {
    const int v_flat = v * threadsPerRow + lane;
    const int at_b = v_flat / (k / width);
    const int at_k = v_flat % (k / width) * width;
    d_v_row[v] = weft::loadPacked<width>(d_v + start + at_b * d_v_b + at_k);
    d_k_row[v] = weft::loadPacked<width>(d_k + start_2 + at_b * d_k_b + at_k);
    d_q_row[v] = weft::loadPacked<width>(d_q + start_3 + at_b * d_q_b + at_k);
  }

  float d_bv_out = 0.0f;
  float d_bk_out = 0.0f;
  float d_bq_out = 0.0f;
#pragma unroll
  for (int v = 0; v < steps; ++v) {
    const auto d_v_v = weft::unpack(d_v_row[v]);
    const auto d_k_v = weft::unpack(d_k_row[v]);
    const auto d_q_v = weft::unpack(d_q_row[v]);
#pragma unroll
    for (int e = 0; e < width; ++e) {
      d_bv_out += d_v_v.at[e];
      d_bk_out += d_k_v.at[e];
      d_bq_out += d_q_v.at[e];
    }
  }
  d_bv_out = weft::blockSum<threadsPerRow>(d_bv_out, scratch[0]);
  d_bk_out = weft::blockSum<threadsPerRow>(d_bk_out, scratch[1]);
  d_bq_out = weft::blockSum<threadsPerRow>(d_bq_out, scratch[2]);

  if (lane == 0) {
    weft::storeOne(d_bv + row, d_bv_out);
    weft::storeOne(d_bk + row, d_bk_out);
    weft::storeOne(d_bq + row, d_bq_out);
  }
}
