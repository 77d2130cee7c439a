!f32_b = tensor<2xf32, #weft.axes<b>>
!f32_bj = tensor<2x4xf32, #weft.axes<b, j>>
!f32_bji = tensor<2x4x6xf32, #weft.axes<b, j, i>>
!f32_i = tensor<6xf32, #weft.axes<i>>
module {
  weft.graph @ops_gradients_0(%dy: !f32_bji, %x: !f32_bji, %g: !f32_i, %m: !f32_bj, %n: !f32_b) -> (!f32_bji, !f32_bji, !f32_bji, !f32_bji) {
    %relu_dx = weft.relu_dx %dy, %x : !f32_bji
    %gelu_dx = weft.gelu_dx %dy, %x : !f32_bji
    %gelu_tanh_dx = weft.gelu_tanh_dx %dy, %x : !f32_bji
    %silu_dx = weft.silu_dx %dy, %x : !f32_bji
    weft.return %relu_dx, %gelu_dx, %gelu_tanh_dx, %silu_dx : !f32_bji, !f32_bji, !f32_bji, !f32_bji
  }
}

