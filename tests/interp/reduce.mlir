// Accumulators and maxima over one axis and over several that are not neighbours.
!bji = tensor<2x2x3xf32, #weft.axes<b, j, i>>
!j = tensor<2xf32, #weft.axes<j>>
!bj = tensor<2x2xf32, #weft.axes<b, j>>
weft.graph @sums() {
  %x = weft.constant dense<[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[10.0, 20.0, 30.0], [-4.0, -5.0, -6.0]]]> : !bji
  %outer = weft.reduce sum %x over b, i : !bji -> !j
  %outerExpected = weft.constant dense<[66.0, 0.0]> : !j
  weft.expect_close %outer, %outerExpected : !j
  %rows = weft.reduce sum %x over i : !bji -> !bj
  %rowsExpected = weft.constant dense<[[6.0, 15.0], [60.0, -15.0]]> : !bj
  weft.expect_close %rows, %rowsExpected : !bj
  weft.return
}

weft.graph @maxima() {
  %x = weft.constant dense<[[[1.0, 2.0, 3.0], [0xFF800000, -5.0, -6.0]],
                            [[10.0, 20.0, 30.0], [0xFF800000, 0xFF800000, 0xFF800000]]]> : !bji
  %rows = weft.reduce max %x over i : !bji -> !bj
  %expected = weft.constant dense<[[3.0, -5.0], [30.0, 0xFF800000]]> : !bj
  weft.expect_close %rows, %expected : !bj
  weft.return
}
