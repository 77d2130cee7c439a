// layer_norm_dw_dropout_reduce__i    kernel 14 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %25, %25 = layer_norm_dw %d_norm2, %23, %24, %24 over b, j
//              %27 = dropout %26
//              %28 = reduce %27 over b, j
//   space      i=1024 | b=96 j=128 (reduced)
//   reads      d_norm2[b,j,i] f16   residual2[b,j,i] f16   mean2[b,j] f32   rstd2[b,j] f32   d_residual2[b,j,i] f16    75.6 MB
//   writes     d_gamma2[i] f16   d_beta2[i] f16   d_feed_forward[b,j,i] f16   d_b2[i] f16    25.2 MB
//   flop       75.5 Mflop
//   config     vector 16 x f16 along i, 64 threads a column, 8 columns a block, 16 blocks of the grid a column    launch <<<128, 512>>>
//   fused by   fuse: reduction-consumer + launch-merging
//   not fused  layer_norm_dw, scale, relu_dx, reduce: F012 reduction-axis-mismatch (b,j against b2,j2)
//   not fused  contract, bias, dropout, residual, layer_norm_dw: F031 forward-and-backward (feed_forward_product, d_gamma2)
#include "weft/dropout.cuh"
#include "weft/grid.cuh"
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int i = 1024, b = 96, j = 128;            // extents
constexpr int width = 16;                           // elements a thread takes along i
constexpr int threadsPerColumn = 64, columnsPerBlock = 8;
constexpr int blocksPerColumn = 16;
constexpr int parts = threadsPerColumn * blocksPerColumn;  // threads of the grid that share a column
constexpr int steps = b * j / parts;                // a thread's share of a column
constexpr unsigned dropThreshold = 6554u;           // 0.1 of 65536 draws
constexpr float keepScale = 1.1111112f;
__device__ weft::GridPartials<8, blocksPerColumn, 3 * columnsPerBlock * width> acrossBlocks;
}  // namespace

extern "C" __global__ void __launch_bounds__(columnsPerBlock * threadsPerColumn)
layer_norm_dw_dropout_reduce_f16_96x128x1024(const weft::half *__restrict__ d_norm2,
                                             const weft::half *__restrict__ residual2,
                                             const float *__restrict__ mean2, const float *__restrict__ rstd2,
                                             const weft::half *__restrict__ d_residual2,
                                             weft::half *__restrict__ d_gamma2, weft::half *__restrict__ d_beta2,
                                             weft::half *__restrict__ d_feed_forward, weft::half *__restrict__ d_b2,
                                             const weft::DropoutKey *__restrict__ dropoutKey,
                                             unsigned dropoutStream) {
  static_assert(b == 96 && j == 128 && i == 1024, "plan.json: these extents");
  static_assert((1024 / width + columnsPerBlock - 1) / columnsPerBlock * blocksPerColumn == 128, "plan.json: 128 blocks");
  static_assert(columnsPerBlock * threadsPerColumn == 512, "plan.json: 512 threads a block");
  static_assert(width == 16 && threadsPerColumn == 64 && columnsPerBlock == 8 && blocksPerColumn == 16 && parts == 1024 && steps == 12, "plan.json: these knobs");
  static_assert(sizeof(acrossBlocks) == sizeof(weft::GridPartials<8, blocksPerColumn, 3 * columnsPerBlock * width>), "plan.json: device memory");
  __shared__ weft::GridScratch<columnsPerBlock, threadsPerColumn, width, 3> scratch;
  const int part = blockIdx.x % blocksPerColumn * threadsPerColumn + threadIdx.x / columnsPerBlock;
  // (i), 16 of i at once
  const int column = blockIdx.x / blocksPerColumn * columnsPerBlock + threadIdx.x % columnsPerBlock;
  const int at_i = column * width;
  const weft::DropoutKey key = *dropoutKey;                           // seed and step: a replay must not repeat masks

  weft::Vec<float, width> d_gamma2_out = {};
  weft::Vec<float, width> d_beta2_out = {};
  weft::Vec<float, width> d_b2_out = {};
  constexpr int stepsInFlight = 2;
  constexpr int batches = steps / stepsInFlight;
#pragma unroll 1
  for (int batch = 0; batch < batches; ++batch) {
    weft::Packed<weft::half, width> d_norm2_row[stepsInFlight];
    weft::Packed<weft::half, width> residual2_row[stepsInFlight];
    float mean2_row[stepsInFlight];
    float rstd2_row[stepsInFlight];
    weft::Packed<weft::half, width> d_residual2_row[stepsInFlight];
#pragma unroll
    for (int n = 0; n < stepsInFlight; ++n) {
      const int v = batch * stepsInFlight + n;
      const int v_flat = v * parts + part;
      d_norm2_row[n] = weft::loadPacked<width>(d_norm2 + at_i + v_flat * i);
      residual2_row[n] = weft::loadPacked<width>(residual2 + at_i + v_flat * i);
      mean2_row[n] = weft::loadOne(mean2 + v_flat);
      rstd2_row[n] = weft::loadOne(rstd2 + v_flat);
      d_residual2_row[n] = weft::loadPacked<width>(d_residual2 + at_i + v_flat * i);
    }
#pragma unroll
    for (int n = 0; n < stepsInFlight; ++n) {
      const int v = batch * stepsInFlight + n;
      const int v_flat = v * parts + part;
      const int at_b = v_flat / j;
      const int at_j = v_flat % j;
      const auto d_norm2_v = weft::unpack(d_norm2_row[n]);
      const auto residual2_v = weft::unpack(residual2_row[n]);
      const auto d_residual2_v = weft::unpack(d_residual2_row[n]);
      const auto kept = weft::keptColumns<width>(key, dropoutStream, at_b, at_j, at_i, dropThreshold);
      weft::Vec<float, width> d_feed_forward_out;
#pragma unroll
      for (int e = 0; e < width; ++e) {
        const float normalized = (residual2_v.at[e] - mean2_row[n]) * rstd2_row[n];
        const float product = d_norm2_v.at[e] * normalized;
        d_feed_forward_out.at[e] = kept.at(e) ? d_residual2_v.at[e] * keepScale : 0.0f;           // %27
        d_gamma2_out.at[e] += product;
        d_beta2_out.at[e] += d_norm2_v.at[e];
        d_b2_out.at[e] += d_feed_forward_out.at[e];
      }
      weft::storeVector<width>(d_feed_forward + at_i + v_flat * i, d_feed_forward_out);
    }
  }
  if (!weft::gridColumnSums(scratch, acrossBlocks, d_gamma2_out, d_beta2_out, d_b2_out)) return;

  if (threadIdx.x < columnsPerBlock) {
    weft::storeVector<width>(d_gamma2 + at_i, d_gamma2_out);
    weft::storeVector<width>(d_beta2 + at_i, d_beta2_out);
    weft::storeVector<width>(d_b2 + at_i, d_b2_out);
  }
}
