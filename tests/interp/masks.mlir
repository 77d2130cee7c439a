// Masks of ones: what stays one is seen. With 3 queries and 5 keys the queries stand at key positions 2, 3 and 4.
!jk = tensor<3x5xf32, #weft.axes<j, k>>
!bjk = tensor<3x1x4xf32, #weft.axes<b, j, k>>
!b = tensor<3xi32, #weft.axes<b>>
!square = tensor<3x3xf32, #weft.axes<j, k>>
!table = tensor<2x2xi1, #weft.axes<m, n>>
weft.graph @causal_and_window() {
  %x = weft.constant dense<1.0> : !jk
  %causal = weft.mask causal %x {query = j, key = k} : !jk
  %causalExpected = weft.constant dense<[[1.0, 1.0, 1.0, 0xFF800000, 0xFF800000], [1.0, 1.0, 1.0, 1.0, 0xFF800000],
                                         [1.0, 1.0, 1.0, 1.0, 1.0]]> : !jk
  weft.expect_close %causal, %causalExpected : !jk
  %window = weft.mask window %x {query = j, key = k, left = 1, right = 1} : !jk
  %windowExpected = weft.constant dense<[[0xFF800000, 1.0, 1.0, 1.0, 0xFF800000], [0xFF800000, 0xFF800000, 1.0, 1.0, 1.0],
                                         [0xFF800000, 0xFF800000, 0xFF800000, 1.0, 1.0]]> : !jk
  weft.expect_close %window, %windowExpected : !jk
  %global = weft.mask window %x {query = j, key = k, left = 1, right = 0, global = 1} : !jk
  %globalExpected = weft.constant dense<[[1.0, 1.0, 1.0, 0xFF800000, 0xFF800000], [1.0, 0xFF800000, 1.0, 1.0, 0xFF800000],
                                         [1.0, 0xFF800000, 0xFF800000, 1.0, 1.0]]> : !jk
  weft.expect_close %global, %globalExpected : !jk
  %more = weft.mask window %x {query = j, key = k, left = 0, right = 0, global = 3} : !jk
  %moreExpected = weft.constant dense<[[1.0, 1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0, 0xFF800000],
                                       [1.0, 1.0, 1.0, 0xFF800000, 1.0]]> : !jk
  weft.expect_close %more, %moreExpected : !jk
  weft.return
}

// More queries than keys: the first ones see nothing, and their softmax is zero.
!kj = tensor<3x2xf32, #weft.axes<j, k>>
weft.graph @causal_without_keys() {
  %x = weft.constant dense<1.0> : !kj
  %masked = weft.mask causal %x {query = j, key = k} : !kj
  %y = weft.softmax %masked over k : !kj
  %expected = weft.constant dense<[[0.0, 0.0], [1.0, 0.0], [0.5, 0.5]]> : !kj
  weft.expect_close %y, %expected : !kj
  weft.return
}

weft.graph @padding() {
  %x = weft.constant dense<1.0> : !bjk
  %lengths = weft.constant dense<[4, 0, 2]> : !b
  %y = weft.mask padding %x, %lengths along (b) {key = k} : !bjk, !b -> !bjk
  %expected = weft.constant dense<[[[1.0, 1.0, 1.0, 1.0]], [[0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000]],
                                   [[1.0, 1.0, 0xFF800000, 0xFF800000]]]> : !bjk
  weft.expect_close %y, %expected : !bjk
  weft.return
}

// Blocks of two; the last row and column of blocks are cut.
weft.graph @block() {
  %x = weft.constant dense<1.0> : !square
  %table = weft.constant dense<[[true, false], [true, true]]> : !table
  %y = weft.mask block %x, %table {query = j, key = k, size = 2} : !square, !table -> !square
  %expected = weft.constant dense<[[1.0, 1.0, 0xFF800000], [1.0, 1.0, 0xFF800000], [1.0, 1.0, 1.0]]> : !square
  weft.expect_close %y, %expected : !square
  weft.return
}

