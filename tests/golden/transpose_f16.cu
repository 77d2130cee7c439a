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
constexpr int h = 16, j = 512, p = 64;              // extents
constexpr int side = 64, threads = 256;             // of the tile; of a block
constexpr int readWidth = 8, writeWidth = 8;        // elements an access
constexpr int tiles_j = (j + side - 1) / side, tiles_p = (p + side - 1) / side;  // along each axis
constexpr int x_b = 524288, x_h = 32768, x_p = 512;  // strides of x
constexpr int y_b = 524288, y_h = 32768, y_j = 64;  // strides of y
}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
transpose(const weft::half *__restrict__ x, weft::half *__restrict__ y) {
  __shared__ weft::half tile[side][side + 2];
  const int at_j = blockIdx.x % tiles_j * side;
  const int at_p = blockIdx.x / tiles_j % tiles_p * side;
  const int batch = blockIdx.x / (tiles_j * tiles_p);
  const int at_b = batch / h;
  const int at_h = batch % h;

#pragma unroll
  for (int s = 0; s < (side * side / readWidth + threads - 1) / threads; ++s) {
    const int flat = s * threads + threadIdx.x;
    const int in_j = flat % (side / readWidth) * readWidth;
    const int in_p = flat / (side / readWidth);
    const auto packed = weft::loadPacked<readWidth>(x + at_b * x_b + at_h * x_h + (at_j + in_j) + (at_p + in_p) * x_p);
#pragma unroll
    for (int e = 0; e < readWidth; ++e)
      tile[in_p][in_j + e] = packed.at[e];
  }
  weft::ptx::barrier();
#pragma unroll
  for (int s = 0; s < (side * side / writeWidth + threads - 1) / threads; ++s) {
    const int flat = s * threads + threadIdx.x;
    const int in_p = flat % (side / writeWidth) * writeWidth;
    const int in_j = flat / (side / writeWidth);
    weft::Packed<weft::half, writeWidth> packed;
#pragma unroll
    for (int e = 0; e < writeWidth; ++e)
      packed.at[e] = tile[in_p + e][in_j];
    weft::storePacked<writeWidth>(y + at_b * y_b + at_h * y_h + (at_j + in_j) * y_j + (at_p + in_p), packed);
  }
}
