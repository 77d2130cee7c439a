!f32_b = tensor<2xf32, #weft.axes<b>>
!f32_bj = tensor<2x4xf32, #weft.axes<b, j>>
!f32_bji = tensor<2x4x6xf32, #weft.axes<b, j, i>>
!f32_i = tensor<6xf32, #weft.axes<i>>
module {
  weft.graph @normalization(%x: !f32_bji, %g: !f32_i) -> (!f32_bji, !f32_bji, !f32_bji, !f32_bj, !f32_bj, !f32_bji, !f32_bji, !f32_bj, !f32_b, tensor<f32, #weft.axes<>>) {
    %softmax = weft.softmax %x over j {empty_row = zero} : !f32_bji
    %y = weft.layer_norm %x, %g, %g over i {epsilon = 1.0e-05} : !f32_bji, !f32_i, !f32_i
    %z, %mean, %rstd = weft.layer_norm %x, %g, %g over i {epsilon = 0.01} : !f32_bji, !f32_i, !f32_i -> !f32_bji, !f32_bj, !f32_bj
    %r = weft.rms_norm %x, %g over i {epsilon = 1.0e-05} : !f32_bji, !f32_i
    %s:2 = weft.rms_norm %x, %g over i {epsilon = 1.0e-05} : !f32_bji, !f32_i -> !f32_bji, !f32_bj
    %t = weft.reduce sum %x over j, i : !f32_bji -> !f32_b
    %u = weft.reduce max %x over b, j, i : !f32_bji -> tensor<f32, #weft.axes<>>
    weft.return %softmax, %y, %z, %mean, %rstd, %r, %s#0, %s#1, %t, %u : !f32_bji, !f32_bji, !f32_bji, !f32_bj, !f32_bj, !f32_bji, !f32_bji, !f32_bj, !f32_b, tensor<f32, #weft.axes<>>
  }
}

