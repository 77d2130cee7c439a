!f32_b = tensor<2xf32, #weft.axes<b>>
!f32_bj = tensor<2x4xf32, #weft.axes<b, j>>
!f32_bji = tensor<2x4x6xf32, #weft.axes<b, j, i>>
!f32_i = tensor<6xf32, #weft.axes<i>>
module {
  weft.graph @ops_gradients_1(%dy: !f32_bji, %x: !f32_bji, %g: !f32_i, %m: !f32_bj, %n: !f32_b) -> (!f32_bji, !f32_bji, !f32_bji, !f32_bji) {
    %tanh_dx = weft.tanh_dx %dy, %x : !f32_bji
    %sigmoid_dx = weft.sigmoid_dx %dy, %x : !f32_bji
    %rsqrt_dx = weft.rsqrt_dx %dy, %x : !f32_bji
    %softmax_dx = weft.softmax_dx %dy, %x over j : !f32_bji
    weft.return %tanh_dx, %sigmoid_dx, %rsqrt_dx, %softmax_dx : !f32_bji, !f32_bji, !f32_bji, !f32_bji
  }
}

