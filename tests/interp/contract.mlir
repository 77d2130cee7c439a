// Products worked out by hand; `scale` multiplies the result; letters may stand in any order.
!ik = tensor<2x3xf32, #weft.axes<i, k>>
!kj = tensor<3x2xf32, #weft.axes<k, j>>
!ji = tensor<2x2xf32, #weft.axes<j, i>>

weft.graph @matrix_product() {
  %a = weft.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : !ik
  %b = weft.constant dense<[[1.0, -1.0], [0.5, 2.0], [-2.0, 3.0]]> : !kj
  %c = weft.contract "ik,kj->ji" %a, %b : !ik, !kj -> !ji
  %expected = weft.constant dense<[[-4.0, -5.5], [12.0, 24.0]]> : !ji
  weft.expect_close %c, %expected : !ji
  %scaled = weft.contract "ik,kj->ji" %a, %b {scale = 0.5} : !ik, !kj -> !ji
  %half = weft.constant dense<[[-2.0, -2.75], [6.0, 12.0]]> : !ji
  weft.expect_close %scaled, %half : !ji
  weft.return
}

// Grouped-query scores: two query heads (r) share the keys of each group (g).
!query = tensor<2x2x2x2xf32, #weft.axes<p, g, r, j>>
!key = tensor<2x2x3xf32, #weft.axes<p, g, k>>
!score = tensor<2x2x2x3xf32, #weft.axes<g, r, j, k>>

weft.graph @grouped_query() {
  %q = weft.constant dense<[[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]],
                            [[[1.0, 1.0], [1.0, 1.0]], [[-1.0, -1.0], [-1.0, -1.0]]]]> : !query
  %k = weft.constant dense<[[[1.0, 10.0, 100.0], [2.0, 20.0, 200.0]], [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]> : !key
  %s = weft.contract "pgrj,pgk->grjk" %q, %k : !query, !key -> !score
  %expected = weft.constant dense<[
    [[[2.0, 12.0, 103.0], [3.0, 22.0, 203.0]], [[4.0, 32.0, 303.0], [5.0, 42.0, 403.0]]],
    [[[6.0, 95.0, 994.0], [8.0, 115.0, 1194.0]], [[10.0, 135.0, 1394.0], [12.0, 155.0, 1594.0]]]]> : !score
  weft.expect_close %s, %expected : !score
  weft.return
}
