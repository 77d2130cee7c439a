// mma.sync of a warp: what lanes give, and what each makes of it. Compiled with optimization, apart
// from the kernels, which call it hundreds of thousands of times.
#pragma once

namespace weft::emulate {

/// What a lane holds of both operands of mma.sync, as fp32: of m16n8k16 all, the elements of a
/// register side by side; of m16n8k8 the first half of each.
struct MmaOperands {
  float a[8], b[4];
};

/// Adds the lane's four elements of the product to its accumulators, in fp64, the smallest k first,
/// and rounds once: products are exact, and sums are exact enough.
void multiplyAccumulate16(float (&sums)[4], const MmaOperands &own, const char *file, int line);
void multiplyAccumulate8(float (&sums)[4], const MmaOperands &own, const char *file, int line);

}  // namespace weft::emulate
