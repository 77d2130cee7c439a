!f32_b = tensor<2xf32, #weft.axes<b>>
!f32_bj = tensor<2x4xf32, #weft.axes<b, j>>
!f32_bji = tensor<2x4x6xf32, #weft.axes<b, j, i>>
!f32_bji1 = tensor<2x4x9xf32, #weft.axes<b, j, i>>
!f32_i = tensor<6xf32, #weft.axes<i>>
!f32_jb = tensor<4x2xf32, #weft.axes<j, b>>
module {
  weft.graph @ops_gradients_3(%dy: !f32_bji, %x: !f32_bji, %g: !f32_i, %m: !f32_bj, %n: !f32_b) -> (!f32_bji1, !f32_jb) {
    %pad = weft.pad %x {axis = i, size = 9, start = 2} : !f32_bji -> !f32_bji1
    %broadcast = weft.broadcast %n {into = [1]} : !f32_b -> !f32_jb
    weft.return %pad, %broadcast : !f32_bji1, !f32_jb
  }
}

