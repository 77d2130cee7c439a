!f32_b = tensor<2xf32, #weft.axes<b>>
!f32_bj = tensor<2x4xf32, #weft.axes<b, j>>
!f32_bji = tensor<2x4x6xf32, #weft.axes<b, j, i>>
!f32_i = tensor<6xf32, #weft.axes<i>>
module {
  weft.graph @ops_gradients_2(%dy: !f32_bji, %x: !f32_bji, %g: !f32_i, %m: !f32_bj, %n: !f32_b) -> (!f32_bji, !f32_i, !f32_i, !f32_bji, !f32_i) {
    %layer_norm_dx = weft.layer_norm_dx %dy, %x, %g, %m, %m over i : !f32_bji, !f32_bji, !f32_i, !f32_bj, !f32_bj
    %dgamma, %dbeta = weft.layer_norm_dw %dy, %x, %m, %m over b, j : !f32_bji, !f32_bji, !f32_bj, !f32_bj -> !f32_i, !f32_i
    %rms_norm_dx = weft.rms_norm_dx %dy, %x, %g, %m over i : !f32_bji, !f32_bji, !f32_i, !f32_bj
    %rms_norm_dw = weft.rms_norm_dw %dy, %x, %m over b, j : !f32_bji, !f32_bji, !f32_bj -> !f32_i
    weft.return %layer_norm_dx, %dgamma, %dbeta, %rms_norm_dx, %rms_norm_dw : !f32_bji, !f32_i, !f32_i, !f32_bji, !f32_i
  }
}

