// scatter_add    (this header is not hashed)
//
//   ops        table = scatter_add rows, ids
//   space      w=30522 i=1024 | b=8 j=512 (reduced)
//   reads      rows[b,j,i] f16   ids[b,j] i32    8.40 MB
//   writes     table[w,i] f16    62.5 MB
//   flop       31.3 Mflop
//   config     vector 8 x f16 along i, one warp a row, 8 rows a block    launch <<<(4, 954, 1), 256>>>
#include "weft/scatter.cuh"
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int i = 1024, b = 8, j = 512, w = 30522;  // extents
constexpr int width = 8;                            // elements a thread takes along i
constexpr int columnsPerBlock = 32;
}  // namespace

extern "C" __global__ void __launch_bounds__(256)
scatter_add_f16_30522x1024(const weft::half *__restrict__ rows, const int *__restrict__ ids,
                           weft::half *__restrict__ table) {
  static_assert(w == 30522 && i == 1024 && b == 8 && j == 512, "plan.json: these extents");
  static_assert((1024 / width + columnsPerBlock - 1) / columnsPerBlock == 4, "plan.json: 4 blocks");
  static_assert(width == 8 && columnsPerBlock == 32, "plan.json: these knobs");
  __shared__ weft::ScatterScratch<8, width> scratch;
  const int column = blockIdx.x * columnsPerBlock + threadIdx.x % columnsPerBlock;              // (i), 8 of i at once
  const int at_i = column * width;
  const int firstRow = blockIdx.y * 32;                                                   // of the table; the block's
  constexpr int positions = b * j;

  const auto indexAt = [=](int position) {
    const int at_b = position / j;
    const int at_j = position % j;
    const auto found = weft::loadOne(ids + at_b * j + at_j);
    return found;
  };
  const auto load = [=](int position) {
    const int at_b = position / j;
    const int at_j = position % j;
    const auto found = weft::loadVector<width>(rows + at_i + at_b * (j * i) + at_j * i);
    return found;
  };
  const auto store = [=](int tableRow, const auto &sum) {
    if (tableRow < w)
      weft::storeVector<width>(table + at_i + tableRow * i, sum);
  };
  weft::scatterRows(scratch, firstRow, positions, indexAt, load, store);
}
