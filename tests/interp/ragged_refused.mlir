// FAILS: type_c4
!x = tensor<4x2xf32, #weft.axes<ragged t, i>>
weft.graph @ragged(%x: !x) -> !x {
  %y = weft.relu %x : !x
  weft.return %y : !x
}
