// Losses and their gradients with values worked out by hand; a step of a moving average; square roots.
!x = tensor<2x2x2xf32, #weft.axes<b, j, v>>
!t = tensor<2x2xi32, #weft.axes<b, j>>
!r = tensor<2x2xf32, #weft.axes<b, j>>
weft.graph @last_axis() {
  // Rows: equal logits; ln 3 ahead; so far apart that an exponential without its maximum would overflow; a label outside.
  %x = weft.constant dense<[[[5.0, 5.0], [1.098612288668, 0.0]], [[1000.0, 0.0], [7.0, 2.0]]]> : !x
  %labels = weft.constant dense<[[1, 1], [0, -1]]> : !t
  %losses, %logs = weft.cross_entropy %x, %labels over v : !x, !t -> !r, !r
  %lossesExpected = weft.constant dense<[[0.693147180560, 1.386294361120], [0.0, 0.0]]> : !r
  weft.expect_close %losses, %lossesExpected {absolute = 1.0e-6} : !r
  %logsExpected = weft.constant dense<[[5.693147180560, 1.386294361120], [1000.0, 7.006715348489]]> : !r
  weft.expect_close %logs, %logsExpected : !r
  %dy = weft.constant dense<[[1.0, 2.0], [1.0, 3.0]]> : !r
  %dx = weft.cross_entropy_dx %x, %labels, %logs, %dy {axis = v} : !x, !t, !r, !r -> !x
  %dxExpected = weft.constant dense<[[[0.5, -0.5], [1.5, -1.5]], [[0.0, 0.0], [0.0, 0.0]]]> : !x
  weft.expect_close %dx, %dxExpected {absolute = 1.0e-6} : !x
  weft.return
}

!vb = tensor<3x2xf32, #weft.axes<v, b>>
!tb = tensor<2xi32, #weft.axes<b>>
!rb = tensor<2xf32, #weft.axes<b>>
weft.graph @first_axis() {
  %x = weft.constant dense<[[0.0, 0.0], [0.0, 0.0], [0.0, 0.693147180560]]> : !vb
  %labels = weft.constant dense<[3, 2]> : !tb
  %losses, %logs = weft.cross_entropy %x, %labels over v : !vb, !tb -> !rb, !rb
  %lossesExpected = weft.constant dense<[0.0, 0.693147180560]> : !rb
  weft.expect_close %losses, %lossesExpected {absolute = 1.0e-6} : !rb
  %logsExpected = weft.constant dense<[1.098612288668, 1.386294361120]> : !rb
  weft.expect_close %logs, %logsExpected : !rb
  %one = weft.constant dense<1.0> : !rb
  %dx = weft.cross_entropy_dx %x, %labels, %logs, %one {axis = v} : !vb, !tb, !rb, !rb -> !vb
  %dxExpected = weft.constant dense<[[0.0, 0.25], [0.0, 0.25], [0.0, -0.5]]> : !vb
  weft.expect_close %dx, %dxExpected {absolute = 1.0e-6} : !vb
  weft.return
}

weft.graph @update() {
  %old = weft.constant dense<[[4.0, 0.0], [9.0, 2.0]]> : !r
  %x = weft.constant dense<[[8.0, 1.0], [9.0, -2.0]]> : !r
  %average = weft.average %old, %x {weight = 0.25} : !r
  %averageExpected = weft.constant dense<[[5.0, 0.25], [9.0, 1.0]]> : !r
  weft.expect_close %average, %averageExpected : !r
  %squares = weft.average_square %old, %x {weight = 0.25} : !r
  %squaresExpected = weft.constant dense<[[19.0, 0.25], [27.0, 2.5]]> : !r
  weft.expect_close %squares, %squaresExpected : !r
  %root = weft.sqrt %old : !r
  %rootExpected = weft.constant dense<[[2.0, 0.0], [3.0, 1.414213562373]]> : !r
  weft.expect_close %root, %rootExpected : !r
  %scalar = weft.constant dense<0.5> : tensor<f32, #weft.axes<>>
  %half = weft.mul %old, %scalar along () : !r, tensor<f32, #weft.axes<>> -> !r
  %halfExpected = weft.constant dense<[[2.0, 0.0], [4.5, 1.0]]> : !r
  weft.expect_close %half, %halfExpected : !r
  %gradient = weft.cast %old : !r -> tensor<2x2xf16, #weft.axes<b, v>>
  %unscaled = weft.unscale %gradient, %scalar : tensor<2x2xf16, #weft.axes<b, v>>, tensor<f32, #weft.axes<>> -> !r
  weft.expect_close %unscaled, %halfExpected : !r
  // keep * p - step_size * mean / (sqrt(square) + epsilon)
  %keep = weft.constant dense<0.75> : tensor<f32, #weft.axes<>>
  %size = weft.constant dense<2.0> : tensor<f32, #weft.axes<>>
  %step = weft.adamw_step %old, %x, %old, %keep, %size, %scalar : !r, !r, !r, tensor<f32, #weft.axes<>>, tensor<f32, #weft.axes<>>, tensor<f32, #weft.axes<>> -> !r
  %stepExpected = weft.constant dense<[[-3.4, -4.0], [1.607142857143, 3.589630999710]]> : !r
  weft.expect_close %step, %stepExpected {absolute = 1.0e-5} : !r
  weft.return
}
