// Gradients with values worked out by hand.
!x = tensor<4xf32, #weft.axes<i>>
!bi = tensor<2x4xf32, #weft.axes<b, i>>
!b = tensor<2xf32, #weft.axes<b>>
weft.graph @activations() {
  %dy = weft.constant dense<[1.0, -2.0, 3.0, 4.0]> : !x
  %y = weft.constant dense<[-1.0, 0.0, 0.5, 0.25]> : !x
  %relu = weft.relu_dx %dy, %y : !x
  %reluExpected = weft.constant dense<[0.0, 0.0, 3.0, 4.0]> : !x
  weft.expect_close %relu, %reluExpected {absolute = 0.0, relative = 0.0} : !x
  %tanh = weft.tanh_dx %dy, %y : !x
  %tanhExpected = weft.constant dense<[0.0, -2.0, 2.25, 3.75]> : !x
  weft.expect_close %tanh, %tanhExpected : !x
  %sigmoid = weft.sigmoid_dx %dy, %y : !x
  %sigmoidExpected = weft.constant dense<[-2.0, 0.0, 0.75, 0.75]> : !x
  weft.expect_close %sigmoid, %sigmoidExpected : !x
  %rsqrt = weft.rsqrt_dx %dy, %y : !x
  %rsqrtExpected = weft.constant dense<[0.5, 0.0, -0.1875, -0.03125]> : !x
  weft.expect_close %rsqrt, %rsqrtExpected : !x
  // Slope at 0: one half for all three; gelu at 1 is Phi(1) + phi(1), silu at ln 3 is 3/4 + ln 3 * 3/16.
  %one = weft.constant dense<[1.0, 2.0, 1.0, 1.0]> : !x
  %at = weft.constant dense<[0.0, 0.0, 1.0, 1.098612288668]> : !x
  %gelu = weft.gelu_dx %one, %at : !x
  %geluExpected = weft.constant dense<[0.5, 1.0, 1.083315470588, 1.103731864]> : !x
  weft.expect_close %gelu, %geluExpected {absolute = 1.0e-7} : !x
  %geluTanh = weft.gelu_tanh_dx %one, %at : !x
  weft.expect_close %geluTanh, %geluExpected {absolute = 1.0e-3, relative = 0.0} : !x
  %silu = weft.silu_dx %one, %at : !x
  %siluExpected = weft.constant dense<[0.5, 1.0, 0.927670511, 0.955989804]> : !x
  weft.expect_close %silu, %siluExpected {absolute = 1.0e-7} : !x
  weft.return
}

// Row sums of dy * y: 0.25 + 1 = 1.25; the second row was masked whole.
weft.graph @softmax() {
  %dy = weft.constant dense<[[1.0, 2.0, 7.0, 0.0], [1.0, 2.0, 3.0, 4.0]]> : !bi
  %y = weft.constant dense<[[0.25, 0.5, 0.0, 0.25], [0.0, 0.0, 0.0, 0.0]]> : !bi
  %dx = weft.softmax_dx %dy, %y over i : !bi
  %expected = weft.constant dense<[[-0.0625, 0.375, 0.0, -0.3125], [0.0, 0.0, 0.0, 0.0]]> : !bi
  weft.expect_close %dx, %expected : !bi
  weft.return
}

