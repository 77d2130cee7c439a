// transpose_d_weighted__h_b_j_w    kernel 20 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %d_weighted_moved = identity %d_weighted
//   space      w=64 h=16 b=8 j=512
//   reads      d_weighted[w,h,b,j] f16    8.39 MB
//   writes     d_weighted_moved[h,b,j,w] f16    8.39 MB
//   config     tile 64 x 64, vector 4, 256 threads a block    launch <<<1024, 256>>>
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int tile_w = 64, tile_h_b_j = 64;         // of the tile
constexpr int readWidth = 4, writeWidth = 4;        // elements an access
constexpr int threads = 256;                        // a block
constexpr int pitch = 64, gap = 2;                  // elements of the tile between gaps, of a gap
constexpr int d_weighted_w = 65536;                 // strides of d_weighted
constexpr int d_weighted_moved_h_b_j = 64;          // strides of d_weighted_moved
constexpr int share = tile_h_b_j * tile_w;          // elements of a tile
}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
transpose_f16_64x16x8x512(const weft::half *__restrict__ d_weighted, weft::half *__restrict__ d_weighted_moved) {
  static_assert(((64 + tile_w - 1) / tile_w) * ((65536 + tile_h_b_j - 1) / tile_h_b_j) * 1 == 1024, "plan.json: 1024 blocks");
  static_assert(threads == 256, "plan.json: 256 threads a block");
  static_assert(tile_w == 64 && tile_h_b_j == 64 && readWidth == 4 && writeWidth == 4 && pitch == 64 && gap == 2 && share == 4096, "plan.json: these knobs");
  static_assert(d_weighted_w == 65536, "plan.json: strides of d_weighted");
  static_assert(d_weighted_moved_h_b_j == 64, "plan.json: strides of d_weighted_moved");
  __shared__ weft::half tile[share + share / pitch * gap];
  const int at_h_b_j = blockIdx.x * tile_h_b_j;

#pragma unroll
  for (int s = 0; s < (share / readWidth + threads - 1) / threads; ++s) {
    const int flat = s * threads + threadIdx.x;
    const int in_h_b_j = flat % (tile_h_b_j / readWidth) * readWidth;
    const int in_w = flat / (tile_h_b_j / readWidth);
    const int position = flat * readWidth;
    const int slot = position + position / pitch * gap;
    const auto packed = weft::loadPacked<readWidth>(d_weighted + in_w * d_weighted_w + (at_h_b_j + in_h_b_j));
#pragma unroll
    for (int e = 0; e < readWidth; ++e)
      tile[slot + e] = packed.at[e];
  }
  weft::ptx::barrier();
#pragma unroll
  for (int s = 0; s < (share / writeWidth + threads - 1) / threads; ++s) {
    const int flat = s * threads + threadIdx.x;
    const int in_w = flat % (tile_w / writeWidth) * writeWidth;
    const int in_h_b_j = flat / (tile_w / writeWidth);
    const int position = in_h_b_j + in_w * tile_h_b_j;
    const int slot = position + position / pitch * gap;
    weft::Packed<weft::half, writeWidth> packed;
#pragma unroll
    for (int e = 0; e < writeWidth; ++e)
      packed.at[e] = tile[slot + e * (pitch + gap)];
    weft::storePacked<writeWidth>(d_weighted_moved + in_w + (at_h_b_j + in_h_b_j) * d_weighted_moved_h_b_j, packed);
  }
}
