// FAILS: 2 of 4 elements differ; worst at \[1, 0\]: 3.5 instead of 3
!x = tensor<2x2xf32, #weft.axes<b, i>>
weft.graph @names_the_worst_element() {
  %a = weft.constant dense<[[1.0, 2.1], [3.5, 4.0]]> : !x
  %b = weft.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : !x
  weft.expect_close %a, %b : !x
  weft.return
}
