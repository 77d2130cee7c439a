// transpose    (this header is not hashed)
//
//   ops        y = identity x
//   space      b=8 h=16 j=512 p=64
//   reads      x[b,h,p,j] f16    8.39 MB
//   writes     y[b,h,j,p] f16    8.39 MB
//   config     tile 64 x 64, vector 8, 256 threads a block    launch <<<1024, 256>>>
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int j = 512;                              // extents
constexpr int tile_p = 64, tile_j = 64;             // of the tile
constexpr int readWidth = 8, writeWidth = 8;        // elements an access
constexpr int threads = 256;                        // a block
constexpr int pitch = 64, gap = 2;                  // elements of the tile between gaps, of a gap
constexpr int tiles_j = j / tile_j;                 // along each axis
constexpr int x_b_h = 32768, x_p = 512;             // strides of x
constexpr int y_b_h = 32768, y_j = 64;              // strides of y
constexpr int share = tile_j * tile_p;              // elements of a tile
}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
transpose_f16_8x16x512x64(const weft::half *__restrict__ x, weft::half *__restrict__ y) {
  static_assert(j == 512, "plan.json: these extents");
  static_assert(((64 + tile_p - 1) / tile_p) * ((512 + tile_j - 1) / tile_j) * 128 == 1024, "plan.json: 1024 blocks");
  static_assert(threads == 256, "plan.json: 256 threads a block");
  static_assert(tile_p == 64 && tile_j == 64 && readWidth == 8 && writeWidth == 8 && pitch == 64 && gap == 2 && tiles_j == 8 && share == 4096, "plan.json: these knobs");
  static_assert(x_b_h == 32768 && x_p == 512, "plan.json: strides of x");
  static_assert(y_b_h == 32768 && y_j == 64, "plan.json: strides of y");
  __shared__ weft::half tile[share + share / pitch * gap];
  const int at_j = blockIdx.x % tiles_j * tile_j;
  const int at_b_h = blockIdx.x / tiles_j;

#pragma unroll
  for (int s = 0; s < (share / readWidth + threads - 1) / threads; ++s) {
    const int flat = s * threads + threadIdx.x;
    const int in_j = flat % (tile_j / readWidth) * readWidth;
    const int in_p = flat / (tile_j / readWidth);
    const int position = flat * readWidth;
    const int slot = position + position / pitch * gap;
    const auto packed = weft::loadPacked<readWidth>(x + at_b_h * x_b_h + in_p * x_p + (at_j + in_j));
#pragma unroll
    for (int e = 0; e < readWidth; ++e)
      tile[slot + e] = packed.at[e];
  }
  weft::ptx::barrier();
#pragma unroll
  for (int s = 0; s < (share / writeWidth + threads - 1) / threads; ++s) {
    const int flat = s * threads + threadIdx.x;
    const int in_p = flat % (tile_p / writeWidth) * writeWidth;
    const int in_j = flat / (tile_p / writeWidth);
    const int position = in_j + in_p * tile_j;
    const int slot = position + position / pitch * gap;
    weft::Packed<weft::half, writeWidth> packed;
#pragma unroll
    for (int e = 0; e < writeWidth; ++e)
      packed.at[e] = tile[slot + e * (pitch + gap)];
    weft::storePacked<writeWidth>(y + at_b_h * y_b_h + in_p + (at_j + in_j) * y_j, packed);
  }
}
