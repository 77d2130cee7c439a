!f32_b = tensor<2xf32, #weft.axes<b>>
!f32_bji = tensor<2x4x6xf32, #weft.axes<b, j, i>>
module {
  weft.graph @binary_0(%x: !f32_bji, %y: !f32_bji, %b: !f32_b) -> (!f32_bji, !f32_bji) {
    %add = weft.add %x, %y : !f32_bji
    %sub = weft.sub %add, %y : !f32_bji
    %mul = weft.mul %sub, %b along (b) : !f32_bji, !f32_b
    %div = weft.div %mul, %y : !f32_bji
    %bias = weft.bias %div, %b along (b) : !f32_bji, !f32_b
    %residual = weft.residual %bias, %x : !f32_bji
    weft.return %residual, %mul : !f32_bji, !f32_bji
  }
}

