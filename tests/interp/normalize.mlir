// Rows with sums at hand: (1, -7) and (5, 5) by mean square 25, root 6 with epsilon 11; (1, -7) by mean -3 and variance 16, root 5 with epsilon 9.
// A variance that sums give as negative counts as zero. A large mean, taken away from sums of which both are exact.
!bi = tensor<2x2xf32, #weft.axes<b, i>>
!b = tensor<2xf32, #weft.axes<b>>
weft.graph @rows() {
  %x = weft.constant dense<[[1.0, -7.0], [5.0, 5.0]]> : !bi
  %sums = weft.constant dense<[-6.0, 10.0]> : !b
  %squares = weft.constant dense<50.0> : !b
  %rms = weft.rms_normalize %x, %squares along (b) {count = 2, epsilon = 11.0} : !bi, !b
  %rmsExpected = weft.constant dense<[[0.16666667, -1.16666667], [0.83333333, 0.83333333]]> : !bi
  weft.expect_close %rms, %rmsExpected : !bi
  %y = weft.normalize %x, %sums, %squares along (b) {count = 2, epsilon = 9.0} : !bi, !b, !b
  %expected = weft.constant dense<[[0.8, -0.8], [0.0, 0.0]]> : !bi
  weft.expect_close %y, %expected : !bi
  %tooSmall = weft.constant dense<[10.0, 49.0]> : !b
  %clamped = weft.normalize %x, %sums, %tooSmall along (b) {count = 2, epsilon = 4.0} : !bi, !b, !b
  %clampedExpected = weft.constant dense<[[2.0, -2.0], [0.0, 0.0]]> : !bi
  weft.expect_close %clamped, %clampedExpected : !bi
  %far = weft.constant dense<[[1024.0, 1022.0], [-2047.0, -2049.0]]> : !bi
  %farSums = weft.reduce sum %far over i : !bi -> !b
  %square = weft.mul %far, %far : !bi
  %farSquares = weft.reduce sum %square over i : !bi -> !b
  %near = weft.normalize %far, %farSums, %farSquares along (b) {count = 2, epsilon = 3.0} : !bi, !b, !b
  %nearExpected = weft.constant dense<[[0.5, -0.5], [0.5, -0.5]]> : !bi
  weft.expect_close %near, %nearExpected : !bi
  weft.return
}
