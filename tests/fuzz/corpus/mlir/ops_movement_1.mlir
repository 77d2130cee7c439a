!f32_b = tensor<2xf32, #weft.axes<b>>
!f32_bji = tensor<2x4x6xf32, #weft.axes<b, j, i>>
!f32_tji = tensor<2x4x6xf32, #weft.axes<t, j, i>>
!i32_b = tensor<2xi32, #weft.axes<b>>
module {
  weft.graph @movement_1(%table: !f32_bji, %indices: !i32_b, %long: tensor<2x6xf32, #weft.axes<batch, "head dim">>) -> (!f32_tji, tensor<2x6xf32, #weft.axes<batch, "head dim">>, !f32_bji) {
    %gathered = weft.gather %table, %indices : !f32_bji, !i32_b -> !f32_tji
    %soft = weft.softmax %long over "head dim" {empty_row = zero} : tensor<2x6xf32, #weft.axes<batch, "head dim">>
    %0 = weft.constant dense<[1.000000e+00, 2.000000e+00]> : !f32_b
    %scaled = weft.mul %table, %0 along (b) : !f32_bji, !f32_b
    weft.return %gathered, %soft, %scaled : !f32_tji, tensor<2x6xf32, #weft.axes<batch, "head dim">>, !f32_bji
  }
}

