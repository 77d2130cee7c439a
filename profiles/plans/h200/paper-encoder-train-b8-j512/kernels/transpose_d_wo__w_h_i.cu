// transpose_d_wo__w_h_i    kernel 36 of paper-encoder, backward    (this header is not hashed)
//
//   ops        %d_wo_moved = identity %d_wo
//   space      w=64 h=16 i=1024
//   reads      d_wo[i,h,w] f16    2.10 MB
//   writes     d_wo_moved[w,h,i] f16    2.10 MB
//   config     tile 32 x 32, vector 4, 256 threads a block    launch <<<1024, 256>>>
#include "weft/types.cuh"
#include "weft/vector.cuh"

namespace {
constexpr int i = 1024, w = 64;                     // extents
constexpr int tile_i = 32, tile_w = 32;             // of the tile
constexpr int readWidth = 4, writeWidth = 4;        // elements an access
constexpr int threads = 256;                        // a block
constexpr int pitch = 32, gap = 2;                  // elements of the tile between gaps, of a gap
constexpr int tiles_i = i / tile_i, tiles_w = w / tile_w;  // along each axis
constexpr int d_wo_i = 1024, d_wo_h = 64;           // strides of d_wo
constexpr int d_wo_moved_h = 1024, d_wo_moved_w = 16384;  // strides of d_wo_moved
constexpr int share = tile_w * tile_i;              // elements of a tile
}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
transpose_f16_64x16x1024(const weft::half *__restrict__ d_wo, weft::half *__restrict__ d_wo_moved) {
  static_assert(i == 1024 && w == 64, "plan.json: these extents");
  static_assert(((1024 + tile_i - 1) / tile_i) * ((64 + tile_w - 1) / tile_w) * 16 == 1024, "plan.json: 1024 blocks");
  static_assert(threads == 256, "plan.json: 256 threads a block");
  static_assert(tile_i == 32 && tile_w == 32 && readWidth == 4 && writeWidth == 4 && pitch == 32 && gap == 2 && tiles_i == 32 && tiles_w == 2 && share == 1024, "plan.json: these knobs");
  static_assert(d_wo_i == 1024 && d_wo_h == 64, "plan.json: strides of d_wo");
  static_assert(d_wo_moved_h == 1024 && d_wo_moved_w == 16384, "plan.json: strides of d_wo_moved");
  __shared__ weft::half tile[share + share / pitch * gap];
  const int at_w = blockIdx.x % tiles_w * tile_w;
  const int at_i = blockIdx.x / tiles_w % tiles_i * tile_i;
  const int at_h = blockIdx.x / (tiles_w * tiles_i);

#pragma unroll
  for (int s = 0; s < (share / readWidth + threads - 1) / threads; ++s) {
    const int flat = s * threads + threadIdx.x;
    const int in_w = flat % (tile_w / readWidth) * readWidth;
    const int in_i = flat / (tile_w / readWidth);
    const int position = flat * readWidth;
    const int slot = position + position / pitch * gap;
    const auto packed = weft::loadPacked<readWidth>(d_wo + (at_i + in_i) * d_wo_i + at_h * d_wo_h + (at_w + in_w));
#pragma unroll
    for (int e = 0; e < readWidth; ++e)
      tile[slot + e] = packed.at[e];
  }
  weft::ptx::barrier();
#pragma unroll
  for (int s = 0; s < (share / writeWidth + threads - 1) / threads; ++s) {
    const int flat = s * threads + threadIdx.x;
    const int in_i = flat % (tile_i / writeWidth) * writeWidth;
    const int in_w = flat / (tile_i / writeWidth);
    const int position = in_w + in_i * tile_w;
    const int slot = position + position / pitch * gap;
    weft::Packed<weft::half, writeWidth> packed;
#pragma unroll
    for (int e = 0; e < writeWidth; ++e)
      packed.at[e] = tile[slot + e * (pitch + gap)];
    weft::storePacked<writeWidth>(d_wo_moved + (at_i + in_i) + at_h * d_wo_moved_h + (at_w + in_w) * d_wo_moved_w,
        packed);
  }
}
