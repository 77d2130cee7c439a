!f32_b = tensor<2xf32, #weft.axes<b>>
!f32_bj = tensor<2x4xf32, #weft.axes<b, j>>
!f32_bji = tensor<2x4x6xf32, #weft.axes<b, j, i>>
!f32_bji1 = tensor<2x4x9xf32, #weft.axes<b, j, i>>
!f32_i = tensor<6xf32, #weft.axes<i>>
!f32_jb = tensor<4x2xf32, #weft.axes<j, b>>
module {
  weft.graph @ops_gradients(%dy: !f32_bji, %x: !f32_bji, %g: !f32_i, %m: !f32_bj, %n: !f32_b) -> (!f32_bji, !f32_bji, !f32_bji, !f32_bji, !f32_bji, !f32_bji, !f32_bji, !f32_bji, !f32_bji, !f32_i, !f32_i, !f32_bji, !f32_i, !f32_bji1, !f32_jb) {
    %relu_dx = weft.relu_dx %dy, %x : !f32_bji
    %gelu_dx = weft.gelu_dx %dy, %x : !f32_bji
    %gelu_tanh_dx = weft.gelu_tanh_dx %dy, %x : !f32_bji
    %silu_dx = weft.silu_dx %dy, %x : !f32_bji
    %tanh_dx = weft.tanh_dx %dy, %x : !f32_bji
    %sigmoid_dx = weft.sigmoid_dx %dy, %x : !f32_bji
    %rsqrt_dx = weft.rsqrt_dx %dy, %x : !f32_bji
    %softmax_dx = weft.softmax_dx %dy, %x over j : !f32_bji
    %layer_norm_dx = weft.layer_norm_dx %dy, %x, %g, %m, %m over i : !f32_bji, !f32_bji, !f32_i, !f32_bj, !f32_bj
    %dgamma, %dbeta = weft.layer_norm_dw %dy, %x, %m, %m over b, j : !f32_bji, !f32_bji, !f32_bj, !f32_bj -> !f32_i, !f32_i
    %rms_norm_dx = weft.rms_norm_dx %dy, %x, %g, %m over i : !f32_bji, !f32_bji, !f32_i, !f32_bj
    %rms_norm_dw = weft.rms_norm_dw %dy, %x, %m over b, j : !f32_bji, !f32_bji, !f32_bj -> !f32_i
    %pad = weft.pad %x {axis = i, size = 9, start = 2} : !f32_bji -> !f32_bji1
    %broadcast = weft.broadcast %n {into = [1]} : !f32_b -> !f32_jb
    weft.return %relu_dx, %gelu_dx, %gelu_tanh_dx, %silu_dx, %tanh_dx, %sigmoid_dx, %rsqrt_dx, %softmax_dx, %layer_norm_dx, %dgamma, %dbeta, %rms_norm_dx, %rms_norm_dw, %pad, %broadcast : !f32_bji, !f32_bji, !f32_bji, !f32_bji, !f32_bji, !f32_bji, !f32_bji, !f32_bji, !f32_bji, !f32_i, !f32_i, !f32_bji, !f32_i, !f32_bji1, !f32_jb
  }
}
