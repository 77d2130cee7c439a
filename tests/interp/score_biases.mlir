// ALiBi, biases by distance and T5's buckets, against numbers from their publications.
!hjk = tensor<6x2x3xf32, #weft.axes<h, j, k>>
!grjk = tensor<3x2x2x3xf32, #weft.axes<g, r, j, k>>
!four = tensor<4x1x2xf32, #weft.axes<h, j, k>>
// Press et al. 2022: six heads have the slopes of four, then the first and the third of eight. The
// queries stand at keys 1 and 2.
weft.graph @alibi() {
  %x = weft.constant dense<1.0> : !hjk
  %y = weft.alibi %x {heads = [h], query = j, key = k} : !hjk
  %expected = weft.constant dense<[[[0.75, 1.0, 1.25], [0.5, 0.75, 1.0]],
                                   [[0.9375, 1.0, 1.0625], [0.875, 0.9375, 1.0]],
                                   [[0.984375, 1.0, 1.015625], [0.96875, 0.984375, 1.0]],
                                   [[0.99609375, 1.0, 1.00390625], [0.9921875, 0.99609375, 1.0]],
                                   [[0.5, 1.0, 1.5], [0.0, 0.5, 1.0]],
                                   [[0.875, 1.0, 1.125], [0.75, 0.875, 1.0]]]> : !hjk
  weft.expect_close %y, %expected {absolute = 1.0e-6} : !hjk
  // Heads that are two axes.
  %apart = weft.split_axis %x {axis = h, sizes = [3, 2]} : !hjk -> !grjk
  %sloped = weft.alibi %apart {heads = [g, r], query = j, key = k} : !grjk
  %joined = weft.merge_axes %sloped {axis = g, count = 2} : !grjk -> !hjk
  weft.expect_close %joined, %expected {absolute = 1.0e-6} : !hjk
  weft.return
}
// Slopes from 2^-1: a steepness of 4.
weft.graph @steepness() {
  %x = weft.constant dense<0.0> : !four
  %y = weft.alibi %x {heads = [h], query = j, key = k, steepness = 4.0} : !four
  %expected = weft.constant dense<[[[-0.5, 0.0]], [[-0.25, 0.0]], [[-0.125, 0.0]], [[-0.0625, 0.0]]]> : !four
  weft.expect_close %y, %expected {absolute = 1.0e-6} : !four
  weft.return
}

!jk = tensor<2x5xf32, #weft.axes<j, k>>
!d = tensor<5xf32, #weft.axes<d>>
!jd = tensor<2x5xf32, #weft.axes<j, d>>
!near = tensor<4xf32, #weft.axes<d>>
!kd = tensor<5x4xf32, #weft.axes<k, d>>
// Distances are clipped to two on either side; the queries stand at keys 3 and 4.
weft.graph @relative_bias() {
  %x = weft.constant dense<[[0.0, 0.0, 0.0, 0.0, 0.0], [100.0, 100.0, 100.0, 100.0, 100.0]]> : !jk
  %table = weft.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0]> : !d
  %y = weft.relative_bias %x, %table along () {query = j, key = k, distance = 2} : !jk, !d -> !jk
  %expected = weft.constant dense<[[1.0, 1.0, 2.0, 3.0, 4.0], [101.0, 101.0, 101.0, 102.0, 103.0]]> : !jk
  weft.expect_close %y, %expected : !jk
  // A row of the table for each query, as terms of queries and distances have it (DeBERTa).
  %rows = weft.constant dense<[[1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0]]> : !jd
  %z = weft.relative_bias %x, %rows along (j) {query = j, key = k, distance = 2} : !jk, !jd -> !jk
  %other = weft.constant dense<[[1.0, 1.0, 2.0, 3.0, 4.0], [106.0, 106.0, 106.0, 107.0, 108.0]]> : !jk
  weft.expect_close %z, %other : !jk
  // Distances of queries from keys; that of two shares the element of one.
  %near = weft.constant dense<[1.0, 2.0, 3.0, 4.0]> : !near
  %r = weft.relative_bias %x, %near along () {query = j, key = k, distance = 2, direction = reverse} : !jk, !near -> !jk
  %reversed = weft.constant dense<[[4.0, 4.0, 4.0, 3.0, 2.0], [104.0, 104.0, 104.0, 104.0, 103.0]]> : !jk
  weft.expect_close %r, %reversed : !jk
  // A row of the table for each key.
  %columns = weft.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [9.0, 10.0, 11.0, 12.0],
                                  [13.0, 14.0, 15.0, 16.0], [17.0, 18.0, 19.0, 20.0]]> : !kd
  %c = weft.relative_bias %x, %columns along (k) {query = j, key = k, distance = 2, direction = reverse} : !jk, !kd -> !jk
  %ofKeys = weft.constant dense<[[4.0, 8.0, 12.0, 15.0, 18.0], [104.0, 108.0, 112.0, 116.0, 119.0]]> : !jk
  weft.expect_close %c, %ofKeys : !jk
  weft.return
}

!buckets = tensor<8x1xf32, #weft.axes<n, h>>
!rows = tensor<1x41xf32, #weft.axes<h, distance>>
// T5's function of 8 buckets up to a distance of 20, by transformers: 4 for later keys, of which
// one holds nothing.
weft.graph @expand_buckets() {
  %table = weft.constant dense<[[0.0], [1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0]]> : !buckets
  %both = weft.expand_buckets bidirectional %table {distance = 20} : !buckets -> !rows
  %expected = weft.constant dense<[[3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0,
                                    0.0, 5.0, 6.0, 6.0, 6.0, 6.0, 6.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0]]> : !rows
  weft.expect_close %both, %expected : !rows
  %causal = weft.expand_buckets causal %table {distance = 20} : !buckets -> !rows
  %earlier = weft.constant dense<[[7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 6.0, 6.0, 6.0, 6.0, 6.0, 5.0, 5.0, 5.0, 4.0, 4.0, 3.0, 2.0, 1.0,
                                   0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]> : !rows
  weft.expect_close %causal, %earlier : !rows
  weft.return
}
