// Rows are 1..4, 5..8, 9..12 at positions 0, 1, 2; base 100 turns pair 0 by the position and pair 1 by a tenth of it.
// Expected values by multiplication of complex numbers.
!jp = tensor<3x4xf32, #weft.axes<j, p>>
!pj = tensor<4x3xf32, #weft.axes<p, j>>
weft.graph @styles() {
  %x = weft.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [9.0, 10.0, 11.0, 12.0]]> : !jp
  %halved = weft.rotary %x {position = j, dim = p, base = 100.0, style = halved} : !jp
  %halvedExpected = weft.constant dense<[[1.0, 2.0, 3.0, 4.0], [-3.18878536, 5.17135766, 7.98947107, 8.55903382],
                                         [-13.7475932, 7.41663381, 3.60606164, 13.7474922]]> : !jp
  weft.expect_close %halved, %halvedExpected {absolute = 1.0e-6} : !jp
  %interleaved = weft.rotary %x {position = j, dim = p, base = 100.0, style = interleaved} : !jp
  %interleavedExpected = weft.constant dense<[[1.0, 2.0, 3.0, 4.0], [-2.34731438, 7.44916876, 6.16636182, 8.65886724],
                                              [-12.8382958, 4.02220848, 8.39670039, 13.9461616]]> : !jp
  weft.expect_close %interleaved, %interleavedExpected {absolute = 1.0e-6} : !jp

  // The same with the rotated axis in front.
  %t = weft.transpose %x {permutation = [p, j]} : !jp -> !pj
  %turned = weft.rotary %t {position = j, dim = p, base = 100.0} : !pj
  %back = weft.transpose %turned {permutation = [j, p]} : !pj -> !jp
  weft.expect_close %back, %halvedExpected {absolute = 1.0e-6} : !jp
  weft.return
}

// Four of six columns turn; the second pair is slowed by the factor, the first one only partly.
!wide = tensor<3x6xf32, #weft.axes<j, p>>
weft.graph @scaled() {
  %x = weft.constant dense<[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [5.0, 6.0, 7.0, 8.0, 9.0, 10.0], [9.0, 10.0, 11.0, 12.0, 13.0, 14.0]]> : !wide
  %turned = weft.rotary %x {position = j, dim = p, base = 100.0, turned = 4, factor = 4.0, original = 16, low = 0.25, high = 4.0} : !wide
  %expected = weft.constant dense<[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
      [-0.76499360, 5.79738853, 8.56824281, 8.14802346, 9.0, 10.0],
      [-9.50827199, 9.38543128, 10.56374762, 12.48653994, 13.0, 14.0]]> : !wide
  weft.expect_close %turned, %expected {absolute = 1.0e-6} : !wide
  %back = weft.rotary %turned {position = j, dim = p, base = 100.0, turned = 4, factor = 4.0, original = 16, low = 0.25, high = 4.0, direction = reverse} : !wide
  weft.expect_close %back, %x : !wide
  weft.return
}

// Packed tokens of sequences of two, none and one token: each turns by its distance from the start
// of its sequence, as the rows of a padded tensor do by their positions.
!starts = tensor<3xi32, #weft.axes<t>>
!tp = tensor<3x4xf32, #weft.axes<t, p>>
!pt = tensor<4x3xf32, #weft.axes<p, t>>
weft.graph @packed() {
  %x = weft.constant dense<[[9.0, 8.0, 7.0, 6.0], [5.0, 6.0, 7.0, 8.0], [1.0, 2.0, 3.0, 4.0]]> : !tp
  %starts = weft.constant dense<[0, 0, 2]> : !starts
  %turned = weft.rotary %x, %starts along (t) {position = t, dim = p, base = 100.0} : !tp, !starts -> !tp
  %expected = weft.constant dense<[[9.0, 8.0, 7.0, 6.0], [-3.18878537, 5.17135767, 7.98947104, 8.55903383],
                                   [1.0, 2.0, 3.0, 4.0]]> : !tp
  weft.expect_close %turned, %expected {absolute = 1.0e-6} : !tp

  // The same with the rotated axis in front, and back.
  %t = weft.transpose %turned {permutation = [p, t]} : !tp -> !pt
  %back = weft.rotary %t, %starts along (t) {position = t, dim = p, base = 100.0, direction = reverse} : !pt, !starts -> !pt
  %rows = weft.transpose %back {permutation = [t, p]} : !pt -> !tp
  weft.expect_close %rows, %x : !tp
  weft.return
}

// Of three heads the second and the third turn; and back.
!jgp = tensor<3x3x4xf32, #weft.axes<j, g, p>>
!two = tensor<3x2x4xf32, #weft.axes<j, g, p>>
!one = tensor<3x1x4xf32, #weft.axes<j, g, p>>
weft.graph @among() {
  %rows = weft.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [9.0, 10.0, 11.0, 12.0]]> : !jp
  %flat = weft.concat %rows, %rows, %rows {axis = p} : !jp, !jp, !jp -> tensor<3x12xf32, #weft.axes<j, p>>
  %x = weft.split_axis %flat {axis = p, sizes = [3, 4]} : tensor<3x12xf32, #weft.axes<j, p>> -> !jgp
  %turned = weft.rotary %x {position = j, dim = p, base = 100.0, among = g, begin = 1, end = 3} : !jgp
  %all = weft.rotary %x {position = j, dim = p, base = 100.0} : !jgp
  %first = weft.slice %turned {axis = g, start = 0, size = 1} : !jgp -> !one
  %firstExpected = weft.slice %x {axis = g, start = 0, size = 1} : !jgp -> !one
  weft.expect_close %first, %firstExpected {absolute = 0.0} : !one
  %others = weft.slice %turned {axis = g, start = 1, size = 2} : !jgp -> !two
  %othersExpected = weft.slice %all {axis = g, start = 1, size = 2} : !jgp -> !two
  weft.expect_close %others, %othersExpected {absolute = 0.0} : !two
  %back = weft.rotary %turned {position = j, dim = p, base = 100.0, direction = reverse, among = g, begin = 1, end = 3} : !jgp
  weft.expect_close %back, %x : !jgp
  weft.return
}
