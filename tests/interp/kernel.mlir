// Fused regions evaluate like the ops in them, with several results, unused ones, and a kernel inside the flow.
!x = tensor<2x3xf32, #weft.axes<b, i>>
!i = tensor<3xf32, #weft.axes<i>>
!b = tensor<2xf32, #weft.axes<b>>
weft.graph @fused() {
  %x = weft.constant dense<[[1.0, -2.0, 3.0], [-4.0, 5.0, -6.0]]> : !x
  %bias = weft.constant dense<[1.0, 1.0, 1.0]> : !i
  %y, %s = weft.kernel @bias_relu_sum (%p = %x : !x, %q = %bias : !i) -> (!x, !b) {
    %biased = weft.bias %p, %q along (i) : !x, !i -> !x
    %r = weft.relu %biased : !x
    %total = weft.reduce sum %r over i : !x -> !b
    weft.yield %r, %total : !x, !b
  }
  %expected = weft.constant dense<[[2.0, 0.0, 4.0], [0.0, 6.0, 0.0]]> : !x
  %sums = weft.constant dense<[6.0, 6.0]> : !b
  weft.expect_close %y, %expected : !x
  weft.expect_close %s, %sums : !b
  weft.return
}
