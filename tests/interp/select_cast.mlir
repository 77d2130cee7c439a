// ARGS: --round
// select takes the second operand where the condition holds; with rounding, a cast stores what the narrower type can hold.
!c = tensor<4xi1, #weft.axes<i>>
!x = tensor<4xf32, #weft.axes<i>>
!h = tensor<4xf16, #weft.axes<i>>
!n = tensor<4xbf16, #weft.axes<i>>
weft.graph @select() {
  %c = weft.constant dense<[true, false, false, true]> : !c
  %a = weft.constant dense<[1.0, 2.0, 3.0, 4.0]> : !x
  %b = weft.constant dense<[-1.0, -2.0, -3.0, -4.0]> : !x
  %y = weft.select %c, %a, %b : !c, !x, !x -> !x
  %expected = weft.constant dense<[1.0, -2.0, -3.0, 4.0]> : !x
  weft.expect_close %y, %expected : !x
  weft.return
}

// Halves have 11 significant bits, bfloat16 has 8: ties go to the even neighbour, 70000 is beyond the halves.
weft.graph @cast() {
  %x = weft.constant dense<[2049.0, 2051.0, 70000.0, 0.333333333]> : !x
  %half = weft.cast %x : !x -> !h
  %wide = weft.cast %half : !h -> !x
  %expected = weft.constant dense<[2048.0, 2052.0, 0x7F800000, 0.333251953125]> : !x
  weft.expect_close %wide, %expected {absolute = 0.0, relative = 0.0} : !x
  %narrow = weft.cast %x : !x -> !n
  %again = weft.cast %narrow : !n -> !x
  %coarse = weft.constant dense<[2048.0, 2048.0, 70144.0, 0.333984375]> : !x
  weft.expect_close %again, %coarse {absolute = 0.0, relative = 0.0} : !x
  weft.return
}
