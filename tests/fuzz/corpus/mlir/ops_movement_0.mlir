!f32_bij = tensor<2x6x4xf32, #weft.axes<b, i, j>>
!f32_bjhp = tensor<2x4x2x3xf32, #weft.axes<b, j, h, p>>
!f32_bji = tensor<2x4x6xf32, #weft.axes<b, j, i>>
!f32_bji1 = tensor<2x4x2xf32, #weft.axes<b, j, i>>
!f32_bji2 = tensor<4x4x6xf32, #weft.axes<b, j, i>>
!f32_ti = tensor<8x6xf32, #weft.axes<t, i>>
!i32_b = tensor<2xi32, #weft.axes<b>>
module {
  weft.graph @ops_movement_0(%x: !f32_bji, %table: !f32_bji, %indices: !i32_b, %long: tensor<2x6xbf16, #weft.axes<batch, "head dim">>) -> (!f32_bij, !f32_bji1, !f32_bji2, !f32_bjhp, !f32_ti) {
    %transpose = weft.transpose %x {permutation = [b, i, j]} : !f32_bji -> !f32_bij
    %slice = weft.slice %x {axis = i, size = 2, start = 1} : !f32_bji -> !f32_bji1
    %concat = weft.concat %x, %x {axis = b} : !f32_bji -> !f32_bji2
    %split_axis = weft.split_axis %x {axis = i, sizes = [2, 3]} : !f32_bji -> !f32_bjhp
    %merge_axes = weft.merge_axes %x {axis = b, count = 2} : !f32_bji -> !f32_ti
    weft.return %transpose, %slice, %concat, %split_axis, %merge_axes : !f32_bij, !f32_bji1, !f32_bji2, !f32_bjhp, !f32_ti
  }
}

