// offsets    (this header is not hashed)
//
//   ops        y = offsets lengths
//   space      n=9 | b=8 (reduced)
//   reads      lengths[b] i32    32 B
//   writes     y[n] i32    36 B
//   flop       9.00 flop
//   config     one element a thread along n, one thread a row, 64 threads a block    launch <<<1, 64>>>
#include "weft/argument_status.cuh"
#include "weft/reduce.cuh"
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int n = 9, b = 8;                         // extents
constexpr int threads = 64;                         // a block, one for each row
constexpr int rows = n;
constexpr int steps = b;                            // a thread's share of a row
constexpr int bound = 512;
}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
offsets_i32_9(const int *__restrict__ lengths, int *__restrict__ y, weft::ArgumentStatus *__restrict__ status) {
  static_assert(b == 8 && n == 9, "plan.json: these extents");
  static_assert((9 + threads - 1) / threads == 1, "plan.json: 1 blocks");
  static_assert(threads == 64, "plan.json: 64 threads a block");
  static_assert(rows == 9 && steps == 8 && bound == 512, "plan.json: these knobs");
  const int row = blockIdx.x * threads + threadIdx.x;                                             // (n)
  if (row >= rows) return;

  float tokens_before = 0.0f;
#pragma unroll
  for (int v = 0; v < steps; ++v) {
    const int at_b = v;
    const auto lengths_e = weft::loadOne(lengths + at_b);
    const float length = at_b < row ? static_cast<float>(weft::checkedLength(lengths_e, bound, at_b, status)) : 0.0f;
    tokens_before += length;
  }

  const int y_out = static_cast<int>(tokens_before);                                              // %20
  weft::storeOne(y + row, y_out);
}
