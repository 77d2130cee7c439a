// (1, -7) has mean square 25; with epsilon 11 the root is 6.
!bi = tensor<2x2xf32, #weft.axes<b, i>>
!i = tensor<2xf32, #weft.axes<i>>
!b = tensor<2xf32, #weft.axes<b>>
weft.graph @rows() {
  %x = weft.constant dense<[[1.0, -7.0], [5.0, 5.0]]> : !bi
  %gamma = weft.constant dense<[6.0, 12.0]> : !i
  %y, %rstd = weft.rms_norm %x, %gamma over i {epsilon = 11.0} : !bi, !i -> !bi, !b
  %expected = weft.constant dense<[[1.0, -14.0], [5.0, 10.0]]> : !bi
  %rstds = weft.constant dense<0.166666667> : !b
  weft.expect_close %y, %expected : !bi
  weft.expect_close %rstd, %rstds : !b
  %alone = weft.rms_norm %x, %gamma over i {epsilon = 11.0} : !bi, !i -> !bi
  weft.expect_close %alone, %expected : !bi
  weft.return
}
