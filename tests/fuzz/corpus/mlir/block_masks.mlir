!f32_hjk = tensor<2x40x40xf32, #weft.axes<h, j, k>>
module {
  weft.graph @masks(%x: !f32_hjk) -> (!f32_hjk, !f32_hjk) {
    %mask = weft.mask pattern %x {key = k, pattern = "longformer(block=16,window=3,global=1)", query = j} : !f32_hjk
    %mask_0 = weft.mask pattern %mask along (h) {fill = 0.0, key = k, pattern = "table(block=16,heads=2,rows=3,columns=3,bits=563016)", query = j} : !f32_hjk
    weft.return %mask, %mask_0 : !f32_hjk, !f32_hjk
  }
}
