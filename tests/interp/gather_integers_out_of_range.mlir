// A table of integers has no NaN: rows that it lacks are 0.
!table = tensor<2x2xi32, #weft.axes<v, i>>
!indices = tensor<3xi32, #weft.axes<j>>
!rows = tensor<3x2xi32, #weft.axes<j, i>>
weft.graph @rows() {
  %table = weft.constant dense<[[1, 2], [3, 4]]> : !table
  %indices = weft.constant dense<[-1, 1, 2]> : !indices
  %y = weft.gather %table, %indices : !table, !indices -> !rows
  %expected = weft.constant dense<[[0, 0], [3, 4], [0, 0]]> : !rows
  weft.expect_close %y, %expected : !rows
  weft.return
}
