!f32_bj = tensor<2x4xf32, #weft.axes<b, j>>
!f32_bji = tensor<2x4x6xf32, #weft.axes<b, j, i>>
module {
  weft.graph @decomposed_norms(%x: !f32_bji, %s: !f32_bj) -> (!f32_bji, !f32_bji) {
    %normalize = weft.normalize %x, %s, %s along (b, j) {count = 6, epsilon = 1.0e-05} : !f32_bji, !f32_bj, !f32_bj
    %rms_normalize = weft.rms_normalize %x, %s along (b, j) {count = 6, epsilon = 0.001} : !f32_bji, !f32_bj
    weft.return %normalize, %rms_normalize : !f32_bji, !f32_bji
  }
}