!bqk = tensor<2x2x4xf32, #weft.axes<b, j, k>>
!bk = tensor<2x4xi32, #weft.axes<b, k>>
// Two queries at the last two of four keys.
weft.graph @document() {
  %x = weft.constant dense<1.0> : !bqk
  %segments = weft.constant dense<[[0, 0, 0, 1], [7, 3, 7, 7]]> : !bk
  %y = weft.mask document %x, %segments along (b) {query = j, key = k} : !bqk, !bk -> !bqk
  %expected = weft.constant dense<[[[1.0, 1.0, 1.0, 0xFF800000], [0xFF800000, 0xFF800000, 0xFF800000, 1.0]],
                                   [[1.0, 0xFF800000, 1.0, 1.0], [1.0, 0xFF800000, 1.0, 1.0]]]> : !bqk
  weft.expect_close %y, %expected : !bqk
  weft.return
}

// Bounds of 70 positions are those of three tiles, the last of 6; a mask computes the same with them.
!positions = tensor<2x70xi32, #weft.axes<b, k>>
!bounds = tensor<2x3x2xi32, #weft.axes<b, k_tile, bound>>
!scores = tensor<2x3x70xf32, #weft.axes<b, j, k>>
weft.graph @tile_bounds() {
  %segments = weft.constant dense<[[0, 0, 0, -3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0, 5, 16777217, 3, 3, 3],
                                    [-2147483648, 0, 0, 0, 0, 0, 0, 2147483647, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4, 2, 5, 5, 5, 5, 5, 5]]> : !positions
  %bounds = weft.tile_bounds %segments : !positions -> !bounds
  %expected = weft.constant dense<[[[-3, 7], [2, 2], [0, 16777217]], [[-2147483648, 2147483647], [1, 4], [5, 5]]]> : !bounds
  weft.expect_close %bounds, %expected {absolute = 0.0, relative = 0.0} : !bounds
  %x = weft.constant dense<1.0> : !scores
  %alone = weft.mask document %x, %segments along (b) {query = j, key = k, fill = 0.0} : !scores, !positions -> !scores
  %bounded = weft.mask document %x, %segments, %bounds along (b) {query = j, key = k, fill = 0.0} : !scores, !positions, !bounds -> !scores
  weft.expect_close %bounded, %alone {absolute = 0.0, relative = 0.0} : !scores
  weft.return
}

// The tables of two heads: the block mask of each, whose tiles the ends of rows and columns cut.
!heads = tensor<2x20x40xf32, #weft.axes<h, j, k>>
!wide = tensor<2x3xi1, #weft.axes<m, n>>
weft.graph @pattern() {
  %x = weft.constant dense<1.0> : !heads
  %first = weft.constant dense<[[true, false, true], [false, true, true]]> : !wide
  %second = weft.constant dense<[[false, false, false], [true, false, false]]> : !wide
  %y = weft.mask pattern %x along (h) {query = j, key = k, pattern = "table(block=16,heads=2,rows=2,columns=3,bits=5601)"} : !heads
  %all = weft.mask pattern %x {query = j, key = k, pattern = "table(block=16,heads=1,rows=2,columns=3,bits=56)"} : !heads
  %byFirst = weft.mask block %x, %first {query = j, key = k, size = 16} : !heads, !wide -> !heads
  %bySecond = weft.mask block %x, %second {query = j, key = k, size = 16} : !heads, !wide -> !heads
  weft.expect_close %all, %byFirst : !heads
  %y0 = weft.slice %y {axis = h, start = 0, size = 1} : !heads -> tensor<1x20x40xf32, #weft.axes<h, j, k>>
  %y1 = weft.slice %y {axis = h, start = 1, size = 1} : !heads -> tensor<1x20x40xf32, #weft.axes<h, j, k>>
  %e0 = weft.slice %byFirst {axis = h, start = 0, size = 1} : !heads -> tensor<1x20x40xf32, #weft.axes<h, j, k>>
  %e1 = weft.slice %bySecond {axis = h, start = 1, size = 1} : !heads -> tensor<1x20x40xf32, #weft.axes<h, j, k>>
  weft.expect_close %y0, %e0 : tensor<1x20x40xf32, #weft.axes<h, j, k>>
  weft.expect_close %y1, %e1 : tensor<1x20x40xf32, #weft.axes<h, j, k>>
  weft.return
}
