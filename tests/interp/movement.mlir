// Every op that only moves elements, on 0..11 so that each value names where it came from.
!bj = tensor<3x4xf32, #weft.axes<b, j>>
!jb = tensor<4x3xf32, #weft.axes<j, b>>
!slice = tensor<3x2xf32, #weft.axes<b, j>>
!long = tensor<3x6xf32, #weft.axes<b, j>>
!split = tensor<3x2x2xf32, #weft.axes<b, h, p>>
!merged = tensor<12xf32, #weft.axes<i>>
weft.graph @movement() {
  %x = weft.constant dense<[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0]]> : !bj
  %t = weft.transpose %x {permutation = [j, b]} : !bj -> !jb
  %tExpected = weft.constant dense<[[0.0, 4.0, 8.0], [1.0, 5.0, 9.0], [2.0, 6.0, 10.0], [3.0, 7.0, 11.0]]> : !jb
  weft.expect_close %t, %tExpected : !jb
  %s = weft.slice %x {axis = j, start = 1, size = 2} : !bj -> !slice
  %sExpected = weft.constant dense<[[1.0, 2.0], [5.0, 6.0], [9.0, 10.0]]> : !slice
  weft.expect_close %s, %sExpected : !slice
  %c = weft.concat %s, %x {axis = j} : !slice, !bj -> !long
  %cExpected = weft.constant dense<[[1.0, 2.0, 0.0, 1.0, 2.0, 3.0], [5.0, 6.0, 4.0, 5.0, 6.0, 7.0],
                                    [9.0, 10.0, 8.0, 9.0, 10.0, 11.0]]> : !long
  weft.expect_close %c, %cExpected : !long
  %p = weft.split_axis %x {axis = j, sizes = [2, 2]} : !bj -> !split
  %pExpected = weft.constant dense<[[[0.0, 1.0], [2.0, 3.0]], [[4.0, 5.0], [6.0, 7.0]], [[8.0, 9.0], [10.0, 11.0]]]> : !split
  weft.expect_close %p, %pExpected : !split
  %m = weft.merge_axes %x {axis = b, count = 2} : !bj -> !merged
  %mExpected = weft.constant dense<[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0]> : !merged
  weft.expect_close %m, %mExpected : !merged
  %i = weft.identity %x : !bj
  weft.expect_close %i, %x : !bj
  weft.return
}

// Three axes, a permutation that is not its own inverse: result dimension d is operand dimension permutation[d].
!abc = tensor<1x2x3xf32, #weft.axes<a, b, c>>
!cab = tensor<3x1x2xf32, #weft.axes<c, a, b>>
weft.graph @rotation() {
  %x = weft.constant dense<[[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]]> : !abc
  %y = weft.transpose %x {permutation = [c, a, b]} : !abc -> !cab
  %expected = weft.constant dense<[[[0.0, 3.0]], [[1.0, 4.0]], [[2.0, 5.0]]]> : !cab
  weft.expect_close %y, %expected : !cab
  weft.return
}
