// transpose_d_q__p_h_b_j    kernel 25 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %d_q_moved = identity %d_q
//   space      p=64 h=16 b=8 j=512
//   reads      d_q[h,b,j,p] f16    8.39 MB
//   writes     d_q_moved[p,h,b,j] f16    8.39 MB
//   config     tile 64 x 64, vector 8, 256 threads a block    launch <<<1024, 256>>>
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int tile_h_b_j = 64, tile_p = 64;         // of the tile
constexpr int readWidth = 8, writeWidth = 8;        // elements an access
constexpr int threads = 256;                        // a block
constexpr int pitch = 64, gap = 2;                  // elements of the tile between gaps, of a gap
constexpr int d_q_h_b_j = 64;                       // strides of d_q
constexpr int d_q_moved_p = 196608;                 // strides of d_q_moved
constexpr int share = tile_p * tile_h_b_j;          // elements of a tile
}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
transpose_f16_64x16x8x512(const weft::half *__restrict__ d_q, weft::half *__restrict__ d_q_moved) {
  static_assert(((65536 + tile_h_b_j - 1) / tile_h_b_j) * ((64 + tile_p - 1) / tile_p) * 1 == 1024, "plan.json: 1024 blocks");
  static_assert(threads == 256, "plan.json: 256 threads a block");
  static_assert(tile_h_b_j == 64 && tile_p == 64 && readWidth == 8 && writeWidth == 8 && pitch == 64 && gap == 2 && share == 4096, "plan.json: these knobs");
  static_assert(d_q_h_b_j == 64, "plan.json: strides of d_q");
  static_assert(d_q_moved_p == 196608, "plan.json: strides of d_q_moved");
  __shared__ weft::half tile[share + share / pitch * gap];
  const int at_h_b_j = blockIdx.x * tile_h_b_j;

#pragma unroll
  for (int s = 0; s < (share / readWidth + threads - 1) / threads; ++s) {
    const int flat = s * threads + threadIdx.x;
    const int in_p = flat % (tile_p / readWidth) * readWidth;
    const int in_h_b_j = flat / (tile_p / readWidth);
    const int position = flat * readWidth;
    const int slot = position + position / pitch * gap;
    const auto packed = weft::loadPacked<readWidth>(d_q + (at_h_b_j + in_h_b_j) * d_q_h_b_j + in_p);
#pragma unroll
    for (int e = 0; e < readWidth; ++e)
      tile[slot + e] = packed.at[e];
  }
  weft::ptx::barrier();
#pragma unroll
  for (int s = 0; s < (share / writeWidth + threads - 1) / threads; ++s) {
    const int flat = s * threads + threadIdx.x;
    const int in_h_b_j = flat % (tile_h_b_j / writeWidth) * writeWidth;
    const int in_p = flat / (tile_h_b_j / writeWidth);
    const int position = in_p + in_h_b_j * tile_p;
    const int slot = position + position / pitch * gap;
    weft::Packed<weft::half, writeWidth> packed;
#pragma unroll
    for (int e = 0; e < writeWidth; ++e)
      packed.at[e] = tile[slot + e * (pitch + gap)];
    weft::storePacked<writeWidth>(d_q_moved + (at_h_b_j + in_h_b_j) + in_p * d_q_moved_p, packed);
  }
}
