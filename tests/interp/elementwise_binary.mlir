// Arithmetic on equal types, and with a smaller second operand along one axis, two axes, or two in the other order.
!bij = tensor<2x2x3xf32, #weft.axes<b, i, j>>
!i = tensor<2xf32, #weft.axes<i>>
!jb = tensor<3x2xf32, #weft.axes<j, b>>
weft.graph @arithmetic() {
  %a = weft.constant dense<[3.0, -4.0]> : !i
  %b = weft.constant dense<[2.0, 0.5]> : !i
  %add = weft.add %a, %b : !i
  %sub = weft.sub %a, %b : !i
  %mul = weft.mul %a, %b : !i
  %div = weft.div %a, %b : !i
  %residual = weft.residual %a, %b : !i
  %sum = weft.constant dense<[5.0, -3.5]> : !i
  %difference = weft.constant dense<[1.0, -4.5]> : !i
  %product = weft.constant dense<[6.0, -2.0]> : !i
  %quotient = weft.constant dense<[1.5, -8.0]> : !i
  weft.expect_close %add, %sum : !i
  weft.expect_close %residual, %sum : !i
  weft.expect_close %sub, %difference : !i
  weft.expect_close %mul, %product : !i
  weft.expect_close %div, %quotient : !i
  weft.return
}

weft.graph @broadcast() {
  %a = weft.constant dense<[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[7.0, 8.0, 9.0], [10.0, 11.0, 12.0]]]> : !bij
  %bias = weft.constant dense<[100.0, 200.0]> : !i
  %biased = weft.bias %a, %bias along (i) : !bij, !i -> !bij
  %biasedExpected = weft.constant dense<[[[101.0, 102.0, 103.0], [204.0, 205.0, 206.0]],
                                         [[107.0, 108.0, 109.0], [210.0, 211.0, 212.0]]]> : !bij
  weft.expect_close %biased, %biasedExpected : !bij
  %factors = weft.constant dense<[[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]]> : !jb
  %scaled = weft.mul %a, %factors along (j, b) : !bij, !jb -> !bij
  %scaledExpected = weft.constant dense<[[[1.0, 4.0, 9.0], [4.0, 10.0, 18.0]],
                                         [[70.0, 160.0, 270.0], [100.0, 220.0, 360.0]]]> : !bij
  weft.expect_close %scaled, %scaledExpected : !bij
  weft.return
}
