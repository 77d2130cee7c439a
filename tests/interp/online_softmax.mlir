// ARGS: --random 3
// subvector_contract and online_softmax_contract by hand: exponentials of logarithms, a short last sub-vector, a
// row that is masked whole, elements of +-6e4, and rows of one element.
!jk = tensor<3x5xf32, #weft.axes<j, k>>
!kw = tensor<5x2xf32, #weft.axes<k, w>>
!jw = tensor<3x2xf32, #weft.axes<j, w>>
!wj = tensor<2x3xf32, #weft.axes<w, j>>
!j = tensor<3xf32, #weft.axes<j>>
!jwn = tensor<3x2x3xf32, #weft.axes<j, w, n>>
weft.graph @by_hand() {
  %e = weft.constant dense<[[1.0, 2.0, 4.0, 3.0, 6.0], [0.0, 0.0, 1.0, 0.0, 3.0], [0.0, 0.0, 0.0, 0.0, 0.0]]> : !jk
  %v = weft.constant dense<[[1.0, 2.0], [-1.0, 0.5], [0.25, 0.0], [2.0, -4.0], [3.0, 1.0]]> : !kw
  %partials = weft.subvector_contract "jk,kw->jw" %e, %v {tile = 2} : !jk, !kw -> !jwn
  %partialsExpected = weft.constant dense<[[[-1.0, 7.0, 18.0], [3.0, -12.0, 6.0]],
                                           [[0.0, 0.25, 9.0], [0.0, 0.0, 3.0]],
                                           [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]]> : !jwn
  weft.expect_close %partials, %partialsExpected {absolute = 1.0e-6} : !jwn

  // ln 1, ln 2, ln 4, ln 3, ln 6      -inf, -inf, ln 1, -inf, ln 3      all -inf
  %x = weft.constant dense<[[0.0, 0.693147181, 1.38629436, 1.09861229, 1.79175947],
                            [0xFF800000, 0xFF800000, 0.0, 0xFF800000, 1.09861229],
                            [0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000]]> : !jk
  %y, %logs = weft.online_softmax_contract "jk,kw->wj" %x, %v : !jk, !kw -> !wj, !j
  %yExpected = weft.constant dense<[[1.5, 2.3125, 0.0], [-0.1875, 0.75, 0.0]]> : !wj
  %logsExpected = weft.constant dense<[2.77258872, 1.38629436, 0xFF800000]> : !j
  weft.expect_close %y, %yExpected {absolute = 1.0e-6} : !wj
  weft.expect_close %logs, %logsExpected {absolute = 1.0e-6} : !j
  weft.return
}

!large = tensor<3x4xf32, #weft.axes<j, k>>
!largeValues = tensor<4x1xf32, #weft.axes<k, w>>
!column = tensor<3x1xf32, #weft.axes<j, w>>
weft.graph @large() {
  %x = weft.constant dense<[[6.0e4, -6.0e4, 6.0e4, -6.0e4], [-6.0e4, -6.0e4, -6.0e4, -6.0e4],
                            [6.0e4, 0.0, 59999.0, 0xFF800000]]> : !large
  %v = weft.constant dense<[[1.0], [2.0], [4.0], [8.0]]> : !largeValues
  %y, %logs = weft.online_softmax_contract "jk,kw->jw" %x, %v : !large, !largeValues -> !column, !j
  // (1 + 4 / e) / (1 + 1 / e), and 6e4 + ln(1 + 1 / e)
  %yExpected = weft.constant dense<[[2.5], [3.75], [1.80682427]]> : !column
  %logsExpected = weft.constant dense<[60000.6931, -59998.6137, 60000.3133]> : !j
  weft.expect_close %y, %yExpected {absolute = 1.0e-6} : !column
  weft.expect_close %logs, %logsExpected {absolute = 0.005} : !j
  weft.return
}

