// gather    (this header is not hashed)
//
//   ops        y = gather table, ids
//   space      w=40 b=8 j=512 i=1024
//   reads      table[w,i] f16   ids[b,j] i32    98.3 kB
//   writes     y[b,j,i] f16    8.39 MB
//   flop       4.19 Mflop
//   config     vector 8 x f16 along i, 128 threads a block    launch <<<4096, 128>>>
#include "weft/argument_status.cuh"
#include "weft/index_status.cuh"
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int i = 1024, w = 40;                     // extents
constexpr int width = 8;                            // elements a thread takes along i
constexpr int threads = 128;                        // a block
}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
gather_f16_8x512x1024(const weft::half *__restrict__ table, const int *__restrict__ ids, weft::half *__restrict__ y,
                      weft::ArgumentStatus *__restrict__ status) {
  static_assert(w == 40 && i == 1024, "plan.json: these extents");
  static_assert((1024 / width * 4096 + threads - 1) / threads == 4096, "plan.json: 4096 blocks");
  static_assert(threads == 128, "plan.json: 128 threads a block");
  static_assert(width == 8, "plan.json: these knobs");
  const int point = blockIdx.x * threads + threadIdx.x;                        // (b, j, i), b slowest, 8 of i at once
  const int at_b_j = point / (i / width);
  const int at_i = point % (i / width) * width;
  const int start = point * width;

  const auto ids_e = weft::loadOne(ids + at_b_j);
  const int row_index = weft::checkedIndex(ids_e, w, at_b_j, status);
  const auto table_v = weft::loadVector<width>(table + at_i + row_index * i);
  weft::Vec<float, width> y_out;
#pragma unroll
  for (int e = 0; e < width; ++e)
    y_out.at[e] = weft::isIndex(ids_e, w) ? table_v.at[e] : weft::notANumber;                     // %20
  weft::storeVector<width>(y + start, y_out);
}
