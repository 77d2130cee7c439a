!f32_bj = tensor<2x4xf32, #weft.axes<b, j>>
!f32_bji = tensor<2x4x6xf32, #weft.axes<b, j, i>>
!i32_bj = tensor<2x4xi32, #weft.axes<b, j>>
module {
  weft.graph @loss(%x: !f32_bji, %labels: !i32_bj, %s: tensor<f32, #weft.axes<>>) -> (!f32_bj, !f32_bj, !f32_bji, !f32_bji, !f32_bji, !f32_bji) {
    %losses, %logs = weft.cross_entropy %x, %labels over i : !f32_bji, !i32_bj -> !f32_bj, !f32_bj
    %cross_entropy_dx = weft.cross_entropy_dx %x, %labels, %logs, %losses {axis = i} : !f32_bji, !i32_bj, !f32_bj, !f32_bj
    %average = weft.average %x, %x {weight = 0.001} : !f32_bji
    %sqrt = weft.sqrt %x : !f32_bji
    %mul = weft.mul %x, %s along () : !f32_bji, tensor<f32, #weft.axes<>>
    weft.return %losses, %logs, %cross_entropy_dx, %average, %sqrt, %mul : !f32_bj, !f32_bj, !f32_bji, !f32_bji, !f32_bji, !f32_bji
  }
}

