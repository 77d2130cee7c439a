// 1..5 has mean 3 and variance 2: with epsilon 0.25 the deviation is 1.5. A constant row normalizes to beta, or to 0 without one.
!bi = tensor<2x5xf32, #weft.axes<b, i>>
!i = tensor<5xf32, #weft.axes<i>>
!b = tensor<2xf32, #weft.axes<b>>
weft.graph @rows() {
  %x = weft.constant dense<[[1.0, 2.0, 3.0, 4.0, 5.0], [7.0, 7.0, 7.0, 7.0, 7.0]]> : !bi
  %gamma = weft.constant dense<[3.0, 3.0, 3.0, 3.0, 6.0]> : !i
  %beta = weft.constant dense<[0.0, 0.0, 1.0, 0.0, -1.0]> : !i
  %y, %mean, %rstd = weft.layer_norm %x, %gamma, %beta over i {epsilon = 0.25} : !bi, !i, !i -> !bi, !b, !b
  %expected = weft.constant dense<[[-4.0, -2.0, 1.0, 2.0, 7.0], [0.0, 0.0, 1.0, 0.0, -1.0]]> : !bi
  %means = weft.constant dense<[3.0, 7.0]> : !b
  %rstds = weft.constant dense<[0.666666667, 2.0]> : !b
  weft.expect_close %y, %expected : !bi
  weft.expect_close %mean, %means : !b
  weft.expect_close %rstd, %rstds : !b
  %unshifted, %sameMean, %sameRstd = weft.layer_norm %x, %gamma over i {epsilon = 0.25} : !bi, !i -> !bi, !b, !b
  %withoutBeta = weft.constant dense<[[-4.0, -2.0, 0.0, 2.0, 8.0], [0.0, 0.0, 0.0, 0.0, 0.0]]> : !bi
  weft.expect_close %unshifted, %withoutBeta : !bi
  weft.expect_close %sameMean, %means : !b
  weft.expect_close %sameRstd, %rstds : !b
  weft.return
}

// Over the middle axis: (1, 3) has mean 2 and variance 1, (0, 4) has mean 2 and variance 4.
!bij = tensor<1x2x2xf32, #weft.axes<b, i, j>>
!g = tensor<2xf32, #weft.axes<i>>
weft.graph @middle_axis() {
  %x = weft.constant dense<[[[1.0, 0.0], [3.0, 4.0]]]> : !bij
  %one = weft.constant dense<[1.0, 10.0]> : !g
  %zero = weft.constant dense<0.0> : !g
  %y = weft.layer_norm %x, %one, %zero over i {epsilon = 0.0} : !bij, !g, !g -> !bij
  %expected = weft.constant dense<[[[-1.0, -1.0], [10.0, 10.0]]]> : !bij
  weft.expect_close %y, %expected : !bij
  weft.return
}
