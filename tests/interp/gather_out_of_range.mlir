// FAILS: 4 of 6 elements differ; worst at \[0, 0\]: -?nan instead of -?nan
// Rows that the table lacks are NaN, which no comparison passes; the row between them is there.
!table = tensor<4x2xf32, #weft.axes<v, i>>
!indices = tensor<3xi32, #weft.axes<j>>
!rows = tensor<3x2xf32, #weft.axes<j, i>>
weft.graph @rows() -> !rows {
  %table = weft.constant dense<0.0> : !table
  %indices = weft.constant dense<[-1, 3, 4]> : !indices
  %y = weft.gather %table, %indices : !table, !indices -> !rows
  weft.expect_close %y, %y : !rows
  weft.return %y : !rows
}
