!f32_bji = tensor<2x4x16xf32, #weft.axes<b, j, i>>
!f32_bjp = tensor<2x4x8xf32, #weft.axes<b, j, p>>
!f32_bjpr = tensor<2x4x8x8xf32, #weft.axes<b, j, p, r>>
!f32_bjr = tensor<2x4x8xf32, #weft.axes<b, j, r>>
!f32_pi = tensor<8x16xf32, #weft.axes<p, i>>
!f32_ri = tensor<8x16xf32, #weft.axes<r, i>>
module {
  weft.graph @stacked(%x: !f32_bji, %wa: !f32_pi {weft.parameter}, %wb: !f32_ri {weft.parameter}) -> (!f32_bjpr, !f32_bjp) {
    %a = weft.contract "pi,bji->bjp" %wa, %x : !f32_pi, !f32_bji -> !f32_bjp
    %b = weft.contract "ri,bji->bjr" %wb, %x : !f32_ri, !f32_bji -> !f32_bjr
    %active = weft.silu %a : !f32_bjp
    %outer = weft.contract "bjp,bjr->bjpr" %active, %b : !f32_bjp, !f32_bjr -> !f32_bjpr
    %soft = weft.softmax %outer over r {empty_row = zero} : !f32_bjpr
    weft.return %soft, %a : !f32_bjpr, !f32_bjp
  }
}

