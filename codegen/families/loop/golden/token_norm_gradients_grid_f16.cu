// token_norm_gradients    (this header is not hashed)
//
//   ops        terms = mask dy, offsets
//              dgamma, dbeta = layer_norm_dw terms, x, mean, rstd
//              other_terms = mask other, offsets
//              dbias = reduce other_terms
//   space      n=9 i=1024 | t=4096 (reduced)
//   reads      dy[t,i] f16   x[t,i] f16   mean[t] f32   rstd[t] f32   offsets[n] i32   other[t,i] f16    25.2 MB
//   writes     dgamma[i] f16   dbeta[i] f16   dbias[i] f16    6.14 kB
//   flop       8.39 Mflop
//   config     vector 8 x f16 along i, 16 threads a column, 16 columns a block, 16 blocks of the grid a column    launch <<<128, 256>>>
#include "weft/grid.cuh"
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int i = 1024, t = 4096;                   // extents
constexpr int width = 8;                            // elements a thread takes along i
constexpr int threadsPerColumn = 16, columnsPerBlock = 16;
constexpr int blocksPerColumn = 16;
constexpr int parts = threadsPerColumn * blocksPerColumn;  // threads of the grid that share a column
constexpr int steps = t / parts;                    // a thread's share of a column
__device__ weft::GridPartials<8, blocksPerColumn, 3 * columnsPerBlock * width> acrossBlocks;
}  // namespace

extern "C" __global__ void __launch_bounds__(columnsPerBlock * threadsPerColumn)
mask_layer_norm_dw_mask_reduce_f16_4096x1024(const weft::half *__restrict__ dy, const weft::half *__restrict__ x,
                                             const float *__restrict__ mean, const float *__restrict__ rstd,
                                             const int *__restrict__ offsets, const weft::half *__restrict__ other,
                                             weft::half *__restrict__ dgamma, weft::half *__restrict__ dbeta,
                                             weft::half *__restrict__ dbias) {
  static_assert(t == 4096 && i == 1024, "plan.json: these extents");
  static_assert((1024 / width + columnsPerBlock - 1) / columnsPerBlock * blocksPerColumn == 128, "plan.json: 128 blocks");
  static_assert(columnsPerBlock * threadsPerColumn == 256, "plan.json: 256 threads a block");
  static_assert(width == 8 && threadsPerColumn == 16 && columnsPerBlock == 16 && blocksPerColumn == 16 && parts == 256 && steps == 16, "plan.json: these knobs");
  static_assert(sizeof(acrossBlocks) == sizeof(weft::GridPartials<8, blocksPerColumn, 3 * columnsPerBlock * width>), "plan.json: device memory");
  __shared__ weft::GridScratch<columnsPerBlock, threadsPerColumn, width, 3> scratch;
  const int part = blockIdx.x % blocksPerColumn * threadsPerColumn + threadIdx.x / columnsPerBlock;
  // (i), 8 of i at once
  const int column = blockIdx.x / blocksPerColumn * columnsPerBlock + threadIdx.x % columnsPerBlock;
  const int at_i = column * width;
  const auto tokens = weft::loadOne(offsets + 8);

  const auto offsets_e = weft::loadOne(offsets + 8);
  weft::Vec<float, width> dgamma_out = {};
  weft::Vec<float, width> dbeta_out = {};
  weft::Vec<float, width> dbias_out = {};
  constexpr int stepsInFlight = 4;
  constexpr int batches = steps / stepsInFlight;
#pragma unroll 1
  for (int batch = 0; batch < batches; ++batch) {
    weft::Packed<weft::half, width> dy_row[stepsInFlight];
    weft::Packed<weft::half, width> x_row[stepsInFlight];
    float mean_row[stepsInFlight];
    float rstd_row[stepsInFlight];
    weft::Packed<weft::half, width> other_row[stepsInFlight];
#pragma unroll
    for (int n_2 = 0; n_2 < stepsInFlight; ++n_2) {
      const int v = batch * stepsInFlight + n_2;
      const int at_t = v * parts + part;
      if (at_t < tokens) {
        dy_row[n_2] = weft::loadPacked<width>(dy + at_i + at_t * i);
        x_row[n_2] = weft::loadPacked<width>(x + at_i + at_t * i);
        mean_row[n_2] = weft::loadOne(mean + at_t);
        rstd_row[n_2] = weft::loadOne(rstd + at_t);
        other_row[n_2] = weft::loadPacked<width>(other + at_i + at_t * i);
      }
    }
#pragma unroll
    for (int n_2 = 0; n_2 < stepsInFlight; ++n_2) {
      const int v = batch * stepsInFlight + n_2;
      const int at_t = v * parts + part;
      if (at_t < tokens) {
        const auto dy_v = weft::unpack(dy_row[n_2]);
        const auto x_v = weft::unpack(x_row[n_2]);
        const auto other_v = weft::unpack(other_row[n_2]);
#pragma unroll
        for (int e = 0; e < width; ++e) {
          const float terms = at_t < offsets_e ? dy_v.at[e] : 0.0f;                               // %20
          const float normalized = (x_v.at[e] - mean_row[n_2]) * rstd_row[n_2];
          const float product = terms * normalized;
          const float other_terms = at_t < offsets_e ? other_v.at[e] : 0.0f;                      // %22
          dgamma_out.at[e] += product;
          dbeta_out.at[e] += terms;
          dbias_out.at[e] += other_terms;
        }
      }
    }
  }
  if (!weft::gridColumnSums(scratch, acrossBlocks, dgamma_out, dbeta_out, dbias_out)) return;

  if (threadIdx.x < columnsPerBlock) {
    weft::storeVector<width>(dgamma + at_i, dgamma_out);
    weft::storeVector<width>(dbeta + at_i, dbeta_out);
    weft::storeVector<width>(dbias + at_i, dbias_out);
  }
}
