!f32_bj = tensor<2x8xf32, #weft.axes<b, j>>
!f32_bji = tensor<2x8x16xf32, #weft.axes<b, j, i>>
!f32_bjv = tensor<2x8x256xf32, #weft.axes<b, j, v>>
!f32_ji = tensor<8x16xf32, #weft.axes<j, i>>
!f32_vi = tensor<256x16xf32, #weft.axes<v, i>>
!i32_bj = tensor<2x8xi32, #weft.axes<b, j>>
module {
  weft.graph @tokens(%tokens: !i32_bj, %labels: !i32_bj, %weights: !f32_bj, %token_table: !f32_vi {weft.initial = "normal(0.02)", weft.parameter}, %position_table: !f32_ji {weft.initial = "normal(0.02)", weft.parameter}, %output_weight: !f32_vi {weft.initial = "normal(0.02)", weft.parameter}) -> tensor<f32, #weft.axes<>> {
    %embedded = weft.gather %token_table, %tokens : !f32_vi, !i32_bj -> !f32_bji
    %positioned = weft.bias %embedded, %position_table along (j, i) : !f32_bji, !f32_ji
    %active = weft.gelu %positioned : !f32_bji
    %logits = weft.contract "vi,bji->bjv" %output_weight, %active : !f32_vi, !f32_bji -> !f32_bjv
    %losses, %log_sums = weft.cross_entropy %logits, %labels over v : !f32_bjv, !i32_bj -> !f32_bj, !f32_bj
    %loss_terms = weft.mul %losses, %weights : !f32_bj
    %loss = weft.reduce sum %loss_terms over b, j : !f32_bj -> tensor<f32, #weft.axes<>>
    weft.return %loss : tensor<f32, #weft.axes<>>
  }
}

