// lengths    (this header is not hashed)
//
//   ops        y = lengths mask
//   space      b=8 | j=512 (reduced)
//   reads      mask[b,j] i1    4.10 kB
//   writes     y[b] i32    32 B
//   flop       8.00 flop
//   config     vector 4 x i32 along j, 8 lanes of a warp a row, 8 rows a block    launch <<<1, 64>>>
#include "weft/argument_status.cuh"
#include "weft/math.cuh"
#include "weft/reduce.cuh"
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int j = 512;                              // extents
constexpr int width = 4;                            // elements a thread takes along j
constexpr int threadsPerRow = 8, rowsPerBlock = 8;
constexpr int steps = j / (width * threadsPerRow);  // a thread's share of a row
}  // namespace

extern "C" __global__ void __launch_bounds__(rowsPerBlock * threadsPerRow)
lengths_i32_8x512(const unsigned char *__restrict__ mask, int *__restrict__ y,
                  weft::ArgumentStatus *__restrict__ status) {
  static_assert(j == 512, "plan.json: these extents");
  static_assert((8 + rowsPerBlock - 1) / rowsPerBlock == 1, "plan.json: 1 blocks");
  static_assert(rowsPerBlock * threadsPerRow == 64, "plan.json: 64 threads a block");
  static_assert(width == 4 && threadsPerRow == 8 && rowsPerBlock == 8 && steps == 16, "plan.json: these knobs");
  const int lane = threadIdx.x % threadsPerRow;
  const int row = blockIdx.x * rowsPerBlock + threadIdx.x / threadsPerRow;                        // (b)
  const int start = row * j;

  weft::Packed<unsigned char, width> mask_row[steps];
#pragma unroll
  for (int v = 0; v < steps; ++v) {
    const int at_j = (v * threadsPerRow + lane) * width;
    mask_row[v] = weft::loadPacked<width>(mask + start + at_j);
  }

  float tokens = 0.0f;
  float end = weft::negativeInfinity;
#pragma unroll
  for (int v = 0; v < steps; ++v) {
    const int at_j = (v * threadsPerRow + lane) * width;
    const auto mask_v = weft::unpack(mask_row[v]);
#pragma unroll
    for (int e = 0; e < width; ++e) {
      const float is_token = mask_v.at[e] != 0 ? 1.0f : 0.0f;
      const float behind = mask_v.at[e] != 0 ? static_cast<float>((at_j + e) + 1) : 0.0f;
      tokens += is_token;
      end = weft::maximum(end, behind);
    }
  }
  tokens = weft::warpSum<threadsPerRow>(tokens);
  end = weft::warpMax<threadsPerRow>(end);

  const int y_out = weft::checkedPrefix(static_cast<int>(tokens), static_cast<int>(end), row, status);  // %20
  if (lane == 0)
    weft::storeOne(y + row, y_out);
}
