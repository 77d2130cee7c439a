// Logarithms of small integers give ratios of small integers. A row of -inf gives zeros; infinities elsewhere just get no weight.
!jk = tensor<4x3xf32, #weft.axes<j, k>>
weft.graph @rows() {
  %x = weft.constant dense<[[0.0, 0.693147181, 1.09861229], [0xFF800000, 0.0, 0xFF800000],
                            [0xFF800000, 0xFF800000, 0xFF800000], [1000.0, 1000.0, -1000.0]]> : !jk
  %y = weft.softmax %x over k : !jk
  %expected = weft.constant dense<[[0.166666667, 0.333333333, 0.5], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0],
                                   [0.5, 0.5, 0.0]]> : !jk
  weft.expect_close %y, %expected {absolute = 1.0e-6} : !jk
  weft.return
}

// Over the leading axis: columns instead of rows.
!kj = tensor<3x2xf32, #weft.axes<k, j>>
weft.graph @columns() {
  %x = weft.constant dense<[[0.0, 0xFF800000], [0.693147181, 5.0], [1.09861229, 5.0]]> : !kj
  %y = weft.softmax %x over k : !kj
  %expected = weft.constant dense<[[0.166666667, 0.0], [0.333333333, 0.5], [0.5, 0.5]]> : !kj
  weft.expect_close %y, %expected {absolute = 1.0e-6} : !kj
  weft.return
}
