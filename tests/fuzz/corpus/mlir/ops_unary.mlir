!f32_bji = tensor<2x4x6xf32, #weft.axes<b, j, i>>
module {
  weft.graph @unary(%x: !f32_bji) -> !f32_bji {
    %relu = weft.relu %x : !f32_bji
    %gelu = weft.gelu %relu : !f32_bji
    %gelu_tanh = weft.gelu_tanh %gelu : !f32_bji
    %silu = weft.silu %gelu_tanh : !f32_bji
    %tanh = weft.tanh %silu : !f32_bji
    %sigmoid = weft.sigmoid %tanh : !f32_bji
    %exp = weft.exp %sigmoid : !f32_bji
    %rsqrt = weft.rsqrt %exp : !f32_bji
    %scale = weft.scale %rsqrt {factor = -0.3333333333333333} : !f32_bji
    %scale_0 = weft.scale %scale {factor = 1.0e-30} : !f32_bji
    %dropout = weft.dropout %scale_0 {p = 0.0, stream = 4294967295} : !f32_bji
    %rotary = weft.rotary %dropout {base = 10000.0, dim = i, position = j, style = interleaved} : !f32_bji
    %identity = weft.identity %rotary : !f32_bji
    %rotary_1 = weft.rotary %identity {base = 10000.0, dim = i, direction = reverse, position = j, style = halved} : !f32_bji
    weft.return %rotary_1 : !f32_bji
  }
}