// What dropout draws for the tensor is dropped of exponentials and of probabilities: against ops one by one. The sums
// are of all exponentials. Three dimensions, so that there are outer rows, and more than one tile of 16 x 16 elements.
!ajk = tensor<3x18x35xf32, #weft.axes<a, j, k>>
!akw = tensor<3x35x4xf32, #weft.axes<a, k, w>>
!waj = tensor<4x3x18xf32, #weft.axes<w, a, j>>
!wajn = tensor<4x3x18x3xf32, #weft.axes<w, a, j, n>>
!aj = tensor<3x18xf32, #weft.axes<a, j>>
weft.graph @dropped(%x: !ajk, %e: !ajk, %v: !akw) {
  %p = weft.softmax %x over k : !ajk
  %kept = weft.dropout %p {p = 0.25, stream = 7} : !ajk
  %expected = weft.contract "ajk,akw->waj" %kept, %v : !ajk, !akw -> !waj
  %all, %logsExpected = weft.online_softmax_contract "ajk,akw->waj" %x, %v : !ajk, !akw -> !waj, !aj
  %y, %logs = weft.online_softmax_contract "ajk,akw->waj" %x, %v {p = 0.25, stream = 7} : !ajk, !akw -> !waj, !aj
  weft.expect_close %y, %expected {absolute = 1.0e-6} : !waj
  weft.expect_close %logs, %logsExpected : !aj

  %keptExponentials = weft.dropout %e {p = 0.25, stream = 7} : !ajk
  %partialsExpected = weft.subvector_contract "ajk,akw->waj" %keptExponentials, %v {tile = 16} : !ajk, !akw -> !wajn
  %partials = weft.subvector_contract "ajk,akw->waj" %e, %v {tile = 16, p = 0.25, stream = 7} : !ajk, !akw -> !wajn
  weft.expect_close %partials, %partialsExpected {absolute = 1.0e-6} : !wajn
  weft.return
}

// One probability of two is dropped here, by the bits of seed 1, step 0, stream 3 (dropout.mlir): equal scores, p = 1/2,
// elements 0, 4, 5 and 6 of 8 are kept.
!row = tensor<1x8xf32, #weft.axes<j, k>>
!eight = tensor<8x1xf32, #weft.axes<k, w>>
!single = tensor<1x1xf32, #weft.axes<j, w>>
!singleLog = tensor<1xf32, #weft.axes<j>>
weft.graph @dropped_by_hand() {
  %x = weft.constant dense<0.0> : !row
  %v = weft.constant dense<[[1.0], [2.0], [4.0], [8.0], [16.0], [32.0], [64.0], [128.0]]> : !eight
  %y, %logs = weft.online_softmax_contract "jk,kw->jw" %x, %v {p = 0.5, stream = 3} : !row, !eight -> !single, !singleLog
  // (1 + 16 + 32 + 64) 2 / 8, and ln 8
  %yExpected = weft.constant dense<28.25> : !single
  %logsExpected = weft.constant dense<2.07944154> : !singleLog
  weft.expect_close %y, %yExpected {absolute = 1.0e-5} : !single
  weft.expect_close %logs, %logsExpected {absolute = 1.0e-6} : !singleLog
  weft.return
}

!one = tensor<3x1xf32, #weft.axes<j, k>>
!oneValue = tensor<1x1xf32, #weft.axes<k, w>>
weft.graph @one_key() {
  %x = weft.constant dense<[[3.0], [-6.0e4], [0xFF800000]]> : !one
  %v = weft.constant dense<[[0.75]]> : !oneValue
  %y, %logs = weft.online_softmax_contract "jk,kw->jw" %x, %v : !one, !oneValue -> !column, !j
  %yExpected = weft.constant dense<[[0.75], [0.75], [0.0]]> : !column
  %logsExpected = weft.constant dense<[3.0, -6.0e4, 0xFF800000]> : !j
  weft.expect_close %y, %yExpected {absolute = 1.0e-6} : !column
  weft.expect_close %logs, %logsExpected {absolute = 1.0e-6} : !j
  weft.return
}

// Letters that the values lack (the queries of a group) and values that the scores lack, in the order of llama's
// contraction, against softmax and contract.
!grbjk = tensor<2x3x2x4x7xf32, #weft.axes<g, r, b, j, k>>
!wgbk = tensor<5x2x2x7xf32, #weft.axes<w, g, b, k>>
!wgrbj = tensor<5x2x3x2x4xf32, #weft.axes<w, g, r, b, j>>
weft.graph @grouped(%x: !grbjk, %v: !wgbk) {
  %p = weft.softmax %x over k : !grbjk
  %expected = weft.contract "wgbk,grbjk->wgrbj" %v, %p : !wgbk, !grbjk -> !wgrbj
  %y = weft.online_softmax_contract "grbjk,wgbk->wgrbj" %x, %v : !grbjk, !wgbk -> !wgrbj
  weft.expect_close %y, %expected {absolute = 1.0e-6} : !wgrbj
  weft.return
}
