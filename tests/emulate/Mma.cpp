// Which lane holds which element of the operands (PTX ISA, "Matrix Fragments"); see Mma.h.
#include "tests/emulate/Mma.h"

#include "tests/emulate/emulate_cuda.h"

namespace weft::emulate {
namespace {

/// Registers of an operand hold so many neighbours along k: 2 of 16 bits, or one of tf32. Lane l
/// holds row l / 4 of a, and the row 8 below it, and column l / 4 of b; along k those from
/// 4 * ofRegister * n + ofRegister * (l % 4) on, for n of 0 and 1.
template <int ofRegister>
void multiplyAccumulate(float (&sums)[4], const MmaOperands &own, const char *file, int line) {
  const std::byte *given = exchange(~0u, &own, sizeof own, file, line);
  const auto ofLane = [given](unsigned lane) {
    return reinterpret_cast<const MmaOperands *>(given + lane * mostExchanged);
  };
  const unsigned lane = currentThread.x % 32, row = lane / 4, column = lane % 4 * 2;
  double exact[4] = {sums[0], sums[1], sums[2], sums[3]};
  for (int n = 0; n < 2; ++n)
    for (unsigned place = 0; place < 4; ++place) {
      const MmaOperands *const rows = ofLane(row * 4 + place),
                               *const left = ofLane(column * 4 + place),
                               *const right = ofLane((column + 1) * 4 + place);
      for (int i = 0; i < ofRegister; ++i) {
        const double upper = rows->a[2 * n * ofRegister + i],
                     lower = rows->a[(2 * n + 1) * ofRegister + i],
                     first = left->b[n * ofRegister + i], second = right->b[n * ofRegister + i];
        exact[0] += upper * first;
        exact[1] += upper * second;
        exact[2] += lower * first;
        exact[3] += lower * second;
      }
    }
  for (int e = 0; e < 4; ++e) sums[e] = float(exact[e]);
}

}  // namespace

void multiplyAccumulate16(float (&sums)[4], const MmaOperands &own, const char *file, int line) {
  multiplyAccumulate<2>(sums, own, file, line);
}
void multiplyAccumulate8(float (&sums)[4], const MmaOperands &own, const char *file, int line) {
  multiplyAccumulate<1>(sums, own, file, line);
}

}  // namespace weft::emulate
