!f32_bji = tensor<2x4x6xf32, #weft.axes<b, j, i>>
!f32_bjn = tensor<2x4x2xf32, #weft.axes<b, j, n>>
module {
  weft.graph @decomposed(%x: !f32_bji) -> !f32_bji {
    %e, %m, %d = weft.local_softmax %x over i {tile = 4} : !f32_bji -> !f32_bji, !f32_bjn, !f32_bjn
    %r = weft.reduce_subvectors %m, %d over n : !f32_bjn
    %y = weft.global_scaling %e, %r {axis = i, tile = 4} : !f32_bji, !f32_bjn
    weft.return %y : !f32_bji
  }
}

