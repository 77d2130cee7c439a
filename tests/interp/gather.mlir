// Rows of a table by indices of any shape; an index may repeat.
!table = tensor<4x2xf32, #weft.axes<v, i>>
!indices = tensor<2x3xi32, #weft.axes<b, j>>
!rows = tensor<2x3x2xf32, #weft.axes<b, j, i>>
weft.graph @rows() {
  %table = weft.constant dense<[[0.0, 1.0], [10.0, 11.0], [20.0, 21.0], [30.0, 31.0]]> : !table
  %indices = weft.constant dense<[[3, 0, 3], [1, 2, 0]]> : !indices
  %y = weft.gather %table, %indices : !table, !indices -> !rows
  %expected = weft.constant dense<[[[30.0, 31.0], [0.0, 1.0], [30.0, 31.0]],
                                   [[10.0, 11.0], [20.0, 21.0], [0.0, 1.0]]]> : !rows
  weft.expect_close %y, %expected : !rows
  weft.return
}
