// local_softmax, reduce_subvectors and global_scaling together are softmax (seed 000, section 3.2), for a last sub-vector
// that is short, sub-vectors that are empty, and rows that are. Statistics by hand: exponentials of logarithms.
!jk = tensor<3x5xf32, #weft.axes<j, k>>
!jn = tensor<3x3xf32, #weft.axes<j, n>>
!j = tensor<3xf32, #weft.axes<j>>
weft.graph @equals_softmax() {
  // ln 1, ln 2 | ln 4, ln 3 | ln 6      -inf, -inf | ln 1, -inf | ln 3      all -inf
  %x = weft.constant dense<[[0.0, 0.693147181, 1.38629436, 1.09861229, 1.79175947],
                            [0xFF800000, 0xFF800000, 0.0, 0xFF800000, 1.09861229],
                            [0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000]]> : !jk
  %local, %m, %d = weft.local_softmax %x over k {tile = 2} : !jk -> !jk, !jn, !jn
  %localExpected = weft.constant dense<[[0.5, 1.0, 1.0, 0.75, 1.0], [0.0, 0.0, 1.0, 0.0, 1.0],
                                        [0.0, 0.0, 0.0, 0.0, 0.0]]> : !jk
  %mExpected = weft.constant dense<[[0.693147181, 1.38629436, 1.79175947], [0xFF800000, 0.0, 1.09861229],
                                    [0xFF800000, 0xFF800000, 0xFF800000]]> : !jn
  %dExpected = weft.constant dense<[[1.5, 1.75, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, 0.0]]> : !jn
  weft.expect_close %local, %localExpected {absolute = 1.0e-6} : !jk
  weft.expect_close %m, %mExpected {absolute = 1.0e-6} : !jn
  weft.expect_close %d, %dExpected {absolute = 1.0e-6} : !jn

  // exp(m' - m) / d with d = (1 + 2 + 4 + 3 + 6) / 6, and (1 + 3) / 3
  %r = weft.reduce_subvectors %m, %d over n : !jn
  %rExpected = weft.constant dense<[[0.125, 0.25, 0.375], [0.0, 0.25, 0.75], [0.0, 0.0, 0.0]]> : !jn
  weft.expect_close %r, %rExpected {absolute = 1.0e-6} : !jn

  %y = weft.global_scaling %local, %r {axis = k, tile = 2} : !jk, !jn -> !jk
  %expected = weft.constant dense<[[0.0625, 0.125, 0.25, 0.1875, 0.375], [0.0, 0.0, 0.25, 0.0, 0.75],
                                   [0.0, 0.0, 0.0, 0.0, 0.0]]> : !jk
  weft.expect_close %y, %expected {absolute = 1.0e-6} : !jk
  // ln 16, ln 4, nothing
  %logSums = weft.constant dense<[2.77258872, 1.38629436, 0xFF800000]> : !j
  %again = weft.softmax_from_log_sums %x, %logSums along (j) : !jk, !j
  weft.expect_close %again, %expected {absolute = 1.0e-6} : !jk
  %whole = weft.softmax %x over k : !jk
  weft.expect_close %y, %whole {absolute = 1.0e-6} : !jk
  weft.return
}
