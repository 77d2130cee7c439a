// workspace_relu    (this header is not hashed)
//
//   ops        y = relu x
//   space      b=8 j=512
//   reads      x[b,j] f16    8.19 kB
//   writes     y[b,j] f16    8.19 kB
//   workspace  32.8 kB
//   config     relu through a workspace in 2 rounds    launch <<<32, 128>>>
#include "weft/workspace_relu.cuh"

extern "C" __global__ void __launch_bounds__(128)
relu_f16_8x512(const weft::half *__restrict__ x, weft::half *__restrict__ y, float *__restrict__ places) {
  const int at = blockIdx.x * 128 + threadIdx.x;
  weft::reluThrough<2>(y, x, places, at, 4096);
}
