// dummy_copy    (this header is not hashed)
//
//   ops        y = identity x
//   space      b=8 j=512
//   reads      x[b,j] f16    8.19 kB
//   writes     y[b,j] f16    8.19 kB
//   config     dense copy by 256 threads a block    launch <<<16, 256>>>
#include "weft/dummy_copy.cuh"

extern "C" __global__ void __launch_bounds__(256)
copy_f16_8x512(const weft::half *__restrict__ x, weft::half *__restrict__ y) {
  const int at = blockIdx.x * 256 + threadIdx.x;
  weft::copyElement(y, x, at, 4096);
}
