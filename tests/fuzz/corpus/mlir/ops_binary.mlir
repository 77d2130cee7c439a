!f32_b = tensor<2xf32, #weft.axes<b>>
!f32_bji = tensor<2x4x6xf32, #weft.axes<b, j, i>>
!i1_bji = tensor<2x4x6xi1, #weft.axes<b, j, i>>
module {
  weft.graph @ops_binary(%x: !f32_bji, %y: !f32_bji, %b: !f32_b, %c: !i1_bji) -> (!f32_bji, !f32_bji, !f32_bji, !f32_bji, !f32_bji, !f32_bji, !f32_bji, !f32_bji, !f32_bji) {
    %add = weft.add %x, %y : !f32_bji
    %sub = weft.sub %x, %y : !f32_bji
    %mul = weft.mul %x, %b along (b) : !f32_bji, !f32_b
    %div = weft.div %x, %y : !f32_bji
    %bias = weft.bias %x, %b along (b) : !f32_bji, !f32_b
    %residual = weft.residual %x, %y : !f32_bji
    %keep_if = weft.keep_if %x, %c : !f32_bji, !i1_bji
    %zero_if = weft.zero_if %x, %c : !f32_bji, !i1_bji
    %select = weft.select %c, %x, %y : !i1_bji, !f32_bji, !f32_bji -> !f32_bji
    weft.return %add, %sub, %mul, %div, %bias, %residual, %keep_if, %zero_if, %select : !f32_bji, !f32_bji, !f32_bji, !f32_bji, !f32_bji, !f32_bji, !f32_bji, !f32_bji, !f32_bji
  }
}
