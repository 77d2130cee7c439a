// FAILS: index 4 at position 1 is outside the table's 4 rows
!table = tensor<4x2xf32, #weft.axes<v, i>>
!indices = tensor<2xi32, #weft.axes<j>>
!rows = tensor<2x2xf32, #weft.axes<j, i>>
weft.graph @rows() -> !rows {
  %table = weft.constant dense<0.0> : !table
  %indices = weft.constant dense<[3, 4]> : !indices
  %y = weft.gather %table, %indices : !table, !indices -> !rows
  weft.expect_close %y, %y : !rows
  weft.return %y : !rows
}
