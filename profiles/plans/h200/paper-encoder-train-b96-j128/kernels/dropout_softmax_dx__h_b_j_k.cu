// dropout_softmax_dx__h_b_j_k    kernel 26 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %45 = dropout %44
//              %46 = softmax_dx %45, %8 over k
//   space      h=16 b=96 j=128 | k=128 (reduced)
//   reads      d_kept[h,b,j,k] f16   probability[h,b,j,k] f16    101 MB
//   writes     d_score[h,b,j,k] f16    50.3 MB
//   flop       126 Mflop
//   config     vector 8 x f16 along k, 16 lanes of a warp a row, 8 rows a block    launch <<<24576, 128>>>
//   fused by   fuse: reduction-consumer
//   not fused  contract, dropout, softmax_dx: F024 no-epilogue ('softmax_dx' is of class normalization; an epilogue is element-wise)
//   not fused  softmax, dropout, softmax_dx: F031 forward-and-backward (probability, d_score)
#include "weft/dropout.cuh"
#include "weft/reduce.cuh"
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int b = 96, j = 128, k = 128;             // extents
constexpr int width = 8;                            // elements a thread takes along k
constexpr int threadsPerRow = 16, rowsPerBlock = 8;
constexpr unsigned dropThreshold = 6554u;           // 0.1 of 65536 draws
constexpr float keepScale = 1.1111112f;
}  // namespace

extern "C" __global__ void __launch_bounds__(rowsPerBlock * threadsPerRow)
dropout_softmax_dx_f16_16x96x128x128(const weft::half *__restrict__ d_kept,
                                     const weft::half *__restrict__ probability, weft::half *__restrict__ d_score,
                                     const weft::DropoutKey *__restrict__ dropoutKey, unsigned dropoutStream) {
  static_assert(b == 96 && j == 128 && k == 128, "plan.json: these extents");
  static_assert((196608 + rowsPerBlock - 1) / rowsPerBlock == 24576, "plan.json: 24576 blocks");
  static_assert(rowsPerBlock * threadsPerRow == 128, "plan.json: 128 threads a block");
  static_assert(width == 8 && threadsPerRow == 16 && rowsPerBlock == 8, "plan.json: these knobs");
  const int lane = threadIdx.x % threadsPerRow;
  const int row = blockIdx.x * rowsPerBlock + threadIdx.x / threadsPerRow;                     // (h, b, j), h slowest
  const int at_h = row / (b * j);
  const int at_b = row / j % b;
  const int at_j = row % j;
  const int start = row * k;
  const weft::DropoutKey key = *dropoutKey;                           // seed and step: a replay must not repeat masks

  weft::Vec<float, width> d_probability;                                                          // kept on chip
  float total = 0.0f;
  const int at_k = lane * width;
  const auto d_kept_v = weft::loadVector<width>(d_kept + start + at_k);
  const auto kept = weft::keptColumnsPaired(key, dropoutStream, at_h * b + at_b, at_j, at_k, dropThreshold);
  const auto probability_v = weft::loadVector<width>(probability + start + at_k);
#pragma unroll
  for (int e = 0; e < width; ++e) {
    d_probability.at[e] = kept.at(e) ? d_kept_v.at[e] * keepScale : 0.0f;                         // %45
    const float product = d_probability.at[e] * probability_v.at[e];
    total += product;
  }
  total = weft::warpSum<threadsPerRow>(total);

  weft::Vec<float, width> d_score_out;
#pragma unroll
  for (int e = 0; e < width; ++e)
    d_score_out.at[e] = probability_v.at[e] * (d_probability.at[e] - total);                      // %46
  weft::storeVector<width>(d_score + start + at_k, d_score_out);
}