// n = (-1, 1, -1, 1) and (1, 1, -1, -1); g = dy * gamma.
weft.graph @norms() {
  %dy = weft.constant dense<[[1.0, 2.0, 3.0, 4.0], [1.0, 0.0, 0.0, 1.0]]> : !bi
  %x = weft.constant dense<[[1.0, 5.0, 1.0, 5.0], [4.0, 4.0, 2.0, 2.0]]> : !bi
  %gamma = weft.constant dense<[1.0, 2.0, 1.0, 2.0]> : !x
  %mean = weft.constant dense<[3.0, 3.0]> : !b
  %rstd = weft.constant dense<[0.5, 1.0]> : !b
  // g = (1, 4, 3, 8): mean 4, mean(g n) = 2. g = (1, 0, 0, 2): mean 0.75, mean(g n) = -0.25.
  %dx = weft.layer_norm_dx %dy, %x, %gamma, %mean, %rstd over i : !bi, !bi, !x, !b, !b
  %dxExpected = weft.constant dense<[[-0.5, -1.0, 0.5, 1.0], [0.5, -0.5, -1.0, 1.0]]> : !bi
  weft.expect_close %dx, %dxExpected : !bi
  %dgamma, %dbeta = weft.layer_norm_dw %dy, %x, %mean, %rstd over b : !bi, !bi, !b, !b -> !x, !x
  %dgammaExpected = weft.constant dense<[0.0, 2.0, -3.0, 3.0]> : !x
  %dbetaExpected = weft.constant dense<[2.0, 2.0, 3.0, 5.0]> : !x
  weft.expect_close %dgamma, %dgammaExpected : !x
  weft.expect_close %dbeta, %dbetaExpected : !x
  %alone = weft.layer_norm_dw %dy, %x, %mean, %rstd over b : !bi, !bi, !b, !b -> !x
  weft.expect_close %alone, %dgammaExpected : !x
  // n = x rstd = (0.5, 2.5, 0.5, 2.5): mean(g n) = 8; (4, 4, 2, 2): mean(g n) = 2.
  %rms = weft.rms_norm_dx %dy, %x, %gamma, %rstd over i : !bi, !bi, !x, !b
  %rmsExpected = weft.constant dense<[[-1.5, -8.0, -0.5, -6.0], [-7.0, -8.0, -4.0, -2.0]]> : !bi
  weft.expect_close %rms, %rmsExpected : !bi
  %dw = weft.rms_norm_dw %dy, %x, %rstd over b : !bi, !bi, !b -> !x
  %dwExpected = weft.constant dense<[4.5, 5.0, 1.5, 12.0]> : !x
  weft.expect_close %dw, %dwExpected : !x
  weft.return
}

// Rows 0 and 2 meet in row 1; index 5 lies outside.
weft.graph @movement() {
  %rows = weft.constant dense<[[1.0, 2.0], [3.0, 4.0], [10.0, 20.0], [7.0, 7.0]]> : tensor<4x2xf32, #weft.axes<t, i>>
  %indices = weft.constant dense<[1, 2, 1, 5]> : tensor<4xi32, #weft.axes<t>>
  %table = weft.scatter_add %rows, %indices : tensor<4x2xf32, #weft.axes<t, i>>, tensor<4xi32, #weft.axes<t>> -> tensor<3x2xf32, #weft.axes<v, i>>
  %tableExpected = weft.constant dense<[[0.0, 0.0], [11.0, 22.0], [3.0, 4.0]]> : tensor<3x2xf32, #weft.axes<v, i>>
  weft.expect_close %table, %tableExpected : tensor<3x2xf32, #weft.axes<v, i>>
  %v = weft.constant dense<[1.0, 2.0]> : !b
  %padded = weft.pad %v {axis = b, start = 1, size = 4} : !b -> !x
  %paddedExpected = weft.constant dense<[0.0, 1.0, 2.0, 0.0]> : !x
  weft.expect_close %padded, %paddedExpected : !x
  %spread = weft.broadcast %v {into = [0]} : !b -> !bi
  %spreadExpected = weft.constant dense<[[1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 2.0, 2.0]]> : !bi
  weft.expect_close %spread, %spreadExpected : !bi
  weft.return
}

weft.graph @conditions() {
  %x = weft.constant dense<[1.0, 2.0, 3.0, 4.0]> : !x
  %z = weft.constant dense<[1.0, 5.0, 3.0, 5.0]> : !x
  %c = weft.constant dense<[true, false, false, true]> : tensor<4xi1, #weft.axes<i>>
  %kept = weft.keep_if %x, %c : !x, tensor<4xi1, #weft.axes<i>>
  %keptExpected = weft.constant dense<[1.0, 0.0, 0.0, 4.0]> : !x
  weft.expect_close %kept, %keptExpected : !x
  %zeroed = weft.zero_if %x, %c : !x, tensor<4xi1, #weft.axes<i>>
  %zeroedExpected = weft.constant dense<[0.0, 2.0, 3.0, 0.0]> : !x
  weft.expect_close %zeroed, %zeroedExpected : !x
  %equal = weft.equal %x, %z : !x
  %equalExpected = weft.constant dense<[1.0, 0.0, 1.0, 0.0]> : !x
  weft.expect_close %equal, %equalExpected : !x
  weft.return
}

// A turn and its reverse.
!jp = tensor<3x4xf32, #weft.axes<j, p>>
weft.graph @rotary() {
  %x = weft.constant dense<[[1.0, 2.0, 3.0, 4.0], [-1.0, 0.5, 2.0, 0.0], [7.0, 1.0, 1.0, -3.0]]> : !jp
  %turned = weft.rotary %x {position = j, dim = p, base = 10.0} : !jp
  %back = weft.rotary %turned {position = j, dim = p, base = 10.0, direction = reverse} : !jp
  weft.expect_close %back, %x : !jp
  weft.return
}
