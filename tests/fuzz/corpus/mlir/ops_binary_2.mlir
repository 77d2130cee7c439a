!f32_b = tensor<2xf32, #weft.axes<b>>
!f32_bji = tensor<2x4x6xf32, #weft.axes<b, j, i>>
!i1_bji = tensor<2x4x6xi1, #weft.axes<b, j, i>>
module {
  weft.graph @ops_binary_2(%x: !f32_bji, %y: !f32_bji, %b: !f32_b, %c: !i1_bji) -> !f32_bji {
    %zero_if = weft.zero_if %x, %c : !f32_bji, !i1_bji
    %select = weft.select %c, %x, %y : !i1_bji, !f32_bji, !f32_bji -> !f32_bji
    weft.return %select : !f32_bji
  }
}

