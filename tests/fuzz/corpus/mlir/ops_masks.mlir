!f32_bji = tensor<2x4x6xf32, #weft.axes<b, j, i>>
!f32_jj = tensor<4x4xf32, #weft.axes<j, j>>
!f32_jk = tensor<4x4xf32, #weft.axes<j, k>>
!i1_jk = tensor<2x2xi1, #weft.axes<j, k>>
!i32_b = tensor<2xi32, #weft.axes<b>>
module {
  weft.graph @masks(%x: !f32_jk, %s: !f32_jj, %bji: !f32_bji, %lengths: !i32_b, %table: !i1_jk) -> (!f32_jk, !f32_jk, !f32_bji, !f32_jk, !f32_jj, !f32_jk) {
    %mask = weft.mask causal %x {key = k, query = j} : !f32_jk
    %mask_0 = weft.mask window %x {key = k, left = 2, query = j, right = 0} : !f32_jk
    %mask_1 = weft.mask padding %bji, %lengths along (b) {key = i} : !f32_bji, !i32_b
    %mask_2 = weft.mask block %x, %table {key = k, query = j, size = 2} : !f32_jk, !i1_jk
    %mask_3 = weft.mask causal %s {key = 1, query = 0} : !f32_jj
    %mask_4 = weft.mask causal %x {fill = 0.0, key = k, query = j} : !f32_jk
    weft.return %mask, %mask_0, %mask_1, %mask_2, %mask_3, %mask_4 : !f32_jk, !f32_jk, !f32_bji, !f32_jk, !f32_jj, !f32_jk
  }
}

